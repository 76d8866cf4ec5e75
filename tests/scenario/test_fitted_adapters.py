"""MAC addresses of a fitted adapter: taken by the node of the open return that lists them, and by nobody else.

Mutants: any address is taken while a case is open; a closed case still takes one; the machine of a case takes what is
another node's; two cases list one address; a person's later word is overruled by the case.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import BootAsked, FellowsSeen
from hostler.core.boot.boot_decision import BootRequest
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Part, Phase
from hostler.core.state.rma_cases import RmaCase
from tests.kit import NOW, Drive, a_node, configuration

OLD = {"a": "02:00:00:00:00:0a", "b": "02:00:00:00:00:0b"}
NEW, SECOND, STRANGE = "52:54:00:00:00:a1", "52:54:00:00:00:a2", "52:54:00:00:00:99"


class Rack:
    """Two nodes in triage, each with one MAC address, and what boots there."""

    def __init__(self) -> None:
        nodes = [
            a_node(
                n, pool="", phase=Phase.triage, bindings=(Binding("mac", mac, NOW), Binding("serial", f"SN-{n}", NOW))
            )
            for n, mac in OLD.items()
        ]
        self.drive = Drive(configuration(), nodes)
        self.drive.step(FellowsSeen((Fellow("this", Release().reads),)))

    def ask(self, verb: str, target: str, **args: str) -> str:
        reply = self.drive.ask(verb, target, **args)
        assert reply.granted, reply.text
        return reply.text

    def refused(self, verb: str, target: str, **args: str) -> str:
        reply = self.drive.ask(verb, target, **args)
        assert not reply.granted, reply.text
        return reply.text

    def case(self, node: str = "a", mac: str = "") -> RmaCase:
        """An open return of the node's machine, which lists these addresses."""
        self.ask("open-rma", node)
        (case,) = self.drive.fleet.rma_cases_of(node)
        if mac:
            self.ask("edit-rma", case.id, mac=mac)
        return self.drive.fleet.rma_cases[case.id]

    def boots(self, mac: str, **shown: Any) -> tuple[int, str]:
        """Status, and the node that the machine was taken for."""
        ready = self.drive.step(BootAsked(9, BootRequest("script", "10.0.0.9", mac=mac, **shown)))
        (reply,) = [one for one in ready.replies if one.token == 9]
        return reply.acknowledged, reply.detail["node"]

    def macs(self, node: str = "a") -> list[str]:
        return [b.value for b in self.drive.node(node).bindings if b.kind == "mac" and b.until is None]

    def ports(self, *macs: str, node: str = "a") -> None:
        """A BMC's inventory with these network interfaces."""
        parts = tuple(Part(mac, "nic_port", "", f"NIC.{at}") for at, mac in enumerate(macs))
        self.drive.observe(node, "inventory", source="bmc", parts=parts, facts={"covers": "nic_port"})


def test_a_machine_that_boots_by_a_listed_address_is_its_node() -> None:
    """Mutants: it is a stranger; only the address that is shown is taken, and the card's second port never boots."""
    rack = Rack()
    case = rack.case(mac=f"{NEW.upper()}, {SECOND.replace(':', '-')}")
    assert case.macs == (NEW, SECOND)
    assert rack.boots(NEW, serial="SN-a") == (200, "a")
    assert rack.macs() == [OLD["a"], NEW, SECOND]
    assert rack.boots(SECOND) == (200, "a")
    assert rack.macs("b") == [OLD["b"]]
    told = [event.reason for event in rack.drive.events(e.RmaCaseChanged) if event.person == "hostler"]
    assert told == [f"the machine boots by {NEW}: {NEW}, {SECOND} of a now"]


def test_one_that_no_case_lists_stays_a_stranger_whatever_is_open() -> None:
    rack = Rack()
    rack.case(mac=NEW)
    assert rack.boots(STRANGE) == (404, "")
    assert rack.boots(STRANGE, node="a") == (403, "a")
    assert rack.macs() == [OLD["a"]]
    assert [one.mac for one in rack.drive.fleet.cell.strangers] == [STRANGE]


@pytest.mark.parametrize("ends", ["withdrawn", "never opened"])
def test_without_an_open_case_nothing_is_taken(ends: str) -> None:
    rack = Rack()
    if ends == "withdrawn":
        case = rack.case(mac=NEW)
        rack.ask("close-rma", case.id, result="withdrawn")
    assert rack.boots(NEW) == (404, "")
    assert rack.macs() == [OLD["a"]]


def test_it_is_taken_by_its_own_node_alone() -> None:
    """Mutants: the secret of another node's boot lets the adapter in there; a machine of another serial is taken."""
    rack = Rack()
    rack.case(mac=NEW)
    assert rack.boots(NEW, node="b") == (403, "b")
    assert rack.boots(NEW, serial="SN-b") == (403, "a")
    assert (rack.macs("a"), rack.macs("b")) == ([OLD["a"]], [OLD["b"]])
    assert rack.boots(NEW, node="a") == (200, "a")
    assert NEW in rack.macs()


def test_another_nodes_address_is_not_listed() -> None:
    rack = Rack()
    case = rack.case()
    assert rack.refused("edit-rma", case.id, mac=OLD["b"]) == f"MAC address {OLD['b']} is that of b already"


@pytest.mark.parametrize("given", [NEW, NEW.upper()], ids=["small", "capital"])
def test_an_address_that_another_node_was_given_meanwhile_is_that_nodes(given: str) -> None:
    rack = Rack()
    rack.case(mac=NEW)
    node = rack.drive.node("b")
    rack.drive.fleet.put_node("b", _with(node, Binding("mac", given, NOW)))
    rack.drive.fleet.merge()
    rack.boots(NEW)
    rack.ports(NEW)
    assert rack.macs() == [OLD["a"]]
    assert [event for event in rack.drive.events(e.RmaCaseChanged) if event.person == "hostler"] == []


def _with(node: Any, binding: Binding) -> Any:
    return replace(node, bindings=(*node.bindings, binding))


def test_two_cases_do_not_list_one_address() -> None:
    rack = Rack()
    first, second = rack.case("a", NEW), rack.case("b")
    why = rack.refused("edit-rma", second.id, mac=f"{SECOND},{NEW}")
    assert why == f"MAC address {NEW} is to be fitted in case {first.id} of a"
    rack.ask("edit-rma", first.id, mac=STRANGE)
    rack.ask("edit-rma", second.id, mac=NEW)
    assert rack.boots(NEW) == (200, "b")


def test_it_is_given_with_the_step_too() -> None:
    rack = Rack()
    case = rack.case()
    for step in ("approved", "returned", "received"):
        rack.ask("advance-rma", case.id, step=step, **({"mac": NEW} if step == "received" else {}))
    assert rack.drive.fleet.rma_cases[case.id].macs == (NEW,)


@pytest.mark.parametrize(
    "mac",
    ["52:54:00:00:00", "01:00:5e:00:00:01", "00:00:00:00:00:00", f"{NEW},", "x" * 300, ",".join([NEW] * 2 + ["g"])],
)
def test_what_is_no_adapters_address_is_refused(mac: str) -> None:
    rack = Rack()
    case = rack.case()
    rack.refused("edit-rma", case.id, mac=mac)
    assert rack.drive.fleet.rma_cases[case.id].macs == ()


def test_an_inventory_shows_it_as_well_and_a_later_word_of_a_person_stands() -> None:
    """Mutants: only a boot binds; the case binds again what a person took off."""
    rack = Rack()
    rack.case(mac=f"{NEW},{SECOND}")
    rack.ports(OLD["a"], SECOND)
    assert rack.macs() == [OLD["a"], NEW, SECOND]
    rack.ask("rebind", "a", kind="mac", value=SECOND)
    rack.ports(OLD["a"], NEW, SECOND)
    assert rack.macs() == [SECOND]


def test_an_inventory_of_another_node_binds_it_to_neither() -> None:
    rack = Rack()
    rack.case(mac=NEW)
    rack.ports(OLD["b"], NEW, node="b")
    assert (rack.macs("a"), rack.macs("b")) == ([OLD["a"]], [OLD["b"]])


def test_an_inventory_that_showed_it_before_the_case_listed_it_counts() -> None:
    rack = Rack()
    rack.ports(OLD["a"], NEW)
    rack.case(mac=NEW)
    assert rack.macs() == [OLD["a"], NEW]


def test_a_port_that_bears_the_case_loses_its_own_address() -> None:
    """Mutant: the adapter that went back to the vendor still boots as this node."""
    rack = Rack()
    rack.ports(OLD["a"])
    rack.ask("open-rma", "a", serial=OLD["a"])
    (case,) = rack.drive.fleet.rma_cases.values()
    rack.ask("edit-rma", case.id, mac=NEW)
    assert rack.boots(NEW) == (200, "a")
    assert rack.macs() == [NEW]
    assert rack.boots(OLD["a"]) == (404, "")


def test_it_survives_a_restart_and_is_asked_twice() -> None:
    rack = Rack()
    rack.case(mac=NEW)
    rack.drive.restart()
    assert [rack.boots(NEW) for _ in range(2)] == [(200, "a")] * 2
    rack.drive.restart()
    assert rack.macs() == [OLD["a"], NEW]
    assert len(rack.drive.events(e.NodeFieldChanged)) == 1
