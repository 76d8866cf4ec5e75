"""The first start of `hostler serve`: it says where its operator's token is, and the command that takes it works."""

import asyncio
import shlex
from pathlib import Path

import aiohttp
import pytest

from tests.end_to_end.processes import HOSTLER, answers, free_port, process, run


async def test_a_first_start_says_how_commands_find_it_and_a_second_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the token's file is named nowhere; it is named as the first one's at each start."""
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    where, log = f"127.0.0.1:{free_port()}", tmp_path / "log"
    serve = (HOSTLER, "serve", "--data", str(tmp_path / "data"), "--listen", where)
    async with aiohttp.ClientSession() as session:
        async with process(*serve, log=log):
            await answers(session, f"http://{where}/readyz", 60.0)
            lead = await _told(log, "hostler context add")
            assert (await run(HOSTLER, *shlex.split(lead)[1:]))[0] == 0
            code, said = await run(HOSTLER, "status", "--context", "first")
            assert code == 0, said
            assert "0 nodes" in said
        log.write_text("")
        async with process(*serve, log=log):
            await _told(log, "hostler serves")
    assert "operator.token" not in log.read_text()


async def _told(log: Path, text: str) -> str:
    """The line with this text, once it is there."""
    async with asyncio.timeout(60.0):
        while not (found := _lines(log, text)):  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.1)
    return found[0]


def _lines(log: Path, text: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if text in line]
