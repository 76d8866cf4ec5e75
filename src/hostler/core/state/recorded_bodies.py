"""Shapes of stored bodies, format by format: what a controller that reads up to a format can read in a body.

`recorded_bodies.txt` holds them, one fact a line; `scripts/event_formats.py` writes it from the classes of events. A
body that holds a kind, a value or a field that its cell's format does not have is told from one that every
controller of the cell reads, without anybody's list of what is new.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

Shape = dict[str, Any]
Facts = dict[str, tuple[Any, ...]]
"""Subject → what holds for it: a field's shape, a struct's own, or each value and kind that its name stands for."""

FILE = "recorded_bodies.txt"
HEADER, EVENT, MANY, FIELDS = "format", "event ", "any ", "fields "
"""Words before a subject: a format's digest, an event's stored name, the name of many kinds, a struct's fields."""
SAID_MOST = 3
"""Places that a text names; a body that holds more of them is as unreadable."""


class Fact(Struct, frozen=True, order=True):
    """A fact of shapes: `text` (JSON) holds for `subject` from format `since` on, up to `until` where it has ended."""

    subject: str
    text: str
    since: int
    until: int = 0

    def line(self) -> str:
        """The fact as it stands in the file."""
        return f"{self.since} {self.until or '-'} {self.subject} {self.text}"

    def holds(self, number: int) -> bool:
        """Whether it holds in this format."""
        return self.since <= number and (not self.until or number < self.until)


class ReadAs(Struct, frozen=True):
    """A body as a format has it. `unread` are values that it has no word for, `lost` fields that it leaves out."""

    body: Any
    unread: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Places of the body that the format lacks, for people."""
        named = (*self.unread, *self.lost)
        return "; ".join(named[:SAID_MOST]) + (f" and {len(named) - SAID_MOST} more" if len(named) > SAID_MOST else "")


class BodyShapes:
    """The shapes of all formats that are recorded, from `oldest` to `newest`; none where there are no facts."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self.facts = tuple(facts)
        self.formats = tuple(sorted({fact.since for fact in self.facts} | {f.until for f in self.facts if f.until}))
        self._by_format: dict[int, Facts] = {}
        self._alike: dict[tuple[str, int], bool] = {}

    @property
    def newest(self) -> int:
        """The newest format, 1 where none is recorded."""
        return max(self.formats, default=1)

    def until(self, number: int) -> "BodyShapes":
        """Shapes as a version had them whose newest format was this one."""
        known = (fact for fact in self.facts if fact.since <= number)
        return BodyShapes(Fact(f.subject, f.text, f.since, f.until if f.until <= number else 0) for f in known)

    def at(self, number: int) -> Facts:
        """The facts of a format. One from before any was recorded has those of the oldest."""
        number = max(number, self.formats[0])
        if (found := self._by_format.get(number)) is None:
            found = self._by_format[number] = grouped(fact for fact in self.facts if fact.holds(number))
        return found

    def may_differ(self, name: str, number: int) -> bool:
        """Whether bodies of the event may hold what the format does not have; False is cheap and certain."""
        if not self.formats:
            return False
        if (alike := self._alike.get((name, number))) is None:
            old, new = self.at(number), self.at(self.newest)
            alike = self._alike[name, number] = all(old.get(one) == new[one] for one in reached(new, f"{EVENT}{name}"))
        return not alike

    def read(self, name: str, body: Any, number: int) -> ReadAs:
        """The body of an event of this stored name as the format has it."""
        reading = _Reading(self.at(number), self.at(self.newest))
        if not self.version(name, number):
            return ReadAs(body, (f"event {name}",))
        told = reading.named(f"{EVENT}{name}", body, name)
        return ReadAs(told, tuple(reading.unread), tuple(reading.lost))

    def version(self, name: str, number: int) -> int:
        """The version of the event's body whose shape the format holds, 0 where it has no such event."""
        shapes = self.at(number).get(f"{EVENT}{name}", ())
        return int(shapes[0]["version"]) if shapes else 0


NO_SHAPES = BodyShapes()
"""Shapes of a version that records none: no body is looked into."""


def grouped(facts: Iterable[Fact]) -> Facts:
    """The facts by subject."""
    found: dict[str, tuple[Any, ...]] = {}
    for fact in facts:
        found[fact.subject] = (*found.get(fact.subject, ()), msgspec.json.decode(fact.text))
        struct, dot, field = fact.subject.partition(".")
        if dot and not struct.startswith(MANY):
            found[f"{FIELDS}{struct}"] = (*found.get(f"{FIELDS}{struct}", ()), field)
    return found


def reached(facts: Facts, subject: str) -> list[str]:
    """The subject, and all those that its shapes lead to."""
    found: dict[str, None] = {}
    open_ones = [subject]
    while open_ones:
        if (one := open_ones.pop()) in found:
            continue
        found[one] = None
        open_ones += [f"{one}.{field}" for field in facts.get(f"{FIELDS}{one}", ())]
        open_ones += [name for shape in facts[one] for name in _names(shape)]
    return list(found)


def _names(shape: Any) -> Iterator[str]:
    if isinstance(shape, dict):
        if isinstance(name := shape.get("$ref"), str):
            yield name
        for inner in shape.values():
            yield from _names(inner)
    elif isinstance(shape, list):
        for inner in shape:
            yield from _names(inner)


def digest(facts: Iterable[Fact], number: int) -> str:
    """The digest of a format's facts."""
    held = sorted(f"{fact.subject} {fact.text}" for fact in facts if fact.holds(number))
    return blake2b("\n".join(held).encode(), digest_size=8).hexdigest()


def parsed(text: str) -> tuple[Fact, ...]:
    """The facts in the file's text. Raises ValueError where a format's digest is not that of its facts."""
    digests: dict[int, str] = {}
    facts: list[Fact] = []
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        if line.startswith(f"{HEADER} "):
            _, headed, told = line.split(" ")
            digests[int(headed)] = told
            continue
        facts.append(_fact(line))
    for number, told in digests.items():
        if digest(facts, number) != told:
            raise ValueError(f"format {number} of {FILE} has been changed: a format that is recorded never changes")
    return tuple(facts)


def _fact(line: str) -> Fact:
    since, until, rest = line.split(" ", 2)
    subject, text = re.split(r" (?=[{\"\[\d])", rest, maxsplit=1)
    return Fact(subject, text, int(since), 0 if until == "-" else int(until))


@cache
def recorded() -> BodyShapes:
    """Shapes of all formats of this version."""
    return BodyShapes(parsed(files("hostler.core.state").joinpath(FILE).read_text(encoding="utf-8")))


class _Reading:
    """One body beside the facts of a format; what today's fields have by default is left out without a word."""

    def __init__(self, old: Facts, new: Facts) -> None:
        self.old, self.new = old, new
        self.unread: list[str] = []
        self.lost: list[str] = []

    def named(self, name: str, value: Any, where: str) -> Any:
        """The value as what is called so: a struct, one of several kinds, or one of several words."""
        shapes = self.old.get(name, ())
        if len(shapes) == 1 and isinstance(shapes[0], dict) and shapes[0].get("type") == "object":
            return self._struct(name, value, where)
        words = [shape for shape in shapes if not isinstance(shape, dict)]
        if words:
            return self._worded(words, value, where)
        return self._any_of(list(shapes), value, where)

    def shaped(self, shape: Shape, value: Any, where: str) -> Any:
        """The value as a shape has it."""
        if "$ref" in shape:
            return self.named(shape["$ref"], value, where)
        if "anyOf" in shape:
            return self._any_of(shape["anyOf"], value, where)
        if "enum" in shape:
            return self._worded(shape["enum"], value, where)
        if not _is_of(shape.get("type", ""), value) or not _is_within(shape, value):
            self.unread.append(f"{where}: {_short(value)}")
            return value
        if isinstance(value, list):
            return self._listed(shape, value, where)
        inner = shape.get("additionalProperties")
        if isinstance(value, dict) and isinstance(inner, dict):
            return {key: self.shaped(inner, one, f"{where}.{key}") for key, one in value.items()}
        return value

    def _listed(self, shape: Shape, value: list[Any], where: str) -> list[Any]:
        firsts, others = shape.get("prefixItems", ()), shape.get("items")
        shapes = [*firsts, *[others if isinstance(others, dict) else {}] * (len(value) - len(firsts))]
        return [self.shaped(one, inner, where) for one, inner in zip(shapes, value, strict=False)]

    def _worded(self, words: list[Any], value: Any, where: str) -> Any:
        if value not in words:
            self.unread.append(f"{where}: {_short(value)}")
        return value

    def _any_of(self, shapes: list[Shape], value: Any, where: str) -> Any:
        """The value as the first shape that has it whole; else as the one that has most of it."""
        tries = [(_Reading(self.old, self.new), shape) for shape in shapes if self._is_tagged(shape, value)]
        told = [(reading, reading.shaped(shape, value, where)) for reading, shape in tries]
        if not told:
            self.unread.append(f"{where}: {_short(value)}")
            return value
        best, read = min(told, key=lambda one: (len(one[0].unread), len(one[0].lost)))
        self.unread += best.unread
        self.lost += best.lost
        return read

    def _is_tagged(self, shape: Shape, value: Any) -> bool:
        """Whether the shape is of the value's own kind, where structs say by a field of which kind they are."""
        name = shape.get("$ref", "")
        own = self.old.get(name, ({},))[0]
        tag = own.get("tag") if isinstance(own, dict) else None
        if not isinstance(value, dict) or not tag:
            return True
        return bool(value.get(tag) in self.old[f"{name}.{tag}"][0]["enum"])

    def _struct(self, name: str, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            self.unread.append(f"{where}: {_short(value)}")
            return value
        read = {}
        for key, one in value.items():
            if (field := self.old.get(f"{name}.{key}")) is not None:
                read[key] = self.shaped(field[0], one, f"{where}.{key}")
            elif not self._is_default(f"{name}.{key}", one):
                self.lost.append(f"{where}.{key}")
        self._miss(name, read, where)
        return read

    def _is_default(self, field: str, value: Any) -> bool:
        (today,) = self.new.get(field, ({},))
        return "default" in today and today["default"] == value

    def _miss(self, name: str, read: Shape, where: str) -> None:
        """Note fields that the format wants and the body has not, or that would be taken for another value there."""
        for key in self.old.get(f"{FIELDS}{name}", ()):
            if key in read:
                continue
            (old,), (today,) = self.old[f"{name}.{key}"], self.new.get(f"{name}.{key}", ({},))
            if old.get("required") or old.get("default") != today.get("default"):
                self.unread.append(f"{where} without {key}")


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind in ("", "boolean")
    return not kind or isinstance(value, _TYPES[kind])


def _is_within(shape: Shape, value: Any) -> bool:
    """Whether the value keeps the limits that a reader of the format checks."""
    if isinstance(value, str):
        pattern = shape.get("pattern")
        fits = pattern is None or re.search(pattern, value) is not None
        return bool(fits and shape.get("minLength", 0) <= len(value) <= shape.get("maxLength", len(value)))
    if isinstance(value, int | float) and not isinstance(value, bool):
        above = value > shape.get("exclusiveMinimum", float("-inf"))
        return bool(above and shape.get("minimum", value) <= value <= shape.get("maximum", value))
    if isinstance(value, list):
        return bool(shape.get("minItems", 0) <= len(value) <= shape.get("maxItems", len(value)))
    return True


def _short(value: Any) -> str:
    """A value for people: a kind by its name alone."""
    if isinstance(value, dict):
        value = next((value[tag] for tag in ("kind", "verb", "type") if isinstance(value.get(tag), str)), "a struct")
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
