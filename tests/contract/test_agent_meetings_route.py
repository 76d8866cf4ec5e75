"""Questions for somebody to meet: taken of a node whose check is under way and has an address, of nobody else."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.model import Assignment, Operation
from hostler.core.state.operations import IdleCheck, OperationAct, ResetGpus, RunChecks
from hostler.polling.meeting_questions import is_under_check
from tests.contract.api_world import House, house
from tests.kit import NOW, a_node, after

BODY: dict[str, Any] = {"node": "n0", "operation": "o1", "via": "mlx5_0", "address": "10.0.0.1", "port": 4242}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.adopt(1)
        yield inside


async def test_a_node_in_service_meets_nobody(world: House) -> None:
    """Mutants: an agent may ask whenever it likes; its word of an operation is believed."""
    status, told = await world.agent("n0").post("/v1/agent/meetings", BODY)
    assert (status, "no check of 'n0' is under way" in str(told)) == (409, True)


@pytest.mark.parametrize("wrong", [{"port": 0}, {"via": ""}, {"via": "a>b"}, {"gbps": -1.0}, {"address": "x" * 65}])
async def test_a_malformed_question_is_refused_whole(world: House, wrong: dict[str, Any]) -> None:
    status, _ = await world.agent("n0").post("/v1/agent/meetings", BODY | wrong)
    assert status in (400, 422)


@pytest.mark.parametrize(
    ("act", "cluster", "may"),
    [
        (RunChecks("burn_in"), "k1", True),
        (RunChecks("suspect"), "k1", True),
        (RunChecks("gate"), "k1", False),
        (IdleCheck(), "", True),
        (IdleCheck(), "k1", False),
        (ResetGpus(), "", False),
    ],
)
def test_only_checks_that_hold_the_node_are_ones_to_meet_in(act: OperationAct, cluster: str, may: bool) -> None:
    """Mutants: a gate in service; an idle check that a scheduler may end without the agent."""
    check = Operation("o1", act, "n0", "", 0, NOW, after(minutes=20))  # type: ignore[arg-type]
    node = a_node("n0", assignment=Assignment("train", "acme", cluster, NOW), operation=check)
    assert is_under_check(node, "o1") is may
    assert not is_under_check(node, "o2")
