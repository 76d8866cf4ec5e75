"""Follows an intent until it is over, and says each change: who waits for what, which step runs, how it ended."""

from typing import TYPE_CHECKING

from hostler.cli.exit_codes import ExitCode
from hostler.cli.output import say

if TYPE_CHECKING:
    from hostler.client import Client
    from hostler.client.answers import IntentProgress, NodeProgress


def follow(client: "Client", intent: str) -> ExitCode:
    """Look until nothing of it is open. `ok` where all of it was done, `refused` otherwise."""
    told: dict[str, str] = {}
    state = ""
    for found in client.progress(intent):
        for name, line in lines(found):
            if told.get(name) != line:
                say(line)
            told[name] = line
        state = found.state
    return ExitCode.ok if state == "done" else ExitCode.refused


def lines(found: "IntentProgress") -> list[tuple[str, str]]:
    """Pairs (what, its line): the intent's own state, then each node's."""
    about = f"approval {found.approval}" if found.state == "waiting_for_approval" else found.target
    own = (found.id, f"{found.verb} {found.target}: {found.state.replace('_', ' ')} ({about})")
    return [own, *((row.node, _of_node(row)) for row in found.nodes)]


def _of_node(row: "NodeProgress") -> str:
    detail = row.detail if row.detail not in row.failed else ""
    then = f"next: {row.next}" if row.next else ""
    parts = (row.state, row.failed, row.step, detail, "; ".join(one.text for one in row.blockers), then)
    return f"  {row.node}: " + ", ".join(text for text in parts if text)
