"""BMCs' passwords."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Name, Permission, Target, Verb, VerbFacts


class RenewLogin(Verb, frozen=True):
    """Give a node's BMC, or the BMC of one of its DPUs, a new password of its own now."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="bmc credentials rotate")
    anew: Annotated[
        bool, Meta(description="Wrong passwords count from none again: you know that it has the right one.")
    ] = False
    dpu: Annotated[
        Name, Meta(description="The address of the DPU's BMC that is meant, as the node's dpu_bmc names it.")
    ] = ""
    certificate: Annotated[
        Name, Meta(description="With dpu: the SHA-256 of the certificate by which that BMC is known from now on.")
    ] = ""
