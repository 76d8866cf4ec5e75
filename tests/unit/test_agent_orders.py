"""Orders as an agent reads them: what it does not know is refused by name, and nothing of it is done."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.agent.controller_client import (
    MAX_ORDER_BYTES,
    OperationOrder,
    UnavailableError,
    UnreadableOrder,
    read_order,
)
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.gate_expectation import MAX_GPUS, Expected, ExpectedGpu, Faulted, bounded
from hostler.core.state.model import Operation
from hostler.core.state.operations import ResetGpus, RunChecks

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = OperationOrder(Operation("o1", ResetGpus(("gpu3",)), "n1", "p1", 0, NOW, NOW), 3, left_s=60.0)
MANY = {"kind": "run_checks", "expects": {"known": [{}] * (MAX_GPUS + 1)}}
HOSTILE: list[Any] = [
    {"kind": "sh", "command": "rm -rf /"},
    {"kind": "gpu_reset", "gpus": ["gpu3"], "force": True},
    {"kind": "gpu_reset", "gpus": "gpu3"},
    {"kind": "gpu_reset", "links": "18"},
    {"kind": ["gpu_reset"]},
    {"gpus": ["gpu3"]},
    {"kind": "run_checks", "expects": "{}"},
    {"kind": "run_checks", "expects": {"gpus": "8"}},
    {"kind": "run_checks", "expects": {"gpus": -1}},
    {"kind": "run_checks", "expects": {"gpus": 99_999_999}},
    {"kind": "run_checks", "expects": {"known": [{"serial": 5}]}},
    {"kind": "run_checks", "expects": {"faulted": [{"type": "x" * 500}]}},
    {"kind": "run_checks", "profile": "x" * MAX_ORDER_BYTES},
    MANY,
    "reboot",
    None,
]


def told(act: Any, mode: str = "perform") -> msgspec.Raw:
    order = json.loads(msgspec.json.encode(ORDER))
    order["operation"]["act"] = act
    return msgspec.Raw(json.dumps(order | {"mode": mode}).encode())


def test_what_is_meant_survives_the_way() -> None:
    raw = msgspec.Raw(msgspec.json.encode(ORDER))
    read = read_order(raw, 5.0)
    assert isinstance(read, OperationOrder)
    assert (read.operation, read.left_s) == (ORDER.operation, 65.0)


@pytest.mark.parametrize("act", HOSTILE, ids=range(len(HOSTILE)))
def test_an_order_that_cannot_be_read_is_refused_and_says_why(act: Any, tmp_path: Path) -> None:
    """Mutants: one such order hides all others of its answer; an argument that is not known is passed over."""
    order = read_order(told(act), 0.0)
    assert isinstance(order, UnreadableOrder)
    body, operation_log = EmulatedHostMachine("n1"), OperationLog(tmp_path / "marks.sqlite")
    outcome = NodeOperations("n1", body, operation_log).refuse(order)
    assert (outcome.operation, outcome.result, outcome.attempt) == ("o1", "refused", 1)
    assert "cannot read the order" in outcome.detail
    assert "upgrade the agent" in outcome.detail
    assert len(outcome.detail) < 500
    assert body.asked == []
    operation_log.close()


def test_the_kind_that_is_not_known_is_named() -> None:
    order = read_order(told({"kind": "sh"}), 0.0)
    assert isinstance(order, UnreadableOrder)
    assert "'sh'" in order.why


@pytest.mark.parametrize(("mode", "result"), [("perform", "refused"), ("observe", "not_done"), ("revoke", "revoked")])
def test_each_way_of_asking_has_its_answer(mode: str, result: str, tmp_path: Path) -> None:
    order = read_order(told({"kind": "sh"}, mode), 0.0)
    assert isinstance(order, UnreadableOrder)
    operation_log = OperationLog(tmp_path / "marks.sqlite")
    assert NodeOperations("n1", EmulatedHostMachine("n1"), operation_log).refuse(order).result == result
    operation_log.close()


def test_what_was_begun_before_a_downgrade_is_told_as_it_was(tmp_path: Path) -> None:
    """Mutant: an act that may have happened is called refused, which says that it did not."""
    operation_log = OperationLog(tmp_path / "marks.sqlite")
    operation_log.start(ORDER.operation, 3, "b1")
    order = read_order(told({"kind": "sh"}), 0.0)
    assert isinstance(order, UnreadableOrder)
    assert NodeOperations("n1", EmulatedHostMachine("n1"), operation_log).refuse(order).result == "unknown"
    operation_log.close()


@pytest.mark.parametrize("raw", [b"{}", b"[]", b'{"operation": {}}', b'{"operation": 5}', b'{"operation": null}'])
def test_an_order_that_does_not_say_what_it_is_about_is_no_answer(raw: bytes) -> None:
    with pytest.raises(UnavailableError, match="makes no sense"):
        read_order(msgspec.Raw(raw), 0.0)


def test_an_expectation_is_bounded_before_it_is_recorded() -> None:
    """Expectations no agent reads are not sent. Mutant: it is recorded, and no controller reads its journal again."""
    assert bounded(Expected(8)) == Expected(8)
    assert bounded(Expected(known=(ExpectedGpu("gpu0"),) * (MAX_GPUS + 1))) is None
    assert bounded(Expected(faulted=(Faulted("gpu.xid", "x" * 200),))) is None
    assert bounded(Expected(parts={"gpu": 5000})) is None
    assert RunChecks().expects is None
