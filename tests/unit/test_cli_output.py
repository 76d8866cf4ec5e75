"""Output for people and programs: tables, pages, the night's screen, and nothing that a terminal would obey."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostler.cli import output
from hostler.cli.exit_codes import ExitCode
from hostler.cli.list_view import age, clock, field, severity, span
from hostler.cli.output import dump_json, dump_yaml
from hostler.cli.table_columns import NODES
from hostler.core.state.model import Severity
from tests.cli_api import FakeApi, hostler, page, serving

NODE: dict[str, Any] = {
    "id": "n1",
    "hostname": "gpu-1",
    "serial": "S1",
    "sku": "h100",
    "phase": "production",
    "phase_since": "2026-01-01T00:00:00Z",
    "pool": "train",
    "tenant": "t",
    "position": {"cell": "c1", "site": "s", "row": "", "rack": "r1", "u": 4},
    "severity": 3,
    "conditions": ["gpu.fallen_off_bus"],
    "plan": "power_cycle",
    "step": "drain",
    "waiting": "job 7 runs here",
    "cordoned": True,
}

STATUS: dict[str, Any] = {
    "seq": 41,
    "cell": "c1",
    "now": "2026-01-02T03:00:00Z",
    "controller": "active",
    "ok": True,
    "why": "",
    "brake": "21 disruptions within 1 h, the limit is 20",
    "paused": ["pool:train"],
    "modes": [{"pool": "train", "remedy": "*", "mode": "act", "set_by": "intent"}],
    "phases": {"production": 60, "triage": 4},
    "nodes": 64,
    "ailing": 5,
    "waiting": 1,
    "operating": 2,
    "conditions": {"network.link": 4, "host.service_down": 3},
    "incidents": [
        {
            "id": "i77",
            "scope": "leaf:l3",
            "blames": "leaf switch l3",
            "also": [],
            "conditions": ["network.link"],
            "state": "overdue",
            "nodes": 6,
            "size": 8,
            "first": ["n1", "n2", "n3", "n4", "n5"],
            "opened": "2026-01-02T02:50:00Z",
            "ticket": "i77-ticket",
        }
    ],
    "stuck": [
        {
            "node": "n9",
            "what": "reboot",
            "since": "2026-01-01T03:00:00Z",
            "blockers": ["job 7 runs here"],
            "gpu_hours": 192.0,
        },
    ],
    "pools": [{"pool": {"name": "train"}, "reserved": 60, "delivered": 58, "healthy": 57, "dark": 1, "in_use": None}],
    "spares": [{"sku": "h100", "spares": 0, "missing": 2}],
    "changes": {
        "since": "2026-01-01T03:00:00Z",
        "counts": {"condition_raised": 9, "check_recorded": 500},
        "latest": [
            {"at": "2026-01-02T02:51:00Z", "text": "brake latched"},
            {"at": "2026-01-02T01:00:00Z", "text": "registered"},
            {"at": "2026-01-02T01:00:00Z", "text": "registered"},
        ],
    },
}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        yield fake


def test_a_table_in_a_pipe_is_plain_columns(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/nodes", page(NODE, {"id": "n2"}))
    assert hostler("node", "list") == ExitCode.ok
    titles, first, second = capsys.readouterr().out.splitlines()
    assert titles.split()[:6] == ["NODE", "PHASE", "FOR", "POOL", "RACK", "HEALTH"]
    assert "critical" in first
    assert first.endswith("job 7 runs here")
    assert first.index("gpu.fallen_off_bus") == titles.index("CONDITIONS")
    assert set(second.split()) == {"n2", "–"}


def test_wide_shows_more_columns(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/nodes", page(NODE))
    hostler("node", "list", "-o", "wide")
    titles, row = capsys.readouterr().out.splitlines()
    assert "HOSTNAME" in titles
    assert {"gpu-1", "S1", "h100", "yes"} <= set(row.split())


def test_programs_get_the_apis_own_fields(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/nodes", page(NODE))
    hostler("node", "list", "-o", "json")
    assert json.loads(capsys.readouterr().out) == {"items": [NODE]}
    hostler("node", "list", "-o", "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == {"items": [NODE]}
    hostler("node", "list", "-o", "name")
    assert capsys.readouterr().out == "n1\n"


def test_nothing_found_is_talk_not_data(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/nodes", page())
    assert hostler("node", "list") == ExitCode.ok
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "no node matches\n")


def test_what_machines_say_never_moves_the_cursor(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    r"""Mutant: print names as they are; a serial number with \x1b]0; then retitles the operator's terminal."""
    api.says("GET /v1/nodes", page({"id": "n1", "waiting": "\x1b[2J\x1b]0;owned\x07"}))
    api.says("GET /v1/nodes", page({"id": "a\rb"}))
    hostler("node", "list")
    hostler("node", "list", "-o", "name")
    api.says("GET /v1/nodes/n1", {"error": "x", "detail": "\x1b[31mred", "instead": ""}, 404)
    hostler("node", "get", "n1")
    said = capsys.readouterr()
    assert not set("\x1b\x07\r") & set(said.out + said.err)
    assert "\\x1b[2J" in said.out


HIDDEN = "a\x9b2J b\u202ec d\u200be f\x7f g\U000e0041 h\u2028 \x1b[2J ü"


def test_programs_get_what_a_terminal_would_obey_or_hide_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """C1, RTL, zero width and tags. Mutants: JSON as json.dumps has it; what is escaped is read as something else."""
    for dump, load in ((dump_json, json.loads), (dump_yaml, yaml.safe_load)):
        dump({HIDDEN: [HIDDEN]})
        said = capsys.readouterr().out
        assert said.replace("\n", "").isprintable()
        assert load(said) == {HIDDEN: [HIDDEN]}
    dump_json({"name": "ü 表"})
    assert "ü 表" in capsys.readouterr().out


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.fancy()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.fancy()


def test_the_screen_says_first_what_is_not_safe(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: what stands is counted in nodes alone, and the list below has other numbers."""
    api.says("GET /v1/status", STATUS)
    assert hostler("status") == ExitCode.ok
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("STORM BRAKE LATCHED: 21 disruptions")
    assert lines[2].startswith("PAUSED: pool:train")
    text = "\n".join(lines)
    assert "5 nodes with conditions, 1 waiting" in text
    assert "CONDITIONS (7 conditions on 5 nodes)" in text
    assert (
        "i77 OVERDUE  leaf switch l3: network.link on 6 of 8 nodes (n1, n2, n3, n4, n5 …) for 10m (ticket i77-ticket)"
        in text
    )
    assert "n9  reboot for 1d0h (192.0 GPU-hours): job 7 runs here" in text
    assert "train: 57 healthy of 58 delivered, 60 reserved, unknown in use  1 DARK  3 MISSING" in text
    assert "h100: 0 ready, pools lack 2" in text
    assert "9 conditions raised" in text
    assert "registered (2 times)" in text


def test_the_screen_tells_moves_and_faults_and_folds_what_was_asked_alike(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: sixty certifications crowd out the fault; a move names no node; what is cut off is not counted."""
    at = "2026-01-02T02:00:00Z"
    asked = [
        {"at": at, "text": f"tina asked for certify: granted, n{i} certified", "event": {"intent": {"target": f"n{i}"}}}
        for i in range(60)
    ]
    moves = [
        {"at": at, "text": "gpu.fallen_off_bus raised", "event": {"condition": {"node": "n3"}}},
        {"at": at, "text": "test → production: test done", "event": {"node": "n1"}},
        {"at": at, "text": "test → production: test done", "event": {"node": "n2"}},
    ]
    waits = {"what": "reboot", "since": at, "blockers": ["job 7 runs here"], "gpu_hours": None}
    stuck = [{"node": f"n{i}", **waits} for i in range(12)]
    counts = {"ticket_opened": 1, "condition_raised": 2}
    changes = {"since": "2026-01-01T03:00:00Z", "counts": counts, "latest": asked, "moves": moves}
    api.says("GET /v1/status", {**STATUS, "waiting": 30, "stuck": stuck, "changes": changes})
    hostler("status")
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "2 conditions raised, 1 ticket opened" in lines
    told = [line.split("  ", 1)[1] for line in lines if line.startswith("2026-01-02 02:00")]
    assert told == [
        "n3  gpu.fallen_off_bus raised",
        "n1  test → production: test done (and 1 more like it)",
        "tina asked for certify: granted, n0 certified (and 59 more like it)",
    ]
    assert next(line for line in lines if line.startswith("and 20 more")).endswith("says for what)")


@pytest.mark.parametrize("held", ["", "hst_1\nthe token of ann; it is shown this once", "hst_1 hst_2", "hst_\x00"])
def test_a_token_file_that_holds_more_than_a_token_is_named(
    held: str, api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Mutant: the header's library raises over it, and a person reads its traceback."""
    (tmp_path / "token").write_text(held)
    assert hostler("status", "--token-file", str(tmp_path / "token")) == ExitCode.usage
    assert "it holds no token, or more than one" in capsys.readouterr().err


def test_the_handover_is_the_same_in_sentences(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/status", STATUS)
    assert hostler("status", "--handover") == ExitCode.ok
    text = capsys.readouterr().out
    assert text.startswith("Shift handover, cell c1, 2026-01-02 03:00:00Z\n")
    assert "Look at these first:\n- i77 OVERDUE  leaf switch l3" in text
    calm = {**STATUS, "brake": "", "paused": [], "incidents": [], "stuck": [], "waiting": 0}
    api.says("GET /v1/status", calm)
    hostler("status", "--handover")
    hostler("status", "--handover")
    assert "Nothing waits, no incident is open." in capsys.readouterr().out


def test_a_sick_controller_is_not_called_well(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says(
        "GET /v1/status", {**STATUS, "ok": False, "why": "disk full", "changes": {**STATUS["changes"], "since": None}}
    )
    hostler("status")
    assert "NOT OK: disk full" in capsys.readouterr().out


def test_a_nodes_page_says_what_it_waits_for_and_who_ends_that(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    blocker = {"text": "job 7 of t runs here", "ends_when": "it ends by itself"}
    released = {"way": "act", "act": {"verb": "release"}, "target": "h-7", "asks": "operate", "text": "it is released"}
    held = {"text": "ann holds n1", "ends_when": "…", "ways": [released, {"way": "observed", "text": "it is heard"}]}
    steps = [{"act": {"kind": name}} for name in ("cordon", "drain", "reboot")]
    node = {
        "id": "n1",
        "phase": "production",
        "phase_since": "2026-01-01T00:00:00Z",
        "sku": "h100",
        "position": {"site": "s", "row": "", "rack": "r1"},
        "assignment": {"pool": "train", "tenant": "t"},
        "waiting": {"what": "drain", "since": "2026-01-01T00:00:00Z", "blockers": [blocker, held]},
        "plan": {
            "name": "reboot",
            "act_class": "pending",
            "state": "running",
            "recorded_at": "2026-01-01T00:00:00Z",
            "steps": steps,
            "index": 1,
        },
        "conditions": [
            {"type": "gpu.thermal", "severity": 2, "since": "2026-01-01T00:00:00Z", "count": 3, "evidence": []}
        ],
        "bindings": [
            {"kind": "bmc", "value": "old", "until": "2026-01-01T00:00:00Z"},
            {"kind": "bmc", "value": "new", "until": None},
        ],
    }
    api.says("GET /v1/nodes/n1", {"node": node, "hostname": "gpu-1", "power": "on", "agent": {}, "workloads": None})
    assert hostler("node", "get", "n1", "-o", "wide") == ExitCode.ok
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("job 7 of t runs here") + 1] == "→ it ends by itself"
    assert lines[lines.index("ann holds n1") + 1 :][:2] == [
        '→ it is released: hostler hold release h-7 --reason "…"', "→ when it is heard"
    ]  # fmt: skip
    assert lines[lines.index("✓ cordon") + 1] == "▸ drain"
    assert "bmc new" in lines
    assert "bmc old" not in lines
    assert "workloads   the scheduler has not told" in lines


def test_a_history_reads_downwards_and_is_the_latest_part(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"seq": seq, "at": "2026-01-01T00:00:00Z", "name": "x", "text": "t"} for seq in (9, 8)]
    api.says("GET /v1/nodes/n1/history", page(*rows, cursor="8"))
    api.says("GET /v1/nodes/n1/history", page(rows[0] | {"seq": 4}))
    assert hostler("node", "history", "n1", "--limit", "3", "-o", "name") == ExitCode.ok
    assert capsys.readouterr().out.split() == ["4", "8", "9"]
    assert [asked.query.get("before") for asked in api.asked] == [None, "8"]


def test_what_was_done_to_a_node_is_told_beside_its_repairs(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: a history of repairs is its tickets alone."""
    deed = {
        "node": "n1",
        "at": "2026-01-02T03:00:00Z",
        "action": "power_cycle",
        "result": "done",
        "part": "",
        "slot": "",
    }
    part = {**deed, "action": "part_in", "part": "GPU-7", "slot": "gpu3"}
    empty: dict[str, Any] = {"windows": [], "work": [], "notices": [], "repairs": [], "cursor": ""}
    api.says("GET /v1/maintenance", {**empty, "deeds": [part, deed]})
    assert hostler("maintenance", "list", "--node", "n1") == ExitCode.ok
    *_, titles, first, second = capsys.readouterr().out.splitlines()
    assert titles.split() == ["DONE", "AT", "DEED", "RESULT", "PART", "SLOT"]
    assert first.split()[2:] == ["part_in", "done", "GPU-7", "gpu3"]
    assert second.split()[2:4] == ["power_cycle", "done"]


def test_maintenance_is_read_page_by_page_and_told_in_sections(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    notice = {"node": "n7", "reason": "retired", "at": "2026-01-01T00:00:00Z"}
    one = {"windows": [], "work": [{"node": "n1", "state": "current"}], "notices": [notice]}
    one |= {"repairs": [], "deeds": []}
    api.says("GET /v1/maintenance", {**one, "cursor": "n1"})
    api.says("GET /v1/maintenance", {**one, "work": [{"node": "n2", "state": "upcoming"}], "cursor": ""})
    assert hostler("maintenance", "list", "-o", "json") == ExitCode.ok
    found = json.loads(capsys.readouterr().out)
    assert [row["node"] for row in found["work"]] == ["n1", "n2"]
    assert found["notices"] == [notice]


def test_an_open_ticket_is_found_in_the_list(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.says("GET /v1/tickets", page({"id": "t1", "summary": "swap GPU 3"}))
    assert hostler("ticket", "get", "t1") == ExitCode.ok
    assert "summary: swap GPU 3" in capsys.readouterr().out
    assert hostler("ticket", "get", "t2") == ExitCode.not_found


def test_times_and_severities_in_words() -> None:
    assert [span(s) for s in (5, 65, 3_700, 90_000)] == ["5s", "1m", "1h01m", "1d1h"]
    assert severity(-1, None) == ""  # type: ignore[arg-type]
    assert [severity(int(s), None) for s in Severity] == [s.name for s in Severity]  # type: ignore[arg-type]
    assert age("not a time", None) == "not a time"  # type: ignore[arg-type]
    assert clock("2026-01-01T00:00:00.123456Z", None) == "2026-01-01 00:00:00Z"  # type: ignore[arg-type]
    assert field({"a": {"b": 1}}, "a.b") == 1
    assert field({"a": None}, "a.b") is None


def test_wide_is_never_narrower() -> None:
    assert set(NODES.titles(wide=False)) < set(NODES.titles(wide=True))


def test_an_incident_is_shown_with_its_members_and_its_history(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {**STATUS["incidents"][0], "deadline": "2026-01-02T06:50:00Z", "calm_since": None, "owner": "operator"}
    history = [{"at": "2026-01-02T02:50:00Z", "text": "incident i77 opened"}]
    api.says("GET /v1/incidents", page(row))
    api.says("GET /v1/incidents/i77", {"incident": row, "members": {"n1": "2026-01-02T02:50:00Z"}, "history": history})
    api.says("GET /v1/incidents/i77", {"incident": None, "members": {}, "history": history})
    assert hostler("incident", "list") == ExitCode.ok
    listed = capsys.readouterr().out
    assert "leaf switch l3" in listed
    assert "i77-ticket" in listed
    assert hostler("incident", "show", "i77") == ExitCode.ok
    shown = capsys.readouterr().out
    assert "i77 is overdue: leaf switch l3: network.link on 6 of 8 nodes" in shown
    assert "operator decides after" in shown
    assert "hostler incident close i77" in shown
    assert "n1  since 2026-01-02T02:50:00Z" in shown
    assert hostler("incident", "show", "i77") == ExitCode.ok
    assert capsys.readouterr().out.startswith("closed")


def test_whatever_is_asked_for_the_latched_brake_is_said(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: only `status` says so."""
    brake = {"granted": True, "text": "done", "detail": {"brake": "21 disruptions"}}
    refused = {"error": "refused", "detail": "no", "instead": "", "facts": {"brake": "21 disruptions"}}
    api.says("POST /v1/intents", brake)
    api.says("POST /v1/intents", refused, 409)
    assert hostler("node", "cordon", "n1", "--reason", "because") == ExitCode.ok
    assert "STORM BRAKE LATCHED: 21 disruptions" in capsys.readouterr().err
    assert hostler("node", "approve", "n1", "--reason", "because") == ExitCode.refused
    assert "STORM BRAKE LATCHED: 21 disruptions" in capsys.readouterr().err


def test_a_statement_is_told_in_hours_with_its_sum_and_exported_in_seconds(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the sum leaves out a row; a healthy cause stands among the reasons; CSV rounds to hours."""
    kinds = ("repair", "maintenance", "firmware", "test", "person", "handover", "unknown")
    row = {
        "node": "n1",
        "tenant": "acme",
        "pool": "train",
        "since": "2026-11-01T00:00:00Z",
        "until": "2026-11-01T03:00:00Z",
        "had_s": 10_801,
        "healthy_s": 7_200,
        "degraded_s": 1,
        "away_s": 3_600,
        "unknown_s": 0,
        "away_by": {**dict.fromkeys(kinds, 0), "repair": 3_600},
        "causes": [
            {"state": "away", "kind": "repair", "condition": "gpu.ecc_dbe", "seconds": 3_600},
            {"state": "healthy", "kind": "", "condition": "", "seconds": 7_200},
        ],
    }
    page = {"items": [row, {**row, "node": "n2"}], "cursor": "", "archived": "records 1 to 7 are archived", "seq": 9}
    api.says("GET /v1/statement", page)
    hostler("statement", "--month", "2026-11")
    told = capsys.readouterr()
    assert "away (repair gpu.ecc_dbe) 1.00" in told.out
    assert "healthy (" not in told.out
    assert "6.00 node-hours: 4.00 healthy, 0.00 degraded, 2.00 away, 0.00 unknown" in told.err
    assert "records 1 to 7 are archived" in told.err
    hostler("statement", "-o", "csv")
    lines = capsys.readouterr().out.splitlines()
    assert "had_s" in lines[0]
    assert "10801" in lines[1]
