"""Secret backends, as `secrets.json` in the data directory names them: a folder, Vault, or both."""

import time
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.drivers.secrets.folder import SecretFolder
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.secrets.vault import Vault, VaultSettings
from hostler.ports import Secrets

MOUNTED = "/run/secrets/hostler"
"""Default folder of secrets."""
EXAMPLE = '{"folder": "/run/secrets/hostler", "vault": {"address": "https://vault.example:8200", "role": "hostler"}}'


class SecretBackends(Struct, frozen=True, forbid_unknown_fields=True):
    """`folder`: a directory with one for each secret. What it and `vault` hold is named "folder:…" and "vault:…"."""

    folder: str = MOUNTED
    vault: VaultSettings | None = None


def secrets_of(data: Path, session: aiohttp.ClientSession) -> KeptSecrets:
    """The places that are named there; without the file the folder alone, where it is. Raises InvalidInputError."""
    path = data / "secrets.json"
    try:
        named = msgspec.json.decode(path.read_bytes(), type=SecretBackends) if path.exists() else SecretBackends()
    except (msgspec.DecodeError, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    found: dict[str, Secrets] = {"folder": SecretFolder(data / named.folder)}
    if named.vault is not None:
        if problem := named.vault.problem():
            raise InvalidInputError((Problem(str(path), 0, f"vault: {problem}", f"write {EXAMPLE}"),))
        try:
            found["vault"] = Vault(session, named.vault, time.monotonic)
        except OSError as error:
            told = f"vault: its authorities cannot be read from {named.vault.ca}: {error.strerror}"
            raise InvalidInputError((Problem(str(path), 0, told, "give a PEM file as ca"),)) from error
    return KeptSecrets(found, time.monotonic)
