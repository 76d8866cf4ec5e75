"""`hostler job`: customers' running jobs, the nodes that they have, and what waits for their end."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.job_columns import JOB_NODES, JOBS, job_lines
from hostler.cli.list_commands import describe, show_items
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, Selector, ShowList, ShowOnce
from hostler.cli.output import emit, say, shown
from hostler.core.state.counting import counted

if TYPE_CHECKING:
    from hostler.client import Client

JOBS_A_PAGE = 1_000
"""Each page costs the server a look at every node."""

app = App(name="job", help="Customers' running jobs: their nodes, and what waits for their end.")

JobName = Annotated[str, Parameter(help="A job's name with its cluster, as `hostler job list` shows it.")]


@app.command(name="list")
def list_(*, selector: Selector = "", show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """List running jobs that have a selected node, with all of their nodes, those nodes' conditions, and what waits.

    `-l condition` takes jobs on nodes with conditions. Clusters that have not told what runs there are named on stderr.
    """
    return show_items(connect, JOBS, show, lambda client: _jobs(client, {"selector": selector}))


@app.command(name=("show", "describe", "get"))
def show_(*jobs: JobName, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show one job or several: how each may be ended, who is asked, its nodes, and what waits for its end."""
    if not jobs:
        raise unusable("no job is named", "name one or several, or see `hostler job list`")
    client, worst = connect.client(), ExitCode.ok
    found: list[dict[str, Any]] = []
    for name in jobs:
        one = next(iter(_jobs(client, {"job": name}, untold=False)), None)
        if one is None:
            say(f"hostler: no running job '{name}'\n  see `hostler job list`")
            worst = ExitCode.not_found
        else:
            found.append(one)
    _print(found, show.output)
    return worst


def _print(found: list[dict[str, Any]], output: str) -> None:
    if output in ("json", "yaml") and len(found) > 1:
        describe({"items": found}, "", output)
        return
    for number, job in enumerate(found):
        if output not in ("table", "wide"):
            describe(job, job["id"], output)
            continue
        print("\n" * bool(number), end="")
        for line in job_lines(job):
            print(shown(line))
        emit(job["places"], JOB_NODES, output)


def _jobs(client: "Client", query: dict[str, str], *, untold: bool = True) -> list[dict[str, Any]]:
    """Every job, page by page; clusters that have not told of theirs are said once."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = client.get(JOBS.path, {**query, "limit": JOBS_A_PAGE, "cursor": cursor})
        found += page["items"]
        cursor = page["cursor"]
        if not cursor:
            break
    for one in page["untold"] if untold else ():
        why = f" ({one['why']})" if one["why"] else ""
        say(f"what runs on {counted(one['nodes'], 'node')} of cluster {one['cluster']} is unknown{why}")
    return found
