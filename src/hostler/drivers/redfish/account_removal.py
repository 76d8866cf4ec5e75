"""Removes accounts from a BMC that are not to stay, and reads whether they are gone: a 200 proves nothing.

DSP0266: an account is deleted by DELETE where the BMC makes accounts, and emptied by PATCH where it has fixed slots
(Dell, Supermicro). A slot without a name, or one that is disabled, is nobody's.
"""

from msgspec import Struct

from hostler.drivers.redfish.client import NotOfferedError, RedfishClient
from hostler.drivers.redfish.wire_accounts import AccountSlot
from hostler.ports import RefusedError


class AccountsLeft(Struct, frozen=True):
    """Names that were removed, and those that are still there, though nobody said that they stay."""

    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


async def remove_accounts(client: RedfishClient, keep: frozenset[str]) -> AccountsLeft:
    """Remove every account that is in use but those named. Raises PortError; what was removed stays so."""
    collection = (await client.password_rules()).accounts
    strange = _in_use(await client.slots(collection), keep)
    async with client.alone:
        for slot in strange:
            await _remove(client, slot)
    left = _in_use(await client.slots(collection), keep) if strange else ()
    gone = {slot.username for slot in strange} - {slot.username for slot in left}
    return AccountsLeft(tuple(sorted(gone)), tuple(sorted(slot.username for slot in left)))


async def strange_accounts(client: RedfishClient, keep: frozenset[str]) -> AccountsLeft:
    """Look for accounts in use but those named, and change nothing. Raises PortError."""
    found = _in_use(await client.slots((await client.password_rules()).accounts), keep)
    return AccountsLeft(left=tuple(sorted(slot.username for slot in found)))


def _in_use(slots: list[AccountSlot], keep: frozenset[str]) -> list[AccountSlot]:
    return [slot for slot in slots if slot.enabled and slot.username and slot.username not in keep]


async def _remove(client: RedfishClient, slot: AccountSlot) -> None:
    """Delete it; of a BMC with fixed slots disable it. What it refuses shows when the slots are read again."""
    try:
        await client.send("DELETE", slot.path, {})
    except NotOfferedError:
        await client.patch(slot.path, {"Enabled": False}, slot.etag)
    except RefusedError:
        return
