"""Says which driver performs each kind of operation: one map, made and checked when a controller starts."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.tables.operations import OPERATIONS
from hostler.ports import OperationDriver

Performers = Mapping[str, OperationDriver]
"""Kind of operation → the one driver that performs it."""


class Wiring(Struct, frozen=True):
    """The drivers of a controller. One of `around` takes another's operations and hands them on to it."""

    drivers: tuple[OperationDriver, ...] = ()
    around: tuple[OperationDriver, ...] = ()


def performers(wiring: Wiring) -> dict[str, OperationDriver]:
    """The map, whatever the order of the drivers. Raises InvalidInputError where two stand for one kind."""
    found = _each_once(wiring.drivers)
    before = _each_once(wiring.around)
    if nobody := sorted(before.keys() - found.keys()):
        raise _unclear(f"{_named(before[nobody[0]])} stands before nobody for {', '.join(nobody)}")
    return found | before


def complete(found: Performers) -> Performers:
    """The same map. Raises InvalidInputError where an operation of the table is performed by nobody."""
    wanted = {kind for kind, row in OPERATIONS.items() if row.port != "present"}
    if nobody := sorted(wanted - found.keys()):
        raise _unclear(f"no driver performs {', '.join(nobody)}")
    return found


def _each_once(drivers: Iterable[OperationDriver]) -> dict[str, OperationDriver]:
    found: dict[str, OperationDriver] = {}
    for driver in drivers:
        for kind in sorted(driver.kinds):
            if (other := found.setdefault(kind, driver)) is not driver:
                raise _unclear(f"{kind} is performed by {_named(other)} and by {_named(driver)}")
    return found


def _named(driver: OperationDriver) -> str:
    return type(driver).__name__


def _unclear(what: str) -> InvalidInputError:
    return InvalidInputError((Problem("drivers", 0, what, "wire each kind of operation to one driver"),))
