"""The end of a request: one verb for whatever a person asked for and is not done yet."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hostler.core.state.verbs.facts import Heading, Permission, Target, Verb, VerbFacts

What = Literal[
    "",
    "approval",
    "clean",
    "cordon",
    "deploy",
    "drain",
    "inspect",
    "locate",
    "power-cycle",
    "power-off",
    "reboot",
    "release-node",
    "renew-certificate",
    "renew-login",
    "request-replacement",
    "reset-gpu",
    "retire",
    "return-for-maintenance",
    "schedule-maintenance",
    "update-firmware",
]
"""Verbs whose requests can be called off, "approval" for what waits for a second person, "" for all that is pending."""


class CallOff(Verb, frozen=True):
    """Call off what people asked for, as far as it is not done; what was begun and cannot be taken back is said."""

    facts: ClassVar = VerbFacts(Permission.withdraw, Target.nodes, Heading.work, easing=True)
    what: Annotated[
        What, Meta(description="The verb that was asked for; all that is pending where left out, but for cordons.")
    ] = ""
