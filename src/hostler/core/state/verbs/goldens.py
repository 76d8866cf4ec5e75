"""Goldens: bits that peers gave, and that a person may have learned anew."""

from typing import ClassVar

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class RetireGolden(Verb, frozen=True):
    """Forget the golden of a stack: it is learned anew, and who differed from it differs from nothing."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.golden, command="golden retire")
