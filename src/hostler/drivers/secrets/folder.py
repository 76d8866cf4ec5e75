"""Secrets in a folder: for each a directory with a file per field, as Kubernetes mounts a Secret."""

import asyncio
import re
from pathlib import Path

from hostler.ports import RefusedError, Secret, UnreachableError

FIELDS_MAX = 32
FIELD_BYTES = 64 * 1024
STRANGERS = 0o007
"""Permissions of others: neither the owner nor the group, to whom a mounted Secret belongs, so they may not read it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)


class SecretFolder:
    """Reads what lies there now: a Secret that is mounted changes by itself when it is changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, name: str, *, anew: bool = False) -> Secret:  # noqa: ARG002 - it is always read anew
        """The secret in the directory of that name. Raises RefusedError, UnreachableError."""
        if not _NAME.fullmatch(name):
            raise RefusedError(f"'{name[:70]}' is not the name of a secret: use up to 63 letters, digits and . _ -")
        return await asyncio.to_thread(self._read, self._folder / name)

    def _read(self, place: Path) -> Secret:
        try:
            files = sorted(file for file in place.iterdir() if not file.name.startswith(".") and file.is_file())
            if len(files) > FIELDS_MAX:
                raise RefusedError(
                    f"{place}: {len(files)} files; a secret has at most {FIELDS_MAX}; keep one secret to a directory"
                )
            return Secret({file.name: _field(file) for file in files})
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RefusedError(f"{place}: no such secret; mount it there, with a file for each field") from error
        except OSError as error:
            raise UnreachableError(f"{place}: {error.strerror}; let Hostler's user read it") from error


def _field(file: Path) -> str:
    """Read the file without the newline that editors leave. No error tells any of it."""
    found = file.stat()
    if found.st_mode & STRANGERS:
        raise RefusedError(f"{file}: everybody can read or write it; chmod o= it, or mount it with defaultMode 0440")
    if found.st_size > FIELD_BYTES:
        raise RefusedError(
            f"{file}: {found.st_size} bytes; a field has at most {FIELD_BYTES}; write the secret alone there"
        )
    try:
        return file.read_bytes()[: FIELD_BYTES + 1].decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise RefusedError(f"{file}: it is not UTF-8 text; write it as text, base64 where it is binary") from None
