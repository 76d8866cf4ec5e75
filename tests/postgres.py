"""A real PostgreSQL for tests: one server per test process on a free loopback port, a database for each test.

`fsync` stays on: what a test calls durable has been on the disk. The files of a fresh cluster are made once and kept
in pytest's cache; the server ends with its test process, also when that is killed.
"""

import contextlib
import fcntl
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.end_to_end.processes import free_port
from tests.tied_processes import skip_where_nothing_can_be_tied, tied

USER = "hostler"
START_S = 60.0
ICU_SINCE = 15
"""The first version whose clusters can sort as people do: whoever needs another order has to ask for it."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "log_line_prefix": "%m [%p] %d ",
    "autovacuum_naptime": "10s",
}


class PostgresServer:
    """A server of its own in `folder`; `stop` and `start` keep its data, `close` removes it."""

    def __init__(self, cache: Path) -> None:
        self._bin = _binaries()
        self._as = _as_somebody()
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-pg-", dir="/tmp"))
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._names = itertools.count(1)
        try:
            self._lay_out(cache)
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, database: str = "postgres", port: int | None = None) -> str:
        return f"postgresql://{USER}@127.0.0.1:{port or self.port}/{database}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, dropped at the end."""
        name = f"cell_{next(self._names)}"
        self._run(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            yield self.url(name)
        finally:
            if self._process is None:
                self.start()
            self._run(f'DROP DATABASE "{name}" WITH (FORCE)')

    def start(self) -> None:
        """Start, on the same port where there was one, and return once it answers."""
        for _ in range(3):
            port = self.port or free_port()
            if self._started(port):
                self.port = port
                return
        pytest.fail(f"PostgreSQL does not start:\n{self._log().read_text()[-3_000:]}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT orderly, SIGQUIT at once, which leaves recovery to the next start."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def close(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def hung(self, database: str) -> Iterator[None]:
        """The processes that serve a database, and the one that accepts connections, stand still."""
        assert self._process is not None
        name = database.rpartition("/")[2]
        with psycopg.connect(self.url(), autocommit=True) as connection:
            rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [name]).fetchall()
        pids = [self._process.pid, *(pid for (pid,) in rows)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def own(self, folder: Path) -> None:
        """Give a folder, and all that is in it, to the user that the server runs as."""
        if os.geteuid():
            return
        user = pwd.getpwnam("postgres")
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)

    # --- helpers ---

    def _lay_out(self, cache: Path) -> None:
        """Unpack a fresh cluster, which is made first where the cache has none."""
        packed = cache / f"cluster-{_version(self._bin)}-en.tar"
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not packed.exists():
                self._initialise(packed)
        with tarfile.open(packed) as tar:
            tar.extractall(self.folder, filter="fully_trusted")  # noqa: S202 - packed by `_initialise`
        lines = [f"{name} = '{value}'" for name, value in SETTINGS.items()]
        lines.append(f"unix_socket_directories = '{self.folder}'")
        with (self.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write("\n" + "\n".join(lines) + "\n")
        (self.folder / "data").chmod(0o700)
        self.own(self.folder)

    def _initialise(self, packed: Path) -> None:
        self.own(self.folder)
        arguments = ["--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        if int(_version(self._bin).partition(".")[0]) >= ICU_SINCE:
            arguments += ["--locale-provider=icu", "--icu-locale=en-US"]
        made = subprocess.run(
            [*self._as, self._bin / "initdb", "-D", self.folder / "data", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        if made.returncode:
            pytest.fail(f"initdb: {made.stderr}")
        unfinished = packed.with_suffix(".part")
        with tarfile.open(unfinished, "w") as tar:
            tar.add(self.folder / "data", "data")
        unfinished.rename(packed)
        shutil.rmtree(self.folder / "data")

    def _started(self, port: int) -> bool:
        with self._log().open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as, self._bin / "postgres", "-D", self.folder / "data", "-p", str(port)],
                stdout=log,
                stderr=log,
                cwd="/",
            )
        until = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url(port=port), connect_timeout=5):
                return True
            time.sleep(0.05)
        self.stop(signal.SIGQUIT)
        return False

    def _log(self) -> Path:
        return self.folder / "log"

    def _run(self, statement: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The server of this test process; skips where PostgreSQL cannot be had."""
    cache = getattr(request.config, "cache", None)  # it can be switched off
    server = PostgresServer(Path(cache.mkdir("postgres")) if cache else tmp_path_factory.mktemp("postgres"))
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this test's own."""
    with postgres.database() as url:
        yield url


def _binaries() -> Path:
    found = shutil.which("postgres")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if not (found or installed):
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    return (Path(found) if found else installed[-1]).parent


def _version(binaries: Path) -> str:
    said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2]


def _as_somebody() -> list[str]:
    """Starts a program so that it ends with this process, and as another user than root, whom it would refuse."""
    skip_where_nothing_can_be_tied()
    dying = list(tied(signal="QUIT"))
    if os.geteuid():
        return dying
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL refuses to run as root and there is no user postgres: apt-get install postgresql")
    return [*dying, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
