"""Arguments of a verb, read off its struct: what a form, a command line or a reference needs to know of each.

Here too a verb is made of arguments that came from outside, typed or as text.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct, inspect

from hostler.core.state.verbs.facts import Verb, name_of

AnyVerb = TypeVar("AnyVerb", bound=Verb)

_TYPES: dict[type[inspect.Type], type] = {
    inspect.BoolType: bool,
    inspect.FloatType: float,
    inspect.IntType: int,
}
_INTEGER_MOST = 2**63 - 1
_KINDS: dict[type, str] = {bool: "boolean", float: "number", int: "integer", str: "text"}


class VerbArgument(Struct, frozen=True):
    """An argument of a verb.

    `type` is bool, float, int, or str for every other; `default` is NODEFAULT where it must be given, None where it may
    be left out; `choices` are the only values, () where there is no list of them; `moment`: it is a moment with its
    time zone.
    """

    name: str
    type: type[bool] | type[float] | type[int] | type[str]
    help: str
    default: Any = NODEFAULT
    choices: tuple[str, ...] = ()
    moment: bool = False

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is NODEFAULT


def arguments_of(kind: type[Verb]) -> tuple[VerbArgument, ...]:
    """The arguments of a verb, one for each of its fields, in their order."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return tuple(_argument(field) for field in described.fields)


def _argument(field: inspect.Field) -> VerbArgument:
    told, plain = _described(field.type)
    if isinstance(plain, inspect.UnionType):
        within, plain = _described(next(one for one in plain.types if not isinstance(one, inspect.NoneType)))
        told = told or within
    moment = isinstance(plain, inspect.DateTimeType)
    return VerbArgument(field.encode_name, _TYPES.get(type(plain), str), told, field.default, _choices(plain), moment)


def _described(plain: inspect.Type) -> tuple[str, inspect.Type]:
    if not isinstance(plain, inspect.Metadata):
        return "", plain
    return str((plain.extra_json_schema or {}).get("description", "")), plain.type


def _choices(plain: inspect.Type) -> tuple[str, ...]:
    if isinstance(plain, inspect.EnumType):
        return tuple(str(member.value) for member in plain.cls)
    return tuple(map(str, plain.values)) if isinstance(plain, inspect.LiteralType) else ()


def kind_of(one: VerbArgument) -> str:
    """Kind of the argument: text, moment, number, integer, boolean or choice."""
    if one.choices:
        return "choice"
    return "moment" if one.moment else _KINDS[one.type]


def verb_of(kind: type[AnyVerb], given: Mapping[str, Any], *, text: bool = False) -> AnyVerb:
    """The verb with these arguments as JSON has them; `text`: as people write them, "2" for 2 and "true" for true.

    Raises msgspec.ValidationError, also for an integer that could not be stored.
    """
    made = msgspec.convert({**given, "verb": name_of(kind)}, kind, strict=not text)
    for name in kind.__struct_fields__:
        value = getattr(made, name)
        if isinstance(value, int) and abs(value) > _INTEGER_MOST:
            raise msgspec.ValidationError(f"Integer value out of range - at `$.{name}`")
    return made


def misfit(kind: type[Verb], why: object) -> str:
    """Says which arguments the verb takes, and why those that were given are none of them."""
    verb, arguments = name_of(kind), arguments_of(kind)
    taken = ", ".join(_told(one) for one in arguments) or "nothing"
    return f"{verb} takes {taken}: {why}"


def _told(one: VerbArgument) -> str:
    what = f"one of {' '.join(filter(None, one.choices))}" if one.choices else kind_of(one)
    return f"{one.name} ({what}{'' if one.required else ', may be left out'})"
