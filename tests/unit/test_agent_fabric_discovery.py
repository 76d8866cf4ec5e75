"""The agent's look at the network: a closed list of tools, under a deadline, with an end to what they write."""

import base64
import lzma
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent import fabric_discovery
from hostler.agent.fabric_discovery import look
from hostler.agent.host_commands import ActFailedError, NotPossibleError
from hostler.core.state.operations import DiscoverFabric

ASKED = DiscoverFabric(timeout_s=20)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path / "ibnetdiscover"


def written(tool: Path, script: str) -> None:
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def test_a_page_is_packed_with_the_adapter_and_port_that_were_asked_for(tool: Path) -> None:
    written(tool, 'echo "$@"; echo "$LC_ALL"')
    facts = look(replace(ASKED, adapter="mlx5_3", port=2))
    page = lzma.decompress(base64.b64decode(str(facts["page"])))
    assert (page, facts["bytes"]) == (b"-C mlx5_3 -P 2\nC\n", 17)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"tool": "sh"}, "tool is one of"),
        ({"tool": "../ibnetdiscover"}, "tool is one of"),
        ({"adapter": "-C"}, "no name of an adapter"),
        ({"adapter": "mlx5_0; reboot"}, "no name of an adapter"),
        ({"port": -1}, "is not 0 to 255"),
        ({"port": 256}, "is not 0 to 255"),
        ({"timeout_s": 0.0}, "timeout_s is 1 to"),
        ({"timeout_s": float("nan")}, "timeout_s is 1 to"),
        ({"timeout_s": 1e9}, "timeout_s is 1 to"),
    ],
)
def test_an_argument_that_is_none_runs_nothing(tool: Path, args: dict[str, Any], said: str) -> None:
    written(tool, "touch ran")
    with pytest.raises(NotPossibleError, match=said):
        look(replace(ASKED, **args))


def test_a_tool_that_is_not_there_fails_hangs_or_never_stops_gives_no_page(
    tool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: no deadline while nothing is written; no end to what is written."""
    monkeypatch.setenv("PATH", str(tool.parent))
    with pytest.raises(NotPossibleError, match="cannot be run"):
        look(ASKED)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    written(tool, "exit 3")
    with pytest.raises(ActFailedError, match="ended with 3"):
        look(ASKED)
    written(tool, "sleep 600")
    with pytest.raises(ActFailedError, match="did not end within 1 s"):
        look(replace(ASKED, timeout_s=1.0))
    monkeypatch.setattr(fabric_discovery, "MOST_BYTES", 1 << 20)
    written(tool, "exec cat /dev/zero")
    with pytest.raises(ActFailedError, match="wrote more than"):
        look(ASKED)
    monkeypatch.setattr(fabric_discovery, "MOST_PACKED", 1 << 16)
    written(tool, "exec cat /dev/urandom")
    with pytest.raises(ActFailedError, match="wrote more than"):
        look(ASKED)


def test_errors_that_a_tool_reports_by_its_exit_code_are_a_page_all_the_same(tool: Path) -> None:
    counters = tool.with_name("ibqueryerrors")
    written(counters, "echo errors; exit 1")
    assert look(replace(ASKED, tool="ibqueryerrors"))["bytes"] == 7


def test_the_lines_about_traps_at_the_end_of_a_manager_s_log_are_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the whole log is sent; a line that is not written to its end is sent."""
    log = tmp_path / "opensm.log"
    monkeypatch.setattr(fabric_discovery, "LOG", log)
    asked = replace(ASKED, tool="sm_log")
    assert look(asked)["bytes"] == 0
    trap = "Nov 23 18:13:41 071801 [7] 0x01 -> log_trap_info: Received"
    log.write_text(f"SUBNET UP\n{trap}\n{trap[:30]}")
    assert lzma.decompress(base64.b64decode(str(look(asked)["page"]))).decode() == f"{trap}\n"
    log.write_bytes(b"\xff\x1b[31m" * 400_000 + b"\n" + f"{trap}\n".encode() * 9_000)
    page = lzma.decompress(base64.b64decode(str(look(asked)["page"]))).decode()
    assert page == f"{trap}\n" * fabric_discovery.MOST_LINES
    log.unlink()
    log.mkdir()
    with pytest.raises(ActFailedError, match="cannot be read"):
        look(asked)
