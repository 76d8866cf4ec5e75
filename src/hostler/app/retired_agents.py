"""Revokes the tokens of agents whose nodes were retired: an id is never given out again, so no such token is needed."""

import asyncio
from collections.abc import Callable

from hostler.core.state.fleet import Fleet
from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.server.tokens import TokenStore

EVERY_S = 60.0
"""So long the agent of a node that was just retired is still answered that it is."""

log = logger()


async def revoking(view: Callable[[], Fleet], tokens: TokenStore, every_s: float = EVERY_S) -> None:
    """Revoke what is retired by now, again and again, until cancelled. A start looks at all that ever were."""
    done: set[str] = set()
    while True:
        await asyncio.sleep(every_s)
        if fresh := [node for node in view().retired if node not in done]:
            try:
                gone = await asyncio.to_thread(tokens.revoke_agents, fresh)
            except JournalError as error:
                log.warning("tokens_not_revoked", nodes=len(fresh), reason=str(error))
                continue
            done.update(fresh)
            if gone:
                log.info("tokens_revoked", nodes=len(fresh), tokens=gone)
