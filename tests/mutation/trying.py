"""Tries mutants in a copy of the tree: in forks of one loaded process, and survivors in a process of their own."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from tests.mutation.forked import COLD, Job, Verdict
from tests.mutation.kinds import Mutant, changed

COLD_LIMIT_S = 240.0
BELIEVED = frozenset({"killed", "timeout"})


class Trouble(Exception):  # noqa: N818 - it is no error of the code under test
    """The near tests could not be run at all."""


def tried(
    tree: Path, tests: tuple[str, ...], mutants: Iterable[Mutant], *, sure: bool
) -> Iterator[tuple[Mutant, Verdict]]:
    """Each mutant of one file with what became of it; where `sure`, survivors of the forks are tried anew.

    What no near test runs is not. Raises Trouble where the tests fail without any mutant.
    """
    waiting = {mutant.key: mutant for mutant in mutants}
    if not waiting:
        return
    file = next(iter(waiting.values())).file
    for verdict in _forked(tree, file, tests, tuple(waiting.values())):
        mutant = waiting.pop(verdict.key)
        doubted = verdict.result == COLD or (verdict.result == "survived" and sure)
        yield mutant, again(tree, mutant, verdict, tests) if doubted else verdict
    if waiting:
        raise Trouble(f"{file}: {len(waiting)} mutants were never tried; run its tests: {' '.join(tests)}")


def _forked(tree: Path, file: str, tests: tuple[str, ...], mutants: tuple[Mutant, ...]) -> Iterator[Verdict]:
    reading, writing = os.pipe()
    job = msgspec.json.encode(Job(file, tests, mutants, writing))
    command = [sys.executable, "-m", "tests.mutation.forked"]
    said = tree / ".mutation.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=tree, env=environment(tree), stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writing,)
        )
        os.close(writing)
        assert process.stdin is not None, "it was asked for"
        feeding = threading.Thread(target=_feed(process, job), daemon=True)
        feeding.start()
        try:
            with os.fdopen(reading, "rb") as lines:
                for line in lines:
                    yield msgspec.json.decode(line, type=Verdict)
            process.wait()
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        raise Trouble(f"{file}: {said.read_bytes()[-2000:].decode(errors='replace')}")


def _feed(process: subprocess.Popen[bytes], job: bytes) -> Callable[[], None]:
    def feed() -> None:
        assert process.stdin is not None, "it was asked for"
        process.stdin.write(job)
        process.stdin.close()

    return feed


def again(tree: Path, mutant: Mutant, verdict: Verdict, tests: tuple[str, ...]) -> Verdict:
    """The mutant written into the copy, and a process of its own: with the tests that run its lines, or all of them."""
    path = tree / mutant.file
    source = path.read_bytes()
    path.write_bytes(changed(source, mutant))
    chosen = (verdict.tests if verdict.result == "survived" else ()) or mutant.tests or tests
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=ci")
    command = [sys.executable, "-m", "pytest", "-x", "-q", *plugins, "--tb=no", "-rfE"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, *chosen],
            cwd=tree,
            env=environment(tree),
            capture_output=True,
            timeout=COLD_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return msgspec.structs.replace(verdict, result="timeout")
    finally:
        path.write_bytes(source)
    took = round(time.monotonic() - began, 2)
    if done.returncode == 0:
        return msgspec.structs.replace(verdict, result="survived", seconds=took)
    failed = [line.split()[1] for line in done.stdout.decode().splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[0] if failed else "its modules do not load"
    return msgspec.structs.replace(verdict, result="killed", by=by, seconds=took)


def environment(tree: Path) -> dict[str, str]:
    """Hostler and its tests are the copy's; the tests draw the same examples each time."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
