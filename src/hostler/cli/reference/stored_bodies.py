"""Shapes of all that events store, as facts: made from the classes, beside those that are recorded for each format."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, get_args

import msgspec
from msgspec import inspect as shapes
from msgspec.json import schema_components

from hostler.core.state.events import Event
from hostler.core.state.live_state import Release
from hostler.core.state.recorded_bodies import EVENT, HEADER, MANY, Fact, digest
from hostler.core.state.scopes import text_hook

EXPLAINING = ("title", "description", "discriminator")
ALTERNATIVES_FEW = 3
"""Kinds that a field's own shape lists; more of them are a name's, one fact each."""
HEAD = """\
# Shapes of all that is stored, format by format (docs/adr/0014-formats.md). Written by scripts/event_formats.py.
# A fact: the format it came with, the one it was gone in, of what, and its JSON.
"""


def todays() -> set[tuple[str, str]]:
    """The facts (subject, JSON) of today's classes."""
    events = tuple(_members(Event))
    _, components = schema_components(events, schema_hook=lambda _: {"type": "string"}, ref_template="{name}")
    classes = {one.__name__: one for one in _classes(events)}
    assert set(components) <= set(classes), "a struct whose name is not its class's"
    found = _Found(classes)
    for event in events:
        name = str(event.__struct_config__.tag)
        found.add(f"{EVENT}{name}", {"$ref": event.__name__, "version": Release().newest(name)})
    for name, component in components.items():
        found.component(name, component)
    return found.facts


def raised(before: Iterable[Fact], now: set[tuple[str, str]]) -> tuple[Fact, ...]:
    """The facts with those of today: what is new came with the next format, what is gone ended with it."""
    before = tuple(before)
    held = {(fact.subject, fact.text) for fact in before if not fact.until}
    number = max((max(fact.since, fact.until) for fact in before), default=0) + 1
    ended = (
        fact if fact.until or (fact.subject, fact.text) in now else msgspec.structs.replace(fact, until=number)
        for fact in before
    )
    came = (Fact(subject, text, number) for subject, text in sorted(now - held))
    return (*ended, *came) if now != held else before


def written(facts: Iterable[Fact]) -> str:
    """The file's text."""
    facts = sorted(facts)
    numbers = sorted({fact.since for fact in facts} | {fact.until for fact in facts if fact.until})
    headers = (f"{HEADER} {number} {digest(facts, number)}" for number in numbers)
    return HEAD + "\n".join((*headers, *(fact.line() for fact in facts), ""))


def differing(before: Iterable[Fact], now: set[tuple[str, str]]) -> list[str]:
    """The facts that are new ("+") or gone ("-") since the newest format, one a line."""
    held = {(fact.subject, fact.text) for fact in before if not fact.until}
    return sorted(f"+ {s} {t}" for s, t in now - held) + sorted(f"- {s} {t}" for s, t in held - now)


class _Found:
    """Facts as they are gathered from msgspec's JSON schema."""

    def __init__(self, classes: dict[str, type]) -> None:
        self.classes = classes
        self.facts: set[tuple[str, str]] = set()

    def add(self, subject: str, shape: Any) -> None:
        """Add a fact."""
        self.facts.add((subject, msgspec.json.encode(shape, order="sorted").decode()))

    def component(self, name: str, component: dict[str, Any]) -> None:
        """Add the facts of a struct or of an enumeration."""
        kind = self.classes[name]
        if issubclass(kind, Enum):
            for word in component["enum"]:
                self.add(name, word)
        elif component.get("type") == "object":
            self._struct(name, kind, component)
        else:
            self.add(name, _plain(component))

    def _struct(self, name: str, kind: type, component: dict[str, Any]) -> None:
        config = getattr(kind, "__struct_config__")  # noqa: B009 - mypy knows no Struct here
        self.add(name, {"type": "object", **({"tag": config.tag_field} if config.tag_field else {})})
        defaults = dict(_defaults(kind))
        for key, shape in component["properties"].items():
            told = self._named(f"{name}.{key}", _plain(shape))
            said = {"required": True} if key in component.get("required", ()) else {}
            if key in defaults:
                said = {"default": defaults[key]}
            self.add(f"{name}.{key}", {**told, **said})

    def _named(self, field: str, shape: dict[str, Any]) -> dict[str, Any]:
        """The shape; many kinds get a name of their own, so that one more is one more line."""
        kinds = shape.get("anyOf", ())
        if len(kinds) <= ALTERNATIVES_FEW:
            return shape
        members = [self.classes[one["$ref"]] for one in kinds if "$ref" in one]
        shared = next((one for one in members[0].__mro__ if all(issubclass(m, one) for m in members)), None)
        name = f"{MANY}{shared.__name__}" if shared not in (None, msgspec.Struct, object) else f"{MANY}{field}"
        for one in kinds:
            self.add(name, one)
        return {**{key: value for key, value in shape.items() if key != "anyOf"}, "$ref": name}


def _plain(shape: Any) -> Any:
    if isinstance(shape, dict):
        return {
            key: _plain(value) if key != "default" else value for key, value in shape.items() if key not in EXPLAINING
        }
    return [_plain(one) for one in shape] if isinstance(shape, list) else shape


def _defaults(kind: Any) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            yield field.encode_name, _told(field.default)
        elif field.default_factory is not msgspec.NODEFAULT:
            yield field.encode_name, _told(field.default_factory())


def _told(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=text_hook))


def _members(union: Any) -> Iterator[Any]:
    for one in get_args(union):
        yield from _members(one) if get_args(one) else (one,)


def _classes(events: Iterable[Any]) -> set[type]:
    found: set[type] = set()
    open_ones: list[Any] = list(shapes.multi_type_info(events))
    while open_ones:
        one = open_ones.pop()
        if isinstance(kind := getattr(one, "cls", None), type):
            if kind in found:
                continue
            found.add(kind)
        for name in ("type", "types", "item_type", "item_types", "key_type", "value_type"):
            inner = getattr(one, name, ())
            open_ones += inner if isinstance(inner, tuple) else (inner,)
        open_ones += [field.type for field in getattr(one, "fields", ())]
    return found
