"""Admission: what an inventory expects, held against what is registered, and carried out by the plan's digest."""

from typing import Annotated

import msgspec
from litestar import Router, post
from litestar.params import JSONBody
from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.client.answers import IntentView
from hostler.core.intents.expected_nodes import AdmissionPlan, compare
from hostler.core.intents.registration import MAX_NODES
from hostler.core.state.boot import Stranger
from hostler.core.state.expected import ExpectedNode, FieldOwner
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.facts import Permission
from hostler.core.state.verbs.nodes import Admit
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.bmc_system_choice import demand_choice
from hostler.server.dependencies import TheAppState
from hostler.server.problems import ProblemError, invalid
from hostler.server.routes.intents import LARGE, Key, Reason, RequestedIntent, TheCaller, submit

Expected = Annotated[tuple[ExpectedNode, ...], Meta(min_length=1, max_length=MAX_NODES)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
EXPECTED_EXAMPLE = {
    "serial": "SN-0044",
    "macs": ["52:54:00:00:00:44"],
    "sku": "h100x8",
    "site": "ams",
    "rack": "r7",
    "u": 16,
    "where": "rack7.csv:12",
}


class ExpectedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An inventory, and where it came from."""

    nodes: Expected
    source: FieldOwner = FieldOwner.file


class AdmissionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The same inventory with the digest of the plan that was read."""

    nodes: Expected
    digest: Digest
    reason: Reason
    source: FieldOwner = FieldOwner.file
    dry_run: bool = False
    key: Key = ""


class ExpectedStranger(Struct, frozen=True):
    """A machine that has asked for a boot and is in the inventory. `says`: whether it showed what is expected."""

    stranger: Stranger
    where: str
    says: str


class AdmissionView(Struct, frozen=True):
    """The plan, and which machines of it have asked for a boot already. They were booted into nothing."""

    plan: AdmissionPlan
    strangers: tuple[ExpectedStranger, ...]


@post(
    "/admission/plan",
    guards=[needs(Permission.enrol)],
    request_max_body_size=LARGE,
    status_code=200,
    example={"nodes": [EXPECTED_EXAMPLE]},
)
async def plan_admission(app_state: TheAppState, data: JSONBody[ExpectedBody]) -> AdmissionView:
    """Say what an inventory would add and change, and where two sources disagree. Nothing is recorded."""
    try:
        plan = compare(app_state.fleet, data.source, data.nodes)
    except InvalidInputError as error:
        raise invalid(error) from error
    return AdmissionView(plan, _strangers(app_state, plan))


@post(
    "/admission",
    guards=[needs(Permission.enrol)],
    request_max_body_size=LARGE,
    status_code=200,
    example={"nodes": [EXPECTED_EXAMPLE], "digest": "5f" * 32, "reason": "delivered on Monday"},
)
async def post_admission(app_state: TheAppState, caller: TheCaller, data: JSONBody[AdmissionBody]) -> IntentView:
    """Carry out the plan of this digest. 409 where the fleet, the configuration or the inventory has changed since."""
    await _demand_systems(app_state, data)
    act = Admit(data.source, msgspec.json.encode(data.nodes).decode(), data.digest)
    asked = RequestedIntent(act, FLEET, data.reason, data.dry_run, data.key)
    try:
        return await submit(app_state, caller, asked)
    except ProblemError as refused:
        try:
            compare(app_state.fleet, data.source, data.nodes)
        except InvalidInputError as error:  # the fleet has changed meanwhile
            raise invalid(error) from refused
        raise


async def _demand_systems(app_state: AppState, data: AdmissionBody) -> None:
    """Refuse entries that are unusable, and BMCs that serve several machines of which none is named."""
    try:
        plan = compare(app_state.fleet, data.source, data.nodes)
    except InvalidInputError as error:
        raise invalid(error) from error
    try:
        await demand_choice(app_state.outside.machines, plan.specs, app_state.fleet.configuration.skus)
    except InvalidInputError as error:
        places = {f"nodes[{number}]": entry.where for number, entry in enumerate(plan.adds)}
        told = (replace(one, where=places.get(one.where) or one.where) for one in error.problems)
        raise invalid(InvalidInputError(tuple(told))) from error


def _strangers(app_state: AppState, plan: AdmissionPlan) -> tuple[ExpectedStranger, ...]:
    """Strangers that this plan would make known, each with what it showed."""
    entries = {mac: entry for entry in plan.adds for mac in entry.macs}
    found = [(one, entries[one.mac]) for one in app_state.fleet.cell.strangers if one.mac in entries]
    return tuple(ExpectedStranger(one, entry.where, _shown(one, entry)) for one, entry in found)


def _shown(one: Stranger, entry: ExpectedNode) -> str:
    if not one.serial:
        return "it showed no serial number"
    if one.serial.casefold() == entry.serial.casefold():
        return "it showed the expected serial number"
    return f"it showed serial number '{one.serial}', '{entry.serial}' is expected: it would be refused"


router = Router(path="/", route_handlers=[plan_admission, post_admission], tags=["admission"])
