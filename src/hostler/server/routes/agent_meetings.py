"""Nodes under check ask whom to meet, and tell what they measured. An agent speaks for its own node only."""

from ipaddress import ip_address
from typing import Annotated

from litestar import Router, post
from litestar.params import JSONBody
from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.core.fabric.pair_rows import GBPS_MOST
from hostler.core.planning import idle_checks
from hostler.core.planning.meeting_rules import keeps_apart, keeps_in_leaf, place_of
from hostler.core.state.meetings import TAKES_MOST, MeetingReply
from hostler.core.state.model import Node
from hostler.core.state.operations import RunChecks
from hostler.core.state.verbs.facts import Permission
from hostler.server.agent_protocol import understood
from hostler.server.auth import needs
from hostler.server.dependencies import Reports
from hostler.server.meeting_hall import MeetingTold, Visitor, Way
from hostler.server.problems import refuse
from hostler.server.routes.agent_reports import own_node

PROFILES = frozenset({"burn_in", "suspect"})
"""Checks of plans during which a node meets others; idle checks of nodes without a cluster are the third."""

Word = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:/@-]+$")]


class MeetingBody(Struct, frozen=True):
    """How the node is reached by one of its ports, for which operation, and what its last meeting came to.

    `gbps` null: nothing was measured; 0: sums were wrong. `takes`: how many nodes its agent can meet at once.
    """

    node: Annotated[str, Meta(max_length=128)]
    operation: Annotated[str, Meta(max_length=256)]
    via: Word
    address: Annotated[str, Meta(max_length=64)]
    port: Annotated[int, Meta(ge=1, le=65_535)]
    interface: Annotated[str, Meta(max_length=64)] = ""
    meeting: Annotated[str, Meta(max_length=64)] = ""
    gbps: Annotated[float, Meta(ge=0, le=GBPS_MOST)] | None = None
    takes: Annotated[int, Meta(ge=2, le=512)] = 2


@post("/meetings", guards=[needs(Permission.report), understood], request_max_body_size=4096, status_code=200)
async def meetings(agent: Reports, data: JSONBody[MeetingBody]) -> MeetingReply:
    """Say whom the node is to meet now. Only a node whose check is under way meets anybody."""
    app_state, node = agent.app_state, own_node(agent, data.node)
    if not is_under_check(node, data.operation):
        raise refuse(409, "refused", f"no check of '{node.id}' is under way by that name", "meet nobody")
    try:
        ip_address(data.address)
    except ValueError:
        raise refuse(422, "malformed", "address: no IP address", "send the interface's own") from None
    if data.meeting:
        app_state.meetings.tell(data.operation, MeetingTold(data.meeting, data.gbps))
    context = app_state.context()
    if why := keeps_apart(context, node):
        return MeetingReply(waits=why)
    fabric, leaf = place_of(context, node, data.via)
    way, stays = Way(data.via, data.address, data.port, data.interface), keeps_in_leaf(context, node)
    takes = min(data.takes, TAKES_MOST)
    said = app_state.meetings.ask(Visitor(node.id, data.operation, way, fabric, leaf, takes, not stays))
    return replace(said, waits=f"nodes of other leaves are not met: {stays}" if stays and leaf else "")


def is_under_check(node: Node, operation: str) -> bool:
    """Whether the operation is a check of the node that goes on, and during which nobody else uses it."""
    check = node.operation
    if check is None or check.id != operation:
        return False
    if isinstance(check.act, RunChecks):
        return check.act.profile in PROFILES
    return idle_checks.running(node) is not None and node.assignment is not None and not node.assignment.cluster


router = Router(path="/agent", route_handlers=[meetings], tags=["agents"])
