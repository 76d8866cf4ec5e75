"""A command whose caller goes away ends with its caller, at whatever moment of its start that is."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from hostler.app.child_process import run_module
from hostler.runtime import bounded_process

PATIENCE_S = 20.0
EARLY = range(8)
"""Turns of the event loop after which it is cancelled: before the child, while its pipes are connected, and after."""


def running(mark: str) -> list[int]:
    """Processes whose environment has the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def state_of(pid: int) -> str:
    """The letter of the process's state, "" where there is none any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


async def command(mark: str) -> object:
    return await bounded_process.run(("/bin/sleep", "600"), {"MARK": mark}, 600.0, 100)


async def module(mark: str) -> object:
    return await run_module("http.server", "0", journal=mark)


@pytest.mark.parametrize("begin", [command, module])
@pytest.mark.parametrize("turns", EARLY)
async def test_a_command_that_is_cancelled_while_it_starts_ends(
    begin: Callable[[str], Awaitable[object]], turns: int
) -> None:
    """Mutant: it is started by asyncio itself; cancelled between fork and pipes it is waited for without end."""
    mark = f"hostler-start-{os.getpid()}-{turns}-{begin.__name__}"
    asked = asyncio.ensure_future(begin(mark))
    for _ in range(turns):
        await asyncio.sleep(0)
    asked.cancel()
    done, _ = await asyncio.wait([asked], timeout=PATIENCE_S)
    assert done, "it was cancelled and waits on"
    assert asked.cancelled()
    assert running(mark) == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("turns", EARLY)
def test_a_loop_that_ends_while_a_command_starts_ends(run: Callable[[Any], None], turns: int) -> None:
    """All tasks are cancelled at once then, the start too."""
    mark = f"hostler-end-{os.getpid()}-{turns}"

    async def main() -> None:
        asyncio.get_running_loop().call_later(PATIENCE_S, os._exit, 3)  # a loop that hangs takes the run with it
        task = asyncio.ensure_future(command(mark))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert not task.done()

    run(main())
    assert running(mark) == []


async def test_what_cannot_be_started_says_why() -> None:
    with pytest.raises(FileNotFoundError):
        await bounded_process.run(("/no/such/command",), {}, 5.0, 100)


@pytest.mark.filterwarnings("error")
async def test_one_that_does_not_end_when_it_is_killed_is_reaped_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: nobody asks for it again, and it stays a zombie as long as the process lives."""

    async def never(_: object) -> int:
        await asyncio.sleep(600)
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(bounded_process, "ended", never)
        patch.setattr(bounded_process, "REAP_S", 0.0)
        late = await bounded_process.run(("/bin/sleep", "600"), {}, 0.01, 100)
    assert late.code is None
    (child,) = bounded_process._killed  # noqa: SLF001 - nothing else shows it
    while state_of(child.pid) != "Z":  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)
    assert (await bounded_process.run(("/bin/true",), {}, 30.0, 100)).code == 0
    assert bounded_process._killed == []  # noqa: SLF001
    assert state_of(child.pid) == ""


def test_a_server_s_own_event_loop_runs_commands_side_by_side() -> None:
    """Each ends with all that it wrote. Mutant: a pipe is closed under libuv, which aborts the process."""

    async def main() -> list[bytes]:
        words = ("/bin/sh", "-c", "cat; echo told >&2")
        asked = (bounded_process.run(words, {}, 30.0, 10, given=f"{number}".encode()) for number in range(40))
        ended = await asyncio.gather(*asked)
        assert {(one.code, one.errors) for one in ended} == {(0, "told")}
        late = await asyncio.gather(*(bounded_process.run(("/bin/sleep", "600"), {}, 0.05, 10) for _ in range(5)))
        assert [one.code for one in late] == [None] * 5
        return [one.output for one in ended]

    assert uvloop.run(main()) == [f"{number}".encode() for number in range(40)]
