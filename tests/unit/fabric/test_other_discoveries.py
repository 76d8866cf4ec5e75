"""Each way to look at a network reads the same network; what does not fit makes a look partial and tickets nothing."""

import base64
import json
import lzma
from collections.abc import Callable

import pytest

from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.validation import validate
from hostler.core.state.fabrics import FabricVerdict
from hostler.drivers.infiniband import diagnet_csv, linkinfo, lldp_documents, ufm_links
from hostler.drivers.infiniband.agent_pages import NoPageError, unpacked
from hostler.drivers.infiniband.lldp_documents import LldpDocument, UnreadableDocumentError, neighbours
from tests.fabrics import (
    FAULTS,
    Fabric,
    a_fabric,
    diagnosed,
    lldp_of,
    narrow,
    openconfig_of,
    printed_lines,
    refit,
    slow,
    ufm_pages,
)


def by_linkinfo(fabric: Fabric) -> Discovery:
    return linkinfo.parse(printed_lines(fabric))


def by_database(fabric: Fabric) -> Discovery:
    return diagnet_csv.parse(diagnosed(fabric))


def by_ufm(fabric: Fabric) -> Discovery:
    systems, links, ports = (page.encode() for page in ufm_pages(fabric).values())
    return ufm_links.read(systems, links, ports)


def names(fabric: Fabric, kind: str) -> list[str]:
    return [d.name for d in fabric.design.devices.values() if d.kind == kind]


def by_lldp(fabric: Fabric) -> Discovery:
    hosts = names(fabric, "host")
    documents = [LldpDocument(name, False, lldp_of(fabric, name).encode()) for name in hosts]
    documents += [LldpDocument(name, True, openconfig_of(fabric, name).encode()) for name in names(fabric, "switch")]
    return lldp_documents.read(documents, hosts)


WAYS = [by_linkinfo, by_database, by_ufm, by_lldp]
EVERY = [(way, fault) for way in WAYS for fault in FAULTS if way is not by_lldp or fault not in (narrow, slow, refit)]
"""LLDP tells no rate, and no identity beside names."""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_network_as_designed_is_found_so(way: Callable[[Fabric], Discovery]) -> None:
    fabric = a_fabric()
    seen = way(fabric)
    assert (seen.partial, len(seen.links)) == ("", 112)
    rates = {str(link.rate) for link in seen.links}
    assert rates == ({"None"} if way is by_lldp else {"4xHDR"})
    assert validate(fabric.design, seen).verdict is FabricVerdict.as_designed


@pytest.mark.parametrize(("way", "fault"), EVERY, ids=[f"{way.__name__}-{fault.__name__}" for way, fault in EVERY])
def test_each_fault_is_found_as_what_it_is(way: Callable[[Fabric], Discovery], fault: Callable[[Fabric], str]) -> None:
    fabric = a_fabric(7)
    kind = fault(fabric)
    assert [finding.kind for finding in validate(fabric.design, way(fabric)).findings] == [kind]


LINES = printed_lines(a_fabric())
CSV = diagnosed(a_fabric())
UFM = [page.encode() for page in ufm_pages(a_fabric()).values()]
HTML = b"<html><body>Internal error, log in again</body></html>"


BAD: dict[str, tuple[Discovery, str]] = {
    "iblinkinfo says nothing": (linkinfo.parse(""), "no device on the page"),
    "iblinkinfo is cut off within a line": (linkinfo.parse(LINES[: LINES.index("\n", 9000) - 40]), "no far end"),
    "iblinkinfo is cut off between lines": (
        linkinfo.parse("\n".join(LINES.split("\n")[: LINES.count("\n") // 2]) + "\n"),
        "nothing leads back",
    ),
    "iblinkinfo tells a rate of no generation": (linkinfo.parse(LINES.replace("53.125", "71.5", 1)), "4X 71.5 Gbps"),
    "iblinkinfo tells a width of no cable": (linkinfo.parse(LINES.replace("4X", "3X", 1)), "3X 53.125 Gbps"),
    "iblinkinfo prints a description with a newline": (
        linkinfo.parse(LINES.replace("gpu-0001 mlx5_0", "gpu-0001\nmlx5_0", 1)),
        "is no line of",
    ),
    "iblinkinfo tells one port twice": (
        linkinfo.parse(LINES + LINES.split("\n")[0].replace("==>  0x02c9", "==>  0x02ca") + "\n"),
        "with two neighbours",
    ),
    "db_csv is cut off": (diagnet_csv.parse(CSV[: CSV.index("END_LINKS")]), "section LINKS has no end"),
    "db_csv without links": (diagnet_csv.parse(CSV[: CSV.index("START_LINKS")]), "no section LINKS"),
    "db_csv with other columns": (diagnet_csv.parse(CSV.replace("PortNum2", "Port2")), "has no column PortNum2"),
    "db_csv with a short line": (diagnet_csv.parse(CSV.replace("END_LINKS", "0x1,1\nEND_LINKS")), "2 columns where"),
    "db_csv with a link of a stranger": (
        diagnet_csv.parse(CSV.replace("END_LINKS", "0x1,1,0x2,1\nEND_LINKS")),
        "which no line of NODES tells",
    ),
    "db_csv with a word for a number": (
        diagnet_csv.parse(CSV.replace("END_LINKS", "0x1,one,0x2,1\nEND_LINKS")),
        "a line of LINKS that cannot be read",
    ),
    "UFM answers 200 with an error page": (ufm_links.read(UFM[0], HTML, UFM[2]), "no list that can be read"),
    "UFM answers with an object": (ufm_links.read(UFM[0], b'{"error": "busy"}', UFM[2]), "no list that can be read"),
    "UFM knows nothing": (ufm_links.read(UFM[0], b"[]", UFM[2]), "UFM knows no link"),
    "UFM tells port 0": (
        ufm_links.read(UFM[0], UFM[1].replace(b'"source_port": "1"', b'"source_port": "0"'), UFM[2]),
        "a link at port '0'",
    ),
    "UFM tells a GUID that is none": (
        ufm_links.read(UFM[0], UFM[1].replace(b'"source_guid": "02', b'"source_guid": "xx'), UFM[2]),
        "tells the GUID 'xx",
    ),
    "LLDP of nobody": (lldp_documents.read([], ["gpu-0001"]), "no device has told"),
    "LLDP of one that is no JSON": (
        lldp_documents.read([LldpDocument("leaf", True, HTML)], []),
        "LLDP of leaf: no JSON",
    ),
    "LLDP of two that disagree": (
        lldp_documents.read(
            [
                LldpDocument("gpu-0001", False, lldp_of(a_fabric(), "gpu-0001").encode()),
                LldpDocument("gpu-0002", False, lldp_of(a_fabric(), "gpu-0001").encode()),
            ],
            ["gpu-0001", "gpu-0002"],
        ),
        "with two neighbours",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_partial_and_nothing_is_ticketed_from_it(name: str) -> None:
    seen, said = BAD[name]
    assert said in seen.partial
    told = validate(a_fabric().design, seen)
    assert (told.verdict, told.findings) == (FabricVerdict.partial, ())


def neighbour(**row: object) -> bytes:
    return json.dumps({"lldpRemTable": [row]}).encode()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"[]", "no object of"),
        (b"{}", "no object of"),
        (b'{"lldp": {"interface": [{"eth0": {}}]}}', "not of its tool's shape"),
        (neighbour(lldpLocPortId="swp1", lldpRemSysName="", lldpRemPortId="x"), "without a name"),
        (neighbour(lldpLocPortId=7, lldpRemSysName="a", lldpRemPortId="x"), "without a name"),
        (neighbour(lldpLocPortId="swp1", lldpRemSysName="a\x1b[31m", lldpRemPortId="x"), "is no name of a device"),
        (b"[" * 100_000, "no JSON"),
        (b"x" * (lldp_documents.MOST_BYTES + 1), "bytes; at most"),
    ],
    ids=["a list", "nothing", "half a row", "no name", "a number", "escape codes", "very deep", "very large"],
)
def test_a_document_of_no_shape_is_refused(document: bytes, said: str) -> None:
    with pytest.raises(UnreadableDocumentError, match=said):
        neighbours(document)


def test_json0_and_one_neighbour_are_read_as_json_is() -> None:
    plain = {"name": "eth0", "chassis": {"leaf1": {}}, "port": {"id": {"type": "mac", "value": "x"}, "descr": "swp7"}}
    whole = {
        "name": "eth0",
        "chassis": [{"name": [{"value": "leaf1"}]}],
        "port": [{"id": [{"type": "mac", "value": "x"}], "descr": [{"value": "swp7"}]}],
    }
    documents = ({"lldp": {"interface": plain}}, {"lldp": [{"interface": [whole]}]})
    found = [neighbours(json.dumps(one).encode()) for one in documents]
    assert found[0] == found[1]
    assert (found[0][0].device, found[0][0].far) == ("leaf1", "swp7")


def test_a_packed_page_is_read_and_what_is_none_is_refused() -> None:
    packed = lzma.compress(b"page")
    assert unpacked(base64.b64encode(packed).decode()) == "page"
    for bad in (None, 7, "", "x", base64.b64encode(packed[:-8]).decode(), base64.b64encode(b"page").decode()):
        with pytest.raises(NoPageError):
            unpacked(bad)
