"""BIOS settings on BMCs of each vendor's shape: written, applied by the reset, read back, and refused in all ways."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.state.model import Outcome
from hostler.ports import RefusedError, UnreachableError
from hostler.sim.bmc import bios_shapes
from hostler.sim.bmc.request_faults import RequestFaultRule
from hostler.sim.bmc.vendors import VENDORS
from tests.contract.redfish_vendors import Bmc
from tests.contract.redfish_world import operation

WANTED = {"SriovEnable": "Enabled", "NumaNodes": "4"}
FOUND = {"BootMode": "Uefi", "SriovEnable": "Disabled", "NumaNodes": 1, "AssetTag": "T1"}
NUMBERS = iter(range(1_000))


def a_bmc(vendor: str = "gb200", faults: dict[str, str] | None = None, **quirks: Any) -> Bmc:
    """A machine whose settings differ in two attributes, one of them a number."""
    bmc = Bmc(vendor)
    bmc.machine.bios = dict(FOUND)
    bmc.machine.quirks = replace(bmc.machine.quirks, bios=faults or {}, **quirks)
    return bmc


async def write(bmc: Bmc, wanted: dict[str, str] = WANTED) -> Outcome:
    """Performs a writing of its own."""
    asked = replace(operation("write_bios_settings", bmc.node, wanted=wanted), id=f"op-{next(NUMBERS)}")
    return await bmc.driver.perform(asked, bmc.node)


async def verify(bmc: Bmc, wanted: dict[str, str] = WANTED, within_s: float = 900) -> Outcome:
    """Verifies every ten seconds, until something is known."""
    asked = replace(operation("verify_bios_settings", bmc.node, wanted=wanted), id=f"op-{next(NUMBERS)}")
    seen = await bmc.driver.perform(asked, bmc.node)
    for _ in range(int(within_s / 10)):
        if seen.result != "unknown":
            break
        pass_by(bmc, 10)
        seen = await bmc.driver.observe(asked, bmc.node)
    return seen


def pass_by(bmc: Bmc, seconds: float) -> None:
    bmc.now += timedelta(seconds=seconds)
    bmc.machine.advance(bmc.now)


def restart(bmc: Bmc) -> None:
    """The reset that applies settings."""
    bmc.machine.reset("ForceOff", bmc.now)
    pass_by(bmc, 60)
    bmc.machine.reset("On", bmc.now)
    pass_by(bmc, 600)
    assert bmc.machine.booted


def changes(bmc: Bmc) -> list[tuple[str, object]]:
    return [(path, body) for path, _, body in bmc.sent]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_what_differs_is_written_where_the_vendor_takes_it_and_read_back_after_the_reset(vendor: str) -> None:
    """Mutants: all attributes are sent; numbers are sent as text; the Bios itself is changed where settings wait; an
    apply time is named where none is offered; a first reading is believed."""
    bmc = a_bmc(vendor)
    assert (await write(bmc)).result == "done"
    shape = bios_shapes.shape_of(bmc.machine)
    bios = f"/redfish/v1/Systems/{VENDORS[vendor].system}/Bios"
    taken, body = changes(bmc)[-1]
    assert taken == (bios if shape.direct else f"{bios}/{shape.waits}")
    assert isinstance(body, dict)
    assert body.pop("@Redfish.SettingsApplyTime", None) == ({"ApplyTime": "OnReset"} if shape.times else None)
    assert body == {"Attributes": {"SriovEnable": "Enabled", "NumaNodes": 4}}
    assert bmc.machine.bios == FOUND, "nothing holds before the reset"
    restart(bmc)
    assert bmc.machine.bios == {**FOUND, "SriovEnable": "Enabled", "NumaNodes": 4}
    read = await verify(bmc)
    assert (read.result, read.facts) == ("done", {"SriovEnable": "Enabled", "NumaNodes": "4"})
    assert bmc.machine.counts["SetBios"] == 1


@pytest.mark.parametrize("vendor", VENDORS)
async def test_settings_that_are_as_wanted_or_wait_already_are_not_sent_again(vendor: str) -> None:
    """A crash may lie between any two steps. Mutants: what waits is sent again, which an iDRAC refuses; what is so is
    sent."""
    bmc = a_bmc(vendor)
    await write(bmc)
    sent = len(bmc.sent)
    again = await write(bmc)
    assert (again.result, len(bmc.sent)) == ("done", sent)
    restart(bmc)
    again = await write(bmc)
    assert (again.result, len(bmc.sent)) == ("done", sent)
    assert "nothing was sent" in again.detail


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_answer_that_is_lost_is_told_by_what_waits(vendor: str) -> None:
    """Mutants: a lost answer is a failure; what did not arrive counts as sent."""
    bmc = a_bmc(vendor)
    asked = operation("write_bios_settings", bmc.node, wanted=WANTED)
    for drop in ("before", "after"):
        bmc.service.faults.add(RequestFaultRule("*/Bios*", method="PATCH", drop=drop))
        bmc.machine.bios_pending.clear()
        with pytest.raises(UnreachableError):
            await bmc.driver.perform(asked, bmc.node)
        seen = await bmc.driver.observe(asked, bmc.node)
        arrived = drop == "after" and not VENDORS[vendor].demands  # these two refuse the first, which names no etag
        assert bool(bmc.machine.bios_pending) == arrived
        assert seen.result == ("done" if arrived else "unknown"), seen.detail
        pass_by(bmc, 40)
        if drop == "before":
            assert (await bmc.driver.observe(asked, bmc.node)).result == "not_done"


async def test_an_idrac_without_apply_times_gets_a_job_and_only_one() -> None:
    """Mutants: no job, and nothing is applied; a job for each try; the job is not missed after a crash."""
    bmc = a_bmc("dell", older=True)
    jobs = "/redfish/v1/Managers/iDRAC.Embedded.1/Jobs"
    bmc.service.faults.add(RequestFaultRule(jobs, method="POST", drop="before"))
    asked = operation("write_bios_settings", bmc.node, wanted=WANTED)
    with pytest.raises(UnreachableError):
        await bmc.driver.perform(asked, bmc.node)
    assert "no job applies" in (await bmc.driver.observe(asked, bmc.node)).detail
    assert (await write(bmc)).result == "done"
    assert (await write(bmc)).result == "done"
    assert [path for path, _ in changes(bmc)].count(jobs) == 2, "the one that was lost, and one"
    assert bmc.machine.counts["SetBios"] == 1
    restart(bmc)
    assert (await verify(bmc)).result == "done"


async def test_what_waits_for_a_job_that_is_gone_is_sent_again_with_its_apply_time() -> None:
    """The queue of jobs was cleared meanwhile. Mutant: what waits counts as written, and no start ever applies it."""
    bmc = a_bmc("dell")
    asked = operation("write_bios_settings", bmc.node, wanted=WANTED)
    await bmc.driver.perform(asked, bmc.node)
    bmc.machine.bios_scheduled = False
    assert "no job applies" in (await bmc.driver.observe(asked, bmc.node)).detail
    assert (await write(bmc)).result == "done"
    assert bmc.machine.counts["SetBios"] == 2
    restart(bmc)
    assert (await verify(bmc)).result == "done"


async def test_a_job_that_is_refused_says_which_attribute_waits_for_it() -> None:
    """Mutant: what waits without a job counts as written."""
    bmc = a_bmc("dell", older=True)
    bmc.service.faults.add(RequestFaultRule("*/Jobs", method="POST", status=400))
    with pytest.raises(RefusedError, match=r"no job that applies SriovEnable: expected Enabled, found Disabled"):
        await write(bmc)


@pytest.mark.parametrize(
    ("fault", "says"), [("read_only", "read only property"), ("locked", "A setup password is set")], ids=str
)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_refusal_names_attribute_expected_found_and_the_bmc_s_words(vendor: str, fault: str, says: str) -> None:
    """Mutants: the refusal is tried at another place; it names no attribute."""
    bmc = a_bmc(vendor, {"SriovEnable": fault})
    with pytest.raises(RefusedError, match="SriovEnable: expected Enabled, found Disabled") as refused:
        await write(bmc)
    assert says in str(refused.value)
    assert not bmc.machine.bios_pending


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"Turbo": "On"}, "Turbo: expected On, found nothing: this BIOS lists no such attribute"),
        ({"NumaNodes": "four"}, "NumaNodes: expected four, found 1, which is of another type"),
    ],
    ids=str,
)
async def test_what_this_bios_cannot_have_is_refused_before_anything_is_sent(wanted: dict[str, str], says: str) -> None:
    """Mutant: a value of another type is sent, which some BIOSes take as none."""
    bmc = a_bmc()
    with pytest.raises(RefusedError, match=says):
        await write(bmc, {**wanted, "SriovEnable": "Enabled"})
    assert not bmc.sent


async def test_a_machine_without_a_bios_resource_is_refused_and_fails_its_verification() -> None:
    """Mutant: no resource means nothing differs."""
    bmc = a_bmc()
    bmc.service.faults.add(RequestFaultRule("*/Systems/System_0", patch={"Bios": None}, times=0))
    with pytest.raises(RefusedError, match="no Bios resource"):
        await write(bmc)
    seen = await verify(bmc)
    assert (seen.result, seen.facts) == ("failed", {"SriovEnable": "", "NumaNodes": ""})


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_value_that_is_taken_and_not_changed_fails_after_it_was_waited_for(vendor: str) -> None:
    """Mutants: the BMC's 200 is believed; what is late counts as failed at once."""
    bmc = a_bmc(vendor, {"NumaNodes": "ignored"})
    assert (await write(bmc)).result == "done"
    restart(bmc)
    before = bmc.now
    seen = await verify(bmc)
    assert (seen.result, seen.detail) == ("failed", "NumaNodes: expected 4, found 1")
    assert (bmc.now - before).total_seconds() >= 180
    assert seen.facts == {"SriovEnable": "Enabled", "NumaNodes": "1"}


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_value_that_waits_for_ever_is_told_as_such(vendor: str) -> None:
    """Mutant: what waits counts as set."""
    bmc = a_bmc(vendor, {"NumaNodes": "stuck"})
    await write(bmc)
    restart(bmc)
    seen = await verify(bmc)
    assert seen.result == "failed"
    assert "NumaNodes: expected 4, found 1, and 4 still waits in /redfish/v1/Systems/" in seen.detail


async def test_a_bios_that_is_read_late_after_the_reset_passes() -> None:
    """Mutant: one wrong reading fails."""
    bmc = a_bmc()
    await write(bmc)
    restart(bmc)
    bmc.service.faults.add(RequestFaultRule("*/Bios", patch={"Attributes": {"NumaNodes": 1}}, times=6))
    assert (await verify(bmc)).result == "done"


async def test_another_value_that_waits_is_overwritten() -> None:
    """A change of somebody else would undo what is so now. Mutant: only what is set is compared."""
    bmc = a_bmc()
    bmc.machine.bios |= {"SriovEnable": "Enabled", "NumaNodes": 4}
    bmc.machine.set_bios({"NumaNodes": 2}, bmc.now)
    assert "NumaNodes: expected 4, and another value waits" in (await write(bmc)).detail
    restart(bmc)
    assert bmc.machine.bios["NumaNodes"] == 4


async def test_some_of_it_taken_is_told_by_what_was_not() -> None:
    """A 200 for all, and one attribute does not wait. Mutant: the answer's status counts."""
    bmc = a_bmc()
    bmc.service.faults.add(RequestFaultRule("*/Bios/Settings", patch={"Attributes": {"NumaNodes": None}}, times=0))
    with pytest.raises(RefusedError, match="none of NumaNodes: expected 4, found 1"):
        await write(bmc)


async def test_a_change_of_another_state_is_named_by_its_etag() -> None:
    """Mutant: the etag of the Bios is sent for its settings."""
    bmc = a_bmc("dgx_h100")
    await write(bmc)
    (_, headers, _), *more = [one for one in bmc.sent if one[0].endswith("/SD")][-1:]
    assert headers["If-Match"]
    assert not more
