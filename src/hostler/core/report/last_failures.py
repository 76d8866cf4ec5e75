"""Last acts on a node that came to nothing, the newest first: what failed, when and why, before all else of it."""

from datetime import datetime, timedelta

from hostler.core.state.model import ActFailure, Node

SHOWN_FOR = timedelta(days=7)


def last_failures(node: Node, now: datetime) -> tuple[ActFailure, ...]:
    """Failures on the node within a week that nothing has made good: plans, and what ran beside them."""
    beside = node.aside_failed
    aside = (ActFailure(beside.kind, beside.at, beside.result, beside.detail),) if beside is not None else ()
    lately = (one for one in (*node.failed, *aside) if now - one.at <= SHOWN_FOR)
    return tuple(sorted(lately, key=lambda one: one.at, reverse=True))


def failure_text(failure: ActFailure) -> str:
    """The failure in words: what, how it ended, when and why."""
    why = f": {failure.why}" if failure.why else ""
    return f"{failure.what} {failure.result.replace('_', ' ')} at {failure.at:%Y-%m-%d %H:%M} UTC{why}"
