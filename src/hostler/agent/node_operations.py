"""Operations that the controller may ask of this node: a closed list with typed arguments, never a command line.

Before an act its mark is on disk. The same attempt of an operation never runs twice, an operation meant for another
boot or sent by a deposed controller is refused, and what became of an act is answered from the marks.
"""

import re
import sqlite3
import threading
from collections.abc import Callable
from math import inf

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.boot_clock import boottime
from hostler.agent.check_plugins import NAME_CHARS
from hostler.agent.controller_client import UnreadableOrder
from hostler.agent.drill_injections import DrillInjections
from hostler.agent.gpu_reset import ResetRequest
from hostler.agent.host_commands import (
    ActFailedError,
    FateUnknownError,
    NeverPossibleError,
    NotPossibleError,
    ResourceHeldError,
)
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.machine import HostMachine
from hostler.agent.meetings import Meetings, verdict_of
from hostler.agent.operation_log import LoggedOperation, OperationLog
from hostler.core.state import operations as op
from hostler.core.state.erasure import REPORT, ErasureReport, worst
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import HELD, LASTING, Facts, Operation, Outcome, Part, Verdict

PROFILES = frozenset({"gate", "idle", "seatrial", "burn_in", "suspect"})
_GPU = re.compile(r"gpu\d{1,2}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
MAX_GPUS, MAX_LINKS = 32, 64
DETAIL_CHARS = 2_000
"""The longest text of an outcome, whatever a tool printed or an order named; the controller takes twice as much."""


class OperationResult(Struct, frozen=True):
    """Result of an operation. `result` "unknown": it was begun, and its end will show later."""

    result: str = "done"
    detail: str = ""
    facts: Facts = {}
    parts: tuple[Part, ...] = ()


def performed(body: HostMachine, operation: Operation, offer: KubeletJoinOffer | None = None) -> OperationResult:  # noqa: C901, PLR0911, PLR0912 - one flat match
    """Do it. Raises the errors of `host_commands`."""
    match operation.act:
        case op.CollectEvidence():
            return OperationResult(facts=body.evidence())
        case op.BugReport() as act:
            facts = body.bug_report(act)
            return OperationResult(detail=f"nvidia-bug-report: {facts.get('bytes', 0)} bytes", facts=facts)
        case op.CollectInventory():
            found = body.inventory()
            return OperationResult(facts=found.facts, parts=found.parts)
        case op.BmcColdReset():
            body.reset_bmc()
            return OperationResult(detail="the BMC was told to restart")
        case op.DiscoverFabric() as act:
            facts = body.discover_fabric(act)
            return OperationResult(detail=f"{act.tool}: {facts.get('bytes', 0)} bytes", facts=facts)
        case op.RunChecks() as act:
            return _checked(body, act, operation.id)
        case op.ResetGpus() as act:
            return OperationResult(detail=body.reset_gpus(_request(act))[:500])
        case op.ResetPort() as act:
            return OperationResult(detail=body.reset_port(act, operation.plan)[:500])
        case op.RestartNode():
            body.reboot()
            return OperationResult("unknown", "reboot requested; done once the boot id has changed")
        case op.Sanitise() as act:
            return _sanitised(body.sanitise(act))
        case op.WriteDeviceFirmware() as act:
            return OperationResult(detail=body.write_device_firmware(act)[:900])
        case op.VerifyDeviceFirmware() as act:
            read = body.verify_device_firmware(act)
            return OperationResult("failed" if read.wrong else "done", read.wrong, read.facts)
        case op.StartKubelet():
            if offer is None:
                raise NotPossibleError("the controller has no join offer for this node; see `hostler node explain`")
            body.invite_kubelet(offer)
            return OperationResult(detail="the kubelet has what lets it in")
        case op.StopKubelet():
            body.dismiss_kubelet()
            return OperationResult(detail="the kubelet is stopped and has no kubeconfig")
        case other:
            raise NeverPossibleError(f"{other.kind} is not an operation of an agent", UPGRADE)


def _sanitised(report: ErasureReport) -> OperationResult:
    """Done where everything was erased and read back; inconclusive is refused, as nobody has an answer then."""
    verdicts = [one.verdict for one in report.drives] + ([report.tpm.verdict] if report.tpm else [])
    result = {Verdict.passed: "done", Verdict.failed: "failed"}.get(worst(tuple(verdicts)), "refused")
    said = [f"{one.slot} ({one.serial}): {one.detail}" for one in report.drives if one.verdict is not Verdict.passed]
    if report.tpm is not None and report.tpm.verdict is not Verdict.passed:
        said.append(f"TPM: {report.tpm.detail}")
    detail = "; ".join(said)[:900] or f"erased {len(report.drives)} drives"
    return OperationResult(result, detail, {REPORT: msgspec.json.encode(report).decode()})


def _checked(body: HostMachine, act: op.RunChecks, run: str) -> OperationResult:
    profile = act.profile
    if profile not in PROFILES and not _is_file_name(profile):
        known = ", ".join(sorted(PROFILES))
        raise NotPossibleError(f"profile is one of {known}, or the name of a site's own check, not {profile[:100]!r}")
    report = body.check(profile, act.expects or Expected(), run, act.rules)
    facts: Facts = {**report.facts, "profile": profile, "verdict": report.verdict.value, "detail": report.detail}
    return OperationResult(detail=report.detail, facts=facts)


def _is_file_name(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARS and name.isprintable() and "/" not in name and not name.startswith(".")


def _request(act: op.ResetGpus) -> ResetRequest:
    gpus = tuple(gpu.lower() for gpu in act.gpus)
    if len(gpus) > MAX_GPUS or not all(_GPU.fullmatch(gpu) for gpu in gpus):
        raise NotPossibleError(f"gpus are at most {MAX_GPUS}, each gpuN or a PCI address, not {str(act.gpus)[:100]}")
    if not 0 <= act.links <= MAX_LINKS:
        raise NotPossibleError(f"links is 0 to {MAX_LINKS}, not {act.links}")
    return ResetRequest(gpus, act.clients, act.fabric, act.links)


def _rebooted(mark: LoggedOperation, boot_id: str) -> OperationResult:
    if mark.boot_id != boot_id:
        return OperationResult("done", "the boot id has changed", {"boot_id": boot_id})
    return OperationResult("unknown", "begun in this boot, which still runs")


def _repeat(mark: LoggedOperation, _boot_id: str) -> OperationResult:
    return OperationResult("not_done", f"{mark.kind} was cut off without a result; it may be asked again")


def _fate_unknown(mark: LoggedOperation, _boot_id: str) -> OperationResult:
    return OperationResult("unknown", f"{mark.kind} was begun and its end was not recorded")


LOST: dict[str, Callable[[LoggedOperation, str], OperationResult]] = {
    op.kind_of(act): lost
    for act, lost in (
        (op.CollectEvidence, _repeat),
        (op.BugReport, _repeat),
        (op.CollectInventory, _repeat),
        (op.RunChecks, _repeat),
        (op.DiscoverFabric, _repeat),
        (op.BmcColdReset, _repeat),
        (op.ResetGpus, _fate_unknown),
        (op.ResetPort, _fate_unknown),
        (op.RestartNode, _rebooted),
        (op.Sanitise, _repeat),
        (op.WriteDeviceFirmware, _repeat),
        (op.VerifyDeviceFirmware, _repeat),
        (op.StartKubelet, _repeat),
        (op.StopKubelet, _repeat),
        (op.ArmDrill, _repeat),
        (op.InjectFault, _fate_unknown),
    )
}
"""The kinds that an agent performs → what can be said of one that was begun and cut off."""
KNOWN_KINDS = tuple(sorted(LOST))
"""The kinds that an agent of this version performs, told with each heartbeat."""
UPGRADE = "upgrade the node's agent to the controller's version"


class NodeOperations:
    """Performs and observes operations of one node. Calls block; at most one act runs at a time."""

    def __init__(
        self,
        node: str,
        body: HostMachine,
        log_of_operations: OperationLog,
        meetings: Meetings | None = None,
        drills: DrillInjections | None = None,
    ) -> None:
        self._node = node
        self._meetings = meetings
        self._drills = drills
        self._body = body
        self._operation_log = log_of_operations
        self._acting = threading.Lock()
        self._current = ""

    def perform(
        self, operation: Operation, epoch: int, begin_by: float = inf, offer: KubeletJoinOffer | None = None
    ) -> Outcome:
        """Do it once, or say why not, or what became of it before. `offer` goes to a kubelet alone.

        After `begin_by` of `boottime` it is not begun any more: whoever gave the order counts it as over by then, and
        may have let customers in again. Raises `sqlite3.Error` where the marks cannot be read; nothing was done then.
        """
        if known := self._operation_log.find(operation.id, operation.attempt):
            return self._known(known)
        if not self._acting.acquire(blocking=False):
            return _outcome(operation, OperationResult("busy", f"{self._current} is running"))
        try:
            if known := self._operation_log.find(operation.id, operation.attempt):
                return self._known(known)
            if operation.kind not in LOST:
                detail = f"{operation.kind!r} is not an operation of an agent"
                return _outcome(operation, OperationResult("refused", detail, {LASTING: UPGRADE}))
            reason = "it came too late: its time was over" if boottime() > begin_by else self._refusal(operation, epoch)
            if reason:
                return _outcome(operation, OperationResult("refused", reason))
            self._body.begin_checks()  # before `revoke` can name this operation: what it calls off is not forgotten
            if self._meetings is not None:
                self._meetings.begin_checks()
            self._current = operation.id
            return self._marked(operation, epoch, offer)
        finally:
            self._current = ""
            self._acting.release()

    def observe(self, operation: Operation, epoch: int) -> Outcome:
        """Look whether the operation's effect is there: done, not_done, unknown, or busy while it runs.

        Acts on nothing.

        Raises `sqlite3.Error` where the marks cannot be read or written.
        """
        self._operation_log.see(epoch)
        mark = self._operation_log.latest(operation.id)
        if mark and mark.attempt >= operation.attempt:
            return self._known(mark)
        boot_id = self._body.boot_id()
        if operation.kind == "reboot" and operation.boot_id not in ("", boot_id):
            return _outcome(operation, OperationResult("done", "the boot id has changed", {"boot_id": boot_id}))
        return _outcome(operation, OperationResult("not_done", "this agent never began it"))

    def refuse(self, order: UnreadableOrder) -> Outcome:
        """Answer an order that cannot be read: what is known of its operation from before, else that it is refused.

        Raises `sqlite3.Error` where the marks cannot be read.
        """
        meant = order.operation
        mark = self._operation_log.latest(meant.id)
        if mark and mark.attempt >= meant.attempt:
            return self._known(mark)
        result = {"perform": "refused", "observe": "not_done", "revoke": "revoked"}[order.mode]
        facts: Facts = {LASTING: UPGRADE} if result == "refused" else {}
        return Outcome(meant.id, self._node, result, order.why, facts, attempt=meant.attempt)

    def revoke(self, operation: Operation, epoch: int) -> Outcome:
        """Call the operation off if it is the one that runs; only checks can be ended early."""
        self._operation_log.see(epoch)
        if self._current != operation.id:
            return _outcome(operation, OperationResult("revoked", "it does not run"))
        if operation.kind != "run_checks":
            return _outcome(operation, OperationResult("revoked", "it goes on: only checks can be ended early"))
        self._body.call_off()
        if self._meetings is not None:
            self._meetings.call_off()
        return _outcome(operation, OperationResult("revoked", "called off"))

    def own(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Outcomes of this node; a disk that came from another machine holds that one's, which nobody takes here."""
        return [one for one in outcomes if one.node == self._node]

    def settle(self) -> list[Outcome]:
        """At the agent's start: what can be said of the acts that an earlier process began. Safe to repeat."""
        return [self._known(mark) for mark in self._operation_log.unfinished() if mark.operation != self._current]

    def _known(self, mark: LoggedOperation) -> Outcome:
        if mark.outcome:
            return mark.outcome
        if mark.operation == self._current:
            return self._of(mark, OperationResult("busy", "it is running"))
        answer = LOST.get(mark.kind, _fate_unknown)(mark, self._body.boot_id())
        outcome = self._of(mark, answer)
        if answer.result != "unknown":
            self._operation_log.finish(outcome)
        return outcome

    def _refusal(self, operation: Operation, epoch: int) -> str:
        if operation.node != self._node:
            return f"it is meant for {operation.node}, this is {self._node}"
        if operation.boot_id not in ("", self._body.boot_id()):
            return f"it is meant for boot {operation.boot_id}, this is {self._body.boot_id()}"
        if epoch < (highest := self._operation_log.epoch()):
            return f"epoch {epoch} is over: {highest} was seen"
        latest = self._operation_log.latest(operation.id)
        if latest and latest.attempt > operation.attempt:
            return f"attempt {operation.attempt} is over: {latest.attempt} was begun"
        return ""

    def _marked(self, operation: Operation, epoch: int, offer: KubeletJoinOffer | None) -> Outcome:
        try:
            self._operation_log.see(epoch)
            self._operation_log.start(operation, epoch, self._body.boot_id())
        except sqlite3.Error as error:
            return _outcome(operation, OperationResult("not_done", f"its start could not be marked on disk: {error}"))
        outcome = _outcome(operation, self._act(operation, offer))
        if outcome.result != "unknown":
            self._operation_log.finish(outcome)
        return outcome

    def _act(self, operation: Operation, offer: KubeletJoinOffer | None) -> OperationResult:
        try:
            if isinstance(operation.act, op.ArmDrill | op.InjectFault):
                return self._drilled(operation.act)
            return self._met(operation, performed(self._body, operation, offer))
        except NeverPossibleError as error:
            return OperationResult("refused", str(error), {LASTING: error.mend})
        except NotPossibleError as error:
            return OperationResult("refused", str(error))
        except ResourceHeldError as error:
            return OperationResult("failed", str(error), {HELD: "; ".join(error.holders)[:1000]})
        except ActFailedError as error:
            return OperationResult("failed", str(error))
        except FateUnknownError as error:
            return OperationResult("unknown", str(error))

    def _drilled(self, act: op.ArmDrill | op.InjectFault) -> OperationResult:
        """The result of a drill's operation. Raises the errors of `host_commands`."""
        if self._drills is None:
            raise NotPossibleError("this agent takes part in no drill")
        if isinstance(act, op.ArmDrill):
            return OperationResult(detail="armed", facts={"proof": self._drills.arm(act)})
        return OperationResult(detail=self._drills.inject(act))

    def _met(self, operation: Operation, done: OperationResult) -> OperationResult:
        """The result with what meetings after it came to; a check that has not passed has none."""
        profile = operation.act.profile if isinstance(operation.act, op.RunChecks) else ""
        if self._meetings is None or not profile or done.facts.get("verdict") != Verdict.passed.value:
            return done
        found = self._meetings.hold(operation.id, profile)
        if not found.facts:
            return done
        verdict, detail = verdict_of(profile, found), f"{done.detail}; {found.detail}"[:500]
        return replace(
            done, detail=detail, facts={**done.facts, **found.facts, "verdict": verdict.value, "detail": detail}
        )

    def _of(self, mark: LoggedOperation, answer: OperationResult) -> Outcome:
        outcome = Outcome(mark.operation, self._node, answer.result, attempt=mark.attempt)
        return replace(outcome, detail=answer.detail, facts=answer.facts, parts=answer.parts)


def _outcome(operation: Operation, answer: OperationResult) -> Outcome:
    outcome = Outcome(operation.id, operation.node, answer.result, attempt=operation.attempt)
    return replace(outcome, detail=answer.detail[:DETAIL_CHARS], facts=answer.facts, parts=answer.parts)
