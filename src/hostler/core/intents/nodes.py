"""Nodes made known, moved along the graph, renamed and retired; their conditions and checks ended by a person."""

import re
from collections.abc import Callable

from hostler.core.conditions import meeting_blame, unanswered_checks
from hostler.core.conditions.machine_identity import MISMATCH
from hostler.core.intents import registration
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.intents.entered_addresses import KINDS, EnteredAddresses
from hostler.core.intents.registration import OUTLETS_MAX, dpu_problem, outlet_problem, outside_problem
from hostler.core.planning import idle_checks
from hostler.core.planning.bring_up_faults import bring_up_faults, fault_text
from hostler.core.planning.outcomes import change_phase
from hostler.core.planning.person_waits import ways_with_fault
from hostler.core.policy import rma_cases
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE, DPU_BMC, MAC, OUTLET, PROVIDER, Binding, normal_mac
from hostler.core.state.expected import FieldOwner
from hostler.core.state.intent import Bounds
from hostler.core.state.model import CheckResult, Condition, Node, Phase, Verdict
from hostler.core.state.provider import provider_problem
from hostler.core.state.rma_cases import CaseStep
from hostler.core.state.verbs.command_line import command_of
from hostler.core.state.verbs.nodes import (
    NO_BMC,
    REBINDABLE,
    Adopt,
    ClearCondition,
    Debug,
    Onboard,
    Rebind,
    Register,
    RegisterAssets,
    RmaReturn,
    RmaSend,
    Triage,
    Vouch,
    ZapAgain,
)
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import edge
from hostler.core.tables.verdicts import Conviction


def register(adopt: bool) -> Callable[[AnyAsk], Granted]:
    """Nodes of an inventory become known, to be brought up or adopted as they run."""

    def grant(ask: AnyAsk) -> Granted:
        specs = registration.read(ask.act.nodes)
        events = registration.register(ask.context.fleet, specs, adopt, ask.context.now)
        return f"{len(events)} node(s) {'adopted' if adopt else 'registered'}", events

    return grant


def register_assets(ask: Ask[RegisterAssets]) -> Granted:
    """Assets that are not nodes become known."""
    specs = registration.read_assets(ask.act.assets)
    events = registration.register_assets(ask.context.fleet, specs, ask.context.now)
    return f"{len(events)} asset(s) registered", events


def move(
    ask: AnyAsk, node: Node, along: tuple[Phase, Phase], why: str, ground: Conviction | None = None
) -> tuple[e.Event, ...]:
    """The move along one edge, from and to, with the end of the plan that runs. Raises RefusalError."""
    before, after = along
    if node.phase is not before or edge(before, after) is None:
        raise RefusalError(f"{node.id} is in phase {node.phase}; this is for nodes in {before}")
    ended: tuple[e.Event, ...] = ()
    if node.operation is not None and idle_checks.running(node) is None:
        raise RefusalError(f"{node.id}: {node.operation.kind} is under way; wait for it, or hold the node")
    if node.plan is not None:
        ended = (e.PlanEnded(node.id, node.plan.id, "cancelled", why),)
    return (*ended, *change_phase(ask.context, node, after, why, ground))


def moving(before: Phase, after: Phase) -> Callable[[AnyAsk], Granted]:
    """A move along one edge of the graph by a person's word."""

    def grant(ask: AnyAsk) -> Granted:
        node = node_of(ask)
        why = f"{ask.intent.person}: {ask.intent.reason}"
        return f"{node.id} goes to {after}", move(ask, node, (before, after), why)

    return grant


def zap_again(ask: Ask[ZapAgain]) -> Granted:
    """The firmware is brought to the baseline once more, of a node in zap_fail or one that is being tested."""
    node = node_of(ask)
    before = Phase.test if node.phase is Phase.test else Phase.zap_fail
    faults = bring_up_faults(ask.context.fleet.policy_of(node), node) if node.phase is Phase.zap_fail else []
    if faults:
        text = f"{node.id} would fail on it at once: {fault_text(faults[0])}"
        raise RefusalError(text, way=ways_with_fault(node, faults[0]))
    return moving(before, Phase.zap)(ask)


def return_from_vendor(ask: Ask[RmaReturn]) -> Granted:
    """The vendor has sent it back: its faults are theirs to have mended, and it begins again at onboard."""
    node = node_of(ask)
    moved = move(ask, node, (Phase.rma, Phase.onboard), f"returned by the vendor ({ask.intent.person})")
    cleared = [e.ConditionCleared(node.id, c.id, ask.intent.person, "repaired") for c in node.conditions]
    closed = [
        e.TicketClosed(t.id, ask.intent.reason, ask.intent.person)
        for t in ask.context.fleet.tickets_about(node.id)
        if t.kind in ("rma", "stuck")
    ]
    back = _received(ask, node)
    return f"{node.id} is back from the vendor", (*moved, *cleared, *closed, *back)


def _received(ask: Ask[RmaReturn], node: Node) -> tuple[e.Event, ...]:
    """The chassis's case goes along with its machine, whatever was written down of the way there."""
    return tuple(
        event
        for case in ask.context.fleet.rma_cases_of(node.id)
        if case.component == rma_cases.NODE and not case.taken & {CaseStep.received, CaseStep.fitted}
        for event in rma_cases.taken(ask.context, case, CaseStep.received, ask.intent.person, ask.intent.reason)
    )


_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENTERED = ("bmc", BMC_CERTIFICATE, DPU_BMC, OUTLET)
"""Names of what a password is sent to."""
_SEVERAL = {OUTLET: (outlet_problem, "an outlet"), DPU_BMC: (dpu_problem, "a DPU's BMC")}
"""Kinds of which a node has several names, given whole: what is wrong with them, and what one of them is."""


def fingerprint(value: str) -> str:
    """The SHA-256 of a certificate as it is recorded. Raises RefusalError for what is none."""
    plain = value.replace(":", "").lower()
    if not _SHA256.fullmatch(plain):
        raise RefusalError("give the certificate's SHA-256, as `openssl x509 -fingerprint -sha256` prints it")
    return plain


def rebind(ask: Ask[Rebind]) -> Granted:
    """The outside has a new name for the node: a replaced BMC, a renamed host."""
    node = node_of(ask)
    kind, value = ask.act.kind, ask.act.value
    if kind not in REBINDABLE or not 0 < len(value) <= (OUTLETS_MAX * 200 if kind in _SEVERAL else 256):
        raise RefusalError(f"give kind (one of {', '.join(REBINDABLE)}) and value")
    if kind == MAC:
        return _bind_macs(ask, node)
    if kind == "bmc" and value == NO_BMC:
        return _without_bmc(ask, node)
    names = value.replace(",", " ").split() if kind in _SEVERAL else [value]
    value = " ".join(names)
    if kind == BMC_CERTIFICATE:
        value = fingerprint(value)
    if kind == "tpm" and not _SHA256.fullmatch(value):
        raise RefusalError("give the SHA-256 of the TPM's endorsement key; the history names it where it was refused")
    if kind in _ENTERED and ask.intent.bounds != Bounds():
        what = _SEVERAL[kind][1] if kind in _SEVERAL else "a BMC"
        raise RefusalError(
            f"only an operator of the whole cell may say where {what} is and who it is: its password is sent there"
        )
    problem = _problem_of(kind, value, names)
    if problem and (kind in _SEVERAL or kind not in _ENTERED):
        raise RefusalError(problem)
    _check_names(ask, node, kind, names)
    if node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        raise RefusalError(f"{node.id}: {node.operation.kind} is under way; wait for it")
    settled = tuple(
        e.ConditionCleared(node.id, c.id, ask.intent.person, f"bound again: {kind} {value}")
        for c in node.conditions
        if c.type == MISMATCH
    )
    bound = e.BindingChanged(node.id, Binding(kind, value, ask.context.now))
    return f"{kind} of {node.id} is now {value}", (bound, *settled)


def _problem_of(kind: str, value: str, names: list[str]) -> str:
    """Why the outside gives no node this name, "" where it may."""
    if kind in _SEVERAL:
        return _SEVERAL[kind][0](names)
    return provider_problem(value) if kind == PROVIDER else outside_problem(kind, value)


def _without_bmc(ask: Ask[Rebind], node: Node) -> Granted:
    """The node has no BMC by a person's word: what a BMC alone could say of it is asked no longer."""
    if ask.intent.bounds != Bounds():
        raise RefusalError("only an operator of the whole cell may say that a node has no BMC")
    if not node.binding("bmc"):
        raise RefusalError(f"no BMC of {node.id} is recorded, so there is none to take away")
    if node.under_way and OPERATIONS[node.under_way[0].kind].port == "bmc":
        raise RefusalError(f"{node.id}: {node.under_way[0].kind} is under way; wait for it")
    told = f"{ask.intent.person} says that {node.id} has no BMC: {ask.intent.reason}"[:500]
    gone = (e.ConditionCleared(node.id, c.id, ask.intent.person, told) for c in node.conditions if _is_of_bmc(c))
    bound = e.BindingChanged(node.id, Binding("bmc", "", ask.context.now))
    back = command_of(Rebind("bmc", node.binding("bmc")), node.id)
    return f"{node.id} counts as a node without a BMC; to give it one again: `{back}`", (bound, *gone)


def _is_of_bmc(condition: Condition) -> bool:
    """Whether the condition says how its BMC is, or what it alone shows."""
    return condition.type.startswith("bmc.")


def _bind_macs(ask: Ask[Rebind], node: Node) -> Granted:
    """A machine has several addresses, and they are given whole: those that are not named end."""
    macs = tuple(dict.fromkeys(map(normal_mac, ask.act.value.split(","))))
    for mac in macs:
        if problem := outside_problem(MAC, mac) or ("" if mac else "a MAC address is empty: separate them by commas"):
            raise RefusalError(problem)
        _check_free(ask, node, MAC, mac)
    before = " ".join(b.value for b in node.bindings if b.kind == MAC and b.until is None)
    changed = e.NodeFieldChanged(node.id, "macs", before, " ".join(macs), FieldOwner.hostler.value)
    return f"MAC addresses of {node.id} are now {', '.join(macs)}", (changed,)


def _check_free(ask: Ask[Rebind], node: Node, kind: str, value: str) -> None:
    """Raise RefusalError where another node has the name."""
    if holders := [i for i in ask.context.fleet.index.members(f"{kind}:{value}") if i != node.id]:
        raise RefusalError(f"{kind} {value} is bound to {holders[0]}: rebind or retire that one first")


def _check_names(ask: Ask[Rebind], node: Node, kind: str, names: list[str]) -> None:
    """Raise RefusalError where another node has one of them, or it is known for something that is entered as well."""
    for one in () if kind == BMC_CERTIFICATE else names:  # BMCs of one model may come with the same
        _check_free(ask, node, kind, one)
    entered = names if kind in KINDS.values() else []
    addresses = EnteredAddresses.of(ask.context.fleet, entered)
    for one in entered:
        if held := addresses.clash(node.id, kind, one):
            raise RefusalError(f"{one} is {held.text} already: correct one of the two")


def clear_condition(ask: Ask[ClearCondition]) -> Granted:
    """A condition ends by a person's word."""
    node = node_of(ask)
    kind = ask.act.condition
    found = [c for c in node.conditions if kind in (c.id, c.type)]
    if not found:
        have = ", ".join(c.type for c in node.conditions) or "none"
        raise RefusalError(f"{node.id} has no condition '{kind}'; it has {have}")
    events = tuple(e.ConditionCleared(node.id, c.id, ask.intent.person, ask.intent.reason) for c in found)
    return f"{len(events)} condition(s) cleared", events


def vouch(ask: Ask[Vouch]) -> Granted:
    """The person has looked at what no check answers: the step passes this once, in the person's name.

    What a check has found faulty no word makes sound.
    """
    node, intent = node_of(ask), ask.intent
    profile, plan = ask.act.profile, node.plan
    asked = unanswered_checks.profile_at(plan) if plan is not None else ""
    if plan is None or not asked or unanswered_checks.standing(node, asked) is None:
        raise RefusalError(
            f"{node.id} waits for no check that a person could vouch for; see `hostler node get {node.id}`"
        )
    if profile != asked:
        raise RefusalError(f"{node.id} waits for {asked}, not for '{profile}': give --profile {asked}")
    if node.operation is not None:
        raise RefusalError(f"{node.id}: {asked} is running again; wait for its answer")
    word = f"{intent.person} vouches: {intent.reason}"
    passed = CheckResult(asked, Verdict.passed, ask.context.now, word[:500], intent.person)
    recorded = () if asked == unanswered_checks.SANITISE else (e.CheckRecorded(node.id, passed),)
    ended = unanswered_checks.answered(ask.context.fleet, node, asked, intent.person, word)
    return f"{asked} of {node.id} counts as passed, this once", (
        *recorded,
        *ended,
        *meeting_blame.answered(node, asked, intent.person, word),
        e.PlanAdvanced(node.id, plan.id, plan.index + 1),
    )


def send_to_vendor(ask: Ask[RmaSend]) -> Granted:
    """The node goes to its vendor because a person says so."""
    node, intent = node_of(ask), ask.intent
    why = f"{intent.person}: {intent.reason}"
    moved = move(ask, node, (Phase.triage, Phase.rma), why, Conviction(why, intent.person))
    return f"{node.id} goes to its vendor", moved


HANDLERS: Handlers = {
    Register: Handler(register(adopt=False)),
    Adopt: Handler(register(adopt=True)),
    RegisterAssets: Handler(register_assets),
    RmaSend: Handler(send_to_vendor),
    RmaReturn: Handler(return_from_vendor),
    Debug: Handler(moving(Phase.triage, Phase.debug)),
    Onboard: Handler(moving(Phase.debug, Phase.onboard)),
    ZapAgain: Handler(zap_again),
    Triage: Handler(moving(Phase.zap_fail, Phase.triage)),
    Rebind: Handler(rebind),
    ClearCondition: Handler(clear_condition),
    Vouch: Handler(vouch),
}
