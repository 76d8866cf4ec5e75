"""Readings for Seatrial from a BMC over HTTP: links, sockets, drives and BIOS, and what a bad answer leaves of them."""

import pytest
from msgspec.structs import replace

from hostler.core.state.model import Facts
from hostler.sim.bmc.emulated_machine import Machine, gpu_server
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.redfish_world import a_machine, emulated

BIOS = "*/Bios"


def server() -> Machine:
    """A machine that shows links and sizes of modules; one GPU runs at half its lanes, one module is another size."""
    plain = gpu_server("SN1")
    gpus, modules = (sorted(part.slot for part in plain.parts if part.kind == kind) for kind in ("gpu", "memory"))
    links = dict.fromkeys(gpus, (16, "Gen5")) | {gpus[3]: (8, "Gen5"), gpus[4]: (63, "Gen5")}
    sizes = dict.fromkeys(modules, 65_536) | {modules[0]: 32_768}
    return a_machine(hardware=replace(plain, links=links, modules_mib=sizes))


async def read(*rules: RequestFaultRule, timeout_s: float = 30) -> Facts:
    """The stock that is taken of the machine behind this BMC."""
    async with emulated("http", server(), rules, timeout_s) as world:
        outcome = await world.perform("collect_inventory")
        assert outcome.result == "done"
        return outcome.facts


async def test_a_bmc_tells_links_sockets_drives_and_bios_and_the_same_twice() -> None:
    """Mutants: an aspect is not asked for; a number that no link has is a link; a second look adds to the first."""
    async with emulated("http", server()) as world:
        first, second = [(await world.perform("collect_inventory")).facts for _ in range(2)]
        attributes = {f"bios.{name}": value for name, value in world.ours.bios.items()}
        gpus = sorted(part.slot for part in world.ours.hardware.parts if part.kind == "gpu")
    assert attributes
    assert {name: first[name] for name in attributes} == attributes
    links = [first.get(f"pcie.{slot}") for slot in gpus]
    assert links == ["x16 32 GT/s"] * 3 + ["x8 32 GT/s", None] + ["x16 32 GT/s"] * 3
    sizes = sorted(str(value) for name, value in first.items() if name.startswith("dimm."))
    assert sizes == ["32 GiB"] + ["64 GiB"] * 31
    assert [value for name, value in first.items() if name.startswith("drive.")] == ["ok"] * 8
    assert "unread.bios" not in first
    assert first == second


BAD: dict[str, tuple[RequestFaultRule, str]] = {
    "none": (RequestFaultRule(BIOS, status=404, times=0), "404"),
    "a fault of its own": (RequestFaultRule(BIOS, status=500, times=0), "500"),
    "without attributes": (RequestFaultRule(BIOS, patch={"Attributes": None}, times=0), "has no attributes"),
    "a list of them": (RequestFaultRule(BIOS, patch={"Attributes": ["x"]}, times=0), "has no attributes"),
    "later than it is waited for": (RequestFaultRule(BIOS, latency_s=3.0, times=0), "answer"),
    "a connection that ends": (RequestFaultRule(BIOS, drop="before", times=0), "answer"),
}
"""An answer of a Bios resource → the words on it."""


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_answer_on_its_bios_leaves_the_rest_and_says_why(bad: str) -> None:
    """Mutants: what it does not show is nothing that anybody asks for; one resource costs all the others."""
    rule, said = BAD[bad]
    facts = await read(rule, timeout_s=1.0)
    assert said in str(facts["unread.bios"])
    assert not [name for name in facts if name.startswith("bios.")]
    assert [name for name in facts if name.startswith("pcie.")]


async def test_a_bad_answer_once_is_asked_again_by_the_next_look() -> None:
    """Mutant: what a BMC could not show once is not asked for any more."""
    async with emulated("http", server(), (RequestFaultRule(BIOS, status=404, times=1),)) as world:
        first, second = [(await world.perform("collect_inventory")).facts for _ in range(2)]
    assert "404" in str(first["unread.bios"])
    assert second["bios.SriovEnable"] == "Enabled"


@pytest.mark.parametrize("status", [404, 500])
async def test_drives_that_cannot_be_read_are_not_covered_and_not_well(status: int) -> None:
    """Mutant: eight drives that nobody could read are none, and the machine is taken for one without."""
    facts = await read(RequestFaultRule("*/Storage*", status=status, times=0))
    assert not [name for name in facts if name.startswith("drive.")]
    assert "drive" not in str(facts["covers"]).split(",")
    assert facts["complete"] is (status == 404)  # a BMC that has no such resource hides nothing
