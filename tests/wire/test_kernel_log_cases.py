"""The families' tables against a corpus of lines: what each must say, and lines that must say nothing.

`cases/*.jsonl` hold one case a line: `line` (one or several log lines), `expect` (fields of one finding), and where
there are more, `findings` and `incidents`. `cases/nothing.txt` holds lines of healthy machines and near misses.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hostler.cli.commands.kernel_log import case_result
from hostler.core.diagnose.family import read_line
from hostler.core.diagnose.kernel_log import FAMILIES, TRIGGERS, decode
from hostler.core.diagnose.line import line_at
from hostler.core.tables.conditions import CONDITIONS

CASES_DIR = Path(__file__).parent / "cases"
CORPUS: dict[str, dict[str, Any]] = {
    f"{path.stem}-{number}": json.loads(line)
    for path in sorted(CASES_DIR.glob("*.jsonl"))
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
}
CASES = [pytest.param(case, id=name) for name, case in CORPUS.items()]
ONE_LINERS = [pytest.param(case, id=name) for name, case in CORPUS.items() if "\n" not in case["line"]]
NOTHING = (CASES_DIR / "nothing.txt").read_text("utf-8").splitlines()
PREFIXES = (
    "[ 4711.114207] ",
    "<4>[ 4711.114207] ",
    "4,1288,4711114207,-;",
    "kern  :warn  : 2025-03-04T09:12:44,114207+01:00 ",
    "2025-03-04T09:12:44.114207+01:00 rack7-gpu2 kernel: [ 4711.114207] ",
    "[Tue Mar  4 09:12:44 2025] ",
    "<4>1 2025-03-04T09:12:44.114207Z rack7-gpu2 kernel - - - ",
    "1741079564.114207 rack7-gpu2 kernel: ",
    "[ 4711.114207] rack7-gpu2 kernel: ",
    "Tue 2025-03-04 09:12:44 CET rack7-gpu2 kernel: ",
    "Mar 04 09:12:44.114207 rack7-gpu2 kernel: ",
)
OFTEN_SAID_BY = ("nv-fabricmanager", "systemd-networkd", "NetworkManager")


@pytest.mark.parametrize("case", CASES)
def test_a_line_says_what_it_says(case: dict[str, Any]) -> None:
    result = case_result(case["line"])
    findings = result["findings"]
    assert len(findings) == case.get("findings", 1), findings
    assert any(case["expect"].items() <= finding.items() for finding in findings), findings
    if "incidents" in case:
        assert result["incidents"] == case["incidents"]
    for finding in findings:
        assert finding["condition"] in CONDITIONS
        assert finding["action"]
        assert finding["severity"]
        assert finding["category"]


@pytest.mark.parametrize("case", ONE_LINERS)
def test_prefixes_and_line_ends_change_nothing(case: dict[str, Any]) -> None:
    line = case["line"]
    plain = case_result(line)["findings"]
    if line.startswith("[") or any(writer in line for writer in OFTEN_SAID_BY) or "message repeated" in line:
        return
    line = line.removeprefix("<0>[  201.7] ").partition("kernel: ")[2] or line.removeprefix("<0>[  201.7] ")
    for prefix in PREFIXES:
        for end in ("", "\r", "\r\n", "   \n"):
            findings = case_result(prefix + line + end)["findings"]
            assert [{**f, "line": ""} for f in findings] == [{**f, "line": ""} for f in plain], prefix


@pytest.mark.parametrize("line", NOTHING)
def test_healthy_lines_and_near_misses_report_nothing(line: str) -> None:
    for prefix in ("", *PREFIXES):
        assert decode(prefix + line) == ()


def test_a_whole_healthy_log_reports_nothing() -> None:
    assert decode("\n".join(NOTHING)) == ()


def test_every_row_of_every_family_reads_a_case() -> None:
    """Mutant: a row whose pattern can never match; no line of the corpus is then read by it."""
    lines = [line_at(text, 0) for case in CORPUS.values() for text in str(case["line"]).split("\n")]
    unread = [
        (row.event, row.pattern)
        for family in FAMILIES
        for row in family.rows
        if not any(read_line(family, row, line) for line in lines)
    ]
    assert unread == []


def test_every_row_names_a_condition_and_holds_its_own_trigger() -> None:
    for family in FAMILIES:
        for row in family.rows:
            assert row.condition in CONDITIONS, row.event
            assert row.text, row.event
            assert row.text[0].islower() or row.text.startswith("NV"), row.event


def test_triggers_are_few() -> None:
    """Every trigger is a search through every line; a new one costs all of them."""
    assert len(TRIGGERS) < 110
