"""The agents' side: observations in, heartbeats in, operations out, outcomes in. An agent speaks for its node only."""

import asyncio
import time
from datetime import timedelta
from typing import Annotated, Any

from litestar import Response, Router, get, post
from litestar.params import HeaderParameter, JSONBody, QueryParameter
from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from hostler.controller.inputs import AgentAhead, AgentRefused
from hostler.core.state import version_2
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.live_state import AgentAbilities, AgentVerbs
from hostler.core.state.model import Node, Observation, Outcome
from hostler.core.state.number_limits import outside
from hostler.core.state.operations import Sanitise
from hostler.core.state.passive_series import SERIES_MOST, PassiveReading, is_possible
from hostler.core.state.verbs.facts import Permission
from hostler.core.tables.operations import IDLE_CHECK
from hostler.logs.clean import escaped
from hostler.logs.structured import logger
from hostler.server.agent_mailbox import KINDS, AgentOrder
from hostler.server.agent_protocol import HEADER, SPEAKS, spoken, understood
from hostler.server.api_resources import AgentSeen
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.check_readings import pairs_of, taken_out
from hostler.server.dependencies import Reporter, Reports
from hostler.server.event_stream import NOT_COMPRESSED
from hostler.server.load_shedding import URGENT
from hostler.server.problems import ProblemError, refuse

log = logger()

BODY_MAX = 1024 * 1024
OBSERVATIONS_MAX = 1_000
OUTCOMES_MAX = 100
TEXT_MAX = 4_096
PARTS_MAX = 512
FACTS_MAX = 128
TEXT_SHORT = 128
WAIT_MAX_S = 25.0
READINGS_AGE_S = 172_800.0

Name = Annotated[str, Meta(max_length=128)]
Spool = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:-]+$")]
REPORT = [needs(Permission.report), understood]


class ObservationsBody(Struct, frozen=True):
    """A batch of one agent's spool, in order; empty to ask how far the controller has read."""

    node: Name
    spool: Spool
    boot_id: Name
    observations: Annotated[tuple[Observation, ...], Meta(max_length=OBSERVATIONS_MAX)]


class ReadingsBody(Struct, frozen=True):
    """A window of passive series, which ended `age_s` ago. (`boot_id`, `window`) names it: twice is once."""

    node: Name
    boot_id: Name
    window: Annotated[int, Meta(ge=0, lt=2**53)]
    age_s: Annotated[float, Meta(ge=0, le=READINGS_AGE_S)]
    readings: Annotated[tuple[PassiveReading, ...], Meta(max_length=SERIES_MOST)]


class Receipt(Struct, frozen=True):
    """Last number of this spool that is durable."""

    spool: str
    acknowledged: int


class HeartbeatReceipt(Struct, frozen=True):
    """How far the spool is durable, and the digest of the inventory that need not be told again, "" for none."""

    spool: str
    acknowledged: int
    inventory: str = ""


class HeartbeatBody(Struct, frozen=True):
    """The agent is there. Protocol 2: `spool` names whose reading the answer tells of, `acknowledged` what was told.

    `profiles` are the check profiles that it answers, `verbs` the kinds of operation that it knows, `barred` those of
    them that it was started without permission for; an older agent does not say. `doing`: where a long check stands.
    """

    node: Name
    boot_id: Name
    spool: Annotated[str, Meta(max_length=64)] = ""
    acknowledged: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    version: Annotated[str, Meta(max_length=64)] = ""
    rss_kib: Annotated[int, Meta(ge=0, le=2**40)] = 0
    profiles: Annotated[tuple[Annotated[str, Meta(max_length=32)], ...], Meta(max_length=16)] | None = None
    doing: Annotated[str, Meta(max_length=200)] = ""
    verbs: Annotated[tuple[Annotated[str, Meta(max_length=32)], ...], Meta(max_length=64)] | None = None
    barred: Annotated[tuple[Annotated[str, Meta(max_length=32)], ...], Meta(max_length=64)] = ()


class OutcomesBody(Struct, frozen=True):
    """Outcomes of operations."""

    node: Name
    outcomes: Annotated[tuple[Outcome, ...], Meta(max_length=OUTCOMES_MAX)]


class Orders(Struct, frozen=True):
    """Orders of the agent; the question was held open for `held_s` before it was answered."""

    operations: tuple[AgentOrder, ...]
    held_s: float = 0.0


@post(
    "/observations",
    guards=REPORT,
    request_max_body_size=BODY_MAX,
    status_code=200,
    example={
        "node": "gpu-0042",
        "spool": "s1",
        "boot_id": "b1",
        "observations": [
            {
                "node": "gpu-0042",
                "kind": "kernel_log",
                "source": "agent",
                "spool": "s1",
                "sequence": 1,
                "boot_id": "b1",
                "age_s": 0.4,
                "facility": 0,
                "text": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
            }
        ],
    },
)
async def observations(
    agent: Reports,
    data: JSONBody[ObservationsBody],
    priority: Annotated[str, HeaderParameter(name="Priority")] = "",
) -> Receipt:
    """Take observations; when this answers they are durable up to `acknowledged`. Whoever posts is heard.

    With `Priority: u=0` (RFC 9218) they are decided before what other agents have sent without it.
    """
    app_state, node = agent.app_state, own_node(agent, data.node)
    app_state.cell.heartbeat(node.id, data.boot_id)
    received = app_state.now()
    for place, observation in enumerate(data.observations):
        _check(node, data.spool, place, observation)
    stamped = tuple(replace(o, received=received) for o in data.observations)
    reply = await app_state.cell.observe(node.id, stamped, urgent=priority == URGENT)
    if not reply.granted:
        raise refuse(409, "refused", reply.text, "register the node, then send it again")
    if any(c.type == "agent.refused" for c in node.conditions):
        app_state.cell.tell(AgentRefused(node.id, "", "agent.refused"))
    return Receipt(data.spool, reply.acknowledged if reply.text in ("", data.spool) else 0)


@post(
    "/heartbeat",
    guards=REPORT,
    request_max_body_size=4096,
    status_code=200,
    example={
        "node": "gpu-0042",
        "boot_id": "b1",
        "spool": "s1",
        "acknowledged": 0,
        "version": "0.1.0",
        "rss_kib": 41000,
    },
)
async def heartbeat(agent: Reports, data: JSONBody[HeartbeatBody]) -> Response[HeartbeatReceipt | None]:
    """The agent is heard. Whoever names its spool is told how far that was read: less than before after a restore.

    It is told, too, which inventory is held and still says all that telling it again would say.
    """
    app_state, node = agent.app_state, own_node(agent, data.node)
    app_state.agents[node.id] = AgentSeen(data.version, data.rss_kib, data.profiles, escaped(data.doing))
    if any(c.type == "agent.outdated" for c in node.conditions):
        app_state.cell.tell(AgentRefused(node.id, ""))
    if refused := app_state.refusals.standing(node.id, time.monotonic()):
        app_state.cell.tell(AgentRefused(node.id, refused, "agent.refused"))
    verbs = None if data.verbs is None else AgentVerbs(data.verbs, data.barred)
    app_state.cell.heartbeat(node.id, data.boot_id, AgentAbilities(data.profiles, verbs))
    if not data.spool:
        return Response(None, status_code=204)
    spool, sequence = app_state.cell.read_to(node.id)
    read = sequence if spool == data.spool else 0
    if data.acknowledged > read and app_state.fleet.cell.restored is not None:
        app_state.cell.tell(AgentAhead(node.id, read, data.acknowledged))
    return Response(HeartbeatReceipt(data.spool, read, app_state.cell.known_inventory(node.id, data.boot_id)))


@get("/operations", guards=REPORT)
async def operations(
    agent: Reports,
    node: Annotated[str, QueryParameter(max_length=128)],
    wait_s: Annotated[float, QueryParameter(ge=0, le=WAIT_MAX_S)] = 0.0,
    protocol: Annotated[str | None, HeaderParameter(name=HEADER)] = None,
) -> Response[Orders]:
    """Fetch the agent's orders; waits up to `wait_s` for one. An older agent gets them in its words."""
    loop = asyncio.get_running_loop()
    asked = loop.time()
    found = await agent.app_state.mailboxes.collect(own_node(agent, node).id, wait_s)
    orders = Orders(found, round(loop.time() - asked, 3))
    return Response(orders) if spoken(protocol) >= SPEAKS else _in_words(orders)


def _in_words(orders: Orders) -> Response[Any]:
    """The orders for an agent of the version before."""
    body: dict[str, Any] = to_builtins(orders)
    older = [{**order, "operation": version_2.operation_down(order["operation"])} for order in body["operations"]]
    return Response({**body, "operations": older})


@get("/joining", guards=REPORT)
async def joining(agent: Reports, node: Annotated[str, QueryParameter(max_length=128)]) -> Response[JoinOffer]:
    """Fetch the offer with which the node's kubelet joins its cluster. Nobody but its own agent is told."""
    offer = agent.app_state.mailboxes.joining(own_node(agent, node).id)
    if offer is None:
        instead = "ask again once its delivery has begun (hostler node explain)"
        raise refuse(404, "nothing_offered", f"no cluster expects '{node}' now", instead)
    return Response(offer, headers={"Cache-Control": "no-store"})


@post(
    "/outcomes",
    guards=REPORT,
    request_max_body_size=BODY_MAX,
    status_code=204,
    example={"node": "gpu-0042", "outcomes": [{"operation": "o-1-77", "node": "gpu-0042", "result": "done"}]},
)
async def outcomes(agent: Reports, data: JSONBody[OutcomesBody]) -> None:
    """Take outcomes; one that nobody waits for any more still reaches the controller."""
    app_state, node = agent.app_state, own_node(agent, data.node)
    for place, outcome in enumerate(data.outcomes):
        if outcome.node != node.id:
            raise _not_yours(f"outcomes[{place}]", outcome.node)
        if len(outcome.detail) > TEXT_MAX or len(outcome.facts) > FACTS_MAX or len(outcome.parts) > PARTS_MAX:
            raise refuse(422, "too_large", f"outcomes[{place}]: detail, facts or parts are too many", "shorten it")
        if wrong := outside(outcome):
            raise refuse(400, "out_of_bounds", f"outcomes[{place}].{wrong}", "send what was measured, or leave it out")
    for outcome in (_without_readings(app_state, node, one) for one in data.outcomes):
        if not app_state.mailboxes.answer(outcome) and _is_agents(node, outcome):
            app_state.cell.replied(_to_be_finished(node, outcome))


@post(
    "/readings",
    guards=REPORT,
    request_max_body_size=BODY_MAX,
    status_code=204,
    example={
        "node": "gpu-0042",
        "boot_id": "b1",
        "window": 1,
        "age_s": 2.0,
        "readings": [{"metric": "gpu.temperature_c", "part": "1650123456789", "value": 61.5}],
    },
)
async def readings(agent: Reports, data: JSONBody[ReadingsBody]) -> None:
    """Take a window of passive series into the archive of readings; the journal has no use for it."""
    app_state, node = agent.app_state, own_node(agent, data.node)
    app_state.cell.demand_room()
    for place, one in enumerate(data.readings):
        if not is_possible(one) or not all(
            len(text) <= TEXT_SHORT and text.isprintable() for text in (one.part, one.stack)
        ):
            what = f"readings[{place}]: no passive series of this version has these readings"
            raise refuse(422, "impossible_reading", what, "send what was measured, or leave it out")
    if app_state.outside.trends is not None:
        received = app_state.now() - timedelta(seconds=data.age_s)
        app_state.outside.trends.take(node, f"passive/{data.boot_id}/{data.window}", data.readings, received)


def _to_be_finished(node: Node, outcome: Outcome) -> Outcome:
    """Have an erasure observed that nobody waited for: its driver has more to do than its agent says is done."""
    asked = any(one.id == outcome.operation and isinstance(one.act, Sanitise) for one in node.under_way)
    return replace(outcome, result="unknown") if asked and outcome.result == "done" else outcome


def _without_readings(app_state: AppState, node: Node, outcome: Outcome) -> Outcome:
    """Put a check's readings into their archive; the journal has no use for them.

    Of results between nodes all are taken or none; why none were is a fact of the outcome.
    """
    bare, readings = taken_out(node, outcome, app_state.now())
    if app_state.outside.pairs is not None and _is_agents(node, outcome):
        told = pairs_of(node, outcome, app_state.now(), lambda name: _known_node(app_state, name))
        app_state.outside.pairs.add(told.results)
        if told.why:
            log.warning("pairs_refused", node=node.id, operation=outcome.operation, reason=told.why)
            bare = replace(bare, facts={**bare.facts, "pairs_refused": told.why})
    if readings and app_state.outside.trends is not None and _is_agents(node, outcome):
        app_state.outside.trends.store.add(readings)
    return bare


def _known_node(app_state: AppState, name: str) -> str:
    """The node of this name, or the host of a design that is no node; "" where there is none."""
    node = app_state.fleet.resolve(name)
    if node is not None:
        return node.id
    return name if any(name in fabric.hosts for fabric in app_state.fleet.fabrics.values()) else ""


def own_node(agent: Reporter, name: str) -> Node:
    """The caller's own node. Raises ProblemError: 403 for another's, 409 for one that is not registered (any more)."""
    if name != agent.who.grant.node:
        raise _not_yours("node", name)
    node = agent.app_state.fleet.nodes.get(name)
    if node is None:
        raise refuse(409, "unknown", f"node '{name}' is not registered, or retired", "register it, or stop this agent")
    return node


def _not_yours(where: str, name: str) -> ProblemError:
    return refuse(
        403, "forbidden", f"{where}: '{name[:64]}' is not the node of this token", "report about the token's own node"
    )


def _check(node: Node, spool: str, place: int, seen: Observation) -> None:
    where = f"observations[{place}]"
    if seen.node != node.id:
        raise _not_yours(where, seen.node)
    if seen.source != "agent" or seen.received is not None:
        raise refuse(403, "forbidden", f"{where}: an agent may not set source or received", "send source 'agent'")
    if seen.spool != spool:
        raise refuse(
            422,
            "malformed",
            f"{where}: its spool is another than the batch's",
            "send one spool's observations in one batch",
        )
    if wrong := outside(seen):
        raise refuse(400, "out_of_bounds", f"{where}.{wrong}", "send what was measured, or leave the observation out")
    if len(seen.text.encode()) > TEXT_MAX or len(seen.facts) > FACTS_MAX or len(seen.parts) > PARTS_MAX:
        raise refuse(422, "too_large", f"{where}: text over {TEXT_MAX} bytes, or too many facts or parts", "shorten it")


def _is_agents(node: Node, outcome: Outcome) -> bool:
    """Tell whether the operation was the agent's own: an agent does not report for a BMC or scheduler.

    The idle check of a node without a cluster is its agent's.
    """
    operations = (*((node.operation,) if node.operation else ()), *node.settling)
    is_alone = node.assignment is not None and not node.assignment.cluster
    own = KINDS | {IDLE_CHECK} if is_alone else KINDS
    return any(o.id == outcome.operation and o.kind in own for o in operations)


router = Router(
    path="/agent",
    opt={NOT_COMPRESSED: True},
    route_handlers=[observations, heartbeat, operations, joining, outcomes, readings],
    tags=["agents"],
)
