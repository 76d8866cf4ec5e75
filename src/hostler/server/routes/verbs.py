"""Verbs that a caller may ask for, with their arguments: what a form for them needs to know."""

from typing import Any

from litestar import Router, get
from msgspec import Struct, inspect

from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Heading, Permission, Target, Verb, help_of
from hostler.server.auth import may, needs
from hostler.server.dependencies import Who

_KINDS: dict[type, str] = {inspect.BoolType: "boolean", inspect.FloatType: "number", inspect.IntType: "number"}


class ArgumentView(Struct, frozen=True):
    """An argument of a verb. `kind`: text, number, boolean or choice; `choices` are the values of a choice."""

    name: str
    kind: str
    help: str
    required: bool
    choices: tuple[str, ...] = ()


class VerbView(Struct, frozen=True):
    """A verb: what it does, on what, how the command line calls it, and its arguments.

    `on_node`, `on_rack`: whether the target may be one. `heading` groups the verbs of a node; "" for others. `route` is
    the API's route of a verb that brings documents along; the others are asked for by POST /v1/intents.
    """

    verb: str
    help: str
    permission: Permission
    target: Target
    on_node: bool
    on_rack: bool
    heading: str
    command: str
    route: str
    args: tuple[ArgumentView, ...]


def verb_view(verb: str, kind: type[Verb]) -> VerbView:
    """The verb as the API shows it."""
    facts = kind.facts
    return VerbView(
        verb=verb,
        help=help_of(kind),
        permission=facts.asks,
        target=facts.target,
        on_node=facts.target.may_be_node,
        on_rack=facts.target.may_be_rack,
        heading=facts.heading.value if facts.heading else "",
        command=facts.command or (f"node {verb}" if isinstance(facts.heading, Heading) else ""),
        route=facts.route,
        args=_arguments(kind),
    )


def _arguments(kind: type[Verb]) -> tuple[ArgumentView, ...]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return tuple(_argument(field) for field in described.fields)


def _argument(field: inspect.Field) -> ArgumentView:
    told, plain = "", field.type
    if isinstance(plain, inspect.Metadata):
        told, plain = str((plain.extra_json_schema or {}).get("description", "")), plain.type
    if isinstance(plain, inspect.UnionType):
        plain = next(one for one in plain.types if not isinstance(one, inspect.NoneType))
    if isinstance(plain, inspect.Metadata):
        plain = plain.type
    return ArgumentView(field.encode_name, _kind(plain), told, field.required, _choices(plain))


def _kind(plain: inspect.Type) -> str:
    return "choice" if _choices(plain) else _KINDS.get(type(plain), "text")


def _choices(plain: inspect.Type) -> tuple[str, ...]:
    values: tuple[Any, ...] = ()
    if isinstance(plain, inspect.EnumType):
        values = tuple(member.value for member in plain.cls)
    elif isinstance(plain, inspect.LiteralType):
        values = tuple(plain.values)
    return tuple(map(str, values))


VIEWS = tuple(verb_view(verb, kind) for verb, kind in VERBS.items())
"""Every verb."""


@get("/verbs", guards=[needs(Permission.see)])
async def list_verbs(who: Who) -> tuple[VerbView, ...]:
    """Verbs that the caller may ask for, with their arguments."""
    return tuple(view for view in VIEWS if may(who, view.permission))


router = Router(path="/", route_handlers=[list_verbs], tags=["intents"])
