"""Bodies of version 1: what they left to tables is read from what those tables said then."""

import msgspec
import pytest
from msgspec.structs import replace

from hostler.core.state import snapshot, version_1
from hostler.core.state.events import PlanRecorded
from hostler.core.state.fleet import Fleet
from hostler.core.state.plan_rules import PlanRules
from hostler.core.state.upcast import downcast, upcast
from hostler.core.tables.recipes import RECIPES
from tests.contract.journal_samples import sample
from tests.kit import a_node


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_a_plan_that_was_recorded_without_rules_ends_by_those_of_its_day(recipe: str) -> None:
    """Mutant: a recipe's rules change, and with them those of plans that are under way.

    A recipe whose rules are changed on purpose is left out here.
    """
    recorded: PlanRecorded = sample(PlanRecorded)
    plan = replace(recorded.plan, name=recipe, rules=RECIPES[recipe].rules)
    new = msgspec.json.decode(msgspec.json.encode(replace(recorded, plan=plan)))
    old = downcast(new, 2, 1)
    assert "rules" not in old["plan"]
    assert msgspec.convert(upcast(old, 1), PlanRecorded).plan == plan


def test_a_plan_in_an_older_snapshot_ends_by_the_rules_of_its_day() -> None:
    """Mutant: it takes the defaults, and a release that is under way releases nobody."""
    fleet = Fleet()
    plan = replace(sample(PlanRecorded).plan, name="release", rules=PlanRules())
    fleet.put_node("a", a_node("a", plan=plan))
    fleet.merge()
    body = msgspec.msgpack.decode(snapshot.dump(snapshot.state_of(fleet)))
    read = snapshot.load(msgspec.msgpack.encode(body | {"version": 3})).nodes["a"].plan
    assert read is not None
    assert read.rules == version_1.rules_of("release") == RECIPES["release"].rules
