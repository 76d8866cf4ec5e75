"""Passwords of the BMCs of DPUs: emulated ones of BlueField cards, the same lies and the same proof as of any BMC.

A card is known by the serial number that its node's agent shows, which the BMC pads with blanks.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.app.account_clearing import AccountClearing
from hostler.core.state.assets import DPU_BMC, Binding
from hostler.core.state.dpu_login import DpuLogin
from hostler.core.state.model import Operation, Outcome, Verdict
from hostler.core.state.operations import RenewDpuLogin, Sanitise, WipeDpuLogin
from hostler.core.state.packed_strings import pairs
from hostler.drivers.redfish.account_removal import remove_accounts
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.login_driver import LoginDriver
from hostler.ports import LoginRefusedError, PortError, RefusedError, UnreachableError
from hostler.sim.bmc.bmc_accounts import Account, AccountRules, BmcAccounts
from tests.contract.credential_world import CERTIFICATES, START, CredentialWorld, Cut, CutError, credential_world
from tests.drawing import first_in_gate

RULES = AccountRules(threshold=4, shortest=13, longest=20)
"""Demands of a BlueField's BMC (NVIDIA BlueField BMC Software, User Management)."""
EASY = AccountRules(threshold=4, shortest=6, longest=20)
PIN = CERTIFICATES[0].fingerprint


def of_a_bluefield(rules: AccountRules = RULES) -> BmcAccounts:
    """The accounts out of the box: the vendor's password has to be changed before anything else."""
    uefi = Account("NvdBluefieldUefi", "NvdBluefieldUefi", "of-its-own-uefi")
    return BmcAccounts([Account("root", "root", "factory", change=True), uefi], rules)


def a_card(
    folder: Path, rules: AccountRules = RULES, pin: str = "first_contact"
) -> AbstractAsyncContextManager[CredentialWorld]:
    return credential_world(folder, of_a_bluefield(rules), pin=pin, vendor="bluefield3")


def seated(world: CredentialWorld, *, certificate: str = "") -> str:
    """The world's BMC as that of a DPU of a node which has no other BMC; returns its address."""
    bmc = next(one.value for one in world.node.bindings if one.kind in ("bmc", DPU_BMC))
    shown = pairs([("agent/dpu.mlx5_0", "SN1")])
    known = (DpuLogin(bmc, certificate=certificate),)
    bindings = (Binding("serial", "NODE-7", START), Binding(DPU_BMC, bmc, START))
    world.node = replace(world.node, bindings=bindings, hardware_own=shown, dpu_logins=known)
    return bmc


def renewing(
    world: CredentialWorld, *, certificate: str = "", cards: tuple[str, ...] = ("SN1",), anew: bool = False
) -> Operation:
    return replace(world.operation(), act=RenewDpuLogin(seated(world), cards, certificate, anew))


def wiping(world: CredentialWorld, certificate: str = PIN) -> Operation:
    return replace(world.operation(), act=WipeDpuLogin(seated(world), ("SN1",), certificate), aside=False)


async def renewed(world: CredentialWorld, **how: object) -> Outcome:
    operation = renewing(world, **how)  # type: ignore[arg-type]
    return await world.driver.perform(operation, world.node)


async def proved(world: CredentialWorld) -> None:
    """The kept password is the BMC's, nothing waits, and whoever asks the BMC enters by it."""
    kept = await world.kept()
    assert kept["password"] == world.password != "factory"
    assert not {"pending", "tried"} & set(kept)
    client = world.clients(seated(world), PIN)
    client.begin()
    assert (await client.system("")).serial == "SN1"
    assert world.accounts.lockouts == 0


async def test_from_the_factory_to_a_swapped_card_and_no_word_tells_a_password(tmp_path: Path) -> None:
    """Mutants: the card that showed itself is not told; the node's own serial number is asked for; a password is."""
    async with a_card(tmp_path) as world:
        first = await renewed(world)
        assert (first.result, first.detail) == ("done", "entered by the factory login; the new password is proved")
        assert (first.facts["serial"], first.facts["certificate"]) == ("SN1", PIN)
        assert 13 <= len(world.password) <= 20
        assert world.password not in repr(first)
        await proved(world)
        before = world.password
        assert (await renewed(world, certificate=PIN)).result == "done"
        assert (await world.kept())["previous"] == before != world.password
        await proved(world)
        world.accounts.factory_reset()
        again = await renewed(world, certificate=PIN)
        assert "factory login" in again.detail
        assert world.password not in repr(again)
        await proved(world)


@pytest.mark.parametrize("cards", [("SN2",), (), ("",)])
async def test_another_machine_s_bmc_keeps_its_login(tmp_path: Path, cards: tuple[str, ...]) -> None:
    """Two cables were swapped. Mutants: whoever answers there is given the password; "" is a serial number."""
    accounts = BmcAccounts([Account("root", "root", "factory")], RULES)
    async with credential_world(tmp_path, accounts, pin="first_contact", vendor="bluefield3") as world:
        outcome = await renewed(world, cards=cards)
        assert outcome.result == "refused"
        assert "shows the serial number 'SN1', and the node's agent shows" in outcome.detail
        assert "dpu_bmc binding" in outcome.detail
        assert world.password == "factory"


async def test_a_bmc_that_shows_no_number_is_no_card_s(tmp_path: Path) -> None:
    """Mutant: who shows none passes, as none contradicts."""
    accounts = BmcAccounts([Account("root", "root", "factory")], RULES)
    async with credential_world(tmp_path, accounts, pin="first_contact", vendor="bluefield3") as world:
        world.machine.hardware = replace(world.machine.hardware, serial="")  # type: ignore[union-attr]
        for cards in (("SN1",), ("",)):
            outcome = await renewed(world, cards=cards)
            assert (outcome.result, "shows the serial number 'none'" in outcome.detail) == ("refused", True), outcome
        assert world.password == "factory"


async def test_another_certificate_is_shown_nothing_and_the_command_is_told(tmp_path: Path) -> None:
    """A card was swapped, or somebody else answers. Mutants: only the node's own BMC is pinned; it is trusted anew."""
    async with a_card(tmp_path) as world:
        assert (await renewed(world)).result == "done"
        wrong, ours = world.accounts.wrong, world.password
        outcome = await renewed(world, certificate=CERTIFICATES[1].fingerprint)
        assert outcome.result == "refused"
        assert "is pinned; nothing was sent" in outcome.detail
        named = f"hostler bmc credentials rotate n1 --dpu {seated(world)} --certificate SHA256"
        assert named in outcome.detail
        assert (world.accounts.wrong, world.password) == (wrong, ours)


async def test_with_admission_a_certificate_has_to_be_recorded_first(tmp_path: Path) -> None:
    """Mutant: the first certificate that is shown is trusted although the site wants to look at it."""
    async with a_card(tmp_path, pin="admission") as world:
        outcome = await renewed(world)
        assert outcome.result == "refused"
        assert "rotate NODE --dpu ADDRESS --certificate FINGERPRINT" in outcome.detail
        assert world.password == "factory"
        assert (await renewed(world, certificate=PIN)).result == "done"
        await proved(world)


@pytest.mark.parametrize("lie", ["forgets", "says_error", "late", "resets_before", "resets_after"])
async def test_a_bmc_that_says_yes_and_is_not_so_loses_nothing(tmp_path: Path, lie: str) -> None:
    """The BMC keeps the old one, answers 200 with an error, takes it after a restart, or loses power before or after.

    Mutants: its yes is proof; the old password is dropped before the new one is proved.
    """
    async with a_card(tmp_path) as world:
        await renewed(world)
        world.accounts.lie = lie  # type: ignore[assignment]
        with pytest.raises(UnreachableError):
            await renewed(world, certificate=PIN)
        assert world.password in (await world.kept()).values()
        world.accounts.lie = ""
        world.pass_by(400)
        assert (await renewed(world, certificate=PIN)).result == "done"
        await proved(world)


async def test_its_account_is_never_locked_by_us(tmp_path: Path) -> None:
    """Mutants: tries of several renewals do not add up; a person's word is not needed."""
    async with a_card(tmp_path) as world:
        await renewed(world)
        world.accounts.slots[0].password = "somebody else's"
        for _ in range(8):
            assert (await renewed(world, certificate=PIN)).result == "refused"
        assert "`--dpu ADDRESS` for a DPU's" in (await renewed(world, certificate=PIN)).detail
        assert world.accounts.lockouts == 0
        assert world.accounts.wrong < RULES.threshold
        await world.keep(**(await world.kept() | {"password": "somebody else's"}))
        assert (await renewed(world, certificate=PIN)).result == "refused", "tries are counted until a person says so"
        assert (await renewed(world, certificate=PIN, anew=True)).result == "done"
        await proved(world)


@pytest.mark.parametrize("after", first_in_gate([True, False]), ids=["after", "before"])
async def test_each_cut_is_gone_on_from(tmp_path: Path, after: bool) -> None:
    """The process ends before or after every second step, of the store and of the BMC; who takes over looks first.

    Mutants: the secret is written after the BMC; who takes over forgets which card it was, or its certificate.
    """
    at, cuts = -1, 0
    while True:
        at += 2
        async with a_card(tmp_path / f"{at}") as world:
            world.cut = Cut(at, after)
            operation = renewing(world)
            try:
                await world.driver.perform(operation, world.node)
            except CutError:
                cuts += 1
            else:
                break
            world.cut = Cut()
            assert world.password in {"factory", *(await world.kept()).values()}
            seen = await world.driver.observe(operation, world.node)
            assert seen.result in ("done", "not_done")
            if seen.result == "not_done":
                seen = await world.driver.perform(operation, world.node)
            assert (seen.result, seen.facts["serial"], seen.facts["certificate"]) == ("done", "SN1", PIN)
            await proved(world)
            assert world.accounts.wrong <= 1
    assert cuts >= 8


async def test_who_takes_over_and_finds_another_card_there_says_so(tmp_path: Path) -> None:
    """Mutant: what is kept is proof of whose BMC it is."""
    async with a_card(tmp_path) as world:
        operation = renewing(world)
        assert (await world.driver.perform(operation, world.node)).result == "done"
        world.machine.hardware = replace(world.machine.hardware, serial="SN9")  # type: ignore[union-attr]
        seen = await world.driver.observe(operation, world.node)
        assert (seen.result, "shows the serial number 'SN9'" in seen.detail) == ("refused", True)


async def test_before_its_node_is_retired_the_vendors_password_is_back(tmp_path: Path) -> None:
    """Mutants: the node's own BMC is meant; ours still enters; the secret stays."""
    async with a_card(tmp_path, EASY) as world:
        await renewed(world)
        ours = world.password
        outcome = await world.driver.perform(wiping(world), world.node)
        assert outcome.result == "done", outcome
        assert ours not in repr(outcome)
        assert (world.password, await world.kept(), world.accounts.lockouts) == ("factory", {}, 0)
        assert (await world.driver.observe(wiping(world), world.node)).result == "done"


async def test_a_bluefield_refuses_its_own_vendor_s_password_by_its_rules_and_ours_stays(tmp_path: Path) -> None:
    """Thirteen characters at least, and the vendor's has fewer. Mutant: what cannot be set is taken for set."""
    async with a_card(tmp_path) as world:
        await renewed(world)
        ours = world.password
        outcome = await world.driver.perform(wiping(world), world.node)
        assert (outcome.result, "does not meet the password policy" in outcome.detail) == ("refused", True)
        assert (await world.kept())["password"] == ours == world.password


@pytest.mark.parametrize("after", first_in_gate([True, False]), ids=["after", "before"])
async def test_each_cut_of_a_wipe_is_gone_on_from(tmp_path: Path, after: bool) -> None:
    """Mutant: the secret is erased before the vendor's password is proved."""
    at, cuts = -2, 0
    while True:
        at += 3
        async with a_card(tmp_path / f"{at}", EASY) as world:
            await renewed(world)
            operation, world.cut = wiping(world), Cut(at, after)
            try:
                await world.driver.perform(operation, world.node)
            except CutError:
                cuts += 1
            else:
                break
            world.cut = Cut()
            assert world.password in {"factory", *(await world.kept()).values()}
            if (await world.driver.observe(operation, world.node)).result == "not_done":
                assert (await world.driver.perform(operation, world.node)).result == "done"
            assert (world.password, await world.kept(), world.accounts.lockouts) == ("factory", {}, 0)
    assert cuts >= 5


async def test_accounts_are_cleared_by_the_certificate_and_the_password_that_were_proved(tmp_path: Path) -> None:
    """Mutant: whoever clears accounts knows no certificate of a DPU's BMC, and with a pin enters none."""
    async with a_card(tmp_path) as world:
        clearing = AccountClearing(world.clients)
        seated(world)
        (found, _) = await clearing.of_dpus(Sanitise(accounts=()), world.node, remove_accounts)
        assert (found.verdict, "no certificate of" in found.detail) == (Verdict.inconclusive, True)
        await renewed(world)
        world.accounts.slots.append(Account("globex", "globex", "a-tenant's-own"))
        seated(world, certificate=PIN)
        sessions = world.clients._sessions  # noqa: SLF001 - another controller's clients know no certificate yet
        clearing = AccountClearing(Clients(sessions, lambda _: world.access, secrets=world.secrets))
        (found, _) = await clearing.of_dpus(Sanitise(accounts=()), world.node, remove_accounts)
        assert (found.verdict, found.detail) == (Verdict.passed, "SN1: removed globex")
        assert {slot.username for slot in world.accounts.slots if slot.enabled} == {"root", "NvdBluefieldUefi"}


async def test_one_that_bmc_json_gives_no_password_of_its_own_is_the_site_s(tmp_path: Path) -> None:
    """Mutant: a person is called about each DPU of a site that sets these passwords itself."""
    async with a_card(tmp_path) as world:
        world.access = replace(world.access, factory="")
        clients = Clients(world.clients._sessions, lambda _: world.access, secrets=world.secrets)  # noqa: SLF001
        driver = LoginDriver(clients, world.secrets, world.clock)
        outcome = await driver.perform(renewing(world), world.node)
        assert (outcome.result, outcome.facts) == ("refused", {"others": True})
        assert "no password of its own: name a `secret`" in outcome.detail
        with pytest.raises(RefusedError, match="no password of its own"):
            await driver.perform(wiping(world), world.node)
        assert world.password == "factory"


async def test_a_bmc_that_is_away_uses_up_no_try(tmp_path: Path) -> None:
    async with a_card(tmp_path) as world:
        await renewed(world)
        world.machine.restart_manager(world.clock())
        with pytest.raises(PortError) as told:
            await renewed(world, certificate=PIN)
        assert not isinstance(told.value, LoginRefusedError)
        assert "tried" not in await world.kept()
