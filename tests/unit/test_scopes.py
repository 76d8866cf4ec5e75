"""Scopes: the text of a target or scope is read in one place, and nothing else takes it apart."""

import re
import typing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from hostler.core.planning.domain_plans import DomainAct
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state import events as e
from hostler.core.state.scopes import (
    ALONE,
    CLUSTER,
    DOMAINS,
    FABRIC,
    FLEET,
    NODES,
    POOL,
    SWITCH,
    ActGroup,
    Scope,
    scope_hook,
    text_hook,
)
from hostler.core.state.snapshot import State

SOURCE = Path(__file__).parents[2] / "src/hostler"
JUDGES = ("sim/checkers/",)
"""Checkers judge from outside, and never by the code under test."""
READS = {
    "core/state/intent.py": "an intent's target, as a person wrote it",
    "core/policy/blast_radius.py": "the name of a node, asset or domain that a person or the API names",
    "core/intents/bounds.py": "an intent's target, and that of what it names: a ticket, a return, an approval",
    "core/intents/named_targets.py": "names that an intent gives, as a person wrote them",
    "core/intents/fabrics.py": "a network's name, as a person wrote it",
    "core/intents/registration.py": "domains of a document",
    "core/planning/yielded_places.py": "a place of a budget, as the fleet's index has it",
    "controller/rack_turns.py": "the agenda's entry of a rack",
    "runtime/notice_places.py": "what a ticket or a plan is about",
    "server/routes/listings.py": "what a ticket is about",
    "server/tenant_redaction_rules.py": "an intent's target, what a ticket is about",
    "cli/reference/example_values.py": "texts of examples",
}
"""The files that read a scope from text, with what text that is; everything else is given the Scope."""
KINDS = "|".join((POOL, CLUSTER, FABRIC, SWITCH, "firmware", *DOMAINS))
TAKEN_APART = re.compile(
    rf"""(startswith|removeprefix)\(\s*f?["']({KINDS}):"""
    r"""|\b(scope|domain|target)\.(text\.)?(r?partition|r?split|removeprefix|startswith)\(["'](?!/)"""
    r"""|\bstr\((scope|domain)\)\."""
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
        ("fleet:c1", "", "fleet:c1"),
        (":r1", "", ":r1"),
        ("", "", ""),
    ],
)
def test_a_scope_is_read_and_written_as_it_was(text: str, kind: str, name: str) -> None:
    """Mutants: the last colon counts; FLEET is a node of that name."""
    scope = Scope.of(text)
    assert (scope.kind, scope.name, str(scope)) == (kind, name, text)


@given(st.text(max_size=20) | st.sampled_from((*DOMAINS, POOL, FLEET, NODES)).map(lambda kind: f"{kind}:"))
def test_a_scope_keeps_its_text(text: str) -> None:
    """Text of any kind is written back as a journal holds it. Mutant: ":r1" loses its colon."""
    assert str(Scope.of(text)) == text


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


def test_a_scope_is_sent_and_stored_as_its_text() -> None:
    paused = e.PauseSet(Scope(POOL, "train"), paused=True, person="ann", reason="why")
    stored = msgspec.json.encode(paused, enc_hook=text_hook)
    assert msgspec.json.decode(stored)["scope"] == "pool:train"
    assert msgspec.json.decode(stored, type=e.PauseSet, dec_hook=scope_hook) == paused


@pytest.mark.parametrize("wrong", ["7", "null", '{"kind": "pool", "name": "train"}', '["pool:train"]'])
def test_what_is_no_scope_is_refused_with_its_place_and_what_to_write(wrong: str) -> None:
    """Mutant: whatever is stored becomes a scope."""
    stored = f'{{"scope": {wrong}, "paused": true, "person": "ann", "reason": "", "type": "pause_set"}}'
    with pytest.raises(msgspec.ValidationError, match=r"is no scope; write fleet, KIND:NAME .* at `\$\.scope`"):
        msgspec.json.decode(stored, type=e.PauseSet, dec_hook=scope_hook)


def test_hooks_leave_other_types_to_msgspec() -> None:
    with pytest.raises(NotImplementedError):
        text_hook(object())
    with pytest.raises(NotImplementedError):
        scope_hook(complex, "1j")


def test_a_scope_is_no_text_and_the_type_checker_says_so() -> None:
    """Mutants: a scope is a str, so that it can be taken apart; a class that declares `__eq__` is compared unseen.

    `make lint` refuses an ignore that mypy does not need: each of these lines is an error for it.
    """
    scope, group = Scope.of("rack:r1"), ActGroup.of("rack:r1/i1")
    assert not isinstance(scope, str | Struct)
    assert scope != "rack:r1"  # type: ignore[comparison-overlap]
    assert group != "rack:r1/i1"  # type: ignore[comparison-overlap]
    assert "rack:r1" not in {scope, Scope.of("rack:r2")}  # type: ignore[comparison-overlap]
    assert scope != group  # type: ignore[comparison-overlap]
    assert (scope, group) == (Scope("rack", "r1"), ActGroup(Scope("rack", "r1"), "i1"))


def test_a_group_is_sent_and_stored_as_its_text_and_carries_its_scope() -> None:
    """Mutants: a group without a domain has a scope; one that nobody is in is true."""
    alone, asked = ActGroup.of("i-7"), ActGroup(Scope("rack", "r1"), "i-7")
    assert (alone.scope, asked.scope, bool(ALONE), bool(alone)) == (None, Scope.of("rack:r1"), False, True)
    stored = msgspec.json.encode([alone, asked, ALONE], enc_hook=text_hook)
    assert stored == b'["i-7","rack:r1/i-7",""]'
    assert msgspec.json.decode(stored, type=list[ActGroup], dec_hook=scope_hook) == [alone, asked, ALONE]
    with pytest.raises(msgspec.ValidationError, match=r"is no group of an act; write KIND:NAME/ACT"):
        msgspec.json.decode(b"[7]", type=list[ActGroup], dec_hook=scope_hook)


def test_scopes_are_ordered_as_their_texts_are() -> None:
    texts = ["fleet", "leaf:l1", "n-1", "n:1", "pool:a", "rack-1:x", "rack:r1"]
    assert [str(scope) for scope in sorted(map(Scope.of, reversed(texts)))] == sorted(texts)


def _fields(kind: typing.Any, found: dict[str, typing.Any]) -> None:
    if isinstance(kind, type) and issubclass(kind, Struct):
        for name, hint in typing.get_type_hints(kind).items():
            if name in kind.__struct_fields__ and f"{kind.__name__}.{name}" not in found:
                found[f"{kind.__name__}.{name}"] = hint
                _fields(hint, found)
    for one in typing.get_args(kind):
        _fields(one, found)


def test_state_events_and_decisions_hold_scopes_and_no_text_of_them() -> None:
    """Mutant: a new event has `scope: str`."""
    found: dict[str, typing.Any] = {}
    for kind in (State, e.Event, DisruptionRequest, DomainAct):
        _fields(kind, found)
    named = {path: hint for path, hint in found.items() if path.partition(".")[2] in {"scope", "also", "paused"}}
    assert {found["Plan.group"], found["Condition.group"], found["DomainAct.group"]} == {ActGroup}
    named |= {path: found[path] for path in ("Node.domains", "Asset.domains")}
    held = {path for path, hint in named.items() if Scope in (hint, *typing.get_args(hint))}
    assert set(named) - held == {"PauseSet.paused"}, "a truth"
    assert {"Hold.scope", "Window.scope", "Incident.scope", "Incident.also", "CellRecord.paused"} <= held


def test_text_is_read_as_a_scope_where_it_comes_in_and_nowhere_else() -> None:
    """Mutant: a rule keeps a scope as text and reads it again each time."""
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.name != "scopes.py" and "Scope.of" in path.read_text("utf-8")
    }
    assert found == set(READS)


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
