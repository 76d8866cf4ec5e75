"""The command `hostler-check`: run a profile, list the checks, learn from peers, verify a report."""

import argparse
import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from hostler_checks import VERSION, pass_rules, plants, reference, report, site_checks, state_dir, suite
from hostler_checks.answers import Verdict, as_document, clean, result_of
from hostler_checks.blame import Culprit, blame
from hostler_checks.catalogue import CHECKS, MEETING
from hostler_checks.limits import limit_of
from hostler_checks.meeting_order import order_of
from hostler_checks.message import MOST_BYTES, message, verdict_line
from hostler_checks.pass_rules import RulesRefusedError
from hostler_checks.profiles import Profile, load
from hostler_checks.run_state import RunState
from hostler_checks.runner import CheckRunner, Request
from hostler_checks.suite import SuiteRun
from hostler_checks.yaml_reader import duration_s

EXITS = {Verdict.passed: 0, Verdict.failed: 2, Verdict.suspect: 2, Verdict.inconclusive: 3}
"""As monitoring plug-ins have them; what cannot be asked is 3 too, never one that reads as failed."""
CANNOT_SAY = 3
_PR_SET_PDEATHSIG = 1
SCHEMA = Path(__file__).with_name("report.schema.json")
_RUN = "Run a profile's checks on this node, each in a child with a deadline, and say what they found."
_EXITS = (
    "Exit code: 0 passed, 2 failed or suspect, 3 inconclusive, which is also what cannot be asked. --state keeps "
    "PROFILE.report.json and .html (`hostler-check schema`, `hostler-check verify`), the node's history, and where a "
    "run was cut off: the same command goes on there."
)
T = TypeVar("T")


class _Parser(argparse.ArgumentParser):
    """A parser whose refusal is no verdict."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(CANNOT_SAY, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its verdict."""
    given = _parser().parse_args(arguments)
    try:
        code = given.run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CANNOT_SAY
    except OSError as error:
        print(f"hostler-check: {error.filename or 'the system'}: {error.strerror or error}", file=sys.stderr)
        code = CANNOT_SAY
    except ValueError as error:
        print(f"hostler-check: {error}", file=sys.stderr)
        code = CANNOT_SAY
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hostler-check", description="Active checks of one node.")
    parser.add_argument("--version", action="version", version=VERSION)
    verbs = parser.add_subparsers(required=True, parser_class=_Parser)
    run = verbs.add_parser(
        "run", help="run a profile; exit 0 passed, 2 failed or suspect, 3 inconclusive", description=_RUN, epilog=_EXITS
    )
    run.add_argument("--profile", default="gate", help="gate, idle, burn_in, suspect, or a file NAME.yaml")
    run.add_argument("--for", dest="for_", default="", metavar="TIME", help="time under load, as 90s, 20min or 24h")
    run.add_argument(
        "--state", type=Path, required=True, metavar="DIR", help="where state, history and reports are kept"
    )
    run.add_argument("--node", default=os.uname().nodename, metavar="NAME", help="this node's name")
    run.add_argument(
        "--device",
        default="auto",
        choices=("auto", "gpu", "cpu", "twin"),
        help="auto: the GPUs, else the CPU; gpu: nothing without one; cpu: no GPU is expected; twin: for tests",
    )
    run.add_argument(
        "--rules", type=Path, metavar="FILE", help="what the node's SKU wants: hours, checks, floors, stages; mode 600"
    )
    run.add_argument("--reference", type=Path, metavar="FILE", help="what peers measured, see learn")
    run.add_argument(
        "--site",
        type=Path,
        metavar="DIR",
        help=f"a site's own checks, a YAML file each; {site_checks.DIRECTORY} where it is there",
    )
    run.add_argument(
        "--model",
        default="",
        metavar="ENTRY",
        help="train a module of the site's too: FILE.py:FUNCTION or module:FUNCTION",
    )
    run.add_argument("--model-shape", nargs="+", default=(), metavar="NAME=N", help="what its function is given")
    run.add_argument("--model-for", default="60s", metavar="TIME", help="how long it is trained")
    run.add_argument("--run-id", default="", metavar="ID", help="a finished run of this id is not run again")
    run.add_argument("--with-parent", action="store_true", help="be called off when the program that started it ends")
    run.add_argument(
        "--message", type=Path, metavar="FILE", help="write the verdict there too, as a container's last message"
    )
    run.add_argument("--message-bytes", type=int, default=MOST_BYTES, metavar="N", help="at most so many bytes of it")
    run.add_argument("-o", "--output", default="text", choices=("text", "json", "plugin"))
    run.add_argument("--plant", default="", choices=("", *plants.PLANTS), help=argparse.SUPPRESS)
    run.set_defaults(run=_run)
    listed = verbs.add_parser("list", help="what each check detects, costs and takes")
    listed.add_argument("-o", "--output", default="text", choices=("text", "json"))
    listed.set_defaults(run=_list)
    learn = verbs.add_parser("learn", help="make goldens and cohorts of the reports of three nodes or more")
    learn.add_argument("reports", type=Path, nargs="+")
    learn.add_argument("--out", type=Path, required=True)
    learn.set_defaults(run=_learn)
    blamed = verbs.add_parser("blame", help="whom a mismatch convicts: node, stack or golden, by a witness' report")
    blamed.add_argument("suspect", type=Path)
    blamed.add_argument("witness", type=Path)
    blamed.add_argument("--reference", type=Path, required=True, help="what peers measured, see learn")
    blamed.set_defaults(run=_blame)
    meet = verbs.add_parser("meet", help="measure the way to other nodes, which run the same; exit 0 measured, 3 not")
    meet.add_argument("order", type=Path, help="address, port, rank, names, secret: JSON, mode 600")
    meet.add_argument("--plant", default="", choices=("", *plants.PLANTS), help=argparse.SUPPRESS)
    meet.set_defaults(run=_meet)
    schema = verbs.add_parser("schema", help="the JSON schema of a report, as run -o json prints it")
    schema.set_defaults(run=_schema)
    verify = verbs.add_parser("verify", help="whether a report's digest is that of its content")
    verify.add_argument("report", type=Path)
    verify.set_defaults(run=_verify)
    return parser


def _run(given: argparse.Namespace) -> int:
    if (given.plant or given.device == "twin") and not plants.permitted():
        raise ValueError(f"faults are planted by tests alone, which set {plants.PERMISSION}=1")
    if given.site is not None and not given.site.is_dir():
        raise ValueError(f"--site {given.site}: no such folder, so its checks would be left out")
    profile, for_s, refused = _ruled(given, load(given.profile))
    profile = site_checks.added(profile, given.site or site_checks.DIRECTORY, os.geteuid())
    if given.model:
        step = site_checks.model_step(_absolute(given.model), list(given.model_shape), duration_s(given.model_for))
        profile = site_checks.with_steps(profile, [step])
    known = _read(given.reference, "reference", reference.decoded) if given.reference else None
    runner = CheckRunner(known)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: runner.call_off())
    if given.with_parent:
        _go_before_others()
    told = (lambda text: print(text, file=sys.stderr, flush=True)) if given.output == "text" else (lambda _: None)
    node = clean(given.node, 64)
    wanted = SuiteRun(profile, given.state, node, for_s, given.device, clean(given.run_id, 64), given.plant, told)
    state = suite.refused(wanted, refused) if refused else suite.run(wanted, runner)
    text = _said(profile, state, given.output)
    print(text)
    if given.message:
        with contextlib.suppress(OSError):  # the exit code says it too
            given.message.write_text(message(state, given.message_bytes), "utf-8")
    return EXITS[Verdict(state.verdict or Verdict.inconclusive)]


def _ruled(given: argparse.Namespace, profile: Profile) -> tuple[Profile, float, str]:
    """The profile under the node's pass rules, its time under load, and why these are refused."""
    wanted_s = duration_s(given.for_) if given.for_ else None
    if given.rules is None:
        return profile, wanted_s or profile.for_s, ""
    try:
        laid, ruled_s = pass_rules.ruled(profile, given.rules)
    except RulesRefusedError as error:
        return profile, wanted_s or profile.for_s, f"the pass rules are refused, and nothing was run: {error}"
    if wanted_s and ruled_s:
        raise ValueError(f"--for and {given.rules} both say how long; leave --for out")
    return laid, ruled_s or wanted_s or laid.for_s, ""


def _absolute(entry: str) -> str:
    """A file's entry with the file's whole path: children may run elsewhere."""
    place, _, name = entry.rpartition(":")
    return f"{Path(place).resolve()}:{name}" if place.endswith(".py") else entry


def _go_before_others() -> None:
    """Be called off with the starter, and be the first whom the kernel ends where memory is short."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", "ascii")


def _said(profile: Profile, state: RunState, output: str) -> str:
    if output == "json":
        return json.dumps(state_dir.signed(report.body(profile, state)))
    return json.dumps(verdict_line(state)) if output == "plugin" else _text(state)


def _text(state: RunState) -> str:
    lines = [f"{state.profile} {state.verdict}: {state.detail}"]
    for _, one in sorted(state.latest.items()):
        basis = f" [{', '.join(one.basis)}]" if one.basis else ""
        lines.append(f"  {one.check:15} {one.part:5} {one.verdict:13} {one.detail}{basis}")
    return "\n".join([*lines, *(f"  note: {note}" for note in state.notes)])


def _list(given: argparse.Namespace) -> int:
    if given.output == "json":
        print(json.dumps([_row(name) for name in CHECKS]))
        return 0
    for name, spec in CHECKS.items():
        where = "GPU only" if spec.gpu_only else "host" if spec.host else "CPU and GPU"
        print(f"{name} {spec.version} ({where}): {spec.detects}\n    cost {spec.cost}; memory {spec.memory}")
        for reading, limits in _row(name)["readings"].items():
            print(f"    {reading} [{limits['unit']}] floor {limits['floor']}, bound {limits['bound']} on this CPU")
    return 0


def _row(name: str) -> dict[str, Any]:
    spec, cores = CHECKS[name], len(os.sched_getaffinity(0))
    readings = {}
    for reading, row in spec.readings.items():
        limit = limit_of(reading, "cpu", cores)
        readings[reading] = {
            "unit": row.unit,
            "better": "higher" if row.higher else "lower",
            "floor": limit.floor if limit else None,
            "bound": limit.bound if limit and abs(limit.bound) != float("inf") else None,
        }
    kept = ("name", "version", "detects", "cost", "memory", "gpu_only", "host", "grave")
    return {**{key: getattr(spec, key) for key in kept}, "readings": readings}


def _learn(given: argparse.Namespace) -> int:
    found = []
    for path in given.reports:
        told = _read(path, "report", state_dir.verified)
        found += [(str(told["node"]), result_of(one)) for one in told["latest"]]
    learned, dissent = reference.learn(found)
    state_dir.write_bytes(given.out, reference.encoded(learned))
    print(f"{len(learned.goldens)} goldens, {len(learned.cohorts)} cohorts of {len(given.reports)} reports")
    for one in dissent:
        print(f"dissents: {one}")
    return 0


def _blame(given: argparse.Namespace) -> int:
    """Exit 0 where nothing differs, 2 where the node is convicted, 3 where something else is or nobody."""
    known = _read(given.reference, "reference", reference.decoded)
    reports = [_read(path, "report", state_dir.verified) for path in (given.suspect, given.witness)]
    suspect, witness = ((str(told["node"]), [result_of(one) for one in told["latest"]]) for told in reports)
    found = blame(suspect, witness, known)
    for one in found:
        print(f"{one.check} {one.part}: {one.culprit}: {one.why}")
    culprits = {one.culprit for one in found}
    return 2 if Culprit.node in culprits else CANNOT_SAY if culprits else 0


def _meet(given: argparse.Namespace) -> int:
    """Print one line of JSON: measured or why not, the group's bandwidth, and pairs. It convicts nobody."""
    if given.plant and not plants.permitted():
        raise ValueError(f"faults are planted by tests alone, which set {plants.PERMISSION}=1")
    mode = given.order.stat().st_mode
    if mode & 0o077:
        raise ValueError(f"{given.order}: others may read the secret in it; chmod 600")
    order = order_of(given.order.read_bytes())
    spec = dataclasses.replace(MEETING, deadline_s=order.deadline_s + 30.0)
    runner = CheckRunner()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: runner.call_off())
    asked = Request(spec, "cpu", order.seconds, {"order": str(given.order.resolve())}, plant=given.plant)
    found = runner.run([asked])[0]
    told = as_document(found)
    is_measured = bool(told["pairs"] or told["readings"])
    kept = {key: told[key] for key in ("detail", "readings", "pairs", "planted")}
    print(json.dumps({"measured": is_measured, **kept}))
    return 0 if is_measured else CANNOT_SAY


def _schema(_: argparse.Namespace) -> int:
    print(SCHEMA.read_text("utf-8"), end="")
    return 0


def _read(path: Path, what: str, read: Callable[[bytes], T]) -> T:
    """Read the file. Raises OSError, and ValueError that names it."""
    try:
        return read(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is no {what} of hostler-check: {error}") from None


def _verify(given: argparse.Namespace) -> int:
    told = _read(given.report, "report", state_dir.verified)
    print(f"{told['node']} {told['profile']} {told['verdict']}: its digest {told['digest']} is right")
    return 0


if __name__ == "__main__":
    main()
