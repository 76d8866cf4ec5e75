"""A fabric of real infiniband-diags' making: ibsim answers as devices do, `ibnetdiscover` asks, and we judge."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from hostler.core.fabric.findings import Kind
from hostler.core.fabric.validation import Validation, ValidationVerdict, follow, validate
from hostler.drivers.infiniband.diagnostics import Diagnostics, discover
from tests.fabrics import FAULTS, LARGE, Fabric, a_fabric, misname_adapters, repaired
from tests.ibsim import found


async def judged(fabric: Fabric) -> Validation:
    return validate(fabric.design, await found(fabric))


async def test_a_fabric_as_designed_is_found_so() -> None:
    seen = await judged(a_fabric())
    assert (seen.verdict, seen.why, seen.findings) == (ValidationVerdict.as_designed, "", ())
    assert seen.found == seen.designed == 112


@pytest.mark.parametrize("fault", [*FAULTS, misname_adapters], ids=lambda fault: fault.__name__)
async def test_each_fault_of_a_real_discovery_is_one_finding_of_its_kind(fault: object) -> None:
    fabric = a_fabric(7)
    kind = fault(fabric)  # type: ignore[operator]
    assert [finding.kind for finding in (await judged(fabric)).findings] == [kind]


@pytest.mark.timeout(120)
async def test_84_faults_of_three_tiers_are_84_findings_and_repairing_half_leaves_the_rest() -> None:
    fabric, rng = a_fabric(84, LARGE), Random(84)
    planted = Counter(rng.choice(FAULTS)(fabric) for _ in range(84))
    seen = await judged(fabric)
    assert seen.verdict is ValidationVerdict.differs, seen.why
    assert Counter(finding.kind for finding in seen.findings) == planted
    cases = follow((), seen).cases
    assert len(cases) == 84

    by_hand = {Kind.degraded, Kind.dark_device, Kind.swapped_devices, Kind.unidentified}
    mended = tuple(finding for finding in seen.findings if finding.kind not in by_hand)[::2]
    repaired(fabric, mended)
    again = await judged(fabric)
    assert {finding.key for finding in again.findings} == {f.key for f in seen.findings} - {f.key for f in mended}
    went_on = follow(follow(cases, again).cases, again)
    assert set(went_on.closed) == {finding.key for finding in mended}
    assert went_on.opened == ()


async def found_by(folder: Path, script: str, timeout_s: float = 20.0) -> str:
    """Why nothing is concluded from a tool that does this."""
    tool = folder / "ibnetdiscover"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    seen = await discover(Diagnostics(directory=str(folder), timeout_s=timeout_s))
    assert (validate(a_fabric().design, seen).findings, seen.links) == ((), ())
    return seen.partial


async def test_a_tool_that_fails_hangs_or_never_stops_writing_says_nothing_about_cables(tmp_path: Path) -> None:
    assert "did not end within 0.3 s" in await found_by(tmp_path, "sleep 60", 0.3)
    assert "ended with 1: ibwarn: can't open UMAD port" in await found_by(
        tmp_path, "echo 'ibwarn: can'\"'\"'t open UMAD port' >&2; exit 1"
    )
    assert "no device on the page" in await found_by(tmp_path, "exit 0")
    assert "wrote more than 256 MiB" in await found_by(tmp_path, "head -c 300000000 /dev/zero")
    assert "line 1: " in await found_by(tmp_path, "echo '<html>502 Bad Gateway</html>'")
    (tmp_path / "ibnetdiscover").unlink()
    assert "cannot be run" in (await discover(Diagnostics(directory=str(tmp_path)))).partial
