"""A node that was repaired is on probation: for a few days the ladder begins one rung higher for it."""

from hostler.core.state import events as e
from hostler.core.state.model import Node, Phase
from tests.kit import Drive, a_node, after, configuration, pool_document

POOLS = {"train": pool_document(target=1)}


def visited(node: Node) -> bool:
    return any(v.remedy == "triage" for v in node.visits)


def test_a_node_fresh_from_the_factory_is_on_no_probation() -> None:
    drive = Drive(configuration(POOLS), [a_node("a", pool="", phase=Phase.test)])
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.production
    assert drive.node("a").probation_until is None


def test_after_triage_it_is_recorded_until_when() -> None:
    """Mutants: every way into production begins a probation; none does."""
    drive = Drive(configuration(POOLS), [a_node("a")])
    drive.ask("request-replacement", "a")
    drive.wait(hours=2)
    node = drive.node("a")
    moved = [m for m in drive.events(e.PhaseChanged, "a") if m.after is Phase.production]
    assert visited(node)
    assert node.phase is Phase.production
    assert node.probation_until == moved[-1].probation_until
    assert node.probation_until is not None
    assert node.probation_until > after(days=3)
    assert drive.sweep() == 0


def test_the_ladder_begins_one_rung_higher_until_it_is_over() -> None:
    """Mutants: probation counts for nothing; it never ends; its end wakes nobody."""
    drive = Drive(configuration(POOLS), [a_node("a")])
    drive.ask("request-replacement", "a")
    drive.wait(hours=2)
    drive.ask("hold", "a")
    drive.fault("a", "ecc")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.what == "reboot", "the rule says gpu_reset"
    drive.wait(days=4)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.what == "gpu_reset"
    assert drive.sweep() == 0
