"""The command `hostler`: its tree, and how every command ends. Commands are imported when they are called."""

import atexit
import errno
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Group

from hostler.cli.command_errors import code_of
from hostler.cli.exit_cleanup import ending
from hostler.cli.exit_codes import ExitCode
from hostler.cli.help_format import Columns
from hostler.client import HostlerError

_START = Group("Start", sort_key=10)
_FLEET = Group("Fleet", sort_key=20)
_THINGS = Group("Nodes and what belongs to them", sort_key=30)
_TOOLS = Group("Tools", sort_key=40)

COMMANDS: tuple[tuple[str, str, Group, str], ...] = (
    ("up", "run:up", _START, "Start Hostler with a simulated cluster on this machine."),
    ("serve", "run:serve", _START, "Serve one cell: its controller and the API."),
    ("agent", "run:agent", _START, "Run the node agent."),
    ("token", "token:app", _START, "Make, list and revoke tokens."),
    ("status", "fleet:status", _FLEET, "One screen: what is wrong, who waits, what changed."),
    ("flow", "fleet:flow", _FLEET, "How nodes move through their phases, and how long they take."),
    ("bring-up", "bring_up:app", _FLEET, "Nodes on their way to production."),
    ("pause", "fleet:pause", _FLEET, "Disturb nothing new within a scope."),
    ("resume", "fleet:resume", _FLEET, "End a pause."),
    ("brake", "fleet:brake", _FLEET, "The storm brake."),
    ("doctor", "doctor:app", _FLEET, "Check whether Hostler may act in a cluster."),
    ("restore", "restore:app", _FLEET, "A restored journal: compare, then release."),
    ("clock", "fleet:clock", _FLEET, "The controller's clock."),
    ("adopt", "fleet:adopt", _FLEET, "Take over nodes that run in production already."),
    ("context", "context:app", _FLEET, "Servers by name, and the one that commands mean."),
    ("events", "events:events", _FLEET, "What happens in the fleet, as it is recorded."),
    ("admission", "admission:app", _THINGS, "Expected nodes: compare an inventory with what is registered."),
    ("node", "node:app", _THINGS, "Look at nodes, explain them, ask for acts."),
    ("job", "job:app", _THINGS, "Customers' running jobs, and what waits for their end."),
    ("pool", "pool:app", _THINGS, "Counts, modes and pauses of pools."),
    ("rack", "rack:app", _THINGS, "Racks, brought up as one and certified."),
    ("domain", "domain:app", _THINGS, "Racks and NVLink domains, taken as one."),
    ("incident", "incident:app", _THINGS, "One cause, many nodes."),
    ("plan", "plan:app", _THINGS, "What is under way or proposed."),
    ("approval", "approval:app", _THINGS, "What waits for a second person."),
    ("drill", "drill:app", _THINGS, "Have a sound node show a fault, and time what is done about it."),
    ("hold", "hold:app", _THINGS, "Leave this alone."),
    ("ticket", "ticket:app", _THINGS, "Work for people."),
    ("rma", "rma:app", _THINGS, "Returns to vendors."),
    ("stock", "stock:app", _THINGS, "Spares on the shelf, by site."),
    ("golden", "golden:app", _THINGS, "Bits that peers agree on, and nodes that differ."),
    ("notify", "notify:app", _THINGS, "Who is told of what, and what arrived."),
    ("audit", "audit:app", _TOOLS, "Who asked what, when and from where."),
    ("asset", "asset:app", _THINGS, "Racks, switches and other assets that are not nodes."),
    ("part", "part:app", _THINGS, "Components by serial number."),
    ("sku", "sku:app", _THINGS, "SKUs: made of a golden node, and compared with one."),
    ("maintenance", "maintenance:app", _THINGS, "Windows, current and upcoming work, repairs."),
    ("statement", "fleet:statement", _THINGS, "Node-hours of a month, by how each node was."),
    ("policy", "policy:app", _TOOLS, "Check, show and activate configuration."),
    ("backtest", "backtest:app", _TOOLS, "History replayed through another policy by the server."),
    ("rollout", "rollout:app", _TOOLS, "Configuration that comes into force slice by slice."),
    ("journal", "journal:app", _TOOLS, "Check a journal, copy it, keep it small."),
    ("boot", "boot:app", _TOOLS, "Boots over the network."),
    ("fabric", "fabric:app", _TOOLS, "Networks, their designs, and how they lie against them."),
    ("trend", "trend:app", _THINGS, "Readings that drift beside their peers, and whether to believe it."),
    ("bmc", "bmc:app", _THINGS, "BMCs: the passwords and certificates that Hostler gives them."),
    ("ironic", "ironic:app", _THINGS, "Machines that an Ironic has: inspect, deploy and clean them."),
    ("provider", "provider:app", _THINGS, "Providers that own machines: a cloud, a colocation's remote hands."),
    ("kernel-log", "kernel_log:app", _TOOLS, "What kernel-log lines mean."),
    ("sim", "sim:app", _TOOLS, "What Hostler makes of published failure rates."),
    ("docs", "docs:app", _TOOLS, "The reference, generated from the code."),
    ("completion", "shell:completion", _TOOLS, "Print a completion script for a shell."),
    ("complete", "shell:complete", _TOOLS, "Print the names that a word may become; completion asks for them."),
    ("version", "shell:version", _TOOLS, "Print the version."),
)
"""Name, where it is (below `hostler.cli.commands`), group, and its line in `hostler --help`."""


_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a write to a full or broken disk."""

_ABOUT = """Takes AI cluster nodes from power-on into production, watches them there, and brings them back.

Exit status: 0 done, 1 unexpected, 2 usage or bad input, 3 refused, 4 not found, 5 unreachable or busy, \
6 unauthorised, 7 not sound, 8 waits for a second person."""


def build() -> App:
    """The whole command tree, none of its commands imported."""
    app = App(
        name="hostler",
        help=_ABOUT,
        version=_version,
        help_format="plaintext",
        help_formatter=Columns(),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for name, where, group, text in COMMANDS:
        app.command(f"hostler.cli.commands.{where}", name=name, group=group, help=text)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode shows less, and no traceback
    atexit.register(_leave_as_it_is)
    sys.exit(run(lambda: build()(sys.argv[1:] if arguments is None else arguments)))


def _leave_as_it_is() -> None:
    """Do not take apart what the process leaves behind; DuckDB complains where it is not."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def run(command: Callable[[], object]) -> ExitCode:
    """Call the command and say on stderr why it failed, if it did. Returns the exit status."""
    try:
        with ending():
            result = command()
        sys.stdout.flush()
        return ExitCode(result) if isinstance(result, int) else ExitCode.ok
    except HostlerError as error:
        return _failed(str(error), code_of(error))
    except CycloptsError as error:
        return _failed(_usage(error), ExitCode.usage)
    except KeyboardInterrupt:
        return ExitCode.interrupted
    except BrokenPipeError:
        _drop_output()
        return ExitCode.closed_pipe
    except OSError as error:
        if error.errno not in _UNWRITTEN:
            raise
        _drop_output()
        return _failed(f"the output could not be written: {error.strerror}", ExitCode.unexpected)


def _drop_output() -> None:
    """Throw away buffered output that cannot be written: the end of the process does not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(text: str, code: ExitCode) -> ExitCode:
    from hostler.cli.output import say

    say(f"hostler: {text}")
    return code


def _usage(error: CycloptsError) -> str:
    """Explain an error of the command line, and where its help is."""
    error.verbose = False
    chain = " ".join(("hostler", *(error.command_chain or ())))
    return f"{error}\n  see `{chain} --help`"


def _version() -> str:
    from importlib.metadata import version

    return version("hostler")


if __name__ == "__main__":
    main()
