"""`hostler token`: who may ask a server, kept beside the journal: in the data directory, or in its database."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.options import SHOW_LIST, ShowList
from hostler.cli.output import say
from hostler.cli.table_columns import TOKENS

if TYPE_CHECKING:
    from hostler.server.tokens import TokenStore

app = App(name="token", help="Tokens, kept beside the server's journal.")

TOKENS_FILE = "tokens.db"


@Parameter(name="*")
@dataclass(frozen=True)
class TokenLocation:
    """Storage of the server's tokens; one of the two."""

    data: Annotated[
        str, Parameter(show_default=False, help="The server's data directory, as given to `hostler serve --data`.")
    ] = ""
    journal: Annotated[
        str,
        Parameter(
            env_var="HOSTLER_JOURNAL",
            show_default=False,
            help="The journal, where `hostler serve --journal` names one: a file, or a postgresql:// URL.",
        ),
    ] = ""


KEPT = TokenLocation()


@Parameter(name="*")
@dataclass(frozen=True)
class TokenBounds:
    """How far a token reaches, and for how long."""

    site: Annotated[str, Parameter(show_default=False, help="Only nodes of this site.")] = ""
    pool: Annotated[str, Parameter(show_default=False, help="Only nodes of this pool.")] = ""
    tenant: Annotated[str, Parameter(show_default=False, help="Whose; for the role tenant, and needed there.")] = ""
    node: Annotated[str, Parameter(show_default=False, help="Which; for the role agent, and needed there.")] = ""
    days: Annotated[float | None, Parameter(help="It ends after so many days.")] = None


BOUNDS = TokenBounds()


@app.command
def create(
    *,
    role: Literal["operator", "technician", "tenant", "viewer", "agent"],
    name: Annotated[str, Parameter(help="Who it is; every act is recorded under this name.")],
    bounds: TokenBounds = BOUNDS,
    kept: TokenLocation = KEPT,
) -> int:
    """Make a token and print it, once: nobody can read it again."""
    from hostler.server.tokens import Grant, InvalidGrantError, Role

    try:
        until = datetime.now(UTC) + timedelta(days=bounds.days) if bounds.days is not None else None
        grant = Grant(name, Role(role), bounds.site, bounds.pool, bounds.tenant, bounds.node, until)
        with _store(kept) as store:
            print(store.create(grant))
    except (InvalidGrantError, OverflowError) as error:
        raise unusable(str(error), "see `hostler token create --help`") from error
    say(f"the token of {name} ({role}); it is shown this once")
    return 0


@app.command(name="list")
def list_(*, kept: TokenLocation = KEPT, show: ShowList = SHOW_LIST) -> int:
    """List tokens: who they are, never what they read."""
    import msgspec

    with _store(kept) as store:
        items: list[dict[str, Any]] = [msgspec.to_builtins(identity) for identity in store.list()]
    show.emit(items, TOKENS)
    return 0


@app.command
def revoke(
    token: Annotated[str, Parameter(help="Its id, from `hostler token list`.")], *, kept: TokenLocation = KEPT
) -> int:
    """Forget a token; whoever sends it is refused from now on."""
    with _store(kept) as store:
        if not store.revoke(token):
            raise CommandError(ExitCode.not_found, f"no token '{token}' there", "see `hostler token list`")
    print(f"token {token} is revoked")
    return 0


@contextmanager
def _store(kept: TokenLocation) -> "Iterator[TokenStore]":
    """The server's tokens. Raises CommandError where there are none."""
    from hostler.ports import JournalError
    from hostler.server.tokens import TokenStore

    try:
        store = TokenStore(_place(kept), make=False)
        try:
            yield store
        finally:
            store.close()
    except (JournalError, OSError) as error:
        raise unusable(str(error), "name the journal of a server that has run, as the user that it runs as") from error


def _place(kept: TokenLocation) -> Path | str:
    """A file that is there, or a URL. Raises CommandError."""
    from hostler.journal.opening import on_server

    if on_server(kept.journal):
        return kept.journal
    if not (kept.data or kept.journal):
        raise unusable("the place of the tokens is not named", "give --data DIR or --journal URL")
    path = (Path(kept.journal).parent if kept.journal else Path(kept.data)) / TOKENS_FILE
    if not path.is_file():
        raise unusable(f"{path} is not there", "give the directory that `hostler serve --data` was started with")
    return path
