"""Intents: every verb, on a node, a rack or whatever it names, in the name of the token that asks."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar
from uuid import uuid4

import msgspec
from litestar import Router, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, HeaderParameter, JSONBody
from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.client.answers import IntentProgress, IntentView
from hostler.core.intents import registration
from hostler.core.intents.ask import REASON_MAX
from hostler.core.intents.idempotency import OTHER_CONTENT
from hostler.core.intents.named_targets import is_there
from hostler.core.intents.registration import MAX_NODES, AssetSpec, NodeSpec
from hostler.core.state.configuration import Configuration
from hostler.core.state.events import Record
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.intent import Intent
from hostler.core.state.scopes import FLEET, NODES
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Permission, Verb, name_of
from hostler.core.state.verbs.lights import Locate, Unlocate
from hostler.core.state.verbs.maintenance import EndWork
from hostler.core.state.verbs.nodes import Adopt, Register, RegisterAssets
from hostler.core.state.verbs.tickets import HandOverTicket
from hostler.core.state.ways_out import ByAct, WayOut, sentence_of
from hostler.journal.named_records import each_record
from hostler.logs import traces
from hostler.ports import RecordWindow
from hostler.server.acts import MOVED, ActFields, act_made, kind_named, verb_in
from hostler.server.app_state import AppState
from hostler.server.audit_trail import note
from hostler.server.auth import SEE, demand, may, needs
from hostler.server.bmc_system_choice import demand_choice
from hostler.server.dependencies import TheAppState, Who
from hostler.server.intent_progress import READ, Asked, asked, progress
from hostler.server.problems import ProblemError, invalid, problem_details, refuse, unknown
from hostler.server.tenant_redaction_rules import UNTOLD
from hostler.server.ticket_people import demand_colleague
from hostler.server.token_scope import demand_visible, sees
from hostler.server.tokens import Identity, Role

LARGE = 8 * 1024 * 1024

Reason = Annotated[str, Meta(min_length=1, max_length=REASON_MAX)]
Key = Annotated[str, Meta(max_length=100)]
Target = Annotated[str, Meta(min_length=1, max_length=200)]
NodeName = Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^,]*$")]
KeyHeader = Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=100)]

NODE_VERBS = frozenset(verb for verb, kind in VERBS.items() if kind.facts.target.may_be_node)
"""Verbs that may be asked for as POST /v1/nodes/{id}/{verb}."""

RACK_VERBS = frozenset(verb for verb, kind in VERBS.items() if kind.facts.target.may_be_rack)
"""Verbs that may be asked for as POST /v1/racks/{rack}/{verb}."""

OWN_ROUTES = {verb: kind.facts.route for verb, kind in VERBS.items() if kind.facts.route}
"""Verbs that bring documents along, with the route that takes them."""


class ActBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Why, with which arguments, and whether only to say what would happen. A repeated `key` gets the first answer.

    `act` has the arguments of the verb that the path names.
    """

    moved: ClassVar = MOVED
    reason: Reason
    act: ActFields = {}
    dry_run: bool = False
    key: Key = ""


class IntentBody(ActBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An act on a target: a node's id, "rack:…", "pool:…", "fleet", or the id of a hold, ticket, window or approval.

    `act` is a verb with its arguments. `nodes` names several nodes as one act, all or none; the target is then "nodes".
    """

    act: ActFields
    target: Target
    nodes: Annotated[tuple[NodeName, ...], Meta(max_length=1000)] = ()


class RegisterBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes as an inventory has them."""

    nodes: Annotated[tuple[NodeSpec, ...], Meta(min_length=1, max_length=MAX_NODES)]
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class AssetsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Assets that are not nodes: racks, NVLink domains, switch trays, power shelves, switches."""

    assets: Annotated[tuple[AssetSpec, ...], Meta(min_length=1, max_length=MAX_NODES)]
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class RequestedIntent(Struct, frozen=True):
    """An intent as it was asked for, before it has a person and a moment."""

    act: Verb
    target: str
    reason: str
    dry_run: bool = False
    key: str = ""
    nodes: tuple[str, ...] = ()


class Caller(Struct, frozen=True):
    """Caller of the request, and its Idempotency-Key header; a key in the body comes first."""

    who: Identity
    key: str = ""


def caller(who: Who, idempotency_key: KeyHeader = "") -> Caller:
    """The caller of an intent's route."""
    return Caller(who, idempotency_key)


TheCaller = NamedDependency[Caller]


async def submit(
    app_state: AppState,
    caller: Caller,
    asked: RequestedIntent,
    configuration: Configuration | None = None,
    documents: dict[str, str] | None = None,
) -> IntentView:
    """Ask the controller in the caller's name. Raises ProblemError (403, 404, 409, 422) and BusyError."""
    who, key = caller.who, asked.key or caller.key
    kind, heard = type(asked.act), note()
    heard.verb, heard.target, heard.dry_run = name_of(kind), _told(asked.target, asked.nodes), asked.dry_run
    target = _demand_reach(app_state, who, kind, asked.target, asked.nodes)
    intent = Intent(
        id=traces.name_of_intent() or uuid4().hex,
        act=asked.act,
        target=target,
        person=who.name,
        reason=asked.reason,
        at=app_state.now(),
        nodes=asked.nodes,
        key=f"{who.token}/{key}" if key else "",
        dry_run=asked.dry_run,
        bounds=who.grant.bounds,
        own_work=who.role is Role.technician,
        known_as=who.grant.known_as,
    )
    leads = isinstance(intent.act, EndWork | HandOverTicket | Locate | Unlocate) and intent.act.shift_lead
    if leads and who.role is not Role.operator:
        raise refuse(403, "forbidden", f"{who.name} is not a shift lead", "ask who started the work, or an operator")
    if isinstance(intent.act, HandOverTicket) and intent.act.to:
        await demand_colleague(app_state, intent.target, intent.act.to)
    heard.intent = intent.id
    reply = await app_state.cell.ask(intent, configuration, documents or {})
    latched = app_state.fleet.cell.brake
    detail = {**reply.detail, "brake": latched} if latched else reply.detail
    if who.role is Role.tenant and detail.get("waits_for"):
        detail = {**detail, "waits_for": UNTOLD}  # what stands in its way may be other customers'
    if OTHER_CONTENT in reply.detail:
        raise refuse(422, "key_reused", reply.text, "send the first request again as it was, or choose another key")
    if not reply.granted and "approval" not in reply.detail:
        if not is_there(app_state.fleet, kind.facts.target, intent):
            raise ProblemError(problem_details(404, "unknown", reply.text, "name one that is there", facts=detail))
        ways = tuple(way for way in reply.ways if not isinstance(way, ByAct) or may(who, way.asks))
        problem = problem_details(409, "refused", reply.text, instead_of(reply.text, ways), facts=detail)
        raise ProblemError(replace(problem, ways=ways))
    heard.waits = not reply.granted
    return IntentView(reply.granted, reply.text, detail)


def instead_of(text: str, ways: tuple[WayOut, ...]) -> str:
    """The way to go instead of a refused act: the ways as a sentence, else what the refusal says after its reason."""
    if ways:
        return sentence_of(ways)
    _, found, rest = text.partition("; ")
    if not found:
        _, found, rest = text.partition(": ")
    return rest if found else f"change what is named, and ask again: {text}"


def _told(target: str, nodes: Sequence[str]) -> str:
    """Target of the request, as the audit names it."""
    return f"{len(nodes)} nodes: {' '.join(nodes[:20])}" if nodes else target


def _demand_reach(app_state: AppState, who: Identity, kind: type[Verb], target: str, nodes: Sequence[str]) -> str:
    """The target, a node by its id. Raises ProblemError (403) where the caller may not ask for the verb on it."""
    demand(who, kind.facts.asks)
    node = app_state.fleet.resolve(target)
    named = node.id if node else target
    if not kind.facts.partly:
        demand_visible(who, app_state.fleet, named, nodes)
    return named


def requested(app_state: AppState, caller: Caller, verb: str, target: str, data: ActBody) -> RequestedIntent:
    """The intent of a body.

    Raises ProblemError: 404 no such verb, 400 one with a route of its own, 403 not the caller's, 422 not its arguments.
    """
    kind, heard = kind_named(verb), note()
    if verb in OWN_ROUTES:
        raise refuse(400, "malformed", f"{verb} brings a document along", f"use hostler {kind.facts.command}")
    nodes = tuple(dict.fromkeys(data.nodes)) if isinstance(data, IntentBody) else ()
    heard.verb, heard.target, heard.dry_run = verb, _told(target, nodes), data.dry_run
    _demand_reach(app_state, caller.who, kind, target, nodes)
    act = act_made(kind, data.act)
    return RequestedIntent(act, target, data.reason, data.dry_run, data.key, nodes)


@post(
    "/intents",
    guards=SEE,
    status_code=200,
    example={
        "act": {"verb": "cordon", "hours": 4},
        "target": "rack:r7",
        "reason": "PDU swap at 14:00",
        "dry_run": True,
    },
)
async def post_intent(app_state: TheAppState, caller: TheCaller, data: JSONBody[IntentBody]) -> IntentView:
    """Ask for anything that people may ask for. 409 where it is refused, 404 where its target is not there."""
    verb = verb_in(data.act)
    if (data.target == NODES) != bool(data.nodes):
        raise refuse(400, "malformed", "the target 'nodes' and a list of nodes go together", "give both, or neither")
    return await submit(app_state, caller, requested(app_state, caller, verb, data.target, data))


@get("/intents/{intent:str}", guards=SEE)
async def get_intent(app_state: TheAppState, who: Who, intent: FromPath[str]) -> IntentProgress:
    """How far an intent has come: its answer, and per node the plan, who waits for what, and how it ended.

    Seen by who asked for it, and by whoever sees every node that it concerns; by a tenant where it asked itself.
    """

    def history(subject: str, after: int) -> Iterator[Record]:
        return each_record(app_state.cell.journal, RecordWindow(after=after, subject=subject, names=READ))

    found = await asyncio.to_thread(asked, intent, history)
    if found is None or not _may_follow(app_state, who, found):
        raise unknown("intent", intent)
    told = await asyncio.to_thread(progress, app_state.fleet, found, history)
    if who.role is Role.tenant:  # how a plan ended may speak of other customers
        told = replace(told, text="", nodes=tuple(replace(row, detail="") for row in told.nodes))
    return told


def _may_follow(app_state: AppState, who: Identity, found: Asked) -> bool:
    if who.role is Role.tenant:
        return found.intent.bounds.tenant == who.grant.tenant and found.intent.bounds == who.grant.bounds
    own = found.intent.person == who.name and found.intent.bounds == who.grant.bounds
    nodes = [app_state.fleet.nodes.get(name) for name in found.nodes]
    return who.whole or own or all(node is not None and sees(who, node) for node in nodes)


@post(
    "/nodes/{node_id:str}/{verb:str}", guards=SEE, status_code=200, example={"reason": "a new kernel", "dry_run": True}
)
async def post_node_verb(
    app_state: TheAppState, caller: TheCaller, node_id: FromPath[str], verb: FromPath[str], data: JSONBody[ActBody]
) -> IntentView:
    """Ask for a verb on one node, by id, serial or host name."""
    if verb not in NODE_VERBS:
        raise refuse(404, "unknown", f"no verb '{verb[:64]}' on a node", f"use one of {', '.join(sorted(NODE_VERBS))}")
    node = app_state.fleet.resolve(node_id)
    if node is None or not sees(caller.who, node):
        raise unknown("node", node_id)
    return await submit(app_state, caller, requested(app_state, caller, verb, node.id, data))


@post(
    "/racks/{rack:str}/{verb:str}",
    guards=SEE,
    status_code=200,
    example={"reason": "PDU swap at 14:00", "dry_run": True},
)
async def post_rack_verb(
    app_state: TheAppState, caller: TheCaller, rack: FromPath[str], verb: FromPath[str], data: JSONBody[ActBody]
) -> IntentView:
    """Ask for a verb on a rack's nodes in production."""
    if verb not in RACK_VERBS:
        raise refuse(404, "unknown", f"no verb '{verb[:64]}' on a rack", f"use one of {', '.join(sorted(RACK_VERBS))}")
    return await submit(app_state, caller, requested(app_state, caller, verb, f"rack:{rack}", data))


@post(
    "/nodes",
    guards=[needs(Permission.enrol)],
    request_max_body_size=LARGE,
    status_code=200,
    example={
        "nodes": [
            {
                "id": "gpu-0042",
                "sku": "h100x8",
                "serial": "SN-0042",
                "hostname": "gpu-0042.ams.example",
                "bmc": "https://10.1.7.42",
                "macs": ["52:54:00:00:00:42"],
                "site": "ams",
                "rack": "r7",
                "u": 12,
            }
        ],
        "reason": "delivered on Monday",
    },
)
async def post_nodes(app_state: TheAppState, caller: TheCaller, data: JSONBody[RegisterBody]) -> IntentView:
    """Make nodes known; their bring-up begins. All or none."""
    return await _enrol(app_state, caller, Register, data)


@post(
    "/adopt",
    guards=[needs(Permission.enrol)],
    request_max_body_size=LARGE,
    status_code=200,
    example={
        "nodes": [{"id": "gpu-0043", "sku": "h100x8", "serial": "SN-0043", "rack": "r7", "u": 14, "pool": "train"}],
        "reason": "it serves already",
    },
)
async def post_adopt(app_state: TheAppState, caller: TheCaller, data: JSONBody[RegisterBody]) -> IntentView:
    """Take over nodes that serve already: nothing of theirs is touched. All or none."""
    return await _enrol(app_state, caller, Adopt, data)


@post(
    "/assets",
    guards=[needs(Permission.enrol)],
    request_max_body_size=LARGE,
    status_code=200,
    example={
        "assets": [{"id": "shelf-r7", "kind": "power_shelf", "rack": "r7", "serial": "PS-7"}],
        "reason": "delivered on Monday",
    },
)
async def post_assets(app_state: TheAppState, caller: TheCaller, data: JSONBody[AssetsBody]) -> IntentView:
    """Make assets known. All or none."""
    act = RegisterAssets(msgspec.json.encode(data.assets).decode())
    asked = RequestedIntent(act, FLEET, data.reason, data.dry_run, data.key)
    try:
        return await submit(app_state, caller, asked)
    except ProblemError as refused:
        try:
            registration.register_assets(app_state.fleet, data.assets, app_state.now())
        except InvalidInputError as error:
            raise invalid(error) from refused
        raise


async def _enrol(app_state: AppState, caller: Caller, kind: type[Register | Adopt], data: RegisterBody) -> IntentView:
    try:
        await demand_choice(app_state.outside.machines, data.nodes, app_state.fleet.configuration.skus)
    except InvalidInputError as error:
        raise invalid(error) from error
    act = kind(msgspec.json.encode(data.nodes).decode())
    asked = RequestedIntent(act, FLEET, data.reason, data.dry_run, data.key)
    try:
        return await submit(app_state, caller, asked)
    except ProblemError as refused:
        try:
            registration.register(app_state.fleet, data.nodes, kind is Adopt, app_state.now())
        except InvalidInputError as error:  # the same rules, asked again for each entry's problem
            raise invalid(error) from refused
        raise


router = Router(
    path="/",
    route_handlers=[post_intent, get_intent, post_node_verb, post_rack_verb, post_nodes, post_adopt, post_assets],
    tags=["intents"],
)
