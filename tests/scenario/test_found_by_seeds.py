"""Stories that simulated worlds told first: each was a law broken, and is kept here in its smallest form."""

from hostler.core.model import Phase
from tests.kit import Drive, a_node, a_workload, configuration, pool_document


def test_a_wish_to_power_off_that_comes_too_late_is_answered_when_the_node_enters_service() -> None:
    """Mutant: the wish stays on a node in production, where nothing answers it and nobody is named."""
    drive = Drive(configuration(), [a_node("t", pool="", phase=Phase.test)])
    drive.script("run_checks", "late", node="t")
    drive.step()
    drive.run()
    assert drive.ask("power-off", "t").granted
    drive.land()
    drive.run()
    assert drive.node("t").phase is Phase.production
    assert not drive.node("t").conditions
    assert "return it for maintenance first" in drive.transcript("t")


def test_a_remedy_that_only_ended_work_leaves_nothing_to_prove() -> None:
    """Mutant: the gate is asked of a node whose hardware nobody touched, and waits for work that never ends."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    soft = a_workload("soft", kind="interruptible")
    drive.see_work("a", soft, a_workload("hard"))
    drive.script("evict", *["failed"] * 3)
    assert drive.ask("power-cycle", "a").granted
    drive.wait(days=3)
    assert drive.plans("a").count("power_cycle") == 3, "tried, and given up with a ticket"
    assert "a" not in drive.cordoned
    assert drive.node("a").waiting is None
    assert not drive.node("a").cordons
