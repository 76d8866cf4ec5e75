"""`hostler admission`: what is shown of a plan, and what is refused before anybody is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from tests.cli_api import FakeApi, hostler, serving

ADD = {
    "serial": "S1",
    "macs": ["52:54:00:00:70:01"],
    "sku": "h100",
    "hostname": "gpu-1",
    "bmc": "https://10.20.7.1",
    "outlets": ["https://pdu#/redfish/v1/A1"],
    "dpu_bmcs": ["https://d1", "https://d2"],
    "site": "hall-1",
    "row": "",
    "rack": "r7",
    "u": 12,
    "where": "rack.csv:2",
}
PLAN = {"source": "file", "adds": [ADD], "changes": [], "conflicts": [], "unchanged": 0, "digest": "a" * 64}
ROUTE = "POST /v1/admission/plan"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as found:
        yield found


def test_a_plan_shows_all_that_an_entry_says(api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Mutant: host name and site are admitted and not shown to whoever agrees."""
    file = tmp_path / "rack.csv"
    file.write_text("serial,macs\nS1,52:54:00:00:70:01\n")
    api.says(ROUTE, {"plan": PLAN, "strangers": []})
    assert hostler("admission", "plan", "--file", str(file), "--server", api.url) == ExitCode.ok
    told = capsys.readouterr().out
    assert "macs 52:54:00:00:70:01 hostname gpu-1 site hall-1 rack r7 u12 bmc https://10.20.7.1" in told
    assert "outlets https://pdu#/redfish/v1/A1 dpu_bmcs https://d1 https://d2" in told


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("nodes: []\n", ("plan",), "none.yaml: no node is in it\n  name each expected one"),
        (
            "nodes: [{serial: S1, macs: ['52:54:00:00:70:01']}]\n",
            ("apply", "--digest", "5f0c", "--reason", "r"),
            "'5f0c'",
        ),
    ],
)
def test_what_nobody_could_mean_is_told_without_a_question(
    api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, more: tuple[str, ...], said: str
) -> None:
    """Mutant: the API's own description is the answer (`at $.nodes`, a pattern)."""
    file = tmp_path / "none.yaml"
    file.write_text(text)
    words = ("admission", *more, "--file", str(file), "--server", api.url)
    assert hostler(*words) == ExitCode.usage
    assert said in capsys.readouterr().err
    assert api.asked == []
