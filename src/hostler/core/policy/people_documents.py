"""Checks who is listed as one person: a name of two persons, or one that nobody can have, is refused."""

import re
from collections.abc import Iterator

from hostler.core.state.configuration import Configuration
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.people import SUBJECT_MARK, normal_name

PEOPLE_MOST, NAMES_MOST, CHARS_MOST = 2_000, 32, 512
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,253}")
_SUBJECT = re.compile(r"https?://[^\s#]+#\S(?:[ -~]*\S)?")


def people_problems(configuration: Configuration) -> Iterator[WrongEntry]:
    """Problems of the policy's `people`."""
    holders: dict[str, str]
    people, holders = configuration.policy.people, {}
    if len(people) > PEOPLE_MOST:
        yield WrongEntry(f"people lists {len(people)} persons", f"write {PEOPLE_MOST} at most", ("policy", "people"))
        return
    for person, names in people.items():
        place = ("policy", "people", person)
        if len(names) > NAMES_MOST:
            yield WrongEntry(f"people: {person[:60]} has {len(names)} names", f"write {NAMES_MOST} at most", place)
            continue
        for name in (person, *names):
            if not _is_name(name) or (name == person and SUBJECT_MARK in name):
                how = "write a token's name, a mail address, or ISSUER#SUBJECT with the issuer's https:// address"
                yield WrongEntry(f"people: {name[:60]!r} is not a valid name", how, place)
            elif (holder := holders.setdefault(normal_name(name), person)) != person:
                yield WrongEntry(
                    f"people: {name[:60]} is a name of {holder[:60]} and of {person[:60]}",
                    "list each name under one person", place,
                )  # fmt: skip


def _is_name(name: str) -> bool:
    pattern = _SUBJECT if SUBJECT_MARK in name else _NAME
    return len(name) <= CHARS_MOST and pattern.fullmatch(name) is not None
