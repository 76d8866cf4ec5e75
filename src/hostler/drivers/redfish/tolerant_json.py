"""Tolerant reading of JSON that a BMC wrote: missing, null, mistyped and hostile values become empty, not crashes."""

import math
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from hostler.ports import UnreachableError

Document = dict[str, object]
"""A JSON object as a BMC sent it; no key of it is promised to exist or to have its type."""

_GRAVE = {"": 0, "ok": 1, "warning": 3, "critical": 4}
"""From nothing said to the worst. A word that is not here is more than ok, and hides none that is graver."""

_HOSTILE = re.compile(r"""[^!-~]|[\\<>"{}|^`]""")
"""Characters that no path holds: blanks, control characters, non-ASCII, and what servers read differently."""

MEND_BMC = "restart the BMC; where that does not help, update its firmware"

MAX_TEXT = 256
MAX_MEMBERS = 4096


class WireError(UnreachableError):
    """The BMC answered, but not in a way that can be read. Whatever was asked may have happened: observe."""


def document(raw: bytes, what: str = "answer") -> Document:
    """The JSON object in `raw`. Raises WireError for anything else, however it is broken."""
    try:
        value = msgspec.json.decode(raw, type=object)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"the BMC's {what} is not JSON ({error}): {_start_of(raw)}; {MEND_BMC}") from error
    if not isinstance(value, dict):
        raise WireError(f"the BMC's {what} is not a JSON object: {_start_of(raw)}; {MEND_BMC}")
    return value


def text(doc: Document, *keys: str) -> str:
    """The first non-empty string or whole number under these keys, printable and at most MAX_TEXT long, else ""."""
    for key in keys:
        value = doc.get(key)
        if value is None or isinstance(value, bool):
            continue
        if not isinstance(value, str):
            value = str(value) if isinstance(value, int) and abs(value) < 1 << 63 else ""
        elif value.isalnum() and len(value) <= MAX_TEXT:
            return value  # as most words are
        if clean := printable(value):
            return clean
    return ""


def printable(value: str, limit: int = MAX_TEXT) -> str:
    """Without control characters and outer blanks, cut at `limit`."""
    if len(value) <= limit and value.isprintable():
        return value.strip()
    return "".join(c if c.isprintable() else " " for c in value[: limit * 4]).strip()[:limit]


def number(doc: Document, *keys: str) -> float | None:
    """The first finite number under these keys. Booleans and numbers in quotes are none."""
    for key in keys:
        value = doc.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if abs(value) < 1e15 and math.isfinite(value):
            return float(value)
    return None


def truth(doc: Document, key: str) -> bool | None:
    """The boolean under this key, None for anything else."""
    value = doc.get(key)
    return value if isinstance(value, bool) else None


def child(doc: Document, *path: str) -> Document:
    """The object at this path of keys, an empty one where the path breaks."""
    for key in path:
        value = doc.get(key)
        if not isinstance(value, dict):
            return {}
        doc = value
    return doc


def objects(doc: Document, key: str) -> Iterator[Document]:
    """The objects of the list under `key`, at most MAX_MEMBERS of them; other values in it are passed over."""
    value = doc.get(key)
    if isinstance(value, list):
        yield from (item for item in value[:MAX_MEMBERS] if isinstance(item, dict))


def inlined(doc: Document, key: str) -> list[Document] | None:
    """The members of the collection under `key` where they are there whole, None where a link is all or some of it."""
    held = child(doc, key)
    if not isinstance(held.get("Members"), list) or "Members@odata.nextLink" in held:
        return None
    found = list(objects(held, "Members"))
    counted = held.get("Members@odata.count", len(found))
    return found if counted == len(found) and all(len(item) > 1 for item in found) else None


def strings(doc: Document, key: str) -> tuple[str, ...]:
    """The strings of the list under `key`, cleaned."""
    value = doc.get(key)
    items = value[:MAX_MEMBERS] if isinstance(value, list) else []
    return tuple(clean for item in items if isinstance(item, str) and (clean := printable(item)))


def link(doc: Document, key: str = "") -> str:
    """The `@odata.id` of the object under `key` (of `doc` itself without one), "" where there is none.

    It is what the BMC wrote; only `local_path` makes it something to follow.
    """
    value = (child(doc, key) if key else doc).get("@odata.id")
    return value if isinstance(value, str) else ""


def name_of(doc: Document) -> str:
    """A member's Id; the end of its link where it shows none, as some do once they are inlined."""
    return text(doc, "Id") or printable(link(doc).rstrip("/").rpartition("/")[2])


def links(doc: Document, key: str = "Members") -> tuple[str, ...]:
    """The `@odata.id` of each object in the list under `key`."""
    return tuple(found for item in objects(doc, key) if (found := link(item)))


def local_path(reference: str, origin: str) -> str:
    """The path (and query) of a reference on `origin` ("https://host:port"). Raises WireError for any other place.

    A BMC that names another host is never followed: the request would carry our credentials there.
    """
    if not reference or len(reference) > 2048 or _HOSTILE.search(reference):
        raise WireError(f"the BMC gave a link that is no path: {printable(reference)!r}; {MEND_BMC}")
    try:
        parts = urlsplit(reference)
        place = f"{parts.scheme}://{parts.netloc}".lower() if parts.scheme or parts.netloc else origin.lower()
    except ValueError as error:
        raise WireError(f"the BMC gave a link that is no path: {printable(reference)!r}; {MEND_BMC}") from error
    if place != origin.lower() or not parts.path.startswith("/") or parts.path.startswith("//"):
        raise WireError(
            f"the BMC gave a link to another place, which is not followed: {printable(reference)!r}"
            "; write the BMC's own address into the node's bmc binding, and no proxy's"
        )
    return parts.path + (f"?{parts.query}" if parts.query else "")


def word_of(status: Document) -> str:
    """The worse of a status's Health and HealthRollup, in lower case; "" where it has neither."""
    return worst(text(status, "Health").lower(), text(status, "HealthRollup").lower())


def worst(*words: str) -> str:
    """The gravest of these words."""
    return max(words, key=lambda word: _GRAVE.get(word, 2), default="")


def _start_of(raw: bytes) -> str:
    return repr(printable(raw[:80].decode("utf-8", "replace")))
