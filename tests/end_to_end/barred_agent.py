"""The agent of `killable_agent`, with the abilities of a real node's: its own checks alone, and no act without leave.

Run as `barred_agent.py NODE SERVER DIRECTORY [--allow-actions]`; `--allow-actions` is what `hostler agent` takes.
"""

import asyncio
import sys
from pathlib import Path

from msgspec.structs import replace

from hostler.agent.checks.host_stress import StressResult
from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.host_commands import NeverPossibleError
from hostler.agent.machine import ALLOW, ANSWERED, NEED_PERMISSION
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Verdict
from hostler.core.state.pass_rules import PassRules
from tests.end_to_end.killable_agent import WrittenBody, run

BARRED = "this agent was started without --allow-actions"


class BarredBody(WrittenBody):
    """A body that a real agent of the shipped packages has: `hostler_checks` is not installed."""

    def __init__(self, node: str, directory: Path, *, may_act: bool) -> None:
        super().__init__(node, directory)
        self._may_act = may_act

    def profiles(self) -> tuple[str, ...]:
        return tuple(sorted(ANSWERED))

    def barred(self) -> tuple[str, ...]:
        return () if self._may_act else NEED_PERMISSION

    def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
        if profile not in ANSWERED:
            return StressResult(Verdict.inconclusive, f"this agent has no checks of profile {profile}")
        return super().check(profile, expects, run, rules)

    def inventory(self) -> NodeInventory:
        seen = super().inventory()
        return seen if self._may_act else replace(seen, facts={**seen.facts, "unread.erase": BARRED})

    def write_kernel_log(self, line: str) -> None:
        """Have it written, as by a program of user space: `/dev/kmsg` takes no other record from one."""
        self._act("write_kernel_log", line=line)

    def _act(self, kind: str, **more: str) -> None:
        if not self._may_act and kind in NEED_PERMISSION:
            raise NeverPossibleError(f"{kind}: {BARRED}", ALLOW)
        super()._act(kind, **more)


if __name__ == "__main__":
    node, server, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    body = BarredBody(node, directory, may_act="--allow-actions" in sys.argv[4:])
    asyncio.run(run(node, server, directory, body))
