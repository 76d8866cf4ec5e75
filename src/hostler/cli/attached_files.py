"""Photos and files that commands send and fetch."""

import base64
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import opened, submit
from hostler.cli.new_files import write_new
from hostler.cli.options import Connect, ShowOnce, Why
from hostler.cli.output import say
from hostler.core.state.attached_files import FILE_BYTES_MOST

Attachment = Annotated[str, Parameter(help="A photo (JPEG, PNG, WebP), a PDF or a text, up to 8 MiB.")]
NewFile = Annotated[str, Parameter(help="The file to write; one that is there stays as it is.")]


def attach_file(file: str, files: str, why: Why, show: ShowOnce, connect: Connect) -> int:
    """Send a file to the path `files`. Raises CommandError."""
    return submit(connect.client(), files, file_body(file), why, show.output)


def file_body(file: str) -> dict[str, Any]:
    """The file as a request brings it. Raises CommandError where it cannot be read, or is too large."""
    with opened(file) as stream:
        data = stream.read(FILE_BYTES_MOST + 1)
    if len(data) > FILE_BYTES_MOST:
        raise unusable(f"{file}: larger than {FILE_BYTES_MOST:,} bytes", "make the photo smaller")
    return {"name": Path(file).name, "content": base64.b64encode(data).decode()}


def fetch_file(digest: str, files: str, to: str, connect: Connect) -> int:
    """Write the file of this SHA-256 below the path `files` to a new file. Raises CommandError."""
    data = connect.client().file(f"{files}/{quote(digest, safe='')}")
    write_new(to, data)
    say(f"{len(data):,} bytes are written to {to}")
    return ExitCode.ok
