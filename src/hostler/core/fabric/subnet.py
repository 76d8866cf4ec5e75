"""Findings of a subnet whose managers, partitions or routing are others than its design states.

Only what was read whole is compared, and only with what the design states.
"""

from collections.abc import Iterator

from hostler.core.fabric.findings import Grade
from hostler.core.state.counting import first_names
from hostler.core.state.fabrics import FabricFindingSeen
from hostler.core.state.subnets import ManagerDesign, ManagerState, SubnetDesign, SubnetFacts, SubnetManager

FOREIGN = "foreign_manager"
TOO_FEW = "standby_missing"
PARTITIONS = "partitions_differ"
ROUTING = "routing_differs"
KINDS = {
    FOREIGN: "managers",
    TOO_FEW: "managers",
    PARTITIONS: "partitions",
    ROUTING: "routing",
}
"""Kind of a subnet's finding → the field of `SubnetFacts` that must be known for it to be judged."""

_NAMED = 8
"""Managers or partitions that a sentence names."""


def judged(facts: SubnetFacts) -> frozenset[str]:
    """Kinds of findings of which this reading can say whether they stand."""
    return frozenset(kind for kind, field in KINDS.items() if getattr(facts, field) not in (None, ""))


def differences(fabric: str, design: SubnetDesign, facts: SubnetFacts) -> tuple[FabricFindingSeen, ...]:
    """Differences, each kind at most once, so that a ticket stays the same while it changes."""
    return (
        *(_of_managers(fabric, design.subnet_manager, facts) if design.subnet_manager is not None else ()),
        *_of_partitions(fabric, design, facts),
        *_of_routing(fabric, design, facts),
    )


def _of_managers(fabric: str, wanted: ManagerDesign, facts: SubnetFacts) -> Iterator[FabricFindingSeen]:
    if facts.managers is None:
        return
    acting = [one for one in facts.managers if one.state is not ManagerState.not_active]
    foreign = [one for one in acting if wanted.guids and one.guid not in wanted.guids]
    if foreign:
        steps = (
            "Find whose ports these are, and stop the subnet manager there or take it out of the network.",
            "Where it is meant to be there, register the network with its GUID.",
        )
        grade = Grade.high if facts.master in foreign else Grade.medium
        named = first_names([_said(one) for one in foreign], _NAMED)
        yield _finding(FOREIGN, grade, f"network {fabric} has a subnet manager that its design has not: {named}", steps)
    standby = [one for one in facts.standby if one not in foreign]
    if len(standby) < wanted.min_standby:
        has = f"{len(standby)} subnet managers of network {fabric} stand by"
        told = {one.guid for one in acting}
        missing = [guid for guid in wanted.guids if guid not in told]
        silent = f"; not heard: {first_names(missing, _NAMED)}" if missing else ""
        acts = ("Start the subnet manager that is missing, and look why it ended.",)
        yield _finding(TOO_FEW, Grade.high, f"{has}, {wanted.min_standby} are to{silent}", acts)


def _of_partitions(fabric: str, design: SubnetDesign, facts: SubnetFacts) -> Iterator[FabricFindingSeen]:
    if not design.partitions or facts.partitions is None or {*design.partitions} == {*facts.partitions}:
        return
    missing = sorted({*design.partitions} - {*facts.partitions})
    more = sorted({*facts.partitions} - {*design.partitions})
    said = [f"no port bears {first_names(missing, _NAMED)}"] if missing else []
    said += [f"ports bear {first_names(more, _NAMED)}, which the design does not have"] if more else []
    steps = ("Compare the master's partitions file with the design, and have the subnet manager read it again.",)
    grade = Grade.high if more else Grade.medium
    yield _finding(PARTITIONS, grade, f"partitions of network {fabric}: {'; '.join(said)}", steps)


def _of_routing(fabric: str, design: SubnetDesign, facts: SubnetFacts) -> Iterator[FabricFindingSeen]:
    if not design.routing or not facts.routing or design.routing == facts.routing:
        return
    steps = (
        "Look in the master's log why the engine that is wanted refuses this topology; then at its configuration.",
        "Repair the cabling that the network's other findings name, and have the subnet manager sweep again.",
    )
    said = f"network {fabric} is routed by {facts.routing}, its design wants {design.routing}"
    yield _finding(ROUTING, Grade.medium, said, steps)


def _finding(kind: str, grade: Grade, headline: str, steps: tuple[str, ...]) -> FabricFindingSeen:
    return FabricFindingSeen(f"subnet-{kind}", kind, grade.value, (), (), (), headline, steps)


def _said(manager: SubnetManager) -> str:
    return f"{manager.state.replace('_', ' ')} {manager.guid} (priority {manager.priority})"
