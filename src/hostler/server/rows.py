"""Makes a row of the API of the noun that it shows."""

from typing import TypeVar

from msgspec import Struct

Row = TypeVar("Row", bound=Struct)


def row_of(kind: type[Row], noun: Struct, /, **others: object) -> Row:
    """A row with what the noun has under the same names; `others` are fields that the row names otherwise or works out.

    Only what the row declares is shown: a new field of a noun is in no answer. Raises TypeError for a field that is
    neither the noun's nor given.
    """
    same = {name: getattr(noun, name) for name in kind.__struct_fields__ if name not in others and hasattr(noun, name)}
    return kind(**same | others)
