"""Where secrets are kept: `secrets.json` is read whole or refused whole, and says what to write instead."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hostler.app.secret_backends import MOUNTED, secrets_of
from hostler.core.state.input_problems import InvalidInputError
from hostler.ports import RefusedError, UnreachableError


def written(data: Path, **places: Any) -> Path:
    (data / "secrets.json").write_text(json.dumps(places))
    return data


def a_secret(folder: Path) -> None:
    (folder / "bmc").mkdir(parents=True)
    (folder / "bmc/username").write_text("root")
    (folder / "bmc/username").chmod(0o440)


async def test_a_folder_is_where_it_is_named(tmp_path: Path) -> None:
    """Mutants: a folder is looked for beside the process; a place that nobody named is asked."""
    a_secret(tmp_path / "kept")
    async with aiohttp.ClientSession() as session:
        secrets = secrets_of(written(tmp_path, folder="kept"), session)
        assert dict((await secrets.read("folder:bmc")).fields) == {"username": "root"}
        with pytest.raises(RefusedError, match="there are folder"):
            await secrets.read("vault:kv/bmc")
        without = tmp_path / "kept"
        with pytest.raises(RefusedError, match=f"{MOUNTED}/of-nobody"):
            await secrets_of(without, session).read("folder:of-nobody")


async def test_a_vault_is_asked_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    vault = {"address": "http://127.0.0.1:1", "token_file": str(tmp_path / "token")}
    async with aiohttp.ClientSession() as session:
        with pytest.raises(UnreachableError, match="Vault at http://127"):
            await secrets_of(written(tmp_path, vault=vault), session).read("vault:kv/bmc")


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ({"vault": {"address": "http://vault.example", "role": "r"}}, "plain http"),
        ({"vault": {"address": "https://vault.example"}}, "token_file or role"),
        ({"vault": {"address": "https://vault.example", "role": "r", "tokn": "t"}}, "unknown field"),
        ({"vault": {"address": "https://vault.example", "role": "r", "ca": "/nowhere.pem"}}, "authorities"),
        ({"folders": "x"}, "unknown field"),
        ({"folder": 5}, "Expected"),
    ],
)
async def test_what_names_no_place_is_refused_with_what_to_write(
    tmp_path: Path, places: dict[str, Any], says: str
) -> None:
    """Mutant: any of the checks is left out; the first read then finds out."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(InvalidInputError, match=says):
            secrets_of(written(tmp_path, **places), session)
