"""Drills."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hostler.core.state.drills import DrillFault
from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts

LONGEST_MIN = 240.0


class StartDrill(Verb, frozen=True):
    """Have a sound node show a fault, and time what is done about it."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="drill")
    fault: Annotated[DrillFault, Meta(description="Fault that the node is to show.")]
    remedy: Annotated[
        Literal["yes", "no"], Meta(description="no: the node is cordoned at most, and its remedy is not carried out.")
    ] = "yes"
    minutes: Annotated[
        float, Meta(ge=1, le=LONGEST_MIN, description="It ends by itself after so many minutes at the latest.")
    ] = 60.0


class EndDrill(Verb, frozen=True):
    """End a node's drill now; what it has raised ends with it."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="drill end", easing=True)
