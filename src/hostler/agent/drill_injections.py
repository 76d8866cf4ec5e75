"""Shows the fault of a drill on this node: one line to the kernel log that bears the drill's token, or silence.

The token is made here and never leaves this node but in that line; the controller is told its SHA-256 before. It is
kept in memory and used once: an agent that has restarted meanwhile injects nothing.
"""

import re
import secrets
from collections.abc import Callable

from hostler.agent.host_commands import NotPossibleError
from hostler.core.state.drills import DrillFault, marked, proof_of
from hostler.core.state.operations import ArmDrill, InjectFault
from hostler.core.tables.drills import DRILLS

TOKEN_BYTES = 16
SILENT_MOST_S = 600.0
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}", re.ASCII)


class DrillInjections:
    """The node's hand for drills. `write` adds a line of user space to the kernel log, `fall_silent` ends all sending.

    Invariant: at most one token is held, that of the drill armed last.
    """

    def __init__(self, write: Callable[[str], None], fall_silent: Callable[[float], None]) -> None:
        self._write = write
        self._fall_silent = fall_silent
        self._armed = ("", "")

    def arm(self, act: ArmDrill) -> str:
        """Make the token of a drill; its SHA-256."""
        token = secrets.token_hex(TOKEN_BYTES)
        self._armed = (act.drill, token)
        return proof_of(token)

    def inject(self, act: InjectFault) -> str:
        """Show the fault; one sentence on what was done. Raises the errors of `host_commands`."""
        row = DRILLS[act.fault]
        if not row.by_agent:
            raise NotPossibleError(f"{act.fault} is not injected by an agent")
        if act.fault is DrillFault.agent_silent:
            if not 0 < act.silent_s <= SILENT_MOST_S:
                raise NotPossibleError(f"silent_s is more than 0 and at most {SILENT_MOST_S:g}, not {act.silent_s:g}")
            self._fall_silent(act.silent_s)
            return f"silent for {act.silent_s:g} s"
        if "{pci}" in row.line and not _PCI.fullmatch(act.pci):
            raise NotPossibleError(f"{act.fault} needs the PCI address of a GPU, as 0000:4c:00, not {act.pci[:40]!r}")
        armed, token = self._armed
        if armed != act.drill:
            raise NotPossibleError(
                f"no token of drill {act.drill[:100]} is held: this agent has restarted since; begin the drill again"
            )
        self._armed = ("", "")
        self._write(marked(row.line.replace("{pci}", act.pci), token))
        return "one line was written to the kernel log"
