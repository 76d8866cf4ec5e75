"""Tables and index with their overlay are a plain dict; one run gives one journal, whatever the hash seed."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hostler.core.state.fleet_index import Index
from hostler.core.state.overlay_table import Table
from tests.drawing import examples

keys = st.sampled_from("abcdefg")
values = st.none() | st.integers(0, 9)


class TableIsADict(RuleBasedStateMachine):
    """Mutants: `drop` merges; a deleted key is counted; a key in base and overlay is listed twice; what is put
    again after it was deleted has its old place.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table: Table[int] = Table()
        self.committed: dict[str, int] = {}
        self.model: dict[str, int] = {}

    @rule(key=keys, value=values)
    def put(self, key: str, value: int | None) -> None:
        self.table.put(key, value)
        if value is None:
            self.model.pop(key, None)
        else:
            self.model[key] = value

    @rule()
    def merge(self) -> None:
        self.table.merge()
        self.committed = dict(self.model)

    @rule()
    def drop(self) -> None:
        self.table.drop()
        self.model = dict(self.committed)

    @invariant()
    def reads_like_the_dict(self) -> None:
        assert len(self.table) == len(self.model)
        listed = list(self.table)
        assert listed == list(self.model)
        assert list(self.table.values()) == [self.model[key] for key in listed]
        assert list(self.table.base.items()) == list(self.committed.items())
        for key in "abcdefg":
            assert self.table.get(key) == self.model.get(key)
            assert (key in self.table) is (key in self.model)
        assert not self.table.bare or not self.model


class IndexIsADictOfSets(RuleBasedStateMachine):
    """Mutants: members in the order of their coming; an empty key is listed; `count` forgets the overlay."""

    def __init__(self) -> None:
        super().__init__()
        self.index = Index()
        self.committed: set[tuple[str, str]] = set()
        self.model: set[tuple[str, str]] = set()

    @rule(key=keys, member=keys)
    def add(self, key: str, member: str) -> None:
        self.index.add(key, member)
        self.model.add((key, member))

    @rule(key=keys, member=keys)
    def remove(self, key: str, member: str) -> None:
        self.index.remove(key, member)
        self.model.discard((key, member))

    @rule()
    def merge(self) -> None:
        self.index.merge()
        self.committed = set(self.model)

    @rule()
    def drop(self) -> None:
        self.index.drop()
        self.model = set(self.committed)

    @invariant()
    def reads_like_the_sets(self) -> None:
        for key in "abcdefg":
            members = sorted(member for k, member in self.model if k == key)
            assert self.index.members(key) == members
            assert self.index.count(key) == len(members)
        assert self.index.keys() == sorted({key for key, _ in self.model})


SETTINGS = settings(max_examples=examples(60, quick=20), stateful_step_count=30)
TestTable = TableIsADict.TestCase
TestTable.settings = SETTINGS
TestIndex = IndexIsADictOfSets.TestCase
TestIndex.settings = SETTINGS

HASH_SEEDS = ("0", "1", "4711")[: examples(3, quick=2)]
RUN = """
import hashlib
from tests.kit import encoded
from tests.property.test_any_history import chance
print(hashlib.sha256(b"".join(encoded(chance(seed).journal) for seed in range(6))).hexdigest())
"""


@pytest.mark.nightly("whole histories in processes of their own")
def test_one_seed_gives_one_journal_under_any_hash_seed() -> None:
    """Mutant: something iterates over a set of names."""
    root = Path(__file__).parents[2]
    found = set()
    for hash_seed in HASH_SEEDS:
        run = subprocess.run(
            [sys.executable, "-c", RUN],
            capture_output=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{root / 'src'}:{root}", "PATH": ""},
            text=True,
        )
        found.add(run.stdout.strip())
    assert len(found) == 1
    assert len(found.pop()) == hashlib.sha256().digest_size * 2
