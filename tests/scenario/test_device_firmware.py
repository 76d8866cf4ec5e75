"""Firmware that the node's agent writes on the way to production: what is asked, and where each answer leads."""

from typing import Any

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from tests.kit import Drive, a_node, configuration, pool_document

HOW = {
    "image": "http://images/x",
    "sha256": "a" * 64,
    "via": "agent",
    "tool": "nvme",
    "models": ["KCD8"],
}
WRITE, VERIFY = "write_device_firmware", "verify_device_firmware"


def in_zap(*answers: str, of: str = WRITE, **fields: Any) -> Drive:
    config = configuration(
        {"train": pool_document(target=1)}, firmware={"BIOS": "2", "drives": "2.0"}, updates={"drives": HOW}
    )
    drive = Drive(config)
    drive.script(of, *answers)
    node = a_node("a", pool="", phase=Phase.zap, **fields)
    drive.step()
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.NodeRegistered(node)))
    drive.power["a"], drive.boots["a"], drive.work["a"] = True, 1, ()
    drive.restart(gap_s=0)
    drive.run()
    return drive


def test_it_is_written_reset_and_read_again() -> None:
    """The verified version is kept beside those that the BMC lists. Mutants: no reset; one look wipes the other's."""
    drive = in_zap(firmware=(("BIOS", "1"), ("drives", "1.0")))
    drive.wait(hours=3)
    asked = [kind for kind in drive.operations("a") if kind in (WRITE, VERIFY, "power_off", "verify_firmware")]
    assert asked[:4] == [WRITE, "power_off", "verify_firmware", VERIFY], drive.transcript("a")
    assert {"BIOS": "2", "drives": "2.0"}.items() <= dict(drive.node("a").firmware).items()
    assert set(drive.node("a").changed) == {"BIOS=2", "drives=2.0"}
    assert drive.node("a").phase is not Phase.zap


@pytest.mark.parametrize("kind", [WRITE, VERIFY])
def test_a_tool_that_is_missing_fails_nobody(kind: str) -> None:
    """The step stays open beyond the phase's six hours, and a ticket names the next command. Mutant: zap_fail."""
    drive = in_zap(*["refused"] * 20, of=kind)
    drive.wait(days=1)
    assert drive.node("a").phase is Phase.zap, drive.transcript("a")
    (ticket,) = drive.fleet.tickets_about("a")
    assert (ticket.fault, ticket.summary) == (kind, f"a does not pass: {kind} is inconclusive: as scripted")
    assert f"hostler node vouch a --profile {kind} --reason" in ticket.action
    assert "it is asked again by itself" in ticket.action
    drive.scripts.clear()
    drive.wait(days=2)
    assert drive.node("a").phase is not Phase.zap, "it was asked again"
    assert kind not in {one.fault for one in drive.fleet.tickets_about("a")}


@pytest.mark.parametrize("kind", [WRITE, VERIFY])
def test_what_failed_ends_zap_with_a_ticket(kind: str) -> None:
    """An image that is refused, and a version that did not change. Mutant: the node goes on."""
    drive = in_zap("failed", of=kind)
    drive.wait(hours=3)
    assert drive.node("a").phase is Phase.zap_fail, drive.transcript("a")
    (ticket,) = drive.fleet.tickets_about("a")
    assert "`hostler node firmware a` shows what differs" in ticket.action


def test_a_write_whose_fate_is_unknown_is_looked_at_and_given_again() -> None:
    """The agent was killed in between. Mutants: it is taken for done; it is never given again."""
    drive = in_zap("vanished")
    drive.wait(hours=3)
    started = [one for one in drive.events(e.OperationStarted, "a") if one.operation.kind == WRITE]
    assert [(one.operation.id, one.operation.attempt) for one in started] == [
        (started[0].operation.id, 1),
        (started[0].operation.id, 2),
    ]
    assert drive.node("a").phase is not Phase.zap


def test_nobody_is_written_to_while_work_is_on_it() -> None:
    """In production the node is drained first. Mutant: the step needs no drain."""
    config = configuration({"train": pool_document(target=1)}, firmware={"drives": "2.0"}, updates={"drives": HOW})
    drive = Drive(config, [a_node("a")])
    assert drive.ask_two("update-firmware", "a").granted
    drive.wait(minutes=30)
    kinds = drive.operations("a")
    assert kinds.index("cordon") < kinds.index(WRITE) < kinds.index("power_off"), drive.transcript("a")
