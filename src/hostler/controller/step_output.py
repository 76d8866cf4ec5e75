"""Output of a step of the controller: append this, then send these, then answer those."""

from msgspec import Struct

from hostler.core.state.model import Node, Operation
from hostler.core.state.ways_out import WayOut
from hostler.ports import Batch


class Send(Struct, frozen=True):
    """One thing for a driver: `how` is perform, observe or revoke. `node` carries the bindings it must check."""

    how: str
    operation: Operation
    node: Node


class Reply(Struct, frozen=True):
    """The answer to the input with this token. `acknowledged` is how far the sender's spool is durable.

    `ways` are those out of a refusal, as far as they are values.
    """

    token: int
    granted: bool = True
    text: str = ""
    acknowledged: int = 0
    detail: dict[str, str] = {}
    ways: tuple[WayOut, ...] = ()


class StepOutput(Struct, frozen=True):
    """Output of one step: append `batch`; when that is durable, send `sends` and give `replies`."""

    batch: Batch
    sends: tuple[Send, ...]
    replies: tuple[Reply, ...]
