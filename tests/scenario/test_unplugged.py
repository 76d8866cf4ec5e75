"""Firmware that runs only after the cords were out: a technician is asked, and what the BMC shows is the proof."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen
from hostler.core.policy import documents
from hostler.core.report.next_actor import NextActor, acts_next
from hostler.core.state import events as e
from hostler.core.state.cases import CORDS, Ticket
from hostler.core.state.configuration import Configuration
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase
from hostler.sim.bmc.cord_technician import CordTechnician, Habit
from hostler.sim.bmc.emulated_machine import Delays, Machine, Quirks, gpu_server, make_image
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import RedfishTwin, images_by_name
from tests.kit import POLICY
from tests.scenario.planted_fleet import PlantedFleet

UPDATE = {
    "image": "http://images/CPLD/2.0.0",
    "sha256": hashlib.sha256(make_image("CPLD", "2.0.0")).hexdigest(),
    "activate": "unplug",
}


class Walked(PlantedFleet):
    """A fleet with a technician, who reads the tickets as everybody does."""

    technician: CordTechnician

    def live(self, **length: float) -> None:
        """Let time pass in minutes, each with a look at the tickets."""
        until = self.now + timedelta(**length)
        while self.now < until:
            for ticket in self.technician.sees(list(self.fleet.tickets.values()), self.now):
                if ticket in self.fleet.tickets:
                    self.ask("close-ticket", ticket, person="tina")
            super().live(minutes=1)


def a_machine(serial: str, **quirks: Any) -> Machine:
    server = replace(gpu_server(serial, 1), staged=frozenset({"CPLD"}))
    server.firmware["CPLD"] = "1.0.0"
    return Machine(f"m-{serial}", server, Delays(), Quirks(needs_ac=frozenset({"CPLD"}), **quirks))


def a_site(habit: Habit = "comes", walk_minutes: float = 60, **quirks: Any) -> Walked:
    """Node a at Zap's door, and node b below it, which has its firmware."""
    fleet = Walked(_configuration(), {"a": ("x", a_machine("SN1", **quirks)), "b": ("y", a_machine("SN2"))}, {})
    fleet.technician = CordTechnician(fleet.machines, habit, timedelta(minutes=walk_minutes))
    return fleet


def _configuration() -> Configuration:
    whole = {"gpus": 1, "gpu_model": "H100"}
    skus = {"x": {**whole, "firmware": {"CPLD": "2.0.0"}, "updates": {"CPLD": UPDATE}}, "y": whole}
    return documents.parse({"policy.yaml": POLICY, "sku.yaml": yaml.safe_dump({"skus": skus, "pools": {}})})


def asked(fleet: Walked) -> Ticket:
    (ticket,) = (t for t in fleet.fleet.tickets_about("a") if t.kind == CORDS)
    return ticket


def until_asked(fleet: Walked) -> Ticket:
    for _ in range(240):
        if any(t.kind == CORDS for t in fleet.fleet.tickets_about("a")):
            return asked(fleet)
        fleet.live(minutes=1)
    raise AssertionError(story(fleet))


def story(fleet: Walked) -> str:
    return "\n".join(f"{one.kind} {one.result}: {one.detail}" for one in fleet.events(e.OperationFinished, "a"))


def closed(fleet: Walked) -> list[tuple[str, str]]:
    ours = [event for event in fleet.events(e.TicketClosed) if event.ticket.endswith("-cords")]
    return [(event.person, event.resolution) for event in ours]


def unplugs(fleet: Walked) -> list[str]:
    return [one.result for one in fleet.events(e.OperationFinished, "a") if one.kind == "unplug"]


def test_a_technician_is_told_which_cords_and_the_restart_of_the_bmc_is_the_proof() -> None:
    """Mutants: no ticket; it names no place, supply or time; the machine is on; it stays open once it is proved."""
    fleet = a_site()
    ticket = until_asked(fleet)
    machine = fleet.machines["a"]
    assert (machine.power, machine.firmware["CPLD"]) == ("Off", "1.0.0")
    assert (ticket.hardware, ticket.owner, ticket.due) == ("SN1", "technician", "now")
    assert ticket.summary == "pull the cords of a, rack r1 U7: CPLD runs only after all power was off"
    for told in (
        "rack r1 U7, serial SN1",
        "6 power supplies (psu0, psu1,",
        "for 2 min",
        "its BMC shows that it has restarted",
    ):
        assert told in ticket.action
    node = fleet.node("a")
    assert node.waiting is not None
    assert [b.kind for b in node.waiting.blockers] == ["person"]
    assert ticket.id in node.waiting.blockers[0].text
    turn = acts_next(fleet.fleet, node)
    assert (turn.who, turn.text) == (
        NextActor.technician,
        "a technician pulls the cords that the ticket names, and plugs them in again",
    )
    sent = dict(machine.counts)
    fleet.live(minutes=50)
    assert dict(machine.counts) == sent, "nothing is sent while it waits"
    fleet.live(hours=8)
    assert fleet.node("a").phase is Phase.production, story(fleet)
    assert (machine.firmware["CPLD"], machine.power, unplugs(fleet)) == ("2.0.0", "On", ["done"])
    assert closed(fleet) == [("tina", "tina said that it was done, and its BMC has restarted")]


def test_a_word_without_a_restart_is_told_and_moves_nothing() -> None:
    """Mutants: the word closes the ticket; the step goes on by it; nobody is told that it was not so."""
    fleet = a_site("says", walk_minutes=10)
    ticket = until_asked(fleet)
    fleet.live(minutes=13)
    assert (asked(fleet).id, asked(fleet).done_by) == (ticket.id, "tina")
    assert unplugs(fleet) == []
    fleet.live(minutes=20)
    again = asked(fleet)
    assert (again.done_by, again.reopened is not None) == ("", True)
    assert "that the cords of a were out; its BMC has not restarted since" in again.fault
    assert "SN1, rack r1 U7" in again.fault
    assert (unplugs(fleet), fleet.machines["a"].power) == ([], "Off")
    fleet.technician.habit = "never"
    fleet.machines["a"].lose_mains(fleet.now)
    fleet.live(hours=6)
    assert fleet.node("a").phase is Phase.production, story(fleet)


@pytest.mark.parametrize("habit", ["never", "late", "wrong"])
def test_who_does_not_come_in_time_or_elsewhere_is_found_by_the_limit_of_the_phase(habit: Habit) -> None:
    """Mutants: the wait has no end; another machine's restart is taken for this one's; the old ticket stays."""
    fleet = a_site(habit)
    until_asked(fleet)
    fleet.live(hours=7)
    node = fleet.node("a")
    assert node.phase is Phase.zap_fail, story(fleet)
    assert unplugs(fleet) == ["revoked"]
    ((_, why),) = closed(fleet)
    assert "has ended; leave all cords in" in why
    (ticket,) = fleet.fleet.tickets_about("a")
    assert "zap-again a" in ticket.action
    assert "b" not in fleet.technician.pulled or habit == "wrong"
    fleet.live(hours=4)
    fleet.technician.habit = "comes"
    fleet.ask("zap-again", "a")
    fleet.live(hours=5)
    assert fleet.node("a").phase is Phase.production, story(fleet)
    assert fleet.machines["a"].firmware["CPLD"] == "2.0.0"


def test_cords_that_are_pulled_twice_do_no_harm_to_what_has_been_proved() -> None:
    """The second time takes the power off a machine that is in its tests. Mutant: the second pull is asked for."""
    fleet = a_site("twice", walk_minutes=10)
    until_asked(fleet)
    fleet.live(hours=1)
    assert fleet.technician.pulled == ["a"]
    fleet.live(hours=1)
    assert fleet.technician.pulled == ["a", "a"]
    assert fleet.machines["a"].firmware["CPLD"] == "2.0.0"
    assert unplugs(fleet) == ["done"]
    assert not [t for t in fleet.fleet.tickets_about("a") if t.kind == CORDS]


def test_a_controller_that_is_another_one_by_then_sees_the_restart_too() -> None:
    """The memory of the first one is gone. Mutants: the ticket is opened again; the restart is not recognised."""
    fleet = a_site(walk_minutes=30)
    ticket = until_asked(fleet)
    services = {f"https://{name}": Service([machine]) for name, machine in fleet.machines.items()}
    fleet.twin = RedfishTwin(services, images_by_name)
    fleet.restart()
    fleet.step(FellowsSeen((Fellow("this", Release().reads),)))
    fleet.live(minutes=5)
    assert asked(fleet).id == ticket.id
    fleet.live(hours=8)
    assert fleet.node("a").phase is Phase.production, story(fleet)
    assert len([o for o in fleet.events(e.TicketOpened) if o.ticket.kind == CORDS]) == 1


def test_a_hold_lets_nobody_be_sent_to_the_machine() -> None:
    """Mutant: the step is not guarded."""
    fleet = a_site()
    fleet.ask("hold", "a")
    fleet.live(hours=3)
    assert not [o for o in fleet.events(e.TicketOpened) if o.ticket.kind == CORDS]


def test_a_version_that_is_still_the_old_one_after_the_restart_stops_there() -> None:
    """Mutant: the restart is taken for the version."""
    fleet = a_site()
    until_asked(fleet)
    fleet.machines["a"].firmware_staged.clear()
    fleet.live(hours=4)
    assert fleet.node("a").phase is Phase.zap_fail, story(fleet)
    assert unplugs(fleet) == ["done"]
