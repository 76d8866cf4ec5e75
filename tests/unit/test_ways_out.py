"""Ways out of waits: values that read and write, sentences with whole commands, and none missing."""

import ast

import msgspec
import pytest

from hostler.cli.reference.rooms import modules
from hostler.core.state.model import Blocker, Waiting
from hostler.core.state.pool_mode import Mode
from hostler.core.state.verbs.facts import Permission
from hostler.core.state.verbs.holds import Resume
from hostler.core.state.verbs.modes import SetMode
from hostler.core.state.ways_out import ByAct, WhenObserved, by_act, by_time, observed
from tests.kit import NOW


def test_a_way_is_a_value_of_the_journal_and_the_api() -> None:
    """Mutant: the act is stored as its command."""
    acts = by_act(SetMode(Mode.propose, "reboot"), "pool:train", "its mode is set")
    made = Blocker(
        "mode", "train:reboot", "only observed", (acts, by_time("soon", NOW), observed("it is heard", "agent"))
    )
    told = msgspec.json.encode(made)
    assert msgspec.json.decode(told, type=Blocker) == made
    (first, *_) = msgspec.json.decode(told)["ways"]
    assert first == {
        "way": "act",
        "act": {"verb": "mode", "mode": "propose", "remedy": "reboot"},
        "target": "pool:train",
        "asks": Permission.operate,
        "text": "its mode is set",
    }
    command = 'hostler pool mode train propose --remedy reboot --reason "…"'
    assert made.ends_when == f"its mode is set ({command}), or soon, or it is heard"


def test_one_way_needs_no_tuple() -> None:
    assert Blocker("pause", "fleet", "paused", by_act(Resume(), "fleet")).ways == (by_act(Resume(), "fleet"),)


def test_a_wait_of_an_earlier_version_keeps_its_sentence_as_its_way() -> None:
    """Mutant: a body without ways is refused, or has none."""
    blocker = '{"kind":"a","name":"b","text":"c","ends_when":"d"}'
    body = f'{{"what":"reboot","since":"2026-01-01T00:00:00Z","blockers":[{blocker}]}}'
    (read,) = msgspec.json.decode(body, type=Waiting).blockers
    assert read.ways == (WhenObserved("d"),)
    assert read.ends_when == "d"


def test_a_blocker_without_a_way_is_not_made() -> None:
    """mypy asks a way of every site; a body from elsewhere that has neither ways nor sentence is refused too."""
    with pytest.raises(msgspec.ValidationError, match="no way out"):
        msgspec.json.decode(b'{"kind":"a","name":"b","text":"c","ends_when":"","ways":[]}', type=Blocker)
    with pytest.raises(TypeError, match="is a text"):
        Blocker("a", "b", "c", "when it ends")  # type: ignore[arg-type]


def test_every_site_gives_its_ways() -> None:
    """Mutant: a Blocker whose ways are left to their default."""
    found = 0
    for name, text in modules():
        for call in ast.walk(ast.parse(text)) if "Blocker(" in text else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Blocker":
                found += 1
                given = len(call.args) >= 4 or any(one.arg == "ways" for one in call.keywords)
                assert given, f"{name} line {call.lineno}"
    assert found > 50


def test_acts_name_the_permission_of_their_verb() -> None:
    assert by_act(Resume(), "fleet").asks is Resume.facts.asks
    assert isinstance(by_act(Resume(), "fleet"), ByAct)
