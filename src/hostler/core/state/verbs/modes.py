"""How far Hostler acts by itself: modes of pools, and the storm brake."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.pool_mode import Mode
from hostler.core.state.verbs.facts import Name, Permission, Target, Verb, VerbFacts


class SetMode(Verb, frozen=True, tag="mode"):
    """Set how far remedies of a pool go by themselves."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.pool, command="pool mode")
    mode: Annotated[Mode, Meta(description="Only say, propose for approval, or do.")]
    remedy: Annotated[Name, Meta(description="The remedy; `*` for all others.")] = "*"


class ReleaseBrake(Verb, frozen=True):
    """Let disruption go on after the storm brake has latched."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.fleet, command="brake release", easing=True)
