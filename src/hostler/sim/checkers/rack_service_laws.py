"""Laws of a rack's assets in service, beside nodes: read from records and from the assets as they are."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Operation
from hostler.core.state.racks import AssetLook
from hostler.sim.checkers.law import Found, LawCase

WET = "critical"
POWERS = ("power_on", "update_firmware", "ac_cycle", "reset_bmc", "fetch_system_image", "install_system_image")
"""Acts on an asset that give power, or write what may lose it."""


class RackService:
    """Watcher of racks. A world without a rack has nothing to watch."""

    def __init__(self) -> None:
        self._looks: dict[str, AssetLook] = {}
        self._states: dict[str, str] = {}
        self._leaking: dict[str, AssetLook] = {}
        self._begun: set[str] = set()
        self._tickets: dict[str, str] = {}

    def record(self, case: LawCase, record: e.Record) -> Found:
        """Violations that the record shows."""
        assets = case.world.rack_assets
        return self._of(record.event) if assets is not None else ()

    def _of(self, event: e.Event) -> Iterator[str]:
        match event:
            case e.AssetSeen(asset=name, look=look):
                self._looks[name] = look
                if _is_wet(look):
                    self._leaking[name] = look
            case e.AssetChanged(asset=name, state="in_service") if self._states.get(name) in ("leaked", "off"):
                self._states[name] = "in_service"
                if not _is_dry(self._looks.get(name)):
                    yield f"{name} counts as sound, and its last look does not show it dry"
            case e.AssetChanged(asset=name, state=state):
                self._states[name] = state
            case e.AssetOperationStarted(operation=operation):
                self._begun.add(operation.id)
                yield from self._started(operation)
            case e.TicketOpened(ticket=ticket) if ticket.id.startswith("asset-"):
                self._tickets[ticket.id] = ticket.fault
            case e.TicketClosed(ticket=name):
                self._tickets.pop(name, None)
            case _:
                pass

    def _started(self, operation: Operation) -> Iterator[str]:
        name, beside = operation.node, not operation.plan
        if beside and operation.kind == "power_off" and self._states.get(name, "in_service") == "in_service":
            yield f"{name} is switched off, and nothing tells that it leaked"
        if operation.kind == "power_on" and not _is_dry(self._looks.get(name)):
            yield f"{name} is switched on, and its last look does not show it dry"
        for one, look in self._looks.items() if operation.kind in POWERS else ():
            if _is_wet(look):
                yield f"{operation.kind} of {name} while {one} is wet"
        if operation.kind in POWERS and self._states.get(name, "in_service") != "in_service":
            yield f"{operation.kind} of {name}, which is {self._states[name]}"

    def batch(self, case: LawCase) -> Iterator[str]:
        """Violations once a batch is whole: what leaks is answered at once, and nothing is done without a record."""
        leaking, self._leaking = self._leaking, {}
        assets = case.world.rack_assets
        if assets is None:
            return
        for name in leaking:
            kind = assets.assets[name].kind
            case.met[f"leak of a {kind.replace('_', ' ')}"] += 1
            if self._states.get(name, "in_service") == "in_service":
                yield f"{name} shows a leak, and counts as sound"
            if kind == "coolant_unit":
                yield from _unprotected(case, name)
        for number, name, act in assets.acts:
            if number not in self._begun:
                yield f"{act} of {name} was done, and is in no record"

    def end(self, case: LawCase) -> Iterator[str]:
        """Violations of a world that was healed and has had its time."""
        assets = case.world.rack_assets
        for one in assets.assets.values() if assets is not None else ():
            state = self._states.get(one.name, "in_service")
            if one.trouble or not one.lit or state != "in_service":
                yield f"{one.name} is {state}, {one.trouble or 'well'}, {'on' if one.lit else 'off'} in the end"
        yield from (f"ticket {name} stands open: {fault}" for name, fault in self._tickets.items())
        for hold in case.reading.holds.values():
            if hold.ticket.startswith("asset-"):
                yield f"hold {hold.id} stands in the end"


def _unprotected(case: LawCase, name: str) -> Iterator[str]:
    for page in case.reading.pages.values():
        if not any(one.type == "cooling.leak" for one in page.conditions.values()):
            yield f"{name} leaks, and {page.id}, which it cools, has no leak"


def _is_wet(look: AssetLook) -> bool:
    return any(word == WET for _, word in look.leaks)


def _is_dry(look: AssetLook | None) -> bool:
    return look is not None and not look.why and bool(look.leaks) and all(word == "ok" for _, word in look.leaks)
