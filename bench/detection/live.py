"""The truth table on the real path: pipes, agents, spools, HTTP, BMCs over sockets, and a served cell."""

import asyncio
import json
import random
import time
from pathlib import Path

from bench.detection import kinds, states
from bench.detection.decided import name_of
from bench.detection.laboratory import Lab, LabNode, Told, Wanted, lab
from bench.detection.plants import Expected, Placed, nodes_of
from bench.detection.states import State
from bench.detection.table import Name, Quiet, Seen, TruthTable, truth
from bench.detection.watched import ail, expected_of, write
from hostler.core.state.model import Severity
from hostler.sim.bmc.request_faults import RequestFaultRule

LINES_PER_S = 40.0
SETTLE_S = 45.0
"""So long the nodes are healthy before a state changes: polls that count must have seen them well."""
LINE_WAIT_S, STATE_WAIT_S = 10.0, 300.0
"""After so long without a record a fault was missed."""
SEED = 1
PROBE = "#!/bin/sh\necho OK\n"
SCHEDULE = {"every_s": 10, "jitter_s": 0, "timeout_s": 5}


async def live(place: Path, *, with_states: bool) -> TruthTable:
    """Plant everything in a laboratory of its own below the empty directory `place`."""
    plants = kinds.lines()
    shown = kinds.shown_soon() if with_states else ()
    first = nodes_of(plants)
    wanted = [Wanted()] * first + [_wanted(state) for state in shown]
    async with lab(place, wanted) as running:
        for node in running.nodes:
            _probe(node, PROBE)
        told = len(running.told)
        waiting = [
            asyncio.create_task(_show(running, running.nodes[first + number], state))
            for number, state in enumerate(shown)
        ]
        of_lines = await _write(running, plants)
        of_states = list(await asyncio.gather(*waiting))
        before = _before(running.told[:told])
    path = f"{len(plants)} kernel lines, {LINES_PER_S:g} a second, and {len(shown)} states of {len(wanted)} nodes"
    return truth(f"the real path: {path}", of_lines, of_states, (before,))


def _wanted(state: State) -> Wanted:
    match state.shows:
        case states.Nvml():
            return Wanted(gpus=True)
        case states.Files():
            return Wanted(host=True)
        case states.Sensor() | states.Bmc():
            return Wanted(bmc=True)
        case _:
            return Wanted()


async def _write(running: Lab, plants: tuple[Placed, ...]) -> list[Seen]:
    """Write every plant's lines at an even pace, in an order of chance; what was recorded of each."""
    order = list(plants)
    random.Random(SEED).shuffle(order)
    said: list[tuple[float, Placed]] = []
    begun_s = time.monotonic()
    for number, plant in enumerate(order):
        await asyncio.sleep(max(0.0, begun_s + number / LINES_PER_S - time.monotonic()))
        said.append((time.monotonic(), plant))
        running.nodes[plant.node].say(plant.lines, plant.facility)
    wanted = {(name_of(plant.node), *plant.expected.wanted) for plant in plants}
    await running.until(lambda: wanted <= {(t.node, t.type, t.part) for t in running.told}, LINE_WAIT_S)
    return attributed(said, running.told)


def attributed(said: list[tuple[float, Placed]], told: list[Told]) -> list[Seen]:
    """Assigns a recorded condition to its plant: the one that wanted it, else the last one of that node."""
    found: dict[int, list[tuple[float, Name]]] = {number: [] for number in range(len(said))}
    for one in told:
        name = (one.type, one.part)
        mine = [n for n, (at_s, plant) in enumerate(said) if name_of(plant.node) == one.node and at_s <= one.heard_s]
        wants = [n for n in mine if name == said[n][1].expected.wanted]
        comes = [n for n in mine if one.type in said[n][1].expected.beside and one.part == said[n][1].expected.part]
        chosen = (wants or comes or mine)[-1:]
        for number in chosen:
            found[number].append((one.heard_s, name))
    return [_seen(plant.expected, at_s, found[number]) for number, (at_s, plant) in enumerate(said)]


def _seen(expected: Expected, at_s: float, told: list[tuple[float, Name]]) -> Seen:
    took = [heard_s - at_s for heard_s, name in told if name == expected.wanted]
    return Seen(expected, tuple(dict.fromkeys(name for _, name in told)), min(took, default=None))


async def _show(running: Lab, node: LabNode, state: State) -> Seen:
    """Let the node settle, then the state shows itself; wait for what is recorded of it."""
    await asyncio.sleep(SETTLE_S)
    expected, name = expected_of(state, node.number), name_of(node.number)
    at_s, first = time.monotonic(), len(running.told)
    before = {(one.type, one.part) for one in running.told[:first] if one.node == name}
    _plant(node, state)

    def heard() -> list[tuple[float, Name]]:
        return [(t.heard_s, (t.type, t.part)) for t in running.told[first:] if t.node == name]

    await running.until(lambda: any(one == expected.wanted for _, one in heard()), STATE_WAIT_S)
    return _seen(expected, at_s, [one for one in heard() if one[1] not in before])


def _plant(node: LabNode, state: State) -> None:
    match state.shows:
        case states.Nvml(state=name):
            node.body.become(name)
        case states.Files(files=files):
            write(node.body.files, files)
        case states.Check(says=says, code=code):
            _probe(node, f"#!/bin/sh\ncat <<'SAYS'\n{says}\nSAYS\nexit {code}\n")
        case states.Sensor() if node.bmc is not None:
            ail(node.bmc, state.shows)
        case states.Silent():
            node.stop.set()
        case states.Bmc(refuses=word):
            node.spoilt.add(RequestFaultRule(status=401, times=0) if word else RequestFaultRule(drop="before", times=0))
        case states.Reports(facts={"event": "kernel_log.overrun", "lost": int(lost)}):
            node.lose(lost)
        case _:
            raise ValueError(f"{state.name} cannot be shown here")


def _probe(node: LabNode, script: str) -> None:
    """The site's own check on that node becomes this script."""
    checks = Path(node.settings.checks_dir)
    (checks / "site.json").write_text(json.dumps(SCHEDULE))
    fresh = node.place / "site.new"
    fresh.write_text(script)
    fresh.chmod(0o755)
    fresh.replace(checks / "site")


def _before(told: list[Told]) -> Quiet:
    """Returns what was said of the nodes while they were starting, and healthy."""
    alarms = tuple(f"{one.node}: {one.type} of {one.part}" for one in told if one.severity > Severity.info)
    notes: dict[str, int] = {}
    for one in told:
        if one.severity <= Severity.info:
            notes[one.type] = notes.get(one.type, 0) + 1
    return Quiet("while the laboratory started", {"nodes told of": len({one.node for one in told})}, alarms, notes)
