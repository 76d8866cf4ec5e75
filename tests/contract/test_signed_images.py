"""The signed list of the image folder: made by openssl, and asked of everything that a machine is given to boot."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.app.boot_service import boot_signers
from hostler.core.state.input_problems import InvalidInputError
from hostler.server.boot.signed_list import LIST, SIGNATURE, SignedListError, signers_of
from tests.contract.boot_world import INITRD, KERNEL, LOADER, boot_world

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl missing: apt-get install openssl")

FILES = {"vmlinuz": KERNEL, "initrd": INITRD, "ipxe.efi": LOADER}


def openssl(*words: str) -> None:
    subprocess.run(("openssl", *words), check=True, capture_output=True, timeout=60)


def a_key(folder: Path, name: str, kind: str = "ed25519") -> tuple[Path, Path]:
    """A builder's key, and the file of it that controllers have."""
    secret, public = folder / f"{name}.key", folder / f"{name}.pub"
    openssl("genpkey", "-algorithm", kind, "-out", str(secret))
    openssl("pkey", "-in", str(secret), "-pubout", "-out", str(public))
    return secret, public


def sign(folder: Path, secret: Path, names: tuple[str, ...] = tuple(FILES)) -> None:
    """Sign these files as an image builder does: sha256sum, and openssl."""
    sums = "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    sign_text(folder, secret, sums)


def sign_text(folder: Path, secret: Path, text: str) -> None:
    told, signature = folder / LIST, folder / SIGNATURE
    told.write_text(text)
    openssl("pkeyutl", "-sign", "-rawin", "-inkey", str(secret), "-in", str(told), "-out", str(signature))


def by_another(images: Path, folder: Path) -> None:
    sign(images, a_key(folder, "other")[0])


def without_the_initrd(images: Path, folder: Path) -> None:
    sign(images, folder / "builder.key", ("vmlinuz", "ipxe.efi"))


def changed_afterwards(images: Path, folder: Path) -> None:
    sign(images, folder / "builder.key", ("vmlinuz",))
    with (images / LIST).open("a") as told:
        told.write(f"{hashlib.sha256(INITRD).hexdigest()}  initrd\n")


def unsigned(images: Path, _folder: Path) -> None:
    (images / SIGNATURE).unlink()


def no_list(images: Path, folder: Path) -> None:
    sign_text(images, folder / "builder.key", "vmlinuz is fine\n")


WRONG: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "another's signature": (by_another, "is no signature of SHA256SUMS by a key of --boot-signers"),
    "a file that is not on it": (without_the_initrd, "initrd: is not on the signed SHA256SUMS"),
    "a list that was changed": (changed_afterwards, "is no signature of SHA256SUMS"),
    "no signature": (unsigned, "SHA256SUMS.sig cannot be read"),
    "what is no list": (no_list, "line 1 of SHA256SUMS is not what sha256sum prints"),
}


async def test_what_is_signed_boots_and_a_new_list_is_read(tmp_path: Path) -> None:
    """Mutants: the list is read once; the first of several keys counts alone."""
    builder, other = a_key(tmp_path, "builder"), a_key(tmp_path, "another")
    keys = tmp_path / "signers.pem"
    keys.write_bytes(other[1].read_bytes() + builder[1].read_bytes())
    async with boot_world(tmp_path, signers_of(keys)) as world:
        await world.register()
        _, script = await world.script()
        assert "SHA256SUMS cannot be read" in script
        assert "kernel" not in script
        sign(world.images, builder[0])
        _, script = await world.script()
        assert "kernel" in script
        assert (await world.get("/images/initrd"))[0] == 200
        assert (await world.get("/loader/x86_64.efi"))[0] == 200


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_nobody_signed_boots_nothing_though_the_configuration_names_it(tmp_path: Path, wrong: str) -> None:
    """Mutants: any signature will do; what is not on the list is served; a file leaves without its script."""
    done, said = WRONG[wrong]
    _, public = a_key(tmp_path, "builder")
    async with boot_world(tmp_path, signers_of(public)) as world:
        await world.register()
        sign(world.images, tmp_path / "builder.key")
        assert (await world.get("/loader/x86_64.efi"))[0] == 200
        done(world.images, tmp_path)
        _, script = await world.script()
        assert said in script
        assert "kernel" not in script
        assert (await world.get("/images/initrd"))[0] == 404


async def test_a_file_that_is_written_over_in_place_is_served_no_more(tmp_path: Path) -> None:
    """As long as before, under the time of the last write. Mutant: that time says that a file is the same."""
    _, public = a_key(tmp_path, "builder")
    async with boot_world(tmp_path, signers_of(public)) as world:
        await world.register()
        sign(world.images, tmp_path / "builder.key")
        assert "kernel" in (await world.script())[1]
        initrd = world.images / "initrd"
        before = initrd.stat()
        with initrd.open("r+b") as file:
            file.write(b"X" * len(INITRD))
        os.utime(initrd, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (await world.get("/images/initrd"))[0] == 404
        _, script = await world.script()
        assert "initrd: is not what its sha256 says" in script


async def test_a_list_of_last_year_boots_nothing_that_the_configuration_does_not_name(tmp_path: Path) -> None:
    """A signature is good for ever. Mutants: the list alone decides; what was signed once is remembered."""
    secret, public = a_key(tmp_path, "builder")
    async with boot_world(tmp_path, signers_of(public)) as world:
        await world.register()
        (world.images / "initrd").write_bytes(b"last year's")
        sign(world.images, secret)
        old = {name: (world.images / name).read_bytes() for name in (LIST, SIGNATURE, "initrd")}
        (world.images / "initrd").write_bytes(INITRD)
        sign(world.images, secret)
        assert "kernel" in (await world.script())[1]
        for name in (LIST, SIGNATURE):
            (world.images / name).write_bytes(old[name])
        assert "initrd: is not on the signed SHA256SUMS" in (await world.script())[1]
        (world.images / "initrd").write_bytes(old["initrd"])
        assert "initrd: is not what its sha256 says" in (await world.script())[1]
        assert (await world.get("/images/initrd"))[0] == 404


async def test_without_signers_the_list_is_no_matter(tmp_path: Path) -> None:
    async with boot_world(tmp_path) as world:
        await world.register()
        (world.images / LIST).write_text("nothing")
        assert "kernel" in (await world.script())[1]


def test_keys_that_cannot_sign_are_refused_at_the_start(tmp_path: Path) -> None:
    """Mutant: a file without keys trusts everybody."""
    empty = tmp_path / "empty"
    empty.write_text("")
    _, rsa = a_key(tmp_path, "rsa", "RSA")
    broken = tmp_path / "broken"
    broken.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    for path, said in ((empty, "holds 0 public keys"), (rsa, "not of Ed25519"), (broken, "cannot be read")):
        with pytest.raises(InvalidInputError, match=said):
            boot_signers(str(path))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        boot_signers(str(tmp_path / "none"))
    assert boot_signers("") is None


def test_a_list_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    secret, public = a_key(tmp_path, "builder")
    sign_text(tmp_path, secret, f"{'a' * 64}  x\n{'b' * 64} *x\n")
    with pytest.raises(SignedListError, match="two sums of x"):
        signers_of(public).read(tmp_path)
