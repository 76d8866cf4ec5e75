"""Every law's watcher is seen to catch something: a bug is planted for it, and a seed is found that shows it."""

# ruff: noqa: SLF001 - a mutant is planted inside

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core import advance
from hostler.core.answers import Wait
from hostler.core.diagnose import judge as diagnose
from hostler.core.model import Blocker, Mode, Waiting
from hostler.core.policy import disturb, guards
from hostler.core.recipes import RECIPES
from hostler.engine import controller, intake
from hostler.engine.journal.memory import MemoryJournal
from hostler.engine.ports import Lease
from hostler.sim.hostile import judge

SEEDS = 40


def caught(law: int) -> str:
    """What the law's watcher says in the first seed in which it says anything. Fails where none does."""
    for seed in range(SEEDS):
        try:
            found = judge(seed).violations
        except Exception:  # noqa: BLE001 - a mutant may trip over its own bug; its law's watcher is to say so elsewhere
            continue
        for violation in found:
            if violation.law == law:
                return violation.text
    pytest.fail(f"no watcher of law {law} noticed the planted bug in {SEEDS} seeds")


def test_law_1_one_epoch_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: taking the lease does not fence the last holder."""
    acquire = MemoryJournal.acquire

    def same(self: MemoryJournal, holder: str, address: str = "", seen: Lease | None = None) -> int:
        acquire(self, holder, address, seen)
        self._lease = replace(self._lease, epoch=1)
        return 1

    monkeypatch.setattr(MemoryJournal, "acquire", same)
    assert "epoch 1" in caught(1)


def test_law_2_cursors_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a sender that begins again is believed again."""
    observe = controller.Controller._observe

    def believe(self: controller.Controller, seen: intake.Observed) -> None:
        self.cursors.clear()
        observe(self, seen)

    monkeypatch.setattr(controller.Controller, "_observe", believe)
    assert "raised it before" in caught(2)


def test_law_3_unknown_is_repeated_blindly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: an unknown outcome counts as one that did not happen."""
    of_reply = intake.of_reply

    def blind(scene: Any, node: Any, outcome: Any) -> Any:
        return of_reply(scene, node, replace(outcome, result="not_done") if outcome.result == "unknown" else outcome)

    monkeypatch.setattr(intake, "of_reply", blind)
    assert "is repeated" in caught(3)


def test_law_3_the_undo_tail_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a plan that ends early leaves its cordon behind."""
    monkeypatch.setattr(advance, "undo_tail", lambda _plan: ())
    assert "left out" in caught(3)


def test_law_4_the_budget_counts_current_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: percent and count are of who is left, so that every node moved away makes room for the next."""

    def current(scene: Any, pool: Any) -> int:
        index = scene.fleet.index
        return int(index.count(f"pool:{pool.name}") - index.count(f"healthy:{pool.name}"))

    monkeypatch.setattr(guards, "unavailable", current)
    assert "are out already" in caught(4)


def test_law_4_holds_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a person's hold stops nobody."""
    monkeypatch.setitem(guards._ANSWERS, "hold", lambda _scene, _request: [])
    assert "against the hold" in caught(4)


def test_law_4_every_pool_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the mode of a pool is not looked at."""
    monkeypatch.setattr("hostler.core.remedy.mode_of", lambda *_: Mode.act)
    assert "its pool stands at" in caught(4)


def test_law_5_blockers_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: who waits does not say for whom."""
    monkeypatch.setattr(controller, "Waiting", lambda what, since, _blockers: Waiting(what, since, ()))
    assert "names no blocker" in caught(5)


def test_law_6_a_persons_cordon_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a plan that ends uncordons whatever it finds."""
    monkeypatch.setattr(advance, "_cordoned_by_person", lambda _scene, _node: False)
    assert "is uncordoned against" in caught(6)


def test_law_7_user_space_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a line is as good as the kernel's, whoever wrote it."""

    class Everything:
        __hash__ = object.__hash__

        def __eq__(self, _other: object) -> bool:
            return True

        def __ne__(self, _other: object) -> bool:
            return False

    monkeypatch.setattr(diagnose, "KERNEL_FACILITY", Everything())
    assert "user space wrote" in caught(7)


def test_law_7_silence_alone_convicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: an agent that is not heard needs no second witness."""
    monkeypatch.setattr(guards, "has_second_witness", lambda _present, _node: True)
    assert "no second witness" in caught(7)


def test_law_7_a_remedy_forgets_its_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a power cycle leads straight back to service."""
    recipe = RECIPES["power_cycle"]
    unchecked = tuple(row for row in recipe.steps if row.operation != "run_checks")
    monkeypatch.setitem(RECIPES, "power_cycle", replace(recipe, steps=unchecked))
    assert "no check has passed since" in caught(7)


def test_law_8_nothing_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: an operation without an answer is waited for, whatever its deadline."""
    outstanding = advance._outstanding

    def patient(scene: Any, node: Any, plan: Any, operation: Any) -> Any:
        if operation.deadline > scene.now:
            return outstanding(scene, node, plan, operation)
        blocker = Blocker("operation", operation.id, "it will come", "it comes")
        return Wait(plan.name, (blocker,), until=scene.now + timedelta(hours=1))

    monkeypatch.setattr(advance, "_outstanding", patient)
    assert "was due at" in caught(8)


def test_law_9_everybody_is_doomed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: any fault on a node gives its whole work up."""
    monkeypatch.setattr(disturb, "is_doomed", lambda *_: True)
    assert "without a right to" in caught(9)


def test_law_9_an_agreement_holds_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a pool that lets work be ended after its drain deadline has it ended at once."""
    monkeypatch.setattr(advance, "_agreed_at", lambda scene, _plan, _pool: scene.now)
    assert "without a right to" in caught(9)
