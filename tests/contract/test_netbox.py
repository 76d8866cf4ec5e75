"""Devices of NetBox become expected nodes, through pynetbox, and what is not NetBox's answer is refused."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostler.drivers.netbox.client import expected_from
from hostler.ports import PortError, RefusedError, UnreachableError
from tests.contract.netbox_twin import TOKEN, NetboxTwin, netbox_twin

MAC = "52:54:00:00:00:01"


@pytest.fixture
def netbox() -> Iterator[NetboxTwin]:
    with netbox_twin() as twin:
        yield twin


@pytest.mark.parametrize("mood", ["html", "error", "list", "odd", "large"])
def test_what_is_not_its_answer_is_refused(netbox: NetboxTwin, mood: str) -> None:
    """Mutant: an answer without rows is an inventory without nodes."""
    netbox.add("n1", "SN-1", [MAC])
    netbox.mood = mood
    with pytest.raises(PortError) as refused:
        expected_from(netbox.url, TOKEN, {}, {})
    assert TOKEN not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_wrong_token_and_no_server_are_told_apart(netbox: NetboxTwin) -> None:
    netbox.add("n1", "SN-1", [MAC])
    with pytest.raises(RefusedError, match="403"):
        expected_from(netbox.url, "f" * 40, {}, {})
    with pytest.raises(UnreachableError):
        expected_from("http://127.0.0.1:1", TOKEN, {}, {})
    with pytest.raises(RefusedError, match="no address of NetBox"):
        expected_from("ftp://netbox", TOKEN, {}, {})


def test_a_next_page_elsewhere_is_not_asked_for(netbox: NetboxTwin) -> None:
    """Mutant: pages are followed wherever they lead, and the token with them."""
    for number in range(4):
        netbox.add(f"n{number}", f"SN-{number}", [f"52:54:00:00:00:0{number}"])
    with netbox_twin() as other:
        netbox.elsewhere = other.url
        with pytest.raises(RefusedError, match="points elsewhere"):
            expected_from(netbox.url, TOKEN, {}, {})
        assert other.asked == []


def test_devices_are_read_page_by_page_with_the_addresses_they_boot_from(netbox: NetboxTwin) -> None:
    """Mutants: the first page alone is read; the BMC's port counts as one that boots; filters are left out."""
    for number in range(5):
        netbox.add(f"n{number}", f"SN-{number}", [f"52:54:00:00:0{number}:01", f"52:54:00:00:0{number}:02"])
    netbox.add("far", "SN-far", [MAC], site={"id": 2, "slug": "hall-2"})
    bond = netbox.interfaces[0] | {"id": 99, "type": {"value": "lag"}, "mac_address": "52:54:00:00:00:99"}
    netbox.interfaces.append(bond)
    found = expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})
    assert [one.serial for one in found] == [f"SN-{number}" for number in range(5)]
    first = found[0]
    assert first.macs == ("52:54:00:00:00:01", "52:54:00:00:00:02")
    assert (first.sku, first.hostname, first.site, first.rack, first.u) == ("h100", "n0", "hall-1", "r7", 12)
    assert (first.bmc, first.where) == ("https://10.20.0.1", "netbox:n0")


def test_what_a_device_does_not_say_stays_empty(netbox: NetboxTwin) -> None:
    bare = {"rack": None, "position": None, "oob_ip": None, "site": None, "custom_fields": {"hostler_sku": "gb300"}}
    netbox.add("n1", "", [MAC], **bare)
    (found,) = expected_from(netbox.url, TOKEN, {}, {})
    assert (found.serial, found.sku, found.rack, found.u, found.bmc, found.site) == ("", "gb300", "", 0, "", "")


# --- outlets and DPUs -------------------------------------------------------------------------------------------------

OUTLETS = "/redfish/v1/PowerEquipment/RackPDUs/1/Outlets"


def test_outlets_are_those_that_its_power_ports_are_cabled_to(netbox: NetboxTwin) -> None:
    """Mutants: outlets of another node's ports; an outlet's name where its Redfish Id is told; a free port is one."""
    node, other = netbox.add("n1", "SN-1", [MAC]), netbox.add("n2", "SN-2", ["52:54:00:00:00:02"])
    left = netbox.add_pdu("pdu-l", "10.40.0.1/24", hostler_outlets=OUTLETS)
    right = netbox.add_pdu("pdu-r", "fd00::1/64", hostler_outlets=f"{OUTLETS}/")
    netbox.feed(node, "PSU1", left, "A1")
    netbox.feed(node, "PSU2", right, "Outlet 7")["custom_fields"] = {"hostler_outlet": "7"}
    netbox.feed(other, "PSU1", left, "A2")
    netbox.power_port(node, "PSU3")
    found = {one.serial: one.outlets for one in expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})}
    assert found == {
        "SN-1": (f"https://10.40.0.1#{OUTLETS}/A1", f"https://[fd00::1]#{OUTLETS}/7"),
        "SN-2": (f"https://10.40.0.1#{OUTLETS}/A2",),
    }


def test_outlets_of_pdus_that_are_not_entered_say_nothing(netbox: NetboxTwin) -> None:
    node = netbox.add("n1", "SN-1", [MAC])
    netbox.feed(node, "PSU1", netbox.add_pdu("snmp", "10.40.0.9/24"), "Outlet 1")
    feed = {"id": 4, "url": f"{netbox.url}/api/dcim/power-feeds/4/", "display": "feed A", "name": "feed A"}
    netbox.power_port(node, "PSU2", connected_endpoints=[feed], connected_endpoints_type="dcim.powerfeed")
    (found,) = expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})
    assert (found.serial, found.outlets) == ("SN-1", ())


def _ends(*ends: object) -> dict[str, object]:
    return {"connected_endpoints": list(ends), "connected_endpoints_type": "dcim.poweroutlet"}


def _pdu_port(**fields: Any) -> Callable[[NetboxTwin, dict[str, Any]], None]:
    """A second power port with these fields."""
    return lambda netbox, node: netbox.power_port(node, "PSU2", **fields)


def _on_pdu(name: str, address: str, *, hidden: bool = False, **fields: str) -> Callable[..., None]:
    """A second power port at a PDU of this name, with these custom fields."""

    def plug(netbox: NetboxTwin, node: dict[str, Any]) -> None:
        pdu = netbox.add_pdu(name, address, **fields)
        netbox.feed(node, "PSU2", pdu, "A1")
        if hidden:
            netbox.devices.remove(pdu)

    return plug


def _same_pdu(outlet: str, **more: Any) -> Callable[[NetboxTwin, dict[str, Any]], None]:
    def plug(netbox: NetboxTwin, node: dict[str, Any]) -> None:
        netbox.feed(node, "PSU2", netbox.devices[1], outlet, **more)

    return plug


_FEED = {"id": 4, "display": "A", "name": "A"}


@pytest.mark.parametrize(
    ("plug", "said"),
    [
        (_on_pdu("snmp", "10.40.0.9/24"), r"power port 'PSU2' is fed by snmp, which has no hostler_outlets"),
        (_pdu_port(**_ends(_FEED) | {"connected_endpoints_type": "dcim.powerfeed"}), r"'PSU2' is fed by a power feed"),
        (_same_pdu("A2", connected_endpoints_reachable=False), r"'PSU2' has a cable that is not connected yet"),
        (_pdu_port(mark_connected=True), r"'PSU2' is marked as connected, without a cable"),
        (
            _on_pdu("gone", "10.40.0.8/24", hidden=True, hostler_outlets=OUTLETS),
            r"'PSU2' is fed by an outlet whose PDU NetBox does not show",
        ),
        (_on_pdu("bare", "", hostler_outlets=OUTLETS), r"netbox:bare: it has hostler_outlets and no address"),
        (_on_pdu("odd", "10.40.0.7/24", hostler_outlets="../x"), r"netbox:odd: hostler_outlets '\.\./x' is no path"),
        (_same_pdu("../2"), r"netbox:left: outlet '\.\./2' is no Redfish Id; write that into its field hostler_outlet"),
        (_pdu_port(**_ends() | {"connected_endpoints": "A2"}), r"what feeds power port 'PSU2' is not readable"),
        (_pdu_port(**_ends({"name": "A2"})), r"what feeds power port 'PSU2' has no id"),
    ],
)
def test_a_node_of_which_only_some_outlets_are_known_is_refused(
    netbox: NetboxTwin, plug: Callable[[NetboxTwin, dict[str, Any]], None], said: str
) -> None:
    """Mutant: the outlets that are known are taken for all of them, and a cycle leaves the machine on."""
    node = netbox.add("n1", "SN-1", [MAC])
    netbox.feed(node, "PSU1", netbox.add_pdu("left", "10.40.0.1/24", hostler_outlets=OUTLETS), "A1")
    plug(netbox, node)
    with pytest.raises(RefusedError, match=said):
        expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})


def _dpu(netbox: NetboxTwin, name: str, address: str | None, role: str = "dpu") -> dict[str, Any]:
    ip = {"id": 6, "address": address, "family": {"value": 4}} if address else None
    card = netbox.add(
        name, f"MT-{name}", [], oob_ip=ip, role={"id": 4, "slug": role}, site={"id": 5, "slug": "in-bays"}
    )
    netbox.interfaces.pop()
    return card


def test_bmcs_of_dpus_are_those_in_its_bays(netbox: NetboxTwin) -> None:
    """Mutants: every device in a bay is a DPU; an empty bay is one; bays of another node."""
    node, other = netbox.add("n1", "SN-1", [MAC]), netbox.add("n2", "SN-2", ["52:54:00:00:00:02"])
    netbox.install(node, "slot 1", _dpu(netbox, "card-1", "10.30.7.21/24"))
    netbox.install(node, "slot 2", _dpu(netbox, "blade", "10.30.7.99/24", role="blade"))
    netbox.install(node, "slot 3", None)
    netbox.install(node, "slot 4", _dpu(netbox, "card-4", "10.30.7.22/24"))
    netbox.install(other, "slot 1", _dpu(netbox, "card-9", "10.30.7.29/24"))
    other["custom_fields"] = {"hostler_dpu_bmcs": "https://dpu-a:8443, https://dpu-b"}
    found = {one.serial: one.dpu_bmcs for one in expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})}
    assert found == {
        "SN-1": ("https://10.30.7.21", "https://10.30.7.22"),
        "SN-2": ("https://dpu-a:8443", "https://dpu-b"),
    }


def test_a_dpu_without_an_address_is_refused(netbox: NetboxTwin) -> None:
    """Mutant: the DPUs that have one are taken for all of them."""
    node = netbox.add("n1", "SN-1", [MAC])
    netbox.install(node, "slot 1", _dpu(netbox, "card-1", "10.30.7.21/24"))
    netbox.install(node, "slot 2", _dpu(netbox, "card-2", None))
    with pytest.raises(RefusedError, match="netbox:n1: its DPU netbox:card-2 has no out-of-band IP"):
        expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})


def test_a_token_that_may_not_read_power_ports_is_refused(netbox: NetboxTwin) -> None:
    """Mutant: what the token may not read is no outlet."""
    netbox.add("n1", "SN-1", [MAC])
    netbox.forbidden.add("/api/dcim/power-ports/")
    with pytest.raises(RefusedError, match="403"):
        expected_from(netbox.url, TOKEN, {}, {})


def test_a_server_that_passes_filters_over_gives_nobody_another_s_outlets(netbox: NetboxTwin) -> None:
    """Mutant: rows are taken for those of the device that was asked about."""
    first, second = netbox.add("n1", "SN-1", [MAC]), netbox.add("n2", "SN-2", ["52:54:00:00:00:02"])
    netbox.feed(second, "PSU1", netbox.add_pdu("left", "10.40.0.1/24", hostler_outlets=OUTLETS), "A1")
    netbox.install(second, "slot 1", _dpu(netbox, "card-1", "10.30.7.21/24"))
    netbox.knows_filters = False
    found = {one.serial: one for one in expected_from(netbox.url, TOKEN, {"site": ["hall-1"]}, {})}
    assert (found["SN-1"].outlets, found["SN-1"].dpu_bmcs, first["id"]) == ((), (), 1)
    assert len(found["SN-2"].outlets) == len(found["SN-2"].dpu_bmcs) == 1
