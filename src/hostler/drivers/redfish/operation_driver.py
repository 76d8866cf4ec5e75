"""Performs a node's power, boot, firmware, light and BMC operations, each behind a check of who is at the other end."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from typing import BinaryIO

from msgspec.structs import replace

from hostler.core.state.assets import BMC_CERTIFICATE, OUTLET
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import ResetBmc, SetBootNetwork
from hostler.drivers.redfish import (
    bios_settings,
    equipment,
    firmware_inventory,
    firmware_update,
    outlet_cycle,
    part_inventory,
    pulled_cords,
    virtual_media,
    wire,
    wire_firmware,
)
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.firmware_images import FirmwareImages, HttpImages
from hostler.drivers.redfish.http_exchange import bmc_address, parse_address
from hostler.drivers.redfish.operation_request import FeedingOutlet, OperationRequest, OperationSteps, SentOperation
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import ConflictError, RefusedError, UnreachableError

MAX_REMEMBERED = 4096
_BOOT_TARGETS = {"pxe": "Pxe", "uefi_http": "UefiHttp"}


class RedfishDriver:
    """The Hand for what a BMC does. Both calls raise only PortError.

    `perform` reads the system first and refuses ("binding mismatch") unless its serial number is the node's
    binding; check and act happen alone on that BMC. An effect that is there already is done, with nothing sent.
    What was sent and is not seen yet is "unknown" for as long as its kind may take to land (`LANDS_S`), "not_done"
    after that. What this keeps in memory only makes observing sharper; losing it loses no safety.
    """

    def __init__(
        self,
        clients: Callable[[str, str], RedfishClient],
        clock: Callable[[], datetime],
        images: FirmwareImages | None = None,
    ) -> None:
        self.kinds = frozenset(_ROWS)
        self._images = images or HttpImages()
        self._clients = clients
        self._clock = clock
        self._memories: OrderedDict[str, SentOperation] = OrderedDict()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Perform the operation at the node's BMC, one act at a time."""
        row = _row(operation)
        client, name = self._reach(node)
        if row.act is row.look:
            return await row.look(await self._ask(client, name, operation, node))
        image: BinaryIO | None = None
        if row is firmware_update.UPDATE:
            ready = await firmware_update.with_image(await self._ask(client, name, operation, node), self._images)
            if isinstance(ready, Outcome):
                return ready
            image = ready.image
        with image or nullcontext():
            async with client.alone:
                ask = await self._ask(client, name, operation, node)
                return await row.act(replace(ask, image=image))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Read from the BMC whether the operation has happened."""
        client, name = self._reach(node)
        try:
            return await _row(operation).look(await self._ask(client, name, operation, node))
        except UnreachableError:
            memory = self._memory_of(operation)
            memory.away, memory.away_since = True, memory.away_since or self._clock()
            raise

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing, as a BMC's act cannot be called off; its settle time covers it."""

    def _reach(self, node: Node) -> tuple[RedfishClient, str]:
        address = bmc_address(node)
        client = self._clients(address.origin, node.binding(BMC_CERTIFICATE))
        client.begin()
        return client, address.system

    async def _ask(self, client: RedfishClient, name: str, operation: Operation, node: Node) -> OperationRequest:
        system = await equipment.machine(client, name)
        check_identity(client.origin, system, node, nameless=_row(operation).nameless)
        ask = OperationRequest(client, system, operation, self._memory_of(operation), self._clock())
        if operation.kind != "outlet_cycle":
            return ask
        names = (node.id, node.binding("serial"), node.binding("hostname"))
        return replace(ask, outlets=self._outlets(node), names=names)

    def _outlets(self, node: Node) -> tuple[FeedingOutlet, ...]:
        named = (parse_address(one) for one in node.binding(OUTLET).split())
        return tuple(FeedingOutlet(self._clients(one.origin, ""), one.system) for one in named)

    def _memory_of(self, operation: Operation) -> SentOperation:
        memory = self._memories.setdefault(operation.id, SentOperation())
        while len(self._memories) > MAX_REMEMBERED:
            self._memories.popitem(last=False)
        return memory


def check_identity(origin: str, system: wire.System, node: Node, *, nameless: bool = False) -> None:
    """Raise RefusedError unless the system is the node's. `nameless`: one that shows no serial at all passes too."""
    expected = node.binding("serial")
    if not expected:
        raise RefusedError(
            f"node {node.id} has no serial binding, so nothing at {origin} can be known to be it"
            "; record its serial number (hostler node rebind --kind serial)"
        )
    if nameless and not system.serial:
        return
    if system.identity != expected:
        raise RefusedError(
            f"binding mismatch: node {node.id} is bound to serial {expected!r}, but {origin} shows "
            f"{system.serial or 'no serial'!r} for {system.path}; nothing was done. "
            "Correct the node's bmc binding, or reset the BMC if it shows no serial number"
        )


def _row(operation: Operation) -> OperationSteps:
    row = _ROWS.get(operation.kind)
    if row is None:
        raise RefusedError(
            f"the Redfish driver has no operation {operation.kind!r}; it has {', '.join(_ROWS)}"
            "; run the same version of Hostler everywhere"
        )
    return row


# power


def _power(want: str, *resets: str) -> OperationSteps:
    async def act(ask: OperationRequest) -> Outcome:
        if ask.system.power == want:
            return ask.outcome("done", f"power was {want} already; nothing was sent")
        if ask.system.power == f"powering_{want}" and "ForceOff" not in resets:
            return ask.outcome("unknown", f"power is going {want} already; nothing was sent")
        ask.sending()
        try:
            sent = await ask.client.reset(ask.system, resets)
        except (RefusedError, ConflictError):
            if (now := await ask.again()).system.power == want:
                return now.outcome("done", f"the reset was refused as power is {want} already")
            raise
        now = await ask.again()
        result = "done" if now.system.power == want else "unknown"
        return now.outcome(result, f"{sent} was accepted; power is {now.system.power or 'not shown'}")

    async def look(ask: OperationRequest) -> Outcome:
        return _power_seen(ask, want)

    return OperationSteps(act, look)


def _power_seen(ask: OperationRequest, want: str) -> Outcome:
    power = ask.system.power
    if power == want:
        return ask.outcome("done", f"power is {power}")
    if power in {"on", "off"}:
        return ask.not_seen(f"power is {power}")
    return ask.outcome("unknown", f"power is {power or 'not shown by the BMC'}")


# boot and light


async def _set_boot(ask: OperationRequest) -> Outcome:
    if (seen := await _boot_seen(ask)).result == "done":
        return seen
    boot = _boot(ask.operation)
    if boot.target == "medium":
        return await _boot_from_medium(ask, boot)
    await ask.client.set_boot(ask.system, _BOOT_TARGETS[boot.target], boot.url)
    return await _boot_seen(await ask.again())


async def _boot_from_medium(ask: OperationRequest, boot: SetBootNetwork) -> Outcome:
    """The medium first: a BMC may forget a boot override that names an empty drive."""
    if waits := await virtual_media.inserted(ask, boot.url):
        return ask.outcome("unknown", waits)
    target = virtual_media.boots_from(await ask.client.boot_targets(ask.system))
    await ask.client.set_boot(ask.system, target)
    return await _boot_seen(await ask.again())


async def _boot_seen(ask: OperationRequest) -> Outcome:
    asked = _boot(ask.operation)
    by_medium = asked.target == "medium"
    uri = "" if by_medium else asked.url
    if by_medium and not await virtual_media.holds(ask, asked.url):
        return ask.outcome("not_done", "no virtual drive holds the boot medium")
    boots = await ask.client.boots(ask.system)
    targets = virtual_media.OFFERED if by_medium else (_BOOT_TARGETS[asked.target],)
    set_to = [
        boot
        for boot in boots
        if boot.enabled in {"Once", "Continuous"} and boot.target in targets and uri in ("", boot.uri)
    ]
    boot = set_to[0] if set_to else boots[-1]
    detail = f"boot override is {boot.enabled or 'not shown'} {boot.target}".rstrip()
    if not set_to and boot.target in targets and uri:
        detail = f"{detail}, and it does not keep the address to boot from"
    return ask.outcome("done" if set_to else "not_done", detail, {"boot": f"{boot.enabled} {boot.target}".strip()})


def _boot(operation: Operation) -> SetBootNetwork:
    return operation.act if isinstance(operation.act, SetBootNetwork) else SetBootNetwork()


def _locate(lit: bool) -> OperationSteps:
    async def act(ask: OperationRequest) -> Outcome:
        if ask.system.locate is not lit:
            await ask.client.locate(ask.system, lit)
            ask = await ask.again()
        return await look(ask)

    async def look(ask: OperationRequest) -> Outcome:
        if ask.system.locate is None:
            return ask.outcome("unknown", "the BMC shows no locate LED")
        shown = "lit" if ask.system.locate else "dark"
        return ask.outcome("done" if ask.system.locate is lit else "not_done", f"locate LED is {shown}")

    return OperationSteps(act, look)


# inventory and firmware


async def _collect_inventory(ask: OperationRequest) -> Outcome:
    """Parts, and of the facts "covers" (kinds whose absence means something) and "firmware.NAME"."""
    found = await part_inventory.inventory(ask.client, ask.system)
    seen = tuple(replace(part, node=ask.operation.node) for part in found.parts)
    gaps = list(found.gaps)
    facts: Facts = {"model": ask.system.model, "complete": found.complete, "covers": ",".join(found.covers)}
    facts |= found.hardware
    try:
        components = await firmware_inventory.components(ask.client, ask.system)
        facts |= {f"firmware.{name}": version for name, version in wire_firmware.versions(components).items()}
        facts |= {f"staged.{one.name}": one.version for one in components if one.staged}
        facts |= {f"recovery.{one.name}": one.version for one in components if one.recovery}
    except (NotOfferedError, BmcFailureError, WireError) as error:
        gaps.append(str(error))
    detail = f"{len(seen)} parts" + ("" if found.complete else ", incomplete")
    facts["gaps"] = "; ".join(gaps)
    return replace(ask.outcome("done", "; ".join((detail, *gaps[:8])), facts), parts=seen)


# the BMC itself


async def _reset_bmc(ask: OperationRequest) -> Outcome:
    """Restart the BMC; where it is done only for components that are not listed, nothing is sent if they are."""
    names = list(ask.operation.act.unless_listed) if isinstance(ask.operation.act, ResetBmc) else []
    if names and await firmware_update.lists(ask, names):
        return ask.outcome("done", f"the BMC lists {', '.join(names)}; nothing was sent")
    manager = await ask.client.manager(ask.system)
    ask.sending()
    ask.memory.last_reset, ask.memory.away = manager.last_reset, False
    await ask.client.reset_manager(manager)
    return ask.outcome("unknown", "the BMC restarts and will be away for minutes")


async def _ac_cycle(ask: OperationRequest) -> Outcome:
    """Take all power off the machine and back, its BMC's too; it has to be switched off before."""
    if ask.system.power != "off":
        raise RefusedError(
            f"power is {ask.system.power or 'not shown'}: an AC cycle begins with the machine off"
            "; switch it off first (hostler node power-off)"
        )
    manager = await ask.client.manager(ask.system)
    ask.sending()
    ask.memory.last_reset, ask.memory.away = manager.last_reset, False
    sent = await ask.client.ac_cycle(ask.system)
    return ask.outcome("unknown", f"{sent} was accepted; the BMC loses its power too and will be away for minutes")


async def _look_at_reset(ask: OperationRequest) -> Outcome:
    """By the BMC's moment of last restart; where it tells none, by having been away and answering again."""
    last = (await ask.client.manager(ask.system)).last_reset
    at, before = wire.moment(last), ask.memory.last_reset
    detail = f"the BMC answers; last restart {last or 'not told'}"
    if before and last:
        done = last != before
    elif at:
        done = at > ask.operation.started
    else:
        done = ask.memory.away
    if done:
        return ask.outcome("done", detail)
    return ask.not_seen(detail) if last else ask.outcome("unknown", detail)


_ROWS: dict[str, OperationSteps] = {
    "power_on": _power("on", "On", "ForceOn"),
    "power_off": _power("off", "ForceOff"),
    "set_boot_network": OperationSteps(_set_boot, _boot_seen),
    "eject_boot_medium": virtual_media.EJECT,
    "collect_inventory": OperationSteps(_collect_inventory, _collect_inventory),
    "update_firmware": firmware_update.UPDATE,
    "verify_firmware": firmware_update.VERIFY,
    "write_bios_settings": bios_settings.WRITE,
    "verify_bios_settings": bios_settings.VERIFY,
    "locate_on": _locate(True),
    "locate_off": _locate(False),
    "reset_bmc": OperationSteps(_reset_bmc, _look_at_reset, nameless=True),
    "ac_cycle": OperationSteps(_ac_cycle, _look_at_reset),
    "outlet_cycle": OperationSteps(outlet_cycle.cycle, _look_at_reset),
    "unplug": pulled_cords.STEPS,
}
