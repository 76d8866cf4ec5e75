"""Networks: their designs, and their validation."""

from typing import ClassVar

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class RegisterFabric(Verb, frozen=True):
    """Make a network known with its design, or give it a new one."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fleet, command="fabric register", route="fabrics")
    fabric: str = ""


class RemoveFabric(Verb, frozen=True):
    """Validate a network no longer; its findings and their tickets are over."""

    facts: ClassVar = VerbFacts(Permission.configure, Target.fabric, command="fabric remove")


class ValidateFabric(Verb, frozen=True):
    """Compare a network with its design now, not only when its turn comes."""

    facts: ClassVar = VerbFacts(Permission.work, Target.fabric, command="fabric validate")
