"""Pages of `ibnetdiscover` are read as they are or taken for partial, with the line; nothing is made up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.fabric.discovery import FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.rates import Rate
from hostler.drivers.infiniband.netdiscover import parse

HOST, LEAF = "0000000000100000", "0000000000200000"
PAGE = """\
#
# Topology file: generated on Mon Nov 23 01:44:05 2026
#
# Initiated from node 0000000000100000 port 0000000000100001

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x200000
switchguid=0x200000(200000)
Switch\t4 "S-0000000000200000"\t\t# "MF0;leaf01:MQM9700/U1" base port 0 lid 0 lmc 0
[1]\t"H-0000000000100000"[1](100001) \t\t# "gpu-0001 mlx5_0" lid 0 4xHDR

vendid=0x2c9
devid=0x1021
sysimgguid=0x100000
caguid=0x100000
Ca\t1 "H-0000000000100000"\t\t# "gpu-0001 mlx5_0"
[1](100001) \t"S-0000000000200000"[1]\t\t# lid 0 lmc 0 "MF0;leaf01:MQM9700/U1" lid 0 4xHDR
"""
TOLD_BY_HOST = PAGE[PAGE.rindex("[1](100001)") :]


def test_devices_and_links_are_read() -> None:
    seen = parse(PAGE)
    assert seen.partial == ""
    assert seen.devices == {
        LEAF: FoundDevice(LEAF, True, "MF0;leaf01:MQM9700/U1"),
        HOST: FoundDevice(HOST, False, "gpu-0001 mlx5_0"),
    }
    assert seen.links == (FoundLink(FoundPort(HOST, 1), FoundPort(LEAF, 1), Rate(4, "HDR")),)


@pytest.mark.parametrize(
    ("was", "is_", "said"),
    [
        (TOLD_BY_HOST, "\n", "a link is told by port 1 of 0000000000200000 and not by port 1 of 0000000000100000"),
        ("# Topology", "Topology", "line 2: "),
        ('"H-0000000000100000"[1](100001) ', '"H-0000000000100009"[1](100001) ', "a link is told by port 1 of"),
        ('Ca\t1 "H-0000000000100000"', 'Ca\t1 "H-0000000000200000"', "GUID 0000000000200000 is told twice"),
        ('Ca\t1 "H-', 'Ca\t1 "X-', "is no device"),
        ('gpu-0001 mlx5_0"\n[1]', 'gpu-0001\nmlx5_0"\n[1]', "is no device"),
        (
            "4xHDR\n\nvendid",
            '4xHDR\n[1]\t"S-0000000000200000"[3]\t# "x" 4xHDR\n\nvendid',
            "is told with two neighbours",
        ),
        (TOLD_BY_HOST, TOLD_BY_HOST.rstrip(), "the last line has no end"),
    ],
    ids=["one end", "remark", "other end", "guid twice", "kind", "line break", "two neighbours", "no end"],
)
def test_a_page_that_contradicts_itself_or_ends_early_is_partial(was: str, is_: str, said: str) -> None:
    assert was in PAGE
    assert said in parse(PAGE.replace(was, is_, 1)).partial


@pytest.mark.parametrize("length", range(0, len(PAGE) - 1, 7))
def test_a_page_that_is_cut_off_anywhere_never_gives_another_link(length: int) -> None:
    seen = parse(PAGE[:length])
    assert seen.partial or not seen.devices
    assert {(link.a, link.z) for link in seen.links} <= {(link.a, link.z) for link in parse(PAGE).links}


def test_a_switchs_own_processor_is_no_cables_end() -> None:
    page = PAGE.replace("[1]\t", "[0]\t").replace('200000"[1]', '200000"[0]')
    assert parse(page).links == ()


def test_escape_codes_and_quotes_in_a_description_stay_text() -> None:
    name = 'gpu\x1b[31m "0001" mlx5_0'
    seen = parse(PAGE.replace("gpu-0001 mlx5_0", name))
    assert seen.devices[HOST].description == 'gpu?[31m "0001" mlx5_0'
    assert len(seen.links) == 1


def test_a_rate_that_nobody_knows_is_not_said() -> None:
    assert parse(PAGE.replace("4xHDR", "4xWARP")).links[0].rate is None
    assert parse(PAGE.replace("4xHDR", "12xHDR")).links[0].rate == Rate(12, "HDR")


@given(st.text(alphabet=PAGE + "\x00\r\u2028é", max_size=400))
def test_no_text_makes_it_fail_and_none_but_a_whole_page_is_whole(text: str) -> None:
    seen = parse(text)
    assert seen.partial or seen.devices
