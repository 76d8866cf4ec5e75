"""Reads which providers own machines of this cell: `provider.json` in the data directory, checked whole."""

import re
from ipaddress import ip_network
from pathlib import Path

import msgspec

from hostler.core.state.input_problems import UNREADABLE, InvalidInputError, Problem
from hostler.drivers.provider.provider_client import ProviderAccess, Providers
from hostler.ports import Secrets

FILE = "provider.json"
EXAMPLE = '{"cloud": {"url": "https://hands.example.org/hostler", "secret": "file:cloud-provider"}}'
PROVIDERS_MOST = 32
TIMEOUT_MOST_S = 300.0
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


def read_providers(data: Path, secrets: Secrets) -> Providers:
    """The providers that the file names, none where there is no file. Raises InvalidInputError for a wrong file."""
    path = data / FILE
    if not path.exists():
        return Providers({}, secrets)
    try:
        named = msgspec.json.decode(path.read_bytes(), type=dict[str, ProviderAccess])
    except (*UNREADABLE, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    problems = [
        Problem(str(path), 0, f"provider '{name[:40]}': {what}", f"write {EXAMPLE}")
        for name, access in named.items()
        if (what := _problem(name, access))
    ]
    if len(named) > PROVIDERS_MOST:
        problems.append(Problem(str(path), 0, f"{len(named)} providers", f"name at most {PROVIDERS_MOST}"))
    if problems:
        raise InvalidInputError(tuple(problems[:20]))
    return Providers(named, secrets)


def _problem(name: str, access: ProviderAccess) -> str:
    """The problem of one entry, "" where it has none."""
    if not _NAME.fullmatch(name):
        return "its name is not 1 to 31 small letters, digits and '-'"
    if not access.secret:
        return "it names no secret, and requests are signed with the key of one"
    if wrong := next((one for one in access.networks if not _is_network(one)), ""):
        return f"{wrong[:60]} is not a network such as 10.20.0.0/16"
    if not (access.url.startswith("https://") or (access.url.startswith("http://") and access.networks)):
        return "its url is neither https:// nor http:// within named networks"
    return "" if 0 < access.timeout_s <= TIMEOUT_MOST_S else f"timeout_s is not above 0 and up to {TIMEOUT_MOST_S:g}"


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
