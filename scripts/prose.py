"""Holds docstrings and names in code to the words of `docs/glossary.md`.

The glossary's table of words not used has a row for each: where it is looked for (prose: docstrings; names: words of
classes, functions, arguments, variables and attributes), and what to say instead.
`python scripts/prose.py` fails where a room has more of them than `GRANTED`; `python scripts/prose.py ROOM`
(a path below `src/hostler`, as "drivers/redfish") lists them.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "hostler"
GLOSSARY = ROOT / "docs" / "glossary.md"
GRANTED = {"agent": 1, "app": 1, "core": 2, "drivers": 7, "server": 1, "sim": 2}
"""Findings that a room may still have. A number here only ever falls."""
_ROW = re.compile(r"^\| (prose|names) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def main(argv: list[str]) -> int:
    """Print what is to be mended; 1 where a room has more findings than it is granted."""
    found = list(findings(SOURCE, words(GLOSSARY.read_text("utf-8"))))
    if argv:
        print(
            *(f"src/hostler/{path}:{line}: {what}" for path, line, what in found if path.startswith(argv[0])), sep="\n"
        )
        return 0
    counts = Counter(path.split("/", maxsplit=1)[0] for path, _, _ in found)
    over = {room: count for room, count in sorted(counts.items()) if count > GRANTED.get(room, 0)}
    for room, count in over.items():
        print(f"prose: {room} has {count} words of the glossary's last table, {GRANTED.get(room, 0)} are granted:")
        print(*(f"  {path}:{line}: {what}" for path, line, what in found if path.startswith(room)), sep="\n")
    return 1 if over else 0


def words(glossary: str) -> list[tuple[str, str, str]]:
    """Read the table of words not used: where, word or phrase, and what to say instead."""
    return _ROW.findall(glossary)


def findings(source: Path, unused: list[tuple[str, str, str]]) -> Iterator[tuple[str, int, str]]:
    """Yield path below `source`, line and finding, file by file."""
    prose = [(re.compile(rf"\b{re.escape(word)}\b"), say) for where, word, say in unused if where == "prose"]
    names = {word: say for where, word, say in unused if where == "names"}
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            for line, text in _docstrings(node):
                hits = ((pattern.search(" ".join(text.split())), say) for pattern, say in prose)
                yield from ((name, line, f'"{hit[0]}": say "{say}"') for hit, say in hits if hit)
        for made, line in sorted(_made(tree).items()):
            parts = (part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", made))
            yield from ((name, line, f'{made}: say "{names[part]}"') for part in parts if part in names)


def _made(tree: ast.Module) -> dict[str, int]:
    """Names that a module defines or sets, each once, with its first line; what others call their own is not ours."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=made) | ast.FunctionDef(name=made) | ast.AsyncFunctionDef(name=made):
                found.setdefault(made, node.lineno)
            case ast.arg(arg=made) | ast.Name(id=made, ctx=ast.Store()) | ast.Attribute(attr=made, ctx=ast.Store()):
                found.setdefault(made, node.lineno)
    return found


def _docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of the docstrings in a body: its own, and those that follow an assignment."""
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else []:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.lineno, str(statement.value.value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
