"""`hostler policy`: configuration documents, checked offline, shown and activated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import read_documents, submit
from hostler.cli.list_commands import describe
from hostler.cli.options import CONNECT, SHOW_LIST, SHOW_ONCE, Connect, ShowList, ShowOnce, Why
from hostler.cli.output import dump_json, say, shown
from hostler.cli.period import PERIOD, Period
from hostler.cli.table_columns import SHADOWS
from hostler.client import routes

AtOnce = Annotated[bool, Parameter(negative=(), help="Without a rollout; a second person has to approve it.")]

app = App(name="policy", help="Policy: check, show and activate configuration.")


@app.command
def check(*files: str) -> int:
    """Check documents without a server: each problem with file, line and what to write instead.

    Together they must hold a policy. Exit status 2 where there is a problem.
    """
    from hostler.core.policy.documents import parse
    from hostler.core.state.input_problems import InvalidInputError

    try:
        configuration = parse(read_documents(files))
    except InvalidInputError as error:
        for problem in error.problems:
            print(shown(str(problem)))
        say(f"{len(error.problems)} problem(s)")
        return ExitCode.usage
    rules, skus, pools = len(configuration.policy.rules), len(configuration.skus), len(configuration.pools)
    print(f"sound: {rules} rules, {skus} SKUs, {pools} pools; sha256 {configuration.sha256}")
    return ExitCode.ok


@app.command
def schema() -> int:
    """Print the JSON schema of configuration documents, for editors."""
    from hostler.core.policy.documents import schema as made

    dump_json(made())
    return 0


@app.command
def activate(
    *files: str, at_once: AtOnce = False, why: Why, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT
) -> int:
    """Make documents the active configuration; they replace what is active as a whole.

    Where much acts they come into force slice by slice (`hostler rollout`). With `--dry-run`: whom it would disturb.
    """
    body = {"documents": read_documents(files), "at_once": at_once}
    return submit(connect.client(), routes.CONFIG, body, why, show.output)


@Parameter(name="*")
@dataclass(frozen=True)
class SyncOptions:
    """Choice of the commit that is read, and of what may be done with it."""

    ref: Annotated[
        str, Parameter(show_default=False, help="A branch, tag or commit instead of what is checked out.")
    ] = ""
    yes: Annotated[bool, Parameter(negative=(), help="Activate it; without this the plan is printed alone.")] = False
    allow_older: Annotated[
        bool, Parameter(negative=(), help="Also a commit that does not come after the active one.")
    ] = False
    again: Annotated[bool, Parameter(negative=(), help="Also where a rollout of these documents was stopped.")] = False
    at_once: AtOnce = False


SYNC = SyncOptions()


@app.command
def sync(
    path: str,
    *,
    options: SyncOptions = SYNC,
    why: Why,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Activate the documents of a Git commit: a file, or the YAML files of a folder, inside a checkout.

    Prints the plan: what differs from the active configuration, whom it disturbs, whether it rolls out or waits for a
    second person. With `--yes` it is activated, and the commit recorded. Run again, it says that nothing is to do.
    """
    from hostler.cli.policy_checkout import read_commit
    from hostler.cli.policy_sync import demand_later, under_way
    from hostler.core.report.configuration_differences import differences

    client, committed = connect.client(), read_commit(path, options.ref)
    fresh = _parsed(committed.documents)
    active = client.get(routes.CONFIG)
    where = f"commit {committed.commit[:12]}{f' of {committed.ref}' if committed.ref else ''}"
    if fresh["sha256"] == active["sha256"]:
        say(f"{where}: configuration {fresh['sha256'][:12]} is active already; nothing to do")
        return ExitCode.ok
    if not options.allow_older:
        demand_later(committed, active)
    if not options.again and (rollout := under_way(client, fresh["sha256"])):
        say(f"{where}: configuration {fresh['sha256'][:12]}: {rollout}; nothing to do")
        return ExitCode.ok
    say(f"{where}: configuration {active['sha256'][:12]} → {fresh['sha256'][:12]}")
    for line in differences(active, fresh):
        say(shown(f"  {line}"))
    body = {"documents": committed.documents, "at_once": options.at_once, "source": committed.source()}
    tried = submit(client, routes.CONFIG, body, replace(why, dry_run=True), show.output)
    if not options.yes or why.dry_run:
        say("nothing is activated; add --yes")
        return tried
    return submit(client, routes.CONFIG, body, why, show.output)


def _parsed(documents: dict[str, str]) -> dict[str, Any]:
    """The configuration as the API shows one. Raises CommandError with every problem, by file and line."""
    import msgspec

    from hostler.core.policy.documents import parse
    from hostler.core.state.input_problems import InvalidInputError
    from hostler.core.state.scopes import text_hook

    try:
        found = msgspec.json.encode(parse(documents), enc_hook=text_hook)
    except InvalidInputError as error:
        raise CommandError(ExitCode.usage, "\n".join(str(one) for one in error.problems)) from error
    return dict(msgspec.json.decode(found))


@app.command(name="show")
def show_(*, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show the active configuration."""
    found = connect.client().get(routes.CONFIG)
    describe(found, found.get("sha256", ""), show.output)
    return 0


@app.command
def shadow(*, show: ShowList = SHOW_LIST, connect: Connect = CONNECT) -> int:
    """Show the effects that shadow rules (`shadow: true`) would have had: how often, on which nodes.

    `hostler node explain NODE` shows each of them where it stood; `-o wide` what would have kept the first waiting.
    """
    rows = list(connect.client().pages(SHADOWS.path))
    show.emit(_by_rule(rows), SHADOWS)
    return 0


def _by_rule(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One item for each rule and remedy, the most frequent first; `works` counts where it is known."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: str(row["id"])):
        fresh = {name: row[name] for name in ("rule", "remedy", "act_class", "waits")}
        item = found.setdefault(
            (row["rule"], row["remedy"]), {**fresh, "times": 0, "works": 0, "last": "", "nodes": []}
        )
        item["times"] += row["times"]
        item["works"] += row["works"] or 0
        item["last"] = max(item["last"], str(row["at"]))
        item["nodes"].append(row["node"])
    return sorted(found.values(), key=lambda item: (-item["times"], item["rule"], item["remedy"]))


Documents = Annotated[
    list[str], Parameter(negative=(), help="The documents on trial; SKUs and pools they leave out stay as recorded.")
]
Place = Annotated[str, Parameter(help="A journal's file, or postgresql://user@host/database.")]
Archive = Annotated[
    Path | None, Parameter(help="The folder of `journal compact`: observations that have been archived.")
]


@app.command
def backtest(
    *,
    policy: Documents,
    journal: Place,
    period: Period = PERIOD,
    archive: Archive = None,
    output: Annotated[Literal["table", "json"], Parameter(name=("--output", "-o"))] = "table",
) -> int:
    """Replay a journal through another policy, and tell what would have differed. Nothing is done or written.

    Nodes, remedies, customers' work that would have been ended, time in service. What a node would have answered after
    its first difference is nobody's knowledge: it is said per node where that begins, and estimated from there.
    """
    import msgspec

    from hostler.core.state.input_problems import InvalidInputError
    from hostler.ports import JournalError
    from hostler.sim.backtest.backtest_run import Question
    from hostler.sim.backtest.backtest_run import backtest as answer
    from hostler.sim.backtest.backtest_table import format_backtest

    try:
        question = Question(read_documents(tuple(policy)), journal, archive, period.since(), period.until())
        found = answer(question)
    except InvalidInputError as error:
        raise CommandError(ExitCode.usage, str(error)) from error
    except JournalError as error:
        raise unusable(str(error), "name a journal, as journal.db in the data directory") from error
    if output == "json":
        dump_json(msgspec.to_builtins(found))
    else:
        print(shown(format_backtest(found), breaks=True))
    return ExitCode.ok
