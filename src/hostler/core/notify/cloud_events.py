"""Notifications as programs read them: CloudEvents 1.0 in structured mode, with the message as data."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from hostler.core.notify.messages import Message
from hostler.core.state.model import Severity


class MessageData(Struct, frozen=True, omit_defaults=True):
    """A message and the cell that sends it, for programs: `severity` by its name, and nothing that is empty."""

    id: str
    key: str
    action: str
    topic: str
    severity: str
    page: bool
    summary: str
    seq: int
    since: datetime
    at: datetime
    count: int
    nodes: tuple[str, ...] = ()
    pool: str = ""
    tenant: str = ""
    site: str = ""
    rack: str = ""
    details: dict[str, str] = {}
    lines: tuple[str, ...] = ()
    cell: str = ""


class CloudEvent(Struct, frozen=True):
    """A notification; `type` is dev.hostler.TOPIC.ACTION. Source: CloudEvents 1.0.2, JSON event format."""

    id: str
    source: str
    type: str
    subject: str
    time: datetime
    data: MessageData
    specversion: str = "1.0"
    datacontenttype: str = "application/json"


def message_data(message: Message, cell: str = "") -> MessageData:
    """The message as a program reads it."""
    told = {name: value for name, value in asdict(message).items() if name != "route"}
    return MessageData(**told | {"severity": Severity(message.severity).name, "cell": cell})


def cloud_event(message: Message, cell: str, source: str) -> CloudEvent:
    """The message as a CloudEvent of this cell, whose URI is `source`."""
    return CloudEvent(
        message.id,
        source,
        f"dev.hostler.{message.topic}.{message.action}",
        message.nodes[0] if message.nodes else message.topic,
        message.at,
        message_data(message, cell),
    )
