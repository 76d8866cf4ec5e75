"""Program faults that recur on one GPU: when they are the programs', and when they are the GPU's."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.recurrence import weigh_programs
from hostler.core.events import ConditionRaised, ConditionUpdated
from hostler.core.model import Evidence, Node, Observation, Phase, Position, WorkClass, Workload
from hostler.core.standing import stand

NOW = datetime(2025, 3, 4, tzinfo=UTC)
NODE = Node(
    id="n1",
    position=Position("c1"),
    sku="h100",
    phase=Phase.production,
    phase_since=NOW,
    registered_at=NOW,
    boot_id="b",
    boots=("b",),
    slots=(("gpu0", "G0"), ("gpu1", "G1")),
    addresses=(("pci:0000:4c:00", "G0"), ("pci:0000:9b:00", "G1")),
)
G0, G1 = "0000:4c:00", "0000:9b:00"


def job(name: str, tenant: str = "t1", parts: tuple[str, ...] = ("gpu0",)) -> Workload:
    return Workload(name, tenant, WorkClass.graceful, parts, job=name)


class History:
    """A node to which things happen, a minute apart."""

    def __init__(self) -> None:
        self.node = NODE
        self.minutes = 0

    def fault(self, workload: Workload | None, pci: str = G0, code: int = 13, process: str = "python3") -> set[str]:
        """The GPUs suspected because of one more fault."""
        self.minutes += 1
        text = f"NVRM: Xid (PCI:{pci}): {code}, pid={self.minutes}, name={process}, Ch 00000008"
        seen = Observation("n1", "kernel_log", "agent", "s", self.minutes, boot_id="b", text=text, facility=0)
        found = weigh_programs(self.node, judge(seen, self.node, None), (workload,) if workload else None)
        for finding in found:
            self._record(finding)
        return {finding.part for finding in found if finding.type == "gpu.suspect"}

    def _record(self, finding: Finding) -> None:
        at = NOW + timedelta(minutes=self.minutes)
        event = stand(self.node, finding, Evidence(at, "agent", finding.text, "", finding.facts), "b")
        if isinstance(event, ConditionRaised | ConditionUpdated):
            raised = event.condition
            others = tuple(one for one in self.node.conditions if one.id != raised.id)
            self.node = replace(self.node, conditions=(*others, raised))


def test_one_program_may_fail_as_often_as_it_likes() -> None:
    """Mutant: count faults instead of jobs; one tenant's bug then costs a GPU its place."""
    history = History()
    assert not any(history.fault(job("j1")) for _ in range(40))


def test_different_jobs_on_one_gpu_make_it_suspect() -> None:
    history = History()
    assert [history.fault(job(name)) for name in ("j1", "j2", "j3")] == [set(), set(), {"G0"}]


def test_a_job_is_news_however_often_the_one_before_failed() -> None:
    """Mutant: a repeat within the quiet time is no news, whoever's it is; the second job is then never told of."""
    history = History()
    assert not any(history.fault(job("j1")) for _ in range(20))
    assert [history.fault(job(name)) for name in ("j2", "j3")] == [set(), {"G0"}]


def test_two_tenants_are_enough() -> None:
    history = History()
    assert [history.fault(job("j1", "t1")), history.fault(job("j2", "t2"), code=31)] == [set(), {"G0"}]


def test_program_names_count_only_where_no_job_is_known() -> None:
    """Mutant: count names within a job; a tenant that renames its processes then costs a GPU its place."""
    history = History()
    assert [history.fault(None, process=name) for name in "abc"] == [set(), set(), {"G0"}]
    history = History()
    assert not any(history.fault(job("j1"), process=name) for name in "abcdefgh")


def test_a_job_that_fails_on_several_gpus_speaks_against_itself() -> None:
    history = History()
    both = ("gpu0", "gpu1")
    for name in ("j1", "j2", "j3", "j4"):
        assert history.fault(job(name, parts=both), G1) == set()
        assert history.fault(job(name, parts=both), G0) == set()


def test_other_codes_and_other_gpus_do_not_count() -> None:
    history = History()
    assert not any(history.fault(job(name), code=43) for name in ("j1", "j2", "j3", "j4"))
    assert history.fault(job("j5")) == set()
    assert history.fault(job("j6", parts=("gpu1",)), G1) == set()


def test_a_suspect_awaits_verification() -> None:
    history = History()
    for name in ("j1", "j2", "j3"):
        history.fault(job(name))
    (suspect,) = [one for one in history.node.conditions if one.type == "gpu.suspect"]
    assert suspect.evidence[0].facts["verification"] == "pending"
    assert suspect.evidence[0].facts["jobs"] == 3
