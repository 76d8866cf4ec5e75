"""Jobs and pods of idle checks, read: verdicts in everybody's words, and hostile ones that prove nothing."""

import json
from typing import Any

import msgspec
import pytest

from hostler.agent.check_plugins import read_answers
from hostler.agent.limited_command import CommandEnd
from hostler.core.state.model import Verdict
from hostler.drivers.check_message import MAX_DETAIL, MAX_MESSAGE, CheckOutcome, read_verdict
from hostler.drivers.kubernetes import jobs
from hostler.drivers.kubernetes.idle_check_jobs import job_for, job_name
from hostler.drivers.kubernetes.jobs import (
    CheckPod,
    found,
    progress,
    read_check_pod,
    read_job,
)
from hostler.drivers.kubernetes.workloads import CHECKS, Spaces, workload
from tests.contract.slot_world import a_check
from tests.kit import a_node
from tests.wire.test_kubernetes_wire import a_pod

PASSED, FAILED, UNSURE = Verdict.passed, Verdict.failed, Verdict.inconclusive
SAID: list[tuple[int, str, Verdict]] = [
    (0, '{"verdict": "passed"}', PASSED),
    (0, '{"verdict": "failed", "detail": "gpu3"}', FAILED),
    (2, '{"verdict": "failed", "detail": "gpu3"}', FAILED),
    (2, '{"verdict": "passed"}', UNSURE),
    (3, '{"verdict": "passed"}', UNSURE),
    (0, '{"verdict": "inconclusive", "detail": "no peer"}', UNSURE),
    (0, '{"verdict": "perfect"}', UNSURE),
    (0, '{"verdict": 1}', UNSURE),
    (0, "{", UNSURE),
    (0, '{"verdict": "passed"}\nPASSED', UNSURE),
    (0, '{"verdict": "passed"}\n{"verdict": "failed"}', FAILED),
    (0, '{"detail": "all well"}', UNSURE),
    (0, "OK - 8 GPUs", PASSED),
    (1, "WARNING - warm", FAILED),
    (2, "CRITICAL", FAILED),
    (3, "UNKNOWN", UNSURE),
    (137, "", UNSURE),
    (-1, "OK", UNSURE),
    (0, '{"verdict": "passed"}\n' * 65, UNSURE),
    (0, '{"a":' * 5000, UNSURE),
]


@pytest.mark.parametrize(("code", "said", "verdict"), SAID)
def test_a_last_message_is_read_as_a_plug_ins_answer_is(code: int, said: str, verdict: Verdict) -> None:
    """Mutants: an exit code of 0 is passed whatever was said; "passed" is, whatever the exit code. One contract."""
    assert read_verdict(code, said).verdict is verdict
    worst = [answer.verdict for answer in read_answers(CommandEnd(code, said.encode(), "", ""))]
    assert (FAILED if FAILED in worst else UNSURE if UNSURE in worst else PASSED) is verdict


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_a_container_without_a_word_is_inconclusive_though_a_plug_in_is_not(code: int) -> None:
    """A plug-in is named by the site and has run; a container may be any, and ends with 0 where it did nothing."""
    assert read_verdict(code, "").verdict is UNSURE
    assert [one.verdict for one in read_answers(CommandEnd(0, b"", "", ""))] == [PASSED]


def test_what_is_said_is_short_and_printable_when_it_is_told() -> None:
    told = read_verdict(2, json.dumps({"verdict": "failed", "detail": "\x1b[31m" + "x" * 5000})).detail
    assert len(told) <= MAX_DETAIL
    assert told.isprintable()
    pod = {"metadata": {}, "status": {"containerStatuses": [{"state": {"terminated": {"message": "y" * 99_999}}}]}}
    assert len(read_check_pod(msgspec.json.encode(pod)).said) == MAX_MESSAGE


def pod(name: str = "p1", **fields: Any) -> CheckPod:
    base: dict[str, Any] = {"phase": "Running", "code": None, "said": "", "taken": "", "unplaced": "", "waits": ""}
    said = {**base, **fields}
    return CheckPod(f"{CHECKS}/{name}", name, CHECKS, name, "j", "box-1", annotations={}, **said)


def a_job(ended: str = "", **spec: Any) -> jobs.KubeJob:
    conditions = (
        [{"type": ended, "status": "True", "reason": "DeadlineExceeded", "message": "too long"}] if ended else []
    )
    owners = spec.pop("owners", [])
    meta = {"name": "j", "namespace": "acme", "ownerReferences": owners}
    status = {"conditions": conditions, "succeeded": spec.pop("succeeded", 0)}
    return read_job(msgspec.json.encode({"metadata": meta, "spec": spec, "status": status}))


GOOD: dict[str, Any] = {"phase": "Succeeded", "code": 0, "said": '{"verdict": "passed"}'}


@pytest.mark.parametrize(
    ("job", "pods", "verdict"),
    [
        (a_job(), [], None),
        (a_job(), [pod()], None),
        (a_job(), [pod(phase="Pending", unplaced="0/1 nodes are available")], None),
        (a_job(), [pod(phase="Pending", waits="ImagePullBackOff")], None),
        (a_job(), [pod(**GOOD)], PASSED),
        (a_job("Complete"), [pod(**GOOD)], PASSED),
        (a_job(), [pod(**GOOD, taken="PreemptionByScheduler: x")], UNSURE),
        (a_job(), [pod(phase="Failed", code=143, taken="PreemptionByScheduler: x")], UNSURE),
        (a_job(), [pod(), pod("p2", **GOOD)], UNSURE),
        (a_job(), [pod(phase="Failed", code=2, said="gpu3 is slow")], FAILED),
        (a_job(), [pod(phase="Failed", code=2)], UNSURE),
        (a_job(), [pod(phase="Succeeded", code=0)], UNSURE),
        (a_job("Failed"), [pod(phase="Failed", code=143)], UNSURE),
        (a_job("Failed"), [], UNSURE),
        (a_job("Complete"), [], UNSURE),
        (a_job("Failed"), [pod()], UNSURE),
    ],
)
def test_what_was_taken_away_or_never_spoke_is_inconclusive(
    job: jobs.KubeJob, pods: list[CheckPod], verdict: Verdict | None
) -> None:
    """Mutants: a Job that failed is a check that failed; one that is complete has passed."""
    assert found(job, pods).verdict is verdict
    assert isinstance(found(job, pods), CheckOutcome)


def test_work_is_known_by_what_made_its_job_and_tells_how_far_that_is() -> None:
    """Mutant: the blocker names the pod, or the child Job that nobody has heard of."""
    kube_pod = a_pod(owner="Job/train-0")
    alone = read_job(msgspec.json.encode({"metadata": {"name": "train-0", "namespace": "acme"}, "spec": {}}))
    told = workload(kube_pod, (), Spaces(), alone)
    assert (told.job, told.progress) == ("acme/train-0", "Job/train-0, 1 of 1 completions left")
    made = a_job(completions=8, succeeded=3, owners=[{"kind": "JobSet", "name": "train", "controller": True}])
    told = workload(kube_pod, (), Spaces(), made)
    assert (told.job, told.progress) == ("acme/train", "JobSet/train, 5 of 8 completions left")
    assert "suspended" in progress(a_job(suspend=True))
    assert "has ended (Failed)" in progress(a_job("Failed"))
    assert workload(kube_pod, (), Spaces()).progress == ""


def test_only_what_lies_in_the_checks_namespace_counts_as_our_check() -> None:
    """Mutant: who annotates a pod so is taken for our check."""
    ours = {"hostler.dev/operation": "n1-idle-1"}
    assert workload(a_pod("acme", annotations=ours), (), Spaces()).check == ""
    assert workload(a_pod(CHECKS, annotations=ours), (), Spaces()).check == "n1-idle-1"
    assert workload(a_pod(CHECKS), (), Spaces()).check != ""


def test_a_jobs_name_follows_from_operation_and_owner_and_fits_a_label() -> None:
    node = a_node("n1")
    one = a_check(node, "i", 7)
    assert job_name(one, "a") == job_name(one, "a")
    others = {job_name(one, "b"), job_name(a_check(node, "i", 8), "a")}
    assert job_name(one, "a") not in others
    for name in ("Ä" * 80, "GPU_01.rack-7/" * 9, "..."):
        made = job_name(msgspec.structs.replace(one, node=name), "a")
        assert len(made) <= 63 - len("-xxxxx")
        assert made.replace("-", "").isalnum()
        assert made.isascii()


def test_a_job_asks_for_all_gpus_of_its_one_node_and_gives_way_to_everybody() -> None:
    spec = job_for(a_check(a_node("n1"), "check:1"), "box-1", "cell-a", {"nvidia.com/gpu": "8"})["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert 0 < spec["activeDeadlineSeconds"] <= 120
    inside = spec["template"]["spec"]
    assert inside["priorityClassName"] == "hostler-check"
    assert inside["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    required = inside["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["box-1"]}]}
    ]
    assert not [t for t in inside["tolerations"] if t["key"] != "nvidia.com/gpu"]
