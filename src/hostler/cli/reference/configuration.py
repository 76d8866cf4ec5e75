"""The configuration's page: every field of the three sections, with its default."""

from collections.abc import Iterator
from typing import Any

import msgspec

from hostler.cli.reference.markdown import code, table
from hostler.cli.reference.types import type_name
from hostler.core.policy.documents import ACTIONS, SECTIONS
from hostler.core.state.configuration import (
    Brake,
    Budget,
    DomainBudget,
    Policy,
    Pool,
    Rule,
    Rung,
    Sku,
)
from hostler.core.state.firmware_updates import FirmwareStage, FirmwareUpdate
from hostler.core.state.pass_rules import PassRules, ReadingRule, StageRule
from hostler.core.state.racks import RackManifest

_STRUCTS: tuple[type[msgspec.Struct], ...] = (
    Policy,
    Rule,
    Rung,
    DomainBudget,
    Brake,
    Sku,
    PassRules,
    ReadingRule,
    StageRule,
    RackManifest,
    FirmwareUpdate,
    FirmwareStage,
    Pool,
    Budget,
)


def page() -> str:
    """The page."""
    return "\n".join(
        (
            "# Configuration\n",
            (
                f"YAML documents with the sections {', '.join(map(code, SECTIONS))}. A row's name is its key and "
                "need not be said again. `hostler policy check FILE…` checks them offline, `hostler policy schema` "
                "prints the JSON schema for editors, `hostler policy activate FILE…` makes them active as a whole.\n"
            ),
            f"A rule's `remedy` is one of {', '.join(map(code, ACTIONS))}, or empty to watch only.\n",
            *(_section(struct) for struct in _STRUCTS),
        )
    )


def _section(struct: type[msgspec.Struct]) -> str:
    about = " ".join((struct.__doc__ or "").split())
    return f"## {struct.__name__}\n\n{about}\n\n{table(('field', 'type', 'default'), _fields(struct))}"


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    for field in msgspec.structs.fields(struct):
        yield code(field.encode_name), type_name(field.type), _default(field)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default is not msgspec.NODEFAULT:
        return _shown(field.default)
    made = field.default_factory() if callable(field.default_factory) else None
    return "as below" if isinstance(made, msgspec.Struct) else _shown(made)


def _shown(value: Any) -> str:
    return code(str(msgspec.to_builtins(value))) if value not in ("", {}, ()) else "empty"
