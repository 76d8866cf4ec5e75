"""The whole cell: its status, its configuration, its lifecycle, and the stream of its events."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from litestar import Router, get, post
from litestar.params import HeaderParameter, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from hostler.client.answers import IntentView
from hostler.core.policy.guards import GUARDS
from hostler.core.state.configuration import Policy, PolicySource, Pool, Sku
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import ActClass
from hostler.core.state.notify_routes import Route
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import COMMIT, PLAIN, Activate
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Permission
from hostler.core.tables.asset_states import ASSET_TRANSITIONS
from hostler.core.tables.operations import OPERATIONS, OperationKind
from hostler.core.tables.phases import PHASES, TRANSITIONS, Edge, PhaseRow
from hostler.core.tables.recipes import RECIPES, Recipe
from hostler.server.auth import SEE, SEE_CELL, needs
from hostler.server.dependencies import TheAppState, Who
from hostler.server.event_stream import NOT_COMPRESSED, keeper
from hostler.server.fleet_status import FleetStatus, status
from hostler.server.problems import invalid, refuse
from hostler.server.recent_changes import Changes
from hostler.server.routes.intents import Key, Reason, RequestedIntent, TheCaller, submit
from hostler.server.tokens import Role

DOCUMENTS_MAX = 32
LARGE = 8 * 1024 * 1024


@get("/status", guards=SEE)
async def get_status(app_state: TheAppState, who: Who) -> FleetStatus:
    """The fleet on one screen."""
    now = app_state.now()
    changes = await app_state.recent.changes(now) if who.whole else Changes(None, {}, ())
    return status(app_state.cell, who, now, changes)


class ConfigView(Struct, frozen=True):
    """Active configuration: read from the journal, cited by every decision as `sha256`.

    `source`: the Git commit that it is of, null where its documents were given by hand.
    """

    sha256: str
    activated: datetime | None
    policy: Policy
    skus: dict[str, Sku]
    pools: dict[str, Pool]
    routes: dict[str, Route]
    source: PolicySource | None = None


@get("/config", guards=SEE_CELL)
async def get_config(app_state: TheAppState) -> ConfigView:
    """The active configuration."""
    active = app_state.fleet.configuration
    return ConfigView(
        active.sha256, active.activated, active.policy, active.skus, active.pools, active.routes, active.source
    )


class ConfigSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The Git commit that documents are of; the address of its repository goes without a login."""

    commit: Annotated[str, Meta(pattern=COMMIT, min_length=40)]
    ref: Annotated[str, Meta(pattern=PLAIN, max_length=255)] = ""
    origin: Annotated[str, Meta(pattern=PLAIN, max_length=500)] = ""


CONFIG_EXAMPLE = {
    "policy.yaml": """policy:
  rules:
    gpu.fallen_off_bus: {remedy: power_cycle, timing: immediate, dooms: part}
  rungs:
    power_cycle: {attempts: 1, window_s: 604800}
    triage: {attempts: 2, window_s: 2592000}
""",
    "fleet.yaml": """skus:
  h100x8: {gpus: 8}
pools:
  train: {sku: h100x8, target: 64, tenant: acme}
""",
}


class ConfigBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Configuration documents, name → YAML text; together they are the whole configuration.

    `at_once`: without a rollout, which takes a second person. `source`: the Git commit that they are of.
    """

    documents: Annotated[dict[str, str], Meta(min_length=1, max_length=DOCUMENTS_MAX)]
    reason: Reason
    at_once: bool = False
    source: ConfigSource | None = None
    dry_run: bool = False
    key: Key = ""


@post(
    "/config",
    guards=[needs(Permission.configure)],
    request_max_body_size=LARGE,
    status_code=200,
    example={"documents": CONFIG_EXAMPLE, "reason": "a first pool"},
)
async def post_config(app_state: TheAppState, caller: TheCaller, data: JSONBody[ConfigBody]) -> IntentView:
    """Check the documents whole and activate them, by a rollout where much acts.

    Refused with 422 and every problem by file and line.
    """
    try:
        fresh = await app_state.documents.parse(data.documents)
    except InvalidInputError as error:
        raise invalid(error) from error
    act = Activate(data.at_once)
    if (source := data.source) is not None:
        act = Activate(data.at_once, source.commit, source.ref, source.origin)
    asked = RequestedIntent(act, FLEET, data.reason, data.dry_run, data.key)
    return await submit(app_state, caller, asked, fresh, data.documents)


class Lifecycle(Struct, frozen=True):
    """The machine as its tables say: phases, edges, recipes, operations, guards, and who may ask for what."""

    phases: tuple[PhaseRow, ...]
    transitions: tuple[Edge, ...]
    asset_transitions: tuple[tuple[str, str, str], ...]
    recipes: tuple[Recipe, ...]
    operations: tuple[OperationKind, ...]
    guards: dict[str, dict[ActClass, bool]]
    verbs: dict[str, Permission]


@get("/lifecycle", guards=SEE)
async def lifecycle() -> Lifecycle:
    """The lifecycle, generated from the tables that decide."""
    return Lifecycle(
        tuple(PHASES.values()),
        TRANSITIONS,
        ASSET_TRANSITIONS,
        tuple(RECIPES.values()),
        tuple(OPERATIONS.values()),
        GUARDS,
        {verb: kind.facts.asks for verb, kind in VERBS.items()},
    )


class Me(Struct, frozen=True):
    """Identity of the caller, as this server knows it."""

    name: str
    role: Role
    site: str
    pool: str
    tenant: str
    cell: str
    version: str


@get("/me", guards=SEE)
async def me(app_state: TheAppState, who: Who) -> Me:
    """The caller's own grant."""
    grant = who.grant
    return Me(grant.name, grant.role, grant.site, grant.pool, grant.tenant, app_state.cell.name, app_state.cell.version)


@get("/events", guards=SEE, media_type="text/event-stream", opt={NOT_COMPRESSED: True})
async def events(
    app_state: TheAppState,
    who: Who,
    node: Annotated[str, QueryParameter(max_length=200)] = "",
    until: Annotated[
        int | None, QueryParameter(ge=1, le=2**63 - 1, description="end the stream after this record")
    ] = None,
    last_event_id: Annotated[str, HeaderParameter(name="Last-Event-ID", max_length=20)] = "",
) -> Stream:
    """Records as server-sent events from now on, or after `Last-Event-ID`; `node` gives one node's only.

    With the `seq` of a list as Last-Event-ID nothing is missed that is not in the list. 410: what follows that record
    is no longer here (or never was), so list anew.
    """
    if last_event_id and not (last_event_id.isascii() and last_event_id.isdigit()):
        raise refuse(
            400,
            "malformed",
            f"Last-Event-ID '{last_event_id}' is no record's number",
            "send the last id that the stream gave",
        )
    wanted = app_state.node(who, node).id if node else ""
    if until is not None and until > app_state.fleet.cell.seq:
        raise refuse(
            400,
            "malformed",
            f"until={until} is no record of this journal",
            "name a record that is there: at most the `seq` of a list",
        )
    after = await app_state.streams.begin(who, int(last_event_id) if last_event_id else None)
    lines: AsyncIterator[bytes] = app_state.streams.lines(who, after, keeper(app_state.cell, who, wanted), until)
    return Stream(
        lines, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


router = Router(
    path="/",
    route_handlers=[get_status, get_config, post_config, lifecycle, me, events],
    tags=["cell"],
)
