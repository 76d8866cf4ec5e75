"""A restored journal and a doubted clock."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class ReleaseRestore(Verb, frozen=True):
    """Let a restored cell act again, in its recorded modes."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.fleet, command="restore release")
    unheard: Annotated[int | None, Meta(description="Release it though so many nodes have not been heard.")] = None


class ConfirmClock(Verb, frozen=True):
    """Say that the controller's clock is right, though it leapt: what counts days counts on."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.fleet, command="clock confirm")
