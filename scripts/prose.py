"""Holds docstrings and names in code to the words of `docs/glossary.md`.

The glossary's table of words not used has a row for each: where it is looked for (prose: docstrings; names: words of
classes, functions, arguments, variables and attributes), and what to say instead.
Both are read in `src`, `bench`, `packages` and `tests`. Each word that the glossary explains is part of a name in the
first three: a word that no code uses any more leaves it. `python scripts/prose.py` prints what is to be mended, and
fails where there is anything.
"""

import ast
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src/hostler", "bench", "packages")
FOLDERS = (*CODE, "tests")
GLOSSARY = ROOT / "docs" / "glossary.md"
_EXPLAINED = re.compile(r"^\| (?!(?:prose|names|where|word) \|)([^|]+?) \| [^|]+ \|$", re.MULTILINE)
_MADE = re.compile(r"(?:(?<=\bdef )|(?<=\bclass ))\w+|\b[A-Za-z_]\w*(?=: \S|(?:: [^=\n]+)? ?=[^=])")
_ROW = re.compile(r"^\| (prose|names) \| (.+?) \| (.+?) \|$", re.MULTILINE)
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A word of a name."""


def main() -> int:
    """Print what is to be mended; 1 where anything is."""
    gc.disable()  # trees of syntax hold no circles, and to walk them again and again takes longer than the rest
    glossary = GLOSSARY.read_text("utf-8")
    unused = words(glossary)
    found = [
        f"{folder}/{path}:{line}: {what}" for folder in FOLDERS for path, line, what in findings(ROOT / folder, unused)
    ]
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    names = {name for path in files for name in (path.stem, *_MADE.findall(path.read_text("utf-8")))}
    found += [f"{GLOSSARY.name}: no name in the code has '{word}'" for word in unnamed(glossary, names)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def words(glossary: str) -> list[tuple[str, str, str]]:
    """Read the table of words not used: where, word or phrase, and what to say instead."""
    return _ROW.findall(glossary)


def unnamed(glossary: str, names: set[str]) -> list[str]:
    """Words of the table of words used that are part of no name; plural and singular are one."""
    used = " ".join({_joined(PART.findall(name)) for name in names})
    listed = (re.sub(r"\(.*?\)", "", row) for row in _EXPLAINED.findall(glossary))
    explained = (word.strip() for row in listed for word in row.split(","))
    return [word for word in explained if _joined(re.split("[ -]", word)) not in used]


def _joined(parts: list[str]) -> str:
    """Words of a name, small and in the singular, each between two underscores."""
    small = (part.lower() for part in parts)
    return f"_{'_'.join(part[:-1] if len(part) > 3 and part.endswith('s') else part for part in small)}_"


def findings(source: Path, unused: list[tuple[str, str, str]]) -> Iterator[tuple[str, int, str]]:
    """Yield path below `source`, line and finding, file by file."""
    prose = [(re.compile(rf"\b{re.escape(word)}\b"), say) for where, word, say in unused if where == "prose"]
    names = {word: say for where, word, say in unused if where == "names"}
    phrase = re.compile("|".join(rf"\b{re.escape(word)}\b" for where, word, _ in unused if where == "prose") or "(?!)")
    for path in sorted(source.rglob("*.py")):
        name, whole = path.relative_to(source).as_posix(), path.read_text("utf-8")
        parts_of_names = {part.lower() for part in PART.findall(whole)}
        if parts_of_names.isdisjoint(names) and not phrase.search(" ".join(whole.split())):
            continue  # parsing takes most of the time, and this file has none of the words
        nodes = list(ast.walk(ast.parse(whole)))
        for node in nodes:
            for line, text in _docstrings(node):
                hits = ((pattern.search(" ".join(text.split())), say) for pattern, say in prose)
                yield from ((name, line, f'"{hit[0]}": say "{say}"') for hit, say in hits if hit)
        for made, line in sorted(_made(nodes).items()):
            parts = (part.lower() for part in PART.findall(made))
            yield from ((name, line, f'{made}: say "{names[part]}"') for part in parts if part in names)


def _made(nodes: list[ast.AST]) -> dict[str, int]:
    """Names that a module defines or sets, each once, with its first line; what others call their own is not ours."""
    found: dict[str, int] = {}
    for node in nodes:
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
    sys.exit(main())
