"""Answers to what waits for a second person."""

from typing import ClassVar

from hostler.core.state.verbs.facts import Permission, Target, Verb, VerbFacts


class ApproveRequest(Verb, frozen=True):
    """Approve what somebody else asked for."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.approval, command="approval approve")


class DenyRequest(Verb, frozen=True):
    """Deny what somebody else asked for."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.approval, command="approval deny")


class WithdrawRequest(Verb, frozen=True):
    """Withdraw what you asked for."""

    facts: ClassVar = VerbFacts(Permission.disturb, Target.approval, command="approval withdraw")
