"""The same five attacks on every listener of `serve`: it answers, BMCs are polled, and nobody is called unreachable."""

import asyncio
import hashlib
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.source_budgets import SourcePolicy
from hostler.server.tokens import Grant, Role
from tests.adversary.attacked import ATTACKER, Served, Witness, attacked, beside, tolerable_s
from tests.adversary.evil_bmc import EvilBmc, evil, sound
from tests.adversary.test_hostile_bmcs import PERIOD_S, Fleet, entered, until
from tests.end_to_end.booted import certificate
from tests.end_to_end.processes import free_port

pytestmark = pytest.mark.nightly("processes are started and attacked for minutes")

IMAGE_MIB = 32
IMAGE = b"vmlinuz\n" * (IMAGE_MIB * 1024 * 1024 // 8)
FILES = 4_096
NON_READING = 4_300
BYTEWISE = 600
LASTS_S = 8.0
TOTAL = 1_400
"""Connections of an attack: more than one address has of any listener, and than a process of 1,024 files has."""
HEAD = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LISTENERS = {
    "everybody": "/schema/openapi.json",
    "people": "/schema/openapi.json",
    "agents": "/healthz",
    "boot": "/images/vmlinuz",
    "boot-media": "/n/n1/x/hostler-x.iso",
}
"""Listener → the longest answer that a stranger has there."""


class Target:
    """One listener: its port, and how it is spoken to."""

    def __init__(self, port: int, trust: ssl.SSLContext | None) -> None:
        self.port = port
        self._trust = trust

    def open(self, source: str = ATTACKER) -> socket.socket:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)  # as little as the kernel grants
        one.settimeout(5.0)
        one.bind((source, 0))
        one.connect(("127.0.0.1", self.port))
        return one

    def spoken(self, source: str = ATTACKER) -> socket.socket:
        """A connection past its TLS handshake, where it has one."""
        one = self.open(source)
        return self._trust.wrap_socket(one, server_hostname="127.0.0.1") if self._trust is not None else one


Attack = Callable[[Target, bytes, threading.Event, list[socket.socket]], None]


def many(target: Target, _get: bytes, over: threading.Event, held: list[socket.socket]) -> None:
    """Connections that say nothing; by TLS not even hello."""
    _hold(TOTAL, lambda _: target.open(), over, held)


def silent(target: Target, get: bytes, over: threading.Event, held: list[socket.socket]) -> None:
    """Hold connections that were answered once, and say nothing more."""
    _hold(100, lambda _: _sent(target.spoken(), get.replace(b"/images/vmlinuz", b"/ipxe") + b"\r\n"), over, held)


def half(target: Target, get: bytes, over: threading.Event, held: list[socket.socket]) -> None:
    """Heads that do not end, with a byte now and then."""
    _hold(TOTAL // 4, lambda n: _sent(target.spoken(), get + b"x-%d: y" % n), over, held)
    while not over.wait(1.0):
        for one in held:
            with suppress(OSError):
                one.sendall(b"y")


def non_reading(target: Target, get: bytes, over: threading.Event, held: list[socket.socket]) -> None:
    """Requests sent ahead whose answers are not read."""
    _hold(TOTAL // 4, lambda _: _sent(target.spoken(), (get + b"\r\n") * 8), over, held)


def slow_reading(target: Target, get: bytes, over: threading.Event, held: list[socket.socket]) -> None:
    """Answers that are read by a byte a second."""
    _hold(TOTAL // 4, lambda _: _sent(target.spoken(), (get + b"\r\n") * 8), over, held)
    _read_bytewise(held, over)


ATTACKS: tuple[Attack, ...] = (many, silent, half, non_reading, slow_reading)


def _hold(
    number: int, opened: Callable[[int], socket.socket], over: threading.Event, held: list[socket.socket]
) -> None:
    for n in range(number):
        if over.is_set():
            return
        with suppress(OSError):
            held.append(opened(n))


def _sent(one: socket.socket, what: bytes) -> socket.socket:
    one.sendall(what)
    return one


def _read_bytewise(held: list[socket.socket], over: threading.Event) -> None:
    for one in held:
        one.setblocking(False)
    while not over.wait(1.0):
        for one in held:
            with suppress(OSError):
                one.recv(1)


def boots(folder: Path, port: int) -> tuple[str, ...]:
    """A boot section that has one image, and how it is served."""
    images = folder / "images"
    images.mkdir()
    (images / "vmlinuz").write_bytes(IMAGE)
    digest = hashlib.sha256(IMAGE).hexdigest()
    section = f"boot:\n  url: http://127.0.0.1:{port}\n  mac_only: false\n  images:\n"
    section += f"    production: {{kernel: vmlinuz, initrd: [], args: quiet, sha256: {{vmlinuz: {digest}}}}}\n"
    (folder / "boot.yaml").write_text(section)
    return ("--config", str(folder / "boot.yaml"), "--boot-listen", f"127.0.0.1:{port}", "--boot-images", str(images))


@asynccontextmanager
async def listened(
    folder: Path, bmc: EvilBmc, which: str, files: int = 1_024
) -> AsyncIterator[tuple[Served, Target, Fleet]]:
    """A cell with this listener, a boot listener, and one BMC that is polled."""
    port, boot_port, ways = free_port(), free_port(), entered(folder)
    ways += boots(folder, boot_port)
    trust = None
    if which in {"agents", "people"}:
        ways += ["--agent-listen", f"127.0.0.1:{port}"]
    if which in ("everybody", "boot-media"):
        ways += certificate(folder)
        ways += ["--boot-media-listen", f"127.0.0.1:{port}"]
        trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    async with attacked(folder, *ways, files=files, trust=trust) as served:
        fleet = await asyncio.to_thread(Fleet, served, good=bmc)
        await asyncio.to_thread(until, lambda: bmc.asked, "the first look at the BMC")
        at = {"boot": boot_port, "everybody": served.port, "people": served.port}.get(which, port)
        if which == "boot":
            await asyncio.to_thread(until, partial(_is_served, boot_port), "the image, whose checksum is verified")
        yield served, Target(at, trust), fleet


def _is_served(port: int) -> bool:
    """Whether a machine is sent the image; the first request has its checksum verified."""
    with socket.create_connection(("127.0.0.1", port), 10.0) as one:
        one.sendall(HEAD % b"/ipxe?mac=52:54:00:00:00:09" + b"Connection: close\r\n\r\n")
        while one.recv(65_536):
            pass
    with socket.create_connection(("127.0.0.1", port), 10.0) as one:
        one.sendall(HEAD % b"/images/vmlinuz" + b"Range: bytes=0-6\r\nConnection: close\r\n\r\n")
        heard = b""
        while piece := one.recv(65_536):
            heard += piece
    return heard.endswith(b"vmlinuz")


@contextmanager
def polled(bmc: EvilBmc, fleet: Fleet) -> Iterator[None]:
    """The BMC is looked at as often as ever, and is not called unreachable."""
    began, asked = time.monotonic(), len(bmc.asked)
    yield
    looks = sum("/Systems/1" in path and "Log" not in path for path, _ in bmc.asked[asked:])
    took_s = time.monotonic() - began
    assert looks >= int(took_s / PERIOD_S) - 1, (looks, took_s)
    assert not fleet.shows("good", "bmc.unreachable")


@pytest.mark.parametrize("which", LISTENERS)
async def test_no_attack_on_a_listener_keeps_anybody_else_out(tmp_path: Path, which: str) -> None:
    """Attack by many, silent, half, unread and slowly read connections: `/healthz` in a second, BMCs polled on time.

    Mutants: TLS connections count from the end of their handshake on (many, on `everybody` and `boot-media`); the boot
    listener has no table; a client that does not read counts as answered and keeps its place.
    """
    get = HEAD % LISTENERS[which].encode()
    with evil(sound("S-good")) as bmc:
        async with listened(tmp_path, bmc, which) as (served, target, fleet):
            with polled(bmc, fleet):
                for attack in ATTACKS:
                    held: list[socket.socket] = []
                    with Witness(served) as witness, beside(striking(attack, target, get, held)):
                        await asyncio.sleep(LASTS_S)
                        if which.startswith("boot"):
                            await asyncio.to_thread(_answers, target)
                    witness.told(f"{which}: {attack.__name__}, {len(held)} connections")
                    for one in held:
                        one.close()
                    assert held, "the attack did not happen"
                    assert not witness.refused, (attack.__name__, witness)
                    assert witness.longest_s < 2 * tolerable_s(), (attack.__name__, witness)


def striking(
    attack: Attack, target: Target, get: bytes, held: list[socket.socket]
) -> Callable[[threading.Event], None]:
    """The attack, as it is run beside a witness."""
    return lambda over: attack(target, get, over, held)


def _answers(target: Target) -> None:
    """The listener itself answers another machine."""
    with target.spoken("127.0.0.4") as one:
        one.sendall(HEAD % b"/nothing" + b"Connection: close\r\n\r\n")
        assert one.recv(12) == b"HTTP/1.1 404"


@pytest.mark.smoke
async def test_4300_boot_connections_that_read_nothing_stop_nobody(tmp_path: Path) -> None:
    """With 4,096 files: API, boots and BMCs are answered for as long as they are held, and the log says so.

    Mutants: the boot listener accepts without a table; nobody looks whether a file can be opened.
    """
    get = HEAD % b"/images/vmlinuz" + b"\r\n"
    held: list[socket.socket] = []
    with evil(sound("S-good")) as bmc:
        async with listened(tmp_path, bmc, "boot", FILES) as (served, target, fleet):
            attack: Any = partial(_hold, NON_READING, lambda _: _sent(target.open(), get))
            with polled(bmc, fleet), Witness(served) as witness, beside(lambda over: attack(over=over, held=held)):
                await asyncio.to_thread(until, lambda: len(held) >= NON_READING - 10, "the connections")
                for _ in range(4):
                    await asyncio.sleep(2.0)
                    await asyncio.to_thread(_answers, target)
            witness.told(f"{len(held)} boot connections that read nothing")
            lines = (tmp_path / "log").read_text()
            for one in held:
                one.close()
            assert not witness.refused, witness
            assert witness.longest_s < 2 * tolerable_s(), witness
            assert '"connections_refused"' in lines
            assert '"listener": "boot"' in lines
            assert "open_files_exhausted" not in lines


async def test_boot_requests_of_many_made_up_machines_are_recorded_within_their_one_budget(tmp_path: Path) -> None:
    """Addresses, serials and architectures in turns: all that nobody vouches for shares one budget of records.

    Mutants: it is kept by address; each reason has a budget of its own.
    """
    with evil(sound("S-good")) as bmc:
        async with listened(tmp_path, bmc, "boot") as (served, target, fleet):
            ann = served.token(Grant("ann", Role.operator))
            before = (await asyncio.to_thread(served.ask, "GET", "/v1/status", ann))[1]["seq"]
            sent: list[int] = []
            with polled(bmc, fleet), Witness(served) as witness, beside(partial(_made_up, target, sent)):
                await asyncio.sleep(2 * LASTS_S)
            now = (await asyncio.to_thread(served.ask, "GET", "/v1/status", ann))[1]["seq"]
            witness.told(f"{len(sent)} boot requests of machines that nobody knows: {now - before} records")
            assert len(sent) > 200
            assert now - before < SourcePolicy().boot.records_per_hour + 50
            assert not witness.refused, witness
            assert witness.longest_s < 2 * tolerable_s(), witness


def _made_up(target: Target, sent: list[int], over: threading.Event) -> None:
    while not over.is_set():
        number = len(sent)
        arch = ("x86_64", "arm64", "i386", "riscv")[number % 4]
        mac = f"02:00:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
        path = f"/ipxe?mac={mac if number % 3 else '02:00:00:00:00:01'}&serial=S-{number % 7}&arch={arch}".encode()
        with suppress(OSError), target.open(f"127.0.0.{2 + number % 50}") as one:
            one.sendall(HEAD % path + b"Connection: close\r\n\r\n")
            sent.append(len(one.recv(4_096)))


async def test_600_readers_of_an_image_by_a_byte_a_second_leave_others_theirs(tmp_path: Path) -> None:
    """Of one address: another machine has the whole image meanwhile, and the slow ones lose their connections.

    Mutants: turns are given without looking at whose they are; who reads a byte a second reads on.
    """
    get = HEAD % b"/images/vmlinuz" + b"\r\n"
    held: list[socket.socket] = []
    with evil(sound("S-good")) as bmc:
        async with listened(tmp_path, bmc, "boot", FILES) as (served, target, fleet):

            def attack(over: threading.Event) -> None:
                _hold(BYTEWISE, lambda _: _sent(target.open(), get), over, held)
                _read_bytewise(held, over)

            with polled(bmc, fleet), Witness(served) as witness, beside(attack):
                await asyncio.to_thread(until, lambda: len(held) >= BYTEWISE - 10, "the readers")
                took_s = await asyncio.to_thread(_fetched, target)
                await asyncio.sleep(65.0)
                ended = await asyncio.to_thread(lambda: sum(map(_is_closed, held)))
            witness.told(f"{len(held)} readers by a byte a second: another had {IMAGE_MIB} MiB in {took_s:.1f} s")
            sys.stdout.write(f"{ended} of them were ended\n")
            for one in held:
                one.close()
            assert not witness.refused, witness
            assert witness.longest_s < 2 * tolerable_s(), witness
            assert took_s < 10.0 * max(1.0, os.getloadavg()[0])
            assert ended > 60, "the slow ones that had their turn"


def _fetched(target: Target) -> float:
    began, heard = time.monotonic(), 0
    with socket.create_connection(("127.0.0.1", target.port), 60.0, ("127.0.0.4", 0)) as one:
        one.sendall(HEAD % b"/images/vmlinuz" + b"Connection: close\r\n\r\n")
        while piece := one.recv(1 << 20):
            heard += len(piece)
    assert heard > len(IMAGE)
    return time.monotonic() - began


def _is_closed(one: socket.socket) -> bool:
    """Read what is there to its end, and whether the server had hung up."""
    try:
        while one.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
