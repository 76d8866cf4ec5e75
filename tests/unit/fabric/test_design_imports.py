"""Designs in the field's own lists are read whole or refused whole, each problem by its line."""

from collections.abc import Callable

import pytest

from hostler.core.fabric.design import Design, DeviceKind, Port
from hostler.core.fabric.design_changes import changes
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.design_imports import parse_ndt, parse_p2p
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import InvalidInputError

P2P = "A-Rack,A-U,A-Node Name,A-Type,A-Port,Z-Rack,Z-RU,Z-Node Name,Z-Type,Z-Port\n"
SHEET = "Rack,U,Name,HCA/Port,Rack,U,Name,Port\n"
NDT = "#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"
LEAF, SPINE = "D07-0702-01IB0", "D07-0702-02IB1"
SPLIT = {"switch": Model(per_cage=2)}


def said(read: Callable[..., Design], data: bytes, models: dict[str, Model] | None = None) -> list[str]:
    with pytest.raises(InvalidInputError) as refusal:
        read(data, "list.csv", models)
    return [str(problem) for problem in refusal.value.problems]


@pytest.mark.parametrize(
    "text",
    [
        f"{P2P}r1,22,gpu-1,Host,3,n1,30,leaf-1,Switch,1/2\n",
        f"{SHEET}r1,22,gpu-1,3,n1,30,leaf-1,1/2\n",
        f"\ufeff{P2P}r1,22,gpu-1,Host,3,n1,30,leaf-1,Switch,1/2\r\n\r\n",
    ],
    ids=["named", "positional", "excel"],
)
def test_a_sheet_is_hosts_adapters_and_switches_panel_labels(text: str) -> None:
    design = parse_p2p(text.encode(), "p2p.csv", SPLIT)
    (cable,) = design.cables
    assert {cable.a, cable.z} == {Port("gpu-1", "mlx5_2"), Port("leaf-1", "2")}
    assert design.devices["leaf-1"].kind is DeviceKind.switch
    assert design.devices["gpu-1"].place == "r1 U22 gpu-1"
    assert design.label(Port("leaf-1", "2")) == "1/2"
    again = parse_csv(render_csv(design).encode(), "again.csv")
    assert not changes(design, again).counts


def test_another_map_of_adapters_is_the_models() -> None:
    models = {"host": Model(hcas={"1": "mlx5_1"})}
    design = parse_p2p(f"{SHEET}r1,22,gpu-1,1,n1,30,leaf-1,4\n".encode(), "p2p.csv", models)
    assert design.cables[0].a == Port("gpu-1", "mlx5_1")


def test_an_ndt_file_is_its_data_links() -> None:
    lines = [
        f"{LEAF},Port 21,{SPINE},Port 1,Data",
        f"gpu-1,ibp12s0f0,{LEAF},Port 1,Data",
        f"{LEAF},mgmt0,switch-7,Port 4,Management",
    ]
    models = {"host": Model(hcas={"ibp12s0f0": "mlx5_0"})}
    design = parse_ndt((NDT + "\n".join(lines)).encode(), "topo.ndt", models)
    assert {frozenset((c.a, c.z)) for c in design.cables} == {
        frozenset((Port(LEAF, "21"), Port(SPINE, "1"))),
        frozenset((Port("gpu-1", "mlx5_0"), Port(LEAF, "1"))),
    }
    assert design.devices["gpu-1"].kind is DeviceKind.host


ROW = "r1,22,gpu-1,Host,1,n1,30,leaf-1,Switch,4\n"
LINK = f"gpu-1,ibp1,{LEAF},Port 1,Data\n"


@pytest.mark.parametrize(
    ("read", "data", "words"),
    [
        (parse_p2p, (P2P + ROW).encode("utf-16"), "list.csv:1: UTF-16"),
        (parse_p2p, (P2P + ROW.replace("gpu-1", "gpü-1")).encode("cp1252"), "list.csv:2: bytes that are not UTF-8"),
        (parse_p2p, (P2P + ROW).replace(",", ";").encode(), "list.csv:1: columns separated by semicolons"),
        (parse_p2p, b"A-Node Name,A-Port,Z-Node Name\n", "list.csv:1: no column for z_port"),
        (parse_p2p, b"A-Node Name,A-Node,A-Port,Z-Node Name,Z-Port\n", "list.csv:1: column 'A-Node' twice"),
        (parse_p2p, (P2P + ROW + ROW.replace("gpu-1", "gpu-2")).encode(), "list.csv:3: port leaf-1:4 is in the cable"),
        (parse_p2p, (P2P + "r,1,l,Switch,4,r,1,l,Switch,4\n").encode(), "list.csv:2: a cable from l:4 to itself"),
        (parse_p2p, (P2P + ROW.replace(",4\n", ",0\n")).encode(), "list.csv:2: leaf-1:0; port 0"),
        (parse_p2p, (P2P + ROW.replace(",4\n", ",1/2\n")).encode(), "list.csv:2: z_port '1/2'"),
        (parse_p2p, (P2P + ROW.replace("Host", "Toaster")).encode(), "list.csv:2: a_type 'toaster'"),
        (parse_p2p, (P2P + ROW.replace("gpu-1", '"gpu\n1"')).encode(), "a_node 'gpu\\n1'"),
        (parse_p2p, (P2P + ROW.replace("gpu-1", "gpu\x1b[2J")).encode(), "list.csv:2: a_node 'gpu\\x1b[2J'"),
        (parse_p2p, (P2P + ROW[:-3]).encode(), "list.csv:2: 9 columns where the first line has 10"),
        (parse_ndt, b"StartDevice,StartPort\n", "list.csv:1: no column enddevice, endport, linktype"),
        (parse_ndt, (NDT + LINK * 2).encode(), f"list.csv:3: port {LEAF}:1 is in the cable"),
        (parse_ndt, (NDT + f"{LEAF},Port 1,{LEAF},Port 1,Data\n").encode(), f"a cable from {LEAF}:1 to itself"),
        (parse_ndt, (NDT + LINK.replace("Port 1", "Port 0")).encode(), f"list.csv:2: {LEAF}:0; port 0"),
        (parse_ndt, (NDT + LINK.replace("Port 1", "Blade 2_Port 1/1")).encode(), "director switch"),
        (parse_ndt, (NDT + LINK.replace("Port 1", "12X")).encode(), "list.csv:2: port '12X'"),
        (parse_ndt, (NDT + LINK.replace("ibp1", "Port 1")).encode(), "list.csv:2: port 'Port 1'"),
        (parse_ndt, (NDT + LINK.replace("gpu-1", "gpu\x9b1")).encode(), "list.csv:2: a_node 'gpu\\x9b1'"),
        (parse_ndt, (NDT + "\0").encode(), "list.csv:2: a zero byte"),
    ],
)  # fmt: skip
def test_a_list_with_anything_wrong_is_refused_with_the_line(
    read: Callable[..., Design], data: bytes, words: str
) -> None:
    assert any(words in problem for problem in said(read, data)), said(read, data)


def test_a_guid_that_two_devices_bear_is_refused() -> None:
    guid = "0x946dae0300000001"
    head = "a_node,a_port,a_guid,z_node,z_port\n"
    text = f"{head}gpu-1,mlx5_0,{guid},leaf-1,1\ngpu-2,mlx5_0,{guid},leaf-1,2\n"
    assert "GUID 946dae0300000001 of gpu-2:mlx5_0 is that of gpu-1:mlx5_0 too" in said(parse_csv, text.encode())[0]
