"""Records and observations for tests of journals: one instance of every event, made from its types."""

import re
import types
import typing
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.core.state.events import BootObserved, Event, IntentRecorded, OperationStarted, Record
from hostler.core.state.model import Observation
from hostler.core.state.operations import ACTS
from hostler.core.state.scopes import TEXTS
from hostler.core.state.verbs.every import VERBS
from hostler.ports import Batch

START = datetime(2025, 3, 1, 12, tzinfo=UTC)
EVENTS: tuple[type[Struct], ...] = get_args(Event)


FITTING = {"^[0-9a-f]{64}$": "0" * 64, "^([0-9a-f]{40}|[0-9a-f]{64}|)$": "0" * 40}
"""Text for the patterns that no field's name fits."""
FEW = 10
"""A union of more classes is of acts or verbs, which have samples of their own (`every_act`, `every_verb`)."""


def at(n: int) -> datetime:
    return START + timedelta(seconds=n, microseconds=n)


def boot(seq: int, epoch: int = 1, node: str = "") -> Record:
    """A small record; its node is n0 … n9 unless one is named."""
    event = BootObserved(node=node or f"n{seq % 10}", boot_id=f"boot-{seq}")
    return Record(seq=seq, at=at(seq), epoch=epoch, cause=f"n/s/{seq}", event=event)


def boots(first: int, last: int, epoch: int = 1) -> Batch:
    return Batch(records=tuple(boot(seq, epoch) for seq in range(first, last + 1)))


def of_events(events: Iterable[Event], epoch: int = 1) -> tuple[Record, ...]:
    return tuple(
        Record(seq=seq, at=at(seq), epoch=epoch, cause="clock", event=event) for seq, event in enumerate(events, 1)
    )


def every_event() -> tuple[Event, ...]:
    """Make one of each, with every field filled from its type."""
    return tuple(typing.cast("Event", sample(event)) for event in EVENTS)


def every_act() -> tuple[Event, ...]:
    """An operation of each kind, recorded as started."""
    started: OperationStarted = sample(OperationStarted)
    return tuple(replace(started, operation=replace(started.operation, act=sample(act))) for act in ACTS.values())


def every_verb() -> tuple[Event, ...]:
    """A request of each verb, recorded."""
    asked: IntentRecorded = sample(IntentRecorded)
    return tuple(replace(asked, intent=replace(asked.intent, act=sample(verb))) for verb in VERBS.values())


def observed(node: str, sequence: int, spool: str = "s") -> Observation:
    return Observation(
        node=node,
        kind="kernel_log",
        source="agent",
        spool=spool,
        sequence=sequence,
        text=f"NVRM: Xid (PCI:0000:4e:00): 79, µ line {sequence}",
        facts={"xid": 79, "big": 2**70, "ratio": 0.5, "none": None, "yes": True},
        received=at(sequence % 2**20),
    )


def sample(kind: Any, name: str = "x") -> Any:
    """A value of the type: containers hold one element, an optional is there, text is its field's name if it may be."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        hints = get_type_hints(kind, include_extras=True)
        return kind(**{field: sample(hints[field], field) for field in kind.__struct_fields__})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    origin, args = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return sample(next(arg for arg in args if arg is not type(None)), name)
    if origin is typing.Literal:
        return args[0]
    if origin is typing.Annotated:
        patterns = [meta.pattern for meta in args[1:] if isinstance(meta, Meta) and meta.pattern]
        return next((FITTING[one] for one in patterns if not re.search(one, name)), None) or sample(args[0], name)
    if origin is tuple:
        return tuple(sample(each, name) for arg in args if arg is not Ellipsis for each in _members(arg))
    if origin is dict:
        return {sample(args[0], name): sample(args[1], name)}
    plain = {str: name, int: 7, float: 1.5, bool: True, datetime: START, Any: name}
    return TEXTS[kind](name) if kind in TEXTS else plain[kind]


def _members(kind: Any) -> tuple[Any, ...]:
    """The classes of a union that are told apart by tags: a container holds one of each. Else the type itself."""
    args = get_args(kind) if get_origin(kind) in (typing.Union, types.UnionType) else ()
    ways = args and all(isinstance(one, type) and issubclass(one, Struct) for one in args) and len(args) < FEW
    return args if ways else (kind,)
