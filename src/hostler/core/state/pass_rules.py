"""Pass rules of a SKU for a profile of the suite's checks: frozen into the order, read by the agent as a stranger's.

What they may say is checked where a configuration is activated (`core.policy.check_documents`), and again by the suite.
"""

from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

MAX_CHECKS, MAX_READINGS, MAX_STAGES = 64, 32, 32
RULES_NAMED = "look:pass_rules"
"""The fact by which a report names the rules that it went by; `hostler node explain` tells it with the others."""

Word = Annotated[str, Meta(max_length=64)]
Words = Annotated[tuple[Word, ...], Meta(max_length=MAX_CHECKS)]


class ReadingRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reading's worst value that passes and the best that can be; None leaves the suite's own.

    Of a reading where less is better `floor` is the larger. A bound only narrows what the suite takes for possible.
    """

    floor: float | None = None
    bound: float | None = None


class StageRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stage: a share of the hours or a number of repeats, and how many runs may fail or say nothing."""

    share: float | None = None
    repeats: int | None = None
    failed: int | None = None
    inconclusive_percent: float | None = None


class PassRules(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules of one profile; what is not said is the profile's own.

    `hours` under load; checks that are `required`, those that may say nothing (`optional`), those that are not run
    (`without`); `limits` by check and reading; `stages` by name.
    """

    hours: float | None = None
    required: Words = ()
    optional: Words = ()
    without: Words = ()
    limits: Annotated[
        dict[Word, Annotated[dict[Word, ReadingRule], Meta(max_length=MAX_READINGS)]], Meta(max_length=MAX_CHECKS)
    ] = {}
    stages: Annotated[dict[Word, StageRule], Meta(max_length=MAX_STAGES)] = {}


def document(profile: str, rules: PassRules) -> bytes:
    """The rules as the suite reads them: the same bytes wherever they are written."""
    told = {"profile": profile, **msgspec.to_builtins(rules)}
    return msgspec.json.encode(told, order="deterministic")


def digest(profile: str, rules: PassRules) -> str:
    """SHA-256 of the document, by which a report names it."""
    return sha256(document(profile, rules)).hexdigest()


def named(profile: str, rules: PassRules | None) -> dict[str, str | int | float | bool | None]:
    """The fact by which a report says that it went by these rules; none where there are none."""
    return {} if rules is None else {RULES_NAMED: of(digest(profile, rules))}


def of(digest: str) -> str:
    """How a report names the rules of this digest."""
    return f"of its SKU, digest {digest}"
