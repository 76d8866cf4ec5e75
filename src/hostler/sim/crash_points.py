"""A story cut at each of its boundaries in turn: the controller dies there, its commit fails, or it stands still."""

from collections.abc import Iterator

from msgspec import Struct

from hostler.sim.stories import Story, Telling, tell
from hostler.sim.world.message_faults import APPEND, CRASH, FAIL, PAUSE


class Cut(Struct, frozen=True):
    """A cut of a run; `wrong` says what it did otherwise than the uncut one, nothing where all is well."""

    story: str
    fates: dict[int, str]
    boundaries: tuple[str, ...]
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        at = ", ".join(f"{fate} at {n} ({self.boundaries[n]})" for n, fate in self.fates.items())
        return f"{self.story}: {at}: " + "; ".join(self.wrong)


def each(story: Story, fate: str, every: int = 1, first: int = 0) -> Iterator[Cut]:
    """One run per boundary; a commit can fail at an append only. `every` and `first` take a share of them."""
    whole = tell(story)
    may_be = [number for number, boundary in enumerate(whole.boundaries) if fate != FAIL or boundary == APPEND]
    for number in may_be[first::every]:
        yield _cut(story, {number: fate}, whole)


def pairs(story: Story, every: int = 1, first: int = 0) -> Iterator[Cut]:
    """One run per pair of boundaries, the second counted in the run that was cut at the first.

    `every` and `first` take a share of the first boundaries: every so many, beginning there.
    """
    whole = tell(story)
    for one in range(first, len(whole.boundaries), every):
        there = tell(story, {one: CRASH}).boundaries
        for two in range(one + 1, len(there)):
            yield _cut(story, {one: CRASH, two: CRASH}, whole)


def _cut(story: Story, fates: dict[int, str], whole: Telling) -> Cut:
    told = tell(story, fates)
    wrong = [str(violation) for violation in told.violations]
    for end, expected in zip(told.ends, whole.ends, strict=True):
        if end != expected:
            wrong.append(f"{end} instead of {expected}")
    if told.tickets != whole.tickets:
        wrong.append(f"open tickets {told.tickets} instead of {whole.tickets}")
    return Cut(story.name, fates, told.boundaries, tuple(wrong))


FATES = (CRASH, FAIL, PAUSE)
"""Fates of a controller at one boundary."""
