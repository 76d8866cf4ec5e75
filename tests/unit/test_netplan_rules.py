"""Network of booted nodes: bonds, VLANs and rails as netplan takes them, and what is refused before a node gets it."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hostler.core.boot.cloud_init import compose
from hostler.core.policy.documents import parse
from hostler.core.state.assets import Position
from hostler.core.state.boot import BootConfiguration
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Node
from tests.kit import POLICY, a_node, configuration

SKU = """
version: 2
ethernets:
  rail0:
    match: {name: enp4s0, driver: [mlx5_core]}
    mtu: 9000
    addresses: ["10.100.{u}.2/31"]
    routes: [{to: 10.100.0.0/16, via: "10.100.{u}.3", table: 100}]
    routing-policy: [{from: "10.100.{u}.2", table: 100}]
  rail1:
    match: {name: enp5s0}
    mtu: 9000
    addresses: [{"10.101.{u}.2/31": {label: rail1}}]
bonds:
  bond0:
    interfaces: [boot0, boot1]
    addresses: ["10.0.{u}.7/24"]
    nameservers: {addresses: [10.0.0.53], search: ["{rack}.example"]}
    routes: [{to: default, via: "10.0.{u}.1"}]
    parameters: {mode: 802.3ad, lacp-rate: fast, mii-monitor-interval: 100, transmit-hash-policy: layer3+4}
vlans:
  storage: {id: 100, link: bond0, addresses: ["10.9.{u}.7/24"]}
"""


def checked(sku: dict[str, Any], node: dict[str, Any] | None = None) -> BootConfiguration:
    """The boot section with this network of the SKU, and of the node n1. Raises InvalidInputError."""
    layers = {"skus": {"h100": {"network": sku}}, "nodes": {"n1": {"network": node or {}}}}
    boot = yaml.safe_dump({"boot": {"url": "http://10.0.0.1:8081", "cloud_init": layers}})
    boots = parse({"policy.yaml": POLICY, "boot.yaml": boot}).boot
    assert boots is not None
    return boots


def given(boots: BootConfiguration) -> dict[str, Any]:
    """The network that the node n1 is given, in rack r7, unit 12, with two ports."""
    fleet = Fleet()
    fleet.configurations.put("active", replace(configuration(), boot=boots))
    told: dict[str, Any] = yaml.safe_load(compose(fleet, machine()).text("network-config"))
    return told


def machine() -> Node:
    node = a_node("n1", position=Position("c1", rack="r7", u=12))
    macs = tuple(replace(node.bindings[0], kind="mac", value=f"52:54:00:00:00:0{n}") for n in (1, 2))
    return replace(node, bindings=(*node.bindings, *macs))


def test_bonds_vlans_and_rails_of_a_sku_are_each_node_s_own() -> None:
    """Mutants: a placeholder is given as it stands; a layer of the node replaces the SKU's devices."""
    told = given(checked(yaml.safe_load(SKU), {"vlans": {"storage": {"mtu": 9000}}}))
    assert told["ethernets"]["rail0"]["addresses"] == ["10.100.12.2/31"]
    assert told["ethernets"]["rail0"]["routes"][0]["via"] == "10.100.12.3"
    assert told["ethernets"]["rail1"]["addresses"] == [{"10.101.12.2/31": {"label": "rail1"}}]
    assert told["ethernets"]["boot0"]["match"] == {"macaddress": "52:54:00:00:00:01"}
    assert told["bonds"]["bond0"]["nameservers"]["search"] == ["r7.example"]
    assert told["vlans"]["storage"] == {"id": 100, "link": "bond0", "addresses": ["10.9.12.7/24"], "mtu": 9000}


@pytest.mark.skipif(shutil.which("netplan") is None, reason="netplan missing: run scripts/system-packages")
def test_netplan_itself_takes_what_a_node_is_given(tmp_path: Path) -> None:
    """Mutant: a name of ours that netplan has not."""
    made = generated(tmp_path, given(checked(yaml.safe_load(SKU))))
    assert made.returncode == 0, made.stderr
    units = {one.name: one.read_text() for one in (tmp_path / "run/systemd/network").iterdir()}
    assert "Mode=802.3ad" in units["10-netplan-bond0.netdev"]
    assert "Bond=bond0" in units["10-netplan-boot0.network"]
    assert "Id=100" in units["10-netplan-storage.netdev"]
    assert "Address=10.100.12.2/31" in units["10-netplan-rail0.network"]
    assert "Address=10.101.12.2/31" in units["10-netplan-rail1.network"]


def generated(root: Path, told: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """The answer of `netplan generate` to this network."""
    (root / "etc/netplan").mkdir(parents=True)
    (root / "etc/netplan/50-cloud-init.yaml").write_text(yaml.safe_dump({"network": told}))
    command = ("netplan", "generate", "--root-dir", str(root))
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


WRONG: dict[str, tuple[str, str]] = {
    "a key that no bond has": ("bonds: {b: {interfaces: [boot0], slaves: [x]}}", "netplan knows no key 'slaves'"),
    "a parameter that no bond has": ("bonds: {b: {parameters: {modus: x}}}", "netplan knows no key 'modus'"),
    "a mode that is none": ("bonds: {b: {parameters: {mode: lacp}}}", "no bond mode 'lacp'"),
    "a port that nobody has": ("bonds: {b: {interfaces: [eno1]}}", "bonds b: no device 'eno1'"),
    "a port in two bonds": ("bonds: {a: {interfaces: [boot0]}, b: {interfaces: [boot0]}}", "'boot0' is in a already"),
    "a VLAN of nothing": ("vlans: {v: {id: 7, link: bond9}}", "vlans v: no device 'bond9'"),
    "a VLAN without a number": ("vlans: {v: {link: boot0}}", "vlans v has no id"),
    "a VLAN that is none": ("vlans: {v: {id: 4095, link: boot0}}", "VLAN 4095 is none"),
    "a number as text": ("vlans: {v: {id: seven, link: boot0}}", "Expected 'int | null', got 'str'"),
    "an address without its prefix": ("ethernets: {e: {addresses: [10.0.0.7]}}", "no address with its prefix"),
    "an address that is none": ("ethernets: {e: {addresses: [10.0.0.777/24]}}", "no address with its prefix"),
    "a route to nowhere": ("ethernets: {e: {routes: [{to: everywhere, via: 10.0.0.1}]}}", "no network to go to"),
    "a route by a name": ("ethernets: {e: {routes: [{to: default, via: gateway}]}}", "no address to go by"),
    "a name server by name": ("ethernets: {e: {nameservers: {addresses: [ns1]}}}", "no address of a name server"),
    "an mtu of nothing": ("ethernets: {e: {mtu: 9}}", "mtu 9 is none"),
    "a name twice": ("{ethernets: {x: {}}, bonds: {x: {}}}", "'x' is also one of ethernets"),
    "another version": ("version: 1", "netplan's version is 2"),
    "a kind that netplan has not": ("bond: {}", "netplan knows no key 'bond'"),
    "a placeholder that is none": ("ethernets: {e: {addresses: ['10.0.{unit}.1/24']}}", "no placeholder {unit}"),
    "devices as a list": ("ethernets: {e: [1]}", "Expected 'object'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_no_machine_could_take_is_refused_with_its_place(wrong: str) -> None:
    """Mutant: it is handed on, and the node comes up without a network."""
    text, said = WRONG[wrong]
    with pytest.raises(InvalidInputError) as refused:
        checked(yaml.safe_load(text))
    assert said in str(refused.value)
    assert "boot.yaml:" in str(refused.value)


def test_a_device_of_another_layer_is_known() -> None:
    """Mutant: each layer has to name all devices."""
    checked({"ethernets": {"rail0": {"match": {"name": "enp4s0"}}}}, {"vlans": {"v": {"id": 3, "link": "rail0"}}})
    checked({"vlans": {"v": {"link": "boot0"}}}, {"vlans": {"v": {"id": 3}}})


def test_kinds_that_are_not_read_here_are_handed_on() -> None:
    tunnel = {"tunnels": {"t": {"mode": "gre", "remote": "10.0.0.1", "anything": 1}}}
    assert given(checked(tunnel))["tunnels"] == tunnel["tunnels"]
