"""Measures the shape of `src/`: rooms, names, docstrings, sizes. `make lint` fails where one of them has grown.

Docstrings that open with a pronoun are looked for in `ALSO_READ` too.

`python scripts/house_rules.py` prints every measure with its aim and what stands (`scripts/house_rules.toml`), and
exits with 1 where a measure is beyond that. `--list MEASURE` prints what is counted, one place a line. `--tighten`
writes what was measured as what stands.
"""

import argparse
import ast
import gc
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from hostler.cli.reference.rooms import floors, modules, rooms
from hostler.cli.reference.syntax import statements, syntax

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
ALSO_READ = tuple(ROOT / name for name in ("bench", "packages", "scripts", "tests"))
STANDS = Path(__file__).with_suffix(".toml")
READING_PATH = ("core/tables/phases.py", "core/tables/recipes.py", "core/planning/next_step.py", "controller/loop.py")
FILE_MOST, FUNCTION_MOST = 700, 60
_ALONE = (
    "who|what|whose|whom|which|whoever|whatever|whichever|it|its|they|their|he|his|she|her|we|our|you|your|"
    "this|that|these|those|nobody|somebody|everybody|anybody|nothing|something|everything|anything|none|others|neither|where"
)
_BESIDE = "all|another|any|both|each|either|every|few|many|most|one|several"
"""Words that may stand before a noun: "One node" may open a docstring, "One of them", "All that" and "Each is" not."""
_NO_NOUN = "are|at|by|can|for|had|has|have|in|is|may|must|of|on|that|was|were|when|where|which|who"
PRONOUN = re.compile(rf"\W*(?:(?:{_ALONE})\b(?!-)|(?:{_BESIDE})\b(?:[.,:;]|\s+(?:{_NO_NOUN})\b))", re.IGNORECASE)
_SUSPECTED = re.compile(rf"[\"']{PRONOUN.pattern}", re.IGNORECASE)
AIMS = {
    "duplicate classes": 0,
    "pronoun docstrings": 0,
    "methods without docstring": 0,
    "file p90": 300,
    "files over 700": 0,
    "function p90": 16,
    "functions over 60": 0,
    "floors": 13,
    "reading path": 800,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = dict[str, list[ast.AST]]
"""Each file's module and statements, walked once: every measure reads them."""


def measure(source: Path, *also_read: Path) -> dict[str, list[str] | int]:
    """Return each measure of `source`: the places that it counts, or its number. Of `also_read` docstrings count."""
    texts = _texts(source)
    trees = _trees(texts)
    others = (pronoun for folder in also_read for pronoun in _pronouns_below(folder))
    sizes = {name: len(text.splitlines()) for name, text in texts.items()}
    functions = [(place, node, _length(node)) for place, node in _functions(trees)]
    return {
        "duplicate classes": list(_duplicates(trees)),
        "pronoun docstrings": [*_pronouns(trees), *others],
        "methods without docstring": list(_undocumented(trees)),
        "file p90": _p90(list(sizes.values())),
        "files over 700": [f"{name}: {size} lines" for name, size in sizes.items() if size > FILE_MOST],
        "function p90": _p90([length for _, _, length in functions]),
        "functions over 60": [
            f"{place}: {length} lines"
            for place, node, length in functions
            if length > FUNCTION_MOST and not _is_flat(node)
        ],
    }


def measure_rooms() -> dict[str, list[str] | int]:
    """The measures of rooms: the longest chain of imports between them, and the reading path's lines."""
    path = (SOURCE / "hostler" / name for name in READING_PATH)
    return {
        "floors": floors(rooms(dict(modules()))),
        "reading path": sum(len(file.read_text("utf-8").splitlines()) for file in path),
    }


def beyond(measured: dict[str, int], stands: dict[str, int]) -> list[str]:
    """Lists what has grown beyond what stands, and beyond its aim."""
    limits = {name: max(AIMS[name], stands.get(name, 0)) for name in measured}
    return [f"{name}: {found}, at most {limits[name]}" for name, found in measured.items() if found > limits[name]]


def main() -> None:
    """Print the measures; exit with 1 where one has grown."""
    parser = argparse.ArgumentParser(description="Measures the shape of src/.")
    parser.add_argument("--list", metavar="MEASURE", help="print what this measure counts")
    parser.add_argument("--tighten", action="store_true", help="write what was measured as what stands")
    arguments = parser.parse_args()
    gc.disable()  # trees of syntax hold no circles, and to walk them again and again takes longer than the rest
    found = measure(SOURCE, *ALSO_READ) | measure_rooms()
    if arguments.list is not None:
        listed = found[arguments.list]
        print("\n".join(listed) if isinstance(listed, list) else listed)
        return
    numbers = {name: value if isinstance(value, int) else len(value) for name, value in found.items()}
    stands = tomllib.loads(STANDS.read_text("utf-8")) if STANDS.exists() else {}
    for name, number in numbers.items():
        print(f"{name:28}{number:>6}   aim {AIMS[name]:>4}, stands {stands.get(name, 0):>4}")
    if arguments.tighten:
        STANDS.write_text("".join(f'"{name}" = {number}\n' for name, number in numbers.items()), "utf-8")
    elif grown := beyond(numbers, stands):
        sys.exit("grown, see --list MEASURE: " + "; ".join(grown))


def _texts(folder: Path) -> dict[str, str]:
    """Read each module below the folder, by its path there."""
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}


def _trees(texts: dict[str, str]) -> Trees:
    trees = {name: syntax(text) for name, text in texts.items()}
    return {name: [tree, *statements(tree)] for name, tree in trees.items()}


def _length(node: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    whole = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return whole - ((first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0)


def _is_flat(node: Function) -> bool:
    """Whether one `match` makes most of it: a table in the shape of code."""
    found = (one for one in node.body if isinstance(one, ast.Match))
    longest = max(((one.end_lineno or 0) - one.lineno for one in found), default=0)
    return longest > 0.8 * _length(node)


def _p90(sizes: list[int]) -> int:
    return sorted(sizes)[int(0.9 * len(sizes))] if sizes else 0


def _walk(trees: Trees, kind: Callable[[ast.AST], bool]) -> Iterator[tuple[str, ast.AST]]:
    for name, nodes in trees.items():
        yield from ((name, node) for node in nodes if kind(node))


def _functions(trees: Trees) -> Iterator[tuple[str, Function]]:
    for name, node in _walk(trees, lambda node: isinstance(node, Function)):
        if isinstance(node, Function):
            yield f"{name}:{node.lineno} {node.name}", node


def _duplicates(trees: Trees) -> Iterator[str]:
    found = defaultdict(list)
    for name, node in _walk(trees, lambda node: isinstance(node, ast.ClassDef)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name].append(f"{name}:{node.lineno}")
    yield from (f"{name}: {', '.join(places)}" for name, places in sorted(found.items()) if len(places) > 1)


def _pronouns(trees: Trees) -> Iterator[str]:
    for name, nodes in trees.items():
        for node in nodes:
            yield from (f"{name}:{line} {text[:60]}" for line, text in _documents(node) if PRONOUN.match(text))


def _pronouns_below(folder: Path) -> Iterator[str]:
    """The same of a folder by its name; a file without such a string at all is not parsed: a tenth of the time."""
    suspected = {name: text for name, text in _texts(folder).items() if _SUSPECTED.search(text)}
    yield from (f"{folder.name}/{place}" for place in _pronouns(_trees(suspected)))


def _documents(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The docstrings in a body: its own, and those that follow an assignment."""
    body = getattr(node, "body", None)
    for statement in body if isinstance(body, list) else []:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.lineno, str(statement.value.value).strip()


def _undocumented(trees: Trees) -> Iterator[str]:
    for name, node in _walk(trees, lambda node: isinstance(node, ast.ClassDef)):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        for method in node.body:
            if isinstance(method, Function) and not method.name.startswith("_") and not ast.get_docstring(method):
                yield f"{name}:{method.lineno} {node.name}.{method.name}"


if __name__ == "__main__":
    main()
