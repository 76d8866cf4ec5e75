"""Admission: a plan of what an inventory adds and changes, carried out by its digest alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.cli.expected_files import read_expected_file
from hostler.controller.inputs import FellowsSeen, IntentAsked
from hostler.core.intents.expected_nodes import AdmissionPlan, compare, read_expected
from hostler.core.policy.documents import parse
from hostler.core.state import events as e
from hostler.core.state.expected import AdmissionRules, ExpectedNode, FieldOwner
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.intent import Bounds
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Node, Phase
from hostler.core.state.scopes import Scope
from tests.kit import NOW, POLICY, Drive, configuration, intent_of, pool_document

CONFIG = configuration({"train": pool_document(target=0)})
A1, A2 = (f"https://pdu-l#/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/{name}" for name in ("A1", "A2"))
FILE, NETBOX = FieldOwner.file, FieldOwner.netbox


def owned(at: str = "", **owners: str) -> Drive:
    """A cell whose configuration names these owners, with one registered node, n1, whose BMC is `at`."""
    rules = AdmissionRules({field: FieldOwner(name) for field, name in owners.items()})
    drive = Drive(replace(CONFIG, admission=rules))
    drive.step(FellowsSeen((Fellow("test", Release().reads),)))
    drive.script("power_on", "failed")
    spec = {"id": "n1", "sku": "h100", "serial": "SN-1", "macs": ["52:54:00:00:00:01"], "rack": "r1", "u": 3}
    spec |= {"bmc": at} if at else {}
    assert drive.ask("register", "fleet", nodes=json.dumps([spec])).granted
    return drive


def one(serial: str = "SN-1", mac: str = "52:54:00:00:00:01", **more: Any) -> ExpectedNode:
    return ExpectedNode(serial, (mac,), where="rack7.csv:2", **more)


def planned(drive: Drive, *entries: ExpectedNode, source: FieldOwner = FILE) -> AdmissionPlan:
    return compare(drive.fleet, source, entries)


def apply(drive: Drive, plan: AdmissionPlan, *entries: ExpectedNode, source: FieldOwner = FILE) -> Any:
    nodes = json.dumps([{f: getattr(one, f) for f in one.__struct_fields__} for one in entries])
    return drive.ask("admit", "fleet", nodes=nodes, source=source.value, digest=plan.digest)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (one(serial=""), "rack7.csv:2: no serial number"),
        (one(serial="0000000000"), "rack7.csv:2: serial number '0000000000' is a vendor's placeholder"),
        (one(mac="52:54:00:00:00"), "rack7.csv:2: MAC address '52:54:00:00:00'"),
        (one(mac="ff:ff:ff:ff:ff:ff"), "MAC address"),
        (one(serial="SN-9", sku="h999"), "unknown SKU 'h999'"),
        (one(serial="SN\x1b[2J"), "is not a valid name"),
        (one(bmc="file:///etc/passwd"), "is no address"),
        (one(u=-1), "u -1"),
        (one(outlets=(A1, A1)), "2 outlets, or one twice"),
        (one(outlets=("https://pdu/A1",)), "is not an outlet's address"),
        (one(outlets=("https://u:p@pdu#/redfish/v1/x",)), "is not an outlet's address"),
        (one(dpu_bmcs=("https://dpu\x1b[2J",)), "is not a BMC's address"),
        (one(dpu_bmcs=tuple(f"https://dpu-{n}" for n in range(17))), "17 BMCs of DPUs"),
        (ExpectedNode("SN-9", ()), "nodes[1]: 0 MAC addresses"),
        (ExpectedNode("SN-9", tuple(f"52:54:00:00:01:{n:02x}" for n in range(17))), "17 MAC addresses"),
    ],
)
def test_an_inventory_with_one_bad_entry_is_refused_whole(entry: ExpectedNode, said: str) -> None:
    """Mutant: the entries that are good are admitted."""
    drive = owned()
    with pytest.raises(InvalidInputError) as refused:
        planned(drive, one(serial="SN-2", mac="52:54:00:00:00:02", sku="h100"), entry)
    assert said in str(refused.value)


def test_two_entries_of_one_name_are_refused_with_both_lines() -> None:
    again = ExpectedNode("sn-1", ("52-54-00-00-00-09",), sku="h100", where="rack7.csv:3")
    with pytest.raises(InvalidInputError, match=r"rack7.csv:3: serial sn-1 is also given in rack7.csv:2"):
        planned(owned(), one(sku="h100"), again)


def test_an_expected_node_is_added_by_the_digest_that_was_read() -> None:
    """Mutants: a digest is not asked for; a node is added twice."""
    drive = owned()
    new = one("SN-2", "52-54-00-00-00-AB", sku="h100", rack="r7", u=12, bmc="https://10.0.0.7", hostname="h2")
    plan = planned(drive, new)
    assert [entry.serial for entry in plan.adds] == ["SN-2"]
    assert drive.fleet.resolve("SN-2") is None
    assert "run `hostler admission plan` again" in apply(drive, _other(plan), new).text
    assert apply(drive, plan, new).granted
    node = drive.fleet.resolve("SN-2")
    assert node is not None
    assert (node.position.rack, node.position.u, node.binding("bmc"), node.binding("hostname")) == (
        "r7", 12, "https://10.0.0.7", "h2",
    )  # fmt: skip
    assert drive.fleet.index.members("mac:52:54:00:00:00:ab") == [node.id]
    assert not apply(drive, plan, new).granted  # what was done once is not in the plan any more
    assert planned(drive, new).unchanged == 1


def _other(plan: AdmissionPlan) -> AdmissionPlan:
    return replace(plan, digest="0" * 64)


def test_a_fleet_that_changed_after_the_plan_refuses_it() -> None:
    """Mutant: the digest is of the inventory alone."""
    drive = owned(rack="file")
    plan = planned(drive, one(rack="r2"))
    first = one(rack="r3")
    assert apply(drive, planned(drive, first), first).granted
    assert "has changed since" in apply(drive, plan, one(rack="r2")).text
    assert drive.node("n1").position.rack == "r3"


@pytest.mark.parametrize(("owner", "changes"), [("file", True), ("netbox", False), ("hostler", False)])
def test_the_declared_owner_of_a_field_decides_it(owner: str, changes: bool) -> None:
    """Mutant: whoever came last decides."""
    drive = owned(rack=owner, u=owner)
    entry = one(rack="r2", u=9)
    plan = planned(drive, entry)
    assert bool(plan.changes) is changes
    if not changes:
        assert [c.says.partition(" decides")[0] for c in plan.conflicts] == [owner, owner]
    assert apply(drive, plan, entry).granted
    node = drive.node("n1")
    assert (node.position.rack, node.position.u) == (("r2", 9) if changes else ("r1", 3))
    assert (Scope("rack", "r2") in node.domains, Scope("rack", "r1") in node.domains) == (changes, not changes)
    told = [(event.field, event.before, event.after, event.source) for event in drive.events(e.NodeFieldChanged)]
    assert told == ([("rack", "r1", "r2", "file"), ("u", "3", "9", "file")] if changes else [])


def test_what_nobody_has_said_is_filled_in_whoever_owns_it() -> None:
    drive = owned(site="netbox")
    plan = planned(drive, one(site="hall-1", hostname="h1"))
    assert [(f.field, f.registered) for f in plan.changes[0].fields] == [("hostname", ""), ("site", "")]


def test_macs_are_replaced_as_a_whole_and_all_that_hold_are_kept() -> None:
    """Mutant: names that hold are dropped with those that ended."""
    drive = owned(macs="netbox")
    macs = tuple(f"52:54:00:00:02:{n:02x}" for n in range(16))
    entry = ExpectedNode("SN-1", macs)
    assert apply(drive, planned(drive, entry, source=NETBOX), entry, source=NETBOX).granted
    node = drive.node("n1")
    assert {b.value for b in node.bindings if b.kind == "mac" and b.until is None} == set(macs)
    assert node.binding("serial") == "SN-1"
    assert drive.fleet.index.members("mac:52:54:00:00:00:01") == []
    assert planned(drive, entry, source=NETBOX).unchanged == 1


# --- outlets and DPUs -------------------------------------------------------------------------------------------------


def entered(**owners: str) -> Drive:
    """The cell with a second node, n2, that has a BMC, an outlet and a DPU, and a switch tray."""
    drive = owned(**owners)
    mac, outlets, dpus = ["52:54:00:00:00:02"], [A2], ["https://dpu-2"]
    spec = {"id": "n2", "sku": "h100", "serial": "SN-2", "macs": mac, "bmc": "https://10.0.0.2#1"}
    assert drive.ask("adopt", "fleet", nodes=json.dumps([{**spec, "outlets": outlets, "dpu_bmcs": dpus}])).granted
    tray = {"id": "tray1", "kind": "switch_tray", "bmc": "https://10.0.9.1"}
    assert drive.ask("register-assets", "fleet", assets=json.dumps([tray])).granted
    return drive


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"outlets": (A2,)}, f"{A2} is an outlet of n2"),
        ({"outlets": (A2.replace("pdu-l", "PDU-L:443") + "/",)}, "is an outlet of n2"),
        ({"outlets": ("https://10.0.0.2#/redfish/v1/x/A1",)}, "is the BMC of n2"),
        ({"dpu_bmcs": ("https://10.0.0.2",)}, "https://10.0.0.2 is the BMC of n2"),
        ({"dpu_bmcs": ("https://10.0.0.2:443",)}, "is the BMC of n2"),
        ({"dpu_bmcs": ("https://dpu-2",)}, "https://dpu-2 is a DPU's BMC of n2"),
        ({"dpu_bmcs": ("https://pdu-l",)}, "https://pdu-l is a PDU of n2"),
        ({"dpu_bmcs": ("https://10.0.9.1",)}, "https://10.0.9.1 is the BMC of tray1"),
        ({"bmc": "https://DPU-2#system"}, "is a DPU's BMC of n2"),
    ],
)
@pytest.mark.parametrize("serial", ["SN-1", "SN-9"], ids=["registered", "new"])
def test_an_address_that_is_somebody_else_s_moves_nothing_of_its_entry(
    more: dict[str, Any], said: str, serial: str
) -> None:
    """Mutants: addresses are compared as they are written; only those of the same kind are looked at."""
    drive = entered(outlets="file", dpu_bmcs="file", bmc="file", rack="file")
    entry = one(serial, "52:54:00:00:00:01" if serial == "SN-1" else "52:54:00:00:00:09", sku="h100", **more)
    plan = planned(drive, replace(entry, rack="r9"))
    assert (plan.adds, plan.changes) == ((), ())
    assert said in plan.conflicts[0].says
    assert plan.conflicts[0].node in ("n2", "tray1")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"outlets": (A1,)}, {"outlets": (A1,)}, "nodes.csv:3: outlets '{A1}' is an outlet of nodes.csv:2 already"),
        ({"bmc": "https://b"}, {"dpu_bmcs": ("https://B:443",)}, "is the BMC of nodes.csv:2 already"),
        ({"dpu_bmcs": ("https://b",)}, {"bmc": "https://b#1"}, "is a DPU's BMC of nodes.csv:2 already"),
        ({}, {"bmc": "https://b", "dpu_bmcs": ("https://b",)}, "is the BMC of nodes.csv:3 already"),
        ({"outlets": (A1,)}, {"dpu_bmcs": ("https://pdu-l",)}, "is a PDU of nodes.csv:2 already"),
    ],
)
def test_an_address_that_two_entries_have_refuses_the_list(
    first: dict[str, Any], second: dict[str, Any], said: str
) -> None:
    """Mutant: each entry is held against the fleet alone."""
    entries = [
        ExpectedNode(f"SN-{n}", (f"52:54:00:00:07:0{n}",), sku="h100", where=f"nodes.csv:{n}", **fields)
        for n, fields in ((2, first), (3, second))
    ]
    with pytest.raises(InvalidInputError) as refused:
        planned(owned(), *entries)
    assert said.replace("{A1}", A1) in str(refused.value)


def test_entries_of_one_place_are_told_apart() -> None:
    """Mutant: who gives every entry the same place may name one machine twice."""
    again = ExpectedNode("SN-1", ("52:54:00:00:00:09",), sku="h100", where="rack7.csv:2")
    with pytest.raises(InvalidInputError, match=r"nodes\[1\]\): serial SN-1 is also given in rack7.csv:2 \(nodes\[0\]"):
        planned(owned(), one(sku="h100"), again)


def test_outlets_and_dpus_come_with_a_new_node() -> None:
    drive = owned()
    entry = one("SN-3", "52:54:00:00:00:03", sku="h100", outlets=(A1, A2), dpu_bmcs=("https://dpu-3",))
    assert apply(drive, planned(drive, entry), entry).granted
    node = drive.fleet.resolve("SN-3")
    assert node is not None
    assert (node.binding("outlet"), node.binding("dpu_bmc")) == (f"{A1} {A2}", "https://dpu-3")
    assert planned(drive, replace(entry, outlets=(A2, A1))).unchanged == 1
    assert planned(drive, replace(entry, outlets=(A2, A1.replace("pdu-l", "PDU-L:443")))).unchanged == 1
    assert planned(drive, replace(entry, outlets=(A2, A1.replace("/A1", "/a1")))).unchanged == 0


@pytest.mark.parametrize(("owner", "changes"), [("netbox", True), ("file", False)])
def test_their_owner_decides_the_outlets_and_dpus_of_a_node(owner: str, changes: bool) -> None:
    """Mutants: whoever came last decides; a list is added to the one that is registered."""
    drive = entered(outlets=owner, dpu_bmcs=owner)
    entry = one("SN-2", "52:54:00:00:00:02", outlets=(A1,), dpu_bmcs=("https://dpu-7",))
    plan = planned(drive, entry, source=NETBOX)
    shown = [(c.field.field, c.field.registered, c.field.expected) for c in plan.conflicts]
    assert shown == ([] if changes else [("outlets", A2, A1), ("dpu_bmcs", "https://dpu-2", "https://dpu-7")])
    assert apply(drive, plan, entry, source=NETBOX).granted
    node = drive.node("n2")
    assert node.operation is None
    told = (A1, "https://dpu-7") if changes else (A2, "https://dpu-2")
    assert (node.binding("outlet"), node.binding("dpu_bmc")) == told
    assert drive.fleet.index.members(f"outlet:{A2}") == ([] if changes else ["n2"])


def test_they_stay_while_something_is_under_way_through_a_bmc() -> None:
    """Mutant: the outlets that an operation under way cycles are exchanged under it."""
    drive = owned("https://10.0.0.9", outlets="file", dpu_bmcs="file", bmc="file")
    entry = one(bmc="https://10.0.0.1", outlets=(A1,), dpu_bmcs=("https://dpu-1",))
    assert drive.node("n1").operation is not None
    plan = planned(drive, entry)
    assert (plan.changes, [c.field.field for c in plan.conflicts]) == ((), ["bmc", "outlets", "dpu_bmcs"])
    assert all("under way through its BMC; plan again when it is over" in c.says for c in plan.conflicts)


def test_an_entry_that_names_none_says_nothing_of_them() -> None:
    """Mutant: what an inventory does not carry is taken away."""
    drive = entered(outlets="file", dpu_bmcs="file")
    assert planned(drive, one("SN-2", "52:54:00:00:00:02")).unchanged == 1


@pytest.mark.parametrize("kind", ["dpu_bmc", "bmc"])
def test_a_node_is_not_rebound_to_what_is_something_else(kind: str) -> None:
    """Mutant: only names of the same kind are looked at."""
    drive = entered()
    address = "https://10.0.0.2" if kind == "dpu_bmc" else "https://dpu-2"
    answer = drive.ask("rebind", "n1", kind=kind, value=address)
    assert not answer.granted
    assert "of n2 already: correct one of the two" in answer.text


def test_a_node_is_not_registered_with_what_is_something_else() -> None:
    drive = entered()
    spec = {"sku": "h100", "serial": "SN-5", "dpu_bmcs": ["https://10.0.0.2"]}
    assert "is the BMC of n2 already" in drive.ask("register", "fleet", nodes=json.dumps([spec])).text


@pytest.mark.parametrize(
    ("serial", "mac", "field"),
    [("SN-7", "52:54:00:00:00:01", "macs"), ("SN-2", "52:54:00:00:00:01", "macs")],
    ids=["a new serial number with a known address", "another node's serial number"],
)
def test_an_entry_with_names_of_two_machines_moves_nothing(serial: str, mac: str, field: str) -> None:
    """Mutant: the MAC address moves to the entry's node."""
    drive = owned(macs="file", serial="file", rack="file")
    more = {"id": "n2", "sku": "h100", "serial": "SN-2", "macs": ["52:54:00:00:00:02"]}
    assert drive.ask("register", "fleet", nodes=json.dumps([more])).granted
    entry = one(serial, mac, sku="h100", rack="r9")
    plan = planned(drive, entry)
    assert (plan.adds, plan.changes) == ((), ())
    assert [(c.node, c.field.field) for c in plan.conflicts] == [("n1", field)]
    assert "bound to n1 (SN-1)" in plan.conflicts[0].says


def test_a_node_known_by_its_address_alone_is_given_its_serial_number() -> None:
    drive = owned()
    spec = {"id": "n3", "sku": "h100", "macs": ["52:54:00:00:00:03"]}
    assert drive.ask("register", "fleet", nodes=json.dumps([spec])).granted
    entry = one("SN-3", "52:54:00:00:00:03")
    plan = planned(drive, entry)
    assert apply(drive, plan, entry).granted
    assert drive.node("n3").binding("serial") == "SN-3"


def test_the_sku_of_a_node_whose_parts_are_held_against_it_stays() -> None:
    drive = owned(sku="file")
    found: Node = drive.node("n1")
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", _moved(found)))
    drive.restart()
    plan = planned(drive, one(sku="gb300" if "gb300" in CONFIG.skus else "h100"))
    assert plan.changes == ()


def _moved(node: Node) -> e.Event:
    return e.PhaseChanged(node.id, node.phase, Phase.initializing, "a test")


def test_only_who_reaches_the_whole_cell_admits() -> None:
    """Mutant: a narrowed operator changes BMC addresses by an inventory."""
    drive = owned()
    entry = one("SN-2", "52:54:00:00:00:02", sku="h100")
    plan = planned(drive, entry)
    nodes = json.dumps([{"serial": "SN-2", "macs": ["52:54:00:00:00:02"], "sku": "h100", "where": entry.where}])
    asked = intent_of("i9", "admit", "fleet", "ann", "a test", NOW, {"nodes": nodes, "digest": plan.digest})
    drive.step(IntentAsked(1, replace(asked, bounds=Bounds(site="hall-1"))))
    assert drive.fleet.resolve("SN-2") is None


def test_owners_name_fields_that_are_compared() -> None:
    documents = {"p.yaml": POLICY, "q.yaml": "admission:\n  owners:\n    colour: file\n"}
    with pytest.raises(InvalidInputError, match=r"q.yaml:3: admission compares no field 'colour'"):
        parse(documents)


def test_what_is_no_list_of_expected_nodes_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="nodes"):
        read_expected('[{"serial": 5}]')


# --- files ------------------------------------------------------------------------------------------------------------


def read_file(folder: Path, name: str, text: str) -> list[dict[str, Any]]:
    (folder / name).write_text(text)
    return read_expected_file(str(folder / name))


def test_csv_and_yaml_give_each_entry_its_line(tmp_path: Path) -> None:
    rows = read_file(tmp_path, "a.csv", 'serial,macs,u\n\nSN-1,52:54:00:00:00:01 52:54:00:00:00:02,\n"SN\n2",a;b,7\n')
    assert [row["where"] for row in rows] == ["a.csv:3", "a.csv:4"]
    assert rows[0]["macs"] == ["52:54:00:00:00:01", "52:54:00:00:00:02"]
    assert (rows[1]["u"], rows[1]["macs"]) == (7, ["a", "b"])
    rows = read_file(tmp_path, "a.yaml", "nodes:\n  - serial: SN-1\n    macs: ['52:54:00:00:00:01']\n    u: 3\n")
    assert rows == [{"serial": "SN-1", "macs": ["52:54:00:00:00:01"], "u": 3, "where": "a.yaml:2"}]


def test_lists_of_names_stand_in_one_cell(tmp_path: Path) -> None:
    """Mutant: a cell of several outlets is one name."""
    text = f"serial,macs,outlets,dpu_bmcs\nSN-1,a,{A1} {A2},https://d1;https://d2\nSN-2,b,,\n"
    rows = read_file(tmp_path, "a.csv", text)
    assert [(row.get("outlets"), row.get("dpu_bmcs")) for row in rows] == [
        ([A1, A2], ["https://d1", "https://d2"]),
        (None, None),
    ]
    rows = read_file(tmp_path, "a.yaml", f"nodes: [{{serial: SN-1, macs: ['a'], outlets: ['{A1}']}}]")
    assert rows[0]["outlets"] == [A1]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "nodes:\n  - serial: S\n    macs: []\n    outlets: x\n", "a.yaml:4: outlets: is no list of texts"),
        ("a.yaml", "nodes:\n  - serial: S\n    macs: []\n    dpu_bmcs: [1]\n", "dpu_bmcs: is no list of texts"),
        ("a.csv", "serial,macs,colour\nS,M,red\n", "a.csv:1: no column 'colour' is known"),
        ("a.csv", "serial\nS\n", "a.csv:1: no column 'macs'"),
        ("a.csv", "serial,macs,macs\n", "a.csv:1: a column is named twice"),
        ("a.csv", "serial,macs\nS,M\nS\n", "a.csv:3: 1 fields, the header has 2"),
        ("a.csv", "serial,macs,u\nS,M,-1\nS,M,top\n", "a.csv:3: u 'top' is no number"),
        ("a.csv", 'serial,macs\n"S,M\n', "a.csv:2: "),
        ("a.yaml", "- serial: S\n", "a.yaml:1: "),
        ("a.yaml", "nodes:\n  - serial: S\n    colour: red\n", "a.yaml:3: colour: is no field"),
        ("a.yaml", "nodes:\n  - serial: 12\n    macs: []\n", "a.yaml:2: serial: is no text"),
        ("a.yaml", "nodes:\n  - serial: S\n    macs: [00:11]\n  - 7\n", "a.yaml:4: an entry is no mapping"),
    ],
)
def test_a_file_is_refused_with_each_wrong_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_file(tmp_path, name, text)
    assert said in str(refused.value)
