"""`hostler restore`: what came of comparing a restored journal with reality, and the word that lets it act again."""

from cyclopts import App

from hostler.cli.list_commands import describe, show_list
from hostler.cli.node_verbs import offer
from hostler.cli.options import CONNECT, SHOW, Connect, Show
from hostler.cli.table_columns import RESTORE
from hostler.client import routes
from hostler.core.state.verbs.recovery import ReleaseRestore

app = App(name="restore", help="A journal that was restored: compare, then release.")


@app.command(name="show")
def show_(*, show: Show = SHOW, connect: Connect = CONNECT) -> int:
    """How far the comparison is, and every node that differs or has not been heard."""
    found = connect.client().get(routes.RESTORE)
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


offer(app, ReleaseRestore)
