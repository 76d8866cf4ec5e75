"""Stories that simulated worlds told first: each was a law broken, and is kept here in its smallest form."""

from hostler.core.model import Phase
from tests.kit import Drive, a_node, configuration


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
