"""Succession of the lease: its possible next holder, and the end of the present one.

Pure: no database is known here.
"""

from hostler.ports import FencedError, Lease


def next_holder(now: Lease, holder: str, address: str, seen: Lease | None) -> Lease:
    """The lease once `holder` has it; FencedError where somebody was quicker than who has `seen` it."""
    assert holder, "a lease without a holder is one that nobody has"
    if seen is not None and seen != now:
        raise FencedError(
            f"{now.holder or 'nobody'} holds epoch {now.epoch}: the lease changed since it was looked at"
            "; this controller stands by and looks again"
        )
    return Lease(epoch=now.epoch + 1, holder=holder, address=address)


def refuse_fenced(now: Lease, epoch: int) -> None:
    """Raises FencedError unless the epoch is the one that holds the lease."""
    if epoch != now.epoch or not now.holder:
        raise FencedError(
            f"epoch {epoch} is fenced: {now.holder or 'nobody'} holds epoch {now.epoch}; this controller stands by"
        )


def changed_hands(before: Lease, now: Lease) -> bool:
    """Whether another holds the lease, or nobody does any more; a renewal changes nothing."""
    return (before.epoch, before.holder) != (now.epoch, now.holder)
