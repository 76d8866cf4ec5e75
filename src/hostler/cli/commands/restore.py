"""`hostler restore`: what came of comparing a restored journal with reality, and the word that lets it act again."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.intent_requests import IntentRequest
from hostler.cli.list_commands import ask_one, describe, show_list
from hostler.cli.options import CONNECT, SHOW, SHOW_ONCE, Connect, Show, ShowOnce, Why
from hostler.cli.table_columns import RESTORE

app = App(name="restore", help="A journal that was restored: compare, then release.")


@app.command(name="show")
def show_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """How far the comparison is, and every node that differs or has not been heard."""
    found = connect.client().get("/v1/restore")
    if show.output not in ("table", "wide"):
        describe(found, "restore", show.output)
        return 0
    if not found["restored"]:
        print("the journal is not a restored one, or it was released")
        return 0
    print(
        f"restored at {found['restored']}, the copy ends at record {found['copied']}; "
        f"{found['compared']} of {found['nodes']} nodes heard, {found['differing']} differ, {found['unheard']} unheard"
    )
    return show_list(connect, RESTORE, show)


@app.command
def release(
    *,
    why: Why,
    unheard: Annotated[int, Parameter(help="Release it though so many nodes have not been heard.")] = 0,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Let the cell act again, by what its journal and reality now say."""
    args = {"unheard": str(unheard)} if unheard else {}
    return ask_one(connect, why, show.output, IntentRequest("release-restore", "fleet", args))
