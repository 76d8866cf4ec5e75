"""Nodes under check ask whom to meet, and tell what they measured. An agent speaks for its own node only."""

from ipaddress import ip_address
from typing import Annotated

from litestar import Router, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from hostler.controller.inputs import CompanySought
from hostler.core.fabric.pair_rows import GBPS_MOST
from hostler.core.state.meetings import MeetingReply
from hostler.core.state.verbs.facts import Permission
from hostler.polling.meeting_hall import MeetingTold, Way
from hostler.polling.meeting_questions import MeetingQuestion, answer, is_under_check, seeks_company
from hostler.server.agent_protocol import understood
from hostler.server.auth import needs
from hostler.server.dependencies import Reports
from hostler.server.event_stream import NOT_COMPRESSED
from hostler.server.problems import refuse
from hostler.server.routes.agent_reports import own_node

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


@post(
    "/meetings",
    guards=[needs(Permission.report), understood],
    request_max_body_size=4096,
    status_code=200,
    example={"node": "gpu-0042", "operation": "o-1-77", "via": "mlx5_0", "address": "10.1.7.42", "port": 4242},
)
async def meetings(agent: Reports, data: JSONBody[MeetingBody]) -> MeetingReply:
    """Say whom the node is to meet now. Only a node whose check is under way meets anybody."""
    app_state, node = agent.app_state, own_node(agent, data.node)
    if not is_under_check(node, data.operation):
        raise refuse(409, "refused", f"no check of '{node.id}' is under way by that name", "meet nobody")
    try:
        ip_address(data.address)
    except ValueError:
        raise refuse(422, "malformed", "address: no IP address", "send the interface's own") from None
    way = Way(data.via, data.address, data.port, data.interface)
    told = MeetingTold(data.meeting, data.gbps) if data.meeting else None
    context, asked = app_state.context(), MeetingQuestion(data.operation, way, data.takes, told)
    reply = answer(app_state.meetings, context, node, asked)
    if seeks_company(context, node, reply):
        app_state.cell.tell(CompanySought(node.id))
    return reply


router = Router(path="/agent", route_handlers=[meetings], opt={NOT_COMPRESSED: True}, tags=["agents"])
