"""BMCs' passwords."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class RenewLogin(Verb, frozen=True):
    """Give a node's BMC a new password of its own now."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="bmc credentials rotate")
    anew: Annotated[
        bool, Meta(description="Wrong passwords count from none again: you know that it has the right one.")
    ] = False
