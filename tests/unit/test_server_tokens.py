"""The file of tokens: what stands in it, and what nobody can do with that."""

import sqlite3
import stat
from pathlib import Path

from hostler.server.tokens import TOKEN, Grant, Role, TokenStore

ADA = Grant("ada", Role.operator)


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


def test_a_hash_taken_from_the_file_is_no_token(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "t.sqlite")
    store.create(ADA)
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        identity, digest = db.execute("SELECT id, hash FROM tokens").fetchone()
    db.close()
    assert store.verify(f"hst_{identity}_{digest.hex()[:43]}") is None
