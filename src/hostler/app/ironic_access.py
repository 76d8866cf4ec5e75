"""Reads which Ironic has machines of this cell: `ironic.json` in the data directory, checked whole."""

from pathlib import Path

import aiohttp
import msgspec

from hostler.core.state.input_problems import UNREADABLE, InvalidInputError, Problem
from hostler.drivers.ironic.client import IronicAccess, IronicClient
from hostler.drivers.ironic.ironic_nodes import IronicNodes
from hostler.drivers.ironic.keystone_tokens import MISSING
from hostler.drivers.ironic.without_ironic import WithoutIronic
from hostler.ports import OperationDriver, Secrets

FILE = "ironic.json"
KEYSTONE = '{"url": "…", "secret": "file:ironic", "keystone": "https://keystone.example.org:5000/v3"}'
EXAMPLE = '{"url": "https://ironic.example.org:6385", "secret": "file:ironic"}'


def with_ironic(
    bmc: OperationDriver, data: Path, session: aiohttp.ClientSession, secrets: Secrets
) -> tuple[OperationDriver, ...]:
    """The BMC driver, before it an Ironic where the file names one. Raises InvalidInputError for a wrong file."""
    path = data / FILE
    if not path.exists():
        return bmc, WithoutIronic()
    try:
        access = msgspec.json.decode(path.read_bytes(), type=IronicAccess)
    except (*UNREADABLE, OSError) as error:
        raise InvalidInputError((Problem(str(path), 0, str(error), f"write {EXAMPLE}"),)) from error
    if not access.url.startswith(("https://", "http://")) or access.timeout_s <= 0:
        what = "url is no http address" if access.timeout_s > 0 else "timeout_s is not above 0"
        raise InvalidInputError((Problem(str(path), 0, what, f"write {EXAMPLE}"),))
    if access.keystone and (MISSING or not access.keystone.startswith(("https://", "http://")) or not access.secret):
        what = f"keystone cannot be used: {MISSING}" if MISSING else "keystone is an http address, beside a secret"
        mend = "install it with pip: 'hostler[keystone]'" if MISSING else f"write {KEYSTONE}"
        raise InvalidInputError((Problem(str(path), 0, what, mend),))
    return (IronicNodes(bmc, IronicClient(session, access, secrets)),)
