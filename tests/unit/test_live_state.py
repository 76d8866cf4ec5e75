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
    """A value written there would be lost without a word where nothing was known of the node."""
    texts = {path: path.read_text("utf-8") for path in Path(hostler.__file__).parent.rglob("*.py")}
    looking = {path: text for path, text in texts.items() if "live.of(" in text}
    assert len(looking) > 10, "the look-up has another name now: this test looks at nothing"
    assert {path: lines for path, text in looking.items() if (lines := writes_to_a_look_up(text))} == {}
    assert writes_to_a_look_up("x = context.live.of(node)\ncontext.live.of(node).heard = x") == [2]


def writes_to_a_look_up(text: str) -> list[int]:
    """The lines on which a module changes what a look-up of live state gave."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_look_up(node.value)
    ]


def _is_look_up(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("live.of")
