"""Seatrial holds links, settings and places against the SKU's hardware manifest: a named verdict for each aspect."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, FellowsSeen, NodeSeen
from hostler.core.diagnose.sensor_findings import sensor_look
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import BMC_ONLY, Facts, Observation, Part, Phase, Verdict
from tests.kit import NOW, Drive, a_node, configuration, pool_document

PAGE = Path(__file__).parents[2] / "docs/seatrial.md"
MANIFEST: dict[str, Any] = {
    "pcie": {"gpu0": "x16 32 GT/s", "nic0": "x16 32 GT/s"},
    "bios": {"SriovEnable": "Enabled", "NumaNodes": "4"},
    "neighbours": {"eth0": "tor-{rack} Ethernet{u}"},
    "memory_gib": {"DIMM_A1": 64, "DIMM_A2": 0},
    "supplies_needed": 4,
    "sensors_s": 900,
    "drives": True,
    "serials": True,
    "erasable": True,
}
CONFIG = configuration(
    {"train": pool_document(target=1)},
    gpus=1,
    parts={"nic": 1, "drive": 1, "psu": 6},
    hardware=MANIFEST,
    sanitise={"accounts": ["service"]},
)
PARTS = (Part("G0", "gpu", "H100", "gpu0"), Part("N0", "nic", "CX7", "nic0"), Part("D0", "drive", "NVMe", "nvme0n1"))
SUPPLIES = tuple(Part(f"P{n}", "psu", "3000 W", f"psu{n}") for n in range(6))
AGENT: Facts = {
    "covers": "gpu,nic,drive",
    "pcie.gpu0": "x16 32 GT/s",
    "pcie.nic0": "x16 32 GT/s",
    "lldp.eth0": "tor-r1 Ethernet7",
    "carrier.eth0": "1",
    "dimm.DIMM_A1": "64 GiB",
    "dimm.DIMM_A2": "empty",
    "drive.nvme0n1": "ok",
    "erase.nvme0n1": "nvme sanitize, block erase",
    "erase.tpm": "cannot: this machine shows no TPM",
    "dmi.product_serial": "S-a",
}
BMC: Facts = {"covers": "psu", "bios.SriovEnable": "Enabled", "bios.NumaNodes": "4", "bios.BootMode": "Uefi"}
SENSORS: Facts = {
    **{f"psu{n}_health": "ok" for n in range(6)},
    "power_redundancy_health": "ok",
    "inlet_c": 24.0,
    "inlet_limit_c": 45.0,
}
ASPECTS = ("pcie", "bios", "neighbours", "power_supplies", "sensors", "memory_map", "drives", "serials", "erasable")


class Bench(Drive):
    """One node at Seatrial; agent and BMC tell what the test says, sensors are looked at once a minute."""

    def __init__(self, agent: Facts, bmc: Facts, sensors: Facts | None) -> None:
        self.sensors = sensors
        node = a_node(
            "a",
            pool="",
            phase=Phase.seatrial,
            position=Position("c1", rack="r1", u=7),
            slots=(),
            addresses=(),
            inventory_at=None,
            inventory_boot="",
        )
        super().__init__(CONFIG, [replace(node, deadline=NOW + timedelta(hours=6))], quiet=True)
        self.blind.add("a")
        self.step(FellowsSeen((Fellow("this", Release().reads),)))
        self.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"))
        self.run()
        self.tell(agent, bmc)

    def tell(self, agent: Facts, bmc: Facts) -> None:
        self.observe("a", "inventory", parts=PARTS, facts=agent)
        self.observe("a", "inventory", source="bmc", parts=SUPPLIES, facts=bmc)
        self.run()

    def look(self) -> None:
        if self.sensors is not None:
            seen = Observation("a", "sensors", "bmc", "bmc", 1, facts=self.sensors)
            sku = CONFIG.skus["h100"]
            self.step(NodeSeen("a", sensors=sensor_look(self.node("a"), sku, seen, self.now)))
        self.run()

    def minutes(self, count: int) -> None:
        for _ in range(count):
            self.wait(minutes=1)
            self.look()

    def verdicts(self) -> dict[str, Verdict]:
        return {
            c.profile.removeprefix("hardware."): c.verdict for c in self.node("a").checks if "hardware." in c.profile
        }

    def said(self) -> str:
        waiting = self.node("a").waiting
        return "; ".join(b.text for b in waiting.blockers) if waiting is not None else ""


def test_a_machine_that_is_as_its_manifest_passes_each_aspect_by_name() -> None:
    """Mutants: an aspect is not judged; the watch is one look."""
    bench = Bench(AGENT, BMC, SENSORS)
    bench.minutes(10)
    assert bench.node("a").phase is Phase.seatrial
    assert "watched until" in bench.said()
    assert not bench.fleet.tickets
    bench.minutes(10)
    assert bench.verdicts() == dict.fromkeys(ASPECTS, Verdict.passed)
    assert bench.node("a").phase is not Phase.seatrial


def but(**changes: Any) -> Callable[[], tuple[Facts, Facts, Facts | None]]:
    """Returns the reports of agent, BMC and sensors, but for these; None leaves one out."""

    def told() -> tuple[Facts, Facts, Facts | None]:
        sensors = None if changes.get("sensors", "") is None else {**SENSORS, **changes.get("sensors", {})}
        agent, bmc = ({**had, **changes.get(who, {})} for who, had in (("agent", AGENT), ("bmc", BMC)))
        return (
            {n: v for n, v in agent.items() if v is not None},
            {n: v for n, v in bmc.items() if v is not None},
            sensors,
        )

    return told


FAILED = {
    "a GPU at x8": (
        "pcie",
        "PCIe link in gpu0: expected x16 32 GT/s, found x8 32 GT/s",
        but(agent={"pcie.gpu0": "x8 32 GT/s"}),
    ),
    "an adapter at Gen4": (
        "pcie",
        "nic0: expected x16 32 GT/s, found x16 16 GT/s",
        but(agent={"pcie.nic0": "x16 16 GT/s"}),
    ),
    "the BMC alone sees x4": (
        "pcie",
        "gpu0: expected x16 32 GT/s, found x4 32 GT/s by the BMC",
        but(agent={"pcie.gpu0": None}, bmc={"pcie.gpu0": "x4 32 GT/s"}),
    ),
    "SR-IOV is off": (
        "bios",
        "BIOS attribute in SriovEnable: expected Enabled, found Disabled",
        but(bmc={"bios.SriovEnable": "Disabled"}),
    ),
    "another switch": (
        "neighbours",
        "cable in eth0: expected tor-r1 Ethernet7, found tor-r2 Ethernet7",
        but(agent={"lldp.eth0": "tor-r2 Ethernet7"}),
    ),
    "no link": (
        "neighbours",
        "cable in eth0: expected tor-r1 Ethernet7, found no link",
        but(agent={"lldp.eth0": None, "carrier.eth0": "0"}),
    ),
    "two supplies dead": (
        "power_supplies",
        "power supplies: expected 5 well, found 4 well",
        but(sensors={"psu1_health": "critical", "psu2_health": "critical"}),
    ),
    "no redundancy": (
        "power_supplies",
        "expected redundant, found critical",
        but(sensors={"power_redundancy_health": "critical"}),
    ),
    "an inlet too hot": ("sensors", "inlet is at 50", but(sensors={"inlet_c": 50.0})),
    "half a module": (
        "memory_map",
        "memory module in DIMM_A1: expected 64 GiB, found 32 GiB",
        but(agent={"dimm.DIMM_A1": "32 GiB"}),
    ),
    "a module in the wrong socket": (
        "memory_map",
        "memory module in DIMM_A2: expected empty, found 64 GiB",
        but(agent={"dimm.DIMM_A1": "empty", "dimm.DIMM_A2": "64 GiB"}),
    ),
    "a drive that fails": (
        "drives",
        "drive in nvme0n1: expected ok, found failing: its self-assessment",
        but(agent={"drive.nvme0n1": "failing: its self-assessment"}),
    ),
    "a blank serial": ("serials", "expected S-a, found a blank one", but(agent={"dmi.product_serial": ""})),
    "a vendor's default": (
        "serials",
        "found 'To be filled by O.E.M.', a vendor's default",
        but(agent={"dmi.product_serial": "To be filled by O.E.M."}),
    ),
    "another machine's serial": ("serials", "expected S-a, found S-b", but(agent={"dmi.product_serial": "S-b"})),
}
"""A fault → the aspect that fails, and its text."""

SILENT = {
    "lldpctl is missing": (
        "neighbours",
        "found nothing: lldpctl is not installed",
        but(agent={"lldp.eth0": None, "unread.lldp": "lldpctl is not installed (package lldpd)"}),
    ),
    "a BMC without a Bios": (
        "bios",
        "found nothing: its BMC has no Bios resource",
        but(
            bmc={
                "bios.SriovEnable": None,
                "bios.NumaNodes": None,
                "bios.BootMode": None,
                "unread.bios": "its BMC has no Bios resource",
            }
        ),
    ),
    "an attribute that is not there": (
        "bios",
        "BIOS attribute in NumaNodes: expected 4, found nothing: this BIOS lists no such attribute",
        but(bmc={"bios.NumaNodes": None}),
    ),
    "a BMC that shows no sensors": ("sensors", "its BMC has shown no sensors", but(sensors=None)),
    "a sensor that lies": ("sensors", "no believable reading of inlet", but(sensors={"inlet_c": 255.0})),
    "no tool asks the drive": (
        "drives",
        "found nothing: neither smartctl nor nvme says anything of nvme0n1",
        but(agent={"drive.nvme0n1": None, "unread.drive": "neither smartctl nor nvme says anything of nvme0n1"}),
    ),
    "a drive that does not answer": ("drives", "found silent", but(agent={"drive.nvme0n1": "silent"})),
    "a link that is unknown": ("pcie", "'x16 Unknown', which is no link", but(agent={"pcie.gpu0": "x16 Unknown"})),
    "no SMBIOS": (
        "memory_map",
        "DIMM_A1: expected 64 GiB, found nothing: SMBIOS shows no memory sockets",
        but(agent={"dimm.DIMM_A1": None, "dimm.DIMM_A2": None, "unread.dimm": "SMBIOS shows no memory sockets"}),
    ),
    "DMI cannot be read": (
        "serials",
        "found nothing: DMI's serial numbers cannot be read",
        but(agent={"dmi.product_serial": None, "unread.dmi": "DMI's serial numbers cannot be read"}),
    ),
    "no nvme on the node": (
        "erasable",
        "drive in nvme0n1: expected erased between tenants, found cannot: nvme: No such file or directory",
        but(agent={"erase.nvme0n1": "cannot: nvme: No such file or directory"}),
    ),
    "an agent that may not act": (
        "erasable",
        "found nothing: this agent was started without --allow-actions",
        but(agent={"erase.nvme0n1": None, "unread.erase": "this agent was started without --allow-actions"}),
    ),
}
"""A reading that nobody could take → the aspect that is inconclusive, and the text on what is missing."""


@pytest.mark.parametrize("wrong", FAILED)
def test_what_is_wrong_fails_its_aspect_alone_and_goes_on_once_it_is_right(wrong: str) -> None:
    """Mutants: another aspect's verdict; the ticket names no command; what is put right is not looked at again."""
    aspect, text, told = FAILED[wrong]
    bench = Bench(*told())
    bench.minutes(40)
    assert bench.node("a").phase is Phase.seatrial
    assert {a for a, v in bench.verdicts().items() if v is not Verdict.passed} == {aspect}
    assert bench.verdicts()[aspect] is Verdict.failed
    (ticket,) = bench.fleet.tickets.values()
    assert text in ticket.summary, ticket.summary
    assert ticket.owner == "technician"
    assert "hostler node vouch a --profile hardware" in ticket.action
    assert "run_checks" not in bench.operations("a")
    bench.sensors = SENSORS
    bench.tell(AGENT, BMC)
    bench.minutes(20)
    assert bench.node("a").phase is not Phase.seatrial, bench.said()
    assert not bench.fleet.tickets_about("a")


@pytest.mark.parametrize("silence", SILENT)
def test_what_nobody_has_read_is_never_failed_and_says_what_is_missing(silence: str) -> None:
    """Mutants: what is missing fails, or passes; the reason is left out."""
    aspect, text, told = SILENT[silence]
    bench = Bench(*told())
    bench.minutes(40)
    assert bench.node("a").phase is Phase.seatrial
    assert Verdict.failed not in bench.verdicts().values()
    assert bench.verdicts()[aspect] is Verdict.inconclusive
    (ticket,) = bench.fleet.tickets.values()
    assert text in ticket.summary, ticket.summary
    assert not [c for c in bench.events(e.PhaseChanged) if c.node == "a"]


def test_a_dpu_whose_bmc_nobody_named_stops_the_node_before_its_first_tenant() -> None:
    """Mutants: that shows when the tenant leaves; one address stands for two cards; the command is not named."""
    bench = Bench(*but(agent={"dpu.nic0": "MT1", "dpu.nic1": "MT2"})())
    bench.minutes(40)
    assert bench.verdicts()["erasable"] is Verdict.inconclusive
    (ticket,) = bench.fleet.tickets.values()
    assert (
        "DPU accounts in nic0 nic1: expected 2 BMCs compared, found nothing: no BMC of a DPU is named" in ticket.summary
    )
    assert "hostler node rebind a --kind dpu_bmc" in ticket.summary
    assert bench.ask_two("rebind", "a", kind="dpu_bmc", value="https://dpu-1").granted
    bench.minutes(5)
    assert "found 1 of its DPUs' BMCs named" in bench.said()
    assert bench.ask_two("rebind", "a", kind="dpu_bmc", value="https://dpu-1,https://dpu-2:443").granted
    bench.minutes(20)
    assert bench.verdicts()["erasable"] is Verdict.passed
    assert bench.node("a").phase is not Phase.seatrial, bench.said()


def test_readings_of_an_earlier_boot_are_none() -> None:
    """Mutant: what was read before the restart counts."""
    bench = Bench(AGENT, BMC, SENSORS)
    bench.minutes(5)
    bench.boots["a"] += 1
    bench.step(AgentHeard("a", "a-b2"))
    bench.observe("a", "inventory", parts=PARTS, facts={"covers": "gpu,nic,drive"})
    bench.observe("a", "inventory", source="bmc", parts=SUPPLIES, facts={"covers": "psu"})
    bench.minutes(40)
    assert bench.verdicts()["pcie"] is Verdict.inconclusive
    assert "in an earlier boot" in next(iter(bench.fleet.tickets.values())).summary


def test_one_look_out_of_range_convicts_nobody_and_begins_the_watch_anew() -> None:
    """Mutants: one spike fails; a spike does not lengthen the watch."""
    bench = Bench(AGENT, BMC, SENSORS)
    bench.minutes(10)
    bench.sensors = {**SENSORS, "inlet_c": 60.0}
    bench.minutes(1)
    bench.sensors = SENSORS
    bench.minutes(10)
    assert bench.node("a").phase is Phase.seatrial
    assert "sensors" not in bench.verdicts()
    bench.minutes(6)
    assert bench.verdicts()["sensors"] is Verdict.passed
    assert bench.node("a").phase is not Phase.seatrial


def test_a_bmc_that_falls_silent_is_not_watched_by_its_last_look() -> None:
    """Mutant: the watch that was is good for ever."""
    bench = Bench({**AGENT, "pcie.gpu0": "x8 32 GT/s"}, BMC, SENSORS)
    bench.minutes(30)
    assert bench.verdicts()["sensors"] is Verdict.passed
    bench.sensors = None
    bench.tell(AGENT, BMC)
    bench.minutes(1)
    bench.tell({**AGENT, "dimm.DIMM_A1": "32 GiB"}, BMC)
    bench.minutes(20)
    assert bench.verdicts()["sensors"] is not Verdict.failed


def test_a_person_may_vouch_for_what_no_reader_shows() -> None:
    """Mutant: the word is taken for another profile."""
    told = SILENT["lldpctl is missing"][2]
    bench = Bench(*told())
    bench.minutes(40)
    assert bench.ask("vouch", "a", profile="hardware").granted
    bench.minutes(2)
    assert bench.node("a").phase is not Phase.seatrial


def test_a_sku_without_a_manifest_has_no_such_step() -> None:
    """Mutant: every node is held against an empty manifest."""
    node = a_node("a", pool="", phase=Phase.seatrial)
    drive = Drive(configuration(), [replace(node, deadline=NOW + timedelta(hours=6))])
    drive.wait(hours=1)
    plan = next(p.plan for p in drive.events(e.PlanRecorded) if p.plan.name == "seatrial")
    assert "verify_hardware" not in [step.operation for step in plan.steps]


def test_a_node_that_serves_keeps_no_bios_attributes() -> None:
    """A BIOS has hundreds of them. Mutant: each node of the fleet keeps them for good."""
    bench = Bench(AGENT, BMC, SENSORS)
    assert dict(bench.node("a").hardware)["bmc/bios.BootMode"] == "Uefi"
    assert f"{BMC_ONLY}psu" in bench.node("a").inventory_covers
    bench.minutes(20)
    bench.step(bench.view())
    bench.wait(hours=60)
    bench.tell(AGENT, BMC)
    bench.wait(hours=1)
    assert bench.node("a").pool == "train", bench.said()
    assert not [name for name in dict(bench.node("a").hardware) if "/bios." in name]
    assert dict(bench.node("a").hardware)["agent/pcie.gpu0"] == "x16 32 GT/s"


def test_the_table_is_in_the_documents() -> None:
    """Mutant: a row that nobody has written down, or that says otherwise."""
    page = PAGE.read_text(encoding="utf-8")
    for table, word in ((FAILED, "fails"), (SILENT, "is inconclusive")):
        for wrong, (aspect, text, _) in table.items():
            assert f"| {wrong} | {aspect} {word} | {text}" in page, wrong
