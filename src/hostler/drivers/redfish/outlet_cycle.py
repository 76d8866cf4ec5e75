"""Takes the mains off a machine by the outlets that feed it; each PDU gives them back by itself, whatever happens.

An outlet is touched only where something speaks for its being the machine's: with the machine off it draws next to
nothing, or its label names the machine.
"""

import re
from contextlib import AsyncExitStack

from hostler.core.state.durations import duration
from hostler.core.state.model import Outcome
from hostler.drivers.redfish import wire_outlets
from hostler.drivers.redfish.client import NotOfferedError
from hostler.drivers.redfish.operation_request import FeedingOutlet, OperationRequest
from hostler.drivers.redfish.wire_outlets import PduOutlet
from hostler.ports import ConflictError, RefusedError

CYCLE = "PowerCycle"
DARK_S = 30.0
"""How long an outlet is to stay dark: supplies lose their charge, and the orders to all of them come within it."""
DARK_MOST_S = 300.0
"""An outlet that stays dark for longer would outlast the wait for the BMC."""
STANDBY_W = 150.0
"""More than a machine that is off draws from one outlet: its BMC, standby power and fans that run on."""


async def cycle(ask: OperationRequest) -> Outcome:
    """Have every PDU cycle its outlets; nothing is sent before all of them have been looked at. Raises PortError."""
    if not ask.outlets:
        raise RefusedError(
            f"no outlets are recorded for node {ask.operation.node}: record all that feed it "
            "(hostler node rebind NODE --kind outlet), or set `activate: dc_cycle`"
        )
    if ask.system.power != "off":
        raise RefusedError(
            f"power is {ask.system.power or 'not shown'}: outlets are cycled with the machine off"
            "; switch it off first (hostler node power-off)"
        )
    manager = await ask.client.manager(ask.system)
    async with AsyncExitStack() as alone:
        for _, pdu in sorted({one.pdu.origin: one.pdu for one in ask.outlets}.items()):
            pdu.begin()
            await alone.enter_async_context(pdu.alone)
        ready = [await _ready(ask, one) for one in ask.outlets]
        for one, _ in zip(ask.outlets, ready, strict=True):
            await _dark_for_long_enough(one)
        ask.sending()
        ask.memory.last_reset, ask.memory.away = manager.last_reset, False
        for one, seen in zip(ask.outlets, ready, strict=True):
            await one.pdu.send("POST", seen.target, {"PowerState": CYCLE})
    said = f"{len(ready)} outlets were told to cycle; the BMC loses its power too and will be away for minutes"
    return ask.outcome("unknown", said)


async def _ready(ask: OperationRequest, one: FeedingOutlet) -> PduOutlet:
    """The outlet as it is, if it may be cycled and is the machine's. Raises RefusedError."""
    seen = await _read(one)
    if seen.power != "on":
        raise RefusedError(
            f"outlet {one.name} is {seen.power or 'in no state that it shows'}, and Hostler has not switched it off"
            "; find out who has, and switch it on"
        )
    offered = seen.states
    if seen.states_info and not offered:
        offered = wire_outlets.states_offered(await one.pdu.get(seen.states_info))
    if seen.locked or not seen.target or CYCLE not in offered:
        does = "is locked" if seen.locked else f"offers {', '.join(offered) or 'no switching'}"
        raise NotOfferedError(
            f"outlet {one.name} {does}, and is to be cycled by its PDU itself, so that nothing leaves it dark"
            "; unlock it, update the PDU's firmware, or pull the cords"
        )
    _prove(ask, one, seen)
    return seen


def _prove(ask: OperationRequest, one: FeedingOutlet, seen: PduOutlet) -> None:
    """Raise RefusedError unless the outlet's load or label speaks for its being the machine's, and none against."""
    if seen.watts is not None and seen.watts > STANDBY_W:
        raise RefusedError(
            f"outlet {one.name} feeds {seen.watts:.0f} W while the machine is off: it feeds another one"
            "; correct the node's outlets (hostler node rebind NODE --kind outlet)"
        )
    words = set(re.split(r"[^a-z0-9.-]+", seen.label.lower()))
    if seen.watts is None and not words & {name.lower() for name in ask.names if name}:
        raise RefusedError(
            f"outlet {one.name} tells no load, and its label {seen.label[:60]!r} does not name the machine, so nothing "
            "shows what it feeds; write the node's id or serial number into its label at the PDU"
        )


async def _dark_for_long_enough(one: FeedingOutlet) -> None:
    """Have the PDU leave the outlet dark for DARK_S, as it keeps it. Raises RefusedError where it does not."""
    seen = await _read(one)
    if _is_long_enough(seen):
        return
    why = f"it stays dark for {'a time that it does not tell' if seen.delay_s is None else duration(seen.delay_s)}"
    try:
        await one.pdu.patch(one.path, {"PowerCycleDelaySeconds": int(DARK_S)}, seen.etag)
        if _is_long_enough(await _read(one)):
            return
    except (RefusedError, ConflictError) as refused:
        why = f"{why}; {refused}"
    raise RefusedError(
        f"outlet {one.name}: in a power cycle {why}; set PowerCycleDelaySeconds to {DARK_S:.0f} at the PDU"[:500]
    )


def _is_long_enough(seen: PduOutlet) -> bool:
    return seen.delay_s is not None and DARK_S <= seen.delay_s <= DARK_MOST_S


async def _read(one: FeedingOutlet) -> PduOutlet:
    return wire_outlets.outlet(await one.pdu.get(one.path), one.path)
