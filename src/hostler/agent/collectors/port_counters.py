"""Counters and modules of this node's InfiniBand ports: sysfs, and `mlxlink` where it is installed."""

import json
import shutil
from pathlib import Path
from typing import Any

from hostler.agent import child_process
from hostler.agent.child_process import HungError
from hostler.agent.collectors.kernel_files import text_of

COUNTERS = {"link_downed": "link_downed", "symbol_error": "symbol_errors"}
MLXLINK_S = 15.0
MAX_PORTS = 64
MAX_READ = 64
MAX_PAGE = 64 * 1024


def read(root: Path) -> bytes:
    """JSON: port ("mlx5_0/1") → its counters, state, and what `mlxlink` says of it; `up_s` of the node beside them."""
    uptime = (root / "proc/uptime").read_text().split(maxsplit=1)[0]
    ports: dict[str, Any] = {}
    for path in sorted(root.glob("sys/class/infiniband/*/ports/*"))[:MAX_PORTS]:
        device, port = path.parts[-3], path.parts[-1]
        ports[f"{device}/{port}"] = {**_counters(path), "mlxlink": _mlxlink(device, port)}
    return json.dumps({"up_s": float(uptime), "ports": ports}).encode()


def _counters(path: Path) -> dict[str, object]:
    found: dict[str, object] = {"state": text_of(path / "state", MAX_READ).partition(":")[2].strip().lower()}
    for name, called in COUNTERS.items():
        text = text_of(path / "counters" / name, MAX_READ)
        if text.isdecimal():
            found[called] = int(text)
    return found


def _mlxlink(device: str, port: str) -> object:
    """The tool's own JSON, None without the tool, or where it fails or hangs."""
    tool = shutil.which("mlxlink")
    if tool is None:
        return None
    try:
        ended = child_process.run((tool, "-d", device, "-p", port, "-m", "-c", "-e", "--json"), MLXLINK_S)
        return json.loads(ended.output[:MAX_PAGE]) if ended.code == 0 else None
    except (HungError, OSError, ValueError):
        return None
