"""Every event that can be recorded comes back from its stored row as it was."""

import types
import typing
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import islice
from pkgutil import iter_modules
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from hostler.core.state import events
from hostler.core.state.events import VERSION, BootObserved, Event, PlanEnded, Record, name_of
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.live_state import Release
from hostler.core.state.model import Blocker, Observation
from hostler.core.state.recorded_bodies import NO_SHAPES
from hostler.core.state.scopes import ActGroup, Scope, text_hook
from hostler.core.state.upcast import DOWNCASTERS, UPCASTERS, Body, upcast
from hostler.core.state.verbs.facts import Verb
from hostler.journal import codec
from hostler.journal.codec import (
    GENESIS,
    RELEASE,
    StoredRow,
    UnknownEventError,
    UnwritableError,
    known,
    micros,
    moment,
    observation_key,
    seal,
    seal_all,
    seal_observation,
    unseal,
    unseal_observation,
    verified,
)
from hostler.ports import CorruptJournalError
from tests.contract.journal_samples import EVENTS, boot, every_event, of_events, sample
from tests.contract.test_journal_golden import GOLDEN, rows_of
from tests.drawing import examples

TEXT = st.text(max_size=20)
MOMENTS = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - the zone is drawn; the first day of all begins before UTC's
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
Sentence = typing.NewType("Sentence", str)
BIG = st.integers(min_value=-(2**80), max_value=2**80)
ATOMS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    Sentence: st.text(min_size=1, max_size=20),
    int: st.integers(min_value=0, max_value=2**62) | st.sampled_from([0, 1, 2**63 - 1]),
    float: NUMBERS,
    bool: st.booleans(),
    Scope: TEXT.map(Scope.of),
    ActGroup: TEXT.map(ActGroup.of),
    datetime: MOMENTS,
    types.NoneType: st.none(),
    Any: st.recursive(
        TEXT | st.booleans() | st.integers(0, 99),
        lambda some: st.lists(some, max_size=2) | st.dictionaries(TEXT, some, max_size=2),
        max_leaves=4,
    ),
}


@cache
def drawn(kind: Any) -> st.SearchStrategy[Any]:
    """Values of any type that our nouns use."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if issubclass(kind, Verb | Expected):
            return st.just(sample(kind))  # its arguments are bounded
        hints = get_type_hints(kind)
        if kind is Blocker:  # no wait without a way out
            hints["ends_when"] = Sentence
        return st.deferred(lambda: st.builds(kind, **{field: drawn(hint) for field, hint in hints.items()}))
    origin, args = get_origin(kind), get_args(kind)
    if origin is typing.Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return st.sampled_from(args or list(kind))
    if origin in (typing.Union, types.UnionType):
        return st.one_of([BIG if arg is int else drawn(arg) for arg in args])
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(drawn(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(drawn, args))
    if origin is dict:
        return st.dictionaries(drawn(args[0]), drawn(args[1]), max_size=3)
    return ATOMS[kind]


def records(event: type[Struct]) -> st.SearchStrategy[Record]:
    return st.builds(
        Record, seq=st.integers(1, 2**63 - 1), at=MOMENTS, epoch=st.integers(1, 9), cause=TEXT, event=drawn(event)
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_every_event_comes_back_as_it_was(event: type[Struct]) -> None:
    @settings(max_examples=examples(200, 6))
    @given(records(event))
    def comes_back(record: Record) -> None:
        row = seal(record, GENESIS)
        assert unseal(row) == record
        assert (row.name, row.version) == (name_of(record.event), RELEASE.newest(name_of(record.event)))
        assert seal(unseal(row), GENESIS) == row

    comes_back()


@given(drawn(Observation))
def test_every_observation_comes_back_as_it_was(observation: Observation) -> None:
    assert unseal_observation(seal_observation(observation).body) == observation


@given(MOMENTS)
def test_moments_are_exact(at: datetime) -> None:
    """Mutant: floating-point seconds."""
    assert moment(micros(at)) == at


def test_every_event_is_in_the_union_and_has_one_row_in_its_family() -> None:
    """Mutant: a new event class that is not in the union cannot be read back."""
    families = [import_module(f"{events.__name__}.{one.name}") for one in iter_modules(events.__path__)]
    defined = {
        value
        for family in families
        for value in vars(family).values()
        if isinstance(value, type) and issubclass(value, Struct) and isinstance(value.__struct_config__.tag, str)
        if value.__module__ == family.__name__
    }
    rows = [row.kind for family in families for row in getattr(family, "ROWS", ())]
    assert defined == set(EVENTS) == set(rows) == set(events.ROWS)
    assert len(rows) == len(set(rows))
    assert {type(event) for event in every_event()} == set(EVENTS)


def test_stored_names_are_written_by_hand_and_differ() -> None:
    names = [name_of(event) for event in every_event()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.islower() for name in names)


def test_keys_keep_their_order() -> None:
    """Mutant: sorted keys; a replayed dict would iterate differently from the live one."""
    event = events.OperationFinished(node="n", operation="o", kind="k", result="done", facts={"b": 1, "a": 2})
    (record,) = of_events([event])
    back = unseal(seal(record, GENESIS)).event
    assert isinstance(back, events.OperationFinished)
    assert list(back.facts) == ["b", "a"]


# --- the chain ---


def chain() -> list[StoredRow]:
    return seal_all([boot(seq) for seq in range(1, 9)], 0, GENESIS, 1)


@given(st.integers(0, 7), st.sampled_from(StoredRow._fields), st.integers(0, 2**31), st.binary(min_size=1, max_size=9))
def test_any_change_of_any_field_breaks_the_chain_there(place: int, field: str, number: int, content: bytes) -> None:
    """Mutants: the digest leaves out a field; it does not include the digest before it."""
    rows = chain()
    values: dict[type, Any] = {int: number, bytes: content, str: content.hex()}
    value = values[type(getattr(rows[place], field))]
    if value == getattr(rows[place], field):
        return
    rows[place] = rows[place]._replace(**{field: value})
    checked = verified(rows, 0, GENESIS)
    assert list(islice(checked, place)) == rows[:place]
    with pytest.raises(CorruptJournalError) as caught:
        next(checked)
    assert caught.value.seq == place + 1


@given(st.integers(0, 6), st.integers(1, 3))
def test_missing_records_are_named(start: int, gone: int) -> None:
    rows = chain()
    del rows[start : min(start + gone, 7)]
    with pytest.raises(CorruptJournalError, match=f"record {start + 1} is corrupt: it is missing") as caught:
        list(verified(rows, 0, GENESIS))
    assert caught.value.seq == start + 1


def test_fields_cannot_flow_into_one_another() -> None:
    """Mutant: the canonical bytes are the fields put end to end."""
    first = Record(seq=1, at=boot(1).at, epoch=1, cause="ab", event=boot(1).event)
    digests = {seal(msgspec.structs.replace(first, cause=cause), GENESIS).digest for cause in ("ab", "abboot", "a", "")}
    assert len(digests) == 4


# --- what another version wrote ---


def test_an_unknown_name_is_a_clear_refusal() -> None:
    row = seal(boot(1), GENESIS)._replace(name="node_teleported")
    with pytest.raises(UnknownEventError, match=r"record 1 is 'node_teleported' version 1: .* run the Hostler that"):
        unseal(row)


def test_a_name_that_only_an_older_version_knew_is_refused_too() -> None:
    row = seal(boot(1), GENESIS)._replace(
        name="node_teleported", version=VERSION - 1, body=b'{"type":"node_teleported"}'
    )
    with pytest.raises(UnknownEventError, match="does not know the name"):
        known(row)


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(UnknownEventError, match="reads up to version 1"):
        unseal(seal(boot(1), GENESIS)._replace(version=VERSION + 1))


@pytest.mark.parametrize(
    "body", [b"", b"null", b"{}", b"[]", b'{"type":"boot_observed"}', b'{"type":"plan_ended"}', b"\xff"]
)
@pytest.mark.parametrize("version", [VERSION, VERSION - 1])
def test_a_body_that_does_not_fit_is_refused(body: bytes, version: int) -> None:
    with pytest.raises(UnknownEventError):
        unseal(seal(boot(1), GENESIS)._replace(body=body, version=version))


def test_a_body_without_a_new_field_takes_its_default() -> None:
    row = seal(boot(1), GENESIS)._replace(version=1)
    assert unseal(row).event == boot(1).event


def _named(body: Body) -> Body:
    return {**body, "type": "boot_observed", "boot_id": body["boot"]}


def _rebooted(body: Body) -> Body:
    return {**body, "type": "boot_noticed", "boot": f"was-{body['id']}"}


def test_an_old_body_is_brought_up_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the table of upcasters is never asked."""
    monkeypatch.setitem(UPCASTERS, ("boot_noticed", VERSION - 1), _named)
    body = b'{"type":"boot_noticed","node":"n1","boot":"b"}'
    row = seal(boot(1), GENESIS)._replace(name="boot_noticed", version=VERSION - 1, body=body)
    assert unseal(row).event == BootObserved(node="n1", boot_id="b")


def test_upcasters_run_one_version_after_another() -> None:
    """Mutants: only the first runs; they are looked up under the name of the first."""
    table = {("rebooted", 1): _rebooted, ("boot_noticed", 2): _named}
    old: Body = {"type": "rebooted", "node": "n1", "id": "7"}
    new = upcast(old, 1, table, to=4)
    assert msgspec.convert(new, Event) == BootObserved(node="n1", boot_id="was-7")
    assert old == {"type": "rebooted", "node": "n1", "id": "7"}
    assert upcast(new, 3, table, to=4) == new


@pytest.mark.parametrize("event", every_event(), ids=name_of)
def test_every_event_of_a_made_up_older_version_opens_as_todays(event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """In it every event was called other, and its fields were shouted. Mutants: a renamed event is not known; only
    those with a caster for their present name are brought up."""
    name = name_of(event)
    monkeypatch.setitem(UPCASTERS, (f"old_{name}", VERSION - 1), lambda body: _hushed(body) | {"type": name})
    today = msgspec.json.decode(msgspec.json.encode(event, enc_hook=text_hook))
    shouted = {key.upper() if key != "type" else key: value for key, value in today.items()} | {"type": f"old_{name}"}
    row = seal(boot(1), GENESIS)._replace(name=f"old_{name}", version=VERSION - 1, body=msgspec.json.encode(shouted))
    known(row)
    assert unseal(row).event == event


def _hushed(body: Body) -> Body:
    return {key.lower(): value for key, value in body.items()}


def test_every_upcaster_has_a_corpus_and_is_total_on_it() -> None:
    """A golden journal of its version holds what it casts; `test_journal_golden` reads all of them to their ends."""
    stored = {(row.name, row.version) for path in GOLDEN if path.suffix == ".journal" for row in rows_of(path)}
    assert set(UPCASTERS) <= stored


def test_a_body_is_written_in_the_words_of_the_cells_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: always today's words; a body that cannot be told in the older ones is written all the same."""
    monkeypatch.setattr(codec, "RELEASE", Release("1.1", {("boot_observed", 2): 2}, NO_SHAPES))
    with pytest.raises(UnwritableError):
        seal(boot(1), GENESIS, 1)
    monkeypatch.setitem(DOWNCASTERS, ("boot_observed", 2), lambda body: body | {"told": "as before"})
    old, new = seal(boot(1), GENESIS, 1), seal(boot(1), GENESIS, 2)
    assert (old.version, new.version) == (1, 2)
    assert b"as before" in old.body
    assert b"as before" not in new.body


def test_no_upcaster_waits_for_a_version_to_come() -> None:
    assert all(version < VERSION for _, version in UPCASTERS)


@pytest.mark.parametrize(
    ("identity", "key"),
    [
        ("n/s/1", ("n", "s", 1)),
        ("c/r/n/s/1", ("c/r/n", "s", 1)),
        ("n//1", ("n", "", 1)),
        ("", None),
        ("n", None),
        ("s/1", None),
        ("n/s/x", None),
        ("n/s/-1", None),
        (f"n/s/{2**63}", None),
    ],
)
def test_ids_of_observations(identity: str, key: tuple[str, str, int] | None) -> None:
    assert observation_key(identity) == key


def test_an_ended_plan_reads_as_json() -> None:
    """An operator with the sqlite3 shell reads what was stored."""
    (record,) = of_events([PlanEnded(node="n1", plan="p", result="done", reason="r")])
    assert seal(record, GENESIS).body == b'{"type":"plan_ended","node":"n1","plan":"p","result":"done","reason":"r"}'
