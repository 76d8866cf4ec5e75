"""The events' page: everything that can be recorded, with its fields."""

from collections.abc import Iterator
from typing import get_args

import msgspec

from hostler.cli.reference.markdown import code, first_sentence, table
from hostler.cli.reference.types import type_name
from hostler.core.state.events import VERSION, Event, Record


def page() -> str:
    """The page."""
    return "\n".join(
        (
            "# Events\n",
            (
                f"What the journal holds and `GET /v1/events` streams. Bodies have version {VERSION}; names never "
                "change their meaning.\n"
            ),
            "## Record\n",
            f"{' '.join((Record.__doc__ or '').split())}\n",
            table(("field", "type"), _fields(Record)),
            "## Bodies\n",
            table(("event", "says", "fields"), _events()),
        )
    )


def _events() -> Iterator[tuple[str, ...]]:
    for event in get_args(Event):
        fields = ", ".join(f"{code(name)} {kind}" for name, kind in _fields(event))
        yield code(str(event.__struct_config__.tag)), first_sentence(event.__doc__), fields


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(struct):
        yield field.encode_name, type_name(field.type)
