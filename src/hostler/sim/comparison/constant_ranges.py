"""The constants of hard worlds with their sources, and how much the answer depends on each."""

from collections.abc import Iterator

from msgspec import Struct

from hostler.sim.comparison.outcome import shown
from hostler.sim.comparison.sensitivity import RangeEnd, spread
from hostler.sim.constants import CONSTANTS


class ConstantSensitivity(Struct, frozen=True):
    """The sensitivity runs: their size, and a row for each end of each constant."""

    nodes: int
    days: float
    seeds: int
    ends: tuple[RangeEnd, ...]


def told(ranges: ConstantSensitivity) -> Iterator[str]:
    """Markdown: the constants, then the sensitivity table."""
    yield from constants()
    yield from _sensitivity(ranges)


def constants() -> Iterator[str]:
    """Markdown: every constant with its range, its value and its source."""
    yield "## The numbers of hard worlds"
    yield ""
    yield (
        "Where a source gives a range its middle is used, the geometric one of times and factors. `assumed`: nobody "
        "has published it, as far as we know. Every one has two rows in the sensitivity table."
    )
    yield ""
    yield "| constant | low | used | high | what it is | source |"
    yield "|---|---|---|---|---|---|"
    for constant in CONSTANTS.values():
        numbers = " | ".join(f"{number:g}" for number in (constant.low, constant.value, constant.high))
        yield f"| `{constant.name}` | {numbers} | {constant.meaning} | {constant.source} |"
    yield ""


def _sensitivity(ranges: ConstantSensitivity) -> Iterator[str]:
    yield "## Sensitivity"
    yield ""
    if not ranges.ends:
        yield "Not run yet: `make peers` goes on where it was cut off."
        yield ""
        return
    peers = tuple(ranges.ends[0].against_ours)
    yield (
        f"{ranges.nodes:,} nodes, {ranges.days:g} days, {ranges.seeds} seeds; one constant at a time at an end of its "
        "range. Our goodput, and each peer's goodput (in points) and human touches less ours in the same worlds."
    )
    yield ""
    for peer in peers:
        least, most = (100 * difference for difference in spread(ranges.ends, peer))
        yield f"- Over all rows {peer}'s goodput less ours goes from {least:+.2f} to {most:+.2f} points."
    if same := _unmoved(ranges.ends):
        yield (
            f"- {same} of the {len(ranges.ends)} rows are as the first: in so few worlds nothing happened that their "
            "constant decides, or too little to show."
        )
    yield ""
    titles = " | ".join(f"{peer}: goodput | {peer}: touches" for peer in peers)
    yield f"| constant | value | our goodput % | {titles} |"
    yield f"|---|---|---|{'---|---|' * len(peers)}"
    for end in ranges.ends:
        yield _row(end, f"`{end.constant}`" if end.constant else "as used", f"{end.value:g}" if end.constant else "")
    yield ""
    lacking = 1 + 2 * len(CONSTANTS) - len(ranges.ends)
    if lacking:
        yield f"Of the table {lacking} rows are not run yet: `make peers` goes on where it was cut off."
        yield ""


def _unmoved(ends: tuple[RangeEnd, ...]) -> int:
    """How many rows show what the hard world as it is shows."""
    first, *others = ends
    return sum((end.goodput, end.against_ours) == (first.goodput, first.against_ours) for end in others)


def _row(end: RangeEnd, name: str, value: str) -> str:
    cells = (
        f"{shown('goodput', differences['goodput'], signed=True)} | "
        f"{shown('human_touches', differences['human_touches'], signed=True)}"
        for differences in end.against_ours.values()
    )
    return f"| {name} | {value} | {shown('goodput', end.goodput)} | {' | '.join(cells)} |"
