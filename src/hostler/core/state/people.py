"""One person under several names: of tokens, of sign-ins, of mails, and as a provider's subject.

Why here: whether two names are one person's is asked when an approval is *decided*, by what is configured then. So a
request that came before its aliases were configured is its person's all the same. What is easy to get wrong: a name
that is not listed is not yet another person. A bare name and a mail address with that local part are one person until
the configuration lists them under two.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

Names = tuple[str, ...]
"""Every name under which a person asked: the one that is shown first, then verified mail and ISSUER#SUBJECT."""
Listed = Mapping[str, Names]
"""The policy's `people`: a person's name, and their other names."""

SUBJECT_MARK = "://"
"""In every ISSUER#SUBJECT, and in no token's name and no mail address. Subjects are compared to the letter."""
_ELSEWHERE = " in cluster "
"""Between a name and the cluster where it was written, of requests by annotation."""
_LOOK_ALIKES = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212",
    ".": "\u2024",
    "a": "\u0430\u0251\u03b1",
    "b": "\u044c\u0185\u0432\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501\u0257\u0111",
    "e": "\u0435\u04bd\u03b5\u0454",
    "f": "\u0493",
    "g": "\u0261\u0581",
    "h": "\u04bb\u0570\u0127\u043d",
    "i": "\u0456\u0131\u0269\u03b9",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf\u0142\u217c",
    "m": "\u043c",
    "n": "\u043f\u0578\u03b7",
    "o": "\u043e\u03bf\u0585\u00f8\u03c3",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u03bd\u0475",
    "w": "\u0461\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af\u028f",
    "z": "\u1d22",
}
"""Letter → letters of other alphabets that look like it; a part of Unicode's confusables (UTS 39)."""
_PLAIN = str.maketrans({other: letter for letter, others in _LOOK_ALIKES.items() for other in others})


@lru_cache(maxsize=8192)
def normal_name(name: str) -> str:
    """The name as it is compared: one case, one form of each letter, nothing that cannot be seen, no tag of a mail."""
    if SUBJECT_MARK in name:
        return name
    split = unicodedata.normalize("NFKD", name.partition(_ELSEWHERE)[0]).casefold()
    seen = "".join(c for c in split if unicodedata.category(c) not in ("Mn", "Cf", "Cc", "Zs", "Me"))
    local, at, domain = unicodedata.normalize("NFKC", seen).translate(_PLAIN).partition("@")
    return f"{local.partition('+')[0] or local}{at}{domain.rstrip('.')}" if at else local


class KnownPeople:
    """Persons by their names, as the policy's `people` lists them."""

    def __init__(self, listed: Listed) -> None:
        self._listed = {person: tuple(dict.fromkeys(map(normal_name, (person, *n)))) for person, n in listed.items()}
        self._person = {name: person for person, names in self._listed.items() for name in names}

    def is_same(self, one: Names, other: Names) -> bool:
        """Whether any name of one is a name of the same person as any name of the other."""
        return any(self._is_one(normal_name(a), normal_name(b)) for a in one for b in other if a and b)

    def _is_one(self, one: str, other: str) -> bool:
        if one == other:
            return True
        first, second = self._person.get(one), self._person.get(other)
        if first is not None and second is not None:
            return first == second
        known, more = (self._listed[p] if p is not None else (n,) for p, n in ((first, one), (second, other)))
        return any(a == b or _is_local_part(a, b) or _is_local_part(b, a) for a in known for b in more)


def _is_local_part(bare: str, mail: str) -> bool:
    """Whether a bare name is a mail address's part before the @."""
    local, at, _ = mail.partition("@")
    return bool(at) and SUBJECT_MARK not in mail and bare == local


def is_same(listed: Listed, one: Names | str, other: Names | str) -> bool:
    """Whether two persons, by their names, are one."""
    return KnownPeople(listed).is_same(_names(one), _names(other))


def _names(of: Names | str) -> Names:
    return (of,) if isinstance(of, str) else of


def separates(before: Listed, after: Listed) -> bool:
    """Whether names that were one person's would be two persons'."""
    old, new = KnownPeople(before), KnownPeople(after)
    return any(old.is_same((a,), (b,)) and not new.is_same((a,), (b,)) for a, b in _pairs(before, after))


def _pairs(before: Listed, after: Listed) -> Iterator[tuple[str, str]]:
    """Names that may have been one person's: what was listed together, and bare names beside their addresses."""
    for person, names in before.items():
        yield from ((person, name) for name in names)
    listed: Iterable[str] = (name for person, names in (*before.items(), *after.items()) for name in (person, *names))
    for name in listed:
        if "@" in name and SUBJECT_MARK not in name:
            yield normal_name(name).partition("@")[0], name
