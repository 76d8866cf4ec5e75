"""A site's own checks: commands that root has put into one directory, run with limits, their answers made verdicts.

A plug-in is what monitoring systems know: a program that prints a sentence and ends with 0 (well), 1 (warning), 2
(critical) or 3 (cannot say); or one that prints JSON, `{"verdict": "passed|failed|inconclusive", "detail": "…",
"part": "…"}`, one object a line for several parts. `{"shape": "node_conditions|health_event", "document": {…}}` hands
on what another watcher (node-problem-detector, NVSentinel) says; the controller reads it. Whatever else a plug-in does
proves nothing: a hang, a crash, an answer that is too long or cannot be read is *inconclusive*, never passed. A check
that is taken away after it has found something is *stale*: nobody says any more how that is.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from hashlib import blake2s
from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.agent.limited_command import CommandEnd, CommandLimits, run_bounded
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts, Verdict
from hostler.logs.secret_patterns import redact

DIRECTORY = Path("/etc/hostler/checks.d")
MAX_PLUGINS = 64
MAX_ANSWERS = 64
MAX_SIDECAR_BYTES = 4096
MAX_DOCUMENT_BYTES = 4000
"""An observation's text holds 4096."""
CURSOR = "site_checks"
REREAD_S, AGAIN_S, AFFIRM_S = 60.0, 15.0, 3600.0
"""Seconds: until the directory is looked at again, until what is new is run again, until what stands is told again."""
DETAIL_CHARS = 500
NAME_CHARS = 64
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_EXITS = {0: Verdict.passed, 1: Verdict.failed, 2: Verdict.failed}
_SEVERITY = {1: "warning", 2: "critical"}


class Schedule(Struct, frozen=True, forbid_unknown_fields=True):
    """Interval and time limit of a plug-in; a file NAME.json beside it may set others.

    Runs are spread: each starts up to `jitter_s` later, by as much as node and plug-in always do.
    """

    every_s: float = 300.0
    timeout_s: float = 30.0
    jitter_s: float = 60.0
    memory_mib: int = 256
    cpu_s: int = 20

    def problem(self) -> str:
        """Name what is wrong with the schedule, "" for nothing."""
        bounds = (
            ("every_s", self.every_s, 10, 604_800),
            ("timeout_s", self.timeout_s, 1, 3_600),
            ("jitter_s", self.jitter_s, 0, 86_400),
            ("memory_mib", self.memory_mib, 16, 16_384),
            ("cpu_s", self.cpu_s, 1, 3_600),
        )
        wrong = ((name, value, low, high) for name, value, low, high in bounds if not low <= value <= high)
        return "; ".join(f"{name} is {low} to {high}, not {value:g}" for name, value, low, high in wrong)


class Plugin(Struct, frozen=True):
    """A check that may be run."""

    name: str
    path: Path
    schedule: Schedule


class Refused(Struct, frozen=True):
    """A file in the directory that is not run, and why."""

    name: str
    why: str


class PluginAnswer(Struct, frozen=True):
    """One line of a plug-in's output, parsed."""

    verdict: Verdict
    detail: str = ""
    part: str = ""
    severity: str = ""
    shape: str = ""


def installed(directory: Path, owner: int = 0) -> tuple[tuple[Plugin, ...], tuple[Refused, ...]]:
    """The plug-ins of a directory and what else lies there. `owner` is the user id that must own all of it.

    The directory, everything above it, and each file must belong to root and be writable by nobody else; symbolic
    links are refused. A directory that is not there holds none.
    """
    if not directory.exists():
        return (), ()
    if why := _untrusted_path(directory, owner):
        return (), (Refused(str(directory), why),)
    plugins: list[Plugin] = []
    refused: list[Refused] = []
    for path in sorted(directory.iterdir()):
        if path.suffix == ".json":
            continue
        found = _judge(path, owner)
        if isinstance(found, Refused):
            refused.append(found)
        elif len(plugins) >= MAX_PLUGINS:
            refused.append(Refused(path.name, f"more than {MAX_PLUGINS} checks"))
        else:
            plugins.append(found)
    return tuple(plugins), tuple(refused)


def _judge(path: Path, owner: int) -> Plugin | Refused:
    if why := _untrusted(path, owner, stat.S_ISREG, "regular file"):
        return Refused(path.name[:NAME_CHARS], why)
    if not path.stat().st_mode & stat.S_IXUSR:
        return Refused(path.name[:NAME_CHARS], "it is not executable")
    if len(path.name) > NAME_CHARS or not path.name.isprintable():
        return Refused(path.name[:NAME_CHARS], f"its name is not a printable word of at most {NAME_CHARS} characters")
    sidecar = path.with_name(f"{path.name}.json")
    if not os.path.lexists(sidecar):
        return Plugin(path.name, path, Schedule())
    if why := _untrusted(sidecar, owner, stat.S_ISREG, "regular file"):
        return Refused(path.name, f"{sidecar.name}: {why}")
    try:
        schedule = msgspec.json.decode(sidecar.read_bytes()[: MAX_SIDECAR_BYTES + 1], type=Schedule)
    except (*UNREADABLE, OSError) as error:
        return Refused(path.name, f"{sidecar.name}: {error}")
    if wrong := schedule.problem():
        return Refused(path.name, f"{sidecar.name}: {wrong}")
    return Plugin(path.name, path, schedule)


def _untrusted_path(directory: Path, owner: int) -> str:
    """Refuse a directory whose parents others may write: they could replace everything below."""
    for place in (directory, *directory.parents):
        sticky = place != directory and bool(place.lstat().st_mode & stat.S_ISVTX)
        if not sticky and (why := _untrusted(place, owner, stat.S_ISDIR, "directory")):
            return f"{place}: {why}"
    return ""


def _untrusted(path: Path, owner: int, is_kind: Callable[[int], bool], kind: str) -> str:
    """Why the file cannot be trusted, by what `lstat` says: a link is no file."""
    try:
        found = path.lstat()
    except OSError as error:
        return str(error.strerror)
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if not is_kind(found.st_mode):
        return f"it is no {kind}"
    if found.st_uid not in (owner, 0):
        return f"it belongs to user {found.st_uid}, not to root"
    if found.st_mode & WRITABLE_BY_OTHERS:
        return f"others than root may write it (mode {stat.S_IMODE(found.st_mode):o}); chmod go-w"
    return ""


def run_plugin(plugin: Plugin) -> tuple[PluginAnswer, ...]:
    """Run it once, within its limits. Blocks; never raises."""
    schedule = plugin.schedule
    limits = CommandLimits(schedule.timeout_s, schedule.memory_mib * 1024 * 1024, schedule.cpu_s)
    return read_answers(run_bounded((str(plugin.path),), limits))


def answer_of(directory: Path, name: str, owner: int = 0) -> PluginAnswer | None:
    """Answer of the plug-in of this name, the worst of its parts; None where there is no such plug-in.

    As in its rounds, what is not well counts once a second run has said so too: after a restart a mount may come late.
    Blocks for as long as both may take; never raises.
    """
    plugin = next((one for one in installed(directory, owner)[0] if one.name == name), None)
    if plugin is None:
        return None
    first = _worst(run_plugin(plugin))
    if first.verdict is Verdict.passed:
        return first
    time.sleep(min(AGAIN_S, plugin.schedule.every_s))
    return _worst(run_plugin(plugin))


def _worst(answers: tuple[PluginAnswer, ...]) -> PluginAnswer:
    """One answer for all parts. A warning is no failure."""
    failed = [one for one in answers if one.verdict is Verdict.failed and one.severity != "warning"]
    open_ones = [one for one in answers if one.verdict not in (Verdict.passed, Verdict.failed)]
    told = failed or open_ones or list(answers)
    details = (f"{one.part}: {one.detail}" if one.part else one.detail for one in told if not one.shape)
    return PluginAnswer(
        told[0].verdict if failed or open_ones else Verdict.passed, _clean("; ".join(filter(None, details)))
    )


def read_answers(ended: CommandEnd) -> tuple[PluginAnswer, ...]:
    """Read a plug-in's output and exit as answers; always at least one."""
    if ended.trouble:
        return (PluginAnswer(Verdict.inconclusive, ended.trouble),)
    if ended.code < 0 or ended.code not in (*_EXITS, 3):
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with {ended.code}"
        return (PluginAnswer(Verdict.inconclusive, _clean(f"it {how}: {ended.errors}")),)
    if ended.code and ended.crashed:
        return (
            PluginAnswer(Verdict.inconclusive, _clean(f"it broke off and ended with {ended.code}: {ended.errors}")),
        )
    text = ended.output.decode("utf-8", "replace").strip()
    if text.startswith("{"):
        return _of_lines(text, ended.code)
    first = _clean(text.partition("|")[0].partition("\n")[0])
    verdict = _EXITS.get(ended.code, Verdict.inconclusive)
    return (PluginAnswer(verdict, first, severity=_SEVERITY.get(ended.code, "")),)


class _PluginLine(Struct, frozen=True):
    verdict: str = ""
    shape: str = ""
    document: msgspec.Raw = msgspec.Raw()
    detail: str = ""
    part: str = ""


def _of_lines(text: str, code: int) -> tuple[PluginAnswer, ...]:
    """JSON lines. One that cannot be read spoils them all; an exit code that says worse than they do counts, too."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_ANSWERS:
        return (PluginAnswer(Verdict.inconclusive, f"it gave {len(lines)} answers, at most {MAX_ANSWERS} are read"),)
    answers: list[PluginAnswer] = []
    for line in lines:
        try:
            said = msgspec.json.decode(line, type=_PluginLine)
            if said.shape:
                answers.append(_handed_on(said))
                continue
            verdict = Verdict(said.verdict)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            return (PluginAnswer(Verdict.inconclusive, _clean(f"its answer cannot be read: {error}")),)
        answers.append(PluginAnswer(verdict, _clean(said.detail), _clean(said.part)[:NAME_CHARS]))
    if code and all(answer.verdict is Verdict.passed and not answer.shape for answer in answers):
        return (PluginAnswer(Verdict.inconclusive, f"its answers say passed, it ended with {code}"),)
    return tuple(answers)


def _handed_on(said: _PluginLine) -> PluginAnswer:
    """Another watcher's words, whole or not at all. They are no verdict of this check."""
    document = bytes(said.document).decode("utf-8", "replace")
    if not document or len(document.encode()) > MAX_DOCUMENT_BYTES:
        return PluginAnswer(
            Verdict.inconclusive, f"a document of {len(document)} characters; at most {MAX_DOCUMENT_BYTES} bytes"
        )
    return PluginAnswer(Verdict.inconclusive, document, shape=said.shape[:NAME_CHARS])


def observations(plugin: Plugin, answers: tuple[PluginAnswer, ...], now_s: float) -> Iterator[LocalObservation]:
    """One verdict a part, in the words of every other check; one that only hands on says that it could."""
    if all(answer.shape for answer in answers):
        could: Facts = {"check": plugin.name, "verdict": Verdict.passed.value, "origin": "plugin"}
        yield LocalObservation("verdict", now_s, Rank.routine, "it hands on what another watcher says", facts=could)
    for answer in answers:
        if answer.shape:
            told: Facts = {"shape": answer.shape, "check": plugin.name}
            yield LocalObservation("external", now_s, text=answer.detail, facts=told)
            continue
        facts: Facts = {"check": plugin.name, "verdict": answer.verdict.value, "origin": "plugin"}
        if answer.part:
            facts["part"] = answer.part
        if answer.severity:
            facts["severity"] = answer.severity
        rank = Rank.routine if answer.verdict is Verdict.passed else Rank.notable
        yield LocalObservation("verdict", now_s, rank, answer.detail, facts=facts)


def refusals(refused: tuple[Refused, ...], now_s: float) -> Iterator[LocalObservation]:
    """A check that is not run is no check that passed: it is shown."""
    for one in refused[:MAX_PLUGINS]:
        facts: Facts = {"check": one.name, "verdict": Verdict.inconclusive.value, "origin": "plugin"}
        yield LocalObservation("verdict", now_s, text=f"it is not run: {one.why}"[:DETAIL_CHARS], facts=facts)


def gone(name: str, parts: tuple[str, ...], now_s: float) -> Iterator[LocalObservation]:
    """A check that is taken away leaves what it found to nobody: that is told, for each part of which it spoke."""
    for part in parts:
        facts: Facts = {"check": name, "verdict": Verdict.stale.value, "origin": "plugin"}
        if part:
            facts["part"] = part
        yield LocalObservation(
            "verdict", now_s, text="the plug-in is no longer installed, so its result is unknown", facts=facts
        )


def starts_after_s(plugin: Plugin, node: str) -> float:
    """How long after its time this node starts it: the same each time, and another one on each node."""
    digest = blake2s(f"{node}/{plugin.name}".encode(), digest_size=6).digest()
    return plugin.schedule.jitter_s * int.from_bytes(digest, "big") / (1 << 48)


class Rounds:
    """Runs each plug-in when it is due, and keeps only answers that are news.

    Moments are monotonic seconds of the caller.

    `kept` is what `cursor` said when it was last saved: which checks have told of something that is not well.
    """

    def __init__(self, directory: Path, node: str, owner: int = 0, kept: bytes | None = None) -> None:
        self._directory = directory
        self._node = node
        self._owner = owner
        self._found = _remembered(kept)
        self._due: dict[str, float] = {}
        self._last: dict[str, tuple[PluginAnswer, ...]] = {}
        self._told: dict[str, tuple[tuple[PluginAnswer, ...], float]] = {}
        self._refused: tuple[Refused, ...] = ()

    def turn(self, now_s: float) -> tuple[list[LocalObservation], float]:
        """Run whoever is due, one after the other; what is to be told, and how long until the next turn."""
        plugins, refused = installed(self._directory, self._owner)
        told: list[LocalObservation] = []
        if refused != self._refused:
            told += refusals(refused, now_s)
            self._refused = refused
            self._found |= {one.name: self._found.get(one.name) or ("",) for one in refused[:MAX_PLUGINS]}
        names = {plugin.name for plugin in plugins}
        told += self._gone(names | {one.name for one in refused}, now_s)
        for kept in (self._due, self._last, self._told):
            for gone in [name for name in kept if name not in names]:
                del kept[gone]
        for plugin in plugins:
            due = self._due.setdefault(plugin.name, now_s + starts_after_s(plugin, self._node))
            if due <= now_s:
                told += self._run(plugin, now_s)
        return told, max(1.0, min((due - now_s for due in self._due.values()), default=REREAD_S))

    def cursor(self) -> tuple[str, bytes]:
        """State to save together with the observations."""
        return CURSOR, msgspec.json.encode(self._found)

    def _gone(self, here: set[str], now_s: float) -> Iterator[LocalObservation]:
        """Checks that had found something and are there no more; a directory that cannot be trusted hides them all."""
        if str(self._directory) in here:
            return
        for name in [name for name in self._found if name not in here]:
            parts = self._found.pop(name)
            if name == str(self._directory):
                facts: Facts = {"check": name, "verdict": Verdict.passed.value, "origin": "plugin"}
                yield LocalObservation("verdict", now_s, Rank.routine, "it can be trusted", facts=facts)
            else:
                yield from gone(name, parts, now_s)

    def _run(self, plugin: Plugin, now_s: float) -> Iterator[LocalObservation]:
        """A verdict that has changed is asked for again soon, and told once it has repeated itself."""
        answers = run_plugin(plugin)
        same = self._last.get(plugin.name)
        self._last[plugin.name] = answers
        known, at_s = self._told.get(plugin.name, ((), float("-inf")))
        if _verdicts(known) == _verdicts(answers) and now_s - at_s < AFFIRM_S:
            self._due[plugin.name] = now_s + plugin.schedule.every_s
        elif same is None or _verdicts(same) != _verdicts(answers):
            self._due[plugin.name] = now_s + min(AGAIN_S, plugin.schedule.every_s)
        else:
            self._due[plugin.name] = now_s + plugin.schedule.every_s
            self._told[plugin.name] = (answers, now_s)
            self._found.pop(plugin.name, None)
            if wanting := tuple(one.part for one in answers if one.verdict is not Verdict.passed or one.shape):
                self._found[plugin.name] = wanting[:MAX_ANSWERS]
            yield from observations(plugin, answers, now_s)


def _remembered(kept: bytes | None) -> dict[str, tuple[str, ...]]:
    try:
        return msgspec.json.decode(kept, type=dict[str, tuple[str, ...]]) if kept else {}
    except UNREADABLE:
        return {}


def _verdicts(answers: tuple[PluginAnswer, ...]) -> list[tuple[str, ...]]:
    """Group answers for comparison: only verdicts count, except that lines handed on count whole."""
    return sorted(
        (one.part, one.verdict.value, one.severity, one.shape, one.detail if one.shape else "") for one in answers
    )


def _clean(text: str) -> str:
    kept = redact(text[: DETAIL_CHARS * 4])
    return "".join(c if c.isprintable() else " " for c in kept[: DETAIL_CHARS * 2]).strip()[:DETAIL_CHARS]
