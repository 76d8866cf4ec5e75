"""Approvals that one request led to, so that a second person answers them as one."""

from collections.abc import Iterable
from datetime import timedelta

from hostler.core.state.change_control import Approval

TOGETHER = timedelta(minutes=10)
"""Longest time between two asks of one request."""


def requests_of(approvals: Iterable[Approval]) -> dict[str, str]:
    """For each approval the first one of its request: the same person, act, reason and documents, asked soon after.

    A command over many nodes asks for each of them, and so does a script over the API: the journal shows single
    intents, and who is asked to say yes sees what was wanted as a whole.
    """
    found: dict[str, str] = {}
    latest: dict[tuple[object, ...], Approval] = {}
    for approval in sorted(approvals, key=lambda one: (one.asked, one.id)):
        wanted = _wanted(approval)
        before = latest.get(wanted)
        together = before is not None and approval.asked - before.asked <= TOGETHER
        found[approval.id] = found[before.id] if together and before is not None else approval.id
        latest[wanted] = approval
    return found


def _wanted(approval: Approval) -> tuple[object, ...]:
    intent, configuration = approval.intent, approval.configuration
    sha256 = configuration.sha256 if configuration else ""
    return intent.person.casefold(), intent.verb, tuple(sorted(intent.args.items())), intent.reason, sha256
