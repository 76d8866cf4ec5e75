"""A port is reset where a rule of the policy asks for it: on a drained managed node, once, until rounds have judged."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import LinksSeen
from hostler.core.policy import link_cases
from hostler.core.state import events as e
from hostler.core.state.fabrics import LinkCondition
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, LinkRound
from hostler.core.state.model import Profile
from hostler.core.state.operations import ResetPort
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import Fabric, a_fabric
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

HOST = "gpu-0001:mlx5_0"
RULE: dict[str, Any] = {"remedy": "port_reset", "timing": "pending", "dooms": "none"}
STEPS = ["cordon", "drain", "collect_evidence", "reset_port", "run_checks", "uncordon"]


def a_cell(profile: Profile = Profile.managed, **rule: Any) -> FabricCell:
    """A node in a network whose cables lie as designed; the rule for flaps is the policy's own where none is given."""

    def change(policy: dict[str, Any]) -> None:
        if rule:
            policy["rules"]["network.link_flaps"] = rule

    pools = configuration({"train": pool_document(target=1, profile=profile.value)}, change)
    node = replace(a_node("gpu-0001", pool="train"), profile=profile)
    cell = FabricCell(Drive(pools, nodes=(node,)), a_fabric())
    cell.drive.see_work("gpu-0001")
    cell.look()
    return cell


def far(cables: Fabric) -> str:
    return next(str(z) for a, z in cables.links.items() if str(a) == HOST)


def flaps(cell: FabricCell) -> None:
    """A round that sees the link flap."""
    fault = LinkFault(HOST, far(a_fabric()), LinkCheck.flaps, LinkGrade.act, "5 flaps in 24 h", ())
    cell.drive.wait(seconds=60)
    cell.drive.step(LinksSeen(LinkRound(NAME, cell.drive.now, 224, (fault,), ())))
    cell.drive.run()


def clean(cell: FabricCell) -> None:
    """A round that reads the link without a fault."""
    cell.drive.wait(minutes=12)
    cell.drive.step(LinksSeen(LinkRound(NAME, cell.drive.now, 224, (), (f"{HOST}|{far(a_fabric())}",))))


def resets(cell: FabricCell) -> list[ResetPort]:
    return [s.operation.act for s in cell.drive.sent if isinstance(s.operation.act, ResetPort)]


def test_a_rule_has_the_port_at_the_switch_reset_after_the_node_is_drained() -> None:
    """Mutants: the reset comes before the drain; the node's own port is named; work on the node is not waited for."""
    cell = a_cell(**RULE)
    cell.drive.see_work("gpu-0001", a_workload("w1"))
    flaps(cell)
    assert resets(cell) == []
    cell.drive.see_work("gpu-0001")
    cell.drive.wait(minutes=10)
    assert resets(cell) == [ResetPort(NAME, HOST, far(cell.cables))]
    assert cell.drive.plans("gpu-0001") == ["port_reset"]
    started = [event.operation.kind for event in cell.drive.events(e.OperationStarted)]
    assert started == [step for step in STEPS if step != "drain"]
    for _ in range(3):
        clean(cell)
    assert not any(c.type == "network.link_flaps" for c in cell.drive.node("gpu-0001").conditions)
    cell.drive.wait(hours=3)
    assert len(resets(cell)) == 1


@pytest.mark.parametrize("answer", ["done", "unknown", "mute"])
def test_an_open_fault_knows_when_a_port_of_its_link_was_reset(answer: str) -> None:
    """Mutants: only a reset that is known to be done counts; another link's fault takes note of it."""
    cell = a_cell(**RULE)
    cell.drive.script("reset_port", answer)
    (other,) = {str(z) for a, z in a_fabric().links.items() if str(a) == "gpu-0001:mlx5_1"}
    faults = [
        LinkFault(*ports, LinkCheck.flaps, LinkGrade.act, "5 flaps in 24 h", ())
        for ports in ((HOST, far(a_fabric())), ("gpu-0001:mlx5_1", other))
    ]
    cell.drive.step(LinksSeen(LinkRound(NAME, cell.drive.now, 224, tuple(faults[:1]), ())))
    assert list(link_cases.resets(cell.drive.fleet, NAME).values()) == [None]
    cell.drive.run()
    cell.drive.step(LinksSeen(LinkRound(NAME, cell.drive.now, 224, tuple(faults), ())))
    known = link_cases.resets(cell.drive.fleet, NAME)
    (sent,) = [s for s in cell.drive.sent if s.operation.kind == "reset_port" and s.how == "perform"]
    assert known[faults[1].key] is None
    assert (known[faults[0].key] or cell.drive.now) >= sent.operation.started


def test_a_link_that_goes_on_flapping_is_reset_three_times_an_hour_apart_and_then_a_person_is_asked() -> None:
    """Mutants: it is reset every five minutes; without end."""
    cell = a_cell(**RULE)
    flaps(cell)
    cell.drive.wait(minutes=50)
    assert len(resets(cell)) == 1
    for _ in range(6):
        flaps(cell)
        cell.drive.wait(hours=1)
    assert len(resets(cell)) == 3
    (stuck,) = [t for t in cell.drive.fleet.tickets.values() if t.kind == "stuck"]
    assert "what is left is the cable" in stuck.summary


def test_by_default_no_port_is_reset_and_a_rule_in_shadow_only_says_what_it_would_have_done() -> None:
    default = a_cell()
    flaps(default)
    assert (resets(default), default.drive.plans("gpu-0001")[0]) == ([], "triage")
    shadow = a_cell(**RULE, shadow=True)
    flaps(shadow)
    assert (resets(shadow), shadow.drive.plans("gpu-0001")) == ([], [])
    assert [event.shadow.remedy for event in shadow.drive.events(e.ShadowNoted, "gpu-0001")] == ["port_reset"]


def test_of_an_unmanaged_node_no_port_is_ever_reset() -> None:
    """Mutant: the rule counts for a node that is not ours."""
    cell = a_cell(Profile.unmanaged, **RULE)
    for _ in range(5):
        flaps(cell)
        cell.drive.wait(hours=1)
    assert (resets(cell), cell.drive.plans("gpu-0001")) == ([], [])


@pytest.mark.parametrize("how", ["never validated", "elsewhere"])
def test_a_cable_that_is_not_known_to_lead_to_this_node_is_not_touched(how: str) -> None:
    """Mutant: the designed far end is reset, where another node's cable lies."""
    cell = a_cell(**RULE)
    if how == "elsewhere":
        live = cell.drive.controller.live.fabrics[NAME]
        rows = tuple(
            replace(row, condition=LinkCondition.elsewhere, a_found="leaf-001-1:2") if HOST in (row.a, row.z) else row
            for row in live.links.rows
        )
        cell.drive.controller.live.fabrics[NAME] = replace(live, links=replace(live.links, rows=rows))
    else:
        cell.drive.controller.live.fabrics.clear()
    flaps(cell)
    assert set(resets(cell)) <= {ResetPort()}, "the driver refuses one without a port"


@pytest.mark.parametrize("answer", ["unknown", "mute", "vanished", "failed"])
def test_an_answer_that_says_nothing_is_observed_and_not_repeated_within_its_plan(answer: str) -> None:
    """Mutant: what may have happened is done again at once."""
    cell = a_cell(**RULE)
    cell.drive.script("reset_port", answer)
    flaps(cell)
    cell.drive.wait(minutes=50)
    performed = [s for s in cell.drive.sent if s.operation.kind == "reset_port" and s.how == "perform"]
    observed = [s for s in cell.drive.sent if s.operation.kind == "reset_port" and s.how == "observe"]
    assert (len(performed), bool(observed)) == (1, answer in ("unknown", "vanished"))
