"""A TPM is cleared and looked at: swtpm by the real tpm2-tools, and one that lies, by programs in their place."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.agent import tpm_clear
from hostler.core.state.model import Verdict
from tests.tied_processes import tied

NEEDED = [tool for tool in ("swtpm", "tpm2_clear") if shutil.which(tool) is None]
real = pytest.mark.skipif(bool(NEEDED), reason=f"not installed: {NEEDED}; apt-get install swtpm tpm2-tools")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/sys/class/tpm/tpm0").mkdir(parents=True)
    return tmp_path / "root"


def free_pair() -> int:
    """A port that is free together with the one behind it: there tpm2-tools expect the control channel."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            with contextlib.suppress(OSError):
                two.bind(("127.0.0.1", port + 1))
                return port


@pytest.fixture
def swtpm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A TPM 2.0 of software on two free ports, for as long as a test lasts."""
    data = free_pair()
    state = tmp_path / "swtpm"
    state.mkdir()
    argv = ("swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}", "--flags", "not-need-init,startup-clear")
    ports = ("--server", f"type=tcp,port={data}", "--ctrl", f"type=tcp,port={data + 1}")
    child = subprocess.Popen(tied(*argv, *ports))
    monkeypatch.setenv("TPM2TOOLS_TCTI", f"swtpm:host=127.0.0.1,port={data}")
    try:
        for _ in range(200):
            if subprocess.run(("tpm2_getcap", "properties-fixed"), capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.05)
        yield
    finally:
        child.terminate()
        child.wait(10)


def tool(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


@real
@pytest.mark.usefixtures("swtpm")
def test_a_clear_gives_a_real_tpm_another_storage_key(root: Path, tmp_path: Path) -> None:
    """With a tenant's password on its owner hierarchy. Mutants: the key is not compared; an exit status is enough."""
    found = tpm_clear.clear(root, tmp_path / "kept/tpm")
    assert found.verdict is Verdict.passed, found
    assert len({found.before, found.after, ""}) == 3
    tool("tpm2_changeauth", "-c", "o", "tenants")
    again = tpm_clear.clear(root, tmp_path / "kept/tpm")
    assert (again.verdict, again.before) == (Verdict.passed, "locked")
    assert not (tmp_path / "kept/tpm").exists()
    assert tpm_clear.words(root) == "tpm2_clear"


@real
@pytest.mark.usefixtures("swtpm")
def test_a_clear_that_a_tenant_has_locked_is_asked_of_the_firmware_and_seen_after_the_restart(
    root: Path, tmp_path: Path
) -> None:
    """Mutants: what the firmware is to do counts as done; the key from before is forgotten over the restart."""
    request = root / "sys/class/tpm/tpm0/ppi/request"
    tool("tpm2_changeauth", "-c", "l", "tenants")
    kept = tmp_path / "kept/tpm"
    no_way = tpm_clear.clear(root, kept)
    assert (no_way.verdict, "its firmware takes no request" in no_way.detail) == (Verdict.inconclusive, True)
    request.parent.mkdir()
    request.touch()
    asked = tpm_clear.clear(root, kept)
    assert (asked.verdict, request.read_text()) == (Verdict.inconclusive, "5")
    assert "with the next start" in asked.detail
    tool("tpm2_clear", "-c", "p")  # the platform, as firmware does
    assert tpm_clear.clear(root, kept).verdict is Verdict.passed


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin" if scripts else str(folder))


def test_a_tpm_that_says_yes_and_keeps_its_key_has_failed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice. Mutant: success of the command is success."""
    same = {"tpm2_createprimary": "echo KEY", "tpm2_clear": "true", "tpm2_flushcontext": "true"}
    programs(tmp_path / "bin", monkeypatch, **same)
    found = [tpm_clear.clear(root, tmp_path / "kept/tpm") for _ in range(2)]
    assert [one.verdict for one in found] == [Verdict.failed] * 2
    assert "has the storage key of before" in found[1].detail


def test_without_a_tpm_or_its_tools_nothing_is_said_to_be_cleared(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: what nobody can ask is cleared."""
    programs(tmp_path / "bin", monkeypatch)
    assert tpm_clear.clear(root, tmp_path / "kept").verdict is Verdict.inconclusive
    assert tpm_clear.words(root).startswith("cannot: tpm2_getcap is not available")
    assert tpm_clear.clear(tmp_path, tmp_path / "kept").verdict is Verdict.inconclusive
    assert tpm_clear.words(tmp_path) == "cannot: this machine shows no TPM"
