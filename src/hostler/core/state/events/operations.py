"""Events of operations: recorded before they are sent, and how they ended."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import bmc_login, dpu_login, drills, light, machine_work
from hostler.core.state.bmc_certificate import CERTIFY, BmcCertificate, after_renewal
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.boot_medium import EJECT, BootMedium
from hostler.core.state.dpus import bmcs_of
from hostler.core.state.events.inventory import runs
from hostler.core.state.events.row import EventRow, EventRows, FoldError, node_of, of_node, of_others
from hostler.core.state.evidence import BUNDLES_KEPT, COLLECT, KeptBundle
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HELD, OWNER, RECOVERY, STAGED, AsideFailure, Node, Operation, Plan
from hostler.core.state.operations import FIRMWARE_LOOKS, RenewDpuLogin, ResetPort, VerifyDeviceFirmware, WipeDpuLogin
from hostler.core.state.packed_strings import pairs

GIVEN_UP_KEPT = 8


class OperationStarted(Struct, frozen=True, tag="operation_started"):
    """Recorded before it is sent: an operation that is not here was never asked for."""

    operation: Operation


class OperationFinished(Struct, frozen=True, tag="operation_finished"):
    """`result`: done, failed, refused, timed_out, revoked. A timed-out one settles until `settle_until`."""

    node: str
    operation: str
    kind: str
    result: str
    detail: str = ""
    facts: dict[str, str | int | float | bool | None] = {}
    settle_until: datetime | None = None


class OperationSettled(Struct, frozen=True, tag="operation_settled"):
    """A timed-out operation can no longer take effect: observed, or its settle time is over."""

    node: str
    operation: str
    detail: str


class OutcomeLate(Struct, frozen=True, tag="outcome_late"):
    """A driver answered for an operation that had already been given up."""

    node: str
    operation: str
    result: str
    detail: str


def _start_operation(fleet: Fleet, event: OperationStarted, at: datetime) -> None:
    operation = event.operation
    node = node_of(fleet, operation.node)
    _note_reset(fleet, operation, at)
    if operation.aside:
        begun = node.machine_work
        if begun is not None and operation.kind in machine_work.KINDS:
            begun = replace(begun, state="begun")
        fleet.put_node(node.id, replace(node, aside=operation, machine_work=begun))
        return
    plan = node.plan
    if plan is not None:
        operation, plan = _marked(operation, plan, node.boot_id)
    fleet.put_node(node.id, replace(node, operation=operation, plan=plan))


def _marked(operation: Operation, plan: Plan, boot_id: str) -> tuple[Operation, Plan]:
    """Mark the plan before the operation is sent: what becomes of it may never be known.

    The operation keeps which flags are its own. One that is sent again keeps none: what its first try did is unsure.
    """
    asked = {
        "disturbed": operation.disturbs and not plan.disturbed,
        "touched": operation.touches and not plan.touched,
        "left_boot": operation.restarts and plan.left_boot is None,
    }
    own = tuple(name for name, fresh in asked.items() if fresh) if operation.attempt == 1 else ()
    plan = replace(plan, disturbed=plan.disturbed or operation.disturbs, touched=plan.touched or operation.touches)
    if operation.restarts:
        plan = replace(plan, left_boot=plan.left_boot or boot_id)
    return (replace(operation, flags=own) if own != operation.flags else operation), plan


def _left_untouched(plan: Plan, operation: Operation, event: OperationFinished) -> Plan:
    """The plan after an operation: it notes where somebody held what was to be acted upon, or refused."""
    if event.facts.get(HELD):
        return replace(plan, busy=True)
    return replace(unmarked(plan, operation), refused=True) if event.result == "refused" else plan


def unmarked(plan: Plan, operation: Operation) -> Plan:
    """The plan as it was before the operation was asked for: a refusal has touched and disturbed nothing."""
    flags: dict[str, bool | None] = {name: None if name == "left_boot" else False for name in operation.flags}
    return replace(plan, **flags) if flags else plan


def _finish_operation(fleet: Fleet, event: OperationFinished, at: datetime) -> None:
    node = node_of(fleet, event.node)
    if node.aside is not None and node.aside.id == event.operation:
        fleet.put_node(node.id, _aside_finished(node, event, at))
        return
    operation = node.operation
    if operation is None or operation.id != event.operation:
        raise FoldError(f"{event.node} has no outstanding operation {event.operation}")
    _note_reset(fleet, operation, at, refused=event.result == "refused")
    settling = node.settling
    if event.settle_until is not None:
        settling = (*settling, replace(operation, deadline=event.settle_until, settling=True))
    given_up = node.given_up
    if event.result in ("timed_out", "revoked"):
        given_up = (*given_up, operation.id)[-GIVEN_UP_KEPT:]
    cordons = node.cordons
    if event.result == "done" and operation.kind in ("cordon", "join_cluster"):
        cordons = (*of_others(cordons), OWNER)
    if event.result == "done" and operation.kind in ("uncordon", "leave_cluster"):
        cordons = of_others(cordons)
    if event.result == "done" and operation.kind in FIRMWARE_LOOKS:
        node = _verified(node, operation.kind, event, at)
    if event.result == "done" and isinstance(operation.act, WipeDpuLogin):
        wiped = operation.act.bmc
        node = replace(node, dpu_logins=tuple(one for one in node.dpu_logins if one.bmc != wiped))
    node = _listed(fleet, node, operation.kind, event)
    plan = node.plan
    if plan is not None and plan.id == operation.plan:
        plan = _left_untouched(plan, operation, event)
    fleet.put_node(
        node.id,
        replace(node, plan=plan, operation=None, settling=settling, given_up=given_up, cordons=cordons),
    )


def _note_reset(fleet: Fleet, operation: Operation, at: datetime, *, refused: bool = False) -> None:
    """Note at an open fault of a link that its port is reset, at the beginning and at the end; a refusal is none."""
    act = operation.act
    if not isinstance(act, ResetPort):
        return
    seen = None if refused else at
    for ends in ((act.a, act.z), (act.z, act.a)):
        if (case := fleet.link_cases.get(f"{act.fabric}/{'|'.join(ends)}")) is not None:
            fleet.link_cases.put(case.id, replace(case, reset_at=seen))


def _verified(node: Node, kind: str, event: OperationFinished, at: datetime) -> Node:
    """The node with the versions that were verified: its BMC's in place of all others but its agent's, or those beside.

    What either look of one plan finds changed is one change.
    """
    plan = node.plan
    read = {name: str(version) for name, version in event.facts.items()}
    acts = [step.act for step in plan.steps] if plan is not None else []
    by_agent = {name for act in acts if isinstance(act, VerifyDeviceFirmware) for name in act.wanted}
    if kind == "verify_firmware":
        read = {name: version for name, version in node.firmware if name in by_agent} | read
    else:
        read = dict(node.firmware) | read
    same = plan is not None and node.changed_at is not None and node.changed_at >= plan.recorded_at
    found = runs(node, tuple(sorted(read.items())), at)
    if same and found.changed is not node.changed:
        return replace(found, changed=tuple(dict.fromkeys((*node.changed, *found.changed))))
    return found


VERSIONS_KEPT = 256
"""Components of one node whose versions are kept."""
_PREFIXES = {"firmware.": "", "staged.": STAGED, "recovery.": RECOVERY}


def _listed(fleet: Fleet, node: Node, kind: str, event: OperationFinished) -> Node:
    """The node with the versions that were listed: all of an inventory, those asked for of a verification."""
    if kind == "collect_inventory" and event.result == "done":
        found = {
            f"{mark}{name.removeprefix(prefix)}": str(version)
            for name, version in event.facts.items()
            for prefix, mark in _PREFIXES.items()
            if name.startswith(prefix)
        }
    elif kind in FIRMWARE_LOOKS and event.result in ("done", "failed") and event.facts:
        found = {**dict(node.versions), **{name: str(version) for name, version in event.facts.items() if version}}
    else:
        return node
    versions = pairs(sorted((name[:64], version[:64]) for name, version in found.items())[:VERSIONS_KEPT])
    return replace(node, versions=fleet.parts.base.share(versions)) if versions != node.versions else node


def _aside_finished(node: Node, event: OperationFinished, at: datetime) -> Node:
    """The node without its operation aside; what failed is counted until one is done."""
    given_up = node.given_up
    if event.result in ("timed_out", "revoked"):
        given_up = (*given_up, event.operation)[-GIVEN_UP_KEPT:]
    if event.kind == RENEW:
        login = bmc_login.after_renewal(node.bmc_login, at, event.result, event.detail, event.facts)
        return replace(node, aside=None, bmc_login=login, given_up=given_up)
    if node.aside is not None and isinstance(node.aside.act, RenewDpuLogin):
        return replace(_dpu_renewed(node, node.aside.act, event, at), aside=None, given_up=given_up)
    if event.kind == CERTIFY:
        known = node.bmc_certificate or BmcCertificate()
        certificate = after_renewal(known, at, event.result, event.detail, event.facts)
        return replace(node, aside=None, bmc_certificate=certificate, given_up=given_up)
    if event.kind in machine_work.KINDS and node.machine_work is not None:
        told = {name: str(value) for name, value in event.facts.items()}
        work = replace(node.machine_work, state=event.result, detail=event.detail, ended_at=at, told=told)
        return replace(node, aside=None, machine_work=work, given_up=given_up)
    if event.kind in (light.ON, light.OFF, drills.ARM, drills.INJECT):
        lit, drill = _light_seen(node.light, event, at), _drill_acted(node.drill, event, at)
        return replace(node, aside=None, light=lit, drill=drill, given_up=given_up)
    if event.kind == EJECT:
        return replace(node, aside=None, medium=_ejected(node, event, at), given_up=given_up)
    if event.kind == COLLECT:
        vain = (KeptBundle(at, missing=(f"all of it: {event.detail or event.result}",)),)
        bundles = node.bundles if event.result == "done" else (*node.bundles, *vain)[-BUNDLES_KEPT:]
        return replace(node, aside=None, bundles=bundles, given_up=given_up)
    failed = None
    if event.result != "done":
        times = 1 + (node.aside_failed.times if node.aside_failed is not None else 0)
        failed = AsideFailure(event.kind, at, event.result, event.detail, times)
    return replace(node, aside=None, aside_failed=failed, given_up=given_up)


def _dpu_renewed(node: Node, act: RenewDpuLogin, event: OperationFinished, at: datetime) -> Node:
    """The node after a renewal of the password of one of its DPUs' BMCs."""
    known, named = dpu_login.login_at(node.dpu_logins, act.bmc), bmcs_of(node)
    left = dpu_login.after_renewal(known, act.cards, at, (event.result, event.detail, event.facts))
    return replace(node, dpu_logins=dpu_login.with_login(node.dpu_logins, left, named))


def _ejected(node: Node, event: OperationFinished, at: datetime) -> BootMedium | None:
    """The medium after an eject: gone, or how that came to nothing. One that was put in since is another."""
    medium, aside = node.medium, node.aside
    if medium is None or aside is None or medium.at > aside.started:
        return medium
    if event.result == "done":
        return None
    return replace(medium, failures=medium.failures + 1, failed_at=at, result=event.result, detail=event.detail[:200])


def _light_seen(known: light.Light | None, event: OperationFinished, at: datetime) -> light.Light | None:
    """The light after an operation: lit, out, or how it came to nothing."""
    if known is None or event.kind not in (light.ON, light.OFF):
        return known
    if event.result == "done" and event.kind == light.OFF and not known.wanted:
        return None
    if event.result == "done":
        return replace(known, lit=event.kind == light.ON, failures=0, failed_at=None, result="", detail="")
    if known.wanted is not (event.kind == light.ON):
        return known
    return replace(known, failures=known.failures + 1, failed_at=at, result=event.result, detail=event.detail[:200])


def _drill_acted(known: drills.Drill | None, event: OperationFinished, at: datetime) -> drills.Drill | None:
    """The drill once its agent is armed, or has injected its fault, or how that came to nothing."""
    drill = drills.running(known)
    if drill is None or event.kind not in (drills.ARM, drills.INJECT):
        return known
    if event.result != "done":
        return replace(drill, failed=f"{event.kind} {event.result}: {event.detail}"[:300])
    if event.kind == drills.ARM:
        return replace(drill, proof=str(event.facts.get("proof", "")), armed_at=at)
    return replace(drill, injected_at=drill.injected_at or at)


def _settle(fleet: Fleet, event: OperationSettled, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    fleet.put_node(node.id, replace(node, settling=tuple(o for o in node.settling if o.id != event.operation)))


def _take_late(fleet: Fleet, event: OutcomeLate, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    fleet.put_node(node.id, replace(node, given_up=tuple(o for o in node.given_up if o != event.operation)))


ROWS: EventRows = (
    EventRow(OperationStarted, lambda e: (e.operation.node,), _start_operation),
    EventRow(OperationFinished, of_node, _finish_operation),
    EventRow(OperationSettled, of_node, _settle),
    EventRow(OutcomeLate, of_node, _take_late),
)
