"""The suite of active checks (`hostler-check`) as the agent runs it: burn-in, suspect and idle checks of a real node.

The program is another's as far as the agent is concerned: it may hang, lie, print garbage or a gigabyte. Whatever is no
whole report of this run, with its own digest and an exit code that agrees, is *inconclusive*. An idle check yields to
whoever uses the node: it is not begun, or ends at once, and goes on in the node's next slot.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent import child_process
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.node_use import NodeUse, UseLimits
from hostler.agent.private_files import make_private
from hostler.core.diagnose.gate.readings import BITS, LOOK, PAIR, READING, STACK
from hostler.core.state import pass_rules
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts, Verdict
from hostler.core.state.pass_rules import PassRules
from hostler.logs.secret_patterns import redact

PROGRAM = "/opt/hostler-checks/bin/hostler-check"
REFERENCE = Path("/etc/hostler/check-reference.json")
"""Goldens and cohorts that `hostler-check learn` made; used where it is there."""
SYSTEMD = Path("/run/systemd/system")
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
IDLE = "idle"
LIMITS_S = {"burn_in": 47 * 3600.0, "suspect": 3.75 * 3600.0, IDLE: 3600.0}
"""The profiles that the suite answers, with their longest time; a plan's step has 48 and 4 hours, a slot its policy's.
"""
TAKEN = "the node was taken: "
STOP_S, YIELD_S, TURN_S = 15.0, 1.0, 0.5
"""Time to save its state and end, once it is called off, or others want the node; interval between looks at both."""
MAX_REPORT_BYTES = 8 * 1024 * 1024
MAX_PROGRESS_BYTES, PROGRESS_CHARS = 64 * 1024, 200
MAX_READINGS, MAX_BITS, STACK_CHARS = 64, 16, 300
PAIR_CHARS = 120
MAX_LOOKS, LOOK_CHARS, DETAIL_CHARS = 48, 160, 400
_EXITS = {"passed": 0, "failed": 2, "suspect": 2, "inconclusive": 3}


class SuiteSettings(Struct, frozen=True):
    """How the suite is run. `program` "" or not there: it is not. `time_under_load` "" leaves it to the profile.

    `use` is what an idle check bears beside it.
    """

    program: str = PROGRAM
    device: str = "auto"
    time_under_load: str = ""
    use: UseLimits = UseLimits()


class _Look(Struct, frozen=True):
    check: str
    verdict: str
    detail: str = ""
    part: str = ""
    readings: dict[str, float] = {}
    stack: dict[str, str] = {}
    pairs: dict[str, float] = {}
    version: int = 0
    digest: str = ""
    disturbed: str = ""


class _Report(Struct, frozen=True):
    node: str
    profile: str
    run_id: str
    verdict: str
    detail: str
    planted: str
    load_s: float
    interruptions: int
    latest: tuple[_Look, ...] = ()
    digest: str = ""
    rules_digest: str = ""


class _Progress(Struct, frozen=True):
    text: str
    run_id: str = ""
    verdict: str = ""


class CheckSuite:
    """Runs the suite on one node. One run at a time; `call_off` and `progress` may come from other threads."""

    def __init__(self, node: str, folder: Path, settings: SuiteSettings) -> None:
        self._node = node
        self._folder = folder
        self._settings = settings
        self._called_off = threading.Event()
        self._run_id = ""

    def profiles(self) -> tuple[str, ...]:
        """The profiles that it answers: none where the program is not installed."""
        return tuple(sorted(LIMITS_S)) if self._program() else ()

    def check(self, profile: str, run_id: str, rules: PassRules | None = None) -> StressResult:
        """Run the profile under the rules to its end, or go on with the run of this id. Never raises."""
        program = self._program()
        if not program:
            return _nothing(f"{self._settings.program or 'hostler-check'} is not installed on this node")
        try:
            if profile == IDLE:
                return self._in_slot(program) if rules is None else _nothing("idle checks take no pass rules")
            self._run_id = run_id
            argv = (*self._argv(program, profile, run_id, rules), *self._handed(profile, rules))
            ended = self._ended(argv, LIMITS_S[profile], lambda: "")
            return _under(profile, rules, *self._judged(profile, run_id, ended))
        except OSError as error:
            return _nothing(f"the suite cannot be run: {error}")
        finally:
            self._run_id = ""

    def _in_slot(self, program: str) -> StressResult:
        """Run the idle profile while nobody uses the node. A run that was cut off before goes on: it has no id."""
        use = NodeUse(Path("/"), os.getpid(), self._settings.use)
        if who := use.taken():
            return _nothing(f"the node is in use: {who}")
        return self._judged(IDLE, "", self._ended(self._argv(program, IDLE, ""), LIMITS_S[IDLE], use.taken))[0]

    def begin_checks(self) -> None:
        """Forget what was called off before: an operation is about to begin."""
        self._called_off.clear()

    def call_off(self) -> None:
        """End what runs; where it stands is kept, and the same run goes on from there when it is asked again."""
        self._called_off.set()

    def progress(self) -> str:
        """Tells where the present run stands, in one sentence; "" where none runs or it has not said."""
        run_id = self._run_id
        if not run_id:
            return ""
        try:
            with (self._folder / "progress.json").open("rb") as file:
                told = msgspec.json.decode(file.read(MAX_PROGRESS_BYTES), type=_Progress)
        except (OSError, *UNREADABLE):
            return ""
        return _clean(told.text, PROGRESS_CHARS) if told.run_id == run_id and not told.verdict else ""

    def _program(self) -> str:
        return shutil.which(self._settings.program) or "" if self._settings.program else ""

    def _handed(self, profile: str, rules: PassRules | None) -> tuple[str, ...]:
        """Writes the rules where the suite reads them, of mode 600: its words for them. Raises OSError."""
        if rules is None:
            return ()
        path = self._folder / f"{profile}.rules.json"
        path.unlink(missing_ok=True)
        make_private(path)
        path.write_bytes(pass_rules.document(profile, rules))
        return ("--rules", str(path))

    def _argv(self, program: str, profile: str, run_id: str, rules: PassRules | None = None) -> tuple[str, ...]:
        fixed = ("run", "--profile", profile, "--state", str(self._folder), "--node", self._node, "--run-id", run_id)
        is_timed = profile == IDLE or (rules is not None and rules.hours is not None)
        for_s = "" if is_timed else self._settings.time_under_load
        more = ("--for", for_s) if for_s else ()
        known = ("--reference", str(REFERENCE)) if REFERENCE.exists() else ()
        return (program, *fixed, "--device", self._settings.device, "--with-parent", "-o", "json", *more, *known)

    def _ended(self, argv: tuple[str, ...], limit_s: float, taken: Callable[[], str]) -> tuple[int, bytes, str]:
        """Run the program: its exit code, what it printed, and why it was ended by us. Raises OSError.

        `taken` says who wants the node, "" for nobody.
        """
        child = subprocess.Popen(  # noqa: S603 - no shell: the operator named the program, every word is ours
            (*_scope(), *argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_environment(),
        )
        assert child.stdout is not None
        try:
            output, trouble = self._read(child, child.stdout.fileno(), time.monotonic() + limit_s, taken)
            return child.returncode if child.returncode is not None else -1, output, trouble
        finally:
            child_process.end_group(child, [])

    def _read(
        self, child: subprocess.Popen[bytes], pipe: int, until_s: float, taken: Callable[[], str]
    ) -> tuple[bytes, str]:
        """Read until the program has ended, is called off, or is at its limit; then it has STOP_S to end by itself.

        Where others want the node it has YIELD_S.
        """
        waiting = select.poll()
        waiting.register(pipe, select.POLLIN)
        output, trouble, is_open = bytearray(), "", True
        while is_open:
            if not trouble and (trouble := self._why_end(until_s, taken)):
                until_s = time.monotonic() + (YIELD_S if trouble.startswith(TAKEN) else STOP_S)
                child.terminate()
            elif trouble and time.monotonic() > until_s:
                return bytes(output), trouble
            if waiting.poll(TURN_S * 1000):
                got = os.read(pipe, 65_536)
                is_open = bool(got)
                output += got
            if len(output) > MAX_REPORT_BYTES:
                return b"", f"it printed more than {MAX_REPORT_BYTES >> 20} MiB"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(STOP_S)
        return bytes(output), trouble

    def _why_end(self, until_s: float, taken: Callable[[], str]) -> str:
        """Why the program is to end now, "" where it may go on."""
        if self._called_off.is_set():
            return "called off"
        if time.monotonic() > until_s:
            return "it did not end in its time"
        who = taken()
        return f"{TAKEN}{who}" if who else ""

    def _judged(self, profile: str, run_id: str, ended: tuple[int, bytes, str]) -> tuple[StressResult, str]:
        """The verdict of a report that is whole, this node's, this run's, and agrees with the exit code.

        Beside it the digest of the pass rules that the report names.
        """
        code, output, trouble = ended
        if trouble:
            return _nothing(f"the suite: {trouble}"), ""
        try:
            report = _read_report(output)
        except (ValueError, *UNREADABLE) as error:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
            return _nothing(f"the suite {how}, and its report cannot be read: {error}"), ""
        if (report.node, report.profile, report.run_id) != (self._node, profile, run_id):
            return _nothing("the suite's report is of another run"), ""
        if _EXITS.get(report.verdict) != code:
            return _nothing(f"the suite says {report.verdict} and ended with {code}: they do not agree"), ""
        return StressResult(_verdict(report), _clean(_sentence(report)), _facts(report)), report.rules_digest


def _nothing(why: str) -> StressResult:
    return StressResult(Verdict.inconclusive, _clean(why))


def _under(profile: str, rules: PassRules | None, found: StressResult, named: str) -> StressResult:
    """The result as one under these rules: inconclusive where the report does not name them, or names any unasked."""
    wanted = "" if rules is None else pass_rules.digest(profile, rules)
    if named == wanted:
        return replace(found, facts={**pass_rules.named(profile, rules), **found.facts})
    whose = f"the SKU's pass rules ({wanted[:12]})" if wanted else "no pass rules"
    why = f"it was to go by {whose}, and does not say so; it says: {found.detail}"
    return _nothing(why)


def _scope() -> tuple[str, ...]:
    """A scope of systemd's own for the suite, which takes gigabytes: the agent's service has 256 MiB."""
    run = shutil.which("systemd-run") if SYSTEMD.is_dir() else None
    return (run, "--scope", "--quiet", "--collect", "--slice=hostler-checks.slice", "--") if run else ()


def _environment() -> dict[str, str]:
    """Variables that say where programs and the driver's libraries are; nothing of how the agent itself is run."""
    return {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith(("CUDA_", "NVIDIA_", "NCCL_"))}


def _read_report(output: bytes) -> _Report:
    """A report whose digest is that of its content. Raises ValueError and what msgspec raises."""
    told: dict[str, Any] = json.loads(output)
    if not isinstance(told, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - as whatever else is wrong with it
    digest = told.pop("digest", None)
    whole = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if digest != sha256(whole).hexdigest():
        raise ValueError("its digest is not that of its content")
    return msgspec.convert(told | {"digest": digest}, _Report)


def _verdict(report: _Report) -> Verdict:
    """Passed and failed are the suite's. Bits that differ from peers' need a witness.

    In triage they convict nobody: what fails there goes to its vendor. Elsewhere they take the node to triage.
    """
    if report.planted:
        return Verdict.inconclusive
    if report.verdict == "suspect":
        return Verdict.inconclusive if report.profile == "suspect" else Verdict.failed
    return Verdict(report.verdict)


def _sentence(report: _Report) -> str:
    words = [f"suspect: {report.detail}" if report.verdict == "suspect" else report.detail]
    if report.planted:
        words.insert(0, f"a fault was planted ({report.planted})")
    if report.interruptions:
        words.append(f"interrupted {report.interruptions} times")
    return "; ".join(words)


def _kept_as(report: _Report) -> str:
    """The report's file in the suite's state directory: of its own where each is kept (`hostler_checks.report`)."""
    if report.profile in ("burn_in", "suspect"):
        return f"reports/{report.profile}.{report.digest[:12]}.json"
    return f"{report.profile}.report.json"


def _facts(report: _Report) -> Facts:
    """List what each check came to last, for `hostler node explain`, and which report says all of it; bounded."""
    facts: Facts = {"load_s": report.load_s}
    facts[f"{LOOK}report"] = f"{_kept_as(report)} on the node, digest {report.digest}"
    for look in report.latest[:MAX_LOOKS]:
        name = _clean(f"{look.check} {look.part}", 64)
        facts[f"{LOOK}{name}"] = _clean(f"{look.verdict}: {look.detail}", LOOK_CHARS)
    if not report.planted:
        facts |= _readings(report)
        facts |= _bits(report)
    return facts


def _bits(report: _Report) -> Facts:
    """Digests with all of their stack, also of looks that nobody here could compare: the controller has the goldens.

    Bits that did not repeat themselves are the look's own failure, and are told to nobody as the node's.
    """
    looks = [look for look in report.latest[:MAX_LOOKS] if look.digest and look.verdict != "failed"]
    told: Facts = {}
    for look in looks[:MAX_BITS]:
        text = msgspec.json.encode({"version": look.version, "digest": look.digest, "stack": look.stack}).decode()
        told[f"{BITS}{_clean(f'{look.check}|{look.part}', 64)}"] = text
    return told


def _readings(report: _Report) -> Facts:
    """Readings with the stack that they are of; a look that came to nothing has none that could be believed.

    Nor has one beside others' work: it would lower what peers and the node's own past are compared with.
    """
    facts: Facts = {}
    for look in report.latest[:MAX_LOOKS]:
        name = _clean(f"{look.check}|{look.part}", 64)
        if look.verdict == "inconclusive" or look.disturbed:
            continue
        facts |= {f"{PAIR}{_clean(key, PAIR_CHARS)}": value for key, value in look.pairs.items()}
        if not look.readings:
            continue
        facts |= {f"{READING}{name}|{_clean(key, 32)}": value for key, value in look.readings.items()}
        stack = " ".join(f"{key}={value}" for key, value in sorted(look.stack.items()))
        facts[f"{STACK}{name}"] = _clean(stack, STACK_CHARS)
    return dict(list(facts.items())[:MAX_READINGS])


def _clean(text: str, most: int = DETAIL_CHARS) -> str:
    return "".join(c if c.isprintable() else " " for c in redact(text[: most * 4])[: most * 2]).strip()[:most]
