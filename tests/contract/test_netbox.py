"""Devices of NetBox become expected nodes, through pynetbox, and what is not NetBox's answer is refused."""

from collections.abc import Iterator

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
