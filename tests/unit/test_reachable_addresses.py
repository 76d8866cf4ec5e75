"""Addresses that may be connected to: public ones, those that are named, and never another way to write ours."""

import pytest

from hostler.runtime.reachable_addresses import METADATA, ReachableNetworks, site

PRIVATE = [
    "127.0.0.1", "127.8.9.1", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "100.64.0.1", "169.254.1.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd12:3456::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1", "::8.8.8.8",
    "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::10.0.0.1", "64:ff9b:1:ffff::808:808",
    "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::", "2001:0:808:808::f5ff:fffe", "2001::1", "::ffff:0:127.0.0.1",
    "::ffff:0:8.8.8.8", "localhost", "", "not an address", "127.1", "0x7f.1", "017700000001", "2130706433",
    *sorted(map(str, METADATA)),
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_not_reached_unless_it_is_named(address: str) -> None:
    """Mutants: `is_global` alone (as it was): NAT64, 6to4 and Azure's 168.63.129.16 are global to it."""
    assert not ReachableNetworks().allows(address)
    assert not ReachableNetworks(("10.99.0.0/16", "fd99::/16")).allows(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_reached(address: str) -> None:
    assert ReachableNetworks().allows(address)
    assert site("https://bmc.example.org").allows(address)


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        (("10.0.0.0/8",), "10.1.2.3", True),
        (("10.0.0.0/8",), "::ffff:10.1.2.3", True),
        (("10.0.0.0/8",), "64:ff9b::10.1.2.3", False),
        (("10.0.0.0/8", "64:ff9b::/96"), "64:ff9b::10.1.2.3", True),
        (("64:ff9b::/96",), "64:ff9b::8.8.8.8", True),
        (("64:ff9b::/96",), "64:ff9b::10.1.2.3", False),
        (("64:ff9b::/96", "10.0.0.0/8"), "64:ff9b::169.254.169.254", False),
        (("2002::/16",), "2002:a9fe:a9fe::", False),
        (("::/0", "0.0.0.0/0"), "127.0.0.1", True),
        (("::/0", "0.0.0.0/0"), "169.254.169.254", False),
        (("169.254.0.0/16",), "169.254.169.254", False),
        (("169.254.0.0/16",), "169.254.3.1", True),
        (("169.254.169.254/32",), "169.254.169.254", True),
        (("100.64.0.0/10",), "100.100.100.200", False),
        (("100.64.0.0/10",), "100.100.100.201", True),
        (("fd00::/8",), "fd00:ec2::254", False),
    ],
)
def test_a_named_network_is_reached_and_no_metadata_through_it(
    networks: tuple[str, ...], address: str, allowed: bool
) -> None:
    """Mutants: a wide network names a cloud's metadata; a translated address needs no word for what it leads to."""
    assert ReachableNetworks(networks).allows(address) is allowed


@pytest.mark.parametrize(
    ("url", "address", "allowed"),
    [
        ("https://bmc-7.example.org", "10.3.0.7", True),
        ("https://bmc-7.example.org", "fd12::7", True),
        ("https://bmc-7.example.org", "127.0.0.1", False),
        ("https://bmc-7.example.org", "169.254.3.1", False),
        ("https://bmc-7.example.org", "169.254.169.254", False),
        ("https://bmc-7.example.org", "0.0.0.0", False),
        ("https://bmc-7.example.org", "fe80::1", False),
        ("https://bmc-7.example.org", "64:ff9b::a03:7", False),
        ("https://bmc-7.example.org", "168.63.129.16", False),
        ("https://10.3.0.7", "10.3.0.7", True),
        ("https://127.0.0.1:8443", "127.0.0.1", True),
        ("https://127.0.0.1:8443", "127.0.0.2", False),
        ("https://localhost:8443", "127.0.0.1", True),
        ("https://localhost:8443", "::1", True),
        ("https://[::1]:8443", "::1", True),
        ("https://169.254.3.1", "169.254.3.1", True),
        ("https://169.254.3.1", "169.254.3.2", False),
        ("https://169.254.169.254", "169.254.169.254", False),
        ("https://[fe80::1%25eth0]", "fe80::1", True),
        ("https://127.0.0.1.example.org", "127.0.0.1", False),
        ("https://127.0.0.1@bmc-7.example.org", "127.0.0.1", False),
        ("https://localhost.example.org", "127.0.0.1", False),
    ],
)
def test_a_host_of_a_settings_file_leads_into_the_site_and_not_to_this_host(
    url: str, address: str, allowed: bool
) -> None:
    """Mutants: BMCs in private networks are refused; a name that leads to loopback or a cloud's metadata is asked."""
    assert site(url).allows(address) is allowed
