"""Faults with which no bring-up goes on: grave, answered by a remedy, and no work of the phase's own restart."""

import pytest

from hostler.core.planning.bring_up_faults import bring_up_faults, fault_text
from hostler.core.state.model import Phase
from hostler.core.tables.conditions import CONDITIONS
from tests.kit import Drive, a_node, configuration


def zap_failed() -> Drive:
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.zap_fail)])
    drive.run()
    return drive


def test_a_grave_fault_is_one_until_it_has_ended() -> None:
    """Mutants: none is found; one that a person has ended still counts; its evidence is left out."""
    drive = zap_failed()
    drive.fault("a", "ecc")
    drive.run()
    (fault,) = bring_up_faults(drive.fleet.policy_of(drive.node("a")), drive.node("a"))
    assert fault_text(fault).startswith(f"{fault.type}: Xid 95")
    assert drive.ask("clear-condition", "a", condition=fault.id).granted
    assert bring_up_faults(drive.fleet.policy_of(drive.node("a")), drive.node("a")) == []


@pytest.mark.parametrize("checking", [False, True])
def test_what_a_restart_shows_counts_while_checks_run_alone(checking: bool) -> None:
    """A silent agent: the phase restarts its node. Mutants: either way for both."""
    drive = Drive(configuration(), [a_node("a")])
    drive.silence("a")
    policy = drive.fleet.policy_of(drive.node("a"))
    (lost,) = (c for c in drive.node("a").conditions if c.type == "agent.lost")
    assert CONDITIONS[lost.type].restarting
    assert [c.type for c in bring_up_faults(policy, drive.node("a"), checking=checking)] == [lost.type] * checking
