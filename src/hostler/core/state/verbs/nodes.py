"""Nodes and assets made known, moved along the graph, renamed, retired; their checks and conditions."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.assets import BMC_CERTIFICATE, DPU_BMC, MAC, OUTLET, PROVIDER
from hostler.core.state.expected import FieldOwner
from hostler.core.state.verbs.facts import Heading, Name, Permission, Target, Verb, VerbFacts

_ADDRESSES = ("bmc", BMC_CERTIFICATE, DPU_BMC, OUTLET)
REBINDABLE = ("hostname", "serial", *_ADDRESSES, "tpm", MAC, "kubernetes", "slurm", PROVIDER)
"""Kinds of names that the outside has for a node, and may have anew."""
NO_BMC = "none"
"""Value of kind bmc by which a person says that the node has no BMC, or none that will serve again."""


class Register(Verb, frozen=True):
    """Make nodes of an inventory known, to be brought up."""

    facts: ClassVar = VerbFacts(Permission.enrol, Target.fleet, command="node register", route="nodes")
    nodes: str = ""


class Adopt(Verb, frozen=True):
    """Take over nodes that run in production already."""

    facts: ClassVar = VerbFacts(Permission.enrol, Target.fleet, command="adopt", route="adopt")
    nodes: str = ""


class Admit(Verb, frozen=True):
    """Carry out an admission plan: register the expected nodes it adds, and change the fields it names."""

    facts: ClassVar = VerbFacts(Permission.enrol, Target.fleet, command="admission apply", route="admission")
    source: Annotated[FieldOwner, Meta(description="Where the inventory came from: netbox or file.")] = FieldOwner.file
    nodes: str = ""
    digest: Annotated[Name, Meta(description="The plan's digest, as `hostler admission plan` shows it.")] = ""


class RegisterAssets(Verb, frozen=True):
    """Make assets known that are not nodes."""

    facts: ClassVar = VerbFacts(Permission.enrol, Target.fleet, command="asset register", route="assets")
    assets: str = ""


class ClearCondition(Verb, frozen=True):
    """End a condition by your word."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.work)
    condition: Annotated[Name, Meta(description="Its type or id; see `hostler node conditions`.")]


class Vouch(Verb, frozen=True):
    """Pass, on your word and once, a check that nobody on the node can answer."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.repair)
    profile: Annotated[Name, Meta(description="What the node waits for; see `hostler node get`.")]


class RmaSend(Verb, frozen=True):
    """Send it from triage to its vendor, on your word."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.repair)


class RmaReturn(Verb, frozen=True):
    """The vendor has sent it back."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.repair)


class Certify(Verb, frozen=True):
    """Physical inspection and cabling are done."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.life)


class ZapAgain(Verb, frozen=True):
    """Bring the firmware to the baseline again, from zap_fail or from test."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.life)


class Triage(Verb, frozen=True):
    """From zap_fail to triage."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.life)


class Debug(Verb, frozen=True):
    """From triage to engineers."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.life)


class Onboard(Verb, frozen=True):
    """From debug back to onboarding."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.life)


class Rebind(Verb, frozen=True):
    """Give a node another name: a replaced BMC, a renamed host."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.life)
    kind: Annotated[Name, Meta(description=f"Kind of name: {', '.join(REBINDABLE[:-1])} or {REBINDABLE[-1]}.")]
    value: Annotated[
        str,
        Meta(
            max_length=4096,
            description="The new name; for bmc the Redfish address, or none; for mac, outlet, dpu_bmc all, with commas "
            "between.",
        ),
    ]


class Retire(Verb, frozen=True):
    """Gone for good; its history remains. A password that its BMC was given is wiped first."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.life)
    credentials_left: Annotated[
        str,
        Meta(
            max_length=500,
            description="Why its BMC's password stays there and in its secret, as where that BMC is dead.",
        ),
    ] = ""
