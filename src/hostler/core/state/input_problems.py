"""Problems with what was given to us: where, what, and what to write instead."""

from msgspec import MsgspecError, Struct

UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding bytes from outside: not JSON, another shape, text that is not UTF-8, nested without end."""


class Problem(Struct, frozen=True):
    """One thing wrong with a document or request. `line` is 1-based, 0 where lines mean nothing."""

    where: str
    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.what}; {self.instead}"


class WrongEntry(Struct, frozen=True):
    """One entry of a configuration that is wrong, by its path below the place that is looked through."""

    what: str
    instead: str
    path: tuple[str, ...] = ()

    def below(self, path: tuple[str, ...], named: str = "") -> "WrongEntry":
        """The entry by its path from further up; `named` says whose it is."""
        return WrongEntry(f"{named}: {self.what}" if named else self.what, self.instead, (*path, *self.path))


class InvalidInputError(ValueError):
    """The input is refused whole; nothing of it was used."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
