"""InfiniBand and RoCE ports: one that worked, and has not for a while, is told once, and so is its return."""

from pathlib import Path

DOWN_S = 90.0
"""Time a port must be down before it is reported: link training and switch restarts take less than a job waits."""
MAX_PORTS = 256
MAX_READ = 64
ACTIVE = "active"


class Ports:
    """Follows the states of the ports from look to look.

    A port that this agent has never seen active may be unused: nothing is said of it. The first sight of an active
    one is told: it ends what an agent before this one may have said.
    """

    def __init__(self) -> None:
        self._last_active: dict[str, float] = {}
        self._told: dict[str, None] = {}

    def news(self, states: dict[str, str], now_s: float) -> dict[str, str]:
        """Port → "down" for those to be told of now, "active" for those that are back. A port that vanished is down."""
        found: dict[str, str] = {}
        for port, state in states.items():
            if state == ACTIVE:
                if port in self._told or port not in self._last_active:
                    self._told.pop(port, None)
                    found[port] = ACTIVE
                self._last_active[port] = now_s
        for port, since_s in self._last_active.items():
            if states.get(port) != ACTIVE and now_s - since_s >= DOWN_S and port not in self._told:
                self._told[port] = None
                found[port] = "down"
        return found


def read(root: Path) -> dict[str, str]:
    """Port ("mlx5_0/1") → its state in lower case ("active", "down", "init" …), by sysfs below `root`."""
    found: dict[str, str] = {}
    for path in sorted(root.glob("sys/class/infiniband/*/ports/*/state"))[:MAX_PORTS]:
        try:
            text = path.read_bytes()[:MAX_READ].decode("ascii", "replace")
        except OSError:
            continue
        device, port = path.parts[-4], path.parts[-2]
        found[f"{device}/{port}"] = text.partition(":")[2].strip().lower() or "unknown"
    return found
