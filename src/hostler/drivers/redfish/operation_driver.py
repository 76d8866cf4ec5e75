"""Performs a node's power, boot, firmware, light and BMC operations, each behind a check of who is at the other end."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.drivers.redfish import firmware_inventory, part_inventory, wire, wire_firmware
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.http_exchange import parse_address
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import ConflictError, RefusedError, UnreachableError

MAX_REMEMBERED = 4096
_BOOT_TARGETS = {"pxe": "Pxe", "uefi_http": "UefiHttp", "http": "UefiHttp"}
_NOT_COMPONENTS = {"baseline"}


class RedfishDriver:
    """The Hand for what a BMC does. Both calls raise only PortError.

    `perform` reads the system first and refuses ("binding mismatch") unless its serial number is the node's
    binding; check and act happen alone on that BMC. An effect that is there already is done, with nothing sent.
    What was sent and is not seen yet is "unknown" for as long as its kind may take to land (`_LANDS_S`), "not_done"
    after that. What this keeps in memory only makes observing sharper; losing it loses no safety.
    """

    def __init__(self, clients: Callable[[str], RedfishClient], clock: Callable[[], datetime]) -> None:
        self.kinds = frozenset(_ROWS)
        self._clients = clients
        self._clock = clock
        self._memories: OrderedDict[str, _SentOperation] = OrderedDict()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Perform the operation at the node's BMC, one act at a time."""
        row = _row(operation)
        client, name = self._reach(node)
        if row.act is row.look:
            return await row.look(await self._ask(client, name, operation, node))
        async with client.alone:
            return await row.act(await self._ask(client, name, operation, node))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Read from the BMC whether the operation has happened."""
        client, name = self._reach(node)
        try:
            return await _row(operation).look(await self._ask(client, name, operation, node))
        except UnreachableError:
            self._memory_of(operation).away = True
            raise

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Nothing that a BMC was asked for can be called off; its settle time covers it."""

    def _reach(self, node: Node) -> tuple[RedfishClient, str]:
        binding = node.binding("bmc")
        if not binding:
            raise RefusedError(f"node {node.id} has no bmc binding; record its BMC's address first")
        address = parse_address(binding)
        client = self._clients(address.origin)
        client.begin()
        return client, address.system

    async def _ask(self, client: RedfishClient, name: str, operation: Operation, node: Node) -> "_Ask":
        system = await client.system(name)
        check_identity(client.origin, system, node, nameless=_row(operation).nameless)
        return _Ask(client, system, operation, self._memory_of(operation), self._clock())

    def _memory_of(self, operation: Operation) -> "_SentOperation":
        memory = self._memories.setdefault(operation.id, _SentOperation())
        while len(self._memories) > MAX_REMEMBERED:
            self._memories.popitem(last=False)
        return memory


def check_identity(origin: str, system: wire.System, node: Node, *, nameless: bool = False) -> None:
    """Raise RefusedError unless the system is the node's. `nameless`: one that shows no serial at all passes too."""
    expected = node.binding("serial")
    if not expected:
        raise RefusedError(f"node {node.id} has no serial binding, so nothing at {origin} can be known to be it")
    if nameless and not system.serial:
        return
    if system.identity != expected:
        raise RefusedError(
            f"binding mismatch: node {node.id} is bound to serial {expected!r}, but {origin} shows "
            f"{system.serial or 'no serial'!r} for {system.path}; nothing was done. "
            "Correct the node's bmc binding, or reset the BMC if it shows no serial number"
        )


class _SentOperation(Struct):
    """Memory of a sent operation: when, its task, the BMC's last restart, was it away since."""

    sent: datetime | None = None
    task: str = ""
    last_reset: str = ""
    away: bool = False


class _Ask(Struct, frozen=True):
    """One operation on one verified system, now."""

    client: RedfishClient
    system: wire.System
    operation: Operation
    memory: _SentOperation
    now: datetime

    def outcome(self, result: str, detail: str = "", facts: Facts | None = None) -> Outcome:
        known: Facts = {"serial": self.system.serial, "power": self.system.power or "unknown"}
        return Outcome(
            self.operation.id,
            self.operation.node,
            result,
            detail,
            known | (facts or {}),
            attempt=self.operation.attempt,
        )

    def sending(self) -> None:
        """Note the moment before something is sent: whatever becomes of the reply, it may land from now on."""
        self.memory.sent = self.now

    def not_seen(self, detail: str, facts: Facts | None = None) -> Outcome:
        """Result for an effect that is not there: unknown while it may still land, not_done afterwards."""
        since = self.memory.sent or self.operation.started
        lands_s = _LANDS_S[self.operation.kind]
        if self.now < min(since + timedelta(seconds=lands_s), self.operation.deadline):
            return self.outcome("unknown", f"{detail}; it may take {lands_s:g} s to land", facts)
        return self.outcome("not_done", detail, facts)

    async def again(self) -> "_Ask":
        """The same with the system read once more."""
        system = await self.client.system(self.system.path)
        return replace(self, system=system)


_Act = Callable[[_Ask], Awaitable[Outcome]]
_LANDS_S = {
    "power_on": 30.0,
    "power_off": 30.0,
    "power_off_graceful": 86_400.0,
    "update_firmware": 30.0,
    "reset_bmc": 60.0,
}
"""How long after sending an effect may still appear. Power-off was seen to take 1–11 s; a graceful one takes as long
as its deadline allows; a BMC answers for a while before it goes away to restart."""


class _Row(Struct, frozen=True):
    """How a kind is done and looked at; the same function for both where the reply is the effect."""

    act: _Act
    look: _Act
    nameless: bool = False


def _row(operation: Operation) -> _Row:
    row = _ROWS.get(operation.kind)
    if row is None:
        raise RefusedError(f"the Redfish driver has no operation {operation.kind!r}; it has {', '.join(_ROWS)}")
    return row


# power


def _power(want: str, *resets: str) -> _Row:
    async def act(ask: _Ask) -> Outcome:
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

    async def look(ask: _Ask) -> Outcome:
        return _power_seen(ask, want)

    return _Row(act, look)


def _power_seen(ask: _Ask, want: str) -> Outcome:
    power = ask.system.power
    if power == want:
        return ask.outcome("done", f"power is {power}")
    if power in {"on", "off"}:
        return ask.not_seen(f"power is {power}")
    return ask.outcome("unknown", f"power is {power or 'not shown by the BMC'}")


async def _read_power(ask: _Ask) -> Outcome:
    return ask.outcome("done" if ask.system.power else "unknown", f"power is {ask.system.power or 'not shown'}")


# boot and light


async def _set_boot(ask: _Ask) -> Outcome:
    if (seen := await _boot_seen(ask)).result == "done":
        return seen
    await ask.client.set_boot(ask.system, _boot_target(ask.operation), ask.operation.args.get("url", ""))
    return await _boot_seen(await ask.again())


async def _boot_seen(ask: _Ask) -> Outcome:
    target, uri = _boot_target(ask.operation), ask.operation.args.get("url", "")
    boots = await ask.client.boots(ask.system)
    set_to = [
        boot
        for boot in boots
        if boot.enabled in {"Once", "Continuous"} and boot.target == target and uri in ("", boot.uri)
    ]
    boot = set_to[0] if set_to else boots[-1]
    detail = f"boot override is {boot.enabled or 'not shown'} {boot.target}".rstrip()
    if not set_to and boot.target == target:
        detail = f"{detail}, and it does not keep the address to boot from"
    return ask.outcome("done" if set_to else "not_done", detail, {"boot": f"{boot.enabled} {boot.target}".strip()})


def _boot_target(operation: Operation) -> str:
    asked = operation.args.get("target", "pxe")
    target = _BOOT_TARGETS.get(asked.lower())
    if target is None:
        raise RefusedError(f"set_boot_network knows no target {asked!r}; it knows {', '.join(_BOOT_TARGETS)}")
    return target


def _locate(lit: bool) -> _Row:
    async def act(ask: _Ask) -> Outcome:
        if ask.system.locate is not lit:
            await ask.client.locate(ask.system, lit)
            ask = await ask.again()
        return await look(ask)

    async def look(ask: _Ask) -> Outcome:
        if ask.system.locate is None:
            return ask.outcome("unknown", "the BMC shows no locate LED")
        shown = "lit" if ask.system.locate else "dark"
        return ask.outcome("done" if ask.system.locate is lit else "not_done", f"locate LED is {shown}")

    return _Row(act, look)


# inventory and firmware


async def _collect_inventory(ask: _Ask) -> Outcome:
    """Parts, and of the facts "covers" (kinds whose absence means something) and "firmware.NAME"."""
    found = await part_inventory.inventory(ask.client, ask.system)
    seen = tuple(replace(part, node=ask.operation.node) for part in found.parts)
    gaps = list(found.gaps)
    facts: Facts = {"model": ask.system.model, "complete": found.complete, "covers": ",".join(found.covers)}
    try:
        components = await firmware_inventory.components(ask.client, ask.system)
        facts |= {f"firmware.{name}": version for name, version in wire_firmware.versions(components).items()}
    except (NotOfferedError, BmcFailureError, WireError) as error:
        gaps.append(str(error))
    detail = f"{len(seen)} parts" + ("" if found.complete else ", incomplete")
    facts["gaps"] = "; ".join(gaps)
    return replace(ask.outcome("done", "; ".join((detail, *gaps[:8])), facts), parts=seen)


async def _update_firmware(ask: _Ask) -> Outcome:
    wanted = _wanted(ask.operation)
    components = await firmware_inventory.components(ask.client, ask.system)
    seen = _firmware_seen(ask, wanted, components)
    if seen.result == "done":
        return seen
    writing = await _writing(ask, components)
    if writing:
        return ask.outcome("busy", f"the BMC is writing already ({writing}); nothing was sent", seen.facts)
    target = _running(components, wanted.component)
    if target is None:
        raise RefusedError(
            f"{ask.client.origin} lists no firmware component {wanted.component!r} with a version; "
            f"it lists {', '.join(wire_firmware.versions(components)) or 'none'}"
        )
    if not wanted.image:
        raise RefusedError(f"update_firmware of {wanted.component} needs image, a URL that the BMC can fetch")
    ask.sending()
    task = ask.memory.task = await ask.client.simple_update(target, wanted.image)
    return ask.outcome("unknown", f"update accepted, {task or 'without a task'}; observe the version", seen.facts)


async def _look_at_update(ask: _Ask) -> Outcome:
    """By version, not by task: tasks vanish after success and report success after failure."""
    components = await firmware_inventory.components(ask.client, ask.system)
    seen = _firmware_seen(ask, _wanted(ask.operation), components)
    if seen.result == "done":
        return seen
    if writing := await _writing(ask, components):
        return ask.outcome("unknown", f"still writing: {writing}", seen.facts)
    task = await ask.client.task(ask.memory.task) if ask.memory.task else None
    if task and task.state == "failed":
        return ask.outcome("failed", f"{seen.detail}; its task failed: {task.detail}", seen.facts)
    if task and task.state == "done":
        detail = f"{seen.detail}; its task says done, which the version contradicts"
        return ask.outcome("not_done", detail, seen.facts)
    return ask.not_seen(seen.detail, seen.facts)


async def _verify_firmware(ask: _Ask) -> Outcome:
    """Its facts are component → running version and nothing else, in the spelling that was asked for."""
    wanted = {name: value for name, value in ask.operation.args.items() if name not in _NOT_COMPONENTS}
    components = await firmware_inventory.components(ask.client, ask.system)
    found = {name: _running(components, name) for name in wanted}
    facts: Facts = {name: component.version if component else "" for name, component in found.items()}
    wrong = [
        f"{name} is {facts[name] or 'not listed'}, wanted {version}"
        for name, version in wanted.items()
        if facts[name] != version
    ]
    if not wanted:
        read: Facts = dict(wire_firmware.versions(components))
        return replace(ask.outcome("done", "no versions were asked for; these were read"), facts=read)
    result = "failed" if wrong else "done"
    return replace(ask.outcome(result, "; ".join(wrong) or "all versions are as wanted"), facts=facts)


class _Firmware(Struct, frozen=True):
    component: str
    version: str
    image: str


def _wanted(operation: Operation) -> _Firmware:
    component, version, image = (operation.args.get(key, "") for key in ("component", "version", "image"))
    if not component or not version:
        raise RefusedError("update_firmware needs component and version")
    return _Firmware(component, version, image)


def _firmware_seen(ask: _Ask, wanted: _Firmware, components: tuple[wire_firmware.FirmwareComponent, ...]) -> Outcome:
    """Done where the version runs, or is written and waits for the next power cycle; else not_done."""
    running = _running(components, wanted.component)
    staged = any(
        c.staged and c.version == wanted.version and wire_firmware.same_component(c.name, wanted.component)
        for c in components
    )
    version = running.version if running else ""
    facts: Facts = {wanted.component: version, "staged": staged}
    if version == wanted.version:
        return ask.outcome("done", f"{wanted.component} runs {version}", facts)
    if staged:
        detail = f"{wanted.component} {wanted.version} is written; {version} runs until the next power cycle"
        return ask.outcome("done", detail, facts)
    return ask.outcome("not_done", f"{wanted.component} runs {version or 'an unknown version'}", facts)


def _running(
    components: tuple[wire_firmware.FirmwareComponent, ...], name: str
) -> wire_firmware.FirmwareComponent | None:
    return next((c for c in components if not c.staged and wire_firmware.same_component(c.name, name)), None)


async def _writing(ask: _Ask, components: tuple[wire_firmware.FirmwareComponent, ...]) -> str:
    """Name the component being written on this system, "" for none.

    A task that does not say what it writes is ours too.
    """
    ours = {component.path for component in components}
    tasks = [task for task in await ask.client.tasks() if task.state == "running"]
    updating = [c.name for c in components if c.updating]
    updating += [task.path for task in tasks if not task.targets or ours.intersection(task.targets)]
    return ", ".join(updating[:5])


# the BMC itself


async def _reset_bmc(ask: _Ask) -> Outcome:
    manager = await ask.client.manager(ask.system)
    ask.sending()
    ask.memory.last_reset, ask.memory.away = manager.last_reset, False
    await ask.client.reset_manager(manager)
    return ask.outcome("unknown", "the BMC restarts and will be away for minutes")


async def _look_at_reset(ask: _Ask) -> Outcome:
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


_ROWS: dict[str, _Row] = {
    "power_on": _power("on", "On", "ForceOn"),
    "power_off": _power("off", "ForceOff"),
    "power_off_graceful": _power("off", "GracefulShutdown"),
    "read_power": _Row(_read_power, _read_power),
    "set_boot_network": _Row(_set_boot, _boot_seen),
    "collect_inventory": _Row(_collect_inventory, _collect_inventory),
    "update_firmware": _Row(_update_firmware, _look_at_update),
    "verify_firmware": _Row(_verify_firmware, _verify_firmware),
    "locate_on": _locate(True),
    "locate_off": _locate(False),
    "reset_bmc": _Row(_reset_bmc, _look_at_reset, nameless=True),
}
