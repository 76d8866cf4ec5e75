"""A BMC's password is renewed: kept, set, proved, promoted, whatever the BMC says and wherever it is cut off."""

import traceback
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.state.assets import Binding
from hostler.core.state.model import Outcome
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.ports import CertificateChangedError, LoginRefusedError, PortError, RefusedError, UnreachableError
from hostler.sim.bmc.bmc_accounts import Account, AccountRules, BmcAccounts
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.credential_world import CERTIFICATES, START, CredentialWorld, Cut, CutError, credential_world
from tests.drawing import first_in_gate


def told(outcome: Outcome, *secrets: str) -> Outcome:
    """The outcome, in which none of these stands."""
    for secret in secrets:
        assert secret not in repr(outcome)
    return outcome


async def proved(world: CredentialWorld) -> None:
    """The kept password is the BMC's, nothing waits, and whoever looks at the BMC enters by it."""
    kept = await world.kept()
    assert kept["password"] == world.password != "factory"
    assert "pending" not in kept
    assert "tried" not in kept
    assert (await RedfishReader(world.clients).look(world.node)).power == "off"
    assert world.accounts.lockouts == 0


async def test_the_factory_login_is_replaced_at_first_contact(tmp_path: Path) -> None:
    """Mutants: the factory's login stays; what is looked at with is the old password."""
    async with credential_world(tmp_path) as world:
        with pytest.raises(RefusedError, match="no such secret"):
            await RedfishReader(world.clients).look(world.node)
        outcome = await world.renew()
        told(outcome, world.password)
        assert (outcome.result, outcome.detail) == ("done", "entered by the factory login; the new password is proved")
        assert outcome.facts == {"username": "root", "pending": False, "tried": 0, "tries": 2}
        await proved(world)
        assert world.accounts.wrong == 0


async def test_a_password_is_renewed_and_the_one_before_is_kept(tmp_path: Path) -> None:
    async with credential_world(tmp_path) as world:
        await world.renew()
        first = world.password
        assert (await world.renew()).result == "done"
        await proved(world)
        assert (await world.kept())["previous"] == first != world.password
        assert world.accounts.wrong == 0


async def test_the_factory_login_is_tried_again_after_a_board_was_swapped(tmp_path: Path) -> None:
    """Mutant: what is known to be refused is shown once more, and counts towards the lock-out."""
    async with credential_world(tmp_path) as world:
        await world.renew()
        world.accounts.factory_reset()
        for _ in range(5):
            with pytest.raises(LoginRefusedError):
                await RedfishReader(world.clients).look(world.node)
        assert world.accounts.wrong == 1
        assert "factory login" in (await world.renew()).detail
        assert world.accounts.wrong == 1
        await proved(world)


# what it says, and what is so


async def test_a_password_that_was_accepted_and_forgotten_is_set_again_later(tmp_path: Path) -> None:
    """Mutant: 204 is proof."""
    async with credential_world(tmp_path) as world:
        await world.renew()
        world.accounts.lie = "forgets"
        for _ in range(4):
            with pytest.raises(UnreachableError, match="refuses it; the one before still enters"):
                await world.renew()
        kept = await world.kept()
        assert kept["password"] == world.password
        assert kept["pending"]
        assert world.accounts.lockouts == 0
        world.accounts.lie = ""
        assert (await world.renew()).result == "done"
        assert world.password == kept["pending"]
        await proved(world)


async def test_a_password_that_counts_after_a_restart_is_found_by_then(tmp_path: Path) -> None:
    """Mutant: a pending password that was not taken at once is thrown away, and the BMC is locked out for good."""
    async with credential_world(tmp_path) as world:
        await world.renew()
        world.accounts.lie = "late"
        with pytest.raises(UnreachableError):
            await world.renew()
        world.accounts.lie = ""
        world.pass_by(1)
        assert "the new password" in (await world.renew()).detail
        await proved(world)


async def test_a_200_with_an_error_is_no_success(tmp_path: Path) -> None:
    async with credential_world(tmp_path) as world:
        world.accounts.lie = "says_error"
        with pytest.raises(UnreachableError):
            await world.renew()
        assert world.password == "factory"
        world.accounts.lie = ""
        assert (await world.renew()).result == "done"
        await proved(world)


@pytest.mark.parametrize("lie", ["resets_before", "resets_after"])
async def test_a_restart_in_the_middle_loses_nothing(tmp_path: Path, lie: str) -> None:
    async with credential_world(tmp_path) as world:
        await world.renew()
        world.accounts.lie = lie  # type: ignore[assignment]
        with pytest.raises(UnreachableError):
            await world.renew()
        world.accounts.lie = ""
        with pytest.raises(UnreachableError):
            await world.renew()
        world.pass_by(400)
        assert (await world.renew()).result == "done"
        await proved(world)


@pytest.mark.parametrize("echoes", [False, True])
async def test_a_password_against_the_policy_is_not_kept_and_not_told(tmp_path: Path, echoes: bool) -> None:
    """Mutants: a refused password stays pending for ever; a BMC's words are told as they stand."""
    rules = AccountRules(forbids="-_.!", echoes=echoes)
    async with credential_world(tmp_path, BmcAccounts(rules=rules)) as world:
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert ("The password '…' does not meet" if echoes else "The password does not meet") in outcome.detail
        assert "pending" not in await world.kept()
        world.accounts.rules = AccountRules()
        assert (await world.renew()).result == "done"
        await proved(world)


@pytest.mark.parametrize("threshold", [0, 3, 5, 10])
async def test_an_account_is_never_locked_by_us(tmp_path: Path, threshold: int) -> None:
    """Mutants: 0 means that nothing locks; tries of several runs do not add up; a person's word is not needed."""
    async with credential_world(tmp_path, BmcAccounts(rules=AccountRules(threshold=threshold))) as world:
        await world.renew()
        world.accounts.slots[0].password = "somebody else's"
        outcome = None
        for _ in range(12):
            with pytest.raises(LoginRefusedError):
                await RedfishReader(world.clients).look(world.node)
            outcome = await world.renew()
            assert outcome.result == "refused"
        assert world.accounts.lockouts == 0
        assert world.accounts.wrong < (threshold or 3)
        assert outcome is not None
        assert "one more may lock the account" in outcome.detail
        await world.keep(username="root", password="somebody else's")
        assert (await world.renew(anew=True)).result == "done"
        await proved(world)


async def test_a_new_password_that_is_demanded_first_is_set_first(tmp_path: Path) -> None:
    """Mutant: its system is read before; the factory's BMC answers 403 to that."""
    accounts = BmcAccounts([Account("1", "root", "factory", change=True)], AccountRules(demands=True))
    async with credential_world(tmp_path, accounts) as world:
        assert (await world.renew()).result == "done"
        await proved(world)
        assert not world.accounts.slots[0].change


async def test_two_slots_of_one_name_are_left_to_a_person_unless_one_is_disabled(tmp_path: Path) -> None:
    """Mutant: the first slot is taken; the one that lets us in keeps its password."""
    accounts = BmcAccounts([Account("2", "root", "factory"), Account("5", "root", "factory")])
    async with credential_world(tmp_path, accounts) as world:
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert "2 enabled accounts are called 'root'" in outcome.detail
        assert world.accounts.changes == 0
        accounts.slots[0].enabled = False
        assert (await world.renew()).result == "done"
        assert [slot.password == "factory" for slot in accounts.slots] == [True, False]


async def test_another_machine_gets_no_password(tmp_path: Path) -> None:
    async with credential_world(tmp_path) as world:
        world.node = replace(world.node, bindings=(Binding("serial", "SN2", START), world.node.bindings[1]))
        assert "binding mismatch" in (await world.renew()).detail
        assert world.password == "factory"


@pytest.mark.parametrize(("shortest", "longest"), [(8, 20), (13, 20), (8, 12), (24, 32), (0, 0)])
async def test_a_password_is_as_long_as_the_bmc_takes(tmp_path: Path, shortest: int, longest: int) -> None:
    rules = AccountRules(shortest=shortest, longest=longest or 999, shows=longest > 0)
    async with credential_world(tmp_path, BmcAccounts(rules=rules)) as world:
        assert (await world.renew()).result == "done"
        assert shortest <= len(world.password) <= (longest or 20)


# cut off anywhere


@pytest.mark.parametrize("after", first_in_gate([True, False]), ids=["after", "before"])
@pytest.mark.parametrize("first", first_in_gate([False, True]), ids=["renewal", "first contact"])
async def test_each_cut_is_gone_on_from(tmp_path: Path, first: bool, after: bool) -> None:
    """Cuts before and after every single step, of the store and of the BMC, until none is left to cut.

    Mutants: the password is set before it is kept; the old one is dropped before the new one is proved; tries are
    counted in memory alone.
    """
    at, cuts = 0, 0
    while True:
        at += 1
        async with credential_world(tmp_path / f"{at}") as world:
            if not first:
                await world.renew()
            world.cut = Cut(at, after)
            operation = world.operation()
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
                assert (await world.renew()).result == "done"
            await proved(world)
            assert world.accounts.wrong <= 1
    assert cuts >= 20


async def test_the_answer_that_was_lost_is_found_in_what_is_kept(tmp_path: Path) -> None:
    async with credential_world(tmp_path, pin="first_contact") as world:
        operation = world.operation()
        done = await world.driver.perform(operation, world.node)
        seen = await world.driver.observe(operation, world.node)
        assert (seen.result, seen.facts) == ("done", done.facts)
        assert seen.facts["certificate"] == CERTIFICATES[0].fingerprint
        assert (await world.driver.observe(world.operation(), world.node)).result == "not_done"


# certificates


async def test_the_certificate_of_the_first_contact_is_told_and_then_demanded(tmp_path: Path) -> None:
    async with credential_world(tmp_path, pin="first_contact") as world:
        with pytest.raises(RefusedError, match="credentials rotate NODE`, which records it"):
            await RedfishReader(world.clients).look(world.node)
        outcome = await world.renew()
        assert outcome.facts["certificate"] == CERTIFICATES[0].fingerprint
        world.pin(str(outcome.facts["certificate"]))
        await proved(world)


@pytest.mark.parametrize("pin", ["first_contact", "admission"])
async def test_a_certificate_that_has_changed_is_refused_and_no_password_is_shown(tmp_path: Path, pin: str) -> None:
    """Mutants: a new certificate is pinned in the place of the old one; the password goes out before it is compared."""
    async with credential_world(tmp_path, pin=pin) as world:
        world.pin(CERTIFICATES[1].fingerprint)
        outcome_or_error: object
        try:
            outcome_or_error = await world.renew()
        except PortError as error:
            outcome_or_error = error
        assert "is pinned" in str(getattr(outcome_or_error, "detail", outcome_or_error))
        await world.keep(username="root", password="x")
        with pytest.raises(CertificateChangedError):
            await RedfishReader(world.clients).look(world.node)
        assert world.accounts.wrong == 0
        assert world.password == "factory"


async def test_without_a_certificate_from_admission_nothing_is_sent(tmp_path: Path) -> None:
    async with credential_world(tmp_path, pin="admission") as world:
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert "rebind NODE --kind bmc_certificate" in outcome.detail
        assert world.cut.steps == 0


# secrets stay secret


async def test_no_error_tells_a_password(tmp_path: Path) -> None:
    """An error of any request, told to anybody, holds none of the passwords."""
    for skip in range(12):
        async with credential_world(tmp_path / str(skip)) as world:
            world.faults.add(RequestFaultRule(path="/redfish/v1/*", status=400 + skip * 9, skip=skip, times=0))
            text = ""
            try:
                text = repr(await world.renew())
            except PortError as error:
                text = "".join(traceback.format_exception(error))
            kept = await world.kept()
            secrets = [value for name, value in kept.items() if name in ("password", "pending", "previous")]
            assert not [secret for secret in (*secrets, "factory'") if secret in text]
