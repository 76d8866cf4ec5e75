"""The redactor: 100 lines with a secret, 100 harmless ones, hostile ones in linear time, and no value half hidden."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.logs import secret_patterns
from hostler.logs.clean import READ_MAX, without_secrets
from hostler.logs.secret_patterns import HIDDEN, is_secret, redact
from tests.secret_examples import B64, FORBIDDEN, HARMLESS, SECRETS, S


def test_the_table_is_as_long_as_it_says() -> None:
    assert (len(set(SECRETS)) >= 100, len(set(HARMLESS)) >= 100) == (True, True)


@pytest.mark.parametrize("line", SECRETS)
def test_no_secret_is_left(line: str) -> None:
    """Mutants: a quoted value ends at its first space; an escaped quote closes it; `--name value` is not read; a
    header ends at its first word; a block of PEM without an end is left; a URL's password ends at its first @."""
    shown = redact(line)
    assert HIDDEN in shown
    assert not [one for one in FORBIDDEN if one in shown]


@pytest.mark.parametrize("line", HARMLESS)
def test_a_harmless_line_is_left_as_it_is(line: str) -> None:
    """Mutants: "token ring" counts as a name; a number of tokens is hidden; a unit of systemd is a name."""
    assert redact(line) == line


@pytest.mark.parametrize("line", [*SECRETS, *HARMLESS])
def test_what_was_hidden_once_stays_as_it_is(line: str) -> None:
    """Texts go through several exits, and none makes another text of it. Mutant: `]` is added each time."""
    assert redact(redact(line)) == redact(line)


@pytest.mark.parametrize("separator", ["=", ": ", ":", " = ", " := ", "=>", '": "', "': '", '\\": \\"'])
@pytest.mark.parametrize(
    "name",
    [
        "token", "HF_TOKEN", "hfToken", "Secret", "SECRET_KEY", "passw", "PASSWORD", "rootPassword", "passphrase",
        "api_key", "apiKey", "API-KEY", "api.key", "apikey", "access_key", "AccessKey", "ACCESS-KEY", "credential",
        "userCredentials", "private_key", "privateKey", "PRIVATE-KEY", "private key", "psk", "WPA-PSK", "tls_psk",
    ],
)  # fmt: skip
def test_every_name_with_every_separator(name: str, separator: str) -> None:
    """Mutant: upper case, a dash, or a capital in the middle is not read."""
    assert S not in redact(f"see {name}{separator}{S} rest")
    assert S not in redact(f'{{"a": 1, "{name}": "{S} {S}"}}')
    assert S not in redact(f"run --{name.replace(' ', '-')} {S}")
    assert S not in redact(f"run --{name.replace(' ', '-')}='{S} {S}'")


_VALUE = st.text(st.characters(blacklist_categories=["Cs"]), max_size=12)


@given(_VALUE, _VALUE, st.sampled_from(["password", "HF_TOKEN", "apiKey"]))
def test_a_value_of_json_is_hidden_whole_whatever_is_in_it(before: str, after: str, name: str) -> None:
    """Also of JSON within JSON within JSON. Mutant: a backslash before the closing quote is taken for an escape."""
    text = json.dumps({name: before + S + after, "node": "n1"})
    for _ in range(3):
        shown = redact(text)
        assert S not in shown
        assert "n1" in shown
        text = json.dumps({"line": text, "rank": 1})


@given(st.integers(0, 200), st.sampled_from(SECRETS))
def test_a_line_that_is_cut_off_shows_no_rest_of_its_secret(cut: int, line: str) -> None:
    """A buffer's end falls anywhere. Mutant: a quote that is not closed hides nothing."""
    shown = redact(line[:cut])
    assert not [one for one in FORBIDDEN if one in shown]


def test_what_follows_a_cut_key_is_told() -> None:
    shown = redact(f"-----BEGIN RSA PRIVATE KEY-----\n{B64}\n{B64}\nNVRM: Xid 79, GPU has fallen off the bus")
    assert shown == f"{HIDDEN}\nNVRM: Xid 79, GPU has fallen off the bus"


def test_a_line_of_a_key_alone_is_hidden() -> None:
    """A kernel's log tells line by line."""
    assert redact(f"  {B64}  ") == f"  {HIDDEN}  "


def test_half_a_token_at_the_end_of_what_is_read_is_left_out() -> None:
    """Mutant: the text is cut in the middle of a word."""
    text = f"{'x y' * 30_000}"[: READ_MAX - 10] + f" ghp_{S}{S}"
    assert "ghp_" not in without_secrets(text, READ_MAX)


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("bmc_password", "x", True), ("token", "", False), ("tokens", "4", False), ("token_file", "/x", False),
        ("access_key", "x", True), ("password", "1234", True), ("authorization", "x", True), ("node", "x", False),
    ],
)  # fmt: skip
def test_a_name_alone_says_whether_its_value_is_one(name: str, value: str, hidden: bool) -> None:
    assert is_secret(name, value) is hidden


HOSTILE = (
    "token ", "token=", "token_id=", 'token="', "token='x token=\"", "token\\", "://", "://x:", "x://a:b@", "a", "eyJ.",
    "-----BEGIN A-----", "-----END A-----", "-----BEGIN A-----\\n", "bearer ", "basic A", "--token ", '"--token",',
    "hf_", "sk-", ":token>", "<token>", "token=,a", "token='", 'token=a"b ', "token:\n ", " token: a\n", "passwd: ",
    "\\n", "cookie: ", "token     ", "hooks.slack.com/services/", "/n/a/0123456789abcdef", 'password=\\\\\\"',
    "api key",    "token_expir", "token,value=", "token: a = ", "token_file=/", "A" * 15 + "1", "\\", "'", 'secret("', "x@://",
)  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_text_of_a_million_characters_takes_time_by_its_length(unit: str, steps: Callable[[str], int]) -> None:
    """Four times the text takes some four times the steps, counted and not timed. Mutant: a value that is shown is
    searched for its end again from each name within it."""
    few, many = steps((unit * 5_000)[:5_000]), steps((unit * 20_000)[:20_000])
    assert many < 6 * few + 5_000


def test_a_hostile_megabyte_is_redacted(steps: Callable[[str], int]) -> None:
    """A quarter of a megabyte costs its quarter."""
    one = "".join((unit * 1_000)[:1_000] for unit in HOSTILE)
    few, many = steps((one * 8)[:250_000]), steps((one * 32)[:1_000_000])
    assert many < 6 * few


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Counts characters that the rules go over: all that a search or match reads, and each line of ours."""
    count = 0

    class Counted:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def __getattr__(self, name: str) -> object:
            return getattr(self._pattern, name)

        def _tell(self, found: re.Match[str] | None, text: str, at: int, stop: int) -> re.Match[str] | None:
            nonlocal count
            count += (found.end() if found is not None else min(stop, len(text))) - at + 1
            return found

        def search(self, text: str, at: int = 0, stop: int = 2**40) -> re.Match[str] | None:
            return self._tell(self._pattern.search(text, at, min(stop, len(text))), text, at, stop)

        def match(self, text: str, at: int = 0, stop: int = 2**40) -> re.Match[str] | None:
            found = self._pattern.match(text, at, min(stop, len(text)))
            return self._tell(found, text, at, at if found is None else stop)

    for name, value in vars(secret_patterns).items():
        if isinstance(value, re.Pattern):
            monkeypatch.setattr(secret_patterns, name, Counted(value))

    def counted(text: str) -> int:
        nonlocal count
        count = 0
        redact(text)
        return count

    return counted
