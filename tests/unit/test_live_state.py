"""Live state: what is so right now, and what a look-up of it does."""

import ast
from pathlib import Path

import hostler
from hostler.core.planning.next_step import next_step
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import UNKNOWN, LiveState
from tests.kit import Drive, a_node, configuration


def test_a_look_up_writes_nothing() -> None:
    """Mutant: whoever is asked about is entered."""
    live = LiveState()
    node = a_node("a")
    assert live.of("a").power == UNKNOWN
    assert live.workloads(node) is None
    assert not live.lags(node)
    assert live.nodes == {}


def test_what_is_written_is_read_again() -> None:
    """Mutant: each entry is a new one."""
    live = LiveState()
    live.entry("a").heard = True
    assert live.of("a").heard
    assert live.entry("a") is live.of("a")


def test_a_decision_leaves_no_trace_in_live_state() -> None:
    """A node with a request, of which nobody has heard: guards, plan and idle check ask. Mutant: one enters it."""
    drive = Drive(configuration({"train": {"target": 2, "sku": "h100"}}), [a_node("a"), a_node("b")])
    drive.ask("reboot", "a")
    live = LiveState()
    for node in drive.fleet.nodes.values():
        next_step(DecisionContext(drive.fleet, live, drive.now), node)
    assert live.nodes == {}


def test_no_code_writes_to_what_a_look_up_gave() -> None:
    """It would be lost without a word where nothing was known of the node."""
    wrong = [
        f"{path}:{node.lineno}"
        for path in Path(hostler.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_look_up(node.value)
    ]
    assert wrong == []


def _is_look_up(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("present.of")
