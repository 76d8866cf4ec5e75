"""A leaf switch of 5,000 nodes falls silent: what one step of the controller costs, beside small and large fleets."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.figures import Figures
from hostler.controller.inputs import AgentHeard, AgentSilent, Input
from hostler.controller.loop import Controller
from hostler.core.policy.documents import parse
from hostler.core.policy.incidents import review
from hostler.core.state import events as e
from hostler.core.state.assets import Binding, Position
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Assignment, Node, Phase
from hostler.core.state.scopes import Scope

SILENT = 5_000
POLICY = Path(__file__).parent.parent / "src/hostler/core/policy/default_policy.yaml"
POOLS = "skus: {h100: {gpus: 8}}\npools: {train: {sku: h100, target: 100000, modes: {'*': act}}}\n"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_node(number: int) -> Node:
    """One leaf takes 5,000 nodes, a rack eight, a power feed 64."""
    return Node(
        id=f"n{number:06d}",
        position=Position("c1", rack=f"r{number // 8}"),
        sku="h100",
        phase=Phase.production,
        phase_since=NOW,
        registered_at=NOW,
        bindings=(Binding("serial", f"S{number}", NOW),),
        domains=(
            Scope("rack", f"r{number // 8}"),
            Scope("leaf", f"l{number // SILENT}"),
            Scope("power", f"p{number // 64}"),
        ),
        assignment=Assignment("train", "tenant", "k1", NOW),
        boot_id=f"b{number}",
        boots=(f"b{number}",),
    )


def controller(nodes: int) -> Controller:
    """A controller of so many healthy nodes, about to step for the first time."""
    fleet = Fleet(parse({"policy.yaml": POLICY.read_text(), "pools.yaml": POOLS}))
    for number in range(nodes):
        evolve(fleet, e.Record(number + 1, NOW, 1, "bench", e.NodeRegistered(a_node(number))))
    fleet.merge()
    live = LiveState()
    live.clusters["k1"] = ""
    found = Controller(fleet, live, {}, 1)
    found.resume(NOW, "bench")
    found.committed()
    found.step((), NOW)
    found.committed()
    return found


def step(which: Controller, inputs: Iterable[Input], seconds: float) -> float:
    """CPU seconds that one step and its merge take."""
    began = time.process_time()
    which.step(inputs, NOW + timedelta(seconds=seconds))
    which.committed()
    return time.process_time() - began


def silence(numbers: Iterable[int]) -> list[Input]:
    """Returns the report of the watch over heartbeats on these nodes."""
    return [AgentSilent(f"n{number:06d}", NOW) for number in numbers]


def main() -> Figures:
    """Measure all at once, one after the other, and back again, at 10,000 and at 100,000 nodes."""
    figures = Figures("incidents")
    for nodes in (10_000, 100_000):
        all_at_once = controller(nodes)
        figures.add(f"5,000 of {nodes:,} fall silent in one batch", step(all_at_once, silence(range(SILENT)), 60), "s")
        assert len(all_at_once.fleet.incidents) == 1
        figures.add("  of which: to look for the common cause", _alone(all_at_once), "s")
        back = [AgentHeard(f"n{number:06d}", f"b{number}") for number in range(SILENT)]
        figures.add("  and are heard again in one batch", step(all_at_once, back, 90), "s")
        trickle = controller(nodes)
        each = [step(trickle, silence((number,)), 60 + number / 1000) for number in range(SILENT)]
        figures.add("one by one: all", sum(each), "s")
        figures.add("one by one: the slowest", max(each) * 1e3, "ms", "a wider part is blamed, and takes all over")
        assert len(trickle.fleet.incidents) == 1
    return figures


def _alone(which: Controller) -> float:
    """Seconds of one review of 5,000 suspects when nothing stands yet."""
    fleet = which.fleet
    for incident in list(fleet.incidents):
        fleet.put_incident(incident, None)
    context = DecisionContext(fleet, which.live, NOW + timedelta(seconds=60))
    began = time.process_time()
    found = [next(review(context, [f"n{number:06d}" for number in range(SILENT)]))]
    took = time.process_time() - began
    fleet.drop()
    assert isinstance(found[0], e.IncidentOpened)
    return took


if __name__ == "__main__":
    print(main())
