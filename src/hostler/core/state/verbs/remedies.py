"""Remedies that people may ask for."""

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from hostler.core.state.verbs.facts import Heading, Hours, Now, Permission, Target, Verb, VerbFacts


class RemedyRequest(Struct, frozen=True):
    """The condition that a request for a remedy becomes, the remedy that answers it, and what ends the condition.

    `domain` is the help of the same act on a whole rack or NVLink domain, "" where there is none.
    """

    condition: str
    remedy: str
    clears: str = "remedy"
    domain: str = ""


class RemedyVerb(Verb, frozen=True):
    """A remedy on nodes: it becomes a condition with the person's name, and is decided as any fault is."""

    remedy: ClassVar[RemedyRequest]
    now: Now = False


def _facts(heading: Heading, asks: Permission = Permission.disturb) -> VerbFacts:
    return VerbFacts(asks, Target.nodes, heading)


class Drain(RemedyVerb, frozen=True):
    """Keep new work away and wait until running work has ended."""

    facts: ClassVar = _facts(Heading.work)
    remedy: ClassVar = RemedyRequest(
        "operator.drain", "drain", domain="Cordon all of it, and wait until running work has ended on all of it."
    )
    hours: Annotated[Hours, Meta(description="Its cordon ends by itself after so many hours.")] = None


class ResetGpu(RemedyVerb, frozen=True):
    """Reset the node's GPUs."""

    facts: ClassVar = _facts(Heading.remedy)
    remedy: ClassVar = RemedyRequest(
        "operator.gpu_reset", "gpu_reset", domain="Drain all of it, reset its GPUs, and open it again."
    )


class Reboot(RemedyVerb, frozen=True):
    """Reboot, verify, return to work."""

    facts: ClassVar = _facts(Heading.remedy)
    remedy: ClassVar = RemedyRequest(
        "operator.reboot", "reboot", domain="Drain all of it, reboot its nodes, and open it again."
    )


class PowerCycle(RemedyVerb, frozen=True):
    """Power off and on, verify, return to work."""

    facts: ClassVar = _facts(Heading.remedy)
    remedy: ClassVar = RemedyRequest(
        "operator.power_cycle",
        "power_cycle",
        domain="Drain all of it, switch its nodes off and on, and open it again.",
    )


class PowerOff(RemedyVerb, frozen=True):
    """Power off, and keep off until work begins, a node that is out of production."""

    facts: ClassVar = _facts(Heading.remedy, Permission.work)
    remedy: ClassVar = RemedyRequest("operator.power_off", "power_off")


class UpdateFirmware(RemedyVerb, frozen=True):
    """Bring firmware to the baseline of its SKU."""

    facts: ClassVar = _facts(Heading.remedy)
    remedy: ClassVar = RemedyRequest("operator.firmware_update", "firmware_update")


class ReturnForMaintenance(RemedyVerb, frozen=True):
    """Take it out of its cluster, for people to work on."""

    facts: ClassVar = _facts(Heading.repair)
    remedy: ClassVar = RemedyRequest(
        "operator.maintenance",
        "triage",
        clears="operator",
        domain="Drain all of it and take its nodes out of service.",
    )


class RequestReplacement(RemedyVerb, frozen=True):
    """Take it out of its pool for good; a spare takes its place."""

    facts: ClassVar = _facts(Heading.repair)
    remedy: ClassVar = RemedyRequest("operator.replacement", "triage")


class ReleaseNode(RemedyVerb, frozen=True):
    """Take it out of its pool, sanitised, to be a spare."""

    facts: ClassVar = _facts(Heading.life)
    remedy: ClassVar = RemedyRequest("operator.release", "release")
