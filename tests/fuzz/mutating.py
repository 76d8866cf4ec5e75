"""Wrong variants of right inputs: bytes cut, doubled, spliced and replaced; JSON values replaced by odd ones."""

import json
import random
from collections.abc import Sequence
from typing import Any

ODD_BYTES = (
    b"\0", b"\n", b"\r\n", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\x1b[2J", b"\xe2\x80\xae", b"9" * 40, b"-1",
    b"1e999", b"[" * 200, b"{" * 200, b'"', b"\\", b"'", b": ", b", ", b"%s", b"../", b"NaN",
    b"null", b"\xd9\xa7", b" " * 300,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, -(10**30), 1.5, -0.0, 1e308, "", " ",
    "x" * 5000, "\0", "\n", "\u202e", "\ud7ff", "\U0010ffff", "\u0667", "²", "1" * 400, "../../etc", "ALL",
    "gpu[0-999999999]", [], {}, [[]], [None] * 300, {"": {}}, [{"a": [{"a": [{}]}]}], "2036-01-01T00:00:00+00:00",
    "0001-01-01T00:00:00-23:59", "NaN",
)  # fmt: skip


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One input: a seed with one to four things wrong."""
    raw = rng.choice(seeds)
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if isinstance(value, dict | list) and rng.random() < 0.7:
        for _ in range(rng.randint(1, 4)):
            value = mutated_json(rng, value)
        raw = json.dumps(value).encode("utf-8", "surrogatepass")
        if rng.random() < 0.8:
            return raw
    for _ in range(rng.randint(1, 4)):
        raw = _mutated_bytes(rng, raw, seeds)
    return raw


def _mutated_bytes(rng: random.Random, raw: bytes, seeds: Sequence[bytes]) -> bytes:
    begin = rng.randint(0, len(raw))
    end = min(len(raw), begin + rng.choice((0, 1, 2, 8, 40, 400)))
    other = rng.choice(seeds)
    at = rng.randint(0, len(other))
    middle = rng.choice(
        (
            b"",
            raw[begin:end] * 2,
            raw[begin:end] * 50,
            rng.choice(ODD_BYTES),
            rng.randbytes(rng.randint(1, 8)),
            other[at : at + 60],
        )
    )
    return raw[:begin] + middle + raw[end:]


def mutated_json(rng: random.Random, value: Any) -> Any:
    """The value with one thing in it replaced, left out, doubled, or under another name."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.05:
        return rng.choice(ODD_VALUES)
    if isinstance(value, list):
        place = rng.randrange(len(value))
        how = rng.random()
        middle = [] if how < 0.1 else [value[place]] * 3 if how < 0.2 else [mutated_json(rng, value[place])]
        return [*value[:place], *middle, *value[place + 1 :]]
    key = rng.choice(list(value))
    how = rng.random()
    if how < 0.1:
        return {k: v for k, v in value.items() if k != key}
    if how < 0.2:
        return {**value, rng.choice((key.lower(), key.upper(), key + "2", "", "\u202e", "x" * 300)): value[key]}
    return {**value, key: mutated_json(rng, value[key])}
