"""Names by which a server may be called."""

import pytest

from hostler.core.state.input_problems import InvalidInputError
from hostler.server.server_settings import host_name

LONG = ("a" * 64 + ".example", ".".join(["abc"] * 64), "a.example.")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Hostler.Example", "hostler.example"),
        ("hostler", "hostler"),
        ("10.0.0.7", "10.0.0.7"),
        ("[FD00::1]", "fd00::1"),
        ("fd00:0::1", "fd00::1"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
    ],
)
def test_a_host_name_is_kept_as_requests_are_compared_with_it(given: str, name: str) -> None:
    assert host_name(given) == name


@pytest.mark.parametrize(
    "given",
    [
        "",
        "https://a.example",
        "a.example:8440",
        "*.example",
        "a..b",
        "-a",
        "a/b",
        "a b",
        "10.0.0.300",
        "é.example",
        *LONG,
    ],
)
def test_what_is_no_host_name_is_refused_with_what_to_write(given: str) -> None:
    with pytest.raises(InvalidInputError, match="without https://, port, path"):
        host_name(given)
