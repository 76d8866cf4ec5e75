"""Lists of the command line: columns and order of one's own, formats for programs, several cells side by side."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hostler.cli import server_contexts
from hostler.cli.exit_codes import ExitCode
from hostler.cli.server_contexts import Context
from tests.cli_api import FakeApi, hostler, page, serving

ROWS: list[dict[str, Any]] = [
    {"id": "n10", "phase": "production", "position": {"rack": "r10"}, "severity": 3},
    {"id": "n2", "phase": "triage", "position": {"rack": "r2"}},
    {"id": "n1", "phase": "production", "position": {"rack": "r2"}, "severity": 4, "waiting": '=1+1 "x"'},
]


@pytest.fixture(autouse=True)
def _nobodys_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_CONTEXT", "HOSTLER_CA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        fake.says("GET /v1/nodes", page(*ROWS))
        yield fake


def test_jsonl_is_one_object_a_line(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("node", "list", "-o", "jsonl") == ExitCode.ok
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS


def test_csv_is_what_a_spreadsheet_reads_and_never_a_formula(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: cells as they are; what a machine said then runs in somebody's spreadsheet."""
    assert hostler("node", "list", "-o", "csv") == ExitCode.ok
    titles, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert [row[titles.index("id")] for row in rows] == ["n10", "n2", "n1"]
    assert '\'=1+1 "x"' in rows[2]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("node", "n1 n2 n10"),
        ("node:desc", "n10 n2 n1"),
        ("position.rack", "n2 n1 n10"),
        ("rack:desc", "n10 n2 n1"),
        ("severity", "n10 n1 n2"),
        ("severity:desc", "n1 n10 n2"),
    ],
)
def test_rows_are_sorted_by_a_column_or_field_numbers_as_numbers_and_gaps_last(
    api: FakeApi, by: str, order: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: r10 comes before r2; a severity is sorted as its word; what has none comes first when turned round."""
    assert hostler("node", "list", "-o", "name", "--sort-by", by) == ExitCode.ok
    assert capsys.readouterr().out.split() == order.split()


@pytest.mark.parametrize("by", ["colour", "node:down", ""])
def test_what_cannot_be_sorted_by_is_refused_with_the_columns(
    api: FakeApi, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hostler("node", "list", "--sort-by", by) == (ExitCode.usage if by else ExitCode.ok)
    said = capsys.readouterr()
    assert ("node, phase, for, pool" in said.err, bool(said.out)) == (bool(by), not by)


def test_columns_are_chosen_by_title_or_field(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("node", "list", "--columns", "node, position.rack,hostname") == ExitCode.ok
    titles, first, *_ = capsys.readouterr().out.splitlines()
    assert (titles.split(), first.split()) == (["NODE", "RACK", "HOSTNAME"], ["n10", "r10", "–"])
    assert hostler("node", "list", "--columns", "node,,rack") == ExitCode.usage


def test_several_nodes_are_described_and_one_that_is_not_there_is_said(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: the first unknown name ends it; the others are not shown."""
    for name in ("a", "c"):
        api.says(f"GET /v1/nodes/{name}", {"node": {"id": name, "phase": "production"}})
    assert hostler("node", "describe", "a", "b", "c", "-o", "json") == ExitCode.not_found
    said = capsys.readouterr()
    assert [one["node"]["id"] for one in json.loads(said.out)["items"]] == ["a", "c"]
    assert "/v1/nodes/b" in said.err
    assert hostler("node", "get") == ExitCode.usage


EVENTS = [
    {"seq": 5, "at": "2026-01-01T00:00:00+00:00", "name": "phase_changed", "subjects": ["n1"], "text": "n1 moved"},
    {"seq": 6, "at": "2026-01-01T00:00:01+00:00", "name": "ticket_opened", "subjects": ["n2"], "text": "see to n2"},
    {"seq": 7, "at": "2026-01-01T00:00:02+00:00", "name": "phase_changed", "subjects": ["n2"], "text": "n2 moved"},
]


def test_events_are_the_last_ones_and_the_newest_comes_last(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: the newest comes first; a page too many is read; the moment is sent without its zone."""
    api.says("GET /v1/records", page(EVENTS[2], EVENTS[0], cursor="5"))
    said = hostler("events", "--name", "phase_", "--limit", "2", "--since", "2026-01-01", "-o", "jsonl")
    assert said == ExitCode.ok
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [5, 7]
    (asked,) = api.asked
    assert asked.query == {"name": "phase_", "limit": "2", "since": "2026-01-01T00:00:00+00:00"}


def test_all_events_come_oldest_first_as_they_are_read(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: all are kept until the last is there."""
    shown: list[str] = []

    def second(_: object) -> web.Response:
        shown.append(capsys.readouterr().out)
        return web.json_response(page(EVENTS[2]))

    api.says("GET /v1/records", page(*EVENTS[:2], cursor="6"))
    api.does("GET /v1/records", second)
    assert hostler("events", "--limit", "0", "-o", "json") == ExitCode.ok
    assert [json.loads(line)["seq"] for line in shown[0].splitlines()] == [5, 6]
    assert json.loads(capsys.readouterr().out)["seq"] == 7
    assert [asked.query.get("cursor", "") for asked in api.asked] == ["", "6"]


@pytest.mark.parametrize("output", ["jsonl", "csv"])
def test_what_is_shown_as_it_is_read_has_the_form_that_was_asked_for(
    output: str, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: `-o jsonl` and `-o csv` print the table's lines; each line of csv has titles of its own."""
    api.says("GET /v1/records", page(*EVENTS))
    assert hostler("events", "--limit", "0", "-o", output) == ExitCode.ok
    said = capsys.readouterr().out
    if output == "jsonl":
        assert [json.loads(line)["seq"] for line in said.splitlines()] == [5, 6, 7]
    else:
        assert [row["seq"] for row in csv.DictReader(io.StringIO(said))] == ["5", "6", "7"]


def test_events_go_on_from_where_the_list_stood(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: an event of the list is told again; the stream begins with what comes now; another name is told."""
    api.says("GET /v1/records", {**page(EVENTS[0]), "seq": 5})
    api.streams(EVENTS[0], *EVENTS[1:])
    api.says("GET /v1/events", {"title": "no"}, status=403)
    hostler("events", "-w", "--name", "phase_", "-o", "json")
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [5, 7]
    assert api.asked[1].headers["Last-Event-ID"] == "5"


@pytest.mark.parametrize("words", [("--until", "2026-01-01", "-w"), ("--limit", "10001"), ("--since", "soon")])
def test_events_that_cannot_be_listed_so_are_refused_before_anybody_is_asked(api: FakeApi, words: list[str]) -> None:
    """Mutants: a stream that never tells; memory without a bound; a moment that the server reads otherwise."""
    assert hostler("events", *words) == ExitCode.usage
    assert not api.asked


def test_every_context_is_asked_with_its_own_token_and_one_that_is_down_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: one cell down hides the others; the exit status is 0; a cell gets another one's token."""
    with serving() as first, serving() as second:
        for name, api in (("ams", first), ("fra", second)):
            (tmp_path / name).write_text(f"hst_{name}")
            server_contexts.use(name, Context(api.url, str(tmp_path / name)))
            api.says("GET /v1/nodes", page({"id": f"{name}-1", "phase": "production"}))
        server_contexts.use("down", Context("http://127.0.0.1:9"))
        assert hostler("node", "list", "--all-cells", "--columns", "cell,node") == ExitCode.unavailable
        said = capsys.readouterr()
        assert [line.split() for line in said.out.splitlines()] == [
            ["CELL", "NODE"],
            ["ams", "ams-1"],
            ["fra", "fra-1"],
        ]
        assert said.err.startswith("down: cannot reach http://127.0.0.1:9")
        assert [api.asked[0].headers["Authorization"] for api in (first, second)] == [
            "Bearer hst_ams",
            "Bearer hst_fra",
        ]


@pytest.mark.parametrize("variable", ["HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_CONTEXT"])
def test_all_cells_beside_one_server_or_token_is_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a token that was set for one cell is sent to all."""
    server_contexts.use("ams", Context("http://127.0.0.1:9"))
    monkeypatch.setenv(variable, "ams")
    assert hostler("node", "list", "--all-cells") == ExitCode.usage


def test_watching_all_cells_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    server_contexts.use("ams", Context("http://127.0.0.1:9"))
    for command in (["node", "list"], ["hold", "list"], ["events"], ["status"]):
        assert hostler(*command, "--all-cells", "-w") == ExitCode.usage
        assert "several cells" in capsys.readouterr().err


def test_the_status_of_all_cells_is_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as api:
        server_contexts.use("ams", Context(api.url))
        api.says(
            "GET /v1/status", {"cell": "c1", "ok": True, "nodes": 3, "phases": {"production": 2}, "incidents": [{}]}
        )
        assert hostler("status", "--all-cells", "--columns", "cell,nodes,production,incidents") == ExitCode.ok
    assert capsys.readouterr().out.splitlines()[1].split() == ["ams", "3", "2", "1"]


def test_a_context_finds_its_files_from_every_directory(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Mutant: the path is kept as it was typed, and the next directory has no such file."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "operator.token").write_text("hst_1")
    monkeypatch.chdir(tmp_path)
    assert hostler("context", "add", "first", "--server", api.url, "--token-file", "data/operator.token") == ExitCode.ok
    monkeypatch.chdir(tmp_path / "data")
    monkeypatch.delenv("HOSTLER_SERVER")
    api.says("GET /v1/nodes", {"items": [], "next": None})
    assert hostler("node", "list") == ExitCode.ok
    assert api.asked[-1].headers["Authorization"] == "Bearer hst_1"


def test_contexts_are_added_used_and_forgotten(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("context", "add", "ams", "--server", "https://ams:8440", "--token-file", "/t") == ExitCode.ok
    assert hostler("context", "add", "fra", "--server", "https://fra:8440") == ExitCode.ok
    assert hostler("context", "use", "ams") == ExitCode.ok
    capsys.readouterr()
    assert hostler("context", "list", "-o", "jsonl") == ExitCode.ok
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["current"], row["name"]) for row in rows] == [("*", "ams"), ("", "fra")]
    assert hostler("context", "remove", "ams") == ExitCode.ok
    assert server_contexts.read().current == ""
    assert hostler("context", "use", "ams") == ExitCode.not_found
    assert hostler("node", "list", "--context", "ams") == ExitCode.not_found
    assert "known: fra" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", '{"server": "http://x"}', '{"contexts": {"a": 1}}', "{"])
def test_a_file_of_contexts_that_is_none_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    server_contexts.path().write_text(text)
    assert hostler("node", "list") == ExitCode.usage
    assert str(server_contexts.path()) in capsys.readouterr().err


def test_assets_of_one_rack_are_asked_for_by_it(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: the command that a blocked rack's hint names is none; the rack is not sent; it is watched without it."""
    api.says("GET /v1/assets", page({"id": "r7-ps1", "kind": "power_shelf", "position": {"rack": "r7"}}))
    assert hostler("asset", "list", "--rack", "r7", "-o", "name") == ExitCode.ok
    assert capsys.readouterr().out.split() == ["r7-ps1"]
    (asked,) = api.asked
    assert asked.query["rack"] == "r7"
    assert hostler("asset", "list", "--rack", "r7", "-w") == ExitCode.usage
