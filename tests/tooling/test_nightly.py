"""The night's run: each part has its own verdict, none keeps another from running, and the gate runs none of it."""

import re
from pathlib import Path

import pytest

from scripts import nightly
from scripts.nightly import PARTS, Part, Verdict, counts, main, table

HOUSE = Path(__file__).parents[2]
MAKEFILE = (HOUSE / "Makefile").read_text()


def test_every_part_is_a_target_of_the_makefile() -> None:
    """Mutant: a target is renamed, and the night leaves it out with an error of make's."""
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert {part.target for part in PARTS.values()} <= targets


def test_a_part_that_fails_or_hangs_keeps_none_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the first failure ends the night; a part over its time counts as passed."""
    (tmp_path / "Makefile").write_text(
        "bad:\n\t@echo '2 failed, 7 passed in 3s'; exit 3\nslow:\n\t@sleep 60\ngood:\n\t@echo '9 passed in 1s'\n"
    )
    monkeypatch.setattr(nightly, "HOUSE", tmp_path)
    monkeypatch.setattr(nightly, "LOGS", tmp_path / "build/nightly")
    parts = {"bad": Part("bad"), "slow": Part("slow", most_s=1.0), "good": Part("good")}
    monkeypatch.setattr(nightly, "PARTS", parts)
    assert main([]) == 1
    said = capsys.readouterr().out
    rows = {line.split()[0]: line for line in said.splitlines() if " min  " in line}
    assert "failed" in rows["bad"]
    assert rows["bad"].endswith("2 failed, 7 passed")
    assert "over its time" in rows["slow"]
    assert "passed" in rows["good"]
    assert said.rstrip().endswith("1 passed, 2 failed; logs: build/nightly/")
    assert main(["good"]) == 0


def test_an_unknown_part_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["soak", "nonsense"])
    assert "no part nonsense; there are tests, boots" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("== 12 passed, 3 deselected in 4.5s ==\n", "12 passed, 3 deselected"),
        ("worlds: 400, 0 violations\nlast words\n", "0 violations"),
        ("nothing\n", ""),
        ("", ""),
    ],
)
def test_what_was_counted_is_read_from_the_output_s_end(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "log").write_text(text)
    assert counts(tmp_path / "log") == told


def test_the_table_counts_what_is_over_its_time_as_failed() -> None:
    told = table([Verdict("a", 0, 60, ""), Verdict("b", None, 60, ""), Verdict("c", 2, 60, "")])
    assert told.splitlines()[-1].startswith("1 passed, 2 failed")
