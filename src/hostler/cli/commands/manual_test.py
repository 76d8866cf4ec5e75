"""`hostler fabric`: results of a network's test by hand, and its photos and files."""

import base64
import os
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from cyclopts import Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import opened, read_text, submit
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, ShowOnce, Why
from hostler.cli.output import say
from hostler.cli.table_columns import FABRICS
from hostler.core.state.manual_tests import FILE_BYTES_MOST

FabricName = Annotated[str, Parameter(help="The network's name; see `hostler fabric list`.")]


def enter_manual_test(  # noqa: PLR0913 - one argument per option
    fabric: FabricName,
    results: Annotated[str, Parameter(help="A CSV with lines `metric,value`; `-` reads standard input.")],
    *,
    notes: Annotated[str, Parameter(help="What else there is to say.")] = "",
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Enter the results of a test by hand: they are set against those of earlier runs."""
    body = {"results": read_text(results), "notes": notes}
    return submit(connect.client(), FABRICS.one(fabric, "/manual-test"), body, why, show.output)


def attach(
    fabric: FabricName,
    file: Annotated[str, Parameter(help="A photo (JPEG, PNG, WebP), a PDF or a text, up to 8 MiB.")],
    *,
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Add a photo or file to the run of a test by hand that is under way."""
    with opened(file) as stream:
        data = stream.read(FILE_BYTES_MOST + 1)
    if len(data) > FILE_BYTES_MOST:
        raise unusable(f"{file}: larger than {FILE_BYTES_MOST:,} bytes", "make the photo smaller")
    body = {"name": Path(file).name, "content": base64.b64encode(data).decode()}
    return submit(connect.client(), FABRICS.one(fabric, "/manual-test/files"), body, why, show.output)


def attached(
    fabric: FabricName,
    digest: Annotated[str, Parameter(help="Its SHA-256; `hostler fabric show FABRIC -o yaml` names it.")],
    *,
    to: Annotated[str, Parameter(help="The file to write; one that is there stays as it is.")],
    connect: Connect = CONNECT,
) -> int:
    """Write a photo or file of a test by hand to a file."""
    found = connect.client().get(FABRICS.one(fabric, f"/manual-test/files/{quote(digest, safe='')}"))
    data = base64.b64decode(found["content"])
    try:
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise unusable(f"{to} cannot be written: {error.strerror}", "name another file with --to") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    say(f"{len(data):,} bytes are written to {to}")
    return ExitCode.ok
