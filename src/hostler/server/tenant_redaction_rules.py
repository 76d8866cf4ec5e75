"""The table of what a tenant is shown of each noun and event, field by field, and the rules that stand in it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, get_args

from msgspec import Struct

from hostler.core.conditions.part_claims import NODE
from hostler.core.planning.outcomes import TENANT as ASKER
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, OUTLET, Asset, Binding, Position
from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.bmc_certificate import BmcCertificate, ShownCertificate
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.boot import BootRecord, Stranger
from hostler.core.state.boot_medium import BootMedium
from hostler.core.state.cases import HANDS, Incident, Ticket, WalkStop
from hostler.core.state.certificates import KeptCertificate
from hostler.core.state.change_control import Approval, SliceError
from hostler.core.state.configuration import Budget, Pool
from hostler.core.state.customer_workloads import ConsentedWork, WorkClass, Workload
from hostler.core.state.dpu_login import DpuLogin
from hostler.core.state.drills import Drill
from hostler.core.state.evidence import KeptBundle
from hostler.core.state.fabrics import (
    CABLING,
    DesignVersion,
    DiscoverySource,
    Fabric,
    FabricCase,
    FabricFindingSeen,
    FabricLook,
    Model,
    Recabling,
    WorkDone,
)
from hostler.core.state.fleet import Fleet
from hostler.core.state.gate_expectation import Expected, ExpectedGpu, Faulted
from hostler.core.state.goldens import BitsVote, Dispute, Golden
from hostler.core.state.intent import Bounds, Intent, Unreadable
from hostler.core.state.light import Light
from hostler.core.state.links import LinkCase, LinkFault
from hostler.core.state.machine_work import MachineWork
from hostler.core.state.manual_tests import ChecklistTick, ManualRun, ManualTest
from hostler.core.state.model import (
    ActFailure,
    AsideFailure,
    Assignment,
    Attempt,
    Blocker,
    CheckResult,
    Condition,
    Difference,
    Evidence,
    Hold,
    Node,
    Observation,
    Operation,
    Part,
    Plan,
    Radius,
    Shadow,
    Step,
    Tally,
    Waiting,
)
from hostler.core.state.onboarding import Inspection, OnboardFile, OnboardTick
from hostler.core.state.operations import (
    ACTS,
    CordonUninvited,
    DeleteUninvited,
    DeviceBaseline,
    DriveToErase,
    EjectBootMedium,
    IdleCheck,
    IssueJoinToken,
    RetiredOperation,
    Sanitise,
    SetBootNetwork,
    WriteDeviceFirmware,
    WriteFirmware,
)
from hostler.core.state.packed_strings import Pairs
from hostler.core.state.pass_rules import PassRules, ReadingRule, StageRule
from hostler.core.state.plan_rules import PlanRules
from hostler.core.state.rack_runs import AssetAct, Rack, RackCertificate, RackEnd, RackEvidence, RackRun, RackStep
from hostler.core.state.racks import AssetLook
from hostler.core.state.repairs import RepairDone
from hostler.core.state.rma_cases import RmaCase, StockLine, TakenStep
from hostler.core.state.scopes import FLEET, NODES, TEXTS, Scope
from hostler.core.state.subnets import ManagerDesign, SubnetDesign, SubnetFacts, SubnetManager
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Permission, Verb
from hostler.core.state.ways_out import ByAct, ByTime, WayOut, WhenObserved, by_act, sentence_of
from hostler.core.state.windows import Window, WindowAnswer
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.server.auth import MAY
from hostler.server.tokens import Role

OTHERS = "another customer"
_SOMEBODY = Scope("", OTHERS)
"""In the place of a name that is not the tenant's."""
UNTOLD = "told to operators only"
"""In the place of a text that may speak of others."""

BLOCKED: dict[str, tuple[str, str]] = {
    "approval": ("a second person is asked", "they have answered"),
    "binding": ("it is not certain which machine answers to its name", "that is settled"),
    "budget": ("no more nodes may be out of service at once", "another is back in service, or ready"),
    "check": ("a check has given no verdict", "it has given one"),
    "confirmation": ("a second witness is asked for", "it shows the same, or a person asks for the remedy"),
    "domain": ("nodes that go together have not all come as far", "they have"),
    "format": ("the controllers are of different versions", "all are of one that reads it"),
    "hold": ("somebody keeps it as it is", "the hold is released"),
    "incident": ("many nodes show the same fault, and its cause is looked for", "it is found, or a person decides"),
    "observation": ("it has not been seen yet", "it has"),
    "operation": ("what was asked of it has not ended", "its outcome is known"),
    "pause": ("disruption is paused", "somebody resumes it"),
    "person": ("a person has to do something first", "that is done"),
    "restored": ("the journal was restored", "a person releases it"),
    "scheduler": ("its scheduler does not allow it yet", "that allows it, or the work ends by itself"),
    "unknown": ("what runs on it is not known", "the scheduler answers"),
    "window": ("no maintenance window is open", "one opens"),
    "workload": ("running work has not ended", "it ends"),
}
"""Text of a blocker for tenants, by its kind: the text, and what ends it."""
_BLOCKED_BY_ANYTHING = ("something that operators see stands in the way", "that is over")
_OWN_BLOCKERS = frozenset({"bmc", "boot", "brake", "clock", "inventory"})
"""Kinds whose text is made of this node's own facts, or of numbers."""
_OF_CUSTOMERS = frozenset({"pool", "cluster", "tenant", "node"})
"""Kinds of scope that name somebody; the others (rack, leaf, firmware …) are the place or make of one's own nodes."""

Rule = Callable[["Own", Any, Any], Any]


class Own:
    """Share of one tenant in the fleet: pools, clusters, and the nodes that serve it, or did (`also`)."""

    def __init__(self, fleet: Fleet, tenant: str, also: frozenset[str]) -> None:
        own = [pool for pool in fleet.configuration.pools.values() if pool.tenant == tenant]
        self.tenant = tenant
        self.pools = frozenset(pool.name for pool in own)
        self.clusters = frozenset(pool.cluster for pool in own)
        self._also = also
        self._fleet = fleet

    def sees(self, node_id: str) -> bool:
        """Tell whether the tenant may see the node."""
        return node_id in self._also or self.since(node_id) is not None

    def reaches(self, target: str) -> bool:
        """Tell whether a node, ticket or approval by this id is within the tenant's reach."""
        fleet = self._fleet
        if (ticket := fleet.tickets.get(target)) is not None:
            return bool(ticket.node) and self.since(ticket.node) is not None
        if (approval := fleet.approvals.get(target)) is not None:
            return approval.intent.bounds.tenant == self.tenant
        return self.since(target) is not None

    def since(self, node_id: str) -> datetime | None:
        """Moment since which the node serves the tenant, None where it does not."""
        node = self._fleet.nodes.get(node_id)
        serves = node.assignment if node is not None else None
        return serves.since if serves is not None and serves.tenant == self.tenant else None

    def scope(self, scope: Scope) -> Scope:
        """A hold's, pause's or incident's scope."""
        kind, name = scope.kind, scope.name
        if kind in ("", FLEET, NODES):
            return scope if scope.text in ("", FLEET) or self.sees(scope.text) else _SOMEBODY
        own = {"pool": name in self.pools, "cluster": name in self.clusters, "tenant": name == self.tenant}
        return scope if own.get(kind, kind not in _OF_CUSTOMERS) else _SOMEBODY


def _kept(_own: Own, _noun: Any, value: Any) -> Any:
    return value


def unnamed(_own: Own, _noun: Any, value: Any) -> Any:
    """Drop what no row names: words and mappings are left out, nouns stay."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return ""
    if isinstance(value, dict):
        return {}
    if type(value) in TEXTS:
        return TEXTS[type(value)]("")
    return tuple(one for one in value if isinstance(one, Struct)) if isinstance(value, tuple | list) else value


def _nothing(_own: Own, _noun: Any, _value: Any) -> None:
    return None


def _none(_own: Own, _noun: Any, _value: Any) -> tuple[()]:
    return ()


def _untold(_own: Own, _noun: Any, value: str) -> str:
    return UNTOLD if value else ""


def _node(own: Own, _noun: Any, value: str) -> str:
    return value if not value or own.sees(value) else OTHERS


def _nodes(own: Own, _noun: Any, value: Any) -> Any:
    """Of node ids, or of a mapping from them, those that are the tenant's."""
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if own.sees(name)}
    return tuple(name for name in value if own.sees(name))


def _scope(own: Own, _noun: Any, value: Scope) -> Scope:
    return own.scope(value)


def _target(own: Own, _noun: Any, value: str) -> str:
    return own.scope(Scope.of(value)).text


def _scopes(own: Own, _noun: Any, value: tuple[Scope, ...]) -> tuple[Scope, ...]:
    return tuple(scope for scope in value if own.scope(scope) == scope)


def _pool(own: Own, _noun: Any, value: str) -> str:
    return value if value in ("", *own.pools) else OTHERS


def _cluster(own: Own, _noun: Any, value: str) -> str:
    return value if value in ("", *own.clusters) else OTHERS


def _tenant(own: Own, _noun: Any, value: str) -> str:
    return value if value in ("", own.tenant) else OTHERS


def _causes(own: Own, _noun: Any, value: tuple[str, ...]) -> tuple[str, ...]:
    """Conditions by their ids, which begin with their node."""
    return tuple(cause for cause in value if own.sees(cause.partition("/")[0]))


def _seen_as(own: Own, _noun: Any, value: str) -> str:
    """Cause of a record: an intent, a record, the clock, or an observation, whose id begins with its node."""
    node, slash, _ = value.rpartition("/")[0].rpartition("/")
    return value if not slash or own.sees(node) else ""


_OUT_OF_BAND = frozenset({"bmc", DPU_BMC, OUTLET})
"""Bindings that are addresses of the network which operators alone are on."""


def _bindings(_own: Own, _node: Node, value: tuple[Binding, ...]) -> tuple[Binding, ...]:
    return tuple(binding for binding in value if binding.kind not in _OUT_OF_BAND)


def _address(_own: Own, binding: Binding, value: str) -> str:
    return "" if binding.kind in _OUT_OF_BAND else value


def _paths(_own: Own, _noun: Any, value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{NODE}{OTHERS}" if path.startswith(NODE) else path for path in value))


def _of_condition(own: Own, condition: Condition, value: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return _evidence(own, condition.node, condition.type, value)


def _of_plan(own: Own, event: e.PlanRecorded, value: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return _evidence(own, event.plan.node, event.plan.rule, value)


def _evidence(own: Own, node: str, kind: str, value: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Evidence that the tenant may read: seen by the node's agent while it served the tenant, or the tenant's own."""
    since, row = own.since(node), CONDITIONS.get(kind)
    meaning = row.meaning if row is not None else UNTOLD
    shown: list[Evidence] = []
    for one in value:
        here = (one.source == "agent" and one.observation != "") or one.source == "check"
        seen_here = since is not None and one.at >= since and here and not one.path.startswith(NODE)
        if seen_here or one.facts.get(ASKER) == own.tenant:
            shown.append(one)
        else:
            path = f"{NODE}{OTHERS}" if one.path.startswith(NODE) else one.path
            source = one.source if one.source in _SOURCES else "operator"
            shown.append(Evidence(one.at, source, meaning, path=path))
    return tuple(shown)


_SOURCES = frozenset({"agent", "bmc", "check", "hostler"})


def _detail(_own: Own, event: e.OperationFinished, value: Any) -> Any:
    """End of an operation in its agent's words; another driver's words may name addresses and clusters."""
    row = OPERATIONS.get(event.kind)
    if row is not None and row.port == "agent":
        return value
    return {} if isinstance(value, dict) else _untold(_own, event, value)


def _checked(_own: Own, check: CheckResult, value: str) -> str:
    return UNTOLD if check.person else value


def _observed(_own: Own, seen: Observation, value: Any) -> Any:
    if seen.source == "agent":
        return value
    return {} if isinstance(value, dict) else _untold(_own, seen, value)


def _blocker(_own: Own, blocker: Blocker, value: str) -> str:
    if blocker.kind in _OWN_BLOCKERS:
        return value
    return BLOCKED.get(blocker.kind, _BLOCKED_BY_ANYTHING)[0]


def _blocker_ends(own: Own, blocker: Blocker, value: str) -> str:
    shown = _blocker_ways(own, blocker, blocker.ways)
    return value if shown == blocker.ways else sentence_of(shown)


def _blocker_ways(own: Own, blocker: Blocker, value: tuple[WayOut, ...]) -> tuple[WayOut, ...]:
    """The acts that are the tenant's own to ask for, and what ends it besides in the words of its kind."""
    acts = tuple(by_act(way.act, way.target) for way in value if isinstance(way, ByAct) and _may_ask(own, way))
    others = tuple(way for way in value if not isinstance(way, ByAct))
    if blocker.kind in _OWN_BLOCKERS and others:
        return (*acts, *others)
    return (*acts, WhenObserved(BLOCKED.get(blocker.kind, _BLOCKED_BY_ANYTHING)[1]))


def _may_ask(own: Own, way: ByAct) -> bool:
    """Whether a tenant's token carries the permission, and the target is within its reach."""
    return way.asks in MAY[Role.tenant] and own.reaches(way.target)


def _blocker_name(_own: Own, blocker: Blocker, value: str) -> str:
    return value if blocker.kind in _OWN_BLOCKERS else ""


def _of_hold(own: Own, hold: Hold, value: str) -> str:
    return value if hold.tenant in ("", own.tenant) else OTHERS


def _hold_reason(own: Own, hold: Hold, value: str) -> str:
    return value if hold.tenant == own.tenant else UNTOLD


def _of_hands(_own: Own, _noun: Any, value: str) -> str:
    """The name of a person who works at the racks, which customers are not to read."""
    return value if value in ("", "hostler") else "a technician"


def _of_request(own: Own, condition: Condition, value: str) -> str:
    return _of_hands(own, condition, value) if any(one.facts.get(HANDS) for one in condition.evidence) else value


def _cleared_by(own: Own, event: e.ConditionCleared, value: str) -> str:
    """The person who ended it; of what technicians ask for, no name."""
    return _of_hands(own, event, value) if event.condition.endswith(_BY_TECHNICIANS) else value


_BY_TECHNICIANS = ("/operator.maintenance", "/operator.power_off")


def _of_intent(own: Own, intent: Intent, value: str) -> str:
    if not isinstance(intent.act, Unreadable) and intent.act.facts.asks is Permission.work:
        return _of_hands(own, intent, value)
    return value if intent.bounds.tenant in ("", own.tenant) else OTHERS


def _intent_said(own: Own, intent: Intent, value: str) -> str:
    return value if intent.bounds.tenant == own.tenant else UNTOLD


def _act(own: Own, intent: Intent, value: Verb) -> Verb:
    """The verb; its arguments where it is theirs."""
    return value if intent.bounds.tenant == own.tenant else Unreadable(intent.verb)


def _answer(own: Own, event: e.IntentRecorded, value: str) -> str:
    return value if event.intent.bounds.tenant == own.tenant else UNTOLD


def _of_work(own: Own, work: Workload, value: Any) -> Any:
    if work.tenant in ("", own.tenant) or work.work_class is WorkClass.infrastructure:
        return value
    return OTHERS if isinstance(value, str) and value else ""


_OF_WORK = ("id", "tenant", "job", "image", "held_by", "check", "progress", "owner", "uid")


def _ticket_text(_own: Own, ticket: Ticket, value: str) -> str:
    return f"a ticket: {ticket.kind}" if value else ""


def _ticket_action(_own: Own, ticket: Ticket, value: str) -> str:
    """Acts on cables name switches and other customers' hosts."""
    return _untold(_own, ticket, value) if ticket.kind == CABLING else value


def _ticket_component(_own: Own, ticket: Ticket, value: str) -> str:
    return "" if ticket.kind == CABLING else value


def _ticket_fault(_own: Own, _ticket: Ticket, value: str) -> str:
    kind = value.partition(":")[0]
    return kind if kind in CONDITIONS else ""


def _own_pools(own: Own, _noun: Any, value: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple((pool, number) for pool, number in value if pool in own.pools)


def _own_answers(own: Own, _noun: Any, value: tuple[WindowAnswer, ...]) -> tuple[WindowAnswer, ...]:
    return tuple(answer for answer in value if answer.tenant == own.tenant)


def _own_answer(own: Own, _noun: Any, value: WindowAnswer) -> WindowAnswer:
    return value if value.tenant == own.tenant else WindowAnswer(OTHERS, "", value.at, "")


def _own_time(own: Own, node: Node, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of what happened to the node, what happened while it served the tenant."""
    since = own.since(node.id)
    return tuple(one for one in value if since is not None and one.at >= since)


def _rows(kept: str = "", /, **others: Rule) -> Mapping[str, Rule]:
    """The rows of one noun: fields that are shown as they are, by name, and those that have a rule."""
    return {**dict.fromkeys(kept.split(), _kept), **others}


_PERSON: dict[str, Rule] = {"node": _node, "reason": _untold}

_OF_RACKS = (RackRun, RackStep, AssetAct, RackEnd, RackEvidence, RackCertificate, Rack)

FIELDS: dict[type[Struct], Mapping[str, Rule]] = {
    # nouns
    Position: _rows("cell site row rack"),
    Binding: _rows("kind", value=_address),
    Assignment: _rows(pool=_pool, tenant=_tenant, cluster=_cluster),
    Part: _rows("serial kind model slot firmware", node=_node),
    DriveToErase: _rows("serial model slot"),
    Evidence: _rows("source text observation facts path"),  # as its condition or plan has shown it
    Condition: _rows(
        "id type clears part remedy timing group boot_id",
        owner=_of_request,
        node=_node,
        evidence=_of_condition,
        paths=_paths,
    ),
    Tally: _rows("row result seen"),
    Workload: _rows("parts", **dict.fromkeys(_OF_WORK, _of_work)),
    Blocker: _rows("kind", name=_blocker_name, text=_blocker, ways=_blocker_ways, ends_when=_blocker_ends),
    ByAct: _rows("act target asks text"),  # only acts of the tenant's own are left, worded by their verb
    ByTime: _rows("text at"),
    WhenObserved: _rows("text by"),
    Waiting: _rows("what"),
    ActFailure: _rows("what result", why=_untold),
    Hold: _rows("id ticket", scope=_scope, owner=_of_hold, reason=_hold_reason, tenant=_tenant),
    Window: _rows("id owner", scope=_scope, reason=_untold, answers=_own_answers),
    WindowAnswer: _rows("person reason", tenant=_tenant),  # of others none is shown
    Step: _rows("act"),
    Radius: _rows(nodes=_nodes),
    PlanRules: _rows("left_phase found_phase keeps cures"),
    Plan: _rows(
        "id name undo rule remedy to_phase failed_phase convicted_phase part boot_id group state result parts"
        " left_boot",
        node=_node,
        causes=_causes,
        pool=_pool,
        reason=_untold,
    ),
    Operation: _rows("id act plan boot_id", node=_node),
    **{kind: _rows(" ".join(kind.__struct_fields__)) for kind in ACTS.values()},
    WriteFirmware: _rows("component version good at_least activates needs"),  # not where images are
    WriteDeviceFirmware: _rows("component tool models version good at_least slots"),
    DeviceBaseline: _rows("tool models good slots"),
    SetBootNetwork: _rows("target"),
    EjectBootMedium: _rows(),
    Sanitise: _rows("drives keep tpm"),  # not names of the BMC's accounts
    IdleCheck: _rows("profile"),
    **dict.fromkeys((CordonUninvited, DeleteUninvited, IssueJoinToken), _rows(cluster=_cluster)),
    RetiredOperation: _rows("said"),
    Expected: _rows("known without parts faulted only"),
    ExpectedGpu: _rows("slot serial uuid pci"),
    Faulted: _rows("type part readers gpu"),
    PassRules: _rows("required optional without limits stages"),
    **dict.fromkeys((ReadingRule, StageRule), _rows("")),
    AsideFailure: _rows("kind", result=_untold, detail=_untold),
    Attempt: _rows("remedy part"),
    ConsentedWork: _rows("workload remedy ticket person"),
    CheckResult: _rows("profile person", detail=_checked),
    Ticket: _rows(
        "id kind hardware owner",
        component=_ticket_component,
        action=_ticket_action,
        node=_target,
        summary=_ticket_text,
        fault=_ticket_fault,
        account=_tenant,
        resolution=_untold,
        files=_none,
        walk=_none,
    ),
    WalkStop: _rows(),
    Incident: _rows("id syndrome conditions owner ticket state", scope=_scope, also=_scopes, members=_nodes),
    Difference: _rows("what"),
    Asset: _rows("id domains state"),
    AssetLook: _rows(),
    Shadow: _rows("rule remedy", waits=_untold),
    Node: _rows(
        "id sku domains provisioner given_up cordons boot_id boots slots addresses inventory_boot inventory_covers"
        " firmware changed certified_by unheard versions",
        left_cluster=_cluster,
        left_pool=_pool,
        aside=_nothing,
        aside_failed=_nothing,
        failed=_own_time,
        attempts=_own_time,
        visits=_own_time,
        checks=_own_time,
        consented=_own_time,
        shadows=_own_time,
        bindings=_bindings,
        differences=unnamed,
    ),
    BootRecord: _rows("plan kind image identity", reason=_untold),
    Stranger: _rows(),
    BmcLogin: _rows(),
    DpuLogin: _rows(),
    BmcCertificate: _rows(),
    MachineWork: _rows(),
    ShownCertificate: _rows(),
    KeptBundle: _rows(),
    KeptCertificate: _rows(),
    Inspection: _rows(),
    OnboardTick: _rows(),
    OnboardFile: _rows(),
    Observation: _rows("node kind source spool boot_id finding", text=_observed, facts=_observed),
    Intent: _rows("id", target=_target, person=_of_intent, reason=_intent_said, act=_act, nodes=_nodes),
    **{kind: _rows(" ".join(kind.__struct_fields__)) for kind in VERBS.values()},  # as their intent is shown
    Unreadable: _rows("said args why"),
    Approval: _rows("id", configuration=_nothing, why=_untold, nodes=_nodes, pools=_own_pools),
    SliceError: _rows("kind", node=_node, text=_untold),
    Pool: _rows("name sku cluster tenant modes owner"),
    Budget: _rows(),
    Bounds: _rows(),
    Pairs: _rows("names serials"),
    # events
    e.Record: _rows(cause=_seen_as),
    e.NodeRegistered: _rows(),
    e.BindingChanged: _rows(node=_node),
    e.NodeFieldChanged: _rows(),
    e.PhaseChanged: _rows("person", convicted=_untold, **_PERSON),
    e.ConditionRaised: _rows(),
    e.ConditionUpdated: _rows(),
    e.ConditionCleared: _rows("condition", by=_cleared_by, **_PERSON),
    e.SourcesChanged: _rows(silent=_nodes, heard=_nodes),
    e.KnowledgeChanged: _rows(unknown=_nodes, known=_nodes),
    e.RecurrenceCounted: _rows("part", node=_node),
    e.PlanRecorded: _rows(evidence=_of_plan),
    e.PlanApproved: _rows("plan person", node=_node),
    e.PlanAdvanced: _rows("plan", node=_node),
    e.PlanUndoing: _rows("plan result", **_PERSON),
    e.PlanEnded: _rows("plan result", **_PERSON),
    e.OperationStarted: _rows(),
    e.OperationFinished: _rows("operation kind result", node=_node, detail=_detail, facts=_detail),
    e.OperationSettled: _rows("operation", node=_node, detail=_untold),
    e.OutcomeLate: _rows("operation result", node=_node, detail=_untold),
    e.WaitingChanged: _rows(node=_node),
    e.BootObserved: _rows("boot_id", node=_node),
    e.ShadowNoted: _rows(node=_node),
    e.BootAnswered: _rows(node=_node),
    e.BootSeeded: _rows("plan", node=_node),
    e.BootPhonedHome: _rows("plan", node=_node),
    e.BootMediumDue: _rows("plan", node=_node),
    e.BootMediumRead: _rows("plan", node=_node),
    BootMedium: _rows(),
    e.StrangerSeen: _rows(),
    e.EvidenceKept: _rows(node=_node),
    e.NodeSanitised: _rows(node=_node),
    e.AssetSeen: _rows(),
    e.AssetRebound: _rows(),
    **{kind: _rows() for kind in (*get_args(e.RackEvent), *_OF_RACKS)},
    e.OnboardTicked: _rows(node=_node),
    e.OnboardFileAdded: _rows(node=_node),
    e.NodeRejected: _rows(node=_node, person=_untold, reason=_untold),
    Light: _rows(),
    e.LightAsked: _rows("ticket", node=_node, by=_untold, why=_untold),
    e.BmcLoginDue: _rows(node=_node, by=_untold, why=_untold),
    Drill: _rows("id fault condition result sighted", by=_untold, why=_untold),
    e.DrillBegan: _rows(node=_node),
    e.DrillSighted: _rows("drill condition", node=_node),
    e.DrillPlaceFilled: _rows("drill", node=_node, by=_node),
    e.DrillEnded: _rows("drill result", node=_node, person=_untold, reason=_untold),
    e.DpuLoginDue: _rows(node=_node, bmc=_untold, by=_untold, why=_untold, certificate=_untold),
    e.BmcCertificateDue: _rows(node=_node, by=_untold, why=_untold),
    e.RequestWithdrawn: _rows("what", node=_node, by=_untold, why=_untold, bmc=_untold),
    e.MachineWorkAsked: _rows(node=_node, by=_untold, why=_untold, act=_untold),
    e.InstanceReplaced: _rows(node=_node, by=_untold, provider=_untold, before=_untold, after=_untold),
    e.BmcCertificateSeen: _rows(node=_node, shown=_untold),
    e.AgentEnrolled: _rows("plan", node=_node),
    e.BootRefused: _rows("what", node=_node, reason=_untold),
    e.CheckRecorded: _rows(node=_node),
    e.RepairRecorded: _rows(node=_node),
    RepairDone: _rows("action part"),
    e.InventorySeen: _rows("firmware addresses boot_id covers", node=_node),
    e.HardwareSeen: _rows("source boot_id", node=_node, readings=_nothing),
    e.PartMoved: _rows("serial slot", before=_node, after=_node),
    e.NodeAssigned: _rows(node=_node),
    e.NodeReleased: _rows(**_PERSON),
    e.NodeCertified: _rows("person", node=_node),
    e.HoldPlaced: _rows(),
    e.HoldReleased: _rows("hold person", scope=_scope, reason=_untold),
    e.WindowScheduled: _rows(),
    e.WindowAnswered: _rows("window", scope=_scope, answer=_own_answer),
    e.WindowEnded: _rows("window person"),
    e.PauseSet: _rows("person", scope=_scope, reason=_untold),
    e.BrakeLatched: _rows("reason"),
    e.BrakeReleased: _rows("person", reason=_untold),
    e.IntentRecorded: _rows("approval", answer=_answer, disturbs=_nodes),
    e.ApprovalRequested: _rows(),
    e.ApprovalEnded: _rows("approval result person", target=_target, reason=_untold),
    e.WorkConsented: _rows("ticket", **_PERSON),
    e.SliceErrorSeen: _rows("rollout"),
    e.TicketOpened: _rows(),
    e.TicketUpdated: _rows(),
    e.TicketFileAdded: _rows("ticket", node=_node),
    e.TicketClaimed: _rows("ticket", before=_untold, person=_untold, **_PERSON),
    e.TicketHandedOver: _rows("ticket", before=_untold, to=_untold, person=_untold, **_PERSON),
    e.TicketClosed: _rows("ticket", person=_of_hands, resolution=_untold),
    e.WalkStopChanged: _rows(),
    e.IncidentOpened: _rows(),
    e.IncidentUpdated: _rows("incident state conditions by", scope=_scope, joined=_nodes, left=_nodes, reason=_untold),
    e.IncidentClosed: _rows("incident syndrome by merged_into", scope=_scope, nodes=_nodes, reason=_untold),
    e.NodeCompared: _rows(node=_node),
    # networks: of several customers at once, so nothing of them is a tenant's to read but the links of its own nodes
    Fabric: _rows("name"),
    FabricCase: _rows("fabric"),
    FabricFindingSeen: _rows("kind grade"),
    FabricLook: _rows(),
    DesignVersion: _rows(),
    Model: _rows("hcas"),
    DiscoverySource: _rows(),
    e.FabricRegistered: _rows(),
    e.FabricRemoved: _rows("fabric"),
    e.FabricValidationAsked: _rows("fabric"),
    e.FabricValidated: _rows("fabric"),
    e.FabricFindingOpened: _rows(),
    e.FabricFindingChanged: _rows(),
    e.FabricFindingClosed: _rows(),
    e.SubnetChanged: _rows("fabric"),
    Recabling: _rows(),
    WorkDone: _rows(),
    e.RecablingPlanned: _rows("fabric"),
    e.RecablingMoved: _rows("fabric"),
    e.DesignTakenOver: _rows("fabric"),
    e.RecablingEnded: _rows("fabric"),
    SubnetDesign: _rows(),
    ManagerDesign: _rows(),
    SubnetFacts: _rows(),
    SubnetManager: _rows("priority state"),
    LinkCase: _rows("fabric"),
    LinkFault: _rows("check grade"),
    e.LinkFaultOpened: _rows(),
    e.LinkFaultChanged: _rows(),
    e.LinkFaultClosed: _rows(),
    ManualTest: _rows("fabric"),
    ManualRun: _rows(),
    e.ManualTestScheduled: _rows(),
    e.ManualTestEntered: _rows("fabric"),
    e.ManualTestSigned: _rows("fabric"),
    ChecklistTick: _rows(),
    AttachedFile: _rows(),
    e.ManualTestTicked: _rows("fabric"),
    e.ManualTestFileAdded: _rows("fabric"),
    e.ManualTestOverdue: _rows("fabric"),
    # returns to vendors: a tenant may be told that one of its node's parts is to be exchanged, and no more
    RmaCase: _rows("id kind component", node=_node),
    TakenStep: _rows("step"),
    StockLine: _rows(),
    e.RmaCaseOpened: _rows(),
    e.RmaCaseChanged: _rows(),
    e.RmaCaseClosed: _rows("result"),
    e.StockChanged: _rows(),
    e.AuditSealed: _rows(),
    e.DiskRoomChanged: _rows(),
    # goldens name nodes of others and what they run: a tenant is told of its node's conditions
    Golden: _rows(),
    BitsVote: _rows(),
    Dispute: _rows(),
    **dict.fromkeys((e.BitsTold, e.GoldenLearned, e.BitsDisputed, e.WitnessHeard, e.GoldenRetired), _rows()),
    e.BitsJudged: _rows("culprit"),
}
"""Noun or event → field → how it is shown. Fields without a row that hold words are left out."""
