"""Decisions of a policy about a node at a recorded moment: the very function that decides in production is asked."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.planning.next_step import next_step
from hostler.core.planning.remediation import needed
from hostler.core.policy.remedy_escalation import rule_for
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Node, Shadow
from hostler.core.state.overlay_table import Table

NOTHING, TELLS, OBSERVES, WAITS, PROPOSES, ACTS = "nothing", "tells", "observes", "waits", "proposes", "acts"
ROUNDS = 8


class Decision(Struct, frozen=True):
    """Decision: one of the words above; the remedy under its class, by which rule, and for whom it waits.

    `blockers` are (kind, name) of what it waits for. `dooms`: whose work counts as lost already.
    """

    does: str
    remedy: str = ""
    act_class: str = ""
    dooms: str = ""
    rule: str = ""
    blockers: tuple[tuple[str, str], ...] = ()

    def same(self, other: "Decision") -> bool:
        """Whether both mean the same act, whatever rule named it."""
        return replace(self, rule="") == replace(other, rule="")

    def __str__(self) -> str:
        if self.does == NOTHING:
            return self.does
        told = f"{self.does} {self.remedy} ({self.act_class})"
        return f"{told} for {', '.join(f'{kind} {name}' for kind, name in self.blockers)}" if self.blockers else told


_NOTHING = Decision(NOTHING)


class Under:
    """A fleet as it would be under another policy: all that was recorded, and the policy on trial instead of its own.

    SKUs and pools that the trial does not name stay those that were active.
    """

    def __init__(self, fleet: Fleet, trial: Configuration) -> None:
        self._fleet = fleet
        self._trial = trial
        self._view = fleet.committed()
        self._view.rollouts = Table()

    def fleet(self) -> Fleet:
        """The view as the fleet is now; nothing of it may be kept."""
        active, view = self._fleet.configuration, self._view
        view.singles = Table({"cell": replace(self._fleet.cell, rollout="")})
        skus, pools = self._trial.skus or active.skus, self._trial.pools or active.pools
        view.configurations = Table(
            {"active": replace(self._trial, skus=skus, pools=pools, activated=active.activated)}
        )
        return view


class RecordedLiveState:
    """The volatile present as far as it was recorded: what a plan's record says of power, readiness and work."""

    def __init__(self) -> None:
        self.live = LiveState()

    def see(self, recorded: e.PlanRecorded, cluster: str) -> None:
        """Take over what the plan's record says of power, readiness and work at its node."""
        here = self.live.entry(recorded.plan.node)
        here.power = recorded.present.get("power", "unknown")
        here.ready = {"true": True, "false": False}.get(recorded.present.get("ready", ""))
        told = recorded.present.get("workloads", "unknown")
        names = [name for name in told.split(",") if name]
        works = tuple(Workload(name, "", WorkClass.uninterruptible) for name in names)
        self.live.clusters[cluster] = ""
        here.workloads = {} if told == "unknown" else {cluster: works}


def decide(fleet: Fleet, live: LiveState, node: Node, now: datetime) -> Decision:
    """Decide what would be recorded next about this node, or what it or its plan would wait for."""
    context = DecisionContext(fleet, live, now)
    if node.plan is not None:
        return _needs(context, node)
    told = ""
    for _ in range(ROUNDS):
        answer = next_step(context, node)
        shadows = _shadows(answer)
        if not shadows:
            found = _read(context, node, answer)
            return Decision(TELLS, told) if told and found.does == NOTHING else found
        told = shadows[0].remedy
        node = replace(node, shadows=(*node.shadows, *shadows))
    return Decision(TELLS, told)


def _shadows(answer: Answer) -> list[Shadow]:
    if not isinstance(answer, Act):
        return []
    return [event.shadow for event in answer.events if isinstance(event, e.ShadowNoted)]


def _needs(context: DecisionContext, node: Node) -> Decision:
    need = needed(context, node)
    if need is None:
        return _NOTHING
    return Decision(ACTS, need.remedy, need.act_class.value, need.dooms, need.rule)


def _read(context: DecisionContext, node: Node, answer: Answer) -> Decision:
    need = needed(context, node)
    if isinstance(answer, Wait) and need is not None:
        blockers = tuple(sorted({(b.kind, b.name) for b in answer.blockers}))
        does = OBSERVES if any(kind == "mode" for kind, _ in blockers) else WAITS
        return Decision(does, need.remedy, need.act_class.value, need.dooms, need.rule, blockers)
    if not isinstance(answer, Act) or need is None:
        return _NOTHING
    plan = next((event.plan for event in answer.events if isinstance(event, e.PlanRecorded)), None)
    if plan is None:
        braked = any(isinstance(event, e.BrakeLatched) for event in answer.events)
        blockers = (("brake", "storm"),) if braked else (("person", "operator"),)
        return Decision(WAITS, need.remedy, need.act_class.value, need.dooms, need.rule, blockers)
    does = PROPOSES if plan.state == "proposed" else ACTS
    cause = next((c for c in node.conditions if c.id in plan.causes and c.type == plan.rule), None)
    dooms = rule_for(context.fleet.policy_of(node), cause).dooms if cause else ""
    return Decision(does, plan.remedy or plan.name, plan.act_class.value, dooms, plan.rule)
