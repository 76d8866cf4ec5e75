"""A reading counts once it has repeated itself, for each part by itself: a flickering sensor hides no other."""

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.sensor_findings import Subject
from hostler.core.diagnose.sensor_hysteresis import SENSOR_RULES
from hostler.core.state.model import Observation

MAX_SUBJECTS = 4096
"""Of one BMC; what goes beyond is counted from its first look again."""

Story = tuple[tuple[str, bool, int], ...]
"""Word about a part: condition, whether it stands, severity."""


class RepeatedReading(Struct):
    """Last word about a part, in how many looks in a row it was said, and the word that was told before."""

    story: Story
    looks: int = 1
    told: Story | None = None


class Settled(Struct, frozen=True):
    """`news`: something has repeated itself that was not told yet. `open`: something waits for its repetition."""

    observation: Observation
    news: bool
    open: bool


def settle(heard: dict[str, RepeatedReading], observation: Observation, subjects: dict[str, Subject]) -> Settled:
    """Count this look in `heard`; the observation that results leaves out what still waits."""
    waiting: set[str] = set()
    news = False
    for part, subject in subjects.items():
        story = _story(subject)
        known = heard.get(part)
        if known is None or known.story != story:
            known = heard[part] = RepeatedReading(story, 1, known.told if known else None)
        else:
            known.looks += 1
        if known.looks < _needed(story):
            waiting.update(subject.names)
        elif known.told != story:
            news = True
    for gone in [part for part in heard if part not in subjects] if len(heard) > MAX_SUBJECTS else ():
        del heard[gone]
    facts = {name: value for name, value in observation.facts.items() if name not in waiting}
    return Settled(replace(observation, facts=facts), news, bool(waiting))


def told(heard: dict[str, RepeatedReading]) -> None:
    """Note that everything which had repeated itself has been told."""
    for known in heard.values():
        if known.looks >= _needed(known.story):
            known.told = known.story


def forget(heard: dict[str, RepeatedReading]) -> None:
    """Readings are told once more when it next repeats: who reads it may have lost it."""
    for known in heard.values():
        known.told = None


def _story(subject: Subject) -> Story:
    said = [(finding.type, finding.standing, int(finding.severity)) for finding in subject.findings]
    if subject.unread:
        said.append(("observation.unreadable", True, 0))
    return tuple(sorted(said))


def _needed(story: Story) -> int:
    """So many looks as the gravest of what stands asks for; where nothing does, the most careful of what is over."""
    standing = [(severity, SENSOR_RULES[kind].raise_looks) for kind, stands, severity in story if stands]
    if standing:
        return max(standing)[1]
    return max((SENSOR_RULES[kind].clear_looks for kind, _, _ in story), default=1)
