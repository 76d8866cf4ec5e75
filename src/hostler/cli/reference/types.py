"""How types are named in the reference: short, and without the modules they live in."""

import builtins
import types
import typing
from datetime import datetime
from enum import Enum
from typing import Any, get_args, get_origin

from hostler.core.state.operations import AnyAct
from hostler.core.state.scopes import ActGroup, Scope

NAMES = {
    datetime: "moment",
    str: "text",
    int: "integer",
    float: "number",
    bool: "yes/no",
    types.NoneType: "none",
    Scope: "scope",
    ActGroup: "group of an act",
}
UNION_MAX = 6
"""Unions of more are named "event": only the events' union is that long."""


def type_name(kind: Any) -> str:
    """The type for readers: "text", "list of Part", "moment or none"."""
    if kind in NAMES:
        return NAMES[kind]
    if get_origin(kind) is typing.Annotated:
        return type_name(get_args(kind)[0])
    if get_origin(kind) is not None:
        return _made_of(kind)
    if isinstance(kind, type) and issubclass(kind, Enum) and len(kind) <= UNION_MAX:
        return " or ".join(f"`{member.name}`" for member in kind)
    return str(getattr(kind, "__name__", kind))


def _made_of(kind: Any) -> str:
    """A type that is made of others, or of words."""
    if get_origin(kind) is typing.Literal:
        return " or ".join(f"`{word}`" for word in get_args(kind))
    inner = [type_name(arg) for arg in get_args(kind) if arg is not Ellipsis]
    match get_origin(kind):
        case typing.Union | types.UnionType:
            if kind == AnyAct:
                return "operation"
            return "event" if len(inner) > UNION_MAX else " or ".join(inner)
        case builtins.dict:
            return f"{inner[0]} → {inner[1]}"
        case builtins.tuple if Ellipsis not in get_args(kind):
            return f"({', '.join(inner)})"
        case _:
            return f"list of {inner[0]}"
