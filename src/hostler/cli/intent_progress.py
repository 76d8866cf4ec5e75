"""Follows intents until they are over, and says each change: who waits for what, which step runs, how it ended."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hostler.cli.exit_codes import ExitCode
from hostler.cli.output import say

if TYPE_CHECKING:
    from hostler.client import Client
    from hostler.client.answers import IntentProgress, NodeProgress


class IntentFollower:
    """Looks at intents in turn; `found` is the last of each, by its id. What it says of one, it says once."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._told: dict[tuple[str, str], str] = {}
        self.found: dict[str, IntentProgress] = {}

    def follow(self, intents: Iterable[str], limit_s: float | None = None) -> None:
        """Look until nothing of them is open, or so many seconds are over."""
        from hostler.client.api import LOOK_S

        open_yet, until = list(intents), time.monotonic() + limit_s if limit_s is not None else None
        while open_yet:
            for intent in open_yet:
                self._look(intent)
            open_yet = [intent for intent in open_yet if not self.found[intent].over]
            if not open_yet or (until is not None and time.monotonic() + LOOK_S > until):
                return
            time.sleep(LOOK_S)

    def _look(self, intent: str) -> None:
        self.found[intent] = found = self._client.look(intent)
        for name, line in lines(found):
            if self._told.get((intent, name)) != line:
                say(line)
            self._told[intent, name] = line


def code_of_progress(found: "IntentProgress") -> ExitCode:
    """`ok` where all of it was done, `waits` where something is open, `refused` otherwise."""
    if not found.over:
        return ExitCode.waits
    return ExitCode.ok if found.state == "done" else ExitCode.refused


def lines(found: "IntentProgress") -> list[tuple[str, str]]:
    """Pairs (what, its line): the intent's own state, then each node's."""
    about = found.target if found.nodes else found.text
    if found.state == "waiting_for_approval":
        about = f"approval {found.approval}"
    own = (found.id, f"{found.verb} {found.target}: {found.state.replace('_', ' ')} ({about})")
    return [own, *((row.node, f"  {row.node}: {told(row)}") for row in found.nodes)]


def told(row: "NodeProgress") -> str:
    """A node's state with what failed last, its step, what is known of it, whom it waits for, and who acts next."""
    detail = row.detail if row.detail not in row.failed else ""
    then = f"next: {row.next}" if row.next else ""
    waits = "; ".join(f"waits for {one.text} (ends when {one.ends_when})" for one in row.blockers)
    return ", ".join(text for text in (row.state, row.failed, row.step, detail, waits, then) if text)
