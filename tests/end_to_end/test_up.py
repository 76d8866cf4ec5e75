"""What the first command of the README starts: `hostler up`, as a newcomer runs it, and a command beside it."""

import asyncio
import re
from pathlib import Path

from tests.end_to_end.processes import HOSTLER, free_port, process, run

PATIENCE_S = 90.0


async def test_hostler_up_brings_emulated_nodes_up_and_the_commands_find_it(tmp_path: Path) -> None:
    """Mutant: anything of the emulated fleet that does not run on the event loop of the command."""
    log = tmp_path / "log"
    newcomer = ("env", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}", HOSTLER)
    calm = ("--nodes", "2", "--faults-per-hour", "0", "--scale", "14400")
    said = ""
    async with process(*newcomer, "up", "--port", str(free_port()), *calm, log=log) as up:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not re.search(r"\b(test|production)\b", said):  # its BMC, boot, agent and firmware are behind it
                    assert up.returncode is None, log.read_text()
                    await asyncio.sleep(0.5)
                    _, said = await run(*newcomer, "node", "list")
        except TimeoutError:
            raise AssertionError(f"never tested: {said}\n{log.read_text()[-3000:]}") from None
    assert "Hostler is up with 2 emulated nodes" in log.read_text()
