"""YAML that people write, read whole: every problem with its line, nothing half taken.

Aliases are refused (they can make a small file huge), and so are keys that nobody knows.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_BYTES, MAX_NODES, MAX_DEPTH = 64 * 1024, 4_000, 20
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)", re.ASCII)
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


class ProfileError(ValueError):
    """A document that is refused; the message has a line for each problem."""


@dataclass
class Problems:
    """The problems found so far in one document."""

    name: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, node: Node, text: str) -> None:
        """Note a problem at the node's line."""
        self.found.append((node.start_mark.line + 1, text))

    def raise_any(self) -> None:
        """Raise ProfileError where there are any, in the order of their lines."""
        if self.found:
            lines = sorted(self.found, key=lambda one: one[0])[:50]
            raise ProfileError("\n".join(f"{self.name}:{line}: {text}" for line, text in lines))


def tree(text: str, problems: Problems) -> MappingNode:
    """The document's nodes. Raises ProfileError for what is no YAML, too large, or no mapping."""
    if len(text.encode()) > MAX_BYTES:
        raise ProfileError(f"{problems.name}:1: at most {MAX_BYTES >> 10} KiB are read")
    try:
        events = _bounded(yaml.parse(text, yaml.SafeLoader))
        is_aliased = any(isinstance(event, yaml.AliasEvent) for event in events)
        root = None if is_aliased else yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ProfileError(f"{problems.name}:{line}: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise ProfileError(f"{problems.name}:1: no text: {error.reason}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ProfileError(f"{problems.name}:1: {error}") from None
    if is_aliased:
        raise ProfileError(f"{problems.name}:1: aliases (*) are not read")
    if not isinstance(root, MappingNode):
        raise ProfileError(f"{problems.name}:1: a document is a mapping of names to values")
    return root


def _bounded(events: Iterator[Any]) -> Iterator[Any]:
    depth = 0
    for count, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_NODES} values, or {MAX_DEPTH} levels")
        yield event


def fields(node: Node, known: frozenset[str], problems: Problems, needed: str = "") -> dict[str, Node]:
    """The fields of a mapping; unknown, double and missing ones are problems."""
    if not isinstance(node, MappingNode):
        problems.add(node, "a mapping of names to values is expected")
        return {}
    found: dict[str, Node] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in known:
            problems.add(key, f"{name[:40]!r} is not known here; known: {', '.join(sorted(known))}")
        elif name in found:
            problems.add(key, f"{name} stands there twice")
        found[name] = value
    if needed and needed not in found:
        problems.add(node, f"{needed} is missing")
    return {name: value for name, value in found.items() if name in known}


def pairs(node: Node | None, problems: Problems) -> list[tuple[str, Node]]:
    """The names and values of a mapping whose names are free; none for one that is not there."""
    if node is None:
        return []
    if not isinstance(node, MappingNode):
        problems.add(node, "a mapping of names to values is expected")
        return []
    return [(str(key.value)[:64], value) for key, value in node.value]


def items(node: Node | None, problems: Problems) -> list[Node]:
    """The items of a list; none for a list that is not there."""
    if node is None:
        return []
    if not isinstance(node, SequenceNode):
        problems.add(node, "a list is expected")
        return []
    return list(node.value)


def text(node: Node | None, problems: Problems, default: str = "") -> str:
    """A text of one line."""
    if node is None:
        return default
    if not isinstance(node, ScalarNode) or not node.value or not str(node.value).strip():
        problems.add(node, "a text is expected")
        return default
    return str(node.value)


def number(node: Node | None, bounds: tuple[float, float], problems: Problems, default: float) -> float:
    """A number within bounds, both included."""
    return _scalar(node, bounds, problems, default, _plain)


def duration(node: Node | None, bounds: tuple[float, float], problems: Problems, default: float) -> float:
    """A length of time in seconds: "90s", "20min", "24h", "2d"."""
    return _scalar(node, bounds, problems, default, duration_s)


def truth(node: Node | None, problems: Problems, default: bool) -> bool:
    """True or false."""
    if node is None:
        return default
    if isinstance(node, ScalarNode) and node.value in ("true", "false"):
        return bool(node.value == "true")
    problems.add(node, "true or false is expected")
    return default


def duration_s(told: str) -> float:
    """Seconds of a duration. Raises ValueError."""
    found = _DURATION.fullmatch(told.strip())
    if found is None:
        raise ValueError(f"{told[:40]!r} is no length of time such as 90s, 20min or 24h")
    return float(found[1]) * _UNITS[found[2]]


def _plain(told: str) -> float:
    value = float(told)
    if value != value:  # noqa: PLR0124 - NaN alone differs from itself
        raise ValueError("NaN is no number here")
    return value


def _scalar(
    node: Node | None,
    bounds: tuple[float, float],
    problems: Problems,
    default: float,
    read: Callable[[str], float],
) -> float:
    if node is None:
        return default
    try:
        value = read(str(node.value) if isinstance(node, ScalarNode) else "")
    except ValueError:
        problems.add(node, "90s, 20min or 24h is expected" if read is duration_s else "a number is expected")
        return default
    if not bounds[0] <= value <= bounds[1]:
        problems.add(node, f"{bounds[0]:g} to {bounds[1]:g} is expected, not {value:g}")
        return default
    return value
