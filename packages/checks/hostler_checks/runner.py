"""The runner of one check: starts its child, bounds it, reads its answer and has it judged. It never raises."""

import json
import os
import secrets
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from hostler_checks import bounded_child, disturbance
from hostler_checks.answers import Answer, CheckResult, Verdict, answer_of, clean
from hostler_checks.bounded_child import ChildEnd
from hostler_checks.catalogue import CheckSpec
from hostler_checks.child import PROBE
from hostler_checks.disturbance import Watch
from hostler_checks.judging import Comparison, Judgement, judge, residual
from hostler_checks.limits import Limit, ReadingRule
from hostler_checks.plants import PERMISSION
from hostler_checks.reference import Reference, cohort_key, stack_key

PROBE_S, MAX_GPUS = 60.0, 32
NO_GPU = "no GPU was found (where none is expected, say --device cpu)"
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "OPENBLAS_CORETYPE", PERMISSION)
_PASSED_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "OMP_", "TORCH_")


@dataclass(frozen=True)
class Request:
    """One check to run. `params` are all that it takes; `limits` replace the table's, `rules` are laid over them."""

    spec: CheckSpec
    part: str = "cpu"
    seconds: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)
    required: bool = True
    plant: str = ""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    rules: Mapping[str, ReadingRule] = field(default_factory=dict)


class CheckRunner:
    """Runs checks one after the other, each on all its parts at once. `call_off` may come from another thread.

    `watch` looks at the node before and after each, for work of others.
    """

    def __init__(
        self, reference: Reference | None = None, python: str = sys.executable, watch: Watch = disturbance.look
    ) -> None:
        self._reference = reference or Reference()
        self._python = python
        self._watch = watch
        self._stop = threading.Event()

    def parts(self, wanted: str) -> tuple[tuple[str, ...], str]:
        """The parts to look at: GPUs, or the CPU where it is wanted or nothing else is there; and what was amiss."""
        if wanted not in {"auto", "gpu"}:
            return (wanted,), ""
        ended = self._child(PROBE, {"check": PROBE}, PROBE_S)
        answer, trouble = _read(ended, self._nonce)
        if answer is None:
            return ("cpu",), f"the GPUs could not be listed: {trouble}"
        found = tuple(answer.stack)[:MAX_GPUS]
        return (found, "") if found else (("cpu",), NO_GPU)

    def run(self, requests: list[Request], history: Mapping[str, list[float]] | None = None) -> list[CheckResult]:
        """Run the same check on several parts at once. Beside others' work none is slow by its own fault."""
        on_gpus = any(one.part.startswith("gpu") for one in requests)
        before = self._watch(on_gpus)
        if len(requests) == 1:
            answered = [self._answered(requests[0])]
        else:
            with ThreadPoolExecutor(len(requests)) as pool:
                answered = list(pool.map(self._answered, requests))
        others = disturbance.between(before, self._watch(on_gpus))
        pairs = zip(requests, answered, strict=True)
        return [self._judged(one, ended, "" if one.plant else others, history or {}) for one, ended in pairs]

    def call_off(self) -> None:
        """End what runs; it is inconclusive, and so is all that is asked afterwards."""
        self._stop.set()

    @property
    def is_called_off(self) -> bool:
        """Whether somebody has called it off."""
        return self._stop.is_set()

    def residuals(self, request: Request, result: CheckResult) -> dict[str, float]:
        """Returns the result's share of this node's history: key and residual beside peers, of each judged reading."""
        beside = self._beside(request, result.stack, {}, {})
        kept = (name for name in result.readings if name in request.spec.readings)
        judged = [name for name in kept if not request.spec.readings[name].informative]
        return {
            history_key(request, result.stack, name): residual(result.readings[name], name, beside) for name in judged
        }

    _nonce = "probe"

    def _answered(self, request: Request) -> tuple[ChildEnd, Answer | None, str]:
        spec, nonce = request.spec, secrets.token_hex(8)
        asked = {"check": spec.name, "entry": spec.entry, "part": request.part, "seconds": request.seconds}
        asked |= {"params": dict(request.params), "plant": request.plant}
        ended = self._child(nonce, asked, spec.deadline_s + 2 * request.seconds)
        return ended, *_read(ended, nonce)

    def _judged(
        self,
        request: Request,
        answered: tuple[ChildEnd, Answer | None, str],
        others: str,
        history: Mapping[str, list[float]],
    ) -> CheckResult:
        """The verdict. What a test planted is known to be the cause, whoever else worked there."""
        ended, answer, trouble = answered
        if answer is None:
            return _result(request, Judgement(Verdict.inconclusive, trouble), Answer(), ended)
        beside = self._beside(request, answer.stack, answer.readings, history)
        said = judge(request.spec, answer, replace(beside, disturbed=others))
        return replace(_result(request, said, answer, ended), disturbed=clean(others))

    def _beside(
        self,
        request: Request,
        stack: Mapping[str, str],
        readings: Mapping[str, float],
        history: Mapping[str, list[float]],
    ) -> Comparison:
        spec = request.spec
        golden = self._reference.goldens.get(stack_key(spec.name, spec.version, stack))
        cohort = self._reference.cohorts.get(cohort_key(spec.name, spec.version, stack), {})
        past = {name: history.get(history_key(request, stack, name), []) for name in readings}
        return Comparison(
            device=stack.get("device", "cpu"),
            cores=len(os.sched_getaffinity(0)),
            golden=golden.digest if golden else "",
            golden_peers=golden.peers if golden else 0,
            near="" if golden else self._reference.near(spec.name, stack),
            peers=cohort,
            history=past,
            limits=request.limits,
            rules=request.rules,
        )

    def _child(self, nonce: str, request: Mapping[str, Any], deadline_s: float) -> ChildEnd:
        argv = (self._python, "-m", "hostler_checks.child", json.dumps({**request, "nonce": nonce}))
        return bounded_child.run(argv, deadline_s, environment(), self._stop)


def environment() -> dict[str, str]:
    """Returns a child's environment: where programs and libraries are, and the settings of the libraries for GPUs."""
    kept = {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith(_PASSED_PREFIXES)}
    return {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **kept}


def history_key(request: Request, stack: Mapping[str, str], reading: str) -> str:
    """The key of a reading's history on this node: check, part, cohort."""
    return f"{request.spec.name}/{request.part}/{reading}/{cohort_key(request.spec.name, request.spec.version, stack)}"


def _read(ended: ChildEnd, nonce: str) -> tuple[Answer | None, str]:
    """The child's answer, or why there is none. An exit code that says otherwise spoils an answer that is well."""
    tail = clean(ended.tail[-300:])
    if ended.trouble:
        return None, f"{ended.trouble}; it said: {tail}" if tail else ended.trouble
    if not ended.answer:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with {ended.code}"
        return None, f"it {how} and answered nothing{f': {tail}' if tail else ''}"
    try:
        answer = answer_of(ended.answer, nonce)
    except ValueError as error:
        return None, str(error)
    if ended.code and not answer.faults:
        return None, f"its answer and its exit code {ended.code} do not agree"
    if answer.load_s > ended.seconds + 1.0:
        return None, f"it claims {answer.load_s:.1f} s of work in {ended.seconds:.1f} s"
    return answer, ""


def _result(request: Request, said: Judgement, answer: Answer, ended: ChildEnd) -> CheckResult:
    spec = request.spec
    return CheckResult(
        check=spec.name,
        verdict=said.verdict,
        detail=clean(said.detail),
        version=spec.version,
        part=request.part,
        basis=said.basis,
        readings=answer.readings,
        digest=answer.digest,
        key=stack_key(spec.name, spec.version, answer.stack) if answer.digest else "",
        stack=answer.stack,
        seconds=round(ended.seconds, 3),
        load_s=round(min(answer.load_s, ended.seconds), 3),
        grave=spec.grave and said.verdict in (Verdict.failed, Verdict.suspect),
        required=request.required and not (spec.sites and said.uncompared),
        planted=request.plant,
        pairs=answer.pairs,
    )
