"""The boot listeners' process, which really runs: started again where it ends, hangs or says what is no message."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import msgspec
import pytest

from hostler.app import boot_process
from hostler.app.boot_process import BootProcess
from hostler.server.boot import listener_process
from hostler.server.boot.boot_link import ANSWER_MOST, QUESTION_MOST, AskMessage, LinkError, linked
from hostler.server.boot.boot_wire import BY_MAC, BootAnswer, BootQuestion, FileIdentity, SentFile
from hostler.server.boot.listener_process import RemoteAnswers
from hostler.server.connection_limits import limits
from hostler.server.open_file_limits import for_connections, raise_limit

PATIENCE_S = 60.0
FILE = b"x" * 1_000_000


async def until(holds: object) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # type: ignore[operator]  # noqa: ASYNC110 - processes have no event here
            await asyncio.sleep(0.02)


@asynccontextmanager
async def booting(folder: Path) -> AsyncIterator[tuple[BootProcess, str, aiohttp.ClientSession]]:
    """A controller that answers each question by its address, and images by one file."""
    (folder / "file").write_bytes(FILE)
    stat = (folder / "file").stat()
    identity = FileIdentity(stat.st_ino, stat.st_size, stat.st_ctime_ns)

    async def answer(question: BootQuestion) -> BootAnswer:
        if question.name == "file":
            return BootAnswer(200, file=SentFile(str(folder / "file"), "a/b", identity, len(FILE)))
        if question.name == "broken":
            raise ValueError("a bug")
        if question.name == "long":
            return BootAnswer(200, "x" * ANSWER_MOST)
        return BootAnswer(200, f"{question.address} {question.mac}")

    process = BootProcess(answer, lambda: datetime.now(UTC))
    async with process.listening(("127.0.0.1", 0), None) as url, aiohttp.ClientSession() as session:
        yield process, url, session


async def get(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    async with session.get(url, timeout=aiohttp.ClientTimeout(PATIENCE_S)) as answer:
        return answer.status, await answer.read()


def opened_by(pid: int) -> list[str]:
    return [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]


def there(pid: int) -> bool:
    """Whether the process lives; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_it_answers_through_a_process_that_has_its_sockets_and_nothing_else(tmp_path: Path) -> None:
    """Mutants: the child inherits the controller's descriptors; a file is sent whatever lies there now."""
    (tmp_path / "secret").touch()
    with (tmp_path / "secret").open() as secret:
        os.set_inheritable(secret.fileno(), True)
        async with booting(tmp_path) as (process, url, session):
            assert process.presence.told() == "up"
            assert await get(session, f"{url}/ipxe?mac=aa") == (200, b"127.0.0.1 aa")
            assert await get(session, f"{url}/images/file") == (200, FILE)
            assert (await get(session, f"{url}/images/broken"))[0] == 500
            assert (await get(session, f"{url}/images/long"))[0] == 500
            assert (await get(session, f"{url}/nothing"))[0] == 404
            assert process.pid != os.getpid()
            assert not any("secret" in one or ".db" in one for one in opened_by(process.pid))
            (tmp_path / "file").write_bytes(b"y" * len(FILE))
            assert (await get(session, f"{url}/images/file"))[0] == 404
            (counts,) = process.presence.counts
            assert (counts.listener, counts.most) == ("boot", limits(for_connections(raise_limit())).total)
        await until(lambda: not there(process.pid))


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
async def test_it_is_started_again(tmp_path: Path, by: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that ask meanwhile wait. Mutants: nobody starts it again; who hangs is left; the port goes with it."""
    monkeypatch.setattr(boot_process, "LOOK_S", 0.2)
    async with booting(tmp_path) as (process, url, session):
        first = process.pid
        os.kill(first, by)
        await until(lambda: not process.presence.up)
        said = process.presence.told()
        assert "by SIGKILL" in said if by is signal.SIGKILL else "hangs" in said
        assert "it is started again by itself" in said
        assert process.presence.counts == ()
        assert await get(session, f"{url}/ipxe?mac=aa") == (200, b"127.0.0.1 aa")
        await until(lambda: process.presence.up)
        assert (process.presence.restarts, process.presence.told()) == (1, "up")
        assert not there(first)


async def test_one_that_ends_at_once_is_tried_at_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: it is started again at once, for ever."""
    monkeypatch.setattr(boot_process, "MODULE", "hostler.no_such_module")
    monkeypatch.setattr(boot_process, "FIRST_BEAT_S", 0.1)
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(pause_s: float) -> None:
        if pause_s in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0):
            slept.append(pause_s)
            pause_s = 0.0
        await real(pause_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(boot_process, "LOOK_S", 0.05)
    async with booting(tmp_path) as (process, _, _):
        await until(lambda: process.presence.restarts >= 6)
        assert slept[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
        assert "exit status 1" in process.presence.told()


PARENT = """
import asyncio, sys
from datetime import UTC, datetime
from hostler.app.boot_process import BootProcess

async def answer(question):
    raise ValueError

async def main():
    process = BootProcess(answer, lambda: datetime.now(UTC))
    async with process.listening(("127.0.0.1", 0), None):
        print(process.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("hangs", [False, True])
async def test_it_ends_with_a_controller_that_is_killed(hangs: bool) -> None:
    """Also where it hangs itself. Mutants: it does not look at its link's end; the kernel is not told to end it."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert parent.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            child = int(await parent.stdout.readline())
        assert there(child)
        if hangs:
            os.kill(child, signal.SIGSTOP)
    finally:
        parent.kill()
        await parent.wait()
    await until(lambda: not there(child))


async def test_what_is_no_message_or_too_long_ends_the_link() -> None:
    """Mutants: the length is believed; what cannot be read is passed over."""
    for sent in (b"\xff\xff\xff\xff", (QUESTION_MOST + 1).to_bytes(4, "big"), (3).to_bytes(4, "big") + b"abc"):
        ours, theirs = socket.socketpair()
        link = await linked(ours, QUESTION_MOST)
        theirs.sendall(sent)
        with pytest.raises(LinkError):
            await anext(link.from_listeners())
        theirs.close()
        link.close()


async def test_a_controller_that_does_not_answer_or_has_gone_is_told_to_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutants: it is waited for without end; a late answer is given to the next question."""
    monkeypatch.setattr(listener_process, "ANSWER_S", 0.2)
    ours, theirs = socket.socketpair()
    link = await linked(ours, ANSWER_MOST)
    answers = RemoteAnswers(link)
    reading = asyncio.create_task(answers.read())
    late = await answers.answer(BootQuestion(BY_MAC, "10.0.0.1"))
    assert (late.status, late.again_s > 0) == (503, True)
    length = int.from_bytes(theirs.recv(4), "big")
    asked = msgspec.msgpack.decode(theirs.recv(length), type=AskMessage)
    assert (asked.number, asked.question.address) == (1, "10.0.0.1")
    told = msgspec.msgpack.encode({"type": "answer", "number": 1, "answer": {"status": 200, "text": "late"}})
    theirs.sendall(len(told).to_bytes(4, "big") + told)
    assert (await answers.answer(BootQuestion(BY_MAC, "10.0.0.2"))).status == 503
    theirs.close()
    async with asyncio.timeout(PATIENCE_S):
        await reading
    link.close()
