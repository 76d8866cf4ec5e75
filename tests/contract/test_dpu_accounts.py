"""Accounts of a node's DPUs are cleared at their own BMCs: emulated ones of BlueField cards, by the real driver."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.app.account_clearing import AccountClearing
from hostler.core.state.assets import DPU_BMC, Binding
from hostler.core.state.certificate_document import BmcCompared
from hostler.core.state.model import Node, Verdict
from hostler.core.state.operations import Sanitise
from hostler.core.state.packed_strings import pairs
from hostler.drivers.redfish.account_removal import remove_accounts, strange_accounts
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.secrets.secret_files import SecretFiles
from hostler.sim.bmc.bmc_accounts import Account, AccountRules, BmcAccounts
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaultRule, RequestFaults
from tests.kit import NOW, a_node

ORDER = Sanitise(accounts=("service",))
RULES = AccountRules(threshold=4, shortest=13, longest=20)
"""Demands of a BlueField's BMC (NVIDIA BlueField BMC Software, User Management)."""
CARDS = ("MT2334X00001", "MT2334X00002")
ALL = {"root", "NvdBluefieldUefi", "globex"}
LOGIN = Access("root", "site-password-1")


def now() -> datetime:
    return datetime.now(UTC)


def of_a_bluefield() -> BmcAccounts:
    """The accounts of a BlueField out of the box, and one that a tenant has made."""
    names = ("root", "NvdBluefieldUefi", "globex")
    return BmcAccounts([Account(name, name, "site-password-1") for name in names], RULES)


class World(Struct):
    """A node with two DPUs, whose BMCs are held by serial number."""

    clearing: AccountClearing
    node: Node
    accounts: dict[str, BmcAccounts]
    faults: dict[str, RequestFaults]
    addresses: dict[str, str]

    async def clear(self, act: Sanitise = ORDER) -> dict[str, BmcCompared]:
        return {one.aspect: one for one in await self.clearing.of_dpus(act, self.node, remove_accounts)}

    async def dpus(self, act: Sanitise = ORDER) -> BmcCompared:
        return (await self.clear(act))["dpu_accounts"]

    def names(self, card: str) -> set[str]:
        return {slot.username for slot in self.accounts[card].slots if slot.enabled}

    def name(self, *cards: str) -> None:
        """Record these cards' BMCs and no others."""
        kept = [one for one in self.node.bindings if one.kind != DPU_BMC]
        named = " ".join(self.addresses[card] for card in cards)
        self.node = replace(self.node, bindings=(*kept, *([Binding(DPU_BMC, named, NOW)] if cards else [])))


async def secrets_of(folder: Path) -> SecretFiles:
    found = SecretFiles(folder)
    await found.store("dpu", {"username": "root", "password": "site-password-1"}, "")
    return found


@asynccontextmanager
async def a_world(access: Access = LOGIN, secrets: Path | None = None) -> AsyncIterator[World]:
    held = {card: of_a_bluefield() for card in CARDS}
    faults = {card: RequestFaults() for card in CARDS}
    async with Farm(now) as farm, Connections() as connections:
        addresses = {}
        for card in CARDS:
            machine = Machine("Bluefield", Hardware(card), Delays(), Quirks(vendor="bluefield3"))
            addresses[card] = await farm.serve(Service([machine], faults[card], held[card]))
        shown = pairs((f"agent/dpu.mlx5_{number}", card) for number, card in enumerate(CARDS))
        kept = await secrets_of(secrets) if secrets is not None else None
        clients = Clients(connections, lambda _origin: replace(access, timeout_s=20), secrets=kept)
        world = World(AccountClearing(clients), a_node("a", hardware_own=shown), held, faults, addresses)
        world.name(*CARDS)
        yield world


async def test_accounts_that_are_not_the_site_s_go_and_the_certificate_names_each_card() -> None:
    """Mutants: the tenant's stays; that of the card's UEFI goes; that by which Hostler enters goes."""
    async with a_world() as world:
        found = await world.clear()
        assert [world.names(card) for card in CARDS] == [{"root", "NvdBluefieldUefi"}] * 2
        assert found["dpu_accounts"].verdict is Verdict.passed
        assert found["dpu_accounts"].detail == "; ".join(f"{card}: removed globex" for card in CARDS)
        assert found["dpu_system"].verdict is Verdict.never_verified
        assert "the Arm cores of mlx5_0, mlx5_1" in found["dpu_system"].detail
        assert (await world.dpus()).detail == "; ".join(f"{card}: none but those that stay" for card in CARDS)


async def test_a_login_that_is_kept_as_a_secret_is_not_removed_by_whom_it_lets_in(tmp_path: Path) -> None:
    """Mutant: bmc.json names a secret and no user, so that Hostler removes the account by which it enters."""
    async with a_world(Access(secret="dpu"), tmp_path) as world:
        assert (await world.dpus()).verdict is Verdict.passed
        assert "root" in world.names(CARDS[0])
        world.accounts[CARDS[0]].slots.append(Account("eve", "eve", "secret"))
        named = (Binding("serial", CARDS[0], NOW), Binding("bmc", world.addresses[CARDS[0]], NOW))
        found = await world.clearing.of_node(ORDER, replace(world.node, bindings=named), remove_accounts)
        assert found.detail == "removed NvdBluefieldUefi, eve", "of a node's own BMC none is built in"
        assert world.names(CARDS[0]) == {"root"}


async def test_looking_removes_nothing() -> None:
    async with a_world() as world:
        (found, _) = await world.clearing.of_dpus(ORDER, world.node, strange_accounts)
        assert (found.verdict, "keeps the account globex" in found.detail) == (Verdict.failed, True)
        assert "globex" in world.names(CARDS[0])


Spoil = Callable[[World], None]


def keeps(world: World) -> None:
    world.accounts[CARDS[1]].keeps = frozenset({"globex"})


def forbids(world: World) -> None:
    world.faults[CARDS[1]].add(RequestFaultRule("*/Accounts/globex", "DELETE", status=403, times=0))


def locks(world: World) -> None:
    world.accounts[CARDS[1]].slots[0].locked = True


def is_reset(world: World) -> None:
    """Bring the vendor's login back: a new board, or a tenant's factory reset."""
    world.accounts[CARDS[1]].factory_reset()


def demands(world: World) -> None:
    world.accounts[CARDS[1]].slots[0].change = True


def is_away(world: World) -> None:
    world.faults[CARDS[1]].add(RequestFaultRule(drop="before", times=0))


def answers_rubbish(world: World) -> None:
    world.faults[CARDS[1]].add(RequestFaultRule("*/AccountService", patch={"Accounts": None}, times=0))


@pytest.mark.parametrize(
    ("spoil", "verdict", "told"),
    [
        (keeps, Verdict.failed, "keeps the account globex: delete it there, or name it in sanitise.accounts"),
        (forbids, Verdict.failed, "keeps the account globex"),
        (locks, Verdict.inconclusive, "is its password the vendor's again?"),
        (is_reset, Verdict.inconclusive, "is its password the vendor's again? set the one that bmc.json names"),
        (demands, Verdict.inconclusive, "PasswordChangeRequired"),
        (is_away, Verdict.inconclusive, "gave no answer"),
        (answers_rubbish, Verdict.inconclusive, "no link to Accounts"),
    ],
)
async def test_one_bmc_that_lies_or_refuses_keeps_the_node_and_no_other_card(
    spoil: Spoil, verdict: Verdict, told: str
) -> None:
    """Mutants: a 204 counts; a refused login is a BMC without accounts; one that is cleared speaks for all."""
    async with a_world() as world:
        spoil(world)
        found = await world.dpus()
        assert (found.verdict, told in found.detail) == (verdict, True), found
        assert world.addresses[CARDS[1]] in found.detail
        assert world.names(CARDS[0]) == {"root", "NvdBluefieldUefi"}
        assert world.accounts[CARDS[1]].wrong < RULES.threshold


async def test_another_machine_s_dpu_loses_no_account() -> None:
    """Two cables were swapped. Mutant: the serial number is not compared."""
    async with a_world() as world:
        world.node = replace(world.node, hardware_own=pairs([("agent/dpu.mlx5_0", CARDS[0])]))
        found = await world.dpus()
        assert found.verdict is Verdict.inconclusive
        assert f"shows the serial number '{CARDS[1]}', and the node's agent shows {CARDS[0]}" in found.detail
        assert "globex" in world.names(CARDS[1])


@pytest.mark.parametrize(("named", "bare"), [((), "mlx5_0"), ((CARDS[0],), "mlx5_1")])
async def test_a_dpu_whose_bmc_nobody_named_is_told_with_the_command(named: tuple[str, ...], bare: str) -> None:
    """Mutants: a node without any is cleared; one card's BMC stands for both."""
    async with a_world() as world:
        world.name(*named)
        found = await world.dpus()
        assert (found.verdict, f"{bare} (MT2334X" in found.detail) == (Verdict.inconclusive, True)
        assert "hostler node rebind a --kind dpu_bmc" in found.detail


async def test_a_slot_that_is_kept_needs_none_and_a_card_without_a_number_is_never_taken_for_cleared() -> None:
    """Mutants: `keep` is of drives alone; "" is a serial number like another."""
    async with a_world() as world:
        world.name(CARDS[0])
        assert (await world.dpus(replace(ORDER, keep=("mlx5_1",)))).verdict is Verdict.passed
        world.node = replace(world.node, hardware_own=pairs([("agent/dpu.mlx5_0", "")]))
        found = await world.dpus()
        assert (found.verdict, "mlx5_0 (no serial number)" in found.detail) == (Verdict.inconclusive, True)


async def test_without_accounts_in_the_sku_none_is_touched_and_without_dpus_nothing_is_said() -> None:
    async with a_world() as world:
        found = await world.dpus(replace(ORDER, accounts=None))
        assert (found.verdict, world.names(CARDS[0])) == (
            Verdict.never_verified,
            {"root", "NvdBluefieldUefi", "globex"},
        )
        world.name()
        world.node = replace(world.node, hardware_own=pairs([]))
        assert await world.clear() == {}
