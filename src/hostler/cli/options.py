"""Options that many commands share: which server, how to show what it says, and what every act carries."""

import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from hostler.cli import server_contexts
from hostler.cli.command_errors import unusable
from hostler.cli.exit_cleanup import at_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostler.cli.list_view import View
    from hostler.client import Client

Output = Annotated[
    Literal["table", "wide", "json", "yaml", "name"],
    Parameter(name=("--output", "-o"), help="`json` and `yaml` are the API's own fields."),
]
ListOutput = Annotated[
    Literal["table", "wide", "json", "jsonl", "yaml", "csv", "name"],
    Parameter(
        name=("--output", "-o"),
        help="`json`, `jsonl` and `yaml` are the API's own fields, `csv` the table's columns, `name` one id a line.",
    ),
]
TABLE: Literal["table"] = "table"
Selector = Annotated[
    str,
    Parameter(name=("--selector", "-l"), show_default=False, help="`KEY=VALUE,KEY!=VALUE,…`; see `node list --help`."),
]
Search = Annotated[
    str, Parameter(name="--search", show_default=False, help="Text within nodes' ids, host names and serials.")
]
NodeName = Annotated[str, Parameter(help="A node's id, serial number or host name.")]
FabricName = Annotated[str, Parameter(help="The network's name; see `hostler fabric list`.")]

CONNECTION, SHOWING = "Connection", "Output"
"""The titles of the groups that most commands have."""

_CONNECTION = Group(CONNECTION, sort_key=90)
_SHOWING = Group(SHOWING, sort_key=80)
ACT = Group("Act", sort_key=10)


@Parameter(name="*", group=_CONNECTION)
@dataclass(frozen=True)
class Connect:
    """Server and token: option, then environment, then the context (`hostler context`), which `hostler up` writes."""

    server: Annotated[
        str, Parameter(env_var="HOSTLER_SERVER", show_default=False, help="The API's addresses, with commas between.")
    ] = ""
    context: Annotated[
        str, Parameter(env_var="HOSTLER_CONTEXT", show_default=False, help="The context to use, by name.")
    ] = ""
    token_file: Annotated[
        str, Parameter(show_default=False, help="File with your token. HOSTLER_TOKEN may hold the token itself.")
    ] = ""
    ca: Annotated[
        str, Parameter(env_var="HOSTLER_CA", show_default=False, help="Trust these authorities, not the system's.")
    ] = ""
    insecure_plain_http: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Allow http:// to another machine; it shows your token.")
    ] = False

    def client(self, timeout_s: float | None = None) -> "Client":
        """A client for that server, which waits that long for an answer.

        Raises CommandError where none is named or a file cannot be read.
        """
        from hostler.client.api import TIMEOUT_S, Address, Client

        known = server_contexts.read().of(self.context)
        server = self.server or known.server
        if not server:
            raise unusable("no server is named", "start `hostler up`, or give --server URL (or HOSTLER_SERVER)")
        mine = server.rstrip("/") == known.server.rstrip("/")
        ca = self.ca or (known.ca if mine else "")
        named = [one.strip() for one in server.split(",") if one.strip()]
        addresses = [Address.parse(one, ca, self.insecure_plain_http) for one in named]
        if not addresses:
            raise unusable(f"server '{server}' is not an address", "write https://host:port")
        token = self._token(known.token_file if mine else "")
        client = Client(addresses, token, timeout_s or TIMEOUT_S)
        at_end(client.close)
        return client

    def _token(self, fallback: str) -> str:
        """The token; that of the context file is for the context's own server only."""
        if not self.token_file and (token := os.environ.get("HOSTLER_TOKEN")):
            return token.strip()
        where = self.token_file or fallback
        if not where:
            return ""
        try:
            token = Path(where).expanduser().read_text().strip()
        except UnicodeDecodeError:
            token = ""
        except OSError as error:
            raise unusable(
                f"token file {where}: {error.strerror}", "give --token-file FILE or HOSTLER_TOKEN"
            ) from error
        if not (token.isascii() and token.isprintable()) or " " in token or not token:
            raise unusable(f"token file {where}: it holds no token, or more than one", "write the token alone into it")
        return token


@Parameter(name="*", group=_SHOWING)
@dataclass(frozen=True)
class ShowList:
    """How a list is printed: in which columns, in which order."""

    output: ListOutput = TABLE
    sort_by: Annotated[
        str, Parameter(show_default=False, help="Order by a column or a field of `-o json`; `FIELD:desc` backwards.")
    ] = ""
    columns: Annotated[
        str, Parameter(show_default=False, help="These columns or fields, with commas between: `node,position.rack`.")
    ] = ""

    all_cells: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Of every context, side by side; see `hostler context`."),
    ] = False

    def one_cell(self, connect: Connect) -> "Client":
        """The client of one cell, for what cannot be done in several. Raises CommandError where all are asked for."""
        if self.all_cells:
            raise unusable("several cells cannot be watched together", "leave out --all-cells, or --watch")
        return connect.client()

    def emit(self, items: "Sequence[dict[str, Any]]", view: "View") -> None:
        """Print the objects. Raises CommandError where none of them has the field to sort by."""
        from hostler.cli.list_view import sort_by
        from hostler.cli.output import emit

        emit(sort_by(items, view, self.sort_by) if self.sort_by else items, self.view(view), self.output)

    def view(self, view: "View") -> "View":
        """The view with the columns that were asked for. Raises CommandError on an empty one."""
        from hostler.cli.list_view import with_columns

        return with_columns(view, self.columns) if self.columns else view


@Parameter(name="*", group=_SHOWING)
@dataclass(frozen=True)
class Show(ShowList):
    """How a list is printed, and whether to go on as it changes."""

    watch: Annotated[bool, Parameter(name=("--watch", "-w"), negative=(), help="Go on, and print what changes.")] = (
        False
    )


@Parameter(name="*", group=_SHOWING)
@dataclass(frozen=True)
class ShowOnce:
    """How an answer is printed."""

    output: Output = TABLE


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Why:
    """Options of every request: the reason, whether it is only tried, and the key of a repeated one."""

    reason: Annotated[str, Parameter(help="Why; it is shown wherever this act is.")]
    dry_run: Annotated[
        bool,
        Parameter(negative=(), help="Print the plan, whom it disturbs and what it would wait for. Nothing is done."),
    ] = False
    key: Annotated[
        str, Parameter(show_default=False, help="Makes a repeated request the same request; issued where not given.")
    ] = ""
    wait: Annotated[
        bool, Parameter(negative=(), help="Follow it until it is done, and say whom it waits for; 3 where it failed.")
    ] = False
    wait_s: Annotated[
        float | None,
        Parameter(show_default=False, help="With --wait: stop after so many seconds; 8 where something still waits."),
    ] = None

    def key_for(self, target: str = "") -> str:
        """The idempotency key, of one target where there are several. What is only tried has none."""
        if self.dry_run:
            return ""
        if not self.key:
            return f"cli-{uuid.uuid4()}"
        return f"{self.key}/{target}" if target else self.key


@Parameter(name="*", group=ACT)
@dataclass(frozen=True)
class Pick:
    """Nodes by what they are, instead of by name."""

    selector: Annotated[
        str,
        Parameter(
            name=("--selector", "-l"),
            show_default=False,
            help="Nodes by `phase=production,pool!=train,rack in (r1,r2),!condition`.",
        ),
    ] = ""
    at_most: Annotated[
        int, Parameter(help="Refuse, and do nothing, where the selector finds more nodes than this.")
    ] = 10
    as_one: Annotated[
        bool, Parameter(negative=(), show_default=False, help="All named nodes as one act: all or none, one approval.")
    ] = False


CONNECT = Connect()
PICK = Pick()
SHOW = Show()
SHOW_LIST = ShowList()
SHOW_ONCE = ShowOnce()
