"""The truth table without processes, files and clocks: collector, diagnosis and controller one after the other."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from msgspec.structs import replace

from bench.detection.plants import GPUS, Placed, gpu_address, serial
from bench.detection.table import Quiet, Seen
from hostler.agent.collectors.kernel_log import Intake, LogPosition
from hostler.agent.local_observation import LocalObservation
from hostler.agent.spool import Spooled
from hostler.agent.spool_upload import observation
from hostler.controller.inputs import Observed
from hostler.core.policy.documents import parse
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import Condition, Node, Observation, Severity
from tests.kit import POLICY, Drive, a_node

POOLS = """
skus:
  h100: {gpus: 8, memory_gib: 2048, gpu_model: H100, firmware: {BMC: "1.0.0"}}
pools:
  train: {sku: h100, target: 1, cluster: k1, tenant: acme, owner: pat@acme, modes: {"*": observe},
          budget: {count: 1, percent: 100}}
"""


def laboratory(count: int) -> Drive:
    """A cell in which nobody is disturbed, with healthy nodes whose GPUs are known by address and serial number."""
    return Drive(configuration(), [node_of(number) for number in range(count)])


@cache
def configuration() -> Configuration:
    """The laboratory's: the default policy, and a pool that observes."""
    return parse({"policy.yaml": POLICY, "pools.yaml": POOLS})


def node_of(number: int) -> Node:
    """The laboratory's n-th node."""
    fields: dict[str, Any] = {
        "slots": tuple((f"gpu{gpu}", serial(number, gpu)) for gpu in range(GPUS)),
        "addresses": tuple((f"pci:{gpu_address(gpu)}", serial(number, gpu)) for gpu in range(GPUS)),
        "most_seen": (("gpu", GPUS), ("host memory", 2015.0)),
    }
    return a_node(name_of(number), **fields)


def name_of(number: int) -> str:
    """Node's id."""
    return f"n{number:03d}"


class Ear:
    """The collector of one node's kernel log, fed records as /dev/kmsg gives them."""

    def __init__(self, node: str, boot_id: str) -> None:
        self._node = node
        self._boot_id = boot_id
        self._intake = Intake(LogPosition(boot_id))
        self._records = self._told = 0

    def hear(self, lines: tuple[str, ...], now_s: float, facility: int = 0) -> list[Observation]:
        """Hands these lines to the controller, in its order."""
        for line in lines:
            self._intake.take(record(line, self._records, now_s, facility), now_s)
            self._records += 1
        seen, _ = self._intake.batch(now_s)
        return [self._observation(one, now_s) for one in seen]

    def _observation(self, seen: LocalObservation, now_s: float) -> Observation:
        self._told += 1
        return observation(Spooled(self._told, self._boot_id, now_s - seen.seen_s, seen), self._node, "spool")


def record(line: str, number: int, now_s: float, facility: int = 0) -> bytes:
    """A line as the kernel hands it to readers of /dev/kmsg."""
    escaped = line.encode().replace(b"\\", b"\\x5c").replace(b"\r", b"\\x0d").replace(b"\n", b"\\x0a")
    return b"%d,%d,%d,-;%s\n" % (facility << 3 | 3, number, int(now_s * 1e6), escaped)


def decided(plants: tuple[Placed, ...], drive: Drive) -> list[Seen]:
    """Returns the records of each plant, one after the other, a minute between them."""
    ears: dict[str, Ear] = {}
    found: list[Seen] = []
    now_s = 100.0
    for one in plants:
        name = name_of(one.node)
        ear = ears.setdefault(name, Ear(name, drive.boot_of(name)))
        now_s += 60.0
        recorded = tell(drive, name, ear.hear(one.lines, now_s, one.facility))
        found.append(Seen(one.expected, tuple((condition.type, condition.part) for condition in recorded)))
    return found


def tell(drive: Drive, node: str, seen: list[Observation]) -> tuple[Condition, ...]:
    """Post observations of a node; the conditions that are new, or told anew, because of them."""
    before = {condition.id: condition for condition in drive.node(node).conditions}
    stamped = tuple(replace(one, received=drive.now) for one in seen)
    if stamped:
        drive.step(Observed(0, node, stamped))
    return tuple(c for c in drive.node(node).conditions if before.get(c.id) is not c)


def booted(logs: Iterable[tuple[str, list[str]]]) -> Quiet:
    """Whole healthy boots, each on a node of its own: (name, lines), a line every tenth of a second."""
    alarms: list[str] = []
    notes: Counter[str] = Counter()
    lived: Counter[str] = Counter()
    for name, lines in logs:
        drive = laboratory(1)
        ear = Ear(name_of(0), drive.boot_of(name_of(0)))
        lived["boots"] += 1
        for number, line in enumerate(lines):
            seen = ear.hear((line,), 1.0 + number / 10)
            lived["lines"] += 1
            for condition in tell(drive, name_of(0), seen):
                if condition.severity is Severity.info:
                    notes[condition.type] += 1
                else:
                    alarms.append(f"{name}: {condition.type} by {line}")
    return Quiet("healthy boots", dict(lived), tuple(alarms), dict(notes))
