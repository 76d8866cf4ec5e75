"""Orders of a meeting between nodes: a file of JSON that belongs to one rank, checked whole. Pure."""

import json
import math
from dataclasses import dataclass
from typing import Any

from hostler_checks.answers import MAX_NAME

MAX_BYTES, MAX_RANKS, SECRET_LEAST = 64 << 10, 512, 16
MAX_SECONDS, MAX_MIB = 3600.0, 4096


@dataclass(frozen=True)
class MeetingOrder:
    """Place of a rank in a meeting. Rank 0 listens on the address and port; `names` are the nodes by rank.

    `secret` is of this run alone. `deadline_s`: for so long a rank waits for the others. `via` is this node's port, by
    which the way between two is named; `interface` the one that carries the data, "" as the library chooses.
    """

    address: str
    port: int
    rank: int
    names: tuple[str, ...]
    secret: str
    deadline_s: float = 60.0
    seconds: float = 5.0
    mib: int = 4
    via: str = "host"
    interface: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """The nodes that are to be met."""
        return tuple(name for rank, name in enumerate(self.names) if rank != self.rank)


def order_of(data: bytes) -> MeetingOrder:
    """Read an order. Raises ValueError."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"an order has at most {MAX_BYTES >> 10} KiB")
    try:
        told = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(told, dict) or told.keys() - MeetingOrder.__dataclass_fields__.keys():
        raise ValueError(f"an order is an object of {', '.join(MeetingOrder.__dataclass_fields__)}")
    listed = told.get("names")
    names = tuple(_word(name, "names") for name in listed) if isinstance(listed, list) else ()
    if not 2 <= len(names) <= MAX_RANKS or len(set(names)) < len(names):
        raise ValueError(f"2 to {MAX_RANKS} nodes of different names meet")
    secret = told.get("secret")
    if not isinstance(secret, str) or not SECRET_LEAST <= len(secret) <= MAX_NAME * 4:
        raise ValueError(f"the secret of a meeting has {SECRET_LEAST} to {MAX_NAME * 4} characters")
    return MeetingOrder(
        address=_word(told.get("address"), "address"),
        port=_whole(told.get("port"), "port", 1, 65_535),
        rank=_whole(told.get("rank"), "rank", 0, len(names) - 1),
        names=names,
        secret=secret,
        deadline_s=_seconds(told.get("deadline_s", 60.0), "deadline_s"),
        seconds=_seconds(told.get("seconds", 5.0), "seconds"),
        mib=_whole(told.get("mib", 4), "mib", 1, MAX_MIB),
        via=_word(told.get("via", "host"), "via"),
        interface=_word(told["interface"], "interface") if told.get("interface") else "",
    )


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable() or ">" in value:
        raise ValueError(f"{name}: 1 to {MAX_NAME} printable characters, no '>'")
    return value


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name}: a whole number from {least} to {most}")
    return value


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name}: a number of seconds")
    if not 0.1 <= value <= MAX_SECONDS:
        raise ValueError(f"{name}: from 0.1 to {MAX_SECONDS:g} s")
    return float(value)
