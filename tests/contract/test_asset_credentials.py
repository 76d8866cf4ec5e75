"""Passwords of BMCs that serve no system (shelf, PDU, coolant unit) and of a tray's: the same lies, the same proof."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.planning.rack_bring_up import seat_of
from hostler.core.state.assets import Asset, AssetKind, Binding, Position
from hostler.core.state.racks import AssetLook
from hostler.drivers.redfish.login_driver import LoginDriver
from hostler.drivers.redfish.rack_reader import RackReader
from hostler.ports import ConflictError, LoginRefusedError, PortError, UnreachableError
from hostler.sim.bmc.bmc_accounts import AccountRules, BmcAccounts
from hostler.sim.bmc.rack_equipment import Kind
from tests.contract.credential_world import CERTIFICATES, START, CredentialWorld, Cut, CutError, credential_world
from tests.drawing import first_in_gate

KINDS: list[Kind | None] = ["PowerShelves", "RackPDUs", "CDUs", None]


def as_asset(world: CredentialWorld) -> Asset:
    """The world's BMC as that of a rack's asset; the driver is shown it as it is shown assets."""
    asset = Asset("x1", AssetKind.pdu, Position("c1", rack="r7"), world.node.bindings)
    world.node = seat_of(asset, START)
    return asset


async def looked(world: CredentialWorld, asset: Asset) -> AssetLook:
    return await RackReader(world.clients).look(replace(asset, bindings=world.node.bindings), START)


async def proved(world: CredentialWorld, asset: Asset) -> None:
    """The kept password is the BMC's, nothing waits, and whoever looks at the asset enters by it."""
    kept = await world.kept()
    assert kept["password"] == world.password != "factory"
    assert not {"pending", "tried"} & set(kept)
    look = await looked(world, asset)
    assert (look.why, look.serial, look.login_refused) == ("", "SN1", False)
    assert world.accounts.lockouts == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_from_the_factory_by_first_contact_to_a_swapped_board(tmp_path: Path, kind: Kind | None) -> None:
    """Mutants: a BMC without a system is asked for one; a refused look is not told as such, or is shown again."""
    async with credential_world(tmp_path, pin="first_contact", equipment=kind) as world:
        asset = as_asset(world)
        assert "renew-login" in (await looked(world, asset)).why
        outcome = await world.renew()
        assert (outcome.result, outcome.detail) == ("done", "entered by the factory login; the new password is proved")
        assert outcome.facts["certificate"] == CERTIFICATES[0].fingerprint
        assert world.password not in repr(outcome)
        world.pin(CERTIFICATES[0].fingerprint)
        await proved(world, asset)
        first = world.password
        assert (await world.renew()).result == "done"
        assert (await world.kept())["previous"] == first != world.password
        world.accounts.factory_reset()
        for _ in range(4):
            assert (await looked(world, asset)).login_refused
        assert world.accounts.wrong == 1
        assert "factory login" in (await world.renew()).detail
        assert world.accounts.wrong == 1
        await proved(world, asset)


@pytest.mark.parametrize("kind", KINDS)
async def test_another_piece_of_equipment_keeps_its_login(tmp_path: Path, kind: Kind | None) -> None:
    """The address is answered by another one. Mutant: whoever answers there is given the password."""
    async with credential_world(tmp_path, equipment=kind) as world:
        as_asset(world)
        world.node = replace(world.node, bindings=(Binding("serial", "SN2", START), world.node.bindings[1]))
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert "binding mismatch" in outcome.detail
        assert world.password == "factory"


@pytest.mark.parametrize("lie", ["forgets", "says_error", "late", "resets_before", "resets_after"])
@pytest.mark.parametrize("kind", ["PowerShelves", "RackPDUs"])
async def test_a_bmc_that_says_yes_and_is_not_so_loses_nothing(tmp_path: Path, kind: Kind, lie: str) -> None:
    """The BMC keeps the old one, answers 200 with an error, takes it after a restart, or loses power before or after.

    Mutants: its yes is proof; the old password is dropped before the new one is proved.
    """
    async with credential_world(tmp_path, equipment=kind) as world:
        asset = as_asset(world)
        await world.renew()
        world.accounts.lie = lie  # type: ignore[assignment]
        with pytest.raises(UnreachableError):
            await world.renew()
        assert world.password in (await world.kept()).values()
        world.accounts.lie = ""
        world.pass_by(400)
        assert (await world.renew()).result == "done"
        await proved(world, asset)


@pytest.mark.parametrize("threshold", [0, 3, 10])
async def test_its_account_is_never_locked_by_us(tmp_path: Path, threshold: int) -> None:
    """Mutants: looks and renewals do not add up; a person's word is not needed."""
    rules = AccountRules(threshold=threshold)
    async with credential_world(tmp_path, BmcAccounts(rules=rules), equipment="PowerShelves") as world:
        asset = as_asset(world)
        await world.renew()
        world.accounts.slots[0].password = "somebody else's"
        for _ in range(12):
            assert (await looked(world, asset)).login_refused
            assert (await world.renew()).result == "refused"
        assert "hostler asset renew-login ASSET --anew" in (await world.renew()).detail
        assert world.accounts.lockouts == 0
        assert world.accounts.wrong < (threshold or 3)
        await world.keep(username="root", password="somebody else's")
        assert (await world.renew(anew=True)).result == "done"
        await proved(world, asset)


@pytest.mark.parametrize("after", first_in_gate([True, False]), ids=["after", "before"])
async def test_each_cut_is_gone_on_from(tmp_path: Path, after: bool) -> None:
    """The process ends before or after every fourth step of a shelf's renewal, of the store and of the BMC."""
    at, cuts = -2, 0
    while True:
        at += 4
        async with credential_world(tmp_path / f"{at}", equipment="PowerShelves") as world:
            asset = as_asset(world)
            world.cut = Cut(at, after)
            try:
                await world.renew()
            except CutError:
                cuts += 1
            else:
                break
            world.cut = Cut()
            assert world.password in {"factory", *(await world.kept()).values()}
            assert (await world.renew()).result == "done"
            await proved(world, asset)
            assert world.accounts.wrong <= 1
    assert cuts >= 6


async def test_two_controllers_at_once_leave_a_password_that_is_kept(tmp_path: Path) -> None:
    """A controller that is gone already may not know it. Mutant: the later write hides the password that was set."""
    async with credential_world(tmp_path, equipment="RackPDUs") as world:
        asset = as_asset(world)
        await world.renew()

        async def one(driver: LoginDriver) -> object:
            try:
                return (await driver.perform(world.operation(), world.node)).result
            except (ConflictError, LoginRefusedError, UnreachableError) as error:
                return error

        said = await asyncio.gather(one(world.driver), one(world.fellow))
        assert world.password in (await world.kept()).values()
        assert world.accounts.lockouts == 0
        try:
            assert (await world.renew()).result == "done", said
        except PortError as error:
            pytest.fail(f"{said}, then {error}")
        await proved(world, asset)
