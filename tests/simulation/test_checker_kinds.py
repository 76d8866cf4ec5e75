"""The kinds of operations that checkers of laws know: none that acts upon a node is missing from their lists.

Checkers have lists of their own, so that a wrong row of the product's table is not believed. Mutant: a kind that is new
is in no list, and no law watches it.
"""

from collections.abc import Callable

import pytest

from hostler.core.tables.operations import OPERATIONS, OperationKind
from hostler.sim.checkers.disruption_laws import POWER
from hostler.sim.checkers.domain_act_laws import ENDING
from hostler.sim.checkers.journal_laws import ACTING, EMPTIED, ONCE
from hostler.sim.checkers.journal_reading import HARDWARE

OF_ASSETS = {"fetch_system_image", "install_system_image"}
"""Kinds that no node is asked for: `rack_laws` watches them."""
OF_BMC = {"reset_bmc", "bmc_cold_reset"}
"""Kinds that restart a BMC and nothing behind it."""
PORTS = {"reset_port"}
"""A reset of a port says nothing of the node's own parts; `network_laws` watches it."""


@pytest.mark.parametrize(
    ("known", "is_one", "others"),
    [
        (HARDWARE, lambda row: row.touches, OF_ASSETS | PORTS),
        (ONCE, lambda row: not row.repeatable, OF_ASSETS),
        (EMPTIED, lambda row: "drained" in row.needs, OF_ASSETS | {"stop_kubelet"}),
        (ACTING, lambda row: row.touches and row.disrupts, OF_ASSETS),
        (ENDING, lambda row: row.disrupts, OF_ASSETS | PORTS),
        (POWER, lambda row: "power" in row.needs, OF_ASSETS | OF_BMC),
    ],
    ids=["HARDWARE", "ONCE", "EMPTIED", "ACTING", "ENDING", "POWER"],
)
def test_a_checker_s_list_names_each_kind_that_acts_so(
    known: tuple[str, ...], is_one: Callable[[OperationKind], bool], others: set[str]
) -> None:
    kinds = {row.kind for row in OPERATIONS.values() if is_one(row)} - others
    assert kinds <= set(known), f"no checker watches {sorted(kinds - set(known))}"
    assert set(known) <= set(OPERATIONS)
