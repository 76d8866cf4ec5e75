"""Locate lights from a technician's word to the BMC: claimed first, bounded, and out when the ticket is closed."""

import pytest

from hostler.controller.inputs import FellowsSeen
from hostler.core.state import events as e
from hostler.core.state.light import Light
from hostler.core.state.live_state import Fellow, Release
from tests.kit import Drive
from tests.scenario.test_condition_tickets import bmc
from tests.scenario.test_ticket_claims import with_ticket


def light(drive: Drive) -> Light | None:
    return drive.node("a").light


def lit(*script: str) -> tuple[Drive, str]:
    """A node whose ticket tina has claimed, and whose light she has asked for."""
    drive, ticket = with_ticket()
    drive.script("locate_on", *script)
    assert drive.ask("claim-ticket", ticket, "tina").granted
    assert drive.ask("locate", "a", "tina").granted
    drive.run()
    return drive, ticket


def lights(drive: Drive) -> list[str]:
    return [kind for kind in drive.operations("a") if kind.startswith("locate")]


def test_only_whoever_has_claimed_a_ticket_about_it_lights_a_node() -> None:
    """Mutants: any ticket will do; a claim of another; a lapsed one."""
    drive, ticket = with_ticket()
    refused = drive.ask("locate", "a", "tina")
    assert not refused.granted
    assert "you have claimed no ticket about a" in refused.text
    assert drive.ask("claim-ticket", ticket, "tina", hours="1").granted
    assert not drive.ask("locate", "a", "tom").granted
    drive.wait(hours=2)
    assert not drive.ask("locate", "a", "tina").granted, "her shift is over"
    assert drive.ask("locate", "a", "olga", shift_lead="true").granted
    drive.run()
    assert lights(drive) == ["locate_on"]


def test_it_goes_out_at_its_bound_though_nobody_says_so() -> None:
    drive, _ = lit()
    assert light(drive).lit  # type: ignore[union-attr]
    drive.wait(hours=2)
    assert light(drive) is None
    assert lights(drive) == ["locate_on", "locate_off"]
    assert [one.by for one in drive.events(e.LightAsked)] == ["tina", "hostler"]


def test_it_goes_out_when_its_ticket_is_closed() -> None:
    """Mutant: the node is not looked at when its ticket is closed."""
    drive, ticket = lit()
    assert drive.ask("close-ticket", ticket, "tina").granted
    drive.run()
    assert light(drive) is not None, "the fault still shows: it is not proven"
    bmc(drive, psu1="OK")
    drive.run()
    assert light(drive) is None
    assert lights(drive) == ["locate_on", "locate_off"]
    assert drive.events(e.LightAsked)[-1].why == f"ticket {ticket} is closed"


def test_a_bmc_without_a_light_is_asked_once_and_the_node_says_so() -> None:
    """Mutants: it is asked for ever; the refusal is nowhere; the record stays for good."""
    drive, _ = lit(*["refused"] * 9)
    drive.wait(minutes=30)
    assert lights(drive) == ["locate_on"]
    assert "lighting refused" in light(drive).state  # type: ignore[union-attr]
    drive.wait(hours=1)
    assert light(drive) is None


@pytest.mark.parametrize(
    ("answers", "sent"),
    [(("failed",), 2), (("vanished",), 1), (("mute",), 1), (("failed", "mute", "failed"), 4)],
    ids=str,
)
def test_a_bmc_that_answers_badly_is_lit_in_the_end(answers: tuple[str, ...], sent: int) -> None:
    """Mutants: an answer that never comes holds the light up; one that failed is the last try."""
    drive, _ = lit(*answers)
    drive.wait(minutes=20)
    assert light(drive).lit  # type: ignore[union-attr]
    assert len(lights(drive)) >= sent
    drive.wait(hours=2)
    assert light(drive) is None


def test_a_light_is_put_out_by_whoever_lit_it_or_a_shift_lead() -> None:
    drive, ticket = lit()
    assert not drive.ask("unlocate", "a", "tom").granted
    assert drive.ask("unlocate", "a", "tina").granted
    drive.run()
    assert light(drive) is None
    assert not drive.ask("unlocate", "a", "tina").granted, "it is out"
    assert drive.ask("locate", "a", "tina").granted
    assert drive.ask("unlocate", "a", "lea", shift_lead="true").granted
    drive.run()
    assert light(drive) is None
    assert drive.fleet.tickets[ticket].claimed_by == "tina"


def test_a_controller_that_takes_over_puts_it_out() -> None:
    """Mutant: the light is the memory of one controller."""
    drive, _ = lit()
    drive.restart(gap_s=60)
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    drive.wait(hours=2)
    assert light(drive) is None
    assert lights(drive)[-1] == "locate_off"
