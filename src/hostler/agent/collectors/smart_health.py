"""Drives' own health, read through `smartctl` or `nvme` where one is installed. Pure but for `read`."""

from pathlib import Path
from typing import Any

import msgspec

from hostler.agent import child_process
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts

TOOL_S = 20.0
MAX_DRIVES = 64
USED_MOST = 255
"""Percent of a drive's rated writes that its log can hold: one byte."""
_CRITICAL = {0x01: "spare blocks are used up", 0x04: "reliability is degraded", 0x08: "media is read-only"}
"""NVMe's critical warning (base specification, SMART log) without temperature and backup power."""
_VIRTUAL = ("loop", "ram", "zram", "dm-", "md", "sr", "nbd", "fd", "vd")


def read(root: Path) -> Facts:
    """Facts "drive:NAME" and "drive_used_percent:NAME" of every drive that a tool can ask; {} without a tool."""
    facts: Facts = {}
    for block in sorted((root / "sys/block").glob("*"))[:MAX_DRIVES]:
        if not block.name.startswith(_VIRTUAL):
            facts |= _ask(block.name)
    return facts


def _ask(name: str) -> Facts:
    device = f"/dev/{name}"
    tools: list[tuple[str, ...]] = [("smartctl", "--json=c", "-H", "-A", "-n", "standby", device)]
    tools += [("nvme", "smart-log", "-o", "json", device)] if name.startswith("nvme") else []
    for argv in tools:
        try:
            done = child_process.run(argv, TOOL_S)
        except OSError:
            continue
        except child_process.HungError:
            return {f"drive:{name}": "silent"}
        return told(name, done.output)
    return {}


def told(name: str, output: bytes) -> Facts:
    """Parse a tool's output: "ok", or "failing: …". Output that is no answer gives nothing."""
    try:
        said = msgspec.json.decode(output)
    except UNREADABLE:
        return {}
    if not isinstance(said, dict):
        return {}
    log = said.get("nvme_smart_health_information_log", said)
    log = log if isinstance(log, dict) else {}
    used = log.get("percentage_used", log.get("percent_used"))
    facts: Facts = {f"drive_used_percent:{name}": used} if type(used) is int and 0 <= used <= USED_MOST else {}
    if verdict := _verdict(said, log.get("critical_warning")):
        facts[f"drive:{name}"] = verdict
    return facts


def _verdict(said: dict[str, Any], warning: Any) -> str:
    """A drive is well only if it says so."""
    status = said.get("smart_status")
    passed = status.get("passed") if isinstance(status, dict) else None
    if isinstance(warning, dict):
        warning = warning.get("value")
    grave = [text for bit, text in _CRITICAL.items() if type(warning) is int and warning & bit]
    if grave:
        return f"failing: {', '.join(grave)}"
    if passed is False:
        return "failing: its self-assessment"
    return "ok" if passed is True or warning == 0 else ""
