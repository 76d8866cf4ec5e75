"""BMCs' certificates."""

from typing import ClassVar

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class RenewCertificate(Verb, frozen=True):
    """Have the site's authority give a node's BMC a new certificate now."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="bmc certificates renew")
