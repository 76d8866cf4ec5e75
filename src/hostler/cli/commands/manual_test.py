"""`hostler fabric`: results of a network's test by hand, and its photos and files."""

from typing import Annotated

from cyclopts import Parameter

from hostler.cli.attached_files import Attachment, NewFile, attach_file, fetch_file
from hostler.cli.input_files import read_text, submit
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, FabricName, ShowOnce, Why
from hostler.cli.table_columns import FABRICS


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
    file: Attachment,
    *,
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Add a photo or file to the run of a test by hand that is under way."""
    return attach_file(file, FABRICS.one(fabric, "/manual-test/files"), why, show, connect)


def attached(
    fabric: FabricName,
    digest: Annotated[str, Parameter(help="Its SHA-256; `hostler fabric show FABRIC -o yaml` names it.")],
    *,
    to: NewFile,
    connect: Connect = CONNECT,
) -> int:
    """Write a photo or file of a test by hand to a file."""
    return fetch_file(digest, FABRICS.one(fabric, "/manual-test/files"), to, connect)
