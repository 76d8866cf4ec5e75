"""Effect of a driver's reply, and the operation that is sent once more."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.step_output import Send
from hostler.core.policy.presuppositions import missing
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS

WITHHELD = "withheld"
"""Result of an operation that was recorded and not sent: what it presupposes was gone by then."""


class ReplyEffect(Struct, frozen=True):
    """Effect of a driver's reply: events, or in a while its effect is observed, or it is sent again."""

    events: tuple[e.Event, ...] = ()
    observe: bool = False
    resend: bool = False


def last_look(fleet: Fleet, send: Send, now: datetime) -> Outcome | None:
    """Outcome of an act that is not sent after all, as what it presupposes has gone since it was recorded; else None.

    Asked behind the fence, just before the send.
    """
    found = missing(fleet, send.operation, now) if send.how == "perform" else ()
    if not found:
        return None
    operation = send.operation
    return Outcome(operation.id, operation.node, WITHHELD, found[0].text[:400], attempt=operation.attempt)


def withheld(operation: Operation, why: str) -> e.OperationFinished:
    """The end of an operation that was not sent; its plan stays at the step, which names what it waits for."""
    return e.OperationFinished(operation.node, operation.id, operation.kind, "refused", f"not sent: {why}"[:500])


def sent_again(fleet: Fleet, operation: Operation, node: Node, now: datetime) -> e.Event:
    """The operation's next attempt; its end where what it presupposes is gone meanwhile. It had not happened."""
    if found := missing(fleet, operation, now):
        return withheld(operation, found[0].text)
    return e.OperationStarted(again(operation, node, now))


def again(operation: Operation, node: Node, now: datetime) -> Operation:
    """The same operation, to be sent once more: what was sent before `now` is no longer what may still land."""
    agents = OPERATIONS[operation.kind].port == "agent"
    boot_id = node.boot_id if operation.boot_id and agents else operation.boot_id
    return replace(operation, started=now, boot_id=boot_id, attempt=operation.attempt + 1)
