"""The copy of the project that mutants live in, and the lists beside this file."""

import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tests.mutation.kinds import Mutant, mutants, planted

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


class StaleError(Exception):
    """A list names text, a file or a test that is no longer there."""


class Near(Struct, frozen=True, forbid_unknown_fields=True):
    """The files of one module, and the tests near them (a file, or `file::test`), the fastest first."""

    module: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


class Planted(Struct, frozen=True, forbid_unknown_fields=True):
    """A bug that was once planted and must be caught: `before` occurs once in `file` and becomes `after`."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


class Equivalent(Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that changes nothing anybody could see, and why: the text of its line, and what it became."""

    file: str
    line: str
    after: str
    why: str


class Lists(Struct, frozen=True):
    """Holds the contents of the three files beside this one."""

    near: tuple[Near, ...]
    planted: tuple[Planted, ...]
    equivalent: tuple[Equivalent, ...]


def lists() -> Lists:
    """Raises StaleError where an entry names a file or test that is gone, or planted text that does not occur once."""
    found = Lists(
        near=_rows("near.toml", "module", Near),
        planted=_rows("planted.toml", "mutant", Planted),
        equivalent=_rows("equivalent.toml", "mutant", Equivalent),
    )
    demand_files(found)
    for row in found.planted:
        planted_mutant(row)
    files = {same.file for same in found.equivalent}
    lines = {file: {line.strip() for line in _read(file).decode().splitlines()} for file in files}
    for same in found.equivalent:
        if same.line not in lines[same.file]:
            raise StaleError(f"equivalent.toml: {same.file} has no line {same.line!r}: renew or remove it")
    return found


def _rows(name: str, table: str, kind: Any) -> Any:
    text = (HERE / name).read_bytes()
    rows = tomllib.loads(text.decode()).get(table, [])
    try:
        return msgspec.convert(tuple(rows), tuple[kind, ...])
    except msgspec.ValidationError as error:
        raise StaleError(f"{name}: {error}") from error


def demand_files(found: Lists) -> None:
    """Raises StaleError where a list names a file or a test that is not there."""
    named = [(f"near.toml: {row.module}", name) for row in found.near for name in (*row.files, *row.tests)]
    named += [(f"planted.toml: {row.name}", name) for row in found.planted for name in (row.file, *row.tests)]
    named += [("equivalent.toml", row.file) for row in found.equivalent]
    for place, name in named:
        file, _, test = name.partition("::")
        if not (ROOT / file).is_file() or (test and f"def {test}(" not in _read(file).decode()):
            raise StaleError(f"{place} names {name}, which is not there: renew it")


def planted_mutant(row: Planted) -> Mutant:
    """The planted bug as a mutant of the file as it is. Raises StaleError where its text is gone."""
    try:
        found = planted(row.file, _read(row.file), row.before, row.after)
    except ValueError as error:
        raise StaleError(f"planted.toml: {row.name}: {error}") from error
    return msgspec.structs.replace(found, name=row.name, tests=row.tests)


def all_mutants(file: str) -> list[Mutant]:
    return mutants(file, _read(file))


def _read(file: str) -> bytes:
    return (ROOT / file).read_bytes()


@contextmanager
def copied() -> Iterator[Path]:
    """A temporary copy of what git lists or would list; the checkout itself is never mutated."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with tempfile.TemporaryDirectory(prefix="hostler-mutants-") as made:
        tree = Path(made)
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        yield tree
