"""When a node's boot may be answered, and when its medium may be read."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.planning.boot_window import medium_window_of, window_of
from hostler.core.state.boot import BootRecord
from hostler.core.state.model import Operation
from hostler.core.state.operations import plain
from tests.kit import NOW, a_node
from tests.unit.planning.values import a_plan


def under_way(kind: str) -> Operation:
    return Operation("o1", plain(kind), "a", "p1", 0, NOW, NOW + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("index", "kind", "medium", "script"),
    [
        (0, "", "", ""),
        (0, "set_boot_network", "p1", ""),
        (1, "", "p1", ""),
        (1, "power_on", "p1", "p1"),
        (2, "", "p1", "p1"),
        (3, "", "", ""),
    ],
)
def test_a_medium_may_be_read_from_before_the_power_on_to_the_end_of_its_wait(
    index: int, kind: str, medium: str, script: str
) -> None:
    """Mutants: its window opens with the power-on, and no BMC can fetch it; its script is answered before."""
    plan = a_plan("initializing", id="p1", index=index)
    node = a_node("a", pool="", plan=plan, operation=under_way(kind) if kind else None)
    assert (medium_window_of(node), window_of(node)) == (medium, script)
    home = replace(node, boot=BootRecord("p1", NOW, home=NOW))
    assert (medium_window_of(home), window_of(home)) == ("", "")
