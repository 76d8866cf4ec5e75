"""Arguments of a verb, read off its struct: what a form, a command line or a reference needs to know of each."""

from typing import Any

from msgspec import NODEFAULT, Struct, inspect

from hostler.core.state.verbs.facts import Verb

_TYPES: dict[type[inspect.Type], type] = {
    inspect.BoolType: bool,
    inspect.FloatType: float,
    inspect.IntType: int,
}


class VerbArgument(Struct, frozen=True):
    """An argument of a verb.

    `type` is bool, float, int, or str for every other; `default` is NODEFAULT where it must be given, None where it may
    be left out; `choices` are the only values, () where there is no list of them.
    """

    name: str
    type: type[bool] | type[float] | type[int] | type[str]
    help: str
    default: Any = NODEFAULT
    choices: tuple[str, ...] = ()

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
    told, plain = "", field.type
    if isinstance(plain, inspect.Metadata):
        told, plain = str((plain.extra_json_schema or {}).get("description", "")), plain.type
    if isinstance(plain, inspect.UnionType):
        plain = next(one for one in plain.types if not isinstance(one, inspect.NoneType))
    if isinstance(plain, inspect.Metadata):
        plain = plain.type
    return VerbArgument(field.encode_name, _TYPES.get(type(plain), str), told, field.default, _choices(plain))


def _choices(plain: inspect.Type) -> tuple[str, ...]:
    if isinstance(plain, inspect.EnumType):
        return tuple(str(member.value) for member in plain.cls)
    return tuple(map(str, plain.values)) if isinstance(plain, inspect.LiteralType) else ()
