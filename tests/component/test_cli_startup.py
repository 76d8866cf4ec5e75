"""Modules that a command loads before it does anything, and its end in a pipe. In processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from tests.cli_api import page, serving

HEAVY = ("aiohttp", "litestar", "sqlalchemy", "uvicorn", "asyncio", "yaml", "numpy", "cryptography")
"""Modules of which each costs more than a tenth of what `hostler --help` may take, or is a server's."""

PROBE = """
import json, sys
from hostler.cli.main import main
try:
    main({arguments!r})
finally:
    print(json.dumps([name for name in {heavy!r} if name in sys.modules]), file=sys.stderr)
"""


def process(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["node", "--help"], ["node", "reboot", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Mutant: import the client in `options`; every `--help` then pays for TLS."""
    also = () if "node" in arguments else ("msgspec",)  # the acts on nodes are read from their structs
    done = process(PROBE.format(arguments=arguments, heavy=(*HEAVY, *also, "ssl", "http.client")))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.splitlines()[-1]) == []


def test_listing_nodes_loads_no_server_and_no_rich(tmp_path: Path) -> None:
    with serving() as api:
        api.says("GET /v1/nodes", page({"id": "n1", "phase": "production"}))
        code = PROBE.format(arguments=["node", "list"], heavy=(*HEAVY, "rich"))
        done = process(code, HOSTLER_SERVER=api.url, HOSTLER_CONFIG=str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.splitlines()[-1]) == []
    assert "n1" in done.stdout


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    """Mutant: do not catch BrokenPipeError; `hostler node list | head` then ends in a traceback."""
    log = tmp_path / "log"
    log.write_text("NVRM: Xid (PCI:0000:4c:00): 79, GPU has fallen off the bus.\n" * 20_000)
    command = [sys.executable, "-m", "hostler.cli.main", "kernel-log", "decode", str(log), "-o", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline())["code"] == 79
        running.stdout.close()
        errors = running.stderr.read()
        assert running.wait(60) == ExitCode.closed_pipe
    assert errors == ""


@pytest.mark.parametrize("arguments", [["--help"], ["sim", "--help"], ["docs", "--help"]])
def test_a_full_disk_is_said_and_is_no_traceback(arguments: list[str]) -> None:
    """Mutants: the flush at the end fails unseen with status 0; Python says it again at exit, with status 120."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "hostler.cli.main", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "hostler: the output could not be written: No space left on device\n")


def test_a_terminal_without_unicode_gets_no_traceback(tmp_path: Path) -> None:
    with serving() as api:
        api.says("GET /v1/nodes", page({"id": "n1", "waiting": "Straße"}))
        code = PROBE.format(arguments=["node", "list"], heavy=())
        done = process(code, HOSTLER_SERVER=api.url, HOSTLER_CONFIG=str(tmp_path / "none"), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "Stra\\xdfe" in done.stdout


def test_the_installed_command_says_its_version() -> None:
    done = process("from hostler.cli.main import main; main(['--version'])")
    assert (done.returncode, done.stdout) == (0, "0.1.0\n")
