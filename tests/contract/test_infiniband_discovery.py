"""A fabric of real infiniband-diags' making: ibsim answers as devices do, `ibnetdiscover` asks, and we judge."""

from pathlib import Path

from hostler.core.fabric.validation import validate
from hostler.drivers.infiniband.diagnostics import Diagnostics, discover
from tests.fabrics import a_fabric


async def found_by(folder: Path, script: str, timeout_s: float = 20.0) -> str:
    """Why nothing is concluded from a tool that does this."""
    tool = folder / "ibnetdiscover"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    seen = await discover(Diagnostics(directory=str(folder), timeout_s=timeout_s))
    assert (validate(a_fabric().design, seen).findings, seen.links) == ((), ())
    return seen.partial


async def test_a_tool_that_fails_hangs_or_never_stops_writing_says_nothing_about_cables(tmp_path: Path) -> None:
    assert "did not end within 0.3 s" in await found_by(tmp_path, "sleep 60", 0.3)
    assert "ended with 1: ibwarn: can't open UMAD port" in await found_by(
        tmp_path, "echo 'ibwarn: can'\"'\"'t open UMAD port' >&2; exit 1"
    )
    assert "no device on the page" in await found_by(tmp_path, "exit 0")
    assert "wrote more than 256 MiB" in await found_by(tmp_path, "head -c 300000000 /dev/zero")
    assert "line 1: " in await found_by(tmp_path, "echo '<html>502 Bad Gateway</html>'")
    (tmp_path / "ibnetdiscover").unlink()
    assert "cannot be run" in (await discover(Diagnostics(directory=str(tmp_path)))).partial
