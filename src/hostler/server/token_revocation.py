"""Closes the connections of tokens that were revoked or have expired, whatever is under way on them."""

import asyncio
from collections.abc import Iterable
from datetime import datetime

from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.server.app_state import AppState
from hostler.server.tokens import Identity

log = logger()

EVERY_S = 2.0
"""Delay after a revocation until the token's open requests end; a new request is refused sooner."""


async def end_revoked(app_state: AppState) -> None:
    """Look every EVERY_S until cancelled. While the tokens cannot be read, nothing is closed."""
    before: object = None
    while True:
        await asyncio.sleep(EVERY_S)
        open_now = {who for table in app_state.connections for who in table.identities()}
        try:
            revision = await asyncio.to_thread(app_state.tokens.revision)
            gone = set(expired(open_now, app_state.now()))
            if revision != before:
                there = await asyncio.to_thread(app_state.tokens.ids)
                gone |= {who.token for who in open_now} - there
        except JournalError as error:
            log.warning("tokens_not_read", reason=str(error))
            continue
        before = revision
        ended = sum(table.end(gone) for table in app_state.connections) if gone else 0
        if ended:
            log.info("connections_ended", connections=ended, reason="their tokens are revoked or expired")


def expired(known: Iterable[Identity], now: datetime) -> Iterable[str]:
    """The tokens that are over by now."""
    return (who.token for who in known if who.grant.expires is not None and who.grant.expires <= now)
