"""The acts on nodes that `hostler node` offers: a table from verb to its sentence and the options it takes."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

from cyclopts import Parameter

from hostler.cli.options import ACT


class More(Protocol):
    """Options of one act beside those that all take: a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def args(self) -> dict[str, str]:
        """What the intent carries for them."""
        ...


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Nothing:
    """No further options."""

    def args(self) -> dict[str, str]:
        return {}


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Timing:
    """Whether it may wait for the node's work."""

    now: Annotated[
        bool,
        Parameter(negative=(), help="Do not wait for a better moment; work that may not be disturbed still is not."),
    ] = False

    def args(self) -> dict[str, str]:
        return {"now": "true"} if self.now else {}


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Hours:
    """How long it stands."""

    hours: Annotated[float | None, Parameter(help="It ends by itself after so many hours.")] = None

    def args(self) -> dict[str, str]:
        return {} if self.hours is None else {"hours": f"{self.hours:g}"}


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class DrainOptions:
    """How a drain goes on and ends."""

    now: Annotated[bool, Parameter(negative=(), help="Do not wait for a better moment.")] = False
    hours: Annotated[float | None, Parameter(help="Its cordon ends by itself after so many hours.")] = None

    def args(self) -> dict[str, str]:
        return Timing(self.now).args() | Hours(self.hours).args()


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Work:
    """What proves that hands go into the right machine."""

    serial: Annotated[str, Parameter(help="The serial number scanned at the machine.")]
    ticket: Annotated[str, Parameter(show_default=False, help="The ticket that is worked on.")] = ""
    hours: Annotated[float | None, Parameter(help="The work's hold ends by itself after so many hours.")] = None

    def args(self) -> dict[str, str]:
        given = {"serial": self.serial, "ticket": self.ticket}
        return {key: value for key, value in given.items() if value} | Hours(self.hours).args()


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Lead:
    """Who ends another's work."""

    shift_lead: Annotated[bool, Parameter(negative=(), help="End work that somebody else began.")] = False

    def args(self) -> dict[str, str]:
        return {"shift_lead": "true"} if self.shift_lead else {}


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Which:
    """The condition that is meant."""

    condition: Annotated[str, Parameter(help="Its type or id; see `hostler node conditions`.")]

    def args(self) -> dict[str, str]:
        return {"condition": self.condition}


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class CheckProfile:
    """The check that is meant."""

    profile: Annotated[str, Parameter(help="What the node waits for; see `hostler node get`.")]

    def args(self) -> dict[str, str]:
        return {"profile": self.profile}


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class NewName:
    """A name that the outside has for the node now."""

    kind: Annotated[str, Parameter(help="Which kind of name: hostname, serial, bmc, mac, kubernetes or slurm.")]
    value: Annotated[str, Parameter(help="The new name; for bmc the Redfish address.")]

    def args(self) -> dict[str, str]:
        return {"kind": self.kind, "value": self.value}


@dataclass(frozen=True)
class NodeVerb:
    """A verb, the group it is listed under, one sentence, and the options it takes."""

    verb: str
    group: str
    help: str
    more: type[More] = Nothing


_WORK, _REMEDY, _HANDS, _LIFE = "Work on a node", "Remedies", "Repair", "Lifecycle"

ACTS: tuple[NodeVerb, ...] = (
    NodeVerb("cordon", _WORK, "Keep new work away; running work finishes.", Hours),
    NodeVerb("uncordon", _WORK, "Lift the cordons that people placed."),
    NodeVerb("drain", _WORK, "Keep new work away and wait until running work has ended.", DrainOptions),
    NodeVerb("approve", _WORK, "Let a proposed plan go on."),
    NodeVerb("reject", _WORK, "Drop a proposed plan and hold the node.", Hours),
    NodeVerb("clear-condition", _WORK, "End a condition by your word.", Which),
    NodeVerb("reset-gpu", _REMEDY, "Reset the node's GPUs.", Timing),
    NodeVerb("reboot", _REMEDY, "Reboot, verify, return to work.", Timing),
    NodeVerb("power-cycle", _REMEDY, "Power off and on, verify, return to work.", Timing),
    NodeVerb(
        "power-off",
        _REMEDY,
        "Power off, and keep off until work begins, a node that is out of production.",
        Timing,
    ),
    NodeVerb("update-firmware", _REMEDY, "Bring firmware to the baseline of its SKU.", Timing),
    NodeVerb("return-for-maintenance", _HANDS, "Take it out of its cluster, for people to work on.", Timing),
    NodeVerb("request-replacement", _HANDS, "Take it out of its pool for good; a spare takes its place.", Timing),
    NodeVerb("start-work", _HANDS, "Your hands are in the machine: it stays dark until end-work.", Work),
    NodeVerb("end-work", _HANDS, "Your hands are out of the machine.", Lead),
    NodeVerb("vouch", _HANDS, "Pass, on your word and once, a check that nobody on the node can answer.", CheckProfile),
    NodeVerb("rma-send", _HANDS, "Send it from triage to its vendor, on your word."),
    NodeVerb("rma-return", _HANDS, "The vendor has sent it back."),
    NodeVerb("certify", _LIFE, "Physical inspection and cabling are done."),
    NodeVerb("release-node", _LIFE, "Take it out of its pool, sanitised, to be a spare.", Timing),
    NodeVerb("zap-again", _LIFE, "Try the firmware again after zap_fail."),
    NodeVerb("triage", _LIFE, "From zap_fail to triage."),
    NodeVerb("debug", _LIFE, "From triage to engineers."),
    NodeVerb("onboard", _LIFE, "From debug back to onboarding."),
    NodeVerb("rebind", _LIFE, "It has another name now: a replaced BMC, a renamed host.", NewName),
    NodeVerb("retire", _LIFE, "Gone for good; its history remains."),
)
"""Every verb of `core.intents.verbs.VERBS` that is about one node; a test holds the two together."""
