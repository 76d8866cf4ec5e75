"""`hostler doctor` on the boot listeners of a controller that serves boots, and of one that serves none."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hostler.app import boot_process
from hostler.app.boot_process import BootProcess
from hostler.cli.boot_listeners import DO, DO_OTHERWISE, boot_findings
from hostler.cli.exit_codes import ExitCode
from hostler.server.app_state import Outside
from hostler.server.boot.boot_wire import BootAnswer, BootQuestion
from hostler.server.boot_presence import BootPresence
from tests.cli_api import hostler
from tests.contract.api_world import House, house

PATIENCE_S = 60.0
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


@pytest.fixture(autouse=True)
def of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    for name in ("HOSTLER_TOKEN", "HOSTLER_SERVER"):
        monkeypatch.delenv(name, raising=False)


async def doctor(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[ExitCode, list[dict[str, Any]]]:
    capsys.readouterr()
    code = await asyncio.to_thread(hostler, "doctor", "--server", url, "-o", "json")
    return code, json.loads(capsys.readouterr().out)["items"]


async def until(presence: BootPresence, *, up: bool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while presence.up is not up:  # noqa: ASYNC110 - processes have no event here
            await asyncio.sleep(0.02)


async def test_the_doctor_tells_of_the_boot_listeners_as_they_are(
    world: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process that is killed. Mutants: it is never told of; a standby beside it is not asked; up again, its end
    is forgotten; a controller that serves none is told of."""
    url = world.operator.url
    code, rows = await doctor(url, capsys)
    assert (code, rows) == (ExitCode.ok, []), "no boots are served here"

    async def answer(_: BootQuestion) -> BootAnswer:
        return BootAnswer(200, "")

    monkeypatch.setattr(boot_process, "FIRST_S", 3.0)
    process = BootProcess(answer, lambda: datetime.now(UTC))
    async with process.listening(("127.0.0.1", 0), None):
        world.app_state.outside = Outside(boot=lambda: process.presence)
        await until(process.presence, up=True)
        code, rows = await doctor(f"http://127.0.0.1:9,{url}", capsys)
        assert (code, [row["text"] for row in rows]) == (ExitCode.ok, ["the boot listeners' process is up"])
        os.kill(process.pid, signal.SIGKILL)
        await until(process.presence, up=False)
        code, (row,) = await doctor(url, capsys)
        assert (code, row["bad"], row["kind"]) == (ExitCode.unsound, True, "boot")
        assert "down since" in row["text"]
        assert "ended by SIGKILL" in row["text"]
        assert "started again once" in row["text"]
        assert "memory" in row["instead"]
        await until(process.presence, up=True)
        code, (row,) = await doctor(url, capsys)
        assert (code, row["bad"], row["instead"]) == (ExitCode.ok, False, "")
        assert "is up; it was started again once, the last time because it ended by SIGKILL" in row["text"]


async def test_without_a_cluster_and_without_a_controller_nothing_can_be_examined(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Mutant: nothing was asked and all is said to be well."""
    code = await asyncio.to_thread(hostler, "doctor", "--server", "http://127.0.0.1:9")
    assert code == ExitCode.usage
    said = capsys.readouterr()
    assert "no cluster is named" in said.err
    assert "not asked for its boot listeners" in said.err


def ended(*minutes: int, why: str = "hangs: it has said nothing at 15 looks", up: bool = True) -> dict[str, Any]:
    """The health of a controller with a process that has ended so many minutes ago, one after another."""
    presence = BootPresence()
    for one in minutes:
        presence.ended(why, NOW - timedelta(minutes=one))
    presence.up, presence.why, presence.since = up, "" if up else why, NOW
    ends = presence.ends(NOW)
    told = {"restarts": ends.restarts, "last_end": ends.last_end, "keeps_ending": ends.keeps_ending}
    told["ended_at"] = ends.ended_at.isoformat() if ends.ended_at else None
    return {"controller": "a", "boot": presence.told(), "boot_ends": told}


@pytest.mark.parametrize(
    ("minutes", "keeps"),
    [
        ((), False),
        ((2, 1), False),
        ((50, 20, 1), True),
        ((60, 20, 1), True),
        ((61, 20, 1), False),
        ((900, 9, 5, 1), True),
    ],
)
def test_a_process_that_is_up_and_keeps_ending_is_a_persons(minutes: tuple[int, ...], keeps: bool) -> None:
    """Mutants: whatever is up is well; ends of days ago count; the first ends alone are looked at."""
    (row,) = boot_findings(ended(*minutes))
    assert row["bad"] is keeps
    assert ("keeps ending" in row["text"]) is keeps
    assert bool(row["instead"]) is keeps
    assert (f"{len(minutes)} times" in row["text"]) is (len(minutes) > 1)


@pytest.mark.parametrize(
    "why",
    [
        "ended by SIGKILL",
        "hangs: it has said nothing at 15 looks",
        "cannot be started: no memory",
        "is starting",
        "ended with exit status 1",
        "sent a message that is none",
    ],
)
def test_each_way_to_be_down_says_what_to_do(why: str) -> None:
    """Mutant: what is said of a process that was killed is said of every end."""
    (row,) = boot_findings(ended(*(() if why == "is starting" else (1,)), why=why, up=False))
    assert row["bad"]
    assert why in row["text"]
    assert row["instead"] == next((do for part, do in DO if part in why), DO_OTHERWISE)


def test_a_controller_of_an_older_version_or_without_boots_is_no_finding() -> None:
    """Mutants: an answer that lacks a field breaks the doctor; "" is down."""
    assert boot_findings({"controller": "a"}) == []
    assert boot_findings({"controller": "a", "boot": "", "boot_ends": None}) == []
    (row,) = boot_findings({"boot": "up"})
    assert (row["bad"], row["name"]) == (False, "controller")
