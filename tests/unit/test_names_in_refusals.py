"""A tenant reads no operator's name in an answer: every refusal that names a person asks who reads it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import hostler.core.intents
from hostler.controller.inputs import IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.intents.ask import OPERATOR, called
from hostler.core.state.intent import Bounds
from tests.kit import Drive, a_node, configuration, intent_of, pool_document

ROOM = Path(hostler.core.intents.__file__).parent
OF_PERSONS = frozenset({"person", "owner", "by", "claimed_by", "done_by", "laid_by", "approved_by", "asked_by"})
HOLDERS = frozenset({"holder", "person", "owner"})
OWN = frozenset({"ask.intent.person"})
"""The one who asks."""
NODES = {"expected_nodes.py", "entered_addresses.py"}
"""In these a holder is a node that holds an address or a serial number."""


RECORDED = {
    "manual_tests.py test.owner",
    "nodes.py intent.person",
    "onboarding.py person",
    "standing_requests.py by.person",
    "tickets.py intent.person",
}
"""Texts that are recorded, or told to operators alone: who reads them is judged where they are shown."""


def _named_persons(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Persons in texts, but for those that go through `called`: a refusal may be put together before it is raised."""
    for text in ast.walk(tree):
        if isinstance(text, ast.FormattedValue):
            yield from _persons_of(text.value)


def _persons_of(value: ast.expr) -> Iterator[tuple[int, str]]:
    if isinstance(value, ast.Call) and "called" in (getattr(value.func, "attr", ""), getattr(value.func, "id", "")):
        return
    if ast.unparse(value) in OWN:
        return
    if isinstance(value, ast.Attribute) and value.attr in OF_PERSONS:
        yield value.lineno, ast.unparse(value)
    elif isinstance(value, ast.Name) and value.id in HOLDERS:
        yield value.lineno, value.id
    for one in ast.iter_child_nodes(value):
        if isinstance(one, ast.expr):
            yield from _persons_of(one)


def test_every_refusal_that_names_a_person_asks_who_reads_it() -> None:
    """Mutant: `f"{light.by} has the LED lit"` stands in a RefusalError as it did."""
    found = {
        f"{path.name}:{line} {name}"
        for path in sorted(ROOM.glob("*.py"))
        if path.name not in NODES
        for line, name in _named_persons(ast.parse(path.read_text()))
    }
    assert {re.sub(r":\d+", "", one) for one in found} == RECORDED, found


def test_the_search_finds_what_it_looks_for() -> None:
    bad = 'raise RefusalError(f"{holder} has {ticket.claimed_by or 1}, {ask.called(light.by)} not")'
    assert [name for _, name in _named_persons(ast.parse(bad))] == ["holder", "ticket.claimed_by"]


@pytest.mark.parametrize(
    ("tenant", "person", "said"),
    [("acme", "ann", OPERATOR), ("acme", "kim", "kim"), ("", "ann", "ann"), ("acme", "", "")],
)
def test_a_name_is_said_by_who_reads_it(tenant: str, person: str, said: str) -> None:
    """Mutants: a tenant reads an operator's name; it does not read its own; an operator reads no name."""
    assert called(person, Bounds(tenant=tenant), ("kim", "kim@acme.example")) == said


def a_cell() -> Drive:
    config = configuration({"train": pool_document(target=1, tenant="acme", owner="kim")})
    return Drive(config, [a_node("a", pool="train"), a_node("b", pool="")])


def as_tenant(drive: Drive, verb: str, target: str, **args: str) -> Reply:
    intent = intent_of("i-kim", verb, target, "kim", "because", drive.now, args)
    ready = drive.step(IntentAsked(9_999, replace(intent, bounds=Bounds(tenant="acme"))))
    return next(reply for reply in ready.replies if reply.token == 9_999)


def test_a_tenant_reads_that_it_was_an_operator() -> None:
    """An operator's cordon stands in the way; who that was is not the customer's. Mutant: the owner is named."""
    drive = a_cell()
    assert drive.ask("cordon", "a", person="pat@operators.example").granted
    reply = as_tenant(drive, "uncordon", "a")
    assert not reply.granted
    assert f"{OPERATOR}'s on" in reply.text
    assert "pat" not in reply.text
