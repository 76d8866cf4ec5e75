"""How an Ironic is entered: a real one with a file of users, and a real one behind a real Keystone."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from hostler.app.ironic_access import FILE, with_ironic
from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.ironic.client import IronicAccess, IronicClient
from hostler.drivers.ironic.keystone_tokens import KeystoneTokens
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.secrets.secret_files import SecretFiles
from hostler.ports import LoginRefusedError, RefusedError, UnreachableError
from tests.contract.ironic_world import RealIronic, hashed, real_ironic
from tests.contract.keystone_world import PASSWORD, RealKeystone, real_keystone
from tests.contract.pypi_programs import MissingError
from tests.contract.test_ironic import Bmc

pytestmark = pytest.mark.nightly("a real Ironic runs beside it")

WORD = "a word of the test"
BEHIND = """
[keystone_authtoken]
auth_url={url}
www_authenticate_uri={url}
auth_type=password
username=admin
password={password}
user_domain_id=default
project_name=admin
project_domain_id=default
token_cache_time=-1
"""


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealIronic]:
    """An Ironic whose users stand in a file."""
    folder = tmp_path_factory.mktemp("users")
    login = base64.b64encode(f"hostler:{WORD}".encode()).decode()
    try:
        (folder / "users").write_text(f"hostler:{hashed(WORD)}\n")
        auth = f"http_basic\nhttp_basic_auth_user_file={folder}/users"
        entry = {"Authorization": f"Basic {login}"}
        with real_ironic(folder, ("n1",), lambda: entry, strategy=auth) as there:
            there.enrol("n1")
            yield there
    except MissingError as missing:
        pytest.skip(f"Ironic is not here and cannot be installed: {missing}")


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealKeystone, RealIronic]]:
    """An Ironic that asks a Keystone who enters."""
    folder = tmp_path_factory.mktemp("behind")
    try:
        with real_keystone(folder) as keystone:
            sections = BEHIND.format(url=keystone.url, password=PASSWORD)
            entry = {"X-Auth-Token": keystone.token()[0]}
            with real_ironic(folder, ("n1",), lambda: entry, strategy="keystone", sections=sections) as there:
                there.enrol("n1")
                owner = {"op": "add", "path": "/owner", "value": keystone.project}
                there.call("PATCH", "/v1/nodes/n1", [owner])
                yield keystone, there
    except MissingError as missing:
        pytest.skip(f"Ironic or Keystone is not here and cannot be installed: {missing}")


@asynccontextmanager
async def a_client(folder: Path, access: IronicAccess, fields: dict[str, str]) -> AsyncIterator[IronicClient]:
    secrets = KeptSecrets({"file": SecretFiles(folder / "secrets")}, lambda: 0.0)
    await secrets.store("file:ironic", fields, "")
    async with aiohttp.ClientSession() as session:
        yield IronicClient(session, access, secrets)


async def test_a_user_of_its_file_enters_and_another_does_not(users: RealIronic, tmp_path: Path) -> None:
    """Mutant: a wrong password is asked again."""
    access = IronicAccess(users.url, "file:ironic")
    async with a_client(tmp_path / "1", access, {"username": "hostler", "password": WORD}) as client:
        assert (await client.node("n1")).name == "n1"
    async with a_client(tmp_path / "2", access, {"username": "hostler", "password": "wrong"}) as client:
        with pytest.raises(RefusedError, match=r"lets us not in \(401\)"):
            await client.node("n1")
    async with a_client(tmp_path / "3", IronicAccess(users.url), {}) as client:
        with pytest.raises(RefusedError, match="correct the secret"):
            await client.node("n1")


async def test_a_password_enters_by_a_token_until_it_is_revoked(
    behind: tuple[RealKeystone, RealIronic], tmp_path: Path
) -> None:
    """Mutants: a token that was revoked is shown for its whole hour; a refused token is a refusal."""
    keystone, there = behind
    access = IronicAccess(there.url, "file:ironic", keystone=keystone.url)
    async with a_client(tmp_path, access, keystone.login) as client:
        assert (await client.node("n1")).name == "n1"
        keystone.revoke_all()
        there.entry = lambda: {"X-Auth-Token": keystone.token()[0]}
        assert (await client.node("n1")).provision == "enroll"


async def test_an_application_credential_enters(behind: tuple[RealKeystone, RealIronic], tmp_path: Path) -> None:
    """Ironic shows a project's credential the nodes that the project owns. Mutant: it is asked for as a password."""
    keystone, there = behind
    access = IronicAccess(there.url, "file:ironic", keystone=keystone.url)
    async with a_client(tmp_path, access, keystone.application_credential("hostler")) as client:
        assert (await client.node("n1")).name == "n1"


async def test_who_is_not_let_in_and_a_keystone_that_is_away_are_told_and_no_secret_is(
    behind: tuple[RealKeystone, RealIronic], tmp_path: Path
) -> None:
    """Mutants: a wrong password is asked again; one that is away has refused; an error holds the password."""
    keystone, there = behind
    access = IronicAccess(there.url, "file:ironic", keystone=keystone.url)
    wrong = keystone.login | {"password": "wrong and secret"}
    async with a_client(tmp_path / "1", access, wrong) as client:
        with pytest.raises(LoginRefusedError, match=r"Keystone lets us not in \(401\); correct") as refused:
            await client.node("n1")
        assert "wrong and secret" not in repr(refused.value) + repr(refused.value.__cause__)
    async with a_client(tmp_path / "2", access, {"username": "admin"}) as client:
        with pytest.raises(RefusedError, match="holds neither username and password nor"):
            await client.node("n1")
    away = IronicAccess(there.url, "file:ironic", timeout_s=3, keystone="http://127.0.0.1:9/v3")
    async with a_client(tmp_path / "3", away, keystone.login) as client:
        with pytest.raises(UnreachableError, match="Keystone does not answer"):
            await client.node("n1")


async def test_the_file_names_a_keystone_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: a Keystone without a secret is entered by nobody; a library that is missing is found out at night."""
    secrets = KeptSecrets({}, lambda: 0.0)
    async with aiohttp.ClientSession() as session:
        for wrong in ('"keystone": "https://k/v3"', '"secret": "file:i", "keystone": "k"'):
            (tmp_path / FILE).write_text(f'{{"url": "https://i", {wrong}}}')
            with pytest.raises(InvalidInputError, match="beside a secret"):
                with_ironic(Bmc(), tmp_path, session, secrets)
        (tmp_path / FILE).write_text('{"url": "https://i", "secret": "file:i", "keystone": "https://k/v3"}')
        with_ironic(Bmc(), tmp_path, session, secrets)
        monkeypatch.setattr("hostler.app.ironic_access.MISSING", "No module named 'keystoneauth1'")
        with pytest.raises(InvalidInputError, match="No module named"):
            with_ironic(Bmc(), tmp_path, session, secrets)


async def test_a_token_is_asked_for_once_and_again_where_it_is_refused(
    behind: tuple[RealKeystone, RealIronic], tmp_path: Path
) -> None:
    """Mutants: a fleet that begins asks Keystone for a token a node; a refused one is given again."""
    keystone, _ = behind
    secrets = KeptSecrets({"file": SecretFiles(tmp_path / "secrets")}, lambda: 0.0)
    await secrets.store("file:ironic", keystone.login, "")
    tokens = KeystoneTokens(keystone.url, "file:ironic", secrets, 30)
    (first,) = set(await asyncio.gather(*(tokens.token() for _ in range(20))))
    assert await tokens.token(refused="another") == first
    assert await tokens.token(refused=first) != first
