"""Inputs of the controller: observations, intents, replies, presence, readings, and news of the clocks."""

from datetime import datetime

from msgspec import Struct

from hostler.core.boot.boot_decision import BootRequest
from hostler.core.state.audit import Seal
from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.configuration import Configuration
from hostler.core.state.fabrics import FabricReport
from hostler.core.state.intent import Intent
from hostler.core.state.links import LinkRound
from hostler.core.state.live_state import AgentVerbs, Fellow
from hostler.core.state.model import Observation, Outcome
from hostler.core.state.racks import AssetLook
from hostler.core.state.sensor_watch import SensorLook
from hostler.core.state.subnets import SubnetReading
from hostler.core.state.trends import TrendReport
from hostler.ports import WorkloadView


class Observed(Struct, frozen=True):
    """Observations of one sender, in the order of its spool. `token` is answered after the commit.

    `urgent`: their sender says that they hold what may doom a job.
    """

    token: int
    node: str
    observations: tuple[Observation, ...]
    urgent: bool = False


class IntentAsked(Struct, frozen=True):
    """An intent, with a whole checked configuration where its verb is activate."""

    token: int
    intent: Intent
    configuration: Configuration | None = None
    documents: dict[str, str] = {}


class Replied(Struct, frozen=True):
    """A driver's answer."""

    outcome: Outcome


class AgentHeard(Struct, frozen=True):
    """The agent was heard for the first time, again after silence, with a new boot id, or with other abilities.

    `profiles` are the check profiles that it says it has, `verbs` the operations; None: it does not say.
    """

    node: str
    boot_id: str
    profiles: tuple[str, ...] | None = None
    verbs: AgentVerbs | None = None


class AgentSilent(Struct, frozen=True):
    """The agent has not been heard for longer than the policy allows."""

    node: str
    since: datetime


class CompanySought(Struct, frozen=True):
    """A node under check asks whom to meet, and finds nobody: others may be called."""

    node: str


class WorkSeen(Struct, frozen=True):
    """The work that one cluster's schedulers show now; `cluster` "" is where there is none.

    `whole`: these are all nodes that they know, and they are synced. `lost`: why what they told counts no more.
    """

    views: tuple[WorkloadView, ...]
    whole: bool = False
    cluster: str = ""
    lost: str = ""


class NodeSeen(Struct, frozen=True):
    """Volatile readings of one node: power ("on", "off", "unknown"), the scheduler's readiness.

    `boot_id` is the scheduler's ("": none is shown, None: not looked at).
    `bmc_refuses` is why its BMC answers and cannot be used ("" where it can, None: not looked at), `bmc_says` why it
    counts as unreachable. `bmc_exceeds` is what of it was asked for ("sensors"), and why that is more than is read ("":
    it is not); None: not looked at.
    `bmc_login_refused`: the BMC turned the login away. `bmc_certificate`: that it shows another certificate than the
    one recorded, "" where it does not. `bmc_shown` is the one that it shows and is known by. `sensors` is a look at
    them of a node that is watched.
    """

    node: str
    power: str = ""
    ready: bool | None = None
    bmc_unreachable: bool | None = None
    bmc_refuses: str | None = None
    bmc_login_refused: bool | None = None
    bmc_certificate: str | None = None
    bmc_shown: ShownCertificate | None = None
    bmc_says: str = ""
    bmc_exceeds: tuple[str, str] | None = None
    boot_id: str | None = None
    sensors: SensorLook | None = None


class BootAsked(Struct, frozen=True):
    """A request from the boot network. `token` is answered after the commit."""

    token: int
    request: BootRequest


class Tick(Struct, frozen=True):
    """Time has passed."""


class AgentRefused(Struct, frozen=True):
    """An agent's word that is refused, and why; "" once it is taken again.

    `condition`: agent.outdated, its protocol is understood no more; agent.refused, its posts are not taken.
    """

    node: str
    text: str
    condition: str = "agent.outdated"


class AgentAhead(Struct, frozen=True):
    """The node's agent was told once that more was read than is known of: the journal is a copy from before."""

    node: str
    read: int
    acknowledged: int


class ClockSeen(Struct, frozen=True):
    """News of the clocks, an input of the controller.

    `unattended_s`: the process was held up, or confirmed time was caught up with. `leap_s`: the wall clock moved so
    much further than the monotonic one (less than 0: back). `agrees`: the clocks agree again after a doubt.
    """

    unattended_s: float = 0.0
    leap_s: float = 0.0
    wall: datetime | None = None
    agrees: bool = False

    def __bool__(self) -> bool:
        return bool(self.unattended_s or self.leap_s or self.agrees)


class FellowsSeen(Struct, frozen=True):
    """The controllers of the cell that are alive, this one among them."""

    fellows: tuple[Fellow, ...]


class FabricSeen(Struct, frozen=True):
    """A network was compared with its design."""

    report: FabricReport


class LinksSeen(Struct, frozen=True):
    """The ports of a network were read."""

    round: LinkRound


class SubnetSeen(Struct, frozen=True):
    """The managers of a network's subnet were looked at."""

    reading: SubnetReading


class RackSeen(Struct, frozen=True):
    """One look at an asset of a rack through its own BMC."""

    asset: str
    look: AssetLook


class TrendsSeen(Struct, frozen=True):
    """All readings were judged."""

    report: TrendReport


class AuditSeen(Struct, frozen=True):
    """The audit log has moved on to here."""

    seals: tuple[Seal, ...]


class DiskSeen(Struct, frozen=True):
    """Room on the journal's disk was looked at. `low`: why no observations are taken, "" where they are."""

    low: str


Input = (
    Observed
    | IntentAsked
    | Replied
    | AgentHeard
    | AgentSilent
    | WorkSeen
    | NodeSeen
    | Tick
    | AgentRefused
    | AgentAhead
    | ClockSeen
    | FellowsSeen
    | FabricSeen
    | LinksSeen
    | SubnetSeen
    | TrendsSeen
    | RackSeen
    | BootAsked
    | AuditSeen
    | DiskSeen
    | CompanySought
)
