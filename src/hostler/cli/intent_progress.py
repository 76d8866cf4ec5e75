"""Follows an intent until it is over, and says each change: who waits for what, which step runs, how it ended."""

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hostler.cli.exit_codes import ExitCode
from hostler.cli.output import say

if TYPE_CHECKING:
    from hostler.cli.api_client import Client

LOOK_S = 2.0
_OPEN = ("under_way", "waiting_for_approval")


def follow(client: "Client", intent: str) -> ExitCode:
    """Look until nothing of it is open. `ok` where all of it was done, `refused` otherwise."""
    told: dict[str, str] = {}
    while True:
        found = client.get(f"/v1/intents/{quote(intent, safe='')}")
        for name, line in lines(found):
            if told.get(name) != line:
                say(line)
            told[name] = line
        if found["state"] not in _OPEN:
            return ExitCode.ok if found["state"] == "done" else ExitCode.refused
        time.sleep(LOOK_S)


def lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Pairs (what, its line): the intent's own state, then each node's."""
    about = f"approval {found['approval']}" if found["state"] == "waiting_for_approval" else found["target"]
    own = (found["id"], f"{found['verb']} {found['target']}: {found['state'].replace('_', ' ')} ({about})")
    return [own, *((row["node"], _of_node(row)) for row in found["nodes"])]


def _of_node(row: dict[str, Any]) -> str:
    parts = (row["state"], row["step"], row["detail"], "; ".join(one["text"] for one in row["blockers"]))
    return f"  {row['node']}: " + ", ".join(text for text in parts if text)
