"""The table of names that clusters' users may rely on says what the driver writes and reads, no more and no less."""

import importlib
import pkgutil
import re

from msgspec.structs import replace

import hostler.drivers.kubernetes
from hostler.core.state.model import Condition, Severity
from hostler.drivers.kubernetes import public_names
from hostler.drivers.kubernetes.node_status import DUTIES, node_status
from hostler.drivers.kubernetes.wire import OUR_CONDITIONS, OURS
from tests.kit import NOW, a_node, a_workload

TABLES = (
    public_names.LABELS,
    public_names.TAINTS,
    public_names.ANNOTATIONS,
    public_names.REQUESTS,
    public_names.PODS,
    public_names.OWN,
)
KNOWN = {name.name for table in TABLES for name in table}


def test_every_name_of_ours_that_the_driver_knows_is_in_the_table() -> None:
    """Mutant: a new annotation that nobody documents."""
    found: set[str] = set()
    for info in pkgutil.iter_modules(hostler.drivers.kubernetes.__path__):
        module = importlib.import_module(f"hostler.drivers.kubernetes.{info.name}")
        found |= {v for v in vars(module).values() if isinstance(v, str) and v.startswith(OURS) and v != OURS}
    assert found - KNOWN == set()


def test_labels_and_conditions_are_those_that_are_written() -> None:
    """Mutants: a label that is written and not told; a condition that is told and not written."""
    node = a_node("a", domains=("nvlink:d1", "rail:3", "power:p1"))
    node = replace(node, position=replace(node.position, rack="r1"))
    assert set(node_status(node, ()).labels) == {name.name for name in public_names.LABELS}
    told = [name.name for name in public_names.CONDITIONS]
    assert told == list(DUTIES) == list(OUR_CONDITIONS) == [one.type for one in node_status(node, ()).conditions]
    assert {name.name for name in public_names.EVENTS} <= set(told)


def test_every_reason_that_is_given_is_told() -> None:
    """But for those that are the names of conditions and plans. Mutant: a reason is renamed."""
    well = a_node("a")
    fault = Condition("c", "gpu.fallen_off_bus", "a", Severity.catastrophic, NOW, NOW, "remedy", "hostler")
    ill = replace(well, conditions=(fault,))
    unknown = replace(well, conditions=(replace(fault, unknown_since=NOW),))
    idle = replace(well, cordons=("hostler",))
    given = {
        (one.type, one.status, one.reason)
        for node in (well, ill, unknown, idle)
        for works in (None, (), (a_workload("w"),))
        for one in node_status(node, works).conditions
    }
    values = {name.name: name.values for name in public_names.CONDITIONS}
    for kind, status, reason in sorted(given):
        assert re.search(rf"\b{reason}\b", values[kind]), (kind, status, reason)
        assert status in values[kind]
