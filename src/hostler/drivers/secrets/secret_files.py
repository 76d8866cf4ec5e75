"""Secrets in files that their owner alone may read: for each a JSON object of its fields, or a directory of them.

Hostler writes the JSON ones itself, so that each BMC can have a password of its own.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hostler.ports import ConflictError, RefusedError, Secret, StoredSecret, UnreachableError

FIELDS_MAX = 32
FIELD_BYTES = 64 * 1024
FILE_BYTES = 256 * 1024
OTHERS = 0o077
"""Permissions of everybody but the owner: a file that has any of them is refused."""
FRESH_S = 1.0
"""For so long what was read is used again: a look at a file costs nothing, and a changed one is taken at once."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


class SecretFiles:
    """Reads `NAME.json` or the directory `NAME` in a folder, and writes `NAME.json`, whole or not at all.

    Writers of one folder, of other processes too, take turns by a lock beside the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, name: str, *, anew: bool = False) -> Secret:  # noqa: ARG002 - it is always read anew
        """The secret of that name. Raises RefusedError, UnreachableError."""
        found = await self.fetch(name)
        if not found.fields:
            raise RefusedError(
                f"{self._folder / name}: no such secret; write {name}.json or a directory with a file for each field"
            )
        return Secret(found.fields, FRESH_S)

    async def fetch(self, name: str) -> StoredSecret:
        """Read what is kept under the name now; no fields where nothing is. Raises RefusedError, UnreachableError."""
        _check(name)
        with _told(self._folder / name):
            return await asyncio.to_thread(self._fetch, name)

    async def store(self, name: str, fields: Mapping[str, str], version: str) -> None:
        """Keep these fields in the place of that version. Raises ConflictError, RefusedError, UnreachableError."""
        _check(name)
        with _told(self._folder / name):
            await asyncio.to_thread(self._store, name, dict(fields), version)

    async def erase(self, name: str, version: str) -> None:
        """Remove the file of that version. Raises ConflictError, RefusedError, UnreachableError."""
        _check(name)
        with _told(self._folder / name):
            await asyncio.to_thread(self._erase, name, version)

    def _fetch(self, name: str) -> StoredSecret:
        file, folder = self._folder / f"{name}.json", self._folder / name
        if folder.is_dir() and not file.exists():
            return StoredSecret(_of_folder(folder), "folder")
        try:
            raw = _private(file)
        except FileNotFoundError:
            return StoredSecret({})
        return StoredSecret(_decoded(file, raw), hashlib.sha256(raw).hexdigest())

    def _store(self, name: str, fields: dict[str, str], version: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self._folder):
            _replace(self._of_version(name, version), msgspec.json.encode(fields))

    def _erase(self, name: str, version: str) -> None:
        with _locked(self._folder):
            self._of_version(name, version).unlink(missing_ok=True)
            _sync(self._folder)

    def _of_version(self, name: str, version: str) -> Path:
        """The file, where it holds that version. Raises ConflictError, RefusedError."""
        file = self._folder / f"{name}.json"
        there = self._fetch(name).version
        if there == "folder":
            raise RefusedError(f"{self._folder / name}: a directory is only read; write {name}.json in its place")
        if there != version:
            raise ConflictError(f"{file} has changed since it was read; it is read and decided again")
        return file


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RefusedError(f"'{name[:130]}' is not the name of a secret: use up to 128 letters, digits and . _ -")


def _of_folder(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.iterdir() if not file.name.startswith(".") and file.is_file())
    if len(files) > FIELDS_MAX:
        raise RefusedError(
            f"{folder}: {len(files)} files; a secret has at most {FIELDS_MAX}; keep one secret to a directory"
        )
    return {file.name: _text(file, _private(file)).removesuffix("\n") for file in files}


def _private(file: Path) -> bytes:
    """Read a file that nobody but its owner may look at. No error tells any of it."""
    with file.open("rb") as opened:
        found = os.fstat(opened.fileno())
        if found.st_mode & OTHERS:
            raise RefusedError(f"{file}: others may read or write it; chmod 600 {file}")
        if found.st_size > FILE_BYTES:
            raise RefusedError(
                f"{file}: {found.st_size} bytes; a secret has at most {FILE_BYTES}; write the secret alone there"
            )
        return opened.read(FILE_BYTES + 1)


def _text(file: Path, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise RefusedError(f"{file}: it is not UTF-8 text; write it as text, base64 where it is binary") from None


def _decoded(file: Path, raw: bytes) -> dict[str, str]:
    try:
        fields = msgspec.json.decode(raw, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise RefusedError(f'{file}: it is no JSON object of texts; write {{"username": …, "password": …}}') from None
    if len(fields) > FIELDS_MAX or any(len(value) > FIELD_BYTES for value in fields.values()):
        raise RefusedError(
            f"{file}: a secret has at most {FIELDS_MAX} fields of {FIELD_BYTES} characters; write fewer or shorter ones"
        )
    return fields


def _replace(file: Path, content: bytes) -> None:
    """Put the content in the file's place, durably; a crash leaves the old file or the new one."""
    number, made = tempfile.mkstemp(prefix=".", dir=file.parent)  # made for the owner alone
    try:
        with os.fdopen(number, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        Path(made).replace(file)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    _sync(file.parent)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """Tell what the system says as what a caller may do about it."""
    try:
        yield
    except PermissionError as error:
        raise RefusedError(f"{place}: {error.strerror}; let Hostler's user own it") from error
    except OSError as error:
        raise UnreachableError(f"{place}: {error.strerror}") from error
