"""How a node is while its records are read: whose it is, whether it serves, what ails it, and who cannot say. Pure.

It is `health.is_healthy` over records instead of a whole fleet: what is healthy here is healthy there.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.health import DOUBTS, bars
from hostler.core.state.model import OWNER, Assignment, Condition, Node, Phase, Plan, Severity, Verdict
from hostler.core.state.plan_rules import Releases
from hostler.core.tables.conditions import CONDITIONS

_CORDONS = frozenset({"cordon", "join_cluster"})
_UNCORDONS = frozenset({"uncordon", "leave_cluster"})


STANDING_EVENTS: tuple[type[Struct], ...] = (
    *(e.NodeRegistered, e.NodeAssigned, e.NodeReleased, e.WaitingChanged, e.PhaseChanged),
    *(e.ConditionRaised, e.ConditionUpdated, e.ConditionCleared, e.KnowledgeChanged),
    *(e.CheckRecorded, e.RepairRecorded, e.BootObserved, e.InventorySeen),
    *(e.PlanRecorded, e.PlanApproved, e.PlanAdvanced, e.PlanUndoing, e.PlanEnded),
    *(e.OperationStarted, e.OperationFinished),
)
"""Records that tell how a node is: who reads all of these of a node needs no others."""


class Cause(Struct, frozen=True, order=True):
    """How a node was. `state`: healthy, degraded, away or unknown; `kind` and `condition` say why, "" without a reason.

    Kinds of away: repair (of `condition`), maintenance, firmware, test, person, handover (it comes or goes), unknown.
    Kinds of degraded: condition, gate (its last gate check failed). Kinds of unknown: condition (whoever would tell is
    silent), unproven (nothing has looked since it booted or was acted upon), unrecorded (its records are gone).
    """

    state: str
    kind: str = ""
    condition: str = ""


class Awaited(Struct, frozen=True, order=True):
    """A wait on a node: what waits, and the kind of its first reason (budget, workload, window, person …)."""

    what: str
    reason: str


AWAY = ("repair", "maintenance", "firmware", "test", "person", "handover", "unknown")
"""Kinds of being away."""
HEALTHY = Cause("healthy")
UNRECORDED = Cause("unknown", "unrecorded")
UNPROVEN = Cause("unknown", "unproven")
UNEXPLAINED = Cause("away", "unknown")


class NodeStanding:
    """The node as its records tell it so far: whose it is, and what keeps it from being healthy."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.holder: Assignment | None = None
        self.phase: Phase | None = None
        self.conditions: dict[str, Condition] = {}
        self._plan: Plan | None = None
        self.taken: Cause | None = None
        self.cordon: Cause | None = None
        self._gate: Verdict | None = None
        self._unproven: set[str] = set()
        self.awaited: Awaited | None = None

    def cause(self) -> Cause:
        """How the node is, and why."""
        if self.phase is not Phase.production:
            return self._of_phase()
        if (away := self.taken or self.cordon) is not None:
            return away
        shown = [c for c in self.conditions.values() if not c.drill]  # a drill is no fault of the node
        known = [c for c in shown if bars(c) and c.type not in DOUBTS and c.unknown_since is None]
        if known:
            return Cause("degraded", "condition", max(known, key=_gravity).type)
        if self._gate is Verdict.failed:
            return Cause("degraded", "gate")
        doubts = [c for c in shown if c.type in DOUBTS or c.unknown_since is not None or bars(c)]
        if doubts:
            return Cause("unknown", "condition", max(doubts, key=_gravity).type)
        return UNPROVEN if self._unproven or self._gate not in (None, Verdict.passed) else HEALTHY

    def _of_phase(self) -> Cause:
        match self.phase:
            case Phase.test:
                return Cause("away", "test")
            case Phase.zap | Phase.zap_fail:
                return Cause("away", "firmware")
            case Phase.triage | Phase.debug | Phase.rma if self.conditions:
                return Cause("away", "repair", max(self.conditions.values(), key=_gravity).type)
            case _:
                return UNEXPLAINED

    def take(self, record: e.Record) -> None:
        """Read one record."""
        self._place(record.event)
        self._ails(record.event, record.at)
        self._works(record.event)

    def _place(self, event: e.Event) -> None:
        """Read whose the node is, and where it stands."""
        match event:
            case e.NodeRegistered(node=node):
                self.holder, self.phase = node.assignment, node.phase
                self._plan, self.taken, self._gate, self._unproven = None, None, None, set()
                self.conditions = {c.id: c for c in node.conditions}
                self.cordon = UNEXPLAINED if node.cordons else None
                if node.inventory_at is None or node.inventory_boot != node.boot_id:
                    self._unproven.add("boot")
            case e.NodeAssigned(assignment=assignment):
                self.holder = assignment
            case e.NodeReleased():
                self.holder, self.cordon = None, None
            case e.WaitingChanged(waiting=waiting):
                first = waiting.blockers[0].kind if waiting is not None and waiting.blockers else ""
                self.awaited = Awaited(waiting.what, first) if waiting is not None else None
            case e.PhaseChanged(after=after):
                self.phase, self.awaited = after, None
                self._unproven.discard("hands")
                self.holder = None if after is Phase.retired else self.holder
            case _:
                pass

    def _ails(self, event: e.Event, at: datetime) -> None:
        """Read what ails the node, and whether anybody can say so."""
        match event:
            case e.ConditionRaised(condition=one) | e.ConditionUpdated(condition=one):
                self.conditions[one.id] = one
            case e.ConditionCleared(condition=name):
                self.conditions.pop(name, None)
            case e.KnowledgeChanged(unknown=unknown, known=known):
                self._doubt(known.get(self._node, ()), None)
                self._doubt(unknown.get(self._node, ()), at)
            case e.CheckRecorded(check=check):
                self._judged(check.profile, check.verdict)
            case e.RepairRecorded() if self.phase is Phase.production:
                self._unproven.add("hands")
            case e.BootObserved():
                self._unproven.add("boot")
            case e.InventorySeen():
                self._unproven.discard("boot")
            case _:
                pass

    def _doubt(self, names: Sequence[str], since: datetime | None) -> None:
        for name in names:
            if (known := self.conditions.get(name)) is not None:
                self.conditions[name] = replace(known, unknown_since=since)

    def _judged(self, profile: str, verdict: Verdict) -> None:
        if profile == "gate" or (profile == "burn_in" and verdict is Verdict.passed):
            self._gate = verdict
        if verdict is Verdict.passed:
            self._unproven.discard("touched")

    def _works(self, event: e.Event) -> None:
        """Read what is done about it."""
        match event:
            case e.PlanRecorded(plan=plan):
                self.plans(plan)
            case e.PlanApproved() if self._plan is not None:
                self.plans(replace(self._plan, state="running"))
            case e.PlanEnded():
                self._plan, self.taken = None, None
            case e.OperationStarted(operation=operation) if operation.touches and self.taken is not None:
                self._unproven.add("touched")
            case e.OperationFinished(kind=kind, result="done") if kind in _CORDONS:
                self.cordon = self.taken or self._why_plan() or UNEXPLAINED
            case e.OperationFinished(kind=kind, result="done") if kind in _UNCORDONS:
                self.cordon = None
            case _:
                pass

    def plans(self, plan: Plan) -> None:
        """Note the plan: one that runs and disturbs has taken the node away."""
        takes = plan.disruptive or plan.rules.releases is Releases.undone
        self._plan, self.taken = plan, _why(plan) if takes and plan.state != "proposed" else None

    def _why_plan(self) -> Cause | None:
        return _why(self._plan) if self._plan is not None else None


def before(node: str, records: Sequence[e.Record], now: Node | None) -> NodeStanding:
    """How the node was before the first of its records: by those that end what they did not begin, else as today."""
    found, events = NodeStanding(node), [record.event for record in records]
    first = next((one.before for one in events if isinstance(one, e.PhaseChanged)), None)
    found.phase = first or (now.phase if now is not None else None)
    if now is not None and not any(isinstance(one, e.NodeAssigned | e.NodeReleased) for one in events):
        found.holder = now.assignment
    found.conditions = _conditions_before(node, records, now)
    if _ends_plan(events):
        found.taken = UNEXPLAINED
    elif now is not None and now.plan is not None and not any(isinstance(one, e.PlanRecorded) for one in events):
        found.plans(now.plan)
    done = (one.kind for one in events if isinstance(one, e.OperationFinished) and one.result == "done")
    cordon = next((kind for kind in done if kind in _CORDONS | _UNCORDONS), None)
    if cordon in _UNCORDONS or (cordon is None and now is not None and OWNER in now.cordons):
        found.cordon = UNEXPLAINED
    return found


def _ends_plan(events: Sequence[e.Event]) -> bool:
    """Whether the first word about a plan is of one that had begun before."""
    about = (e.PlanRecorded, e.PlanAdvanced, e.PlanUndoing, e.PlanEnded)
    first = next((one for one in events if isinstance(one, about)), None)
    return first is not None and not isinstance(first, e.PlanRecorded)


def _conditions_before(node: str, records: Sequence[e.Record], now: Node | None) -> dict[str, Condition]:
    begun, found = set[str](), dict[str, Condition]()
    for record in records:
        match record.event:
            case e.ConditionRaised(condition=fresh):
                begun.add(fresh.id)
            case e.ConditionUpdated(condition=known) if known.id not in begun:
                found.setdefault(known.id, known)
            case e.ConditionCleared(condition=name) if name not in begun:
                found.setdefault(name, _cleared_later(node, name, record.at))
            case _:
                pass
    for condition in now.conditions if now is not None else ():
        if condition.id not in begun:
            found.setdefault(condition.id, condition)
    return found


def _cleared_later(node: str, name: str, at: datetime) -> Condition:
    """A condition of which only the end is recorded: as grave as its row says."""
    kind = name.partition("/")[2].partition("/")[0]
    row = CONDITIONS.get(kind)
    return Condition(name, kind, node, row.severity if row else Severity.degraded, at, at, "", "")


def _gravity(condition: Condition) -> tuple[int, str]:
    return condition.severity, condition.id


def _why(plan: Plan) -> Cause:
    """Why the plan takes its node away. What was asked for by a person is a person's act, whatever is done."""
    if plan.rules.releases is not Releases.never:
        return Cause("away", "handover")
    if plan.name == "firmware_update":
        return Cause("away", "firmware")
    if plan.rule == "operator.maintenance":
        return Cause("away", "maintenance")
    if plan.drill or plan.rule.startswith("operator."):
        return Cause("away", "person")
    return Cause("away", "repair", plan.rule) if plan.rule in CONDITIONS else UNEXPLAINED
