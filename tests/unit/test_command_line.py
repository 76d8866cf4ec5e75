"""An act as a command line: what is printed is what the interface reads back to the same act, of every verb."""

import contextlib
import itertools
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.cli.main import build
from hostler.core.state.scopes import NODES
from hostler.core.state.verbs.arguments import VerbArgument, arguments_of, verb_of
from hostler.core.state.verbs.command_line import FILE, TO_SAY, command_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import FileVerb, Target, Verb
from hostler.core.state.verbs.holds import Cordon, Resume
from tests.cli_api import FakeApi, hostler, serving
from tests.unit.test_cli_node_verbs import granted

SPOKEN = {verb: kind for verb, kind in VERBS.items() if kind.facts.heading or kind.facts.command}
TARGETS: dict[Target, tuple[str, ...]] = {
    Target.node: ("n1",),
    Target.nodes: ("n1", "rack:r1", "pool:train"),
    Target.scope: ("fleet", "pool:train", "n1"),
    Target.domain: ("rack:r1",),
    Target.pool: ("pool:train",),
    Target.cluster: ("cluster:k1",),
    Target.fleet: ("fleet",),
    Target.rack: ("rack:r1",),
}
AT = datetime(2026, 1, 31, 22, tzinfo=UTC)
TEXTS = ("two words; $(and) `more` 'quoted' \"so\"", "x", "1", "a" * 40, TO_SAY)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.delenv("HOSTLER_TOKEN", raising=False)
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        fake.does("POST /v1/intents", granted)
        fake.says("GET /v1/domains/rack:r1", {"scope": "rack:r1"})
        yield fake


def fitting(kind: type[Verb], one: VerbArgument) -> list[Any]:
    """Values that the argument takes, odd ones first."""
    if one.choices:
        return list(one.choices)
    if one.moment:
        return [AT.isoformat()]
    values: dict[type, list[Any]] = {bool: [True], int: [3, 1], float: [2.5, 8.0]}
    return values.get(one.type, list(TEXTS))


def acts_of(kind: type[Verb]) -> Iterator[Verb]:
    """Acts of a verb: with what it must have, and with every argument given, by each value that it takes."""
    arguments = arguments_of(kind)
    if issubclass(kind, FileVerb):
        item = {"item": 2} if "item" in kind.__struct_fields__ else {}
        yield verb_of(kind, {"digest": "a" * 64, "name": "f.png", "media_type": "image/png", "size": 1, **item})
        return
    for several in ([one for one in arguments if one.required], list(arguments)):
        drawn = itertools.islice(zip(*(itertools.cycle(fitting(kind, one)) for one in several), strict=False), 5)
        for values in drawn if several else [()]:
            with contextlib.suppress(msgspec.ValidationError):
                yield verb_of(kind, dict(zip((one.name for one in several), values, strict=True)))


def test_lines_read_as_people_type_them() -> None:
    assert command_of(Resume(), "fleet") == 'hostler resume fleet --reason "…"'
    assert command_of(Cordon(2.5), NODES, ("a", "b")) == 'hostler node cordon a b --as-one --hours 2.5 --reason "…"'
    assert (
        command_of(VERBS["start-work"](serial=TO_SAY), "n1") == 'hostler node start-work n1 --serial "…" --reason "…"'
    )
    assert command_of(VERBS["adopt"](), "fleet") == 'hostler adopt FILE --reason "…"'
    assert command_of(VERBS["report-remediators"](), "cluster:k1") == ""


@pytest.mark.parametrize("verb", [verb for verb, kind in SPOKEN.items() if not kind.facts.route])
def test_the_line_of_an_act_asks_for_that_act(api: FakeApi, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: an option is left out; a value with spaces is not quoted; a pool's kind is named twice; no reason."""
    kind, tried = SPOKEN[verb], 0
    acts, targets = list(dict.fromkeys(acts_of(kind))), TARGETS.get(kind.facts.target, ("x-1",))
    for act, target in itertools.islice(
        zip(itertools.cycle(acts), itertools.cycle(targets)), max(len(acts), len(targets))
    ):
        line = command_of(act, target)
        words = shlex.split(line)
        assert words[0] == "hostler"
        assert hostler(*words[1:]) == ExitCode.ok, f"{line}: {capsys.readouterr().err}"
        body = api.posted()[-1]
        asked = msgspec.convert(body["act"], kind)
        assert (asked, body["target"], body["reason"]) == (act, target, TO_SAY), line
        tried += 1
    assert tried, f"no act of {verb} was tried"


@pytest.mark.parametrize("verb", [verb for verb, kind in SPOKEN.items() if kind.facts.route])
def test_the_line_of_an_act_with_a_document_is_one_that_the_interface_reads(verb: str) -> None:
    """Mutant: the file is not named, so that the line wants an argument."""
    tried = 0
    for act in acts_of(SPOKEN[verb]):
        words = shlex.split(command_of(act, "x-1"))
        assert FILE in words
        command, bound, *_ = build().parse_args(words[1:], print_error=False, exit_on_error=False)
        assert command is not None
        assert bound is not None
        tried += 1
    assert tried
