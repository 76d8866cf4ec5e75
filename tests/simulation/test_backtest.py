"""A policy on recorded history: the recorded one differs in nothing, another differs where it must, doubt is told."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostler.controller.step_output import StepOutput
from hostler.core.report.backtest_result import Backtest
from hostler.core.state import events as e
from hostler.core.state.input_problems import InvalidInputError
from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import existing_database
from hostler.journal.retention import archive_observations
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch, JournalError
from hostler.sim import hostile_worlds
from hostler.sim.backtest.backtest_run import Question, backtest
from hostler.sim.backtest.backtest_table import format_backtest
from hostler.sim.backtest.decisions import Decision
from hostler.sim.backtest.replay import kind_of
from hostler.sim.failure_rates import load
from hostler.sim.fault_injection.scenario import draw
from hostler.sim.fault_schedule import befall, drawn
from hostler.sim.pool_run import SETTLE_S, START, SimSettings, build
from tests.kit import NOW, POLICY, Drive, a_node, after, configuration, gpu_part, pool_document

pytestmark = pytest.mark.nightly("whole worlds are lived through")

Change = Callable[[dict[str, Any]], None]


def documents_of(path: Path) -> dict[str, str]:
    journal = SqliteJournal(path)
    try:
        return next(r.event.documents for r in journal.records() if isinstance(r.event, e.ConfigActivated))
    finally:
        journal.close()


# the recorded policy


@pytest.mark.parametrize("seed", [0, 1, 9])
def test_the_recorded_policy_differs_in_nothing_on_a_hostile_history(seed: int, tmp_path: Path) -> None:
    """Mutants: a plan's own state is looked at after it was recorded; observations come before their time."""
    path = tmp_path / "journal.db"
    hostile_worlds.trial(draw(seed), lambda: SqliteJournal(path))
    found = backtest(Question(documents_of(path), str(path)))
    assert found.differences == {}
    assert found.service_trial.least == found.service_trial.most == found.service_recorded
    known = found.fidelity
    assert known.remedies > 0
    assert (known.explained, known.unexplained) == (known.remedies, [])
    assert (known.missing, known.surplus) == (0, 0)
    assert known.findings > 0


@pytest.fixture(scope="module")
def run_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a small cluster with one job, twelve days at RSC-1's rates."""
    path = tmp_path_factory.mktemp("run") / "journal.db"
    settings, rates = SimSettings(nodes=32, days=12.0, seed=5), load("rsc1")
    drive, _ = build(settings, rates)
    assert drive.world.training is not None
    drive.world.training.begin()
    befall(drive.world, drawn(rates, settings.nodes, settings.days, settings.seed))
    drive.run(START + timedelta(seconds=SETTLE_S, days=settings.days))
    journal = SqliteJournal(path)
    epoch = journal.acquire("controller-0")
    assert isinstance(drive.journal, MemoryJournal)
    seen = [o for host in drive.world.hosts for o in drive.journal.observations_of(host, limit=10_000)]
    seen.sort(key=lambda o: (o.received or NOW, o.id))
    journal.append(Batch(tuple(drive.journal.records()), tuple(seen)), epoch)
    journal.close()
    return path


def test_the_recorded_policy_differs_in_nothing_on_a_run(run_journal: Path) -> None:
    found = backtest(Question(documents_of(run_journal), str(run_journal)))
    assert found.differences == {}
    assert found.fidelity.remedies > 0
    assert found.fidelity.explained == found.fidelity.remedies
    assert "none" in format_backtest(found)


def test_another_policy_differs_and_is_estimated_by_recorded_stays(run_journal: Path) -> None:
    documents = documents_of(run_journal)
    changed = {**documents, "policy.yaml": documents["policy.yaml"].replace("remedy: gpu_reset", "remedy: reboot")}
    found = backtest(Question(changed, str(run_journal)))
    assert found.differences
    assert found.service_trial.least <= found.service_trial.likely <= found.service_trial.most
    assert found.remedies.get("reboot", 0) > 0
    assert "on trial acts reboot" in format_backtest(found)


# a history written for the purpose


class Story:
    """A small cell whose every batch becomes part of a journal."""

    def __init__(self, path: Path, pools: dict[str, Any] | None = None, spares: tuple[str, ...] = ()) -> None:
        self.path = path
        self.pools = pools or {"train": pool_document(target=4, budget={"count": 2, "percent": 100})}
        self.drive = Drive(
            configuration(self.pools), [*map(a_node, "abcd"), *(a_node(name, pool="") for name in spares)]
        )
        self.journal = SqliteJournal(path)
        self.epoch = self.journal.acquire("controller")
        self.journal.append(Batch(tuple(self.drive.journal)), self.epoch)
        self.drive.checks.append(self._write)

    def _write(self, _drive: Drive, ready: StepOutput) -> None:
        self.journal.append(ready.batch, self.epoch)

    def on_trial(self, change: Change | None = None, **window: Any) -> Backtest:
        tree = yaml.safe_load(POLICY)
        if change is not None:
            change(tree["policy"])
        return self.asked({"policy.yaml": yaml.safe_dump(tree)}, **window)

    def asked(self, documents: dict[str, str], **window: Any) -> Backtest:
        return backtest(Question(documents, str(self.path), **window))


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    told = Story(tmp_path / "journal.db")
    yield told
    told.journal.close()


def kinds(found: Backtest) -> list[tuple[str, str]]:
    return [(row.node, row.kind) for row in found.rows]


def rule(name: str, **fields: Any) -> Change:
    def change(policy: dict[str, Any]) -> None:
        policy["rules"][name].update(fields)

    return change


ECC = "gpu.ecc_uncontained"


def test_another_remedy_is_a_change(story: Story) -> None:
    story.drive.fault("a", "ecc")
    story.drive.run()
    assert story.on_trial().rows == ()
    found = story.on_trial(rule(ECC, remedy="reboot"))
    assert kinds(found) == [("a", "changed")]
    row = found.rows[0]
    assert (row.recorded, row.trial) == ("acts gpu_reset (immediate)", "acts reboot (immediate)")
    assert row.ended
    assert found.remedies == {"gpu_reset": -1, "reboot": 1}
    assert row.recorded_hours > 0
    assert found.typical[0].remedy == "reboot"


def test_a_remedy_that_would_not_have_been_taken_gives_its_time_back_at_best(story: Story) -> None:
    story.drive.fault("a", "ecc")
    story.drive.run()
    found = story.on_trial(rule(ECC, remedy=""))
    assert kinds(found) == [("a", "removed")]
    hours = found.rows[0].trial_hours
    assert (hours.least, hours.likely, hours.most) == (0.0, 0.0, found.rows[0].recorded_hours)
    assert found.service_trial.most == 1.0
    assert found.service_trial.least == found.service_recorded < 1.0


def test_a_remedy_that_would_have_been_taken_is_added(story: Story) -> None:
    story.drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 31, pid=7, name=python3, MMU Fault")
    story.drive.wait(minutes=5)
    assert story.drive.plans() == []
    found = story.on_trial(rule("gpu.application_error", remedy="reboot", timing="immediate"))
    assert kinds(found) == [("a", "added")]
    assert found.disruptions_trial.most == 1
    assert found.service_trial.likely < found.service_recorded


def test_a_rule_in_shadow_takes_nothing_and_tells(story: Story) -> None:
    story.drive.fault("a", "ecc")
    story.drive.observe("b", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 31, pid=7, name=python3, MMU Fault")
    story.drive.run()
    assert kinds(story.on_trial(rule(ECC, shadow=True))) == [("a", "removed")]
    assert kinds(story.on_trial(rule("gpu.application_error", remedy="reboot", shadow=True))) == [("b", "told")]


def test_a_smaller_budget_waits(story: Story) -> None:
    story.drive.script("gpu_reset", "mute", node="a")
    story.drive.fault("a", "ecc")
    story.drive.fault("b", "ecc")
    story.drive.run()
    pool = {"train": pool_document(target=4, budget={"count": 1, "percent": 100, "reserve": 0})}
    tree = {"skus": {"h100": {"gpus": 8}}, "pools": pool}
    found = story.asked({"policy.yaml": POLICY, "pools.yaml": yaml.safe_dump(tree)})
    assert kinds(found) == [("b", "later")]
    assert "budget" in found.rows[0].trial


def test_a_larger_budget_waits_less(tmp_path: Path) -> None:
    tight = Story(tmp_path / "tight.db", {"train": pool_document(budget={"count": 1, "percent": 100, "reserve": 0})})
    tight.drive.script("gpu_reset", "mute", node="a")
    tight.drive.fault("a", "ecc")
    tight.drive.fault("b", "ecc")
    tight.drive.run()
    tight.journal.close()
    tree = {"skus": {"h100": {"gpus": 8}}, "pools": {"train": pool_document(budget={"count": 3, "percent": 100})}}
    found = tight.asked({"policy.yaml": POLICY, "pools.yaml": yaml.safe_dump(tree)})
    assert kinds(found) == [("b", "earlier")]


def test_a_mode_that_only_observes_removes(story: Story) -> None:
    story.drive.fault("a", "ecc")
    story.drive.run()
    tree = {"skus": {"h100": {"gpus": 8}}, "pools": {"train": pool_document(modes={"*": "observe"})}}
    assert kinds(story.asked({"policy.yaml": POLICY, "pools.yaml": yaml.safe_dump(tree)})) == [("a", "removed")]


def test_after_the_first_difference_a_node_has_another_past(story: Story) -> None:
    """Mutant: what follows is compared as if the recorded world had answered the policy on trial."""
    for _ in range(2):
        story.drive.fault("a", "ecc")
        story.drive.run()
        story.drive.wait(days=2)
    found = story.on_trial(rule(ECC, remedy="reboot"))
    assert [row.counterfactual for row in found.rows] == [False, True]
    assert {row.diverged_at for row in found.rows} == {found.rows[0].at}
    assert found.nodes == 1
    assert "its past is another" in format_backtest(found)


def test_another_description_of_the_server_finds_otherwise(story: Story) -> None:
    parts = tuple(gpu_part("a", gpu) for gpu in range(8))
    story.drive.observe("a", "inventory", parts=parts)
    tree = {"skus": {"h100": {"gpus": 9}}, "pools": story.pools}
    found = story.asked({"policy.yaml": POLICY, "pools.yaml": yaml.safe_dump(tree)})
    assert kinds(found) == [("a", "diagnosis")]
    assert "inventory.below_sku" in found.rows[0].trial


def test_what_no_replay_can_judge_is_named(story: Story) -> None:
    story.drive.fault("a", "ecc")
    found = story.on_trial(lambda policy: policy.update(agent_silence_s=60))
    assert found.not_judged == ("agent_silence_s",)
    assert "agent_silence_s" in format_backtest(found)


# windows and archives


def test_a_window_is_judged_from_the_state_that_led_to_it(story: Story) -> None:
    """Mutant: the fold begins with the window."""
    story.drive.fault("a", "ecc")
    story.drive.run()
    story.drive.wait(days=3)
    story.drive.fault("b", "ecc")
    story.drive.run()
    found = story.on_trial(rule(ECC, remedy="reboot"), since=after(days=2))
    assert kinds(found) == [("b", "changed")]
    assert kinds(story.on_trial(rule(ECC, remedy="reboot"), until=after(days=2))) == [("a", "changed")]


def test_archived_observations_are_read_from_their_files(story: Story, tmp_path: Path) -> None:
    story.drive.fault("a", "ecc")
    story.drive.run()
    story.drive.wait(days=3)
    story.drive.fault("b", "ecc")
    story.drive.run()
    whole = story.on_trial(rule(ECC, remedy="reboot"))
    folder = tmp_path / "archive"
    with existing_database(story.path) as database:
        assert archive_observations(database, folder, after(days=2)).observations
    again = story.on_trial(rule(ECC, remedy="reboot"), archive=folder)
    assert again.rows == whole.rows
    assert again.observations == whole.observations
    assert again.fidelity == whole.fidelity


def test_a_window_without_observations_is_no_trial(story: Story, tmp_path: Path) -> None:
    story.drive.fault("a", "ecc")
    story.drive.run()
    story.drive.wait(days=3)
    with existing_database(story.path) as database:
        archive_observations(database, tmp_path / "archive", after(days=2))
    with pytest.raises(InvalidInputError, match="no raw observation"):
        story.on_trial()
    with pytest.raises(JournalError, match="no folder"):
        story.on_trial(archive=tmp_path / "nothing")


@pytest.mark.parametrize(
    ("window", "what"),
    [
        ({"since": after(days=2), "until": after(days=1)}, "is empty"),
        ({"since": after(days=90)}, "nothing is recorded"),
        ({"until": NOW - timedelta(days=1)}, "nothing is recorded"),
    ],
)
def test_an_empty_window_is_refused(story: Story, window: dict[str, Any], what: str) -> None:
    story.drive.wait(days=3)
    story.drive.fault("a", "ecc")
    with pytest.raises(InvalidInputError, match=what):
        story.on_trial(**window)


def test_an_unsound_policy_and_a_missing_journal_are_refused(story: Story, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no remedy"):
        story.on_trial(rule(ECC, remedy="prayer"))
    with pytest.raises(JournalError, match="is not there"):
        backtest(Question({"policy.yaml": POLICY}, str(tmp_path / "none.db")))


@pytest.mark.parametrize(
    ("recorded", "trial", "kind"),
    [
        (Decision("nothing"), Decision("acts", "reboot"), "added"),
        (Decision("waits", "reboot"), Decision("nothing"), "removed"),
        (Decision("acts", "reboot"), Decision("waits", "reboot"), "later"),
        (Decision("waits", "reboot"), Decision("proposes", "reboot"), "earlier"),
        (Decision("acts", "reboot", "pending"), Decision("acts", "reboot", "immediate"), "changed"),
        (Decision("nothing"), Decision("tells", "reboot"), "told"),
        (Decision("acts", "reboot"), Decision("tells", "reboot"), "removed"),
    ],
)
def test_kinds_of_differences(recorded: Decision, trial: Decision, kind: str) -> None:
    assert kind_of(recorded, trial) == kind


def test_a_place_that_was_left_is_out_until_another_serves(tmp_path: Path) -> None:
    """Mutant: whoever leaves its pool is out no longer."""
    story = Story(tmp_path / "journal.db", {"train": pool_document(target=4)}, spares=("s",))
    story.drive.observe("a", "verdict", facts={"check": "train_replay", "verdict": "failed"})
    story.drive.ask("request-replacement", "a", now="true")
    story.drive.run()
    assert story.drive.node("s").pool == "train"
    left = next(r.at for r in story.drive.journal if isinstance(r.event, e.NodeReleased))
    begun = next(r.at for r in story.drive.journal if isinstance(r.event, e.PlanRecorded))
    ended = (r for r in story.drive.journal if isinstance(r.event, e.PlanEnded) and r.event.node == "s")
    serves = next(ended).at
    assert begun < left < serves
    found = story.on_trial()
    out_s = (1 - found.service_recorded) * 4 * (found.until - found.since).total_seconds()
    assert out_s == pytest.approx((serves - begun).total_seconds(), abs=1.5)
    story.journal.close()
