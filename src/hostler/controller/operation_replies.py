"""Replies of drivers: an outcome moves its plan on. Unknown is observed, never repeated."""

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from hostler.controller.check_verdicts import checked, idle_checked
from hostler.controller.observation_intake import of_observation
from hostler.controller.reply_effect import WITHHELD, ReplyEffect, sent_again, withheld
from hostler.controller.scheduler_views import unlist
from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.hardware_changes import of_hardware
from hostler.core.conditions.inventory_changes import of_inventory
from hostler.core.intents import instance_replacement
from hostler.core.planning import evidence_keeping, gate_requirements
from hostler.core.planning.outcomes import conclude
from hostler.core.planning.sanitise_order import certified
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE, Binding
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.live_state import OFF, ON
from hostler.core.state.model import Node, Observation, Operation, Outcome
from hostler.core.state.operations import Evict, ReplaceMachine
from hostler.core.tables.operations import IDLE_CHECK, OPERATIONS


def is_known_by(node: Node, outcome: Outcome) -> bool:
    """Whether it says what came of what is under way on the node: of this attempt, not of an earlier one."""
    asked = node.operation
    same = asked is not None and (asked.id, asked.attempt) == (outcome.operation, outcome.attempt)
    return same and outcome.result not in ("unknown", "busy")


def of_reply(context: DecisionContext, node: Node, outcome: Outcome) -> ReplyEffect:
    """A driver's answer. Unknown is observed, never repeated; not_done may be sent again where that is safe."""
    operation = next((one for one in node.under_way if one.id == outcome.operation), None)
    if operation is None:
        return ReplyEffect(_late(node, outcome))
    if outcome.attempt != operation.attempt:
        return ReplyEffect()
    outcome = gate_requirements.as_seen(operation, outcome)
    if outcome.result in ("unknown", "busy"):
        return ReplyEffect(observe=True)
    if operation.kind == IDLE_CHECK:
        return ReplyEffect(idle_checked(context, node, operation, outcome))
    if outcome.result in ("not_done", WITHHELD):
        return _not_done(context, node, operation, outcome)
    if operation.kind == "run_checks":
        return checked(context, node, operation, outcome)
    if outcome.result == "done":
        _see_effect(context, node, operation, outcome)
        return _done(context, node, operation, outcome)
    result = outcome.result if outcome.result in ("failed", "refused") else "failed"
    failed = Outcome(outcome.operation, node.id, result, outcome.detail, outcome.facts)
    return ReplyEffect(conclude(context, node, operation, failed))


def _not_done(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    row = OPERATIONS[operation.kind]
    if outcome.result == WITHHELD:
        return ReplyEffect((withheld(operation, outcome.detail),))
    if row.repeatable and operation.attempt > 1:
        return ReplyEffect(resend=True)
    if row.repeatable:
        return ReplyEffect((sent_again(context.fleet, operation, node, context.now),))
    said = f": {outcome.detail}" if outcome.detail else ""
    failed = Outcome(operation.id, node.id, "failed", f"observed not to have happened{said}", outcome.facts)
    return ReplyEffect(conclude(context, node, operation, failed))


def _late(node: Node, outcome: Outcome) -> tuple[e.Event, ...]:
    late = e.OutcomeLate(node.id, outcome.operation, outcome.result, outcome.detail[:200])
    if outcome.operation not in node.given_up or outcome.result not in ("done", "failed", "refused"):
        return ()
    if any((o.id, o.attempt) == (outcome.operation, outcome.attempt) for o in node.settling):
        return (late, e.OperationSettled(node.id, outcome.operation, f"answered late: {outcome.result}"))
    return (late,)


def _see_effect(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> None:
    """Take over what a confirmed effect shows, until the next reading."""
    here, now = context.live.entry(operation.node), context.now
    cluster = node.assignment.cluster if node.assignment else ""
    if operation.kind in ("power_on", "power_off"):
        here.power, here.power_at = (ON if operation.kind == "power_on" else OFF), now
    if operation.kind == "power_off":
        here.heard = False
    if operation.kind == RENEW:
        here.bmc_login_refused = False
    if operation.kind == "evict":  # of a node in no pool any cluster may have shown the work
        shown = {name: works for name, works in here.workloads.items() if cluster in ("", name)}
        here.workloads |= {name: _without(works, operation, outcome) for name, works in shown.items()}
    if operation.kind == "leave_cluster" and cluster:  # without one nobody placed work there, and nobody will
        here.workloads.pop(cluster, None)
        unlist(here, cluster)
    if operation.kind == "join_cluster":
        here.workloads.setdefault(cluster, ())


def _without(works: tuple[Workload, ...], operation: Operation, outcome: Outcome) -> tuple[Workload, ...]:
    """The work that is left: what was ended is gone, but for what still has its grace (fact "ending")."""
    asked = frozenset(operation.act.workloads) if isinstance(operation.act, Evict) else frozenset()
    ending = frozenset(str(outcome.facts.get("ending", "")).split(","))
    return tuple(
        replace(w, held_by=w.held_by or "it is ending") if w.id in asked else w
        for w in works
        if w.id not in asked or w.id in ending
    )


def _done(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    if isinstance(operation.act, ReplaceMachine):
        return _replaced(context, node, operation, outcome)
    extra: list[e.Event] = [*evidence_keeping.kept(context, node, operation, outcome)]
    extra.extend(certified(context, node, operation, outcome))
    if operation.kind == unanswered_checks.SANITISE:
        extra.extend(unanswered_checks.answered(context.fleet, node, operation.kind, "observation", "it was erased"))
    certificate = str(outcome.facts.get("certificate", "")) if operation.kind in (RENEW, CERTIFY) else ""
    if certificate and certificate != node.binding(BMC_CERTIFICATE):
        extra.append(e.BindingChanged(node.id, Binding(BMC_CERTIFICATE, certificate, context.now)))
    if operation.kind == "collect_inventory" and outcome.parts:
        tell = partial(context.live.budgets.tell_other, node.id, context.now)
        extra.extend(of_inventory(context.fleet, node, outcome, context.now, tell))
        extra.extend(of_hardware(context, node, outcome))
    if operation.kind == "inspect_machine" and outcome.parts:
        extra.extend(_inspected(context, node, outcome))
    return ReplyEffect((*extra, *conclude(context, node, operation, outcome)))


def _replaced(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> ReplyEffect:
    """The provider's new instance takes the node's place; one that cannot be registered is a failure to be read."""
    try:
        follows = instance_replacement.take_place(context, node, outcome.facts)
    except InvalidInputError as error:
        what = f"the provider gave instance {outcome.facts.get('instance')}, which cannot be registered: {error}"
        return ReplyEffect(conclude(context, node, operation, replace(outcome, result="failed", detail=what[:500])))
    return ReplyEffect((*conclude(context, node, operation, outcome), *follows))


def _inspected(context: DecisionContext, node: Node, outcome: Outcome) -> Iterator[e.Event]:
    """Record the parts of a provisioner's inspection, held against the SKU as its BMC's own list is."""
    seen = Observation(
        node.id, "inventory", "bmc", "", 0, node.boot_id, facts=outcome.facts, parts=outcome.parts, received=context.now
    )
    yield from (caused.event for caused in of_observation(context.fleet, node, seen, context.live.workloads(node)))
