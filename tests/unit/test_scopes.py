"""Scopes: the text of a target or scope is read in one place, and nothing else takes it apart."""

import re
from pathlib import Path

import pytest

from hostler.core.state.scopes import CLUSTER, DOMAINS, FABRIC, FLEET, NODES, POOL, SWITCH, Scope

SOURCE = Path(__file__).parents[2] / "src/hostler"
JUDGES = ("sim/checkers/",)
"""Checkers judge from outside, and never by the code under test."""
KINDS = "|".join((POOL, CLUSTER, FABRIC, SWITCH, "firmware", *DOMAINS))
TAKEN_APART = re.compile(
    rf"""(startswith|removeprefix)\(\s*f?["']({KINDS}):"""
    r"""|\b(scope|domain|target)\.(r?partition|split|removeprefix|startswith)\(["'](?!/)"""
)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("fleet", FLEET, ""),
        ("nodes", NODES, ""),
        ("c1-n0060", "", "c1-n0060"),
        ("h12-operator-n1", "", "h12-operator-n1"),
        ("pool:train", POOL, "train"),
        ("cluster:k1", CLUSTER, "k1"),
        ("rack:r1", "rack", "r1"),
        ("cdu:c0", "cdu", "c0"),
        ("firmware:BIOS=1.2:3", "firmware", "BIOS=1.2:3"),
        ("rack:", "rack", ""),
        ("", "", ""),
    ],
)
def test_a_scope_is_read_and_written_as_it_was(text: str, kind: str, name: str) -> None:
    """Mutants: the last colon counts; FLEET is a node of that name."""
    scope = Scope.of(text)
    assert (scope.kind, scope.name, str(scope)) == (kind, name, text)


@pytest.mark.parametrize("text", ["rack:r1", "nvlink:d0", "leaf:l0", "power:f1", "cdu:c0"])
def test_failure_domains_are_domains(text: str) -> None:
    assert Scope.of(text).is_domain
    assert Scope.of(text).shared == f"member:{text}"


@pytest.mark.parametrize(
    "text", ["fleet", "nodes", "n1", "pool:p", "cluster:k", "fabric:ib", "switch:s1", "firmware:b=1"]
)
def test_what_is_shared_otherwise_is_no_domain(text: str) -> None:
    """Mutant: whatever has a colon is taken whole, and a cluster's name with it."""
    assert not Scope.of(text).is_domain


def test_members_of_a_pool_have_an_entry_of_their_own() -> None:
    assert Scope.of("pool:train").shared == "pool:train"
    assert Scope.of("firmware:BIOS=1").shared == "member:firmware:BIOS=1"


def test_a_name_counts_for_the_kind_that_is_asked_for() -> None:
    """Mutant: another kind's name passes for a pool's."""
    assert [Scope.of(text).named(POOL) for text in ("pool:train", "train", "rack:train", "fleet")] == [
        "train", "train", "", "",
    ]  # fmt: skip


def test_no_other_file_takes_a_scope_apart() -> None:
    """Mutant: one more `removeprefix("pool:")`."""
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "scopes.py" and not str(path.relative_to(SOURCE)).startswith(JUDGES)
        for line in path.read_text("utf-8").splitlines()
        if TAKEN_APART.search(line)
    ]
    assert found == []
