"""A name in a cluster that another machine answers to: seen by its boot id, held until a person has settled it."""

from datetime import timedelta

import pytest

from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen, Tick
from hostler.core.conditions.machine_identity import MISBOUND_S, MISMATCH
from hostler.core.state import events as e
from tests.kit import Drive, a_node, configuration, pool_document

STRANGER = "boot-of-another"


def one() -> Drive:
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.step(AgentHeard("a", drive.boot_of("a")))
    return drive


def shown(drive: Drive, boot_id: str, for_s: float) -> list[e.ConditionRaised]:
    """The cluster shows this boot id for so long, and the agent is heard; what is raised."""
    drive.step(NodeSeen("a", boot_id=boot_id))
    for _ in range(int(for_s / 30)):
        drive.now += timedelta(seconds=30)
        drive.step(AgentHeard("a", drive.boot_of("a")), Tick())
    return [event for event in drive.events(e.ConditionRaised, "a") if event.condition.type == MISMATCH]


def test_another_machine_under_the_nodes_name_is_a_condition_that_says_which() -> None:
    """Mutants: the time is not waited for; the boot ids are not compared."""
    drive = one()
    assert shown(drive, drive.boot_of("a"), 3_600) == []
    assert shown(drive, STRANGER, MISBOUND_S - 60) == []
    (raised,) = shown(drive, STRANGER, 120)
    text = raised.condition.evidence[0].text
    assert STRANGER in text
    assert drive.boot_of("a") in text


def test_it_is_told_when_it_is_due_though_nothing_touches_the_node() -> None:
    """By an entry of its own in the agenda. Mutant: it waits for the next sweep, or for the node to change."""
    drive = one()
    began = drive.now
    assert shown(drive, STRANGER, 0) == []
    wake = drive.controller.agenda.next()
    while wake is not None and wake <= began + timedelta(seconds=MISBOUND_S):
        drive.now = wake
        drive.step(Tick())
        wake = drive.controller.agenda.next()
    assert [c.type for c in drive.node("a").conditions] == [MISMATCH]
    assert drive.node("a").conditions[0].since == began + timedelta(seconds=MISBOUND_S)


@pytest.mark.parametrize(
    "why", ["it tells no boot", "its kubelet is not ready", "its agent is silent", "both agree again in time"]
)
def test_who_is_not_heard_or_only_late_is_no_stranger(why: str) -> None:
    """Mutants: "" is a boot id; a dead kubelet's last boot counts; a silent agent's does; a difference stays."""
    drive = one()
    if why in ("it tells no boot", "its kubelet is not ready"):
        drive.step(NodeSeen("a", ready=why == "it tells no boot"))
        assert shown(drive, "" if why == "it tells no boot" else STRANGER, 3_600) == []
        return
    assert shown(drive, STRANGER, MISBOUND_S - 60) == []
    if why == "its agent is silent":
        drive.step(AgentSilent("a", drive.now))
        drive.step(NodeSeen("a", boot_id=STRANGER))
        drive.wait(minutes=10)
        assert not [c for c in drive.node("a").conditions if c.type == MISMATCH]
        return
    assert shown(drive, drive.boot_of("a"), 60) == []
    assert shown(drive, STRANGER, MISBOUND_S - 60) == []


def test_nothing_is_done_under_that_name_until_a_person_has_bound_it_anew() -> None:
    """Mutants: the guard is not asked; rebinding leaves the condition; agreeing again ends it."""
    drive = one()
    shown(drive, STRANGER, MISBOUND_S + 60)
    drive.fault("a")
    drive.run()
    shown(drive, drive.boot_of("a"), 600)
    waiting = drive.node("a").waiting
    assert waiting is not None
    (blocker,) = [b for b in waiting.blockers if b.kind == "binding"]
    assert "hostler node rebind a" in blocker.ends_when
    assert "cordon" not in drive.operations("a")
    assert drive.ask("rebind", "a", kind="kubernetes", value="gpu-007").granted
    drive.run()
    assert not [c for c in drive.node("a").conditions if c.type == MISMATCH]
    assert "cordon" in drive.operations("a")
