"""A design is read whole or refused whole, each problem by its line."""

import pytest

from hostler.core.fabric.design import Cable, Device, DeviceKind, Port
from hostler.core.fabric.design_changes import changes
from hostler.core.fabric.design_csv import MOST_PROBLEMS, parse_csv, render_csv
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.fabric.rates import Rate, rate_of, shortfall
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import InvalidInputError
from tests.fabrics import SMALL

HEAD = "a_rack,a_u,a_node,a_port,z_rack,z_u,z_node,z_port,rate\n"
GOOD = "r07,12,gpu-0412,mlx5_0,net,1,leaf01,1,4xNDR\n"


def refused(text: str | bytes, models: dict[str, Model] | None = None) -> list[str]:
    with pytest.raises(InvalidInputError) as refusal:
        parse_csv(text.encode() if isinstance(text, str) else text, "p2p.csv", models)
    return [str(problem) for problem in refusal.value.problems]


def test_a_line_is_a_cable_between_devices_that_stand_somewhere() -> None:
    design = parse_csv((HEAD + GOOD).encode(), "p2p.csv")
    assert design.cables == (Cable(Port("gpu-0412", "mlx5_0"), Port("leaf01", "1"), Rate(4, "NDR"), 2),)
    assert design.devices["gpu-0412"] == Device("gpu-0412", DeviceKind.host, "r07", "12")
    assert design.devices["leaf01"].kind is DeviceKind.switch
    assert design.place(Port("gpu-0412", "mlx5_0")) == "r07 U12 gpu-0412 port mlx5_0"


def test_what_is_written_is_read_back_the_same() -> None:
    design = generate(SMALL)
    again = parse_csv(render_csv(design).encode(), "out.csv")
    assert not changes(design, again).counts
    assert again.devices == design.devices


def test_panel_labels_and_names_of_adapters_are_read_and_told_as_the_model_has_them() -> None:
    models = {"QM9700": Model(per_cage=2), "XE9680": Model(hcas={"NIC1": "mlx5_0"})}
    text = "a_node,a_port,a_model,z_node,z_port,z_model\ngpu-1,NIC1,XE9680,leaf01,3/2,QM9700\n"
    design = parse_csv(text.encode(), "p2p.csv", models)
    assert design.cables[0].a == Port("gpu-1", "mlx5_0")
    assert design.cables[0].z == Port("leaf01", "6")
    assert design.label(Port("leaf01", "6")) == "3/2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p2p.csv:1: no column a_node, a_port, z_node, z_port"),
        ("a_node;a_port;z_node;z_port\n", "p2p.csv:1: columns separated by semicolons"),
        ("a_node,a_port,z_node,z_port,color\n", "p2p.csv:1: columns 'color'"),
        ("a_node,a_port,z_node,z_port,a_port\n", "p2p.csv:1: a column twice"),
        (HEAD + "r,1,gpu-1,mlx5_0,net,1,leaf01\n", "p2p.csv:2: 7 columns where the first line has 9"),
        (HEAD + 'r,1,"gpu-1,mlx5_0', "p2p.csv:2: no CSV"),
        (HEAD + GOOD + GOOD.replace("gpu-0412", "gpu-2"), "p2p.csv:3: port leaf01:1 is in the cable of line 2 too"),
        (HEAD + "net,1,leaf01,1,net,1,leaf01,1,\n", "p2p.csv:2: a cable from leaf01:1 to itself"),
        (HEAD + "r,1,leaf01,0,net,1,leaf02,1,\n", "p2p.csv:2: leaf01:0; port 0 is a switch's own processor"),
        (HEAD + "r,1,gpu\x1b[31m,mlx5_0,net,1,leaf01,1,\n", "p2p.csv:2: a_node 'gpu\\x1b[31m'"),
        (HEAD + "r,1,gpu-1,mlx5_0,net,1,leaf01,1,9xNDR\n", "p2p.csv:2: rate '9xNDR'"),
        (
            HEAD + GOOD + "r08,12,gpu-0412,mlx5_1,net,1,leaf01,2,\n",
            "p2p.csv:3: rack of gpu-0412 is 'r08' here and 'r07'",
        ),
        (
            HEAD + GOOD + "r07,12,gpu-0412,2,net,1,leaf01,2,\n",
            "p2p.csv:3: gpu-0412:2 is a port of a switch, and line 2",
        ),
        ("a_node,a_port,z_node,z_port,a_guid\ng,mlx5_0,l,1,xyz\n", "p2p.csv:2: GUID 'xyz' of g"),
        (
            "a_node,a_port,z_node,z_port,a_guid\ng,mlx5_0,l,1,0000000000000001\nh,mlx5_0,l,2,0x0000000000000001\n",
            "p2p.csv:3: GUID 0000000000000001 of h:mlx5_0 is that of g:mlx5_0 too",
        ),
        ((HEAD + GOOD).encode("utf-16"), "p2p.csv:1: UTF-16, as Excel saves Unicode text"),
        (HEAD.encode() + b"r,1,gpu-\xe4,mlx5_0,net,1,leaf01,1,\n", "p2p.csv:2: bytes that are not UTF-8"),
        (HEAD + GOOD + "\0", "p2p.csv:3: a zero byte"),
    ],
)
def test_what_is_wrong_is_told_by_its_line(text: str | bytes, said: str) -> None:
    assert any(problem.startswith(said) for problem in refused(text)), refused(text)


def test_a_list_that_is_wrong_everywhere_tells_so_many_problems_and_how_many_more() -> None:
    problems = refused(HEAD + "r,1,-,mlx5_0,net,1,leaf01,1,\n" * 200)
    assert len(problems) == MOST_PROBLEMS + 1
    assert "and 150 more" in problems[-1]


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        (RailRule(hosts=0), "hosts"),
        (RailRule(hosts=8, radix=7), "radix"),
        (RailRule(hosts=64, unit=40), "unit"),
        (RailRule(hosts=512, spines=16), "spines"),
        (RailRule(hosts=8, adapters=("mlx5_0", "mlx5_0")), "adapters"),
        (RailRule(hosts=8_193), "hosts"),
        (RailRule(hosts=8, adapters=()), "adapters"),
        (RailRule(hosts=8, rate="fast"), "rate"),
        (RailRule(hosts=8, host_name="gpu"), "host_name"),
    ],
)
def test_a_rule_that_does_not_fit_its_switches_is_refused(rule: RailRule, where: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        generate(rule)
    assert where in {problem.where for problem in refusal.value.problems}


def test_three_tiers_have_as_many_cables_upwards_as_downwards_and_no_port_twice() -> None:
    design = generate(RailRule(hosts=256))
    assert len(design.cables) == 3 * 256 * 8
    ports = [port for cable in design.cables for port in (cable.a, cable.z)]
    assert len(set(ports)) == len(ports)


def test_rates_are_read_as_tools_write_them() -> None:
    assert rate_of("4xNDR") == rate_of(" 4X NDR") == Rate(4, "NDR")
    assert rate_of("12xHDR") == Rate(12, "HDR")
    assert [rate_of(text) for text in ("", "4x", "4xABC", "3xNDR", "4xNDR!")] == [None] * 5
    assert shortfall(Rate(1, "HDR"), Rate(4, "NDR")) == "width 1x of 4x, speed HDR of NDR"
    assert shortfall(Rate(4, "XDR"), Rate(4, "NDR")) == ""
