"""Tokens: what is stored, who is recognised, and which grants make sense."""

import sqlite3
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostler.server.tokens import TOKEN, Grant, InvalidGrantError, Role, TokenStore

ADA = Grant("ada", Role.operator)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_token_is_recognised_as_its_grant(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.sqlite")
    grant = Grant("rita", Role.technician, site="ams", pool="alpha")
    who = store.verify(store.create(grant))
    assert who is not None
    assert (who.grant, who.name, who.role, who.whole) == (grant, "rita", Role.technician, False)


def test_the_secret_is_stored_nowhere(tmp_path: Path) -> None:
    """Mutant: keep the token in a column; the file then contains it."""
    store = TokenStore(tmp_path / "tokens.sqlite")
    token = store.create(ADA)
    store.close()
    secret = TOKEN.fullmatch(token)
    assert secret
    for file in tmp_path.iterdir():
        assert secret[2].encode() not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"),
        lambda t: t.replace("hst_", "hst-"),
        lambda t: t + "x",
        lambda t: t[:17],
        lambda t: "hst_" + "0" * 12 + t[16:],
        lambda t: t + "\n",
        lambda t: "",
        lambda t: t.encode().decode("utf-16-le", "ignore"),
    ],
)
def test_anything_else_is_nobody(tmp_path: Path, change: Callable[[str], str]) -> None:
    store = TokenStore(tmp_path / "tokens.sqlite")
    assert store.verify(change(store.create(ADA))) is None


def test_a_revoked_token_is_nobody_at_once_also_for_another_process(tmp_path: Path) -> None:
    serving, other = TokenStore(tmp_path / "t.sqlite"), TokenStore(tmp_path / "t.sqlite")
    token = serving.create(ADA)
    who = other.verify(token)
    assert who is not None
    assert other.revoke(who.token)
    assert serving.verify(token) is None
    assert not other.revoke(who.token)


def test_an_expired_token_is_nobody(tmp_path: Path) -> None:
    clock = Clock()
    store = TokenStore(tmp_path / "t.sqlite", clock)
    token = store.create(Grant("ci", Role.viewer, expires=clock.now + timedelta(hours=1)))
    assert store.verify(token)
    clock.now += timedelta(hours=1)
    assert store.verify(token) is None


def test_the_first_start_writes_one_operator_token(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "t.sqlite")
    file = store.bootstrap(tmp_path / "operator.token")
    assert file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    who = store.verify(file.read_text().strip())
    assert who is not None
    assert who.role is Role.operator
    assert store.bootstrap(tmp_path / "operator.token") is None
    assert [i.name for i in store.list()] == ["bootstrap"]


@pytest.mark.parametrize(
    "grant",
    [
        Grant("", Role.viewer),
        Grant("a b", Role.viewer),
        Grant("a\x00b", Role.viewer),
        Grant("x" * 65, Role.viewer),
        Grant("t", Role.tenant),
        Grant("o", Role.operator, tenant="acme"),
        Grant("a", Role.agent),
        Grant("v", Role.viewer, node="n1"),
    ],
)
def test_a_grant_that_contradicts_itself_gets_no_token(tmp_path: Path, grant: Grant) -> None:
    store = TokenStore(tmp_path / "t.sqlite")
    with pytest.raises(InvalidGrantError):
        store.create(grant)
    assert store.list() == []


def test_a_hash_taken_from_the_file_is_no_token(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "t.sqlite")
    store.create(ADA)
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        identity, digest = db.execute("SELECT id, hash FROM tokens").fetchone()
    db.close()
    assert store.verify(f"hst_{identity}_{digest.hex()[:43]}") is None
