"""Consequences of a drift: nothing in shadow; else a condition, the next idle check, and a later turn as a spare."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.controller.inputs import TrendsSeen
from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.trends import DRIFT, DaysToFloor, DriftFinding, TrendReport
from hostler.core.tables.operations import IDLE_CHECK
from tests.kit import NOW, Drive, a_node, configuration, pool_document

DAY = timedelta(days=1)


def config(mode: str = "act", spares: str = "last", share: float = 0.003, **pool: Any) -> Configuration:
    trends = {"mode": mode, "healthy_share_a_month": share, "spares": spares}
    wanted = {"modes": {"*": "act", IDLE_CHECK: "act"}, "target": 3, **pool}
    slots = {"quiet_s": 60, "count": 40, "percent": 100}
    return configuration(
        {"train": pool_document(**wanted)},
        lambda policy: policy.update(trends=trends, slots={**policy["slots"], **slots}),
    )


def report(*nodes: str, **fields: Any) -> TrendsSeen:
    drifts = (
        DriftFinding(n, "gemm_perf.bf16_tflops", "cuda:0", -0.02, NOW - DAY, NOW, 1e-6, 1e-4, **fields) for n in nodes
    )
    return TrendsSeen(TrendReport(NOW, 60, tuple(drifts)))


def drifting(drive: Drive, node: str = "n1") -> list[str]:
    return [c.part for c in drive.node(node).conditions if c.type == DRIFT]


def test_in_shadow_nothing_stands() -> None:
    """Mutant: shadow that raises all the same."""
    drive = Drive(config("shadow"), (a_node("n1"),))
    drive.step(report("n1"))
    assert drifting(drive) == []


def test_a_drift_stands_with_its_forecast_until_it_is_gone() -> None:
    drive = Drive(config(), (a_node("n1"),))
    drive.step(report("n1", daily=-0.001, floor_in=DaysToFloor(12.0, 8.0, 30.0)))
    assert drifting(drive) == ["gemm_perf.bf16_tflops/cuda:0"]
    (condition,) = [c for c in drive.node("n1").conditions if c.type == DRIFT]
    assert condition.evidence[-1].facts["floor_in_days"] == 12.0
    assert not condition.remedy
    for _ in range(20):
        drive.step(report("n1", daily=-0.001, floor_in=DaysToFloor(12.0, 8.0, 30.0)))
    assert len(drive.events(e.ConditionUpdated)) <= 5, "the same again is recorded when its count doubles"
    drive.step(report())
    assert drifting(drive) == []


def test_what_stands_ends_when_trends_go_back_into_shadow() -> None:
    drive = Drive(config(), (a_node("n1"),))
    drive.step(report("n1"))
    drive.activate(config("shadow"))
    drive.step(report("n1"))
    assert drifting(drive) == []


def test_a_report_of_a_node_that_nobody_knows_says_nothing() -> None:
    drive = Drive(config(), (a_node("n1"),))
    drive.step(report("n9"))
    assert drifting(drive) == []


def begun(drive: Drive, node: str) -> list[float]:
    started = [s.operation for s in drive.events(e.OperationStarted, node) if s.operation.kind == IDLE_CHECK]
    return [one.started.timestamp() for one in started]


def test_a_drift_brings_the_next_idle_check_forward_and_only_once() -> None:
    """Mutants: the node waits for its slot; it is checked again and again."""
    drive = Drive(config(), (a_node("n1"),))
    drive.wait(hours=2)
    calm = len(begun(drive, "n1"))
    drive.wait(minutes=20)
    now = drive.now.timestamp()
    drive.step(
        TrendsSeen(
            TrendReport(
                drive.now, 60, (DriftFinding("n1", "gemm_perf.bf16_tflops", "", -0.02, NOW, drive.now, 1e-6, 1e-4),)
            )
        )
    )
    drive.wait(minutes=3)
    fresh = [at for at in begun(drive, "n1") if at >= now]
    assert len(begun(drive, "n1")) > calm
    assert len(fresh) == 1
    assert fresh[0] - now < 180


def test_a_drift_disturbs_nobody() -> None:
    drive = Drive(config(), (a_node("n1"),))
    drive.step(report("n1"))
    drive.wait(hours=1)
    assert drive.plans() == []


@pytest.mark.parametrize(("how", "taken"), [("take", "s"), ("last", "t"), ("never", "t")])
def test_a_spare_that_drifts_is_delivered_as_the_policy_says(how: str, taken: str) -> None:
    spares = (a_node("s", pool=""), a_node("t", pool=""))
    drive = Drive(config(spares=how, target=1), (a_node("a"), *spares))
    drive.step(report("s"))
    drive.activate(config(spares=how, target=2))
    drive.wait(seconds=5)
    assert [one.node for one in drive.events(e.NodeAssigned) if one.node in ("s", "t")][:1] == [taken]


@pytest.mark.parametrize("share", [0.0, 1.0, 2.0])
def test_a_budget_that_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(InvalidInputError) as refused:
        config(share=share)
    assert "healthy_share_a_month is" in str(refused.value)
