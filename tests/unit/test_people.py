"""Whether two names are one person's: configured aliases, mail addresses, subjects, and how names are written."""

import pytest

from hostler.core.state.people import KnownPeople, is_same, normal_name, separates

ISSUER = "https://login.example.org"
PEOPLE = {
    "ann": ("ann.smith@example.org", "a-smith", f"{ISSUER}#0042"),
    "robert": ("bob", "rob@example.org"),
    "ben": ("ben@example.org",),
    "other-ben": ("ben@example.com",),
}
SAME = [
    ("ann", "ann"), ("ann", "ANN"), ("ann", "ann@example.org"), ("Ann@Example.org", "ann@example.org"),
    ("ann", "ann.smith@example.org"), ("a-smith", "ann"), ("a-smith", "ANN.Smith@example.org"),
    ("a-smith", f"{ISSUER}#0042"), ("bob", "robert"), ("bob@example.org", "robert"), ("robert@example.org", "bob"),
    ("eve", "eve@example.org"), ("eve+ops@example.org", "eve"), ("eve+ops@example.org", "eve@example.org"),
    ("eve@example.org.", "eve@example.org"), ("eve in cluster prod", "eve"), ("eve in cluster prod", "eve@example.org"),
    ("\u0435ve", "eve"),  # a Cyrillic letter
    ("\u0391nn", "ann"), ("\uff41nn", "ann"),  # a Greek capital, full width
    ("\u24d0\u24dd\u24dd", "ann"),
    ("a\u200bnn", "ann"), ("ann\u00ad", "ann"), ("\u00e1nn", "ann"), ("a\u0301nn", "ann"),
    ("\u212amax", "kmax"), ("ma\ufb00", "maff"), ("stra\u00dfe", "strasse"), ("b\u200fob", "bob"), ("an n", "ann"),
]  # fmt: skip
TWO = [
    ("ann", "bob"), ("ann@example.org", "robert"), ("eve@example.org", "eve@example.com"), ("eve", "eva"),
    ("eve", "eve2"), ("eve", "e.ve"), (f"{ISSUER}#0042", f"{ISSUER}#0043"), (f"{ISSUER}#ann", "ann"),
    (f"{ISSUER}#AbC", f"{ISSUER}#abc"), (f"{ISSUER}/two#0042", "ann"), ("ben", "ben@example.com"),
    ("other-ben", "ben@example.org"), ("eve@example.org", "example.org"), ("", ""), ("", "ann"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_of_one_person(one: str, other: str) -> None:
    """Mutants: casefold alone; no look-alikes; the address's local part is not looked at; aliases one way only."""
    assert is_same(PEOPLE, one, other)
    assert is_same(PEOPLE, other, one)


@pytest.mark.parametrize(("one", "other"), TWO)
def test_names_of_two_people(one: str, other: str) -> None:
    """Mutants: an address without its domain; subjects in any case; a listed name by its local part all the same."""
    assert not is_same(PEOPLE, one, other)
    assert not is_same(PEOPLE, other, one)


def test_any_name_of_a_person_is_enough() -> None:
    """Mutant: the first name alone. The provider changed the mail address; the subject says who it is."""
    people = KnownPeople({})
    assert people.is_same(("ann@example.org", f"{ISSUER}#0042"), ("ann.miller@example.org", f"{ISSUER}#0042"))
    assert not people.is_same(("ann@example.org", f"{ISSUER}#0042"), ("ann.miller@example.org", f"{ISSUER}#0043"))


def test_a_name_is_normal_once() -> None:
    for name in {name for pair in SAME + TWO for name in pair}:
        assert normal_name(normal_name(name)) == normal_name(name)


@pytest.mark.parametrize(
    ("before", "after", "so"),
    [
        ({"ann": ("a",)}, {}, True),
        ({"ann": ("a",)}, {"ann": (), "a": ()}, True),
        ({"ann": ("a", "b")}, {"ann": ("a",), "x": ("b",)}, True),
        ({}, {"x": ("ann",), "y": ("ann@example.org",)}, True),
        ({}, {"ann": ("a",)}, False),
        ({"ann": ("a",)}, {"a": ("ann", "b")}, False),
        ({"ann": ("ann@example.org",)}, {}, False),
        ({"x": ("ann",), "y": ("ann@example.org",)}, {"x": ("ann",), "y": ("ann@example.org",)}, False),
    ],
)
def test_what_makes_two_people_of_one_is_seen(
    before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]], so: bool
) -> None:
    assert separates(before, after) is so
