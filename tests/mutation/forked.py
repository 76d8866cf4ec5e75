"""Runs the near tests of one file against mutants of it: everything is loaded once, and each mutant is a fork.

Started as `python -m tests.mutation.forked` in a copy of the tree, with a job as JSON on its standard input; writes one
verdict a line to the file descriptor that the job names. A loaded function gets the mutant's code in its place, so that
every module that imported it runs the mutant. What cannot be placed so is said to be cold: the module has to be loaded
anew. A survivor here is only believed when it survives there too.
"""

import gc
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tests.mutation.kinds import Mutant, changed

MEMORY_BYTES = 6 * 1024**3
"""Address space of a fork: a mutant that gathers without end fails instead of filling the machine."""
LEAST_S = 20.0
"""The shortest time limit of a mutant; beyond it four times what the chosen tests took counts."""
FAILED, COLD = "failed", "cold"


class Job(Struct, frozen=True):
    """One file's mutants, the tests near it, and the file descriptor that verdicts go to."""

    file: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]
    out: int


class Verdict(Struct, frozen=True):
    """Outcome of one mutant: killed, timeout, survived, unreached (no near test runs its lines) or cold.

    `by` is the test that killed it, `tests` those that run its lines.
    """

    key: str
    result: str
    by: str = ""
    tests: tuple[str, ...] = ()
    seconds: float = 0.0


class Forks:
    """A pytest plugin that runs the collected tests once for each mutant, each time in a child process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._source = Path(job.file).read_bytes()
        self._failed: list[str] = []
        self._reached: dict[str, frozenset[int]] = {}
        self._seconds: dict[str, float] = {}
        self._kills: Counter[str] = Counter()

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.freeze()
        self._look_at(session.items)
        for mutant in self._job.mutants:
            self._tell(self._try(session.items, mutant))
        return True

    def _tell(self, verdict: Verdict) -> None:
        os.write(self._job.out, msgspec.json.encode(verdict) + b"\n")

    # --- without a mutant

    def _look_at(self, items: Sequence[pytest.Item]) -> None:
        """Measures which lines each test runs, and for how long. Ends the run where a test fails by itself."""
        said = _in_child(lambda: self._traced(items), limit_s=900.0)
        found: dict[str, Any] = json.loads(said) if said else {"failed": ["they never ended"]}
        if found["failed"]:
            raise pytest.UsageError(f"near tests fail without a mutant: {', '.join(found['failed'])}")
        self._reached = {name: frozenset(lines) for name, lines in found["lines"].items()}
        self._seconds = found["seconds"]

    def _traced(self, items: Sequence[pytest.Item]) -> Iterator[bytes]:
        lines: set[int] = set()
        name = str(Path(self._job.file).resolve())

        def trace(frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
                return trace
            return trace if frame.f_code.co_filename == name else None

        threading.settrace(trace)
        sys.settrace(trace)
        reached: dict[str, list[int]] = {}
        seconds: dict[str, float] = {}
        for item, following in _pairs(items):
            lines.clear()
            began = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            reached[item.nodeid], seconds[item.nodeid] = sorted(lines), time.monotonic() - began
            sys.settrace(trace)
        yield json.dumps({"lines": reached, "seconds": seconds, "failed": self._failed}).encode()

    # --- with one

    def _try(self, items: Sequence[pytest.Item], mutant: Mutant) -> Verdict:
        lines = range(mutant.first, mutant.last + 1)
        touching = [i for i in items if _is_meant(i, mutant) and not self._reached[i.nodeid].isdisjoint(lines)]
        names = tuple(item.nodeid for item in touching)
        if not mutant.hot:
            return Verdict(mutant.key, COLD)
        if not touching:
            return Verdict(mutant.key, "unreached")
        chosen = sorted(touching, key=lambda item: (-self._kills[item.nodeid], self._seconds[item.nodeid]))
        limit_s = max(LEAST_S, 4 * sum(self._seconds[name] for name in names))
        began = time.monotonic()
        said = _in_child(lambda: self._mutated(chosen, mutant), limit_s)
        took = round(time.monotonic() - began, 2)
        if said is None:
            return Verdict(mutant.key, "timeout", tests=names, seconds=took)
        word, _, by = said.decode().partition(" ")
        if word == FAILED:
            self._kills[by] += 1
            return Verdict(mutant.key, "killed", by, names, took)
        return Verdict(mutant.key, COLD if word == COLD else "survived", "", names, took)

    def _mutated(self, items: Sequence[pytest.Item], mutant: Mutant) -> Iterator[bytes]:
        if not put_in(str(Path(self._job.file).resolve()), self._source, changed(self._source, mutant)):
            yield COLD.encode()
            return
        for item, following in _pairs(items):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                yield f"{FAILED} {self._failed[0]}".encode()
                return
        yield b"passed"


def _is_meant(item: pytest.Item, mutant: Mutant) -> bool:
    """Whether the test is one of those that the mutant names; one that names none is for all."""
    return not mutant.tests or item.nodeid.startswith(mutant.tests)


def put_in(name: str, source: bytes, mutated: bytes) -> bool:
    """Give every living function of the file the code that the mutated text has for it; False where it cannot be."""
    old, new = _codes(compile(source, name, "exec")), _codes(compile(mutated, name, "exec"))
    if old.keys() != new.keys():
        return False
    differing = {key for key, codes in old.items() if codes != new[key]}
    replaced = False
    gc.unfreeze()
    for thing in gc.get_objects():
        if not isinstance(thing, FunctionType) or thing.__code__.co_filename != name:
            continue
        key = (thing.__code__.co_qualname, thing.__code__.co_firstlineno)
        if key not in differing:
            continue
        # two lambdas of one line have one name
        if len(new[key]) > 1 or new[key][0].co_freevars != thing.__code__.co_freevars:
            return False
        thing.__code__ = new[key][0]
        replaced = True
    return replaced


def _codes(code: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    """Every code object inside this one, by the name and first line of its function."""
    found: dict[tuple[str, int], list[CodeType]] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found.setdefault((inner.co_qualname, inner.co_firstlineno), []).append(inner)
            for key, codes in _codes(inner).items():
                found.setdefault(key, []).extend(codes)
    return found


def _pairs(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _in_child(work: Any, limit_s: float) -> bytes | None:
    """Returns what the work said in a child process of its own session; None where it did not end in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(work, writing)
    os.close(writing)
    said, ended = bytearray(), False
    until = time.monotonic() + limit_s
    while not ended and (left := until - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            piece = os.read(reading, 1 << 20)
            said += piece
            ended = not piece
    os.close(reading)
    _end(child)
    return bytes(said) if ended else None


def _be_child(work: Any, writing: int) -> None:
    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        for piece in work():
            _write_all(writing, piece)
    except BaseException as error:  # noqa: BLE001 - a mutant may raise anything, pytest.exit included
        os.write(writing, f"{FAILED} {type(error).__name__}".encode())
    finally:
        os._exit(0)


def _write_all(descriptor: int, said: bytes) -> None:
    left = memoryview(said)
    while left:
        left = left[os.write(descriptor, left) :]


def _end(child: int) -> None:
    """End the child and what it started."""
    for _ in range(2):
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            break
        time.sleep(0.001)
    os.waitpid(child, 0)


def main() -> int:
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist")
    return int(pytest.main(["-q", "-s", *plugins, "--hypothesis-profile=ci", *job.tests], plugins=[Forks(job)]))


if __name__ == "__main__":
    raise SystemExit(main())
