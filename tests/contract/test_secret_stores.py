"""Places of secrets that Hostler writes to: one contract for files, Secrets of a real Kubernetes, and Vault."""

import asyncio
import os
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import yaml
from msgspec import Struct

from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.secret_objects import SecretObjects
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.secrets.secret_files import FIELD_BYTES, SecretFiles
from hostler.drivers.secrets.vault import Vault, VaultSettings
from hostler.ports import ConflictError, PortError, RefusedError, SecretStore, UnreachableError
from tests.contract.kubernetes_world import PLACES, Admin, an_admin, as_hostler, until_asked
from tests.contract.vault_twin import TOKEN, vault_twin
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.xdist_group("kubernetes")
FIRST = {"username": "root", "password": "s3cr3t-one"}
SECOND = {"username": "root", "password": "s3cr3t-one", "pending": "s3cr3t-two"}
GRANTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "bmc-secrets.yaml"
SPACE = "hostler-bmc"


class Place(Struct):
    """A store, the name of a secret that nobody has written yet, and the same secret as another writer has it."""

    store: SecretStore
    name: str
    other: SecretStore
    deny: Callable[[], Awaitable[None]] | None = None


def files(tmp_path: Path) -> Place:
    async def deny() -> None:
        (tmp_path / "store/bmc-1.json").chmod(0o640)

    return Place(SecretFiles(tmp_path / "store"), "bmc-1", SecretFiles(tmp_path / "store"), deny)


async def by_vault(url: str, token: str, tmp_path: Path, stack: AsyncExitStack) -> Place:
    (tmp_path / "token").write_text(token)
    session = await stack.enter_async_context(aiohttp.ClientSession())
    settings = VaultSettings(url, token_file=str(tmp_path / "token"), timeout_s=30.0)
    one, other = (Vault(session, settings, lambda: 0.0) for _ in range(2))

    async def deny() -> None:
        (tmp_path / "token").write_text("hvs.s3cr3t-no-longer-good")

    return Place(one, "kv/bmc/hall 1/bmc-1", other, deny)


async def by_kubernetes(plane: ControlPlane, stack: AsyncExitStack) -> Place:
    admin = await stack.enter_async_context(an_admin(plane))
    kubeconfig = await as_hostler(plane, admin)
    for document in yaml.safe_load_all(GRANTS.read_text()):
        place = PLACES[document["kind"]].format(space=SPACE)
        assert (await admin.api.change("POST", place, document)).status in (201, 409)
    await admin.ask("DELETE", f"/api/v1/namespaces/{SPACE}/secrets", {})
    api = await stack.enter_async_context(Api(load_kubeconfig(str(kubeconfig)), lambda: None))

    async def allowed() -> bool:
        return (await api.get(f"/api/v1/namespaces/{SPACE}/secrets/none")).status == 404

    await until_asked(allowed, "the rights that were just granted")
    admins = SecretObjects(admin.api, SPACE)
    return Place(SecretObjects(api, SPACE), "bmc-1", admins, lambda: _of_another_type(admin))


async def _of_another_type(admin: Admin) -> None:
    """Another program keeps something else under the name."""
    where = f"/api/v1/namespaces/{SPACE}/secrets"
    await admin.delete(f"{where}/bmc-1")
    tls = {"tls.crt": "", "tls.key": ""}
    await admin.ask("POST", where, {"metadata": {"name": "bmc-1"}, "type": "kubernetes.io/tls", "data": tls})


@pytest.fixture(params=["files", "kubernetes", "vault twin"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Each store, empty."""
    async with AsyncExitStack() as stack:
        match request.param:
            case "files":
                yield files(tmp_path)
            case "kubernetes":
                yield await by_kubernetes(request.getfixturevalue("control_plane"), stack)
            case _:
                twin = await stack.enter_async_context(vault_twin())
                yield await by_vault(twin.url, TOKEN, tmp_path, stack)


async def refused(asked: Awaitable[object], kind: type[PortError]) -> str:
    """The error's text; nothing that is printed of it tells a secret."""
    with pytest.raises(kind) as raised:
        await asked
    assert "s3cr3t" not in "".join(traceback.format_exception(raised.value))
    return str(raised.value)


async def test_what_is_stored_is_there_and_nothing_was_before(place: Place) -> None:
    """Mutants: what is missing is refused, so that no first secret can be written; a version stays the same."""
    empty = await place.store.fetch(place.name)
    assert (dict(empty.fields), empty.version) == ({}, "")
    await place.store.store(place.name, FIRST, empty.version)
    there = await place.other.fetch(place.name)
    assert dict(there.fields) == FIRST
    assert "s3cr3t" not in f"{there!r} {there}"
    await place.other.store(place.name, SECOND, there.version)
    assert dict((await place.store.read(place.name)).fields) == SECOND
    assert (await place.store.fetch(place.name)).version != there.version


async def test_who_comes_second_writes_nothing(place: Place) -> None:
    """Mutant: the last writer wins, and the password that the first one has set on the BMC is nowhere any more."""
    empty = await place.store.fetch(place.name)
    await place.other.store(place.name, FIRST, empty.version)
    await refused(place.store.store(place.name, SECOND, empty.version), ConflictError)
    stale = await place.store.fetch(place.name)
    await place.other.store(place.name, {**FIRST, "password": "s3cr3t-three"}, stale.version)
    await refused(place.store.store(place.name, SECOND, stale.version), ConflictError)
    assert (await place.store.read(place.name)).fields["password"] == "s3cr3t-three"


async def test_of_two_at_once_one_writes(place: Place) -> None:
    await place.store.store(place.name, FIRST, "")
    version = (await place.store.fetch(place.name)).version
    mine, theirs = {**FIRST, "password": "s3cr3t-mine"}, {**FIRST, "password": "s3cr3t-theirs"}
    said = await asyncio.gather(
        place.store.store(place.name, mine, version),
        place.other.store(place.name, theirs, version),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in said) == ["ConflictError", "NoneType"]
    kept = dict((await place.store.fetch(place.name)).fields)
    assert kept == (mine if said[0] is None else theirs)


async def test_what_is_erased_is_nowhere_and_may_be_stored_anew(place: Place) -> None:
    """Mutants: an empty secret is left; a version that was written over is erased; a second time is refused."""
    await place.store.store(place.name, FIRST, "")
    stale = await place.store.fetch(place.name)
    await place.other.store(place.name, SECOND, stale.version)
    await refused(place.store.erase(place.name, stale.version), ConflictError)
    there = await place.store.fetch(place.name)
    assert dict(there.fields) == SECOND
    await place.store.erase(place.name, there.version)
    gone = await place.other.fetch(place.name)
    assert (dict(gone.fields), gone.version) == ({}, "")
    await place.store.erase(place.name, gone.version)
    await place.store.store(place.name, FIRST, gone.version)
    assert dict((await place.other.fetch(place.name)).fields) == FIRST


async def test_what_may_not_be_read_is_refused_and_not_taken_for_empty(place: Place) -> None:
    """Mutant: a secret that is denied counts as none; a new factory login is then looked for, and tried."""
    await place.store.store(place.name, FIRST, "")
    assert place.deny is not None
    await place.deny()
    await refused(place.store.fetch(place.name), RefusedError)
    await refused(place.store.store(place.name, SECOND, ""), PortError)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../../x", "/etc/passwd", "x\n", "x y/.."])
async def test_a_name_leads_nowhere_else(place: Place, name: str) -> None:
    await refused(place.store.fetch(name), RefusedError)
    await refused(place.store.store(name, FIRST, ""), RefusedError)


# files


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o610])
async def test_a_file_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    """Mutant: what the group may read passes, as it does where Kubernetes mounts a Secret."""
    kept = files(tmp_path).store
    await kept.store("bmc-1", FIRST, "")
    (tmp_path / "store/bmc-1.json").chmod(mode)
    assert "chmod 600" in await refused(kept.read("bmc-1"), RefusedError)


async def test_files_of_a_directory_are_read_and_never_written(tmp_path: Path) -> None:
    kept, folder = files(tmp_path).store, tmp_path / "store/bmc-1"
    folder.mkdir(parents=True)
    for name, value in FIRST.items():
        (folder / name).write_text(f"{value}\n")
        (folder / name).chmod(0o600)
    found = await kept.fetch("bmc-1")
    assert dict(found.fields) == FIRST
    assert "only read" in await refused(kept.store("bmc-1", SECOND, found.version), RefusedError)
    (folder / "password").chmod(0o640)
    await refused(kept.read("bmc-1"), RefusedError)


async def test_a_changed_file_is_taken_without_being_asked_to(tmp_path: Path) -> None:
    """Mutant: a file is kept for as long as a secret of Vault's."""
    now = [0.0]
    kept = KeptSecrets({"file": files(tmp_path).store}, lambda: now[0])
    await files(tmp_path).store.store("bmc-1", FIRST, "")
    assert (await kept.read("file:bmc-1")).fields["password"] == "s3cr3t-one"
    other = files(tmp_path).store
    await other.store("bmc-1", {**FIRST, "password": "s3cr3t-new"}, (await other.fetch("bmc-1")).version)
    now[0] = 2.0
    assert (await kept.read("file:bmc-1")).fields["password"] == "s3cr3t-new"


async def test_a_crash_in_the_middle_of_a_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the file is written in place."""
    kept = files(tmp_path).store
    await kept.store("bmc-1", FIRST, "")
    version = (await kept.fetch("bmc-1")).version

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        await refused(kept.store("bmc-1", SECOND, version), UnreachableError)
    assert dict((await kept.fetch("bmc-1")).fields) == FIRST
    assert [file.name for file in (tmp_path / "store").iterdir() if file.suffix != ".lock"] in (
        ["bmc-1.json"], [".lock", "bmc-1.json"], ["bmc-1.json", ".lock"]
    )  # fmt: skip


@pytest.mark.parametrize("content", [b"s3cr3t", b"[]", b'{"a": 1}', b'{"a": "s3cr3t\xff"}', b"x" * 300_000])
async def test_a_file_that_is_no_secret_is_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    kept = files(tmp_path).store
    await kept.store("bmc-1", FIRST, "")
    (tmp_path / "store/bmc-1.json").write_bytes(content)
    await refused(kept.fetch("bmc-1"), RefusedError)
    assert FIELD_BYTES < 300_000


# Vault


@pytest.mark.parametrize(("mood", "says"), [("sealed", "sealed"), ("limited", "429"), ("standby", "elsewhere")])
async def test_a_vault_that_cannot_now_is_unreachable(tmp_path: Path, mood: str, says: str) -> None:
    async with vault_twin() as twin, AsyncExitStack() as stack:
        vault = await by_vault(twin.url, TOKEN, tmp_path, stack)
        twin.mood = mood
        assert says in await refused(vault.store.fetch(vault.name), UnreachableError)
        assert says in await refused(vault.store.store(vault.name, FIRST, ""), UnreachableError)


async def test_a_write_whose_answer_was_lost_may_be_there(tmp_path: Path) -> None:
    """Mutant: what was not confirmed is taken for not written."""
    async with vault_twin() as twin, AsyncExitStack() as stack:
        vault = await by_vault(twin.url, TOKEN, tmp_path, stack)
        twin.loses = True
        await refused(vault.store.store(vault.name, FIRST, ""), UnreachableError)
        assert dict((await vault.store.fetch(vault.name)).fields) == FIRST


async def test_behind_a_deleted_version_the_next_one_is_written(tmp_path: Path) -> None:
    """Mutant: what is deleted has no number, and is never written again."""
    async with vault_twin() as twin, AsyncExitStack() as stack:
        vault = await by_vault(twin.url, TOKEN, tmp_path, stack)
        twin.secrets[vault.name] = None
        gone = await vault.store.fetch(vault.name)
        assert (dict(gone.fields), gone.version) == ({}, "1")
        await vault.store.store(vault.name, FIRST, gone.version)
        assert dict((await vault.store.fetch(vault.name)).fields) == FIRST


# what stands before them


async def test_nothing_is_written_behind_a_fence_or_to_a_place_that_is_only_read(tmp_path: Path) -> None:
    """Mutant: a controller that has lost its lease writes passwords."""

    def fenced() -> None:
        raise UnreachableError("another controller has taken over")

    kept = KeptSecrets({"file": files(tmp_path).store}, lambda: 0.0, fenced)
    await refused(kept.store("file:bmc-1", FIRST, ""), UnreachableError)
    assert not (tmp_path / "store").exists()
    assert "no such place" in await refused(kept.fetch("folder:x"), RefusedError)
