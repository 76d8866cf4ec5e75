"""Bugs that are planted at a compute network, for the laws that watch it."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller import fabric_reports
from hostler.core.fabric import validation, validation_report
from hostler.core.fabric.validation import compare
from hostler.core.planning import port_reset
from hostler.core.policy import fabric_cases, link_cases
from hostler.core.state.operations import ResetPort
from hostler.polling import link_rounds
from hostler.sim import hostile_worlds


def the_partial_is_believed(patch: pytest.MonkeyPatch) -> None:
    """Takes for missing what a spoilt page does not show."""
    patch.setattr(validation_report, "compare", lambda design, found: compare(design, replace(found, partial="")))


def the_shrunken_is_believed(patch: pytest.MonkeyPatch) -> None:
    """However little was seen, the rest is dark."""
    patch.setattr(validation, "_shrunken", lambda _design, _findings, _off: "")


def one_look_counts_twice(patch: pytest.MonkeyPatch) -> None:
    """A result that is told again is another validation."""
    patch.setattr(fabric_reports, "_is_told_twice", lambda _live, _seen: False)


def one_cable_is_asked_for_twice(patch: pytest.MonkeyPatch) -> None:
    """Rounds of readings and validations know nothing of each other."""
    patch.setattr(fabric_cases, "_asked_by_links", lambda _fleet, _case: "")
    patch.setattr(fabric_cases, "_takes_over", lambda _fleet, _told: iter(()))
    patch.setattr(link_cases, "_explained", lambda _fleet, _case: "")


def each_link_of_a_dead_switch_asks(patch: pytest.MonkeyPatch) -> None:
    """Links fail each for itself, whatever they share."""
    patch.setattr(link_rounds, "joined", lambda faults, *_rest: list(faults))


def a_dead_switch_is_its_nodes(patch: pytest.MonkeyPatch) -> None:
    """Each node at a dead switch bears a condition of its own."""
    each_link_of_a_dead_switch_asks(patch)
    patch.setattr(link_cases, "_explained", lambda _fleet, _case: "")


def the_unmanaged_are_acted_on(patch: pytest.MonkeyPatch) -> None:
    """Treats a link alike, whoever owns its node."""
    patch.setattr(link_cases, "Profile", SimpleNamespace(unmanaged=None))


def findings_are_never_over(patch: pytest.MonkeyPatch) -> None:
    """Leaves repaired findings open."""

    def stays(_context: Any, case: Any, seen: Any) -> Any:
        return iter(()) if seen is None else went_on(_context, case, seen)

    went_on = fabric_cases.went_on
    patch.setattr(fabric_cases, "went_on", stays)


def a_neighbour_s_port_is_reset(patch: pytest.MonkeyPatch) -> None:
    """The port beside the node's own is named, and nobody asks whose it is."""

    def beside(fabric: Any, link: Any) -> ResetPort:
        switch, _, number = link.z.rpartition(":")
        return ResetPort(fabric.name, link.a, f"{switch}:{int(number) % 7 + 1}")

    patch.setattr(port_reset, "_reset", beside)
    patch.setattr(port_reset, "refused", lambda *_about: "")
    patch.setattr(hostile_worlds, "refused", lambda *_about: "")
