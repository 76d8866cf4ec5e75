"""Hands each boot's secret to the machine through its BMC before a power-on: an HTTP boot address, or a medium.

The address stands in no record and no log. A BMC that keeps none is given a boot medium in a virtual drive, where the
configuration has one; one that takes neither boots its machine by PXE, known by its MAC address alone, where the
configuration allows that.
"""

from collections.abc import Callable

from msgspec.structs import replace

from hostler.core.boot.boot_target import IMAGE, boot_target_of
from hostler.core.boot.secrets import DOOR, MEDIUM, secret_of
from hostler.core.state.boot import BootConfiguration
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import SetBootNetwork
from hostler.ports import OperationDriver, RefusedError

_SET = "set_boot_network"


class BootSecretHandover:
    """The BMC driver, with the machine's next boot set before it is powered on. Raises only PortError."""

    kinds = frozenset({_SET, "power_on"})

    def __init__(self, bmc: OperationDriver, fleet: Callable[[], Fleet], key: bytes) -> None:
        self._bmc = bmc
        self._fleet = fleet
        self._key = key

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """As the BMC driver does; a power-on of a plan sets the boot first, so that each boot has its own secret."""
        boots = self._fleet().configuration_of(node).boot
        if boots is None or not operation.plan:
            return await self._bmc.perform(operation, node)
        if operation.kind != _SET and (await self._bmc.observe(operation, node)).result == "done":
            return await self._bmc.perform(operation, node)  # it is on: an override would wait for some later boot
        said = await self._set(operation, node, boots)
        if operation.kind == _SET or said.result != "done":
            return said
        powered = await self._bmc.perform(operation, node)
        return replace(powered, detail=f"{powered.detail}; {said.detail}"[:500])

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """As the BMC driver does."""
        return await self._bmc.observe(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """As the BMC driver does."""
        await self._bmc.revoke(operation, node)

    async def before_reboot(self, operation: Operation, node: Node) -> str:
        """Set the boot of a node that is about to restart itself; what was done, "" where it does not boot by network.

        Raises PortError where its BMC has not taken the secret: the machine would be held at its boot loader.
        """
        boots = self._fleet().configuration_of(node).boot
        if boots is None or not operation.plan or boot_target_of(self._fleet(), node).kind != IMAGE:
            return ""
        if not node.binding("bmc") and boots.mac_only:
            return "known by its MAC address alone, as it has no BMC"
        said = await self._set(operation, node, boots)
        if said.result != "done":
            raise RefusedError(f"its BMC was not given the secret of this boot, so it is not restarted: {said.detail}")
        return said.detail

    async def _set(self, operation: Operation, node: Node, boots: BootConfiguration) -> Outcome:
        secret = secret_of(self._key, node.id, operation.plan, DOOR)
        url = f"{boots.url}/n/{node.id}/{secret}/boot.efi"
        asked = replace(operation, act=SetBootNetwork("uefi_http", url))
        try:
            said = await self._bmc.perform(asked, node)
            if said.result == "done":
                return replace(said, detail="its BMC has the secret of this boot")
            why = said.detail
        except RefusedError as refused:
            why = str(refused)
        why = why.replace(secret, "…")[:300]
        if boots.media is not None:
            put_in = await self._by_medium(operation, node)
            if isinstance(put_in, Outcome):
                return put_in
            why = f"{why}; {put_in}"[:500]
        if not boots.mac_only:
            instead = "let machines boot that are known by their MAC address alone (boot.mac_only), or repair its BMC"
            raise RefusedError(f"its BMC cannot be given the secret of this boot: {why}; {instead}")
        return await self._by_mac(operation, node, why)

    async def _by_medium(self, operation: Operation, node: Node) -> Outcome | str:
        """Put the medium of this boot into a virtual drive; why not, where no drive takes it.

        Nothing goes in that is not recorded: whoever takes over would not have it out again.
        """
        known = self._fleet().nodes.get(node.id)
        medium = known.medium if known is not None else None
        if medium is None or medium.plan != operation.plan:
            return "that a boot medium may be in is not recorded"
        secret = secret_of(self._key, node.id, operation.plan, MEDIUM)
        url = f"{medium.images}{secret}/{medium_file(node.id)}"
        try:
            said = await self._bmc.perform(replace(operation, act=SetBootNetwork("medium", url)), node)
        except RefusedError as refused:
            return str(refused).replace(secret, "…")
        detail = said.detail.replace(secret, "…")
        if said.result == "done":
            return replace(said, detail="its virtual drive has the secret of this boot")
        if said.result != "unknown":
            return detail
        if operation.kind == _SET:
            return replace(said, result="done", detail=f"{detail}; it is looked at again before the power-on")
        return replace(said, detail=detail)

    async def _by_mac(self, operation: Operation, node: Node, why: str) -> Outcome:
        said = await self._bmc.perform(replace(operation, act=SetBootNetwork()), node)
        return replace(said, detail=f"known by its MAC address alone, as its BMC was given no secret: {why}")


def medium_file(node: str) -> str:
    """File name of a node's boot media: some BMCs show no more of what is in a drive."""
    return f"hostler-{node}.iso"
