"""Reads one YAML document into plain data with the line of each entry, within limits that are checked before the work.

Text is looked at before anything is parsed, then parsed in one pass without recursion: bytes, entries, levels and the
length of a number each have a named maximum, so that no text costs more than its size. What YAML 1.1 has beyond plain
data (aliases, merge keys, tags of other types, numbers to base 60) is refused by name.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import yaml
from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem

MAX_BYTES = 1_048_576
MAX_ENTRIES = 20_000
"""Keys and list items of a document, as counted in its text: a thousand pools with twenty fields each."""
MAX_DEPTH = 32
MAX_NUMBER_CHARS = 64
"""A float needs 25 at most; Python itself stops at 4,300 digits, after a time that grows with their square."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser is ten times as fast as PyYAML's own, which stands in where the wheel has none."""
_BEFORE_A_VALUE = (": ", ":\n", ":\t", ":{", ":[", "- ", "-\n")
_LONG_NUMBER = re.compile(rf"(?<![\w.])[-+]?[\d_]{{{MAX_NUMBER_CHARS + 1}}}")
_BASE_60 = re.compile(r"(?<![\w.:])[-+]?\d+(?::[0-5]?\d){16}")
"""Longer than any address of a network card or of IPv6, which may stand in quotes."""
_STARTS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_ENDS = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
_TAG = "tag:yaml.org,2002:"


class YamlTree(Struct):
    """A value with its line. `value` is plain data; `entries` are a mapping's by key, each with its key's line."""

    line: int
    value: Any
    entries: dict[str, tuple[int, "YamlTree"]] = {}
    items: list["YamlTree"] = []
    key: tuple[int, str, Any] | None = None


def read(name: str, text: str) -> YamlTree:
    """The document's mapping. Raises InvalidInputError."""
    check_size(name, text)
    reader = _YamlReader(name)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        raise _not_yaml(name, mark.line + 1 if mark else 0, what) from error
    if reader.duplicates:
        raise InvalidInputError(tuple(reader.duplicates))
    if reader.root is None or not isinstance(reader.root.value, dict):
        raise _refused(name, 1, "not a mapping", "begin with one of policy, skus, pools, routes, boot")
    return reader.root


def check_size(name: str, text: str) -> None:
    """Refuse what would be slow to read, in one look over the text. Raises InvalidInputError."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise _refused(name, 0, f"larger than {MAX_BYTES} bytes", "split it")
    if entries(text) > MAX_ENTRIES:
        raise _refused(name, 0, f"more than {MAX_ENTRIES} entries", "leave out what has its default value, or split it")
    if (number := _LONG_NUMBER.search(text)) is not None:
        raise _long(name, _line(text, number.start()))
    if (number := _BASE_60.search(text)) is not None:
        raise _to_base_60(name, _line(text, number.start()), number.group())


def entries(text: str) -> int:
    """About how many keys and list items the text has."""
    return max(sum(map(text.count, _BEFORE_A_VALUE)), text.count(","))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _YamlReader:
    """Builds the tree from the parser's events; the open mappings and lists are on a stack of its own."""

    def __init__(self, name: str) -> None:
        self.root: YamlTree | None = None
        self.duplicates: list[Problem] = []
        self._name = name
        self._open: list[YamlTree] = []
        self._nodes = 0

    def take(self, event: Any) -> None:
        """One event of the parser. Raises InvalidInputError."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise _refused(self._name, 0, "uses a YAML alias", "write the value out")
        if isinstance(event, yaml.ScalarEvent):
            self._count()
            self._put(YamlTree(line, self._scalar(event, line)), str(event.value))
        elif isinstance(event, _STARTS):
            self._count()
            self._begin(event, line)
        elif isinstance(event, _ENDS):
            self._end()

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > 4 * MAX_ENTRIES:
            raise _refused(self._name, 0, f"more than {MAX_ENTRIES} entries", "split it")

    def _begin(self, event: Any, line: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_TAG}map" if mapping else f"{_TAG}seq"):
            raise _not_yaml(self._name, line, f"the tag {event.tag[:80]} is not known here")
        if self._open and isinstance(self._open[-1].value, dict) and self._open[-1].key is None:
            raise _not_yaml(self._name, line, "a mapping or list is used as a key")
        if len(self._open) >= MAX_DEPTH:
            raise _refused(self._name, line, "nested too deeply", "the schema has a few levels only")
        self._open.append(YamlTree(line, {} if mapping else []))

    def _end(self) -> None:
        self._put(self._open.pop(), "")

    def _put(self, tree: YamlTree, word: str) -> None:
        """Hang the tree where it belongs: a key, a key's value, a list's item, or the document itself."""
        if not self._open:
            if self.root is not None:
                raise _not_yaml(self._name, tree.line, "a second document begins")
            self.root = tree
            return
        above = self._open[-1]
        if isinstance(above.value, list):
            above.value.append(tree.value)
            above.items.append(tree)
        elif above.key is None:
            self._key(above, tree, word)
        else:
            line, name, key = above.key
            above.value[key] = tree.value
            above.entries[name] = (line, tree)
            above.key = None

    def _key(self, above: YamlTree, tree: YamlTree, word: str) -> None:
        before = above.entries.get(word)
        if before is not None:
            what = f"'{word[:100]}' is given again (first in line {before[0]})"
            self.duplicates.append(Problem(self._name, tree.line, what, "keep one"))
        above.key = (tree.line, word, tree.value)

    def _scalar(self, event: Any, line: int) -> Any:
        text = str(event.value)
        tag = _tag_of(event, text)
        if tag == "str":
            return text
        make = _MAKERS.get(tag)
        if make is None:
            raise _not_yaml(self._name, line, f"the tag {tag[:80]} is not known here")
        if len(text) > MAX_NUMBER_CHARS:
            raise _long(self._name, line)
        if tag in ("int", "float") and ":" in text:
            raise _to_base_60(self._name, line, text)
        try:
            return make(yaml.ScalarNode(_TAG + tag, text))
        except (ValueError, LookupError, yaml.YAMLError) as error:
            raise _not_yaml(self._name, line, f"'{text}' is no {tag}") from error


def _tag_of(event: Any, text: str) -> str:
    """The type of a scalar by YAML 1.1's table, as PyYAML has it; the tag's whole name where it is another's."""
    if event.tag is not None and event.tag != "!":
        return str(event.tag).removeprefix(_TAG)
    if not event.implicit[0] or len(text) > MAX_NUMBER_CHARS:
        return "str"
    for tag, pattern in _resolvers(text):
        if pattern.match(text):
            return "str" if tag == f"{_TAG}value" else tag.removeprefix(_TAG)
    return "str"


def _resolvers(text: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    table = yaml.SafeLoader.yaml_implicit_resolvers
    yield from table.get(text[:1], ())
    yield from table.get(None, ())


_BUILT_IN = yaml.constructor.SafeConstructor()
_MAKERS: dict[str, Callable[[yaml.ScalarNode], int | float | bool | date | None]] = {
    "null": _BUILT_IN.construct_yaml_null,
    "bool": _BUILT_IN.construct_yaml_bool,
    "int": _BUILT_IN.construct_yaml_int,
    "float": _BUILT_IN.construct_yaml_float,
    "timestamp": _BUILT_IN.construct_yaml_timestamp,
}


def _long(name: str, line: int) -> InvalidInputError:
    return _refused(name, line, f"a number of more than {MAX_NUMBER_CHARS} characters", "write a smaller one")


def _to_base_60(name: str, line: int, text: str) -> InvalidInputError:
    what = f"'{text[:20]}' would be a number to base 60"
    return _refused(name, line, what, "write seconds as a plain number, or put the text in quotes")


def _not_yaml(name: str, line: int, what: str) -> InvalidInputError:
    return _refused(name, line, f"not YAML: {what}", "correct the syntax there")


def _refused(name: str, line: int, what: str, instead: str) -> InvalidInputError:
    return InvalidInputError((Problem(name, line, what, instead),))
