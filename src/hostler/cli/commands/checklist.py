"""`hostler node`: the checklist of a node's inspection, and its photos and files."""

from typing import Annotated

from cyclopts import Parameter

from hostler.cli.attached_files import Attachment, NewFile, fetch_file, file_body
from hostler.cli.checklist_columns import CHECKLIST
from hostler.cli.input_files import submit
from hostler.cli.list_commands import show_unpaged
from hostler.cli.node_verbs import help_of_argument
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, NodeName, ShowList, ShowOnce, Why
from hostler.cli.table_columns import NODES
from hostler.core.state.verbs.onboarding import AddItemFile


def checklist(node: NodeName, *, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """Show what is looked at before the node is certified, who ticked it, and its photos."""
    return show_unpaged(connect, CHECKLIST, show, NODES.one(node, "/checklist"))


def attach(  # noqa: PLR0913 - one argument per option
    node: NodeName,
    file: Attachment,
    *,
    item: Annotated[int, Parameter(help=help_of_argument(AddItemFile, "item"))],
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Add a photo or file to an item of a node's checklist."""
    body = file_body(file) | {"item": item}
    return submit(connect.client(), NODES.one(node, "/checklist/files"), body, why, show.output)


def attached(
    node: NodeName,
    digest: Annotated[str, Parameter(help="Its SHA-256; `hostler node checklist NODE -o wide` names it.")],
    *,
    to: NewFile,
    connect: Connect = CONNECT,
) -> int:
    """Write a photo or file of a node's checklist to a file."""
    return fetch_file(digest, NODES.one(node, "/checklist/files"), to, connect)
