"""Sees that a person has taken all power off a machine: its BMC has restarted. Nothing is sent, at any time.

A wait of hours meets what one of minutes does not: a BMC's moment of restart that creeps by seconds, and a network that
is away for a poll or two. Neither is a restart.
"""

from datetime import timedelta

from hostler.core.state.model import Outcome
from hostler.drivers.redfish import wire
from hostler.drivers.redfish.operation_request import OperationRequest, OperationSteps
from hostler.ports import RefusedError

CREEPS = timedelta(seconds=30)
"""A moment of restart that is computed from an uptime differs by seconds from look to look."""
AWAY = timedelta(seconds=90)
"""Cords are out for two minutes, and a BMC needs one and more to start: what is away for less has kept its power."""


async def _begin(ask: OperationRequest) -> Outcome:
    """Note when the BMC last restarted, with the machine off, so that nobody pulls the cords of one that runs."""
    if ask.system.power != "off":
        raise RefusedError(
            f"power is {ask.system.power or 'not shown'}: cords are pulled with the machine off"
            "; switch it off first (hostler node power-off)"
        )
    ask.memory.last_reset, ask.memory.away_since = (await ask.client.manager(ask.system)).last_reset, None
    return ask.outcome("unknown", "nothing was sent; a technician is to pull the cords")


async def _look(ask: OperationRequest) -> Outcome:
    """By the BMC's moment of last restart; where it tells none, by having been away for as long as a restart takes."""
    last = (await ask.client.manager(ask.system)).last_reset
    at, before = wire.moment(last), wire.moment(ask.memory.last_reset)
    since, ask.memory.away_since = ask.memory.away_since, None
    if at and before:
        done = abs(at - before) > CREEPS
    elif at:
        done = at > ask.operation.started
    else:
        done = since is not None and ask.now - since >= AWAY
    detail = f"the BMC answers; last restart {last or 'not told'}"
    return ask.outcome("done", detail) if done else ask.outcome("unknown", f"{detail}; the cords were not pulled yet")


STEPS = OperationSteps(_begin, _look)
