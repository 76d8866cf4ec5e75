"""Managers, partitions and routing against what a design states, and the pages that tell of them."""

import pytest

from hostler.core.fabric.subnet import FOREIGN, PARTITIONS, ROUTING, TOO_FEW, differences, judged
from hostler.core.state.subnets import ManagerDesign, ManagerState, SubnetDesign, SubnetFacts, SubnetManager
from hostler.drivers.infiniband import subnet_pages

A, B, C = "0000000000000301", "0000000000000401", "0000000000000501"
MASTER = SubnetManager(B, 4, ManagerState.master)
STANDBY = SubnetManager(A, 3, ManagerState.standby)
DESIGN = SubnetDesign(ManagerDesign((A, B), 1), ("0x0001", "0x7fff"), "updn")
FACTS = SubnetFacts((MASTER, STANDBY), ("0x0001", "0x7fff"), "updn")

SMINFO = "sminfo: sm lid 1 sm guid 0x401, activity count 135 priority 4 state 3 SMINFO_MASTER\n"
RECORD = """SMInfoRecord dump:
\t\tRID
\t\tLID...................{lid}
\t\tSMInfo dump:
\t\tGUID..................0x{guid}
\t\tSM_Key................0x0000000000000000
\t\tActCount..............136
\t\tPriority..............{priority}
\t\tSMState...............{state}
"""
SMIR = RECORD.format(lid=1, guid=B, priority=4, state=3) + RECORD.format(lid=4, guid=A, priority=3, state=2)
ROW = "\t\t" + " ".join(["{}"] + ["0x0000"] * 7) + "\n"
KEYS = "PKeyTableRecord dump:\n\t\tLID...........2\n\t\tPort..........0\n\t\tBlock.........0\n\t\tPKey Table:\n"
PKTR = KEYS + ROW.format("0xffff") + ROW.format("0x0001") + ROW.format("0x0000") * 2 + "\n"
LOG = """Nov 23 12:52:36 310832 [A37D6740] 0x80 -> Entering DISCOVERING state
Nov 23 12:52:36 311037 [A37D6740] 0x02 -> osm_vendor_bind: Mgmt class 0x81 binding to port GUID 0x401
Nov 23 12:52:42 878369 [A07CF6C0] 0x80 -> Entering MASTER state
Falling back to default routing
Nov 23 12:52:42 879620 [A07CF6C0] 0x01 -> ucast_mgr_route: ftree: cannot build lid matrices
Nov 23 12:52:42 879726 [A07CF6C0] 0x02 -> osm_ucast_mgr_process: updn tables configured on all switches
"""


def kinds(design: SubnetDesign, facts: SubnetFacts) -> list[str]:
    return [one.kind for one in differences("ib0", design, facts)]


def test_a_subnet_as_designed_has_no_finding_and_of_what_is_not_stated_nothing_is_found() -> None:
    alone = SubnetFacts((SubnetManager(C, 0, ManagerState.master),), ("0x0123",), "minhop")
    assert kinds(DESIGN, FACTS) == kinds(SubnetDesign(), alone) == []
    assert kinds(SubnetDesign(ManagerDesign()), alone) == []


def test_what_was_not_told_is_no_difference() -> None:
    """Mutants: no managers told are no standby; no partitions told bear none; no routing told is another."""
    assert (kinds(DESIGN, SubnetFacts()), judged(SubnetFacts())) == ([], frozenset())
    assert judged(SubnetFacts((MASTER,))) == {FOREIGN, TOO_FEW}


def test_each_difference_is_one_finding_that_names_what_differs() -> None:
    foreign = SubnetManager(C, 15, ManagerState.master)
    facts = SubnetFacts((foreign, SubnetManager(B, 4, ManagerState.standby)), ("0x7fff", "0x0123"), "minhop")
    found = {one.kind: one for one in differences("ib0", DESIGN, facts)}
    assert {kind: one.grade for kind, one in found.items()} == {FOREIGN: "high", PARTITIONS: "high", ROUTING: "medium"}
    assert f"master {C} (priority 15)" in found[FOREIGN].headline
    assert "no port bears 0x0001; ports bear 0x0123" in found[PARTITIONS].headline
    assert "routed by minhop, its design wants updn" in found[ROUTING].headline


def test_a_standby_that_is_missing_is_named_and_a_foreign_one_does_not_stand_for_it() -> None:
    foreign = SubnetManager(C, 1, ManagerState.standby)
    found = {one.kind: one for one in differences("ib0", DESIGN, SubnetFacts((MASTER, foreign)))}
    assert {kind: one.grade for kind, one in found.items()} == {FOREIGN: "medium", TOO_FEW: "high"}
    assert f"0 subnet managers of network ib0 stand by, 1 are to; not heard: {A}" in found[TOO_FEW].headline
    idle = SubnetManager(C, 1, ManagerState.not_active)
    assert kinds(DESIGN, SubnetFacts((MASTER, STANDBY, idle))) == []


def test_pages_of_the_real_tools_are_read() -> None:
    """The pages are those that opensm 3.3.23 and infiniband-diags 44 printed before ibsim."""
    asked = subnet_pages.master(SMINFO)
    assert asked == MASTER
    assert subnet_pages.managers(SMIR, asked) == (MASTER, STANDBY)
    assert subnet_pages.partitions(PKTR * 2) == ("0x0001", "0x7fff")
    assert subnet_pages.routing(LOG.splitlines(), B) == "updn"


@pytest.mark.parametrize(
    "page",
    [
        "",
        "sminfo: sm lid 1 sm gu",
        SMINFO * 2,
        SMINFO.replace("state 3 SMINFO_MASTER", "state 2 SMINFO_STANDBY"),
        SMINFO.replace("0x401", "0x0"),
        SMINFO.replace("priority 4", "priority 99"),
        "ibwarn: [4148] mad_rpc: _do_madrpc failed; dport (Lid 1)\nsminfo: iberror: failed: query",
        "\x1b[31m" + SMINFO,
        "<html>",
    ],
)
def test_an_sminfo_that_is_cut_off_garbage_or_of_no_master_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"sminfo|GUID"):
        subnet_pages.master(page)


@pytest.mark.parametrize(
    "page",
    [
        "",
        SMIR[:-30],
        SMIR.replace("SMState...............2", "SMState...............3"),
        SMIR.replace("SMState...............3", "SMState...............2"),
        SMIR.replace("SMState...............3", "SMState...............-1"),
        SMIR.replace("SMState...............2", "SMState...............4"),
        SMIR.replace(B, C),
        SMIR.replace(A, B),
        SMIR.replace("Priority..............3", "Priority..............x"),
        SMIR + SMIR,
        SMIR + "Query SA failed: Connection timed out\n",
        "Query SA failed: Connection timed out\n",
        RECORD.format(lid=1, guid=B, priority=4, state=3)
        + "".join(RECORD.format(lid=n, guid=f"{n:016x}", priority=1, state=2) for n in range(2, 70)),
    ],
)
def test_a_list_of_managers_that_contradicts_is_cut_off_or_has_two_masters_is_refused(page: str) -> None:
    """Mutants: two masters, none, or another than `sminfo` asked are taken; state -1 is the last of the states."""
    with pytest.raises(ValueError, match=r"saquery|GUID"):
        subnet_pages.managers(page, MASTER)


@pytest.mark.parametrize(
    "page", ["", PKTR[:-60], PKTR + KEYS, KEYS + PKTR, PKTR + "ERROR: Query result returned 0x0200\n", "0xffff " * 8]
)
def test_partitions_that_are_cut_off_are_refused(page: str) -> None:
    with pytest.raises(ValueError, match="saquery"):
        subnet_pages.partitions(page)


def test_a_log_of_another_manager_or_of_before_it_became_master_tells_no_routing() -> None:
    """Mutants: the log is whoever's; tables of an earlier term count."""
    for log, guid in (
        (LOG, A),
        ("", B),
        (LOG + LOG.splitlines()[1], B),
        (LOG + "x -> Entering STANDBY state\n", B),
        (LOG + "x -> Entering STANDBY state\nx -> Entering MASTER state\n", B),
        (LOG.replace("updn tables", "x y tables"), B),
    ):
        with pytest.raises(ValueError, match="log"):
            subnet_pages.routing(log.splitlines(), guid)
