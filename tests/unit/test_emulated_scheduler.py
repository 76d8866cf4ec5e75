"""The scheduler in memory of `hostler up`: what a turn and a look cost grows with the fleet, not with its square."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import Assignment
from hostler.sim.emulated.emulated_scheduler import EmulatedScheduler, JobSpec
from tests.kit import NOW, a_node

NODES = 200


class Counted:
    """A cluster of one pool; `asked` counts how often a machine was asked whether it is alive."""

    def __init__(self, jobs: list[JobSpec]) -> None:
        self.asked = 0
        self.dead: set[str] = set()
        self.scheduler = EmulatedScheduler(jobs)
        self.scheduler.alive = self._alive
        self.now = NOW
        self.scheduler.clock = lambda: self.now
        for number in range(NODES):
            node = replace(a_node(f"n{number:03d}"), assignment=Assignment("train", "acme", "lab", NOW))
            self.scheduler.restore(node)

    def _alive(self, name: str) -> bool:
        self.asked += 1
        return name not in self.dead

    def began(self) -> dict[str, datetime | None]:
        """Node → since when its work runs, where it has any."""
        shown = self.scheduler.views().nodes
        return {name: view.workloads[0].began for name, view in shown.items() if view.workloads}

    def works(self) -> dict[str, str]:
        """Node → its work's job, where it has any."""
        shown = self.scheduler.views().nodes
        return {name: view.workloads[0].job for name, view in shown.items() if view.workloads}


def one_node_jobs(count: int) -> list[JobSpec]:
    return [JobSpec(f"chat-{n}", "train", "acme", 1, WorkClass.graceful, 1e9) for n in range(count)]


def test_a_turn_asks_each_machine_a_few_times_however_many_jobs_wait() -> None:
    """Mutant: each waiting job looks through the whole fleet for a free node."""
    cell = Counted(one_node_jobs(NODES + 50))
    cell.scheduler.turn(0.0)
    assert cell.asked <= 3 * NODES
    assert len(set(cell.works().values())) == NODES, "one job on each node"
    cell.asked = 0
    cell.scheduler.turn(0.5)
    assert cell.asked <= 3 * NODES


def test_what_has_not_changed_is_the_same_object_at_the_next_look() -> None:
    """Mutants: every look makes every view anew; a job that went is shown for ever."""
    cell = Counted(one_node_jobs(NODES // 2))
    cell.scheduler.turn(0.0)
    before = cell.scheduler.views().nodes
    cell.scheduler.cordon("n000", "pat")
    cell.scheduler.turn(0.5)
    after = cell.scheduler.views().nodes
    assert [name for name in after if after[name] is not before[name]] == ["n000"]
    cell.dead = {"n001"}
    cell.scheduler.turn(1.0)
    assert "n001" not in cell.works()
    assert len(cell.works()) == NODES // 2, "its job has begun on another node"


def test_a_job_over_many_nodes_ends_everywhere_and_begins_where_there_is_room() -> None:
    """Mutants: a part of a job stays behind on the nodes that it left; two jobs share a node."""
    big = JobSpec("pretrain", "train", "acme", NODES - 10, WorkClass.uninterruptible, 60.0)
    cell = Counted([big, *one_node_jobs(10)])
    cell.scheduler.turn(0.0)
    assert len(cell.works()) == NODES
    first = cell.works()["n000"]
    cell.dead = {"n000"}
    cell.scheduler.turn(1.0)
    assert first not in cell.works().values(), "it has no room without that node"
    cell.dead = set()
    cell.scheduler.turn(1.5)
    assert list(cell.works().values()).count(first) == NODES - 10
    cell.scheduler.turn(120.0)
    assert first not in cell.works().values()
    assert len(cell.works()) == NODES, "the same kind of job was submitted again"


def test_since_when_a_job_runs_is_told_and_is_another_moment_once_it_has_begun_again() -> None:
    """Mutants: the moment of the look; a job that has lost a node goes on from where it began first."""
    big = JobSpec("pretrain", "train", "acme", NODES, WorkClass.uninterruptible, 60.0)
    cell = Counted([big])
    cell.scheduler.turn(0.0)
    first, cell.now = cell.now, NOW + timedelta(seconds=30)
    assert set(cell.began().values()) == {first}
    cell.dead = {"n000"}
    cell.scheduler.turn(30.0)
    cell.dead = set()
    cell.scheduler.turn(30.5)
    assert set(cell.began().values()) == {cell.now}, "no look was taken while it stood still"
    assert len(cell.began()) == NODES
