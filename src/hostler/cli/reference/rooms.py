"""The rooms' page: which part of the code may import which, as a diagram and a table, read from the code itself."""

import ast
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from hostler.cli.reference.markdown import block, code, first_sentence, table
from hostler.cli.reference.syntax import statements, syntax, uncollected

Imports = dict[str, frozenset[str]]
"""Room → the rooms that it imports."""


def page() -> str:
    """The page."""
    sources = dict(modules())
    imports = rooms(sources)
    return "\n".join(
        (
            "# Rooms\n",
            (
                "The code stands in rooms, and a room imports only rooms below it (`make lint` checks it). An arrow "
                'reads "imports"; what follows from other arrows is left out.\n'
            ),
            block("mermaid", ("graph TD", *_arrows(reduced(imports)))),
            table(("room", "purpose"), _rows(sources, imports)),
        )
    )


def modules() -> Iterator[tuple[str, str]]:
    """Module name ("core.state.fleet", a package's own file is the package) and source text of each, sorted."""
    yield from sorted(_modules(files("hostler"), ()))


def room_of(module: str) -> str:
    """The room of a module: its first name, in the core its first two."""
    names = module.split(".")
    return "/".join(names[:2] if names[0] == "core" and len(names) > 1 else names[:1])


def rooms(sources: dict[str, str]) -> Imports:
    """Imports between rooms."""
    found: dict[str, set[str]] = {}
    with uncollected():
        for module, text in sources.items():
            if module not in ("hostler", "core"):
                imported = {room_of(name) for name in _imported(text, sources)}
                found.setdefault(room_of(module), set()).update(imported - {room_of(module), "core"})
    return {room: frozenset(imports) for room, imports in found.items()}


def floors(imports: Imports) -> list[str]:
    """The longest chain of rooms in which each imports the next. Raises RecursionError where rooms form a circle."""

    def below(room: str) -> list[str]:
        return [room, *max((below(other) for other in sorted(imports[room])), key=len, default=[])]

    return max((below(room) for room in sorted(imports)), key=len)


def reduced(imports: Imports) -> Imports:
    """The imports without those that follow from others."""
    return {
        room: frozenset(one for one in direct if not any(one in _reached(imports, other) for other in direct - {one}))
        for room, direct in imports.items()
    }


def _reached(imports: Imports, room: str) -> frozenset[str]:
    return imports[room].union(*(_reached(imports, other) for other in imports[room]))


def _modules(folder: Traversable, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _modules(entry, (*above, entry.name))
        elif entry.name.endswith(".py"):
            names = above if entry.name == "__init__.py" else (*above, entry.name.removesuffix(".py"))
            yield ".".join(names) or "hostler", entry.read_text(encoding="utf-8")


def _imported(text: str, known: Iterable[str]) -> Iterator[str]:
    for node in statements(syntax(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hostler":
            inside = (node.module or "").removeprefix("hostler").removeprefix(".")
            for alias in node.names:
                whole = f"{inside}.{alias.name}".removeprefix(".")
                yield whole if whole in known else inside


def _arrows(imports: Imports) -> Iterator[str]:
    for room in sorted(imports):
        yield f"  {_node(room)}[{room}]"
        yield from (f"  {_node(room)} --> {_node(other)}" for other in sorted(imports[room]))


def _node(room: str) -> str:
    return room.replace("/", "_")


def _rows(sources: dict[str, str], imports: Imports) -> Iterator[tuple[str, ...]]:
    for room in sorted(imports):
        yield code(room), first_sentence(ast.get_docstring(syntax(sources[room.replace("/", ".")])))
