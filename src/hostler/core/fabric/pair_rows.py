"""Results of checks between nodes as somebody outside tells them: all of a list is taken, or nothing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from hostler.core.fabric.path_blame import PairResult
from hostler.core.state.input_problems import InvalidInputError, Problem

ROWS_MOST = 100_000
"""Rows of one list: eight rails of 4,096 nodes with three partners each."""
GBPS_MOST = 100_000.0
TOLD_MOST = 20
"""Problems of one list that are told."""

PortText = Annotated[str, Meta(min_length=3, max_length=160, description='"NODE:PORT"')]


class PairRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A rate in Gbit/s that a check reached from a port to a port."""

    a: PortText
    z: PortText
    gbps: Annotated[float, Meta(ge=0, le=GBPS_MOST)]


class KnownPorts(Struct, frozen=True):
    """Ports of a network: by a name of a host its name in the design, and by that its ports.

    No port is known of a host before a validation has seen its cables; then each is taken.
    """

    hosts: Mapping[str, str]
    ports: Mapping[str, Collection[str]]


def results_of(rows: Sequence[PairRow], known: KnownPorts, at: datetime) -> tuple[PairResult, ...]:
    """The results by the design's names. Raises InvalidInputError with the places of rows that are wrong."""
    problems: list[Problem] = []
    first: dict[tuple[str, str], int] = {}
    found: list[PairResult] = []
    for place, row in enumerate(rows):
        a, z = (_named(text, known) for text in (row.a, row.z))
        wrong = [*_unknown("a", row.a, a), *_unknown("z", row.z, z)]
        if not wrong and a == z:
            wrong = [("z", row.z, "another port than a")]
        elif not wrong and (before := first.setdefault((a, z), place)) != place:
            wrong = [("a", f"from {row.a} to {row.z} is told in results[{before}] too", "one result from port to port")]
        problems += [Problem(f"results[{place}].{field}", 0, what[:120], instead) for field, what, instead in wrong]
        found.append(PairResult(a, z, row.gbps, at))
        if len(problems) >= TOLD_MOST:
            break
    if problems:
        raise InvalidInputError(tuple(problems))
    return tuple(found)


def hosts_in(rows: Sequence[PairRow]) -> set[str]:
    """Names of hosts as the rows have them."""
    return {text.rpartition(":")[0] for row in rows for text in (row.a, row.z)}


def _named(text: str, known: KnownPorts) -> str:
    """The port by its device's name in the design, "" where the network has no such port."""
    name, _, port = text.rpartition(":")
    device = known.hosts.get(name, "") if port else ""
    if not device:
        return ""
    ports = known.ports.get(device, ())
    return f"{device}:{port}" if not ports or port in ports else ""


def _unknown(field: str, text: str, named: str) -> Iterator[tuple[str, str, str]]:
    if not named:
        yield (
            field,
            f"{text!r} is no port of a host of this network",
            'HOST:PORT as the design names it: "gpu-0001:mlx5_0"',
        )
