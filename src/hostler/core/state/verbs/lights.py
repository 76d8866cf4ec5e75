"""Locate lights."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Heading, Permission, Target, Verb, VerbFacts

LIT_H = 1.0


class Locate(Verb, frozen=True):
    """Light the locate LED of a node whose ticket you have claimed; it goes out by itself."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.repair)
    hours: Annotated[
        float, Meta(gt=0, le=24, description="It is put out after so many hours, and when its ticket is closed.")
    ] = LIT_H
    shift_lead: Annotated[bool, Meta(description="Light it without a claim.")] = False


class Unlocate(Verb, frozen=True):
    """Put the locate LED of a node out."""

    facts: ClassVar = VerbFacts(Permission.work, Target.node, Heading.repair, easing=True)
    shift_lead: Annotated[bool, Meta(description="Put out what somebody else has lit.")] = False
