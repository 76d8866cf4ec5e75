"""Photos and files that commands send and fetch."""

import base64
import os
from pathlib import Path

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import opened
from hostler.cli.output import say
from hostler.core.state.attached_files import FILE_BYTES_MOST


def file_body(file: str) -> dict[str, str]:
    """The file as a request brings it. Raises CommandError where it cannot be read, or is too large."""
    with opened(file) as stream:
        data = stream.read(FILE_BYTES_MOST + 1)
    if len(data) > FILE_BYTES_MOST:
        raise unusable(f"{file}: larger than {FILE_BYTES_MOST:,} bytes", "make the photo smaller")
    return {"name": Path(file).name, "content": base64.b64encode(data).decode()}


def write_new(to: str, data: bytes) -> int:
    """Write the bytes to a new file; the exit status. Raises CommandError where it is there or cannot be written."""
    try:
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise unusable(f"{to} cannot be written: {error.strerror}", "name another file with --to") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    say(f"{len(data):,} bytes are written to {to}")
    return ExitCode.ok
