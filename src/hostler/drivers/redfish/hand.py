"""Performs a node's power, boot, firmware, light and BMC operations, each behind a check of who is at the other end."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.model import Facts, Node, Operation, Outcome
from hostler.drivers.redfish import survey, wire
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.exchange import parse_address
from hostler.drivers.redfish.reading import WireError
from hostler.engine.ports import RefusedError, UnreachableError

MAX_REMEMBERED = 4096
_BOOT_TARGETS = {"pxe": "Pxe", "uefi_http": "UefiHttp", "http": "UefiHttp"}
_NOT_COMPONENTS = {"baseline"}


class RedfishHand:
    """The Hand for what a BMC does. Both calls raise only PortError.

    `perform` reads the system first and refuses ("binding mismatch") unless its serial number is the node's
    binding; check and act happen alone on that BMC. An effect that is there already is done, with nothing sent.
    What was accepted but is not seen yet is "unknown": observe it. What this keeps in memory (the task of an
    update, the moment of a BMC's last restart) only makes observing sharper; losing it loses no safety.
    """

    def __init__(self, clients: Callable[[str], RedfishClient]) -> None:
        self.kinds = frozenset(_ROWS)
        self._clients = clients
        self._remembered: OrderedDict[str, str] = OrderedDict()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        row = _row(operation)
        client, name = self._reach(node)
        if row.act is row.look:
            return await row.look(await self._ask(client, name, operation, node))
        async with client.alone:
            return await row.act(await self._ask(client, name, operation, node))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        client, name = self._reach(node)
        try:
            return await _row(operation).look(await self._ask(client, name, operation, node))
        except UnreachableError:
            if operation.kind == "reset_bmc":
                self._remember(operation.id, _AWAY)
            raise

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Nothing that a BMC was asked for can be called off; its settle time covers it."""

    def _reach(self, node: Node) -> tuple[RedfishClient, str]:
        binding = node.binding("bmc")
        if not binding:
            raise RefusedError(f"node {node.id} has no bmc binding; record its BMC's address first")
        address = parse_address(binding)
        return self._clients(address.origin), address.system

    async def _ask(self, client: RedfishClient, name: str, operation: Operation, node: Node) -> "_Ask":
        system = await client.system(name)
        check_identity(client.origin, system, node, nameless=_row(operation).nameless)
        return _Ask(client, system, operation, self._remembered.get(operation.id, ""), self._remember)

    def _remember(self, operation: str, what: str) -> None:
        self._remembered.setdefault(operation, what)
        if what and self._remembered[operation] != what:
            self._remembered[operation] = f"{self._remembered[operation]} {what}".strip()
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)


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


class _Ask(Struct, frozen=True):
    """One operation on one verified system."""

    client: RedfishClient
    system: wire.System
    operation: Operation
    remembered: str
    remember: Callable[[str, str], None]

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

    async def again(self) -> "_Ask":
        """The same with the system read once more."""
        system = await self.client.system(self.system.path)
        return replace(self, system=system)


_Act = Callable[[_Ask], Awaitable[Outcome]]
_AWAY = "away"


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
        offered = next((kind for kind in resets if kind in ask.system.resets), resets[0])
        try:
            await ask.client.reset(ask.system, offered)
        except RefusedError:
            if (now := await ask.again()).system.power == want:
                return now.outcome("done", f"{offered} was refused as power is {want} already")
            raise
        now = await ask.again()
        result = "done" if now.system.power == want else "unknown"
        return now.outcome(result, f"{offered} was accepted; power is {now.system.power or 'not shown'}")

    async def look(ask: _Ask) -> Outcome:
        return _power_seen(ask, want)

    return _Row(act, look)


def _power_seen(ask: _Ask, want: str) -> Outcome:
    power = ask.system.power
    if power == want:
        return ask.outcome("done", f"power is {power}")
    if power in {"on", "off"}:
        return ask.outcome("not_done", f"power is {power}")
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
    boot, target = ask.system.boot, _boot_target(ask.operation)
    set_now = boot.enabled in {"Once", "Continuous"} and boot.target == target
    detail = f"boot override is {boot.enabled or 'not shown'} {boot.target}".rstrip()
    return ask.outcome("done" if set_now else "not_done", detail, {"boot": f"{boot.enabled} {boot.target}".strip()})


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
    found = await survey.inventory(ask.client, ask.system)
    parts = tuple(replace(part, node=ask.operation.node) for part in found.parts)
    gaps = list(found.gaps)
    facts: Facts = {"model": ask.system.model, "complete": found.complete, "covers": ",".join(found.covers)}
    try:
        components = await survey.firmware(ask.client, ask.system)
        facts |= {f"firmware.{name}": version for name, version in wire.versions(components).items()}
    except (NotOfferedError, BmcFailureError, WireError) as error:
        gaps.append(str(error))
    detail = f"{len(parts)} parts" + ("" if found.complete else ", incomplete")
    facts["gaps"] = "; ".join(gaps)
    return replace(ask.outcome("done", "; ".join((detail, *gaps[:8])), facts), parts=parts)


async def _update_firmware(ask: _Ask) -> Outcome:
    wanted = _wanted(ask.operation)
    components = await survey.firmware(ask.client, ask.system)
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
            f"it lists {', '.join(wire.versions(components)) or 'none'}"
        )
    if not wanted.image:
        raise RefusedError(f"update_firmware of {wanted.component} needs image, a URL that the BMC can fetch")
    task = await ask.client.simple_update(target, wanted.image)
    ask.remember(ask.operation.id, task)
    return ask.outcome("unknown", f"update accepted, {task or 'without a task'}; observe the version", seen.facts)


async def _look_at_update(ask: _Ask) -> Outcome:
    """By version, not by task: tasks vanish after success and report success after failure."""
    components = await survey.firmware(ask.client, ask.system)
    seen = _firmware_seen(ask, _wanted(ask.operation), components)
    if seen.result == "done":
        return seen
    if writing := await _writing(ask, components):
        return ask.outcome("unknown", f"still writing: {writing}", seen.facts)
    task = await ask.client.task(ask.remembered) if ask.remembered.startswith("/") else None
    if task and task.state == "failed":
        return ask.outcome("failed", f"{seen.detail}; its task failed: {task.detail}", seen.facts)
    said = f"; its task says {task.state}, which the version contradicts" if task and task.state == "done" else ""
    return ask.outcome("not_done", seen.detail + said, seen.facts)


async def _verify_firmware(ask: _Ask) -> Outcome:
    """Its facts are component → running version and nothing else, in the spelling that was asked for."""
    wanted = {name: value for name, value in ask.operation.args.items() if name not in _NOT_COMPONENTS}
    components = await survey.firmware(ask.client, ask.system)
    found = {name: _running(components, name) for name in wanted}
    facts: Facts = {name: component.version if component else "" for name, component in found.items()}
    wrong = [
        f"{name} is {facts[name] or 'not listed'}, wanted {version}"
        for name, version in wanted.items()
        if facts[name] != version
    ]
    if not wanted:
        read: Facts = dict(wire.versions(components))
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


def _firmware_seen(ask: _Ask, wanted: _Firmware, components: tuple[wire.Component, ...]) -> Outcome:
    """Done where the version runs, or is written and waits for the next power cycle; else not_done."""
    running = _running(components, wanted.component)
    staged = any(
        c.staged and c.version == wanted.version and wire.same_component(c.name, wanted.component) for c in components
    )
    version = running.version if running else ""
    facts: Facts = {wanted.component: version, "staged": staged}
    if version == wanted.version:
        return ask.outcome("done", f"{wanted.component} runs {version}", facts)
    if staged:
        detail = f"{wanted.component} {wanted.version} is written; {version} runs until the next power cycle"
        return ask.outcome("done", detail, facts)
    return ask.outcome("not_done", f"{wanted.component} runs {version or 'an unknown version'}", facts)


def _running(components: tuple[wire.Component, ...], name: str) -> wire.Component | None:
    return next((c for c in components if not c.staged and wire.same_component(c.name, name)), None)


async def _writing(ask: _Ask, components: tuple[wire.Component, ...]) -> str:
    """What the BMC is busy writing, "" for nothing."""
    updating = [c.name for c in components if c.updating]
    updating += [task.path for task in await ask.client.tasks() if task.state == "running"]
    return ", ".join(updating[:5])


# the BMC itself


async def _reset_bmc(ask: _Ask) -> Outcome:
    manager = await ask.client.manager(ask.system)
    ask.remember(ask.operation.id, manager.last_reset)
    await ask.client.reset_manager(manager)
    return ask.outcome("unknown", "the BMC restarts and will be away for minutes")


async def _look_at_reset(ask: _Ask) -> Outcome:
    """By the BMC's moment of last restart; where it tells none, by having been away and answering again."""
    last = (await ask.client.manager(ask.system)).last_reset
    before = ask.remembered.removesuffix(_AWAY).strip()
    at = wire.moment(last)
    if before and last:
        done = last != before
    elif at:
        done = at > ask.operation.started
    elif ask.remembered.endswith(_AWAY):
        done = True
    else:
        return ask.outcome("unknown", "the BMC answers, and does not tell when it last restarted")
    return ask.outcome("done" if done else "not_done", f"the BMC answers; last restart {last or 'not told'}")


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
