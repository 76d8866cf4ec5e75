"""Slurm's JSON → nodes and jobs: what a 22.05 printed, the shapes of 23.02 and later, and hostile input."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.state.customer_workloads import WorkClass
from hostler.drivers.slurm import wire
from hostler.drivers.slurm.cluster_view import (
    UNSEEN,
    Classes,
    Lens,
    is_drained,
    is_ready,
    other_who_shuts,
    seen,
    workload_id,
)
from hostler.drivers.slurm.hostlist import MAX_NAMES, HostlistError, checked_name, expand
from hostler.drivers.slurm.wire import SlurmJob, SlurmNode, gpu_indexes
from hostler.ports import RefusedError, UnreachableError

# as `sinfo --json` and `squeue --json` of 22.05.8 wrote them, without the fields that nobody reads
OLD_NODE: dict[str, Any] = {
    "name": "gpu001",
    "comment": "",
    "boot_time": 1795260150,
    "gres": "gpu:h100:8",
    "gres_used": "gpu:h100:2(IDX:0-1)",
    "state": "mixed",
    "state_flags": ["DRAIN"],
    "reason": "hostler: reboot (n1-o7)",
    "reason_set_by_user": "root",
    "owner": None,
}
OLD_JOB: dict[str, Any] = {
    "account": "",
    "array_task_id": None,
    "comment": "hello",
    "gres_detail": ["gpu:h100:4(IDX:0-3)", "gpu:h100:4(IDX:0-3)"],
    "job_id": 2,
    "job_state": "RUNNING",
    "nodes": "gpu[002-003]",
    "partition": "main",
    "qos": "",
    "requeue": False,
    "restart_cnt": 0,
    "start_time": 1795260000,
    "user_id": 0,
    "user_name": "root",
}
# in the shape that Slurm's data parser has written since 23.02 (states as words) and 23.11 (states as lists)
NEW_NODE = {
    "name": "gpu001",
    "comment": "",
    "boot_time": {"set": True, "infinite": False, "number": 1795260150},
    "gres": "gpu:h100:8(S:0-1)",
    "state": ["MIXED", "DRAIN"],
    "reason": "hostler: reboot (n1-o7)",
    "reason_set_by_user": "root",
}
NEW_JOB = {
    "account": "",
    "array_task_id": {"set": False, "infinite": False, "number": 0},
    "comment": "hello",
    "gres_detail": ["gpu:h100:4(IDX:0-3)", "gpu:h100:4(IDX:0-3)"],
    "job_id": 2,
    "job_state": ["RUNNING"],
    "nodes": "gpu[002-003]",
    "partition": "main",
    "qos": "",
    "requeue": False,
    "restart_cnt": 0,
    "start_time": {"set": True, "infinite": False, "number": 1795260000},
    "user_id": 0,
    "user_name": "root",
}
HUNG = {"error": "Unspecified error", "errno": -1}
"""Lines that a 22.05 adds to an empty list, with exit status 0, when its controller does not answer."""


def nodes_of(*nodes: Any, **more: Any) -> bytes:
    return json.dumps({"meta": {}, "errors": [], "nodes": nodes, **more}).encode()


def jobs_of(*jobs: Any, **more: Any) -> bytes:
    return json.dumps({"meta": {}, "errors": [], "jobs": jobs, **more}).encode()


# what versions write


@pytest.mark.parametrize("node", [OLD_NODE, NEW_NODE])
def test_a_node(node: dict[str, Any]) -> None:
    assert wire.nodes(nodes_of(node)) == {
        "gpu001": SlurmNode(
            "gpu001", "MIXED", frozenset({"DRAIN"}), "hostler: reboot (n1-o7)", "root", "", 1795260150, 8
        )
    }


@pytest.mark.parametrize("job", [OLD_JOB, NEW_JOB, {**NEW_JOB, "job_state": "RUNNING"}])
def test_a_job(job: dict[str, Any]) -> None:
    (read,) = wire.jobs(jobs_of(job))
    four, began = (0, 1, 2, 3), datetime.fromtimestamp(1795260000, UTC)
    assert read == SlurmJob(
        2, ("gpu002", "gpu003"), user="root", partition="main", comment="hello", began=began, gpus=(four, four)
    )


@pytest.mark.parametrize("stamp", [0, -1, None, 1e300, {"set": False, "infinite": False, "number": 7}])
def test_a_time_that_is_none_is_unknown(stamp: Any) -> None:
    (read,) = wire.jobs(jobs_of({**NEW_JOB, "start_time": stamp}))
    assert read.began is None


@pytest.mark.parametrize(
    ("state", "holds", "ending"),
    [
        ("RUNNING", True, False),
        ("SUSPENDED", True, False),
        ("CONFIGURING", True, False),
        ("COMPLETING", True, True),
        (["COMPLETED", "COMPLETING"], True, True),
        (["PENDING", "COMPLETING"], True, True),
        (["RUNNING", "UPDATE_DB"], True, False),
        ("SOMETHING_NEW", True, False),
        ([], True, False),
        (None, True, False),
        ("PENDING", False, False),
        ("COMPLETED", False, False),
        (["CANCELLED"], False, False),
        ("NODE_FAIL", False, False),
    ],
)
def test_which_jobs_hold_their_nodes(state: Any, holds: bool, ending: bool) -> None:
    """A job that is not known to hold no nodes holds them. Mutant: only RUNNING counts."""
    found = wire.jobs(jobs_of({**NEW_JOB, "job_state": state}))
    assert [job.ending for job in found] == ([ending] if holds else [])


@pytest.mark.parametrize(
    ("state", "flags", "base"),
    [
        ("idle", [], "IDLE"),
        (["IDLE", "DRAIN", "NOT_RESPONDING"], [], "IDLE"),
        ("MIXED+DRAIN", [], "MIXED"),
        ("down", ["DRAIN"], "DOWN"),
        (["IDLE", "DOWN"], [], "UNKNOWN"),
        (["INVALID"], [], "UNKNOWN"),
        ("something new", [], "UNKNOWN"),
        (None, [], "UNKNOWN"),
        ([], [], "UNKNOWN"),
    ],
)
def test_a_state_that_says_nothing_sure_is_unknown(state: Any, flags: list[str], base: str) -> None:
    found = wire.nodes(nodes_of({**OLD_NODE, "state": state, "state_flags": flags}))
    assert found["gpu001"].base == base


# refused whole


@pytest.mark.parametrize(
    "document",
    [
        nodes_of(errors=[HUNG]),
        nodes_of(OLD_NODE, errors=[HUNG]),
        nodes_of(OLD_NODE)[:-3],
        nodes_of(OLD_NODE, OLD_NODE),
        nodes_of(OLD_NODE, {**OLD_NODE, "name": "gpu[1-3]"}),
        nodes_of(OLD_NODE, {**OLD_NODE, "name": ""}),
        nodes_of({**OLD_NODE, "state_flags": "DRAIN"}),
        nodes_of({"state": "idle"}),
        b'{"errors": []}',
        b"",
        b"slurm_load_node: Unable to contact slurm controller",
        b"\xff\xfe",
        b'{"sinfo": []}',
        b"[" * 100_000,
    ],
)
def test_a_list_of_nodes_that_is_not_whole_is_refused(document: bytes) -> None:
    """Mutant: errors beside the list are not looked at, and a controller that hangs has no nodes."""
    with pytest.raises(UnreachableError):
        wire.nodes(document)


@pytest.mark.parametrize(
    "document",
    [
        jobs_of(errors=[HUNG]),
        jobs_of(OLD_JOB, {**OLD_JOB, "job_id": 3, "nodes": "gpu[002-"}),
        jobs_of({**OLD_JOB, "nodes": f"gpu[0-{MAX_NAMES}]"}),
        jobs_of({**OLD_JOB, "job_id": None}),
        b"null",
    ],
)
def test_a_list_of_jobs_that_is_not_whole_is_refused(document: bytes) -> None:
    with pytest.raises(UnreachableError):
        wire.jobs(document)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(document: bytes) -> None:
    for read in (wire.nodes, wire.jobs):
        with pytest.raises(UnreachableError):
            read(document)


# names and numbers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("gpu001", ("gpu001",)),
        ("gpu[001-003,7],cpu1", ("gpu001", "gpu002", "gpu003", "gpu7", "cpu1")),
        ("r[1-2]n[08-09]", ("r1n08", "r1n09", "r2n08", "r2n09")),
        ("a.b-c_d[9-10]x", ("a.b-c_d9x", "a.b-c_d10x")),
    ],
)
def test_hostlists(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "gpu[1-3", "gpu]1[", "gpu[3-1]", "gpu[a-b]", "gpu[]", "gpu[1,]", "a,,b", ",a", "a,", "a b", "-a", "a;b",
        "a[1-2],a1", "gpu[[1]]", "gpu[0-999999999]", "a[0-300]b[0-300]", "ä1", "x" * 300, "a\n",
    ],
)  # fmt: skip
def test_what_is_no_hostlist(text: str) -> None:
    with pytest.raises(HostlistError):
        expand(text)


@given(st.text(alphabet="ab0-9[],- .", max_size=40))
def test_a_hostlist_is_read_or_refused(text: str) -> None:
    try:
        names = expand(text)
    except HostlistError:
        return
    assert all(checked_name(name) == name for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["ALL", "All", "gpu[1-2]", "a,b", "", "-a", " a", "a\n", "a" * 300])
def test_what_is_no_single_name(name: str) -> None:
    with pytest.raises(RefusedError):
        checked_name(name)


@pytest.mark.parametrize(
    ("detail", "indexes"),
    [
        ("gpu:h100:2(IDX:0-1)", (0, 1)),
        ("gpu:3(IDX:0,2-3)", (0, 2, 3)),
        ("gpu:h100:1(IDX:7),nic:2(IDX:0-1)", (7,)),
        ("gpu:a:1(IDX:0),gpu:b:1(IDX:4)", (0, 4)),
        ("gpu:h100:2(CNT:2)", None),
        ("gpu:h100:0(IDX:N/A)", None),
        ("nic:2(IDX:0-1)", None),
        ("gpu:1g.5gb:2(IDX:3-4)", None),
        ("gpu:nvidia_a100_3g.20gb:1(IDX:1)", None),
        ("mps:100(IDX:0)", None),
        ("shard:h100:2(0/4,1/4)", None),
        ("gpu:h100:1(IDX:999)", None),
        ("gpu:h100:2(IDX:0-1) and more", None),
        ("", None),
    ],
)
def test_which_gpus_a_job_uses(detail: str, indexes: tuple[int, ...] | None) -> None:
    """Indexes of slices and shares are no GPUs. Mutant: MIG's second slice is the second GPU."""
    assert gpu_indexes(detail) == indexes


def test_gpus_that_are_told_of_fewer_nodes_than_the_job_has_are_nobodys() -> None:
    (job,) = wire.jobs(jobs_of({**NEW_JOB, "gres_detail": ["gpu:h100:4(IDX:0-3)"]}))
    assert job.gpus == (None, None)


# what follows from it


@pytest.mark.parametrize(
    ("node", "ready", "unseen"),
    [
        (SlurmNode("n", "IDLE"), True, False),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"})), True, False),
        (SlurmNode("n", "MIXED"), True, True),
        (SlurmNode("n", "ALLOCATED"), True, True),
        (SlurmNode("n", "IDLE", frozenset({"COMPLETING"})), True, True),
        (SlurmNode("n", "IDLE", frozenset({"NOT_RESPONDING"}), boot=7), False, True),
        (SlurmNode("n", "IDLE", frozenset({"NOT_RESPONDING"}), boot=0), None, True),
        (SlurmNode("n", "UNKNOWN"), None, True),
        (SlurmNode("n", "UNKNOWN", frozenset({"NOT_RESPONDING"})), None, True),
        (SlurmNode("n", "DOWN", frozenset({"NOT_RESPONDING"})), False, False),
        (SlurmNode("n", "DOWN", frozenset({"REBOOT_ISSUED"})), None, False),
        (SlurmNode("n", "IDLE", frozenset({"POWERED_DOWN"})), False, False),
        (SlurmNode("n", "IDLE", frozenset({"INVALID_REG"})), False, False),
    ],
)
def test_silence_is_not_idleness(node: SlurmNode, ready: bool | None, unseen: bool) -> None:
    """Jobs that are hidden from us (PrivateData) show in the node's state. Mutant: no listed job is no work."""
    view = Lens().view(seen({"n": node}, ()), node)
    assert view is not None
    assert is_ready(node) is ready
    assert [work.id for work in view.workloads] == ([UNSEEN] if unseen else [])


@pytest.mark.parametrize(
    ("node", "drained"),
    [
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"}), "hostler: x"), True),
        (SlurmNode("n", "IDLE", frozenset(), "hostler: x"), False),
        (SlurmNode("n", "MIXED", frozenset({"DRAIN"}), "hostler: x"), False),
        (SlurmNode("n", "ALLOCATED", frozenset({"DRAIN"}), "hostler: x"), False),
        (SlurmNode("n", "DOWN", frozenset({"DRAIN"}), "hostler: x"), False),
        (SlurmNode("n", "UNKNOWN", frozenset({"DRAIN"}), "hostler: x"), False),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN", "NOT_RESPONDING"}), "hostler: x"), False),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN", "COMPLETING"}), "hostler: x"), False),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN", "REBOOT_REQUESTED"}), "hostler: x"), False),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"}), "bad fan"), False),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"}), "see hostler: x"), False),
    ],
)
def test_only_idle_and_drained_for_us_may_be_acted_upon(node: SlurmNode, drained: bool) -> None:
    assert is_drained(node, ()) is drained
    assert not is_drained(node, [SlurmJob(1, ("n",))])


@pytest.mark.parametrize(
    ("node", "who"),
    [
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"}), "NHC: fs", "root"), "root: NHC: fs"),
        (SlurmNode("n", "IDLE", frozenset({"FAIL"}), "dimm", "ann"), "ann: dimm"),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"})), "Slurm: drained"),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"}), "Kill task failed", "root"), "root: Kill task failed"),
        (SlurmNode("n", "DOWN", frozenset(), "Not responding", "slurm"), ""),
        (SlurmNode("n", "DOWN", frozenset({"DRAIN"}), "Not responding", "ann"), "ann: Not responding"),
        (SlurmNode("n", "IDLE", frozenset({"MAINTENANCE"})), "a maintenance reservation"),
        (SlurmNode("n", "IDLE", frozenset({"DRAIN"}), "hostler: x", "root"), ""),
        (SlurmNode("n", "IDLE"), ""),
    ],
)
def test_who_else_keeps_work_away(node: SlurmNode, who: str) -> None:
    assert other_who_shuts(node) == who


def test_a_job_that_ends_has_let_go_of_the_nodes_that_complete_no_more() -> None:
    job = SlurmJob(1, ("a", "b", "c"), ending=True)
    states = {"a": frozenset({"COMPLETING"}), "b": frozenset[str](), "c": frozenset({"NOT_RESPONDING"})}
    read = seen({name: SlurmNode(name, "IDLE", flags) for name, flags in states.items()}, [job])
    assert {name: len(list(read.on(node))) for name, node in read.nodes.items()} == {"a": 1, "b": 0, "c": 1}


def test_gpus_beyond_those_that_the_node_has_are_nobodys() -> None:
    node = SlurmNode("n", "MIXED", gpus=4)
    jobs = [SlurmJob(1, ("n",), gpus=((0, 5),)), SlurmJob(2, ("n",), gpus=((1,),))]
    works = Lens().workloads(seen({"n": node}, jobs), node)
    assert [work.parts for work in works] == [None, ("gpu1",)]
    unnamed = Lens(gpus_named=False).workloads(seen({"n": node}, jobs), node)
    assert [work.parts for work in unnamed] == [None, None]


def test_each_run_of_a_job_is_work_of_its_own() -> None:
    """Consent to one run is none to the next. Mutant: the job's number alone."""
    assert [workload_id(SlurmJob(7, ("n",), restarts=run)) for run in (0, 3)] == ["job-7.0", "job-7.3"]


def test_classes() -> None:
    spot, graceful = WorkClass.interruptible, WorkClass.graceful
    classes = Classes(qos={"low": spot}, partition={"debug": graceful, "low": spot})
    job = SlurmJob(1, ("n",))
    read = {
        "": classes.of(job),
        "qos": classes.of(SlurmJob(1, ("n",), qos="low", partition="debug")),
        "partition": classes.of(SlurmJob(1, ("n",), partition="debug")),
        "comment": classes.of(SlurmJob(1, ("n",), qos="low", comment="x,hostler:uninterruptible y")),
        "no class": classes.of(SlurmJob(1, ("n",), comment="hostler:infrastructure")),
    }
    never = WorkClass.uninterruptible
    assert read == {"": never, "qos": spot, "partition": graceful, "comment": never, "no class": never}
