"""Every agent of a cell falls silent: how many records it takes until what they saw is unknown, and what that costs."""

import resource
import time
from datetime import timedelta

from msgspec.structs import replace

from bench.figures import Figures
from bench.incidents import NOW, a_node
from hostler.controller.inputs import AgentHeard, AgentSilent, Input
from hostler.controller.loop import Controller
from hostler.core.policy.documents import parse
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Condition, Evidence, Node, Severity
from hostler.runtime.heartbeats import AT_ONCE

NODES = 100_000
POLICY = "policy: {rules: {}, rungs: {}}\n"
SEEN = "gpu.spare_rows_spent"
SILENCE_S, DAY_S = 40, 86_400


def ailing(number: int) -> Node:
    """A node in service with one condition that its agent has seen, and nobody answers."""
    node = replace(a_node(number), assignment=None, domains=())
    seen = Evidence(NOW, "agent", "2 memory banks have no spare row left", f"{node.id}/s/1", path="gpu_state")
    kind, part = Severity.warning, f"{node.id}-G0"
    condition = Condition(f"{node.id}/{SEEN}/{part}", SEEN, node.id, kind, NOW, NOW, "observation", "hostler", part)
    return replace(node, conditions=(replace(condition, evidence=(seen,), paths=("gpu_state",)),))


def main() -> Figures:
    """100,000 agents go silent in batches as heartbeats are missed; nobody knows a day later; they return."""
    figures = Figures("silence")
    fleet = Fleet(parse({"policy.yaml": POLICY}))
    for number in range(NODES):
        evolve(fleet, e.Record(number + 1, NOW, 1, "bench", e.NodeRegistered(ailing(number))))
    fleet.merge()
    cell = Controller(fleet, LiveState(), {}, 1)
    cell.resume(NOW, "bench")
    cell.committed()
    _steps(cell, [[]], 0)
    ids = sorted(fleet.nodes)
    batches = [ids[at : at + AT_ONCE] for at in range(0, NODES, AT_ONCE)]
    fell = _steps(cell, [[AgentSilent(i, NOW) for i in some] for some in batches], SILENCE_S)
    figures.add(f"{NODES:,} agents fall silent: records of their silence", fell["sources_changed"], "")
    figures.add("  CPU of all steps", fell["cpu"], "s")
    lost = _until(cell, DAY_S + 300)
    figures.add("a day later their conditions are unknown: records of it", lost["knowledge_changed"], "")
    figures.add("  CPU of all steps", lost["cpu"], "s")
    assert all(fleet.nodes[i].conditions[0].unknown_since for i in ids)
    back = _steps(cell, [[AgentHeard(i, fleet.nodes[i].boot_id) for i in some] for some in batches], DAY_S + 400)
    figures.add("they are heard again: records of it", back["sources_changed"], "")
    figures.add("  CPU of all steps", back["cpu"], "s")
    known = _until(cell, DAY_S + 3_600)
    figures.add("and believed again: records of it", known["knowledge_changed"], "")
    figures.add("  CPU of all steps", known["cpu"], "s")
    figures.add("memory at its most", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    return figures


def _steps(cell: Controller, batches: list[list[Input]], seconds: float) -> dict[str, float]:
    """One step for each batch, a half second apart; the records by name, and their CPU seconds."""
    found: dict[str, float] = {"cpu": 0.0}
    for number, batch in enumerate(batches):
        _step(cell, batch, seconds + number / 2, found)
    return {"sources_changed": 0, "knowledge_changed": 0, **found}


def _until(cell: Controller, seconds: float) -> dict[str, float]:
    """Step whenever the agenda asks for it."""
    found: dict[str, float] = {"cpu": 0.0}
    while (at := cell.agenda.next()) is not None and at <= NOW + timedelta(seconds=seconds):
        _step(cell, [], (max(at, cell.now) - NOW).total_seconds(), found)
    return {"sources_changed": 0, "knowledge_changed": 0, **found}


def _step(cell: Controller, batch: list[Input], seconds: float, found: dict[str, float]) -> None:
    began = time.process_time()
    ready = cell.step(batch, NOW + timedelta(seconds=seconds))
    cell.committed()
    found["cpu"] += time.process_time() - began
    for record in ready.batch.records:
        name = e.name_of(record.event)
        found[name] = found.get(name, 0) + 1


if __name__ == "__main__":
    print(main())
