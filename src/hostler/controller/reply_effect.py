"""Effect of a driver's reply, and the operation that is sent once more."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.model import Node, Operation
from hostler.core.tables.operations import OPERATIONS


class ReplyEffect(Struct, frozen=True):
    """Effect of a driver's reply: events, or in a while its effect is observed, or it is sent again."""

    events: tuple[e.Event, ...] = ()
    observe: bool = False
    resend: bool = False


def again(operation: Operation, node: Node, now: datetime) -> Operation:
    """The same operation, to be sent once more: what was sent before `now` is no longer what may still land."""
    agents = OPERATIONS[operation.kind].port == "agent"
    boot_id = node.boot_id if operation.boot_id and agents else operation.boot_id
    return replace(operation, started=now, boot_id=boot_id, attempt=operation.attempt + 1)
