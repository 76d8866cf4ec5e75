"""Each vendor's BMC gets a password of its own, in the shape that its vendor has for accounts."""

from pathlib import Path

import pytest

from hostler.sim.bmc.vendor_entries import ENTRIES
from hostler.sim.bmc.vendors import VENDORS
from tests.contract.credential_world import credential_world


def test_each_vendor_has_its_row() -> None:
    assert ENTRIES.keys() == VENDORS.keys()


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_factory_login_of_each_vendor_is_replaced_at_first_contact(vendor: str, tmp_path: Path) -> None:
    """Mutants: the first slot is the account; what must be changed first is refused as wrong; lengths are not read."""
    async with credential_world(tmp_path, vendor=vendor) as world:
        outcome = await world.renew()
        assert (outcome.result, outcome.facts["username"]) == ("done", ENTRIES[vendor].username)
        kept, rules = await world.kept(), ENTRIES[vendor].rules
        assert kept["password"] == world.password != "factory"
        assert rules.shortest <= len(world.password) <= rules.longest
        assert (world.accounts.wrong, world.accounts.lockouts) == (0, 0)
        assert (await world.renew()).result == "done"
        assert (await world.kept())["previous"] == kept["password"]
        changed = [slot.id for slot in world.accounts.slots if slot.password not in {"", "factory"}]
        assert changed == [ENTRIES[vendor].slot]
