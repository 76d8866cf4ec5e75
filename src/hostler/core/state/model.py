"""The nouns of the house: frozen values that memory, wire and store share.

Moments are aware UTC datetimes, quantities carry their unit in the name. A value here never knows a clock and
never talks; what may happen to it is said in `phases`, `recipes` and `operations`.
"""

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import force_setattr

from hostler.core.state.assets import Binding, Position
from hostler.core.state.bmc_certificate import BmcCertificate
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.boot import BootRecord
from hostler.core.state.boot_medium import BootMedium
from hostler.core.state.certificates import KeptCertificate
from hostler.core.state.customer_workloads import ConsentedWork
from hostler.core.state.dpu_login import DpuLogin
from hostler.core.state.drills import Drill
from hostler.core.state.evidence import KeptBundle
from hostler.core.state.light import Light
from hostler.core.state.machine_work import MachineWork
from hostler.core.state.onboarding import Inspection
from hostler.core.state.operations import AnyAct
from hostler.core.state.packed_strings import NO_PAIRS, Pairs
from hostler.core.state.plan_rules import PlanRules
from hostler.core.state.repairs import RepairDone
from hostler.core.state.scopes import FIRMWARE, POOL, ActGroup, Scope, alone
from hostler.core.state.ways_out import ByAct, ByTime, OneOrMoreWays, WayOut, WhenObserved, sentence_of

Scalar = str | int | float | bool | None
Facts = dict[str, Scalar]
MostSeen = tuple[tuple[str, float], ...]
"""Kind of part → how many a node has shown at most, of the host's memory how many GiB (`most_parts_seen`)."""


STAGED, RECOVERY = "staged:", "recovery:"
"""Before a component's name in `Node.versions`: written and not running yet, and what a spare image holds."""

BMC_ONLY = "bmc:"
"""Before a kind of part that only the BMC has looked at in this boot; what the agent sees of it counts before that."""


OWNER = "hostler"
"""Owner of Hostler's own cordons, holds and notes."""


LIFTED = "hostler (lifted)"
"""In the place of OWNER among a node's cordons: a person has lifted ours, and what is left of it is not cleared yet."""


RESET_CLIENTS = (
    "dcgm-exporter.service",
    "nvidia-dcgm.service",
    "nvidia-device-plugin.service",
    "nvidia-fabricmanager.service",
    "nvidia-imex.service",
    "nvidia-persistenced.service",
    "nvsm.service",
    "prometheus-dcgm-exporter.service",
)
"""Services that an agent stops and starts for a reset; it stops no others."""


STUCK = "node.stuck"
"""The condition of a node that stands in its phase for too long."""


class Phase(StrEnum):
    """Stage of a node's life. The edges between phases are in `phases.TRANSITIONS`."""

    registered = "registered"
    initializing = "initializing"
    onboard = "onboard"
    seatrial = "seatrial"
    zap = "zap"
    zap_fail = "zap_fail"
    test = "test"
    production = "production"
    triage = "triage"
    debug = "debug"
    rma = "rma"
    retired = "retired"


class Severity(IntEnum):
    """How grave a condition is; the greater is served first."""

    info = 0
    warning = 1
    degraded = 2
    critical = 3
    catastrophic = 4


class Verdict(StrEnum):
    """Result of a check. Anything that is not `passed` is not healthy."""

    passed = "passed"
    failed = "failed"
    stale = "stale"
    never_verified = "never_verified"
    inconclusive = "inconclusive"


class ActClass(StrEnum):
    """The column of the guard table under which an act passes or waits (`policy.guards.GUARDS`)."""

    protective = "protective"
    easing = "easing"
    immediate = "immediate"
    pending = "pending"
    bring_up = "bring_up"
    idle_check = "idle_check"


class Profile(StrEnum):
    """Services that a node gets (unmanaged: no automatic remedies, no active checks)."""

    managed = "managed"
    unmanaged = "unmanaged"


class HoldKind(StrEnum):
    """Why an asset is kept as it is.

    `operator` stops disruption, `cordon` keeps new work away, `physical_work` means that somebody's hands are in the
    machine, `override` that a person undid us, `power` that protective power-off stands until a named person ends it.
    """

    operator = "operator"
    cordon = "cordon"
    physical_work = "physical_work"
    override = "override"
    power = "power"


class Part(Struct, frozen=True):
    """A serial-numbered component; `node` is "" while it lies on a shelf or is with the vendor."""

    serial: str
    kind: str
    model: str = ""
    slot: str = ""
    firmware: str = ""
    node: str = ""
    since: datetime | None = None


class Evidence(Struct, frozen=True):
    """Sighting with place and time: the first link of every explanation.

    `observation` is the id of the stored raw observation ("node/spool/sequence"), "" for what a person said. `path` is
    the way it was seen: kernel_log, inventory (what NVML and PCI show), bmc, or the observation's own kind.
    """

    at: datetime
    source: str
    text: str
    observation: str = ""
    facts: Facts = {}
    path: str = ""


class Condition(Struct, frozen=True):
    """A fault (or an unknown) that stands on a node, optionally on one of its parts.

    `clears` says what ends it: "remedy" (a gate check passed after a remedy), "observation" (the reading came
    back), "operator", or "age" (it expires at `expires_at`). `group` ties conditions of one act on many nodes.
    `paths` are the ways by which it has been seen (`Evidence.path`). `unknown_since`: since when nobody can say whether
    it still stands, for whoever could has been silent for its row's time; None: it is known. `drill`: the drill that
    has raised it, "" for a fault.
    """

    id: str
    type: str
    node: str
    severity: Severity
    since: datetime
    last_seen: datetime
    clears: str
    owner: str
    part: str = ""
    count: int = 1
    evidence: tuple[Evidence, ...] = ()
    expires_at: datetime | None = None
    remedy: str = ""
    timing: str = ""
    group: ActGroup = field(default_factory=alone)
    boot_id: str = ""
    paths: tuple[str, ...] = ()
    unknown_since: datetime | None = None
    drill: str = ""


class Tally(Struct, frozen=True):
    """How often something came back on a node or part (`diagnose.recurrence`): when, and what tells occasions apart.

    `result` is the condition that it leads to. Nothing of it counts any more from `until` on.
    """

    row: str
    result: str
    seen: tuple[tuple[datetime, str], ...]
    until: datetime


class Remediator(Struct, frozen=True):
    """Another program that treats nodes of the cluster, found `since` then; `accepted_by` "": nobody has."""

    cluster: str
    name: str
    since: datetime
    accepted_by: str = ""


class Blocker(Struct, frozen=True):
    """Why something waits: who or what says so, and its ways out. Surfaces print `text` as it stands.

    `ways` is never empty; one alone may be given without its tuple. `ends_when` is their sentence, kept beside them for
    readers of a version that knew no ways; of a wait from such a version the sentence is all there is.
    """

    kind: str
    name: str
    text: str
    ways: tuple[WayOut, ...] = ()
    ends_when: str = ""

    if TYPE_CHECKING:  # mypy asks a way of every site; what an old journal holds is not built by one

        def __init__(self, kind: str, name: str, text: str, ways: OneOrMoreWays) -> None: ...

    def __post_init__(self) -> None:
        """Completes what was given: one way is a tuple of ways, the sentence is that of the ways.

        Raises ValueError where there is neither a way nor an old sentence.
        """
        ways: object = self.ways
        if isinstance(ways, ByAct | ByTime | WhenObserved):
            force_setattr(self, "ways", (ways,))
        elif isinstance(ways, str):
            raise TypeError(f"the way out of {self.kind} is a text; write observed(…), by_time(…) or by_act(…)")
        if not self.ways:
            if not self.ends_when:
                raise ValueError(f"{self.kind} has no way out: {self.text}")
            force_setattr(self, "ways", (WhenObserved(self.ends_when),))
        if not self.ends_when:
            force_setattr(self, "ends_when", sentence_of(self.ways))


class Waiting(Struct, frozen=True):
    """A remedy or step that waits, since when, and for whom.

    `since` is the beginning of the wait, whatever it has waited for since then; `told` is when these blockers were
    recorded, after `changes` others. `by_turns`: the blockers come and go, now one of them, now another. `urgent`: an
    immediate remedy waits, for which a plan that has disturbed nobody yet gives up its place of a budget. `in_hands`:
    nothing is under way, and open tickets ask people for something; nothing that ends elsewhere lets the node go on.
    """

    what: str
    since: datetime
    blockers: tuple[Blocker, ...]
    urgent: bool = False
    told: datetime | None = None
    changes: int = 0
    by_turns: bool = False
    in_hands: bool = False

    @property
    def first_act(self) -> ByAct | None:
        """The act that is named first of all, None where something else is."""
        ways = self.blockers[0].ways if self.blockers else ()
        return ways[0] if ways and isinstance(ways[0], ByAct) else None


class Hold(Struct, frozen=True):
    """A recorded "leave this alone". `scope` is a node or asset id, "pool:NAME", or FLEET.

    `tenant` is whose it is where a tenant placed it, "" where an operator or Hostler did. `word`: what the owner says
    that no BMC shows, "" where it was seen.
    """

    id: str
    scope: Scope
    kind: HoldKind
    owner: str
    reason: str
    since: datetime
    until: datetime | None = None
    ticket: str = ""
    tenant: str = ""
    word: str = ""


class Step(Struct, frozen=True):
    """One row of a frozen plan: what its operation does, and for how long at most."""

    act: AnyAct
    deadline_s: float
    optional: bool = False

    @property
    def operation(self) -> str:
        """The kind of its operation."""
        return self.act.kind


class Radius(Struct, frozen=True):
    """Largest part that an act disturbs."""

    nodes: tuple[str, ...]
    gpus: int = 0


class Plan(Struct, frozen=True):
    """A complete, frozen course of action for one node. Acting on it needs no table and no choice.

    `state` is proposed, running, undoing; `index` counts steps of `steps` (running) or of the undo tail
    (undoing), which takes back the steps up to `reached`, last first. `undo` holds, per step of `steps`, the easing
    that takes it back ("" for none). `result` and `reason` tell how an undoing plan will have ended. `disturbed`:
    work may have been ended by now; `touched`: the hardware was acted upon. `parts` are the slots that it is confined
    to, () for the whole node: work that is known to use none of them stays. `busy`: what it was to act upon was held by
    somebody, and so was left as it is. `boot_id` is the boot in which it was recorded; `left_boot` the one that was
    known when it first acted on the node's boot ("": none was), None while it has not. `rules`: how it ends.
    `unproven`: proofs of its recipe that were not to be had on this node, each with why. `drill`: its only cause.
    `refused`: the operation of its step was refused, so that its end is no strike.
    """

    id: str
    node: str
    name: str
    act_class: ActClass
    steps: tuple[Step, ...]
    undo: tuple[str, ...]
    causes: tuple[str, ...]
    rule: str
    config: str
    radius: Radius
    recorded_at: datetime
    remedy: str = ""
    to_phase: str = ""
    failed_phase: str = ""
    convicted_phase: str = ""
    limit: datetime | None = None
    part: str = ""
    pool: str = ""
    boot_id: str = ""
    group: ActGroup = field(default_factory=alone)
    disruptive: bool = False
    state: str = "running"
    index: int = 0
    reached: int = 0
    step_since: datetime | None = None
    reason: str = ""
    result: str = ""
    disturbed: bool = False
    touched: bool = False
    parts: tuple[str, ...] = ()
    busy: bool = False
    left_boot: str | None = None
    rules: PlanRules = PlanRules()
    unproven: tuple[str, ...] = ()
    drill: str = ""
    refused: bool = False


class Operation(Struct, frozen=True):
    """One small idempotent act that a driver is asked for, recorded before it is sent.

    `boot_id` is the boot it is meant for; an agent of another boot refuses it. `attempt` counts sends. `restarts`: the
    node's boot ends or begins with it. `aside`: it runs beside the node's plan (`Node.aside`). `flags`: fields of its
    plan that were set when it was asked for, taken back where it is refused.
    """

    id: str
    act: AnyAct
    node: str
    plan: str
    step: int
    started: datetime
    deadline: datetime
    boot_id: str = ""
    attempt: int = 1
    disturbs: bool = False
    touches: bool = False
    settling: bool = False
    restarts: bool = False
    aside: bool = False
    flags: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of operation."""
        return self.act.kind


class AsideFailure(Struct, frozen=True):
    """The last operation beside the plan that came to nothing: how it ended, and how many did in a row."""

    kind: str
    at: datetime
    result: str
    detail: str
    times: int = 1


class ActFailure(Struct, frozen=True):
    """An act on a node that came to nothing: which plan or operation, when, how it ended and why."""

    what: str
    at: datetime
    result: str
    why: str


class Attempt(Struct, frozen=True):
    """Try of a remedy on a node for one of its parts, a rung of the escalation ladder above all.

    `struck`: it counts against the part; what failed before anybody was disturbed does not. `touched`: the hardware was
    acted upon, not only work ended. `forgiven`: a person has closed the ticket about its failing, so it may be tried
    anew. `busy`: somebody held what it was to act upon; the next rung's turn has come, and that is no strike.
    `yielded`: it disturbed nobody, and gave its place of a budget to an immediate remedy: no try at all. `drill`: a
    drill's remedy, which is no strike.
    """

    remedy: str
    part: str
    at: datetime
    struck: bool = True
    failed: bool = False
    forgiven: bool = False
    touched: bool = True
    busy: bool = False
    yielded: bool = False
    drill: bool = False


class CheckResult(Struct, frozen=True):
    """The last verdict of one check profile on a node. `person`: who has vouched for it in the check's place."""

    profile: str
    verdict: Verdict
    at: datetime
    detail: str = ""
    person: str = ""


class Difference(Struct, frozen=True):
    """Difference between reality and a restored journal.

    `what`: boot, power, inventory, cordon, membership, work, operation or cursor.
    """

    what: str
    journal: str
    reality: str


class Assignment(Struct, frozen=True):
    """An interval in which a node serves a pool, and so a tenant. `until` is None while it lasts."""

    pool: str
    tenant: str
    cluster: str
    since: datetime
    until: datetime | None = None


class Shadow(Struct, frozen=True):
    """Remedy that a rule in shadow would have begun on a node, and did not: `times` so far, the last one `at`.

    `waits`: what would have kept it from beginning, "" where nothing did. `works`: how many workloads of customers ran
    there, None where unknown.
    """

    rule: str
    remedy: str
    act_class: ActClass
    at: datetime
    waits: str = ""
    works: int | None = None
    times: int = 1


class Node(Struct, frozen=True):
    """A GPU server: identity, place in life, what ails it, and what is being done about it.

    `domains` are the failure domains it shares ("rack:…", "nvlink:…", "power:…", "leaf:…"). `cordons` are the owners
    that keep new work away, `given_up` the operations whose answer may still come. `slots` and `addresses`
    ("pci:0000:4c:00") lead to the serials of parts. `deadline` ends the phase where it has a limit. `changed` are the
    components ("BIOS=1.2.3") whose firmware was another before `changed_at`, its last change in service. `compared` and
    `differences` tell how it looked after the journal was restored, until that is released. `left_cluster` is the one
    that it was taken out of last and is not back in, `left_pool` its pool there. `aside` is the operation beside the
    plan's, `aside_failed` says how the last one failed, None where it did not. `unheard` are silent sources
    (`staleness`) of its conditions, each since when; `heard_again`: when the last came back. `inventory_boot` is the
    boot in which its parts were last seen, `inventory_covers` the kinds looked at in it, `memory_gib` the host's memory
    as read then, 0: it was not; `most_seen` is the most that it has shown since its vendor or engineers gave it back.
    `versions` are those of firmware that its BMC last listed, by component; before the name of what does not run stands
    STAGED or RECOVERY. `stay_granted`: when a person last let it stand in its phase (STUCK). `hardware` are readings of
    links, settings and places, "SOURCE/NAME" → text, `hardware_own` those that differ between machines,
    `hardware_boots` the boot in which each was read. `repairs` is what hands did since it left production or, a spare,
    came back. `bundles` are its last evidence, `certificates` the last proofs that it was sanitised. `light` is the
    locate LED asked for, `medium` the boot medium in a virtual drive. `came_from`: the phase left for triage; `rounds`:
    visits there in a row that convicted nobody. `drill`: its last drill. `failed` are the
    last plans that failed, the newest first, until one is done.
    """

    id: str
    position: Position
    sku: str
    phase: Phase
    phase_since: datetime
    registered_at: datetime
    bindings: tuple[Binding, ...] = ()
    domains: tuple[Scope, ...] = ()
    profile: Profile = Profile.managed
    provisioner: str = "direct"
    adopted: bool = False
    deadline: datetime | None = None
    assignment: Assignment | None = None
    conditions: tuple[Condition, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    plan: Plan | None = None
    operation: Operation | None = None
    settling: tuple[Operation, ...] = ()
    given_up: tuple[str, ...] = ()
    waiting: Waiting | None = None
    cordons: tuple[str, ...] = ()
    boot_id: str = ""
    boots: tuple[str, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    slots: Pairs = NO_PAIRS
    addresses: Pairs = NO_PAIRS
    inventory_at: datetime | None = None
    inventory_boot: str = ""
    inventory_covers: tuple[str, ...] = ()
    memory_gib: float = 0.0
    most_seen: MostSeen = ()
    firmware: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    changed_at: datetime | None = None
    certified_by: str = ""
    left_cluster: str = ""
    left_pool: str = ""
    aside: Operation | None = None
    aside_failed: AsideFailure | None = None
    handover: datetime | None = None
    probation_until: datetime | None = None
    visits: tuple[Attempt, ...] = ()
    consented: tuple[ConsentedWork, ...] = ()
    shadows: tuple[Shadow, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    compared: datetime | None = None
    differences: tuple[Difference, ...] = ()
    unheard: tuple[tuple[str, datetime], ...] = ()
    heard_again: datetime | None = None
    stay_granted: datetime | None = None
    boot: BootRecord | None = None
    versions: Pairs = NO_PAIRS
    hardware: Pairs = NO_PAIRS
    hardware_own: Pairs = NO_PAIRS
    hardware_boots: tuple[tuple[str, str], ...] = ()
    repairs: tuple[RepairDone, ...] = ()
    bmc_login: BmcLogin | None = None
    bundles: tuple[KeptBundle, ...] = ()
    certificates: tuple[KeptCertificate, ...] = ()
    inspection: Inspection | None = None
    light: Light | None = None
    medium: BootMedium | None = None
    came_from: Phase | None = None
    bmc_certificate: BmcCertificate | None = None
    rounds: int = 0
    machine_work: MachineWork | None = None
    dpu_logins: tuple[DpuLogin, ...] = ()
    drill: Drill | None = None
    failed: tuple[ActFailure, ...] = ()

    def binding(self, kind: str) -> str:
        """The current value of the binding of this kind, "" where there is none."""
        return next((b.value for b in self.bindings if b.kind == kind and b.until is None), "")

    @property
    def under_way(self) -> tuple[Operation, ...]:
        """The operations that are recorded and not finished: its plan's (or an idle check), and the one aside."""
        return tuple(one for one in (self.operation, self.aside) if one is not None)

    @property
    def pool(self) -> str:
        """The pool it serves now, "" for a spare or a node outside production."""
        return self.assignment.pool if self.assignment else ""

    @property
    def scope(self) -> Scope:
        """The scope of this node alone."""
        return Scope("", self.id)

    @property
    def shares(self) -> tuple[Scope, ...]:
        """Traits in common with other nodes: its failure domains, its pool, the firmware it was changed to."""
        if not self.assignment and not self.changed:
            return self.domains
        pool = (Scope(POOL, self.assignment.pool),) if self.assignment else ()
        return (*self.domains, *pool, *(Scope(FIRMWARE, version) for version in self.changed))


class Observation(Struct, frozen=True):
    """One thing seen on or about a node, with where it came from.

    `kind`: kernel_log, inventory, sensors, verdict, boot, agent, firmware. `source`: agent or bmc.
    (`spool`, `sequence`) is contiguous per node and makes delivery exactly-once; `age_s` is how long before sending it
    was seen on the sender's clock; `facility` is the kernel-log record's. `text` is the raw line, `count` how often it
    repeated. `received` is set by the server, never by the sender.
    """

    node: str
    kind: str
    source: str
    spool: str
    sequence: int
    boot_id: str = ""
    age_s: float = 0.0
    text: str = ""
    count: int = 1
    facility: int | None = None
    facts: Facts = {}
    parts: tuple[Part, ...] = ()
    finding: str = ""
    received: datetime | None = None

    @property
    def id(self) -> str:
        """Node, spool and sequence: no other observation has these."""
        return f"{self.node}/{self.spool}/{self.sequence}"


GONE = "gone"
"""A failed outcome's fact: what an earlier step brought about and is there no more; the plan begins there again."""
LASTING = "lasting"
"""A refused outcome's fact: what to do about a refusal that waiting does not change. Nothing was done."""
HELD = "held_by"
"""A failed outcome's fact: who holds what was to be acted upon. Nothing was done to it; the fault is not its own."""


class Outcome(Struct, frozen=True):
    """Answer of a driver about an operation.

    `result`: done, failed, refused (retrying will not help), unknown (it may have worked: observe), not_done
    (observed: it has not happened), busy. `facts` carry what was read (boot_id, power, versions …).
    """

    operation: str
    node: str
    result: str
    detail: str = ""
    facts: Facts = {}
    parts: tuple[Part, ...] = ()
    attempt: int = 1
