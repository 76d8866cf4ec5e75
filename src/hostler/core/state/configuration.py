"""The operator's decisions: SKUs, pools, the response table, and the limits. Values only.

Documents are read and checked in `documents`; what is active is the fold of `config_activated`.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from hostler.core.state.boot import BootConfiguration
from hostler.core.state.expected import AdmissionRules
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.hardware import HardwareManifest
from hostler.core.state.model import Profile
from hostler.core.state.notify_routes import PageRules, Route
from hostler.core.state.pass_rules import PassRules
from hostler.core.state.pool_mode import Mode
from hostler.core.state.racks import RackManifest
from hostler.core.state.source_budgets import SourcePolicy

REMEDIES = ("gpu_reset", "reboot", "power_cycle", "triage")
"""The escalation ladder, gentlest first. Above `triage` stands RMA, which only triage itself decides (`is_lemon`)."""

RESET_DOMAINS = ("gpu", "baseboard")


class Reset(Struct, frozen=True, forbid_unknown_fields=True):
    """How the GPUs of a model are reset. `domain`: how far a reset reaches, one "gpu" or all of a "baseboard".

    `clients` hold GPUs for the platform: stopped in this order before, started in the opposite one after. `fabric` is
    restarted after the reset, and its state awaited; "" for none. `links`: NVLinks of each GPU that must be up
    afterwards, 0 for as many as before.
    """

    domain: str = "baseboard"
    clients: tuple[str, ...] = ()
    fabric: str = ""
    links: int = 0


class Sanitising(Struct, frozen=True, forbid_unknown_fields=True):
    """Things that are erased between tenants: all drives but those in slots of `keep`, which no tenant writes to.

    `tpm`: its TPM is cleared. `accounts`: names of accounts that stay on its BMC, and on those of its DPUs, besides the
    one that Hostler enters by; all others are deleted; none: accounts are not looked at. A DPU in a slot of `keep` has
    no BMC, or none that a tenant reaches.
    """

    keep: tuple[str, ...] = ()
    tpm: bool = False
    accounts: tuple[str, ...] | None = None


class Sku(Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a node of this model.

    `parts` counts part kinds. `firmware` is the fleet's baseline: component → target version as its BMC reports it.
    `updates` says how a component is brought there; `images` where its image is, of those that `updates` does not name,
    and nobody verifies that. `reset` says how its GPUs are reset. `models` are words that the model of every part of a
    kind contains, `slots` the slots of a kind by the names that its observer gives them, so that an empty one can be
    named.
    `memory_gib`: the host's memory, 0 where it is not judged.
    `tenant_root`: whoever a node of it serves has root there. `without`: readings (`ecc`, `row_remap` …) that GPUs of
    this model do not give, so that a gate does not wait for them. `bmc_system`: the name of the system that is the
    machine, where a BMC of this model shows several. `hardware`: links, settings and places that Seatrial compares as
    well, None for none. `checklist`: items that a technician looks at before a node of it is certified, behind those of
    the site. `sanitise`: what of it is erased between tenants. `rack`: what the rack of its nodes has to
    be before they are certified, None for nothing. `tpm_pcrs`: number of a register of its TPM ("0" to "7") → values
    (SHA-256, hex) of which a booted node has to quote one before its agent enrols; empty asks for no quote. `checks`: a
    profile of the suite (burn_in, suspect) → what a node of it has to pass; empty leaves the profile's own.
    """

    name: str
    gpus: int
    parts: dict[str, int] = {}
    firmware: dict[str, str] = {}
    images: dict[str, str] = {}
    gpu_model: str = ""
    temperature_limit_c: float = 90.0
    memory_gib: float = 0.0
    tenant_root: bool = False
    bmc_slots: dict[str, str] = {}
    models: dict[str, str] = {}
    slots: dict[str, tuple[str, ...]] = {}
    reset: Reset = field(default_factory=Reset)
    without: tuple[str, ...] = ()
    bmc_system: str = ""
    updates: dict[str, FirmwareUpdate] = {}
    hardware: HardwareManifest | None = None
    checklist: tuple[str, ...] = ()
    sanitise: Sanitising = Sanitising()
    rack: RackManifest | None = None
    tpm_pcrs: dict[str, tuple[str, ...]] = {}
    checks: dict[str, PassRules] = {}

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind of part a node must have, GPUs among them.

        `policy check` refuses a SKU whose `gpus` and `parts` differ; of one recorded before it did, `gpus` counts.
        """
        return {**self.parts, **({"gpu": self.gpus} if self.gpus else {})}


class Budget(Struct, frozen=True, forbid_unknown_fields=True):
    """How much may be unavailable at once; count and percent both hold, the stricter wins.

    `reserve` is on top, for immediate remedies only. `removals_per_day` limits nodes leaving the pool.
    `spares_floor`: the pool is not filled from the last so many spares of its SKU, and a merely degraded node does not
    leave it when no more than these are left.

    It limits what ends work, and capacity that automation takes. A person's cordon ends nobody's work: it is laid at
    once beyond any budget, its answer says what the pool has left, and remedies then find less room.
    """

    count: int = 1
    percent: float = 5.0
    reserve: int = 1
    removals_per_day: int = 10
    spares_floor: int = 0


class Pool(Struct, frozen=True, forbid_unknown_fields=True):
    """A delivered group of nodes of one SKU in one cluster for one tenant.

    `modes` maps remedy ("*" for all) → mode; what is not named is in observe. `evict_after_deadline` is the
    pool's recorded agreement that uninterruptible work may be ended when `drain_deadline_s` has passed.
    `tenant_root`: its tenant has root on its nodes, so their kernel log is the tenant's word (`policy/corroboration`).
    """

    name: str
    sku: str
    target: int
    cluster: str = ""
    tenant: str = ""
    profile: Profile = Profile.managed
    budget: Budget = field(default_factory=Budget)
    modes: dict[str, Mode] = {}
    evict_after_deadline: bool = False
    drain_deadline_s: float = 86_400.0
    owner: str = ""
    tenant_root: bool = False


STRIKES_KEPT_S = 90 * 86_400.0
"""For so long a node's attempts are remembered in memory; no rung may count further back."""


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """How often one remedy may be tried on a node and part within a window before the next rung's turn."""

    attempts: int = 1
    window_s: float = 604_800.0


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the response table: a condition type and what is done about it.

    `remedy` "" means watch only. `timing` is immediate or pending. `dooms` says that work using the faulted part
    is lost already. `confirm` asks for a second independent path before disturbing anybody. `shadow`: what the row
    would do is recorded and not done; a person's request is done all the same. `domain`: a kind of failure domain
    ("nvlink") that is at fault as a whole, and so is taken whole, as one act (`core.domains`).
    """

    condition: str
    remedy: str = ""
    timing: str = "pending"
    dooms: str = "part"
    confirm: bool = False
    shadow: bool = False
    domain: str = ""
    note: str = ""


class DomainBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """How many nodes of one failure domain of this kind may be disturbed at once.

    `at_once`: so many domains of this kind may be taken whole at the same time, by bring-up, by firmware of their racks
    or by a remedy of all of it; 0: no limit.
    """

    count: int = 2
    percent: float = 50.0
    at_once: int = 0


class Brake(Struct, frozen=True, forbid_unknown_fields=True):
    """The storm brake latches when more than this is disturbed within the window; a person releases it."""

    disruptions: int = 20
    percent: float = 2.0
    window_s: float = 3600.0


class Reach(Struct, frozen=True, forbid_unknown_fields=True):
    """How far one person's word goes. What would disturb more than `nodes` needs a second person's approval.

    What one person asks for within `window_s` counts as one act; an approval that nobody gives expires after
    `approval_s`. A configuration that decides otherwise is rolled out where more than `nodes` stand in act mode: first
    to `first_nodes` of one pool, then pool by pool. Each slice is watched for `soak_s`, at most `limit_s`; more errors
    than `error_percent` of its nodes (one at least, `nodes` at most) stop it.
    """

    nodes: int = 8
    window_s: float = 3600.0
    approval_s: float = 86_400.0
    first_nodes: int = 4
    soak_s: float = 3600.0
    limit_s: float = 259_200.0
    error_percent: float = 5.0


class Threshold(Struct, frozen=True, forbid_unknown_fields=True):
    """How many nodes of one shared part must show a fault together; count and percent of its nodes both hold."""

    count: int = 3
    percent: float = 40.0


class Incidents(Struct, frozen=True, forbid_unknown_fields=True):
    """When faults of many nodes are one incident. `domains` says so per kind of shared part; a kind left out never is.

    What began within `window_s` belongs together. It is released when, for `hold_down_s`, fewer show it than
    `release_percent` of those needed to open it. After `deadline_s` its `owner` is asked. Firmware is suspected for
    `recent_change_s` after it was changed. A spare takes the place of a member whose power is seen off at once, of one
    that is silent and not ready to its scheduler after `fill_after_s`.
    """

    domains: dict[str, Threshold] = {}
    window_s: float = 300.0
    hold_down_s: float = 120.0
    release_percent: float = 50.0
    deadline_s: float = 14_400.0
    recent_change_s: float = 604_800.0
    fill_after_s: float = 300.0
    owner: str = "operator"


class IdleCheckPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """When idle nodes are checked (`core.slots`), in pools whose mode for `idle_check` is act.

    Each node once in `period_s`, at a moment of its own, after `quiet_s` without work, for `limit_s` at most. Of a pool
    no more than `count` and `percent` of its target at once (the stricter holds), of a cluster `cluster_count`. `image`
    is the container that checks, where containers do.
    """

    period_s: float = 3600.0
    quiet_s: float = 60.0
    limit_s: float = 1500.0
    count: int = 16
    percent: float = 10.0
    cluster_count: int = 64
    image: str = ""


class TrendMode(StrEnum):
    """Whether readings that drift open conditions."""

    shadow = "shadow"
    act = "act"


class SpareOrder(StrEnum):
    """How a spare with a reading that drifts is delivered: as any other, after those without, or not at all."""

    take = "take"
    last = "last"
    never = "never"


class TrendPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """Consequences of readings that drift. `healthy_share_a_month`: of healthy nodes, flagged at most.

    `mode`: shadow lists and scores findings, act opens their conditions. `spares`: how a spare with one is delivered:
    as any other (take), after those without (last), or not at all (never).
    """

    mode: TrendMode = TrendMode.shadow
    healthy_share_a_month: float = 0.003
    spares: SpareOrder = SpareOrder.last


RENEWED_AT_MOST_S = 86_400.0
"""A password is renewed once a day at most: each renewal is a moment at which a BMC may lie."""


class BmcCredentialPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """How old a BMC's own password may be. `renew_every_s` 0: BMCs are given passwords on a person's word alone."""

    renew_every_s: float = 0.0


class BmcCertificatePolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """How long BMCs' certificates serve. `renew_every_s` 0: they are given new ones on a person's word alone.

    Renewed `before_expiry_s` before they expire; issued for `valid_s`; told of from `warn_s` before they expire.
    """

    renew_every_s: float = 0.0
    before_expiry_s: float = 2_592_000.0
    valid_s: float = 31_536_000.0
    warn_s: float = 1_209_600.0


class InspectionPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of a node's inspection. `certify_by_second_person`: who has ticked an item does not certify the node."""

    certify_by_second_person: bool = False


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """The response table with its limits. `time_scale` divides every working time and limit (labs only).

    `join_token_ttl_s`: how long a token that lets a node join its cluster may last; 0 issues none. `checklist`: items
    that a technician looks at before any node is certified. `people`: a person's name → their other names: of tokens,
    of sign-ins, mail addresses, and ISSUER#SUBJECT of a sign-in. No two names of one person are two people.
    """

    rules: dict[str, Rule]
    rungs: dict[str, Rung]
    domains: dict[str, DomainBudget] = {}
    brake: Brake = field(default_factory=Brake)
    reach: Reach = field(default_factory=Reach)
    incidents: Incidents = field(default_factory=Incidents)
    slots: IdleCheckPolicy = field(default_factory=IdleCheckPolicy)
    trends: TrendPolicy = field(default_factory=TrendPolicy)
    bmc_credentials: BmcCredentialPolicy = field(default_factory=BmcCredentialPolicy)
    bmc_certificates: BmcCertificatePolicy = field(default_factory=BmcCertificatePolicy)
    pages: PageRules = field(default_factory=PageRules)
    inspection: InspectionPolicy = field(default_factory=InspectionPolicy)
    sources: SourcePolicy = field(default_factory=SourcePolicy)
    bring_up_at_once: int = 64
    agent_silence_s: float = 30.0
    probation_s: float = 259_200.0
    triage_rounds: int = 3
    join_token_ttl_s: float = 900.0
    time_scale: float = 1.0
    checklist: tuple[str, ...] = ()
    people: dict[str, tuple[str, ...]] = {}


class PolicySource(Struct, frozen=True):
    """The Git commit that documents were read from, the branch or tag that led to it, and the repository's address."""

    commit: str
    ref: str = ""
    origin: str = ""

    def __str__(self) -> str:
        ref = f" of {self.ref}" if self.ref else ""
        return f"commit {self.commit[:12]}{ref}{f' in {self.origin}' if self.origin else ''}"


class Configuration(Struct, frozen=True):
    """Documents that are active, with the digest every decision cites. `routes`: by which people are told.

    `admission`: who decides which field of a registered node when an inventory says otherwise. `source`: None where
    the documents were given by hand.
    """

    policy: Policy
    skus: dict[str, Sku] = {}
    pools: dict[str, Pool] = {}
    sha256: str = ""
    activated: datetime | None = None
    routes: dict[str, Route] = {}
    boot: BootConfiguration | None = None
    admission: AdmissionRules | None = None
    source: PolicySource | None = None


LAB_FLOOR_S = 15.0
"""No time limit is scaled below this (or its own length): replies over a network do not get faster in a lab."""


LAB_PHASE_FLOOR_S = 300.0
"""A phase has many steps: its limit in a lab is never below this."""


def scaled(policy: Policy, duration_s: float, floor_s: float = LAB_FLOOR_S) -> float:
    """A working time or limit under the policy's time scale, in seconds."""
    if policy.time_scale == 1.0:
        return duration_s
    return max(duration_s / policy.time_scale, min(duration_s, floor_s))
