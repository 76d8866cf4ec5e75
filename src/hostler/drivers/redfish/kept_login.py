"""The login of one BMC as its secret keeps it: the one that enters, the one being set, and the one before. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.drivers.redfish.wire_accounts import PasswordRules

LENGTH, LONGEST = 20, 64
"""Twenty is what every vendor takes of whom it is known; a BMC's own limits come first."""
TRIES = 2
"""Wrong passwords that a BMC is shown where it does not say how many lock it: the least that is published is three."""
TRIES_MAX = 3
_LOWER, _UPPER, _DIGITS, _PUNCTUATION = "abcdefghjkmnpqrstuvwxyz", "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789", "-_.!"


class Draw(Protocol):
    """A source of chance that nobody can foresee."""

    def choice(self, among: Sequence[str], /) -> str:
        """A name among these."""
        ...


class KeptLogin(Struct, frozen=True):
    """Login of a BMC. `pending` was made and may be set already; `previous` was the password before this one.

    `tried`: wrong passwords that the BMC was shown since one was right, counted before they are shown. `lockout` is
    where it locks. `operation` is the one that promoted the password last, `certificate` the one that the BMC was
    entered by last. `issued` are certificates (SHA-256, the newest last) that were issued to it and may be shown, the
    last by operation `issuing`; `certified` is the operation that proved `certificate`.
    The representation shows no password.
    """

    username: str = ""
    password: str = ""
    pending: str = ""
    previous: str = ""
    tried: int = 0
    lockout: int = 0
    operation: str = ""
    certificate: str = ""
    issued: str = ""
    issuing: str = ""
    certified: str = ""

    def __repr__(self) -> str:
        return f"KeptLogin({self.username!r}, tried={self.tried}, pending={bool(self.pending)})"

    @property
    def fields(self) -> dict[str, str]:
        """The login as the fields of a secret; what is empty is left out."""
        kept = {name: str(getattr(self, name) or "") for name in self.__struct_fields__}
        return {name: value for name, value in kept.items() if value}

    @property
    def noted(self) -> tuple[str, ...]:
        """Certificates that were issued to the BMC, the newest last."""
        return tuple(self.issued.split())

    @property
    def tries(self) -> int:
        """How many wrong passwords the BMC may be shown before one is right."""
        return max(1, min(self.lockout - 1, TRIES_MAX)) if self.lockout else TRIES

    @property
    def passwords(self) -> tuple[str, ...]:
        """Every password in it."""
        return tuple(dict.fromkeys(one for one in (self.pending, self.password, self.previous) if one))

    def set_on_bmc(self, operation: str) -> "KeptLogin":
        """The login once the pending password is proved."""
        return replace(self, password=self.pending, previous=self.password, pending="", tried=0, operation=operation)


def read(fields: Mapping[str, str]) -> KeptLogin:
    """The login that a secret's fields keep; fields that are not its own are somebody's note, and are left out."""
    known = {name: fields.get(name, "") for name in KeptLogin.__struct_fields__}
    numbers = {name: int(known[name]) if known[name].isdecimal() else 0 for name in ("tried", "lockout")}
    return KeptLogin(**{**known, **numbers})  # type: ignore[arg-type]


class Entry(Struct, frozen=True):
    """A way in that may be tried. `what` names it for people; its representation shows no password."""

    what: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Entry({self.what})"


def entries(kept: KeptLogin, factory: KeptLogin, refused: str) -> Iterator[Entry]:
    """Ways in, the likeliest first, each once. `refused` is a password that was turned away just now.

    The pending password first: it was set unless something was cut off. The factory's before the previous one: a board
    that was swapped has it.
    """
    name = kept.username or factory.username
    listed = (
        Entry("the new password", name, kept.pending),
        Entry("the password kept", name, kept.password),
        Entry("the factory login", factory.username, factory.password),
        Entry("the password before", name, kept.previous),
    )
    seen = {(name, refused)}
    for one in listed:
        if one.password and (one.username, one.password) not in seen:
            seen.add((one.username, one.password))
            yield one


def make_password(rules: PasswordRules, draw: Draw) -> str:
    """A password within the BMC's limits: of all four kinds, a letter first, no character twice in a row.

    Raises ValueError where the limits leave no room for one.
    """
    longest = rules.longest or max(LENGTH, rules.shortest)
    length = min(longest, max(LENGTH, rules.shortest), LONGEST)
    if length < max(8, rules.shortest):
        raise ValueError(f"the BMC takes passwords of {rules.shortest} to {longest} characters; change its rules")
    while True:
        made = draw.choice(_LOWER + _UPPER)
        while len(made) < length:
            nxt = draw.choice(_LOWER + _UPPER + _DIGITS + _PUNCTUATION)
            made += nxt if nxt != made[-1] else ""
        if all(set(made) & set(kind) for kind in (_LOWER, _UPPER, _DIGITS, _PUNCTUATION)):
            return made


def without_secrets(text: str, *secrets: str) -> str:
    """The text with every one of these taken out: a BMC may quote what it refuses."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…") if secret else text
    return text
