"""Names the files of the distribution `hostler-agent`: the agent's, and whatever of the house they import."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path(__file__).parents[2] / "src"
ROOM = SOURCE / "hostler/agent"


class CustomBuildHook(BuildHookInterface[Any]):
    """Gives hatchling the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's interface
        """Add each file under the name that it has below src."""
        build_data["force_include"] |= {str(file): str(file.relative_to(SOURCE)) for file in closure()}


def closure() -> set[Path]:
    """The room's own files, and of every other room what they import, at once or later."""
    found: set[Path] = set()
    waiting = [file for file in ROOM.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file) if file.suffix == ".py" else ()
    return found


def _imported(file: Path) -> Iterator[Path]:
    """The files of the house that one file imports, with the packages that they are in."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.partition(".")[0] == "hostler":
                yield from _files(name.split("."))


def _files(words: list[str]) -> Iterator[Path]:
    """A module's file and its packages' own; nothing for a name that is no module."""
    for length in range(1, len(words) + 1):
        place = SOURCE.joinpath(*words[:length])
        yield from (file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file())
