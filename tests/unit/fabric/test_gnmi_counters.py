"""Counters of Ethernet switches as gNMI answers them are read whole, or refused with what is wrong."""

import contextlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.fabric.design import Cable, Port
from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.links import LinkCheck, LinkFault, PortReading
from hostler.drivers.infiniband.fabric_source import _gnmi
from hostler.drivers.infiniband.gnmi_counters import parse
from hostler.polling.link_rounds import BoundCables, LinkWatch
from hostler.ports import LinkReadings

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def interface(name: str, moves: object = "4", status: str = "UP", errors: object = "7") -> dict[str, Any]:
    counters = {"carrier-transitions": moves, "in-fcs-errors": errors, "in-octets": "123"}
    return {
        "name": name,
        "config": {"name": name},
        "state": {"name": name, "oper-status": status, "counters": counters},
    }


def tree(*interfaces: dict[str, Any]) -> bytes:
    return json.dumps({"openconfig-interfaces:interfaces": {"interface": list(interfaces)}}).encode()


def got(*interfaces: dict[str, Any]) -> bytes:
    """Page of `gnmic get --path /interfaces/interface/state`."""
    updates = [
        {
            "Path": f"openconfig-interfaces:interfaces/interface[name={one['name']}]/state",
            "values": {"openconfig-interfaces:interfaces/interface/state": one["state"]},
        }
        for one in interfaces
    ]
    return json.dumps([{"source": "leaf-1:6030", "timestamp": 1, "updates": updates}]).encode()


def streamed(*interfaces: dict[str, Any]) -> bytes:
    """Page of `gnmic subscribe`: an update a leaf, and that the first ones are through."""
    lines = []
    for one in interfaces:
        at = f"interfaces/interface[name={one['name']}]/state"
        leaves = {f"counters/{leaf}": value for leaf, value in one["state"]["counters"].items()}
        for leaf, value in {**leaves, "oper-status": one["state"]["oper-status"]}.items():
            told = {"Path": f"{at}/{leaf}", "values": {f"interfaces/interface/state/{leaf}": value}}
            lines.append(json.dumps({"source": "leaf-1:6030", "updates": [told]}, indent=2))
    return "\n".join([*lines, '{"sync-response": true}', ""]).encode()


@pytest.mark.parametrize("shape", [tree, got, streamed])
def test_every_shape_tells_the_same(shape: Any) -> None:
    """Mutants: a flap is counted at its fall and its rise; management and port channels are ports of the design."""
    page = shape(
        interface("Ethernet8"), interface("Ethernet9", 5, "DOWN"), interface("Management1"), interface("Vlan8")
    )
    assert parse("leaf-1", page) == {
        FoundPort("leaf-1", 8): PortReading(link_downed=2, symbol_errors=7, state="active"),
        FoundPort("leaf-1", 9): PortReading(link_downed=2, symbol_errors=7, state="down"),
    }


BAD: dict[str, tuple[bytes, str]] = {
    "an error page": (b"<html>log in</html>", "no JSON"),
    "nothing": (b"", "0 ports"),
    "another tree": (b'{"openconfig-lldp:interfaces": {}}', "no interfaces and no updates"),
    "a number": (b"3", "is no object"),
    "cut off": (tree(interface("Ethernet8"))[:-9], "no JSON"),
    "interfaces as text": (b'{"interfaces": {"interface": "all"}}', "not as its shape has it"),
    "NaN": (tree(interface("Ethernet8")).replace(b'"4"', b"NaN"), "NaN is no number of JSON"),
    "a count below nothing": (tree(interface("Ethernet8", "-4")), "carrier-transitions is '-4', no count"),
    "a count that is none": (tree(interface("Ethernet8", 4.5)), "carrier-transitions is '4.5', no count"),
    "a count without end": (tree(interface("Ethernet8", "9" * 30)), "no count"),
    "the same number twice": (tree(interface("Ethernet1/8"), interface("Ethernet2/8")), "have the same number"),
    "too much": (b" " * (8 * 2**20 + 1), "bytes; at most"),
    "nested without end": (b'{"interfaces":' * 100_000, "not as its shape has it"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_document_that_is_none_is_refused_whole(name: str) -> None:
    page, said = BAD[name]
    with pytest.raises(ValueError, match=said):
        parse("leaf-1", page)


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: tree(interface(text))))
def test_whatever_stands_there_the_reader_answers_or_refuses(page: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert parse("leaf-1", page)


def test_a_link_that_flaps_by_both_switches_counters_is_one_fault(tmp_path: Path) -> None:
    """Mutants: transitions are falls; the documents of one switch stand for both ends."""
    cable = Cable(Port("leaf-1", "8"), Port("spine-1", "3"))
    names = {FoundPort(at.device, int(at.port)): at for at in (cable.a, cable.z)}
    wiring, watch = BoundCables((cable,), names, frozenset({"leaf-1", "spine-1"})), LinkWatch()
    faults: list[LinkFault] = []
    for round_, moves in enumerate(("10", "20")):
        for at in (cable.a, cable.z):
            (tmp_path / f"{at.device}.json").write_bytes(tree(interface(f"Ethernet{at.port}", moves)))
        page = _gnmi(tmp_path)
        assert page.why == ""
        faults, _ = watch.take(wiring, LinkReadings(page.ports), {}, NOW + timedelta(minutes=12 * round_))
    (fault,) = faults
    assert (fault.check, fault.text) == (LinkCheck.flaps, "5 flaps in 24 h, counted at both ends")
    (tmp_path / "leaf-1.json").write_text("<html>")
    page = _gnmi(tmp_path)
    assert page.why.startswith("counters of leaf-1: no JSON")
    assert page.ports.keys() == {FoundPort("spine-1", 3)}
    assert _gnmi(tmp_path / "none").ports == {}
