"""Answers to proposed plans."""

from typing import ClassVar

from hostler.core.state.verbs.facts import Ending, Heading, Permission, Target, Verb, VerbFacts


class Approve(Verb, frozen=True):
    """Let a proposed plan go on."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.work)


class Reject(Verb, frozen=True):
    """Drop a proposed plan and hold the node."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.work)
    hours: Ending = None
