"""Attacks of a stranger with a TCP connection: endless heads, half requests, dripped bodies, requests sent ahead."""

import asyncio
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hostler.server.http_limits import BODY_S, HEAD_BYTES, HEAD_S, PIPELINED_MAX
from tests.adversary.attacked import Served, Witness, attacked, beside, said, tolerable_s

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

BEGUN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
MIB = 1024 * 1024
SENT_MIB = 200
LASTS_S = 10.0
HALF_REQUESTS = 1_100


def flood(served: Served, begin: bytes, piece: bytes, over: threading.Event) -> int:
    """Send `begin`, then `piece` for as long as somebody takes it, SENT_MIB at most; bytes sent."""
    sent, end = 0, time.monotonic() + LASTS_S
    with suppress(OSError), served.open() as one:
        one.sendall(begin)
        while sent < SENT_MIB * MIB and time.monotonic() < end and not over.is_set():
            one.sendall(piece)
            sent += len(piece)
    return sent


MANY_HEADERS = b"".join(b"x-%04d: %s\r\n" % (n, b"v" * 500) for n in range(128))


CHUNKED = BEGUN.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "many headers": (BEGUN, MANY_HEADERS),
    "one value": (BEGUN + b"x: ", b"v" * 65_536),
    "the path": (b"GET /", b"u" * 65_536),
    "a name": (b"GET / HTTP/1.1\r\n", b"n" * 65_536),
    "many trailers": (CHUNKED + b"0\r\n", MANY_HEADERS),
    "one trailer": (CHUNKED + b"0\r\nx: ", b"v" * 65_536),
    "a chunk's extension": (CHUNKED + b"1;e=", b"v" * 65_536),
}


async def test_a_head_without_end_takes_neither_memory_nor_the_loop(tmp_path: Path) -> None:
    """Of each kind four connections at once, each with up to 200 MiB.

    Mutants: nothing counts the bytes of a head; trailers are not counted; only whole headers are counted.
    """
    async with attacked(tmp_path) as served:
        for name, (begin, piece) in ENDLESS.items():
            sent: list[int] = []

            def attack(
                over: threading.Event, begin: bytes = begin, piece: bytes = piece, sent: list[int] = sent
            ) -> None:
                sent.append(flood(served, begin, piece, over))

            with Witness(served) as witness, beside(*[attack] * 4):
                await asyncio.to_thread(_until, lambda sent=sent: len(sent) == 4, LASTS_S)
            witness.told(f"four heads without end, {name}, at most {max(sent) / MIB:.1f} MiB taken of one")
            assert witness.grown_mib < 32, (name, witness)
            assert witness.longest_s < tolerable_s(), (name, witness)
            assert not witness.refused, (name, witness)
            assert max(sent) < 16 * MIB, "sockets buffer some, the server takes no more"


def _until(holds: object, within_s: float) -> None:
    end = time.monotonic() + within_s
    while not holds() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.05)


async def test_whoever_sends_too_large_a_head_is_told_so(tmp_path: Path) -> None:
    async with attacked(tmp_path) as served:
        for head in (b"x: " + b"v" * (2 * HEAD_BYTES) + b"\r\n\r\n", b"a: b\r\n" * 101 + b"\r\n"):
            with served.open() as one:
                one.sendall(BEGUN + head)
                assert (await asyncio.to_thread(said, one)).startswith(b"HTTP/1.1 431 "), head[:20]
        with served.open() as one:
            one.sendall(BEGUN + b"a: b\r\n" * 90 + b"b: " + b"v" * (HEAD_BYTES // 2) + b"\r\nConnection: close\r\n\r\n")
            assert (await asyncio.to_thread(said, one)).startswith(b"HTTP/1.1 200 ")


async def test_half_requests_refuse_nobody(tmp_path: Path) -> None:
    """1,100 of them, more than the process may have files, kept alive by a byte now and then.

    Mutants: strangers are not counted by address; the newest is refused instead of the oldest that asks for nothing.
    """
    halves: list[socket.socket] = []

    def attack(over: threading.Event) -> None:
        for number in range(HALF_REQUESTS):
            if over.is_set():
                return
            with suppress(OSError):
                halves.append(one := served.open())
                one.sendall(BEGUN + b"x-%d: y" % number)
        while not over.wait(1.0):
            for one in halves:
                with suppress(OSError):
                    one.sendall(b"y")

    async with attacked(tmp_path) as served:
        with Witness(served) as witness, beside(attack):
            await asyncio.sleep(LASTS_S)
        for one in halves:
            one.close()
        witness.told(f"{len(halves)} half requests")
        assert len(halves) > HALF_REQUESTS / 2, "the attack did not happen"
        assert not witness.refused, witness
        assert witness.longest_s < tolerable_s(), witness


LATE = {
    "nothing": (b"", HEAD_S),
    "empty lines": (b"\r\n\r\n", HEAD_S),
    "a head": (BEGUN + b"x: ", HEAD_S),
    "an empty line after an answer": (BEGUN + b"\r\n\r\n", HEAD_S),
    "a body": (BEGUN + b"Content-Length: 100\r\n\r\n{", BODY_S),
}


async def test_what_does_not_come_in_time_is_closed(tmp_path: Path) -> None:
    """A byte every second does not help.

    Mutants: the time begins anew with each byte; an empty line ends the wait for a next request.
    """

    def drip(sent: bytes, within_s: float) -> float:
        began = time.monotonic()
        with served.open(timeout_s=1.0) as one:
            one.sendall(sent)
            while time.monotonic() - began < 3 * within_s:
                try:
                    while one.recv(65_536):
                        pass
                    break
                except TimeoutError:
                    with suppress(OSError):
                        one.sendall(b"\r\n" if sent.endswith(b"\r\n") else b"y")
                except ConnectionError:
                    break
        return time.monotonic() - began

    async with attacked(tmp_path) as served:
        took = await asyncio.gather(*(asyncio.to_thread(drip, *late) for late in LATE.values()))
    for name, (_, within_s), took_s in zip(LATE, LATE.values(), took, strict=True):
        assert took_s < 2.5 * within_s, name  # whoever is let go on is here for three times as long


async def test_requests_sent_ahead_are_few(tmp_path: Path) -> None:
    """Mutant: each read's requests are queued, however many there are."""
    async with attacked(tmp_path) as served:
        with Witness(served) as witness, served.open() as one:
            with suppress(OSError):
                one.sendall((BEGUN + b"\r\n") * 50_000)
            heard = await asyncio.to_thread(said, one)
        witness.told("50,000 requests sent ahead")
        assert heard.count(b"HTTP/1.1 200 ") <= 2 * PIPELINED_MAX
        assert witness.grown_mib < 32, witness
        assert witness.longest_s < tolerable_s(), witness
