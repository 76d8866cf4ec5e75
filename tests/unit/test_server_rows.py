"""Rows of the API: made of a noun by the names of their fields, and of nothing that they do not declare."""

import pytest
from msgspec import Struct

from hostler.server.rows import row_of


class Noun(Struct, frozen=True):
    id: str
    secret: str = "s"
    size: int = 3

    @property
    def twice(self) -> int:
        return 2 * self.size


class Row(Struct, frozen=True):
    id: str
    size: int
    twice: int
    kind: str
    note: str = ""


def test_a_row_shows_what_the_noun_has_under_its_names_and_what_is_given() -> None:
    """Mutants: the noun's value wins over what is given; properties are passed over."""
    assert row_of(Row, Noun("a"), kind="k") == Row("a", 3, 6, "k")
    assert row_of(Row, Noun("a"), kind="k", size=9, note="n") == Row("a", 9, 6, "k", "n")


def test_a_field_that_nobody_fills_is_an_error() -> None:
    """Mutant: it is left at something empty."""
    with pytest.raises(TypeError, match="kind"):
        row_of(Row, Noun("a"))
    with pytest.raises(TypeError, match="secret"):
        row_of(Row, Noun("a"), kind="k", secret="s")
