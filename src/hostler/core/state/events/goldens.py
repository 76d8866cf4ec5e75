"""Events of goldens: each carries the stack's bits as they stand after it."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.events.row import EventRow, EventRows
from hostler.core.state.fleet import Fleet
from hostler.core.state.goldens import Culprit, Golden


class BitsTold(Struct, frozen=True, tag="bits_told"):
    """A node gave bits on a stack that has no golden yet, or agrees with one that few peers gave."""

    golden: Golden
    node: str


class GoldenLearned(Struct, frozen=True, tag="golden_learned"):
    """So many machines agree that their bits are the golden. `nearest`: the nearest stack with other bits."""

    golden: Golden
    node: str
    nearest: str = ""


class BitsDisputed(Struct, frozen=True, tag="bits_disputed"):
    """A part of a node gave other bits than the golden: a witness must tell node, stack and golden apart."""

    golden: Golden
    node: str
    part: str


class WitnessHeard(Struct, frozen=True, tag="witness_heard"):
    """Another machine did the same work while a node's difference was undecided."""

    golden: Golden
    node: str
    part: str
    witness: str


class BitsJudged(Struct, frozen=True, tag="bits_judged"):
    """A difference is decided. A golden that is the culprit is gone with this."""

    golden: Golden
    node: str
    part: str
    culprit: Culprit
    why: str


class GoldenRetired(Struct, frozen=True, tag="golden_retired"):
    """A person has a golden learned anew."""

    golden: Golden
    person: str
    reason: str


GoldenEvent = BitsTold | GoldenLearned | BitsDisputed | WitnessHeard | BitsJudged | GoldenRetired


def golden_subject(golden: str) -> str:
    """The name under which a golden's history is found."""
    return f"golden:{golden}"


def _of_node(event: BitsTold | GoldenLearned | BitsDisputed | BitsJudged) -> tuple[str, ...]:
    return (event.node, golden_subject(event.golden.id))


def _of_witness(event: WitnessHeard) -> tuple[str, ...]:
    return (event.node, event.witness, golden_subject(event.golden.id))


def _of_retired(event: GoldenRetired) -> tuple[str, ...]:
    nodes = dict.fromkeys(dispute.node for dispute in event.golden.disputes)
    return (golden_subject(event.golden.id), *nodes)


def _put(fleet: Fleet, event: BitsTold | GoldenLearned | BitsDisputed | WitnessHeard, _at: datetime) -> None:
    fleet.put_golden(event.golden.id, event.golden)


def _judge(fleet: Fleet, event: BitsJudged, _at: datetime) -> None:
    fleet.put_golden(event.golden.id, None if event.culprit is Culprit.golden else event.golden)


def _retire(fleet: Fleet, event: GoldenRetired, _at: datetime) -> None:
    fleet.put_golden(event.golden.id, None)


ROWS: EventRows = (
    EventRow(BitsTold, _of_node, _put),
    EventRow(GoldenLearned, _of_node, _put),
    EventRow(BitsDisputed, _of_node, _put),
    EventRow(WitnessHeard, _of_witness, _put),
    EventRow(BitsJudged, _of_node, _judge),
    EventRow(GoldenRetired, _of_retired, _retire),
)
