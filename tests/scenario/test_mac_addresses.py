"""MAC addresses are had in one way, however they are written where a node is named, and boots find their node by it."""

import json

import pytest

from hostler.controller.inputs import BootAsked, FellowsSeen
from hostler.core.boot.boot_decision import BootRequest
from hostler.core.state.assets import Binding, normal_mac
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase
from tests.kit import NOW, Drive, a_node, configuration

MAC = "52:54:00:ab:cd:ef"
WRITTEN = ["52:54:00:AB:CD:EF", "52-54-00-ab-cd-ef", "5254.00ab.CDEF", " 525400ABCDEF ", MAC]


def a_drive(*macs: str) -> Drive:
    bindings = tuple(Binding("mac", mac, NOW) for mac in macs)
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.triage, bindings=bindings)])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    return drive


def booted(drive: Drive) -> str:
    """The node for which a machine is taken that boots by the address."""
    ready = drive.step(BootAsked(9, BootRequest("script", "10.0.0.9", mac=MAC)))
    (reply,) = [one for one in ready.replies if one.token == 9]
    return str(reply.detail["node"]) if reply.acknowledged == 200 else ""


def held(drive: Drive, node: str) -> list[str]:
    return [b.value for b in drive.node(node).bindings if b.kind == "mac" and b.until is None]


@pytest.mark.parametrize("written", WRITTEN)
def test_an_address_is_written_in_many_ways_and_had_in_one(written: str) -> None:
    assert normal_mac(written) == MAC


@pytest.mark.parametrize("nonsense", ["52:54:00:ab:cd", "eth0", "", "52:54:00:ab:cd:ef:01", "zz:54:00:ab:cd:ef"])
def test_what_is_no_address_is_left_to_who_refuses_it(nonsense: str) -> None:
    """Mutant: something else becomes an address that another machine may have."""
    assert normal_mac(nonsense) == nonsense


@pytest.mark.parametrize("written", WRITTEN)
def test_a_node_that_is_registered_by_it_boots_by_it(written: str) -> None:
    """Mutant: it is kept as written, and the machine is a stranger at its first boot."""
    drive = a_drive()
    spec = {"sku": "h100", "id": "b", "serial": "SN-b", "macs": [written, MAC]}
    reply = drive.ask("register", "fleet", nodes=json.dumps([spec]))
    assert reply.granted, reply.text
    assert (held(drive, "b"), booted(drive)) == ([MAC], "b")
    other = {"sku": "h100", "id": "c", "serial": "SN-c", "macs": [MAC.upper()]}
    assert f"mac:{MAC} is bound to" in drive.ask("register", "fleet", nodes=json.dumps([other])).text, "another has it"


@pytest.mark.parametrize("written", WRITTEN)
def test_a_node_that_is_bound_anew_boots_by_it(written: str) -> None:
    drive = a_drive("02:00:00:00:00:01")
    assert drive.ask("rebind", "a", kind="mac", value=written).granted
    assert (held(drive, "a"), booted(drive)) == ([MAC], "a")


@pytest.mark.parametrize("written", ["52:54:00:AB:CD:EF", "52-54-00-AB-CD-EF"])
def test_an_address_that_a_journal_has_in_another_way_is_found_too(written: str) -> None:
    """Nodes of earlier versions kept it as it was written. Mutants: they boot as strangers; another is given it too."""
    drive = a_drive(written)
    assert booted(drive) == "a"
    spec = {"sku": "h100", "id": "b", "serial": "SN-b", "macs": [MAC]}
    assert f"mac:{MAC} is bound to" in drive.ask("register", "fleet", nodes=json.dumps([spec])).text
    drive.restart()
    assert booted(drive) == "a"
