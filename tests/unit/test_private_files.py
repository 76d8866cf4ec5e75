"""Files of a controller or an agent are read by their owner only, whatever the umask says."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hostler.agent.controller_client import ControllerClient, UnavailableError
from hostler.agent.main import AgentSettings, run_agent
from hostler.agent.operation_log import OperationLog
from hostler.agent.spool_file import SpoolFile
from hostler.journal.sqlite import SqliteJournal


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """As a service without a umask of its own has it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in [folder, *folder.iterdir()]}


@pytest.mark.parametrize("keeper", [SqliteJournal, OperationLog, SpoolFile])
def test_what_is_kept_is_its_owners_alone(tmp_path: Path, keeper: Any) -> None:
    """Mutants: SQLite makes the file by the umask; the folder is made by it; what was readable before stays so."""
    folder = tmp_path / "kept"
    if keeper is SqliteJournal:
        folder.mkdir(0o700)
    for _ in range(2):
        kept = keeper(folder / "it.sqlite")
        found = modes(folder)
        assert found.pop("kept") == 0o700
        assert "it.sqlite-wal" in found
        assert set(found.values()) == {0o600}, found
        kept.close()
        (folder / "it.sqlite").chmod(0o644)


def test_what_was_left_readable_beside_it_is_taken_back_too(tmp_path: Path) -> None:
    """A -wal of an earlier version stays behind where the process was killed."""
    path = tmp_path / "it.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE t (a)")
    wal = tmp_path / "it.sqlite-wal"
    assert wal.stat().st_mode & 0o077
    SpoolFile(path).close()
    assert path.stat().st_mode & 0o077 == 0
    assert not wal.exists() or wal.stat().st_mode & 0o077 == 0
    db.close()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
async def test_an_agent_refuses_a_token_that_others_can_read(tmp_path: Path, mode: int) -> None:
    """Mutants: only the start looks; only "others" count, not the group."""
    token = tmp_path / "agent-token"
    token.write_text("hst_x")
    token.chmod(mode)
    async with aiohttp.ClientSession() as session:
        controller = ControllerClient(session, "http://127.0.0.1:1", token, "n0")
        with pytest.raises(UnavailableError, match=f"chmod 600 {token}"):
            await controller.observations("s", "b", [])
        token.chmod(0o600)
        with pytest.raises(UnavailableError, match="Connect"):
            await controller.observations("s", "b", [])
    token.chmod(mode)
    with pytest.raises(PermissionError, match=f"chmod 600 {token}"):
        await run_agent(AgentSettings("n0", "http://127.0.0.1:1", token, tmp_path / "state", kernel_log=""))
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("held", ["", "hst_x\nthe token of ann; it is shown this once", "hst_x hst_y", "hst_\x00"])
async def test_a_token_file_that_holds_more_than_a_token_is_said_and_waited_for(tmp_path: Path, held: str) -> None:
    """Mutant: the header's library raises over it, and the agent ends with a traceback."""
    token = tmp_path / "agent-token"
    token.touch(0o600)
    token.write_text(held)
    async with aiohttp.ClientSession() as session:
        controller = ControllerClient(session, "http://127.0.0.1:1", token, "n0")
        with pytest.raises(UnavailableError, match="write the token alone"):
            await controller.observations("s", "b", [])
