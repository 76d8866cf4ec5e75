"""Secret backends, as `secrets.json` in the data directory names them: a folder, files, Vault, Kubernetes."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import IN_CLUSTER, load_kubeconfig
from hostler.drivers.kubernetes.secret_objects import SecretObjects
from hostler.drivers.secrets.folder import SecretFolder
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.secrets.secret_files import SecretFiles
from hostler.drivers.secrets.vault import Vault, VaultSettings
from hostler.ports import Secrets

MOUNTED = "/run/secrets/hostler"
"""Default folder of secrets."""
FILES = "bmc-secrets"
"""Default directory of files, in the data directory: Hostler's own, and only its user's."""
EXAMPLE = '{"folder": "/run/secrets/hostler", "vault": {"address": "https://vault.example:8200", "role": "hostler"}}'


class KubernetesSecrets(Struct, frozen=True, forbid_unknown_fields=True):
    """A namespace of Secrets. `kubeconfig` is a file's path, "in-cluster" the cluster that Hostler runs in."""

    namespace: str
    kubeconfig: str = IN_CLUSTER


class SecretBackends(Struct, frozen=True, forbid_unknown_fields=True):
    """`folder`: a directory with one for each secret, `files`: one that Hostler writes too. Both may be relative.

    What they, `vault` and `kubernetes` hold is named "folder:…", "file:…", "vault:…" and "kubernetes:…".
    """

    folder: str = MOUNTED
    files: str = FILES
    vault: VaultSettings | None = None
    kubernetes: KubernetesSecrets | None = None


async def secrets_of(
    data: Path, session: aiohttp.ClientSession, fence: Callable[[], None], stack: AsyncExitStack
) -> KeptSecrets:
    """The places that are named there; what they hold open ends with `stack`. Raises InvalidInputError."""
    path = data / "secrets.json"
    try:
        named = msgspec.json.decode(path.read_bytes(), type=SecretBackends) if path.exists() else SecretBackends()
    except (msgspec.DecodeError, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    found: dict[str, Secrets] = {"folder": SecretFolder(data / named.folder), "file": SecretFiles(data / named.files)}
    if named.vault is not None:
        found["vault"] = _vault(named.vault, session, path)
    if named.kubernetes is not None:
        api = Api(load_kubeconfig(named.kubernetes.kubeconfig), fence)
        found["kubernetes"] = SecretObjects(await stack.enter_async_context(api), named.kubernetes.namespace)
    return KeptSecrets(found, time.monotonic, fence)


def _vault(settings: VaultSettings, session: aiohttp.ClientSession, path: Path) -> Vault:
    if problem := settings.problem():
        raise InvalidInputError((Problem(str(path), 0, f"vault: {problem}", f"write {EXAMPLE}"),))
    try:
        return Vault(session, settings, time.monotonic)
    except OSError as error:
        told = f"vault: its authorities cannot be read from {settings.ca}: {error.strerror}"
        raise InvalidInputError((Problem(str(path), 0, told, "give a PEM file as ca"),)) from error
