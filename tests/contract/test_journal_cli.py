"""`hostler journal` over both databases, as an operator types it."""

import asyncio
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.app.daily_compaction import Compacting
from hostler.cli.exit_codes import ExitCode
from hostler.journal.opening import open_journal
from hostler.ports import Batch, Snapshot
from tests.cli_api import hostler
from tests.contract.journal_samples import boots, observed


def fill(place: str | Path) -> str:
    """Twenty records with snapshots at ten and fifteen, observations of long ago; its digest."""
    journal = open_journal(place)
    epoch = journal.acquire("a")
    for first, last in ((1, 10), (11, 15)):
        journal.append(boots(first, last), epoch)
        journal.save_snapshot(Snapshot(seq=last, digest=journal.digest(), body=b"fleet"))
    seen = tuple(observed("n1", i) for i in range(1, 6))
    journal.append(Batch(records=boots(16, 20).records, observations=seen), epoch)
    digest = journal.digest()
    journal.close()
    return digest


def test_a_copy_goes_there_and_back(tmp_path: Path, postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    digest = fill(tmp_path / "first.db")
    out, back = str(tmp_path / "out.jsonl"), str(tmp_path / "back.jsonl")
    assert hostler("journal", "export", str(tmp_path / "first.db"), out) == ExitCode.ok
    assert hostler("journal", "import", postgres_url, out) == ExitCode.ok
    assert f"imported 20 records, 5 observations, 0 cursors; record 20, digest {digest}" in capsys.readouterr().err
    assert hostler("journal", "check", postgres_url) == ExitCode.ok
    assert capsys.readouterr().out.endswith("sound\n")
    assert hostler("journal", "export", postgres_url, back) == ExitCode.ok
    assert hostler("journal", "import", str(tmp_path / "second.db"), back) == ExitCode.ok
    assert hostler("journal", "check", str(tmp_path / "second.db"), "-o", "json") == ExitCode.ok
    assert json.loads(capsys.readouterr().out)["chain"]["digest"] == digest
    journal = open_journal(tmp_path / "second.db")
    restored = journal.restored()
    assert restored is not None
    assert (restored.source, restored.seq) == (back, 20)
    journal.close()


def test_through_a_pipe(tmp_path: Path) -> None:
    digest = fill(tmp_path / "first.db")
    program = [sys.executable, "-m", "hostler.cli.main", "journal"]
    exported = subprocess.run([*program, "export", tmp_path / "first.db"], capture_output=True, check=True)
    imported = subprocess.run(
        [*program, "import", tmp_path / "second.db"], input=exported.stdout, capture_output=True, check=True
    )
    assert digest in imported.stderr.decode()


def test_what_has_had_its_time_is_moved(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(place)
    archive = str(tmp_path / "archive")
    for moved in ((5, 10), (0, 0)):
        assert hostler("journal", "compact", place, "--archive", archive) == ExitCode.ok
        said = capsys.readouterr().out
        assert f"{moved[0]} observations moved" in said
        assert f"{moved[1]} records moved" in said
        assert "records 1 to 10 are archived" in said
    assert hostler("journal", "check", place, "--archive", archive) == ExitCode.ok
    assert "records 11 to 20 are valid" in capsys.readouterr().out
    for path in Path(archive).glob("records-*"):
        path.unlink()
    assert hostler("journal", "check", place, "--archive", archive) == ExitCode.unsound
    assert hostler("journal", "compact", place, "--archive", archive, "--records-days", "0") == ExitCode.usage


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "first.db")
    (tmp_path / "out.jsonl").write_text("a diary")
    assert hostler("journal", "export", str(tmp_path / "first.db"), str(tmp_path / "out.jsonl")) == ExitCode.usage
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_text() == "a diary"


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no-journal").write_text("a diary " * 1_000)
    assert hostler("journal", "export", str(tmp_path / "no-journal"), str(tmp_path / "out.jsonl")) == ExitCode.usage
    assert "not a database" in capsys.readouterr().err
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("verb", ["check", "export", "compact"])
def test_a_journal_that_is_not_there(tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--archive", str(tmp_path / "archive")) if verb == "compact" else ()
    for place in (str(tmp_path / "none"), "postgresql://127.0.0.1:1/none"):
        assert hostler("journal", verb, place, *more) == ExitCode.usage
        said = capsys.readouterr().err
        assert place.rpartition("/")[2] in said
    assert list(tmp_path.iterdir()) == []


def test_an_import_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert hostler("journal", "import", str(tmp_path / "copy")) == ExitCode.usage
    assert "cut off before its end" in capsys.readouterr().err
    assert hostler("journal", "import", str(tmp_path / "copy"), str(tmp_path / "none.jsonl")) == ExitCode.usage
    assert "No such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


async def test_a_controller_has_it_done_again_and_again(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: it is done once and never again; what fails ends it."""
    fill(place)
    archive = tmp_path / "archive"
    archive.write_text("no folder")
    caplog.set_level("INFO", logger="hostler")
    at_work = asyncio.create_task(Compacting(place, archive, first_s=0.0, period_s=0.2).run())
    async with asyncio.timeout(60.0):
        while "journal_not_compacted" not in caplog.messages:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
        archive.unlink()
        while "journal_compacted" not in caplog.messages:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    at_work.cancel()
    await asyncio.gather(at_work, return_exceptions=True)
    assert hostler("journal", "check", place, "--archive", str(archive)) == ExitCode.ok
    assert "records 11 to 20 are valid" in capsys.readouterr().out
