"""Versions of the agents' protocol that are understood: today's and those before, each answered in its own form.

An agent names its version in a header; one that names none speaks the first. Whoever speaks a newer one than ours is
answered in ours, and what we do not know of its fields is passed over. Who speaks an older one is told so, and so is
everybody who looks at its node: a condition says that its observations do not arrive.
"""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from hostler.controller.inputs import AgentRefused
from hostler.server.problems import refuse

HEADER = "Hostler-Agent-Protocol"
SPEAKS = 3
"""1: the first. 2: a heartbeat names its spool and is answered with how far that has been read.

3: an order's operation has its arguments under their own types.
"""

OLDEST = 1


def spoken(header: str | None) -> int:
    """The version that the header names; 1 where there is none, 0 where it is no version."""
    if header is None:
        return 1
    return int(header) if header.isascii() and header.isdigit() and len(header) < 6 else 0


async def understood(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """The guard of the agents' routes, behind the one that knows who it is. Raises ProblemError (426)."""
    said = connection.headers.get(HEADER.lower())
    if spoken(said) >= OLDEST:
        return
    node = connection.scope["user"].grant.node
    what = (
        f"the agent of {node} speaks protocol {(said or '')[:20]!r}; this controller understands {OLDEST} to {SPEAKS}"
    )
    connection.app.state["app_state"].cell.tell(AgentRefused(node, what))
    raise refuse(426, "too_old", what, "upgrade the agent; what it has seen stays in its spool meanwhile")
