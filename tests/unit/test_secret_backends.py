"""Places of secrets: `secrets.json` is read whole or refused whole, and says what to write instead."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hostler.app.secret_backends import MOUNTED, secrets_of
from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.ports import RefusedError, UnreachableError


def written(data: Path, **places: Any) -> Path:
    (data / "secrets.json").write_text(json.dumps(places))
    return data


def a_secret(folder: Path) -> None:
    (folder / "bmc").mkdir(parents=True)
    (folder / "bmc/username").write_text("root")
    (folder / "bmc/username").chmod(0o440)


async def opened(data: Path) -> KeptSecrets:
    """The places as `serve` opens them; the fence lets everything pass."""
    async with aiohttp.ClientSession() as session, AsyncExitStack() as stack:
        return await secrets_of(data, session, lambda: None, stack)


async def test_a_folder_is_where_it_is_named(tmp_path: Path) -> None:
    """Mutants: a folder is looked for beside the process; a place that nobody named is asked."""
    a_secret(tmp_path / "kept")
    secrets = await opened(written(tmp_path, folder="kept"))
    assert dict((await secrets.read("folder:bmc")).fields) == {"username": "root"}
    with pytest.raises(RefusedError, match="there are file, folder"):
        await secrets.read("vault:kv/bmc")
    without = await opened(tmp_path / "kept")
    with pytest.raises(RefusedError, match=f"{MOUNTED}/of-nobody"):
        await without.read("folder:of-nobody")


async def test_files_lie_in_the_data_directory_unless_named(tmp_path: Path) -> None:
    """Mutant: what is written to a place goes to another one."""
    await (await opened(tmp_path)).store("file:bmc7", {"username": "root"}, "")
    assert (tmp_path / "bmc-secrets/bmc7.json").stat().st_mode & 0o777 == 0o600
    named = await opened(written(tmp_path, files="elsewhere"))
    assert not (await named.fetch("file:bmc7")).fields


async def test_a_vault_is_asked_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    vault = {"address": "http://127.0.0.1:1", "token_file": str(tmp_path / "token")}
    async with aiohttp.ClientSession() as session:
        secrets = await secrets_of(written(tmp_path, vault=vault), session, lambda: None, AsyncExitStack())
        with pytest.raises(UnreachableError, match="Vault at http://127"):
            await secrets.read("vault:kv/bmc")


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ({"vault": {"address": "http://vault.example", "role": "r"}}, "plain http"),
        ({"vault": {"address": "https://vault.example"}}, "token_file or role"),
        ({"vault": {"address": "https://vault.example", "role": "r", "tokn": "t"}}, "unknown field"),
        ({"vault": {"address": "https://vault.example", "role": "r", "ca": "/nowhere.pem"}}, "authorities"),
        ({"kubernetes": {"namespace": "bmc", "kubeconfig": "/nowhere"}}, "no usable kubeconfig"),
        ({"kubernetes": {"kubeconfig": "/nowhere"}}, "namespace"),
        ({"folders": "x"}, "unknown field"),
        ({"folder": 5}, "Expected"),
    ],
)
async def test_what_names_no_place_is_refused_with_what_to_write(
    tmp_path: Path, places: dict[str, Any], says: str
) -> None:
    """Mutant: any of the checks is left out; the first read then finds out."""
    with pytest.raises(InvalidInputError, match=says):
        await opened(written(tmp_path, **places))
