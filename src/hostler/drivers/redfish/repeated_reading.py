"""Weighs what a BMC shows after a change: one reading proves nothing, as BMCs are late and waver."""

from datetime import timedelta

from hostler.drivers.redfish.operation_request import OperationRequest

REPEAT_S = 10.0
"""A value counts once it has been read again so much later, with nothing else read in between."""
PATIENCE_S = 180.0
"""So long after a value was first read wrong it may still become right: BMCs list a new BIOS minutes after POST."""


def weighed(ask: OperationRequest, what: str, wrong: str) -> tuple[str, str]:
    """Result and detail of one more reading, by what was read before; `wrong` is "" where all are as wanted."""
    memory, span = ask.memory, ask.operation.deadline - ask.operation.started
    if wrong:
        flaps = ", and read right in between" if memory.right_since and memory.wrong_since else ""
        memory.right_since, memory.wrong_since = None, memory.wrong_since or ask.now
        if ask.now - memory.wrong_since < min(timedelta(seconds=PATIENCE_S), span / 2):
            return "unknown", f"{wrong}; it is read again"
        return "failed", f"{wrong}{flaps}"
    memory.right_since = memory.right_since or ask.now
    if ask.now - memory.right_since < min(timedelta(seconds=REPEAT_S), span / 5):
        return "unknown", f"all {what} are as wanted, once; they are read again"
    return "done", f"all {what} are as wanted"
