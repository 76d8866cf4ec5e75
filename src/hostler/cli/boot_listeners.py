"""How the boot listeners' process of each controller is, as a finding of `hostler doctor`."""

from collections.abc import Mapping
from typing import Any

DO_OTHERWISE = "look for boot_listeners_down in its log, and for an error before it"
DO = (
    ("SIGKILL", "its host may lack memory: look for 'Out of memory' in `journalctl -k`; else somebody ended it"),
    ("hangs", "look at the load and the disk of its host, and for an error in its log before boot_listeners_down"),
    ("cannot be started", "remove the cause; its host may lack memory, or processes (TasksMax, ulimit -u)"),
    ("is starting", "ask again in a minute"),
)
"""Advice by how the process ended, the first that fits."""


def boot_findings(health: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The finding on one controller's boot listeners, by its answer to /healthz; none where it serves no boots."""
    state = health.get("boot") or ""
    if not state:
        return []
    ends: Mapping[str, Any] = health.get("boot_ends") or {}
    up, keeps_ending = state == "up", bool(ends.get("keeps_ending"))
    text = "the boot listeners' process is up" if up else f"{state}; machines that boot wait meanwhile"
    if restarts := ends.get("restarts"):
        often = "once" if restarts == 1 else f"{restarts} times"
        text += f"; it was started again {often}, the last time because it {ends['last_end']} ({ends['ended_at']})"
    if keeps_ending:
        text += "; it keeps ending"
    bad = not up or keeps_ending
    why = str(ends.get("last_end") if up else state)
    instead = next((do for part, do in DO if part in why), DO_OTHERWISE) if bad else ""
    name = health.get("controller") or "controller"
    row = {"cluster": "", "kind": "boot", "name": name, "bad": bad, "text": text, "instead": instead}
    return [{**row, "remediator": False}]
