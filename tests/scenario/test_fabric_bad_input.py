"""Bad input about a network, item by item: refused or partial with the line and what instead, and nothing ticketed."""

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.state.fabrics import FabricVerdict
from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.infiniband import linkinfo, netdiscover, ufm_links
from tests.fabric_cell import FabricCell
from tests.fabrics import Fabric, a_fabric, printed, swap_at_host, ufm_pages
from tests.kit import Drive

HEAD = "a_node,a_port,z_node,z_port\n"


def page() -> str:
    """Returns the ibnetdiscover page of a network in which two plugs are exchanged: believed, it would be ticketed."""
    cables = a_fabric(3)
    swap_at_host(cables)
    return printed(cables)


def a_device(text: str) -> str:
    """The head line of a page's first adapter."""
    return next(line for line in text.splitlines() if line.startswith("Ca\t"))


def a_port(text: str) -> str:
    """A page's first port line."""
    return next(line for line in text.splitlines() if line.startswith("["))


def guid_twice(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("Ca\t")]
    first, other = (line.split('"')[1] for line in lines[:2])
    return text.replace(f'Ca\t1 "{other}"', f'Ca\t1 "{first}"', 1)


def two_neighbours(text: str) -> str:
    line = a_port(text)
    other = next(one for one in text.splitlines() if one.startswith("[") and one[:4] != line[:4])
    far = other.partition('"')[2]
    return text.replace(line, f'{line}\n{line.partition(chr(34))[0]}"{far}', 1)


def newline_within(text: str) -> str:
    line = a_device(text)
    return text.replace(line, line.replace("gpu-", "gpu\n-"), 1)


def one_end_at_port_0(text: str) -> str:
    line = a_port(text)
    return text.replace(line, f"[0]{line[line.index(']') + 1 :]}", 1)


PARTIAL: dict[str, tuple[Callable[[str], str], str]] = {
    "cut off within a line": (lambda text: text[:-40], "is no link"),
    "cut off after a line": (lambda text: text[: text.rindex("\nvendid")] + "\n", "a link is told by port"),
    "one port with two neighbours": (two_neighbours, "is told with two neighbours"),
    "one end alone": (lambda text: text.replace(a_port(text) + "\n", "", 1), "a link is told by port"),
    "a GUID twice": (guid_twice, "is told twice"),
    "a description with a newline": (newline_within, "is no device"),
    "port 0 at one end of a cable": (one_end_at_port_0, "a link is told by port"),
    "an error page": (lambda _text: "<html>502 Bad Gateway</html>\n", "line 1: "),
    "nothing": (lambda _text: "", "no device on the page"),
}


def looked(found: Discovery, cables: Fabric | None = None) -> FabricCell:
    cell = FabricCell(Drive(), cables or a_fabric(3))
    cell.look(found)
    return cell


@pytest.mark.parametrize("name", PARTIAL)
def test_such_a_page_is_partial_and_tickets_nothing(name: str) -> None:
    bad, said = PARTIAL[name]
    good = looked(netdiscover.parse(page()))
    assert len(good.tickets) == 1, "the same page, whole, is ticketed"
    cell = looked(netdiscover.parse(bad(page())))
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.cases, cell.tickets) == (FabricVerdict.partial, [], [])
    assert said in cell.fabric.look.why


@pytest.mark.parametrize("name", ["gpu\x1b[2J-0001 mlx5_0", "gpu-0001 mlx5_0\x1b]0;x\x07", "\u202egpu-0001 mlx5_0"])
def test_escape_codes_in_a_description_reach_no_terminal_and_no_ticket(name: str) -> None:
    """The device is known by no such name: its places are told, its own words are not."""
    cables = a_fabric(3)
    at = next(port for port in cables.guids if cables.description(port) == "gpu-0001 mlx5_0")
    cables.descriptions[at] = name
    cell = looked(netdiscover.parse(printed(cables)))
    told = json.dumps([[case.finding.headline, *case.finding.steps] for case in cell.cases], ensure_ascii=False)
    assert not any(sign in told for sign in ("\x1b", "\x07", "\\u001b", "\\u0007"))


def test_a_tool_that_knows_no_rate_above_hdr_convicts_no_link_of_an_ndr_network() -> None:
    """Mutants: each link of the network is degraded; one slow link of a network whose others say NDR is not."""
    cables = a_fabric(3)
    design = render_csv(cables.design).replace("4xHDR", "4xNDR")
    cell = FabricCell(Drive(), cables, design=design)
    cell.look(netdiscover.parse(printed(cables)))
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.tickets) == (FabricVerdict.partial, [])
    assert "no link is told faster than HDR, and 112 of 112 cables are designed for more" in cell.fabric.look.why
    assert "leave out the column rate" in cell.fabric.look.why
    told = netdiscover.parse(printed(cables).replace("4xHDR", "4xNDR"))
    slow = replace(told.links[0], rate=told.links[0].rate and replace(told.links[0].rate, speed="HDR"))
    cell.look(replace(told, links=(slow, *told.links[1:])))
    assert [ticket.fault for ticket in cell.tickets] == ["degraded"]


def test_a_link_of_12_lanes_is_no_narrow_one() -> None:
    """ibsim says "Could be 12X" of every port, and a chassis has such links inside."""
    cell = looked(netdiscover.parse(printed(a_fabric(3)).replace("4xHDR", "12xHDR")))
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.tickets) == (FabricVerdict.as_designed, [])


def designs() -> dict[str, tuple[bytes, int, str]]:
    good = HEAD + "gpu-1,mlx5_0,leaf,1\ngpu-2,mlx5_0,leaf,2\n"
    return {
        "one port in two cables": ((good + "gpu-3,mlx5_0,leaf,2\n").encode(), 4, "is in the cable of line 3 too"),
        "a cable to itself": ((good + "leaf,3,leaf,3\n").encode(), 4, "to itself"),
        "port 0": ((good + "gpu-3,mlx5_0,leaf,0\n").encode(), 4, "leaf:0"),
        "UTF-16, as Excel's Unicode text": (good.encode("utf-16"), 1, "UTF-16"),
        "UTF-16 without its mark": (good.encode("utf-16-le"), 1, "zero byte"),
        "semicolons": (good.replace(",", ";").encode("utf-8-sig"), 1, "columns separated by semicolons"),
        "tabs": (good.replace(",", "\t").encode(), 1, "no column"),
        "Windows' letters": (good.encode() + b"gpu-\xe4,mlx5_0,leaf,3\n", 4, "bytes that are not UTF-8"),
        "an escape code": ((good + "gpu\x1b[31m,mlx5_0,leaf,3\n").encode(), 4, "a_node 'gpu"),
        "a GUID twice": (
            b"a_node,a_port,a_guid,z_node,z_port\ng,mlx5_0,0000000000000001,l,1\nh,mlx5_0,0000000000000001,l,2\n",
            3,
            "is that of g:mlx5_0 too",
        ),
    }


@pytest.mark.parametrize("name", designs())
def test_such_a_design_is_refused_with_its_line_and_what_instead(name: str) -> None:
    data, line, said = designs()[name]
    with pytest.raises(InvalidInputError) as refused:
        parse_csv(data, "design.csv")
    found = [problem for problem in refused.value.problems if problem.line == line and said in problem.what]
    assert found, refused.value.problems
    assert all(problem.instead for problem in found)


def test_excels_csv_utf_8_is_read_as_it_is() -> None:
    """A byte order mark and Windows' line ends are no fault."""
    text = HEAD + "gpu-1,mlx5_0,leaf,1\n"
    assert parse_csv(text.replace("\n", "\r\n").encode("utf-8-sig"), "x").cables == parse_csv(text.encode(), "x").cables


def test_a_ufm_that_answers_200_with_an_error_page_and_a_cut_off_iblinkinfo_ticket_nothing() -> None:
    systems, links, ports = (text.encode() for text in ufm_pages(a_fabric(3)).values())
    html = b"<html><title>UFM is starting</title></html>"
    pages = ((html, links, ports), (systems, html, ports), (systems, links, html), (systems, links[:-9], ports))
    for found in (*(ufm_links.read(*three) for three in pages), linkinfo.parse("garbage\n")):
        cell = looked(found)
        assert cell.fabric.look is not None
        assert (cell.fabric.look.verdict, cell.tickets) == (FabricVerdict.partial, [])
        assert cell.fabric.look.why
