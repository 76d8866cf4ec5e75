"""Law 7, of power: a node that leaks, is too hot or has somebody's hands in it is given none, by whatever plan."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.sim.checkers.law import LawCase

GIVES = (
    "power_on",
    "reboot",
    "update_firmware",
    "write_device_firmware",
    "write_bios_settings",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
    "reset_bmc",
)
"""Operations that give power, or write hardware that may lose it."""
DANGERS = ("cooling.leak", "thermal.over_limit")


class Dangers:
    """Watcher of power. What stands counts though nobody knows any more whether it does."""

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge each act that gives power."""
        event = record.event
        if not isinstance(event, e.OperationStarted) or event.operation.kind not in GIVES:
            return
        page, kind = case.reading.pages[event.operation.node], event.operation.kind
        for condition in page.conditions.values():
            if condition.type in DANGERS:
                yield f"{kind} of {page.id} while {condition.type} stands"
        for hold in case.reading.held(page, "physical_work", "power"):
            yield f"{kind} of {page.id} against {hold.id} of {hold.owner}"
