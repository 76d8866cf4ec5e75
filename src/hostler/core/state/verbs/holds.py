"""Cordons, holds and pauses."""

from typing import ClassVar

from hostler.core.state.verbs.facts import Ending, Heading, Permission, Target, Verb, VerbFacts


class Cordon(Verb, frozen=True):
    """Keep new work away; running work finishes."""

    facts: ClassVar = VerbFacts(Permission.disturb, Target.nodes, Heading.work)
    hours: Ending = None


class Uncordon(Verb, frozen=True):
    """Lift the cordons that people placed."""

    facts: ClassVar = VerbFacts(Permission.disturb, Target.nodes, Heading.work, easing=True)


class PlaceHold(Verb, frozen=True, tag="hold"):
    """Let nothing disturb it until the hold is released."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.scope, command="hold place", easing=True)
    hours: Ending = None


class ReleaseHold(Verb, frozen=True, tag="release"):
    """Release a hold by its id."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.hold, command="hold release", easing=True)


class Pause(Verb, frozen=True):
    """Disturb nothing new within a scope; easing and protection go on."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.scope, command="pause", easing=True)


class Resume(Verb, frozen=True):
    """End a pause."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.scope, command="resume", easing=True)
