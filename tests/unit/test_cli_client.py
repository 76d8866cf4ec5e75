"""Finding the server, sending the token, reading pages, and what each failure becomes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hostler.cli import list_watch, server_contexts
from hostler.cli.exit_codes import ExitCode
from hostler.client import api as client_api
from tests.cli_api import Asked, FakeApi, hostler, page, serving


@pytest.fixture(autouse=True)
def _nobodys_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_CA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as fake:
        yield fake


def test_a_list_is_read_to_its_last_page_also_past_an_empty_one(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: stop at a page without items; a selection that is sparse then shows nothing."""
    api.says("GET /v1/holds", page({"id": "h1"}, cursor="h1"))
    api.says("GET /v1/holds", page(cursor="h7"))
    api.says("GET /v1/holds", page({"id": "h9"}))
    assert hostler("hold", "list", "-o", "name", "--server", api.url) == ExitCode.ok
    assert capsys.readouterr().out == "h1\nh9\n"
    assert [asked.query.get("cursor") for asked in api.asked] == [None, "h1", "h7"]


def test_a_limit_ends_the_list_and_asks_for_no_more(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/nodes", page({"id": "n1"}, {"id": "n2"}, cursor="n2"))
    assert hostler("node", "list", "--limit", "2", "-o", "name", "--server", api.url) == ExitCode.ok
    assert capsys.readouterr().out == "n1\nn2\n"
    assert [asked.query["limit"] for asked in api.asked] == ["2"]


def test_the_context_that_up_writes_is_found_and_private(api: FakeApi, tmp_path: Path) -> None:
    token = tmp_path / "operator.token"
    token.write_text("hst_abc\n")
    written = server_contexts.use("up", server_contexts.Context(api.url, str(token)))
    assert written.stat().st_mode & 0o077 == 0
    api.says("GET /v1/holds", page())
    assert hostler("hold", "list") == ExitCode.ok
    assert api.asked[0].headers["Authorization"] == "Bearer hst_abc"


def test_the_contexts_token_is_for_the_contexts_server_only(api: FakeApi, tmp_path: Path) -> None:
    """Mutant: fall back to the context's token for any server; a mistyped --server then gets an operator's token."""
    token = tmp_path / "operator.token"
    token.write_text("hst_abc\n")
    server_contexts.use("up", server_contexts.Context("http://127.0.0.1:9", str(token)))
    api.says("GET /v1/holds", page())
    assert hostler("hold", "list", "--server", api.url) == ExitCode.ok
    assert "Authorization" not in api.asked[0].headers


def test_environment_is_asked_before_the_file_and_options_before_both(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_contexts.use("up", server_contexts.Context("http://127.0.0.1:9", ""))
    monkeypatch.setenv("HOSTLER_SERVER", api.url)
    monkeypatch.setenv("HOSTLER_TOKEN", "hst_env")
    api.says("GET /v1/holds", page())
    (tmp_path / "t").write_text("hst_file")
    assert hostler("hold", "list") == ExitCode.ok
    assert hostler("hold", "list", "--token-file", str(tmp_path / "t")) == ExitCode.ok
    assert [asked.headers["Authorization"] for asked in api.asked] == ["Bearer hst_env", "Bearer hst_file"]


def test_without_a_server_it_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("hold", "list") == ExitCode.usage
    said = capsys.readouterr()
    assert said.out == ""
    assert "hostler up" in said.err


def test_a_broken_context_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    server_contexts.path().write_text("{")
    assert hostler("hold", "list") == ExitCode.usage
    assert str(server_contexts.path()) in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://10.0.0.1:8440", "ftp://localhost", "localhost:8440", "http://localhost:port"])
def test_addresses_that_are_none_or_would_show_the_token_are_refused(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hostler("hold", "list", "--server", url) == ExitCode.usage
    assert url in capsys.readouterr().err


def test_nobody_there_is_unavailable(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("hold", "list", "--server", "http://127.0.0.1:1") == ExitCode.unavailable
    assert "cannot reach http://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ExitCode.usage),
        (401, ExitCode.unauthorised),
        (403, ExitCode.unauthorised),
        (404, ExitCode.not_found),
        (409, ExitCode.refused),
        (410, ExitCode.refused),
        (422, ExitCode.usage),
        (500, ExitCode.unexpected),
        (502, ExitCode.unavailable),
    ],
)
def test_each_refusal_has_its_exit_status_and_is_told_whole(
    api: FakeApi, capsys: pytest.CaptureFixture[str], status: int, code: ExitCode
) -> None:
    found = {"file": "p.yaml", "line": 7, "what": "no remedy 'x'", "instead": "write reboot"}
    problem = {"error": "e", "detail": "that is wrong", "instead": "do this", "problems": [found]}
    api.says("GET /v1/holds", problem, status)
    assert hostler("hold", "list", "--server", api.url) == code
    said = capsys.readouterr().err
    assert "that is wrong\n  p.yaml:7: no remedy 'x'; write reboot\n  do this\n" in said


def test_something_that_is_not_json_is_not_taken_for_an_answer(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.does("GET /v1/holds", lambda _: web.Response(text="<html>a proxy's page</html>"))
    assert hostler("hold", "list", "--server", api.url) == ExitCode.unexpected
    assert "not JSON" in capsys.readouterr().err


def test_a_busy_server_is_asked_again_with_the_same_key(api: FakeApi) -> None:
    """Mutant: make the key per attempt; an act that was recorded before the answer got lost is then done twice."""
    busy = {"error": "busy", "detail": "not now", "instead": "later"}
    api.says("POST /v1/intents", busy, 503, {"Retry-After": "0"})
    api.says("POST /v1/intents", {"granted": True, "text": "done", "detail": {}})
    assert hostler("brake", "release", "--reason", "r", "--server", api.url) == ExitCode.ok
    first, second = api.posted()
    assert first == second
    assert first["key"].startswith("cli-")


def test_a_server_that_stays_busy_is_left_alone(api: FakeApi) -> None:
    api.says("GET /v1/holds", {"error": "busy", "detail": "not now", "instead": "later"}, 503, {"Retry-After": "0"})
    assert hostler("hold", "list", "--server", api.url) == ExitCode.unavailable
    assert len(api.asked) == 3


def test_names_are_one_segment_of_the_path(api: FakeApi) -> None:
    assert hostler("pool", "get", "../status?x", "--server", api.url) == ExitCode.not_found
    assert api.asked[0].path == "/v1/pools/../status?x"
    assert api.asked[0].query == {}


def test_watching_prints_what_changed_and_resumes_where_the_stream_broke_off(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: forget the last sequence number; what happened while the stream was away is then never shown."""
    hold = {"id": "h1", "scope": "n1", "reason": "a"}
    api.says("GET /v1/holds", page(hold))
    api.says("GET /v1/holds", page(hold, {"id": "h2", "scope": "n2", "reason": "b"}))
    api.streams({"seq": 4, "name": "phase_changed"}, {"seq": 5, "name": "hold_placed"})
    api.streams({"seq": 6, "name": "hold_placed"})
    api.says("GET /v1/events", {"error": "unauthenticated", "detail": "revoked", "instead": ""}, 401)
    assert hostler("hold", "list", "-w", "-o", "json", "--server", api.url) == ExitCode.unauthorised
    shown = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["h1", "h2"]
    streams = [asked.headers.get("Last-Event-ID") for asked in api.asked if asked.path == "/v1/events"]
    assert streams == [None, "5", "6"]
    assert sum(asked.path == "/v1/holds" for asked in api.asked) == 3, "an event about phases asks for no holds"


OVER = {"error": "unauthenticated", "detail": "revoked", "instead": ""}
H1, H2, H3 = ({"id": f"h{number}", "scope": f"n{number}", "reason": "a"} for number in (1, 2, 3))


def _journal(api: FakeApi, *events: dict[str, Any], gone: int = 0) -> None:
    """Streams that begin after Last-Event-ID, or after all of it; the third is refused.

    Records up to `gone` have left.
    """

    def stream(asked: Asked) -> web.Response:
        last = asked.headers.get("Last-Event-ID")
        if sum(a.path == "/v1/events" for a in api.asked) > 2:
            return web.json_response(OVER, status=401)
        if last is not None and int(last) < gone:
            return web.json_response({"error": "gone", "detail": "left", "instead": "list"}, status=410)
        coming = [event for event in events if last is not None and event["seq"] > int(last)]
        text = "retry: 0\n\n" + "".join(f"data: {json.dumps(event)}\n\n" for event in coming)
        return web.Response(text=text, content_type="text/event-stream")

    api.does("GET /v1/events", stream)


def _watched(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[str | None]]:
    """Returns what a watched list of holds shows, and after which records it asked for events."""
    assert hostler("hold", "list", "-w", "-o", "name", "--server", api.url) == ExitCode.unauthorised
    asked = [a.headers.get("Last-Event-ID") for a in api.asked if a.path == "/v1/events"]
    return capsys.readouterr().out.split(), asked


def test_what_changes_between_the_list_and_the_stream_is_shown(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: follow from now on; a hold that is placed after the list was read is then never shown."""
    api.says("GET /v1/holds", page(H1, seq=3))
    api.says("GET /v1/holds", page(H1, H2, seq=4))
    _journal(api, {"seq": 4, "name": "hold_placed"})
    assert _watched(api, capsys) == (["h1", "h2"], ["3", "4", "4"])


def test_a_list_that_two_controllers_answered_is_followed_from_the_earlier_of_their_records(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: the first page's record; what the second's controller had not yet seen is then never shown."""
    api.says("GET /v1/holds", page(H1, seq=9, cursor="h1"))
    api.says("GET /v1/holds", page(H2, seq=7))
    api.says("GET /v1/holds", page(H1, H2, H3, seq=9))
    _journal(api, {"seq": 8, "name": "hold_placed"})
    shown, asked = _watched(api, capsys)
    assert (shown, asked[0]) == (["h1", "h2", "h3"], "7")


def test_where_the_records_have_gone_the_list_is_read_anew(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: give up; go on from now without the list; print again what has not changed."""
    monkeypatch.setattr(client_api, "AGAIN_S", 0.01)
    api.says("GET /v1/holds", page(H1, seq=3))
    api.says("GET /v1/holds", page(H1, H2, seq=60))
    api.says("GET /v1/holds", page(H1, H2, H3, seq=61))
    _journal(api, {"seq": 61, "name": "hold_placed"}, gone=50)
    assert hostler("hold", "list", "-w", "-o", "name", "--server", api.url) == ExitCode.unauthorised
    told = capsys.readouterr()
    assert told.out.split() == ["h1", "h2", "h3"]
    assert "listing again" in told.err
    assert [a.headers.get("Last-Event-ID") for a in api.asked if a.path == "/v1/events"] == ["3", "60", "61"]


def test_who_streams_more_than_it_lists_is_asked_again(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that stands by streams from the journal what its fleet does not hold yet. Mutant: ask once."""
    monkeypatch.setattr(list_watch, "BEHIND_S", 0.0)
    api.says("GET /v1/holds", page(H1, seq=3))
    api.says("GET /v1/holds", page(H1, seq=3))
    api.says("GET /v1/holds", page(H1, H2, seq=4))
    _journal(api, {"seq": 4, "name": "hold_placed"})
    assert _watched(api, capsys)[0] == ["h1", "h2"]


def test_who_never_comes_as_far_as_it_streams_is_said_to_be_behind(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_watch, "BEHIND_S", 0.0)
    api.says("GET /v1/holds", page(H1, seq=3))
    _journal(api, {"seq": 4, "name": "hold_placed"})
    assert hostler("hold", "list", "-w", "-o", "name", "--server", api.url) == ExitCode.unavailable
    assert "record 4" in capsys.readouterr().err


def test_a_history_goes_on_where_it_ends_and_shows_nothing_twice(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal may be ahead of the fleet that is answered. Mutant: print every event of the stream."""
    one = {"at": "2026-03-01T00:00:00Z", "name": "hold_placed", "text": "held", "subjects": ["n1"], "cause": ""}
    api.says("GET /v1/nodes/n1/history", page({**one, "seq": 5}, seq=4))
    _journal(api, {**one, "seq": 5}, {**one, "seq": 6})
    assert hostler("node", "history", "n1", "-w", "-o", "json", "--server", api.url) == ExitCode.unauthorised
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [5, 6]
    assert next(a.headers.get("Last-Event-ID") for a in api.asked if a.path == "/v1/events") == "4"


def test_a_watched_node_is_asked_for_alone_and_shown_once_more_when_it_leaves(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: ask with the selection only; a node that fails then silently stays in the watcher's last table."""
    here = {"id": "n1", "phase": "production"}
    gone = {"id": "n1", "phase": "triage"}

    def rows(asked: Asked) -> web.Response:
        selected = "phase" in asked.query
        moved = sum(a.path == "/v1/events" for a in api.asked) > 0
        return web.json_response(page(*([] if selected and moved else [gone if moved else here])))

    api.does("GET /v1/nodes", rows)
    api.streams({"seq": 1, "name": "phase_changed", "subjects": ["n1"]})
    api.says("GET /v1/events", {"error": "x", "detail": "over", "instead": ""}, 401)
    hostler("node", "list", "-l", "phase=production", "-w", "-o", "json", "--server", api.url)
    shown = [json.loads(line)["phase"] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["production", "triage"]
    assert all(asked.query.get("q") == "n1" for asked in api.asked[2:] if asked.path == "/v1/nodes")


def test_the_next_server_is_asked_where_one_cannot_be_reached(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: give up at the first."""
    api.says("GET /v1/holds", page({"id": "h1"}))
    assert hostler("hold", "list", "-o", "name", "--server", f"http://127.0.0.1:1,{api.url}") == ExitCode.ok
    assert capsys.readouterr().out == "h1\n"


def test_where_none_can_be_reached_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("hold", "list", "--server", "http://127.0.0.1:1,http://127.0.0.1:2") == ExitCode.unavailable
    assert "cannot reach http://127.0.0.1" in capsys.readouterr().err
