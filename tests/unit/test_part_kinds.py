"""One vocabulary of part kinds: what SKUs may name, what the agent looks for, what BMCs are read for."""

from pathlib import Path
from typing import Any

import pytest

from hostler.agent.collectors import inventory, nvml_inventory
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.tables.part_kinds import AGENT_KINDS, BMC_KINDS, PART_KINDS
from hostler.drivers.redfish import part_inventory
from hostler.sim.bmc.vendors import VENDORS
from tests.contract.redfish_vendors import Bmc
from tests.kit import configuration


def test_the_agent_looks_for_what_the_vocabulary_says(tmp_path: Path) -> None:
    """Mutant: a kind that the agent lists and no SKU may name."""
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/firmware/dmi/entries/17-0").mkdir(parents=True)
    seen = inventory.read(tmp_path, "n1", nvml_inventory.NvmlInventory())
    assert frozenset(str(seen.facts["covers"]).split(",")) == AGENT_KINDS


async def test_every_kind_that_a_bmc_shows_is_in_the_vocabulary_and_its_supplies_are_parts() -> None:
    """Over every vendor's layout. Mutants: a supply is no part; only the newer resource is read; `power_supply`."""
    with_supplies = {}
    for vendor in VENDORS:
        bmc = Bmc(vendor)
        found = await part_inventory.inventory(bmc.client, await bmc.client.system())
        assert {part.kind for part in found.parts} - {"module"} <= BMC_KINDS, vendor
        with_supplies[vendor] = {part.slot: part.serial for part in found.parts if part.kind == "psu"}
    shown = {vendor: supplies for vendor, supplies in with_supplies.items() if supplies}
    assert shown.keys() >= {"dell", "hpe", "supermicro", "dgx_h100"}
    assert all(len(supplies) == 6 == len({*supplies.values()} - {""}) for supplies in shown.values())


@pytest.mark.parametrize(
    "named", [{"parts": {"power_supply": 6}}, {"models": {"hdd": "Seagate"}}, {"slots": {"nics": ["nic0"]}}]
)
def test_a_kind_that_nobody_reports_is_refused_with_the_list(named: dict[str, Any]) -> None:
    """Mutants: `parts` alone is looked at; the list is missing."""
    with pytest.raises(InvalidInputError) as refused:
        configuration(**named)
    (problem,) = refused.value.problems
    assert "no kind of part" in problem.what
    assert ", ".join(PART_KINDS) in problem.instead
