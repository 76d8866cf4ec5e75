"""Configuration put in force, and its rollout."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class Activate(Verb, frozen=True):
    """Put a whole checked configuration in force, by a rollout where much acts."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fleet, command="policy activate", route="config")
    at_once: Annotated[bool, Meta(description="Without a rollout, which takes a second person.")] = False


class StopRollout(Verb, frozen=True):
    """Stop a rollout: the configuration before decides everywhere again."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.rollout, command="rollout stop")
