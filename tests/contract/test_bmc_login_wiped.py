"""A BMC loses the password that was made for it: its vendor's enters again, ours is refused, and nothing is kept."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.state.assets import Binding
from hostler.ports import UnreachableError
from hostler.sim.bmc.bmc_accounts import Account, AccountRules, BmcAccounts
from tests.contract.credential_world import START, CredentialWorld, Cut, CutError, credential_world
from tests.drawing import first_in_gate


def easy() -> BmcAccounts:
    """A BMC whose rules allow its vendor's password, which not every one's do."""
    return BmcAccounts(rules=AccountRules(shortest=6))


async def wiped(world: CredentialWorld) -> None:
    """The BMC has its vendor's password, no account is locked, and nothing is kept."""
    assert world.password == "factory"
    assert await world.kept() == {}
    assert world.accounts.lockouts == 0


async def test_the_vendors_password_is_back_and_ours_is_kept_nowhere(tmp_path: Path) -> None:
    """Mutants: ours is not shown again, so that nobody knows whether it is refused; an empty secret stays."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        ours = world.password
        outcome = await world.wipe()
        assert outcome.result == "done"
        assert ours not in repr(outcome)
        await wiped(world)
        assert world.accounts.wrong == 1
        assert not list((tmp_path / "secrets").glob("bmc*"))


async def test_one_that_is_asked_twice_is_answered_twice(tmp_path: Path) -> None:
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        assert [(await world.wipe()).result for _ in range(2)] == ["done", "done"]
        await wiped(world)


async def test_a_password_that_was_accepted_and_forgotten_is_not_erased(tmp_path: Path) -> None:
    """Mutant: 204 is proof; the only password that enters is erased."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        ours = world.password
        world.accounts.lie = "forgets"
        for _ in range(4):
            with pytest.raises(UnreachableError, match="refuses it, and ours still enters"):
                await world.wipe()
        assert (await world.kept())["password"] == ours == world.password
        world.accounts.lie = ""
        assert (await world.wipe()).result == "done"
        await wiped(world)


async def test_one_that_counts_after_a_restart_is_proved_by_then(tmp_path: Path) -> None:
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        world.accounts.lie = "late"
        with pytest.raises(UnreachableError):
            await world.wipe()
        world.accounts.lie = ""
        world.pass_by(1)
        assert (await world.wipe()).result == "done"
        await wiped(world)


@pytest.mark.parametrize("lie", ["resets_before", "resets_after", "says_error"])
async def test_a_restart_or_an_error_in_the_middle_loses_nothing(tmp_path: Path, lie: str) -> None:
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        world.accounts.lie = lie  # type: ignore[assignment]
        with pytest.raises(UnreachableError):
            await world.wipe()
        assert world.password in {"factory", *(await world.kept()).values()}
        world.accounts.lie = ""
        world.pass_by(400)
        assert (await world.wipe()).result == "done"
        await wiped(world)


async def test_a_vendors_password_that_the_bmc_refuses_leaves_ours(tmp_path: Path) -> None:
    """Mutant: what cannot be set is taken for set."""
    async with credential_world(tmp_path) as world:
        await world.renew()
        ours = world.password
        outcome = await world.wipe()
        assert outcome.result == "refused"
        assert "does not meet the password policy" in outcome.detail
        assert (await world.kept())["password"] == ours == world.password


async def test_an_account_of_the_sites_own_does_not_get_the_vendors_password(tmp_path: Path) -> None:
    """Mutant: an account that the site made is left with a password that everybody knows."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        world.accounts.slots.append(Account("4", "site", "s3cr3t-of-the-site"))
        await world.keep(username="site", password="s3cr3t-of-the-site")
        outcome = await world.wipe()
        assert outcome.result == "refused"
        assert "account 'site' is not the vendor's" in outcome.detail
        assert world.accounts.slots[-1].password == "s3cr3t-of-the-site"


async def test_another_machine_keeps_its_password(tmp_path: Path) -> None:
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        ours = world.password
        world.node = replace(world.node, bindings=(Binding("serial", "SN2", START), world.node.bindings[1]))
        assert "binding mismatch" in (await world.wipe()).detail
        assert (await world.kept())["password"] == ours == world.password


async def test_one_of_which_nothing_is_kept_is_not_said_to_be_wiped(tmp_path: Path) -> None:
    """Mutant: no secret is proof; a person has erased it by hand, and the password is still on the BMC."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        found = await world.secrets.fetch(world.access.secret)
        await world.secrets.erase(world.access.secret, found.version)
        operation = world.wiping()
        assert (await world.driver.observe(operation, world.node)).result == "not_done"
        outcome = await world.driver.perform(operation, world.node)
        assert outcome.result == "refused"
        assert "nobody can wipe it" in outcome.detail


async def test_the_vendors_login_of_another_machine_proves_nothing(tmp_path: Path) -> None:
    """Mutant: another machine's BMC, which answers at that address with its vendor's login, is taken for the node's."""
    async with credential_world(tmp_path, easy()) as world:
        world.node = replace(world.node, bindings=(Binding("serial", "SN2", START), world.node.bindings[1]))
        operation = world.wiping()
        assert (await world.driver.observe(operation, world.node)).result == "not_done"
        assert "binding mismatch" in (await world.driver.perform(operation, world.node)).detail


async def test_a_bmc_that_takes_both_is_not_wiped(tmp_path: Path) -> None:
    """Mutant: the vendor's login that enters is proof enough, and ours enters for ever."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        ours = world.password
        world.accounts.lie = "keeps_both"
        with pytest.raises(UnreachableError, match="still lets ours in"):
            await world.wipe()
        assert (await world.kept())["password"] == ours


async def test_a_renewal_after_one_that_came_to_nothing_does_not_keep_the_vendors_password(tmp_path: Path) -> None:
    """Mutant: what was about to be set is promoted, and the BMC keeps its vendor's password as ours."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        world.accounts.lie = "late"
        with pytest.raises(UnreachableError):
            await world.wipe()
        world.accounts.lie = ""
        world.pass_by(1)
        assert world.password == "factory"
        assert (await world.renew()).result == "done"
        kept = await world.kept()
        assert kept["password"] == world.password != "factory"
        assert "pending" not in kept


async def test_what_a_cut_renewal_has_set_is_wiped_too(tmp_path: Path) -> None:
    """Mutant: the pending password stays on the BMC."""
    async with credential_world(tmp_path, easy()) as world:
        await world.renew()
        world.accounts.lie = "late"
        with pytest.raises(UnreachableError):
            await world.renew()
        world.accounts.lie = ""
        world.pass_by(1)
        assert (await world.wipe()).result == "done"
        await wiped(world)


async def test_a_bmc_that_demands_another_password_at_once_has_the_vendors(tmp_path: Path) -> None:
    accounts = BmcAccounts([Account("1", "root", "factory", change=True)], AccountRules(shortest=6, demands=True))
    async with credential_world(tmp_path, accounts) as world:
        await world.renew()
        assert (await world.wipe()).result == "done"
        await wiped(world)


@pytest.mark.parametrize("after", first_in_gate([True, False]), ids=["after", "before"])
async def test_each_cut_is_gone_on_from(tmp_path: Path, after: bool) -> None:
    """Cuts before and after every step, of the store and of the BMC, until none is left to cut.

    Mutants: the secret is erased before the vendor's password is proved; what was erased is asked for again.
    """
    at, cuts = 0, 0
    while True:
        at += 1
        async with credential_world(tmp_path / f"{at}", easy()) as world:
            await world.renew()
            world.cut = Cut(at, after)
            operation = world.wiping()
            try:
                await world.driver.perform(operation, world.node)
            except CutError:
                cuts += 1
            else:
                assert world.cut.steps < at
                break
            world.cut = Cut()
            enters = {"factory", *(await world.kept()).values()}
            assert world.password in enters, f"cut {at}: the BMC's password is kept nowhere"
            seen = await world.driver.observe(operation, world.node)
            assert seen.result in ("done", "not_done")
            if seen.result == "not_done":
                assert (await world.driver.perform(operation, world.node)).result == "done"
            await wiped(world)
            assert world.accounts.wrong <= 3
    assert cuts >= 15
