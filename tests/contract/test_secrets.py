"""Places of secrets: what each gives and refuses alike, what Vault answers badly, and no error or log tells any."""

import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from hostler.drivers.redfish.http_exchange import Access, HttpExchange
from hostler.drivers.secrets.folder import FIELD_BYTES, SecretFolder
from hostler.drivers.secrets.secret_cache import KEPT_S, SOONEST_S, KeptSecrets
from hostler.drivers.secrets.vault import Vault, VaultSettings
from hostler.ports import ExcessError, PortError, RefusedError, Secret, Secrets, UnreachableError
from tests.contract.vault_twin import JWT, ROLE, TOKEN, VaultTwin, vault_twin

FIELDS = {"username": "root", "password": "s3cr3t-calvin"}


class Clock:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Place(Struct):
    """A place with a secret in it: `name` names it, `put` writes its fields, `deny` makes it not ours."""

    secrets: Secrets
    name: str
    put: Callable[[dict[str, str]], None]
    deny: Callable[[], None]
    remove: Callable[[], None]


def a_folder(root: Path) -> Place:
    here = root / "bmc"
    here.mkdir()

    def put(fields: dict[str, str]) -> None:
        for name, value in fields.items():
            (here / name).write_text(f"{value}\n")
            (here / name).chmod(0o440)

    def remove() -> None:
        for file in here.iterdir():
            file.unlink()
        here.rmdir()

    return Place(SecretFolder(root), "bmc", put, lambda: (here / "password").chmod(0o444), remove)


def a_vault(twin: VaultTwin, secrets: Secrets) -> Place:
    name = "kv/bmc/hall 1"
    put, remove = (
        (lambda fields: twin.secrets.__setitem__(name, fields)),
        (lambda: twin.secrets.__setitem__(name, None)),
    )
    return Place(secrets, name, put, lambda: twin.denied.add(name), remove)


@pytest.fixture
async def twin() -> AsyncIterator[VaultTwin]:
    async with vault_twin() as running:
        yield running


@pytest.fixture
async def enter(twin: VaultTwin, tmp_path: Path) -> AsyncIterator[Callable[..., Vault]]:
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "jwt").write_text(JWT)
    async with aiohttp.ClientSession() as session:

        def made(by: str, clock: Callable[[], float] = Clock()) -> Vault:  # noqa: B008 - one that stands still
            settings = VaultSettings(twin.url, timeout_s=20.0)
            if by == "role":
                return Vault(session, replace(settings, role=ROLE, jwt_file=str(tmp_path / "jwt")), clock)
            return Vault(session, replace(settings, token_file=str(tmp_path / "token")), clock)

        yield made


@pytest.fixture(params=["folder", "vault by token", "vault by role"])
def place(request: pytest.FixtureRequest, twin: VaultTwin, enter: Callable[..., Vault], tmp_path: Path) -> Place:
    """Each place of secrets, with FIELDS in it."""
    kind = request.param
    found = a_folder(tmp_path) if kind == "folder" else a_vault(twin, enter(kind.rpartition(" ")[2]))
    found.put(FIELDS)
    return found


async def refused(asked: Awaitable[object], kind: type[PortError]) -> str:
    """The error's text, which tells nothing of a secret, nor does anything that is printed of it."""
    with pytest.raises(kind) as raised:
        await asked
    assert type(raised.value) is kind
    assert "s3cr3t" not in "".join(traceback.format_exception(raised.value))
    return str(raised.value)


async def test_a_secret_is_what_stands_there_now(place: Place) -> None:
    """Mutants: what was read once stays; the newline behind a password belongs to it; a secret prints itself."""
    found = await place.secrets.read(place.name)
    assert dict(found.fields) == FIELDS
    assert "s3cr3t" not in f"{found!r} {found} {[found]}"
    place.put({"password": "s3cr3t-another"})
    assert (await place.secrets.read(place.name)).fields["password"] == "s3cr3t-another"


async def test_what_is_not_there_or_not_ours_is_refused(place: Place) -> None:
    await refused(place.secrets.read(place.name + "x"), RefusedError)
    place.deny()
    await refused(place.secrets.read(place.name), RefusedError)


async def test_what_was_removed_is_there_no_more(place: Place) -> None:
    place.remove()
    await refused(place.secrets.read(place.name), RefusedError)


@pytest.mark.parametrize("name", ["", ".", "..", "../token", "bmc/..", "a/../../token", "/etc/passwd", "x\n"])
async def test_a_name_leads_nowhere_else(place: Place, name: str) -> None:
    """Mutant: a name is a path."""
    await refused(place.secrets.read(name), RefusedError)


async def test_a_field_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    made = a_folder(tmp_path)
    made.put({"password": "s" * (FIELD_BYTES + 1)})
    assert "at most" in await refused(made.secrets.read("bmc"), RefusedError)
    (tmp_path / "bmc/password").write_bytes(b"s3cr3t\xff")
    assert "UTF-8" in await refused(made.secrets.read("bmc"), RefusedError)


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("sealed", "sealed"), ("limited", "429"), ("html", "cannot be read"), ("endless", "longer than 1 MiB"),
        ("standby", "sends elsewhere"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["token", "role"])
async def test_a_vault_that_cannot_answer_now_is_asked_later(
    twin: VaultTwin, enter: Callable[..., Vault], mood: str, says: str, by: str
) -> None:
    """Mutants: a redirect is followed, and the token with it; a sealed Vault's 503 says that there is no secret."""
    vault = enter(by)
    a_vault(twin, vault).put(FIELDS)
    async with vault_twin() as other:
        twin.mood, twin.elsewhere = mood, other.url
        kind = ExcessError if mood == "endless" else UnreachableError
        assert says in await refused(vault.read("kv/bmc/hall 1"), kind)
        assert other.asked == []
        twin.mood = ""
        assert dict((await vault.read("kv/bmc/hall 1")).fields) == FIELDS


async def test_a_slow_vault_is_given_up_and_a_silent_one_is_named(twin: VaultTwin, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    async with aiohttp.ClientSession() as session:
        settings = VaultSettings(twin.url, token_file=str(token), timeout_s=0.2)
        twin.mood = "slow"
        assert "no answer within 0.2 s" in await refused(
            Vault(session, settings, Clock()).read("kv/a"), UnreachableError
        )
        nobody = replace(settings, address="http://127.0.0.1:1")
        assert "cannot be reached" in await refused(Vault(session, nobody, Clock()).read("kv/a"), UnreachableError)
        token.unlink()
        assert "no token" in await refused(Vault(session, settings, Clock()).read("kv/a"), UnreachableError)


async def test_a_login_is_renewed_before_it_ends_and_when_it_is_taken_back(
    twin: VaultTwin, enter: Callable[..., Vault]
) -> None:
    """Mutants: a login for each question; one is used beyond its lease, or after it was revoked."""
    clock = Clock()
    vault = enter("role", clock)
    a_vault(twin, vault).put(FIELDS)
    for _ in range(3):
        await vault.read("kv/bmc/hall 1")
    assert twin.logins == 1
    clock.now += twin.lease_s
    await vault.read("kv/bmc/hall 1")
    assert twin.logins == 2
    twin.tokens.clear()
    await vault.read("kv/bmc/hall 1")
    assert twin.logins == 3
    twin.denied.add("kv/bmc/hall 1")
    await refused(vault.read("kv/bmc/hall 1"), RefusedError)
    assert twin.logins == 4, "once more, and no oftener"


async def test_what_is_no_secret_of_version_2_is_refused(twin: VaultTwin, enter: Callable[..., Vault]) -> None:
    for fields in ({}, {"port": 443}, {"a": {"b": "s3cr3t"}}):
        twin.secrets["kv/x"] = fields
        await refused(enter("token").read("kv/x"), RefusedError)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (VaultSettings("http://vault.example:8200", token_file="t"), "plain http"),
        (VaultSettings("vault.example", token_file="t"), "not https"),
        (VaultSettings("https://me:s@vault.example", token_file="t"), "not https"),
        (VaultSettings("https://[vault", token_file="t"), "no URL"),
        (VaultSettings("https://vault.example"), "one of them"),
        (VaultSettings("https://vault.example", token_file="t", role="r"), "one of them"),
        (VaultSettings("https://vault.example:8200", role="r"), ""),
    ],
)
def test_a_vault_is_reached_over_tls_and_entered_in_one_way(settings: VaultSettings, says: str) -> None:
    assert says in settings.problem()
    assert bool(says) is bool(settings.problem())


class Counted:
    """A place that gives what a test says, and counts."""

    def __init__(self) -> None:
        self.gives: Secret | PortError = Secret(FIELDS)
        self.asked = 0

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        assert name == "bmc"
        self.asked += 1
        if isinstance(self.gives, PortError):
            raise self.gives
        return self.gives


async def test_a_secret_is_kept_for_a_while_and_outlasts_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """Mutants: each look reads it; it outlasts its lease; a sealed Vault blinds the fleet; what is refused stays."""
    clock, place = Clock(), Counted()
    kept = KeptSecrets({"folder": place}, clock)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            await kept.read("folder:bmc")
        assert place.asked == 1
        await kept.read("folder:bmc", anew=True)
        assert place.asked == 1, "it is fresh"
        clock.now += SOONEST_S
        await kept.read("folder:bmc", anew=True)
        assert place.asked == 2
        clock.now += KEPT_S
        place.gives = UnreachableError("sealed")
        assert (await kept.read("folder:bmc")).fields == FIELDS
        assert (await kept.read("folder:bmc")).fields == FIELDS
        assert place.asked == 3, "who cannot answer is not asked with every look"
        clock.now += SOONEST_S
        place.gives = Secret(FIELDS, lease_s=10.0)
        await kept.read("folder:bmc")
        clock.now += 10.0
        place.gives = RefusedError("gone")
        await refused(kept.read("folder:bmc"), RefusedError)
        place.gives = UnreachableError("sealed")
        await refused(kept.read("folder:bmc"), UnreachableError)
    assert "no such place" in await refused(kept.read("vault:bmc"), RefusedError)
    assert "sealed" in str([record.__dict__ for record in caplog.records])
    assert "s3cr3t" not in str([record.__dict__ for record in caplog.records])


async def test_a_bmc_is_entered_with_what_its_secret_is_now(caplog: pytest.LogCaptureFixture) -> None:
    """Mutants: a password that was changed is found out only after minutes; an act is sent twice."""
    accepted, asked = "old", []

    async def bmc(request: web.BaseRequest) -> web.Response:
        login = aiohttp.BasicAuth.decode(request.headers["Authorization"])
        asked.append((request.method, login.password))
        return web.Response(status=200 if (login.login, login.password) == ("root", accepted) else 401)

    clock, place = Clock(), Counted()
    place.gives = Secret({"username": "root", "password": "old"})
    runner = web.ServerRunner(web.Server(bmc))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession() as session:
        secrets = KeptSecrets({"folder": place}, clock)
        exchange = HttpExchange(session, origin, Access(secret="folder:bmc"), secrets)
        assert (await exchange("GET", "/redfish/v1/", None, {})).status == 200
        accepted = "new"
        place.gives = Secret({"username": "root", "password": "new"})
        clock.now += SOONEST_S
        assert (await exchange("POST", "/redfish/v1/x", b"{}", {})).status == 401
        assert (await exchange("GET", "/redfish/v1/", None, {})).status == 200
        assert asked == [("GET", "old"), ("POST", "old"), ("GET", "old"), ("GET", "new")]
        place.gives = Secret({"password": "new"})
        clock.now += KEPT_S
        assert "no field username" in await refused(exchange("GET", "/", None, {}), RefusedError)
        assert "no backend of secrets" in await refused(
            HttpExchange(session, origin, Access(secret="folder:bmc"))("GET", "/", None, {}), RefusedError
        )
    await runner.cleanup()
