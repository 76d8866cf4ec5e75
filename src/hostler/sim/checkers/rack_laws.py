"""Laws of a rack's bring-up, read from records and from the rack as it really is; nothing of the planner is called."""

from collections.abc import Callable, Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Operation

WRITES = ("update_firmware", "reset_bmc", "ac_cycle", "fetch_system_image", "install_system_image")
"""Acts that are not repeated unless a controller took over that had recorded them."""

RENEWALS = ("renew_bmc_login", "renew_bmc_certificate")
"""Acts on a BMC alone, beside a bring-up: they wet, write and disturb nothing, and never meet another on one asset."""
VAIN_MOST = 3
"""So many renewals in a row that came to nothing, or one refused, and a person has to ask."""


class RackLaws:
    """Watcher of one rack. `untrue` says what of it does not stand in truth, "" for nothing; `trays` are its trays."""

    def __init__(self, trays: frozenset[str], untrue: Callable[[], str]) -> None:
        self._trays = trays
        self._untrue = untrue
        self._dry = False
        self._open: dict[str, Operation] = {}
        self._epochs: dict[str, int] = {}
        self._vain: dict[str, int] = {}
        self.met: set[str] = set()

    def record(self, record: e.Record) -> Iterator[str]:
        """Violations that the record shows, each as a sentence."""
        match record.event:
            case e.RackRunBegan():
                self._dry = False
            case e.RackStepDone(step="leak_detectors"):
                self._dry = True
            case e.AssetOperationStarted(operation=operation):
                yield from self._started(operation, record.epoch)
            case e.AssetOperationFinished():
                yield from self._finished(record.event)
            case e.AssetLoginDue(asset=asset):
                self._vain[asset] = 0
            case e.RackRunEnded(result=result):
                self.met.add(result)
                if result == "done" and (why := self._untrue()):
                    yield f"the bring-up is done, and {why}"
            case e.RackCertified() if why := self._untrue():
                yield f"the rack is certified, and {why}"
            case _:
                pass

    def _started(self, operation: Operation, epoch: int) -> Iterator[str]:
        if operation.plan:
            yield from self._in_its_turn(operation)
        elif operation.kind in RENEWALS:
            yield from self._beside(operation)
        again = operation.id in self._epochs
        if again and operation.kind in WRITES and self._epochs[operation.id] == epoch:
            yield f"{operation.id} was sent again by the controller that had sent it"
        self._open[operation.id] = operation
        self._epochs[operation.id] = epoch

    def _in_its_turn(self, operation: Operation) -> Iterator[str]:
        """Violations of the bring-up's order; protection from a leak, and what follows it, comes beside that."""
        if operation.node in self._trays and not self._dry:
            yield f"{operation.kind} of {operation.node} before the detectors were dry"
        others = (one for one in self._open.values() if one.id != operation.id)
        met = [one.id for one in others if one.plan or (one.kind in RENEWALS and one.node == operation.node)]
        if met:
            yield f"{operation.id} began while {met[0]} was under way"

    def _beside(self, operation: Operation) -> Iterator[str]:
        """Violations by a renewal: it meets no other act on its asset, and none is tried of one that has given up."""
        met = [one.id for one in self._open.values() if one.id != operation.id and one.node == operation.node]
        if met:
            yield f"{operation.id} began while {met[0]} was under way"
        if self._vain.get(operation.node, 0) >= VAIN_MOST and operation.id not in self._epochs:
            yield f"{operation.id} began, though {operation.node} has given up"

    def _finished(self, event: e.AssetOperationFinished) -> Iterator[str]:
        if self._open.pop(event.operation, None) is None:
            yield f"{event.operation} ended and was never begun"
        if event.kind in RENEWALS:
            vain = VAIN_MOST if event.result == "refused" else self._vain.get(event.asset, 0) + 1
            self._vain[event.asset] = 0 if event.result == "done" else vain
            self.met.add(f"{event.kind} {event.result}")

    @property
    def under_way(self) -> list[str]:
        """Operations that were begun and have not ended."""
        return list(self._open)
