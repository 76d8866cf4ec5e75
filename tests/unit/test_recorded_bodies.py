"""Shapes of stored bodies: what a format has, what it lacks, and that no class changes without a format of its own."""

from typing import Any

import msgspec
import pytest

from hostler.cli.reference.stored_bodies import differing, raised, todays, written
from hostler.core.state.events import INTRODUCED
from hostler.core.state.recorded_bodies import EVENT, MANY, NO_SHAPES, BodyShapes, Fact, digest, parsed, recorded
from tests.contract.test_journal_golden import GOLDEN, opened, rows_of

RAISE = "raise it: `python scripts/event_formats.py --raise`, a row in `events.INTRODUCED` for each new event"


def test_no_stored_class_has_changed_since_the_newest_format() -> None:
    """Planted and caught: a field, an operation kind, a word of an enumeration and an event that no format has."""
    new = differing(recorded().facts, todays())
    assert not new, f"stored events are not those of format {recorded().newest}; {RAISE}\n" + "\n".join(new)


def test_a_new_field_a_new_kind_and_one_that_is_gone_are_told_apart() -> None:
    facts = [fact for fact in recorded().facts if fact.subject != "Node.light"]
    assert [line.split(" ")[:2] for line in differing(facts, todays())] == [["+", "Node.light"]]
    gone = differing(recorded().facts, {fact for fact in todays() if "ResetPort" not in fact[1]})
    assert '- any OperationAct {"$ref":"ResetPort"}' in gone


def test_what_is_new_comes_with_the_next_format_and_what_is_gone_ends_with_it() -> None:
    """Mutants: the newest format takes it in; a fact that is gone is forgotten, and with it what an older one reads."""
    facts = raised([Fact("A.x", "1", 6), Fact("A.y", "2", 6)], {("A.x", "1"), ("A.z", "3")})
    assert sorted(facts) == [Fact("A.x", "1", 6), Fact("A.y", "2", 6, 7), Fact("A.z", "3", 7)]
    assert raised(facts, {("A.x", "1"), ("A.z", "3")}) == facts
    assert BodyShapes(facts).at(6).keys() == {"A.x", "A.y", "fields A"}
    assert BodyShapes(facts).until(6).newest == 6


def test_a_format_that_is_recorded_cannot_be_changed_by_hand() -> None:
    text = written(recorded().facts)
    assert parsed(text) == tuple(sorted(recorded().facts))
    more = text + '6 - Node.planted {"type":"string"}\n'
    with pytest.raises(ValueError, match=r"format 6 of recorded_bodies.txt has been changed"):
        parsed(more)
    assert digest(recorded().facts, 6) in text


def test_every_event_that_came_with_a_recorded_format_has_its_row() -> None:
    first = recorded().formats[0]
    came = {fact.subject.removeprefix(EVENT): fact.since for fact in recorded().facts if fact.subject.startswith(EVENT)}
    rows = {name: number for (name, _), number in INTRODUCED.items() if number > first}
    assert rows == {name: number for name, number in came.items() if number > first}


@pytest.mark.parametrize("number", recorded().formats[1:])
def test_a_golden_journal_holds_every_field_that_came_with_its_format(number: int, tmp_path_factory: Any) -> None:
    """Mutants: no sample of a new kind; a sample whose new field is at its default."""
    (golden,) = [path for path in GOLDEN if path.stem == f"format_{number}"]
    folder = tmp_path_factory.mktemp("golden")
    shapes, seen = recorded(), set[str]()
    for row in rows_of(opened(golden, folder)):
        body = msgspec.json.decode(row.body)
        assert not shapes.read(row.name, body, number).said
        told = shapes.read(row.name, body, number - 1)
        assert told.said
        seen |= set(_keys(body))
    came = {fact.subject.partition(".")[2] for fact in shapes.facts if fact.since == number and "." in fact.subject}
    assert came <= seen


def _keys(value: Any) -> list[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*(value if isinstance(value, dict) else ()), *(key for one in inner for key in _keys(one))]


# --- reading a body as an older format has it ---


def shapes(old: dict[str, Any], new: dict[str, Any]) -> BodyShapes:
    """Shapes of formats 1 and 2: subject → its facts."""

    def facts(told: dict[str, Any]) -> set[tuple[str, str]]:
        listed = {name: value if isinstance(value, list) else [value] for name, value in told.items()}
        return {(name, msgspec.json.encode(one).decode()) for name, values in listed.items() for one in values}

    first = [Fact(subject, text, 1) for subject, text in facts(old)]
    return BodyShapes(raised(first, facts(new)))


OBJECT = {"type": "object"}
TEXT = {"type": "string"}
BASE = {"event seen": {"$ref": "Seen", "version": 1}, "Seen": OBJECT, "Seen.a": TEXT | {"required": True}}


def test_a_field_at_its_default_is_left_out_and_one_that_says_something_is_lost() -> None:
    """Mutants: either is kept, and refused by a reader that takes no unknown field; a default counts as lost."""
    both = shapes(BASE, BASE | {"Seen.b": {"type": "integer", "default": 3}})
    read = both.read("seen", {"a": "x", "b": 3}, 1)
    assert (read.body, read.said) == ({"a": "x"}, "")
    read = both.read("seen", {"a": "x", "b": 4}, 1)
    assert (read.body, read.lost, read.said) == ({"a": "x"}, ("seen.b",), "seen.b")
    assert both.read("seen", {"a": "x", "b": 4}, 2).body == {"a": "x", "b": 4}


KINDS = {"Go": {"type": "object", "tag": "kind"}, "Go.kind": {"enum": ["go"]}}
STOP = {"Stop": {"type": "object", "tag": "kind"}, "Stop.kind": {"enum": ["stop"]}}


def test_a_kind_a_word_and_a_length_that_the_format_does_not_have_are_named() -> None:
    """Mutants: the first kind whose fields fit is taken; words and limits are not looked at."""
    old = BASE | KINDS | {"Seen.act": {"$ref": "any Act"}, "any Act": [{"$ref": "Go"}], "Colour": ["red"]}
    old |= {"Seen.c": {"$ref": "Colour"}, "Seen.a": TEXT | {"maxLength": 2, "required": True}}
    new = old | STOP | {"any Act": [{"$ref": "Go"}, {"$ref": "Stop"}], "Colour": ["red", "blue"], "Seen.a": TEXT}
    both = shapes(old, new)
    assert both.read("seen", {"a": "x", "act": {"kind": "stop"}}, 1).unread == ("seen.act: stop",)
    assert both.read("seen", {"a": "x", "act": {"kind": "go"}, "c": "blue"}, 1).unread == ("seen.c: blue",)
    assert both.read("seen", {"a": "long", "act": {"kind": "go"}}, 1).unread == ("seen.a: long",)
    whole = {"a": "long", "act": {"kind": "stop"}, "c": "blue"}
    assert both.read("seen", whole, 2).said == ""


def test_what_an_older_reader_would_take_for_another_value_is_told() -> None:
    """Mutants: a field that is gone is not missed; a changed default is not seen where it is left unwritten."""
    old = BASE | {"Seen.n": {"type": "number", "default": 300.0}}
    assert shapes(old, BASE).read("seen", {"a": "x"}, 1).unread == ("seen without n",)
    other = shapes(old, old | {"Seen.n": {"type": "number", "default": 0.0}})
    assert other.read("seen", {"a": "x"}, 1).unread == ("seen without n",)
    assert other.read("seen", {"a": "x", "n": 0.0}, 1).said == ""
    assert shapes(BASE, BASE | {"Seen.b": TEXT}).read("seen", {}, 1).unread == ("seen without a",)


def test_lists_maps_and_choices_are_read_to_their_ends() -> None:
    old = BASE | {
        "Seen.many": {"type": "array", "items": {"$ref": "Part"}},
        "Seen.named": {"type": "object", "additionalProperties": {"$ref": "Part"}},
        "Seen.pair": {"type": "array", "prefixItems": [TEXT, {"$ref": "Part"}], "items": False},
        "Seen.maybe": {"anyOf": [{"type": "null"}, {"$ref": "Part"}]},
        "Part": OBJECT,
    }
    both = shapes(old, old | {"Part.p": {"type": "integer", "default": 0}})
    full = {"p": 7}
    body = {"a": "x", "many": [full], "named": {"k": full}, "pair": ["s", full], "maybe": full}
    read = both.read("seen", body, 1)
    assert read.lost == ("seen.many.p", "seen.named.k.p", "seen.pair.p", "seen.maybe.p")
    assert read.said == "seen.many.p; seen.named.k.p; seen.pair.p and 1 more"
    assert read.body == {"a": "x", "many": [{}], "named": {"k": {}}, "pair": ["s", {}], "maybe": {}}
    wrong = {"a": 1, "many": "no", "maybe": True}
    assert both.read("seen", wrong, 1).unread == ("seen.a: 1", "seen.many: no", "seen.maybe: True")


def test_only_events_that_lead_to_something_new_are_looked_into() -> None:
    """Mutants: all are, which costs; or one whose field's own fields are new is not."""
    told = BASE | {"event other": {"$ref": "Other", "version": 1}, "Other": OBJECT, "Seen.p": {"$ref": "Part"}}
    both = shapes(told | {"Part": OBJECT}, told | {"Part": OBJECT, "Part.p": TEXT})
    assert (both.may_differ("seen", 1), both.may_differ("other", 1), both.may_differ("seen", 2)) == (True, False, False)
    assert not NO_SHAPES.may_differ("seen", 1)
    assert both.read("never", {}, 1).unread == ("event never",)


def test_kinds_have_one_name_and_each_its_own_line() -> None:
    """One more kind of operation is one line, so that two branches can be put together."""
    kinds = {text for subject, text in todays() if subject == f"{MANY}OperationAct"}
    assert '{"$ref":"ResetPort"}' in kinds
    assert len(kinds) > 40
