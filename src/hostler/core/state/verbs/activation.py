"""Configuration put in force, and its rollout."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts

COMMIT = r"^([0-9a-f]{40}|[0-9a-f]{64}|)$"
PLAIN = r"^[!-?A-~]*$"
"""Printable ASCII without a space, and without the sign before which an address has its login."""


class Activate(Verb, frozen=True):
    """Put a whole checked configuration in force, by a rollout where much acts."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fleet, command="policy activate", route="config")
    at_once: Annotated[bool, Meta(description="Without a rollout, which takes a second person.")] = False
    commit: Annotated[
        str,
        Meta(pattern=COMMIT, description="The Git commit that the documents are of; `policy sync` gives it."),
    ] = ""
    ref: Annotated[str, Meta(pattern=PLAIN, max_length=255, description="The branch or tag that led to it.")] = ""
    origin: Annotated[
        str, Meta(pattern=PLAIN, max_length=500, description="The repository's address, without a login.")
    ] = ""


class StopRollout(Verb, frozen=True):
    """Stop a rollout: the configuration before decides everywhere again."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.rollout, command="rollout stop")
