"""`hostler context`: which servers are known by name, and which one commands mean."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli import server_contexts
from hostler.cli.command_errors import unusable
from hostler.cli.options import SHOW_LIST, ShowList
from hostler.cli.output import say
from hostler.cli.server_contexts import Context
from hostler.cli.table_columns import CONTEXTS

app = App(name="context", help="Contexts: servers by name, and the one that commands mean.")

Name = Annotated[str, Parameter(help="The context's name: a cell or site.")]


@app.command(name="list")
def list_(*, show: ShowList = SHOW_LIST) -> int:
    """List contexts; `*` is the one that commands mean."""
    known = server_contexts.read()
    rows = [
        {"current": "*" if name == known.current else "", "name": name, "server": one.server, "token": one.token_file}
        for name, one in known.contexts.items()
    ]
    show.emit(rows, CONTEXTS)
    return 0


@app.command
def use(name: Name) -> int:
    """Make commands mean this context from now on; `--context NAME` means another one once."""
    say(f"{name} is the current context, in {server_contexts.use(name)}")
    return 0


@app.command
def add(
    name: Name,
    *,
    server: Annotated[str, Parameter(help="The API's addresses, with commas between.")],
    token_file: Annotated[str, Parameter(show_default=False, help="File with your token for it.")] = "",
    ca: Annotated[str, Parameter(show_default=False, help="PEM file of its authority.")] = "",
) -> int:
    """Add or change a context, and make it the current one. Nothing is asked of the server."""
    if not name.strip() or not name.isprintable():
        raise unusable(f"'{name}' is not a name for a context", "use letters, digits and dashes")
    known = Context(server, _from_anywhere(token_file), _from_anywhere(ca))
    say(f"{name} is the current context, in {server_contexts.use(name, known)}")
    return 0


def _from_anywhere(file: str) -> str:
    """The file's path, which means the same in every directory; "" for none."""
    return str(Path(file).expanduser().absolute()) if file else ""


@app.command
def remove(name: Name) -> int:
    """Forget a context."""
    say(f"{name} is forgotten, in {server_contexts.remove(name)}")
    return 0
