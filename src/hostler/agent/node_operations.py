"""Operations that the controller may ask of this node: a closed list with typed arguments, never a command line.

Before an act its mark is on disk. The same attempt of an operation never runs twice, an operation meant for another
boot or sent by a deposed controller is refused, and what became of an act is answered from the marks.
"""

import re
import sqlite3
import threading
from collections.abc import Callable, Mapping
from math import inf

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.boot_clock import boottime
from hostler.agent.check_plugins import NAME_CHARS
from hostler.agent.gpu_reset import ResetRequest
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, ResourceHeldError
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.machine import HostMachine
from hostler.agent.operation_log import LoggedOperation, OperationLog
from hostler.core.diagnose.gate.expectation import EXPECTS
from hostler.core.state.model import HELD, Facts, Operation, Outcome, Part

MAX_LOCATE_S = 255
"""Longest time that IPMI's chassis identify takes."""
RUN = "run"
"""Name under which an act gets its operation's id; no order may bring one."""
OFFER = "offer"
"""Argument that `join_cluster` gets beside its order: a `KubeletJoinOffer` in JSON."""
PROFILES = frozenset({"gate", "idle", "seatrial", "burn_in", "suspect"})
_NOTHING: Mapping[str, str] = {}
_GPU = re.compile(r"gpu\d{1,2}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
MAX_GPUS, MAX_LINKS = 32, 64


class BadArgumentError(Exception):
    """An argument that the verb does not take, or a value it does not accept."""


class OperationResult(Struct, frozen=True):
    """Result of an operation. `result` "unknown": it was begun, and its end will show later."""

    result: str = "done"
    detail: str = ""
    facts: Facts = {}
    parts: tuple[Part, ...] = ()


class OperationVerb(Struct, frozen=True):
    """One row: which arguments it takes (name → default), what it does, and how a lost one is observed."""

    arguments: Mapping[str, str]
    act: Callable[[HostMachine, Mapping[str, str]], OperationResult]
    lost: Callable[[LoggedOperation, str], OperationResult]


def _collect_evidence(body: HostMachine, _args: Mapping[str, str]) -> OperationResult:
    return OperationResult(facts=body.evidence())


def _collect_inventory(body: HostMachine, _args: Mapping[str, str]) -> OperationResult:
    found = body.inventory()
    return OperationResult(facts=found.facts, parts=found.parts)


def _bmc_cold_reset(body: HostMachine, _args: Mapping[str, str]) -> OperationResult:
    body.reset_bmc()
    return OperationResult(detail="the BMC was told to restart")


def _run_checks(body: HostMachine, args: Mapping[str, str]) -> OperationResult:
    profile = args["profile"]
    if profile not in PROFILES and not _is_file_name(profile):
        known = ", ".join(sorted(PROFILES))
        raise BadArgumentError(f"profile is one of {known}, or the name of a site's own check, not {profile[:100]!r}")
    report = body.check(profile, args[EXPECTS], args[RUN])
    facts: Facts = {**report.facts, "profile": profile, "verdict": report.verdict.value, "detail": report.detail}
    return OperationResult(detail=report.detail, facts=facts)


def _is_file_name(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARS and name.isprintable() and "/" not in name and not name.startswith(".")


def _discover_fabric(body: HostMachine, args: Mapping[str, str]) -> OperationResult:
    facts = body.discover_fabric(args)
    return OperationResult(detail=f"{args['tool']}: {facts.get('bytes', 0)} bytes", facts=facts)


def _gpu_reset(body: HostMachine, args: Mapping[str, str]) -> OperationResult:
    gpus = () if args["gpu"] == "all" else tuple(args["gpu"].lower().split(","))
    if len(gpus) > MAX_GPUS or not all(_GPU.fullmatch(gpu) for gpu in gpus):
        raise BadArgumentError(f"gpu is all, or some of gpuN and PCI addresses, not {args['gpu'][:100]!r}")
    links = args["links"]
    if not (links.isascii() and links.isdigit() and int(links) <= MAX_LINKS):
        raise BadArgumentError(f"links is 0 to {MAX_LINKS}, not {links!r}")
    clients = tuple(filter(None, args["clients"].split(",")))
    return OperationResult(detail=body.reset_gpus(ResetRequest(gpus, clients, args["fabric"], int(links)))[:500])


def _reboot(body: HostMachine, _args: Mapping[str, str]) -> OperationResult:
    body.reboot()
    return OperationResult("unknown", "reboot requested; done once the boot id has changed")


def _sanitise(body: HostMachine, _args: Mapping[str, str]) -> OperationResult:
    return OperationResult(detail=f"erased {body.sanitise()}")


def _join_cluster(body: HostMachine, args: Mapping[str, str]) -> OperationResult:
    """The offer is what the agent fetched for it: no order may bring one, and no mark keeps it."""
    offer = args.get(OFFER, "")
    if not offer:
        raise NotPossibleError("the controller offers this node nothing to join with")
    body.invite_kubelet(msgspec.json.decode(offer, type=KubeletJoinOffer))
    return OperationResult(detail="the kubelet has what lets it in")


def _leave_cluster(body: HostMachine, _args: Mapping[str, str]) -> OperationResult:
    body.dismiss_kubelet()
    return OperationResult(detail="the kubelet is stopped and has no kubeconfig")


def _rebooted(mark: LoggedOperation, boot_id: str) -> OperationResult:
    if mark.boot_id != boot_id:
        return OperationResult("done", "the boot id has changed", {"boot_id": boot_id})
    return OperationResult("unknown", "begun in this boot, which still runs")


def _repeat(mark: LoggedOperation, _boot_id: str) -> OperationResult:
    return OperationResult("not_done", f"{mark.kind} was cut off without a result; it may be asked again")


def _fate_unknown(mark: LoggedOperation, _boot_id: str) -> OperationResult:
    return OperationResult("unknown", f"{mark.kind} was begun and its end was not recorded")


VERBS: dict[str, OperationVerb] = {
    "collect_evidence": OperationVerb({}, _collect_evidence, _repeat),
    "collect_inventory": OperationVerb({}, _collect_inventory, _repeat),
    "run_checks": OperationVerb({"profile": "gate", EXPECTS: ""}, _run_checks, _repeat),
    "discover_fabric": OperationVerb(
        {"tool": "ibnetdiscover", "adapter": "", "port": "0", "timeout_s": "300"}, _discover_fabric, _repeat
    ),
    "bmc_cold_reset": OperationVerb({}, _bmc_cold_reset, _repeat),
    "gpu_reset": OperationVerb({"gpu": "all", "clients": "", "fabric": "", "links": "0"}, _gpu_reset, _fate_unknown),
    "reboot": OperationVerb({}, _reboot, _rebooted),
    "sanitise": OperationVerb({}, _sanitise, _repeat),
    "join_cluster": OperationVerb({}, _join_cluster, _repeat),
    "leave_cluster": OperationVerb({}, _leave_cluster, _repeat),
}


class NodeOperations:
    """Performs and observes operations of one node. Calls block; at most one act runs at a time."""

    def __init__(self, node: str, body: HostMachine, marks: OperationLog) -> None:
        self._node = node
        self._body = body
        self._marks = marks
        self._acting = threading.Lock()
        self._current = ""

    def perform(
        self, operation: Operation, epoch: int, begin_by: float = inf, brought: Mapping[str, str] = _NOTHING
    ) -> Outcome:
        """Do it once, or say why not, or what became of it before. `brought` goes to the act and nowhere else.

        After `begin_by` of `boottime` it is not begun any more: whoever gave the order counts it as over by then, and
        may have let customers in again. Raises `sqlite3.Error` where the marks cannot be read; nothing was done then.
        """
        if known := self._marks.find(operation.id, operation.attempt):
            return self._known(known)
        if not self._acting.acquire(blocking=False):
            return _outcome(operation, OperationResult("busy", f"{self._current} is running"))
        try:
            if known := self._marks.find(operation.id, operation.attempt):
                return self._known(known)
            reason = "it came too late: its time was over" if boottime() > begin_by else self._refusal(operation, epoch)
            if reason:
                return _outcome(operation, OperationResult("refused", reason))
            self._current = operation.id
            return self._marked(operation, epoch, brought)
        finally:
            self._current = ""
            self._acting.release()

    def observe(self, operation: Operation, epoch: int) -> Outcome:
        """Look whether the operation's effect is there: done, not_done, unknown, or busy while it runs.

        Acts on nothing.

        Raises `sqlite3.Error` where the marks cannot be read or written.
        """
        self._marks.see(epoch)
        mark = self._marks.latest(operation.id)
        if mark and mark.attempt >= operation.attempt:
            return self._known(mark)
        boot_id = self._body.boot_id()
        if operation.kind == "reboot" and operation.boot_id not in ("", boot_id):
            return _outcome(operation, OperationResult("done", "the boot id has changed", {"boot_id": boot_id}))
        return _outcome(operation, OperationResult("not_done", "this agent never began it"))

    def revoke(self, operation: Operation, epoch: int) -> Outcome:
        """Call the operation off if it is the one that runs; only checks can be ended early."""
        self._marks.see(epoch)
        if self._current != operation.id:
            return _outcome(operation, OperationResult("revoked", "it does not run"))
        if operation.kind != "run_checks":
            return _outcome(operation, OperationResult("revoked", "it goes on: only checks can be ended early"))
        self._body.call_off()
        return _outcome(operation, OperationResult("revoked", "called off"))

    def settle(self) -> list[Outcome]:
        """At the agent's start: what can be said of the acts that an earlier process began. Safe to repeat."""
        return [self._known(mark) for mark in self._marks.unfinished() if mark.operation != self._current]

    def _known(self, mark: LoggedOperation) -> Outcome:
        if mark.outcome:
            return mark.outcome
        if mark.operation == self._current:
            return self._of(mark, OperationResult("busy", "it is running"))
        verb = VERBS.get(mark.kind)
        answer = verb.lost(mark, self._body.boot_id()) if verb else _fate_unknown(mark, "")
        outcome = self._of(mark, answer)
        if answer.result != "unknown":
            self._marks.finish(outcome)
        return outcome

    def _refusal(self, operation: Operation, epoch: int) -> str:
        verb = VERBS.get(operation.kind)
        if verb is None:
            return f"{operation.kind!r} is not a verb of this agent"
        if strange := sorted(operation.args.keys() - verb.arguments.keys()):
            return f"{operation.kind} takes no argument {', '.join(strange)}"
        if operation.node != self._node:
            return f"it is meant for {operation.node}, this is {self._node}"
        if operation.boot_id not in ("", self._body.boot_id()):
            return f"it is meant for boot {operation.boot_id}, this is {self._body.boot_id()}"
        if epoch < (highest := self._marks.epoch()):
            return f"epoch {epoch} is over: {highest} was seen"
        latest = self._marks.latest(operation.id)
        if latest and latest.attempt > operation.attempt:
            return f"attempt {operation.attempt} is over: {latest.attempt} was begun"
        return ""

    def _marked(self, operation: Operation, epoch: int, brought: Mapping[str, str]) -> Outcome:
        try:
            self._marks.see(epoch)
            self._marks.start(operation, epoch, self._body.boot_id())
        except sqlite3.Error as error:
            return _outcome(operation, OperationResult("not_done", f"its start could not be marked on disk: {error}"))
        outcome = _outcome(operation, self._act(operation, brought))
        if outcome.result != "unknown":
            self._marks.finish(outcome)
        return outcome

    def _act(self, operation: Operation, brought: Mapping[str, str]) -> OperationResult:
        verb = VERBS[operation.kind]
        try:
            return verb.act(self._body, {**verb.arguments, **operation.args, **brought, RUN: operation.id})
        except (BadArgumentError, NotPossibleError) as error:
            return OperationResult("refused", str(error))
        except ResourceHeldError as error:
            return OperationResult("failed", str(error), {HELD: "; ".join(error.holders)[:1000]})
        except ActFailedError as error:
            return OperationResult("failed", str(error))
        except FateUnknownError as error:
            return OperationResult("unknown", str(error))

    def _of(self, mark: LoggedOperation, answer: OperationResult) -> Outcome:
        outcome = Outcome(mark.operation, self._node, answer.result, attempt=mark.attempt)
        return replace(outcome, detail=answer.detail, facts=answer.facts, parts=answer.parts)


def _outcome(operation: Operation, answer: OperationResult) -> Outcome:
    outcome = Outcome(operation.id, operation.node, answer.result, attempt=operation.attempt)
    return replace(outcome, detail=answer.detail, facts=answer.facts, parts=answer.parts)
