"""Removes from a node's BMC, and from those of its DPUs, all accounts but the site's, and says what was found and left.

A BMC is known by its serial number before anything is sent: the node's by the one that is registered, a DPU's by that
of a card which the node's agent shows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Struct

from hostler.core.state.assets import BMC_CERTIFICATE, DPU_BMC
from hostler.core.state.certificate_document import BmcCompared
from hostler.core.state.dpu_login import login_at
from hostler.core.state.dpus import Dpu, bmcs_of, dpus_of
from hostler.core.state.model import Node, Verdict
from hostler.core.state.operations import Sanitise
from hostler.drivers.redfish.account_removal import AccountsLeft
from hostler.drivers.redfish.client import Clients, RedfishClient
from hostler.drivers.redfish.http_exchange import bmc_address, parse_address
from hostler.drivers.redfish.login_driver import check_card
from hostler.drivers.redfish.operation_driver import check_identity
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import LoginRefusedError, PortError

BMC_S = 240.0
"""Longest time for each question to a BMC."""
BUILT_IN = frozenset({"NvdBluefieldUefi"})
"""Accounts of a BlueField's BMC by which its own UEFI enters it (NVIDIA BlueField BMC Software, User Management)."""
_NOT_ASKED = "the SKU's sanitise names no accounts, so none was looked at"

AccountsTurn = Callable[[RedfishClient, frozenset[str]], Awaitable[AccountsLeft]]
"""Removes a BMC's accounts but those named, or only looks at them."""


class _Cleared(Struct, frozen=True):
    """One BMC of a DPU: the card's serial number, "" where it was not told, and how it came out."""

    serial: str
    verdict: Verdict
    text: str


class _Entered(NamedTuple):
    """Address of a DPU's BMC, and the certificate that it is known by."""

    address: str
    certificate: str


class AccountClearing:
    """Clears accounts over Redfish, one BMC by itself, those of DPUs side by side."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def of_node(self, act: Sanitise, node: Node, clear: AccountsTurn) -> BmcCompared:
        """The accounts of the node's own BMC."""
        if act.accounts is None:
            return BmcCompared("accounts", Verdict.never_verified, _NOT_ASKED)
        try:
            async with asyncio.timeout(BMC_S):
                found = await self._of_node(act.accounts, node, clear)
        except TimeoutError:
            return BmcCompared("accounts", Verdict.inconclusive, f"BMC accounts: no answer in {BMC_S:.0f} s")
        except (PortError, WireError) as error:
            return BmcCompared("accounts", Verdict.inconclusive, f"BMC accounts: {error}"[:300])
        if found.left:
            left = ", ".join(found.left)
            told = f"its BMC keeps the account {left}: delete it there, or name it in sanitise.accounts"
            return BmcCompared("accounts", Verdict.failed, told[:300])
        return BmcCompared("accounts", Verdict.passed, _gone(found)[:300])

    async def of_dpus(self, act: Sanitise, node: Node, clear: AccountsTurn) -> tuple[BmcCompared, ...]:
        """The accounts of its DPUs' BMCs, and what nobody looks at there; () for a node that has none to clear."""
        cards, named = dpus_of(node, act.keep), bmcs_of(node)
        if not cards and not named:
            return ()
        unseen = BmcCompared("dpu_system", Verdict.never_verified, _unseen(cards)[:300])
        if act.accounts is None:
            return (BmcCompared("dpu_accounts", Verdict.never_verified, _NOT_ASKED), unseen)
        stay = frozenset(act.accounts) | BUILT_IN
        found = await asyncio.gather(
            *(
                self._of_dpu(_Entered(one, login_at(node.dpu_logins, one).certificate), cards, stay, clear)
                for one in named
            )
        )
        return (_judged(node, cards, found), unseen)

    async def _of_node(self, stay: tuple[str, ...], node: Node, clear: AccountsTurn) -> AccountsLeft:
        address = bmc_address(node)
        client = self._clients(address.origin, node.binding(BMC_CERTIFICATE))
        client.begin()
        check_identity(client.origin, await client.system(address.system), node)
        return await clear(client, frozenset({*stay, self._clients.entered_as(address.origin)}))

    async def _of_dpu(
        self, entered: _Entered, cards: tuple[Dpu, ...], stay: frozenset[str], clear: AccountsTurn
    ) -> _Cleared:
        named = entered.address
        try:
            async with asyncio.timeout(BMC_S):
                address = parse_address(named)
                client = self._clients(address.origin, entered.certificate)
                client.begin()
                system = await client.system(address.system)
                check_card(named, system, tuple(card.serial for card in cards if card.serial))
                serial = system.serial
                found = await clear(client, stay | {self._clients.entered_as(address.origin)})
        except TimeoutError:
            return _Cleared("", Verdict.inconclusive, f"{named}: no answer in {BMC_S:.0f} s")
        except LoginRefusedError as error:
            return _Cleared("", Verdict.inconclusive, f"{named}: {error}; {_LOGIN}")
        except (PortError, WireError) as error:
            return _Cleared("", Verdict.inconclusive, f"{named}: {error}")
        if found.left:
            left = ", ".join(found.left)
            told = f"{named} keeps the account {left}: delete it there, or name it in sanitise.accounts"
            return _Cleared(serial, Verdict.failed, told)
        return _Cleared(serial, Verdict.passed, f"{serial}: {_gone(found)}")


_LOGIN = (
    "is its password the vendor's again? set the one that bmc.json names, or have it renewed (hostler bmc credentials "
    "rotate NODE --dpu ADDRESS)"
)


def _gone(found: AccountsLeft) -> str:
    return f"removed {', '.join(found.removed)}" if found.removed else "none but those that stay"


def _judged(node: Node, cards: tuple[Dpu, ...], found: list[_Cleared]) -> BmcCompared:
    """The verdict on all DPUs together: a card of which no BMC was entered has not been cleared."""
    cleared = {one.serial for one in found if one.serial}
    bare = [f"{card.slot} ({card.serial or 'no serial number'})" for card in cards if card.serial not in cleared]
    wrong = [one for one in found if one.verdict is not Verdict.passed]
    if not wrong and not bare:
        return BmcCompared("dpu_accounts", Verdict.passed, "; ".join(one.text for one in found)[:300])
    told = [one.text for one in wrong]
    if bare:
        told.append(
            f"nobody has cleared the BMC of DPU {', '.join(bare)}: name it (hostler node rebind {node.id} --kind "
            f"{DPU_BMC} --value https://… --reason …), or the slot in sanitise.keep"
        )
    failed = any(one.verdict is Verdict.failed for one in wrong)
    verdict = Verdict.failed if failed else Verdict.inconclusive
    return BmcCompared("dpu_accounts", verdict, f"DPU accounts: {'; '.join(told)}"[:500])


def _unseen(cards: tuple[Dpu, ...]) -> str:
    slots = ", ".join(card.slot for card in cards) or "its DPUs"
    return f"nobody looked at what the Arm cores of {slots} run and store: install their image anew where it matters"
