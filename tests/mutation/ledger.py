"""Keeps each mutant's outcome so far on disk: an interrupted run goes on; a changed file is tried anew."""

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.mutation.forked import Verdict
from tests.mutation.kinds import Mutant
from tests.mutation.trees import ROOT

PLACE = ROOT / "build" / "mutants.jsonl"


class Entry(Struct, frozen=True):
    """One mutant of a file as it was (`state`: the digest of the file and of its near tests), and its verdict."""

    state: str
    module: str
    mutant: Mutant
    verdict: Verdict


class Ledger:
    """Entries in a file of JSON lines; the last of a mutant counts."""

    def __init__(self, place: Path = PLACE) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._place = place
        self._known: dict[tuple[str, str], Entry] = {}
        if place.is_file():
            for line in place.read_bytes().splitlines():
                self._know(msgspec.json.decode(line, type=Entry))

    def _know(self, entry: Entry) -> None:
        self._known[entry.state, entry.mutant.key] = entry

    def find(self, state: str, mutant: Mutant) -> Entry | None:
        return self._known.get((state, mutant.key))

    def add(self, entry: Entry) -> None:
        self._know(entry)
        with self._place.open("ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")


def state_of(file: str, tests: tuple[str, ...]) -> str:
    """A digest of the file and of the test files near it."""
    digest = hashlib.sha256()
    for name in (file, *tests):
        digest.update((ROOT / name.partition("::")[0]).read_bytes())
    return digest.hexdigest()[:16]
