"""A real `hostler serve` under limits of memory and files, attacked from one loopback address and watched from another.

Attacks are threads with plain sockets: they are bounded in count and time, and end with the block that began them.
"""

import http.client
import json
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import aiohttp

from hostler.server.tokens import Grant, TokenStore
from tests.end_to_end.processes import HOSTLER, answers, free_port, process

ATTACKER, WITNESS = "127.0.0.2", "127.0.0.3"
FILES = 1_024
MEMORY_KIB = 4 * 1024 * 1024
"""Address space, which is far more than what is resident: arenas and the stacks of threads count whole."""
START_S = 60.0
EVERY_S = 0.05
LEAST_S = 1.0
"""A witness looks on for so long after an attack that was over at once."""
PATIENCE_S = 60.0


class Served:
    """The server: its address, its process, and tokens for it."""

    def __init__(self, port: int, pid: int, data: Path, trust: ssl.SSLContext | None = None) -> None:
        self.port = port
        self.pid = pid
        self.url = f"{'https' if trust else 'http'}://127.0.0.1:{port}"
        self._data = data
        self._trust = trust

    def connected(self, timeout_s: float, source: str = "") -> http.client.HTTPConnection:
        """A client of the API, by TLS where that is how it is served."""
        there = (source, 0) if source else None
        if self._trust is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s, source_address=there)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout_s, source_address=there, context=self._trust
        )

    def token(self, grant: Grant) -> str:
        with closing(TokenStore(self._data / "tokens.db")) as store:
            return store.create(grant)

    def revoke(self, token: str) -> None:
        """As `hostler token revoke` does, from another process than the server's."""
        with closing(TokenStore(self._data / "tokens.db")) as store:
            assert store.revoke(token.split("_")[1])

    def rss_mib(self) -> float:
        return _status_kib(self.pid, "VmRSS") / 1024

    def open(self, source: str = ATTACKER, timeout_s: float = 10.0) -> socket.socket:
        """A connection from the attacker's address."""
        return socket.create_connection(("127.0.0.1", self.port), timeout_s, (source, 0))

    def ask(self, method: str, path: str, token: str, body: Any = None, timeout_s: float = 30.0) -> tuple[int, Any]:
        """Status and body of one request on a connection of its own."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with closing(self.connected(timeout_s)) as one:
            one.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = one.getresponse()
            raw = answer.read()
        return answer.status, json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode()


def _status_kib(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@asynccontextmanager
async def attacked(
    folder: Path, *more: str, files: int = FILES, trust: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    """`hostler serve` with so many files and so much memory at most; `trust` where `more` has it serve by TLS."""
    data, log, port = folder / "data", folder / "log", free_port()
    data.mkdir(mode=0o700, exist_ok=True)
    limit = f'ulimit -n {files}; ulimit -v {MEMORY_KIB}; exec "$@"'
    argv = ["/bin/sh", "-c", limit, "sh", HOSTLER, "serve", "--data", str(data), "--listen", f"127.0.0.1:{port}", *more]
    connector = aiohttp.TCPConnector(ssl=trust if trust is not None else True)
    async with process(*argv, log=log) as serving, aiohttp.ClientSession(connector=connector) as session:
        try:
            await answers(session, f"{'https' if trust else 'http'}://127.0.0.1:{port}/readyz", START_S, serving)
        except (AssertionError, TimeoutError) as why:
            raise AssertionError(f"{why}\n{log.read_text()[-2_000:]}") from None
        yield Served(port, serving.pid, data, trust)
        assert serving.returncode is None, log.read_text()[-2_000:]


class Witness:
    """Asks `/healthz` on a new connection every EVERY_S: how long each answer took, who got none, how RSS grew."""

    def __init__(self, served: Served) -> None:
        self.took_s: list[float] = []
        self.refused = 0
        self.before_mib = served.rss_mib()
        self.most_mib = self.before_mib
        self._served = served
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def longest_s(self) -> float:
        return max(self.took_s, default=float("inf"))

    @property
    def grown_mib(self) -> float:
        return self.most_mib - self.before_mib

    def __repr__(self) -> str:
        return (
            f"RSS {self.before_mib:.0f} -> {self.most_mib:.0f} MiB, /healthz longest {self.longest_s * 1000:.0f} ms of "
            f"{len(self.took_s)}, refused {self.refused}"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def told(self, attack: str) -> None:
        """Print the figures; pytest shows them with -s."""
        sys.stdout.write(f"\n{attack}: {self}\n")

    def __exit__(self, *_: object) -> None:
        self._over.wait(LEAST_S)
        self._over.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            began = time.monotonic()
            try:
                self._once()
                self.took_s.append(time.monotonic() - began)
            except (OSError, http.client.HTTPException):
                self.refused += 1
            with suppress(FileNotFoundError):
                self.most_mib = max(self.most_mib, self._served.rss_mib())

    def _once(self) -> None:
        with closing(self._served.connected(PATIENCE_S, WITNESS)) as one:
            one.request("GET", "/healthz")
            if one.getresponse().read()[:1] != b"{":
                raise http.client.HTTPException("no health")


@contextmanager
def beside(*attacks: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run each attack in a thread; whoever leaves the block has them end."""
    over = threading.Event()
    threads = [threading.Thread(target=attack, args=(over,), daemon=True) for attack in attacks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "an attack did not end"


def said(one: socket.socket) -> bytes:
    """Reads the server's answer until it closes, "" where it hung up without a word."""
    heard = b""
    with suppress(ConnectionError):
        while piece := one.recv(65_536):
            heard += piece
    return heard


def tolerable_s(quiet_s: float = 0.5) -> float:
    """The longest that an answer may take: more where other work has the machine's cores."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return quiet_s * max(1.0, busy)
