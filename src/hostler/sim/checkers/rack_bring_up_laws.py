"""Laws of a rack's bring-up beside its nodes: its order, what it says that stands, whose work depends on its assets."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.sim.checkers.law import Found, LawCase
from hostler.sim.checkers.rack_laws import RackLaws

SHOWN = {"power_shelves": "power_shelf", "switch_trays": "switch_tray"}
"""Step of a bring-up → the assets that run the bundle once it is done."""


class RackBringUps:
    """Watcher of bring-ups. A world without a rack has nothing to watch."""

    def __init__(self) -> None:
        self._laws: RackLaws | None = None
        self._runs: dict[str, str] = {}

    def order(self, case: LawCase, record: e.Record) -> Found:
        """Violations of the order of steps and acts, and of acts that are sent again."""
        assets = case.world.rack_assets
        if assets is None:
            return ()
        if self._laws is None:
            trays = frozenset(one.name for one in assets.assets.values() if one.kind == "switch_tray")
            self._laws = RackLaws(trays, lambda: "")
        return self._laws.record(record)

    def truth(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Violations by steps that are said to be done while assets run something else, in truth."""
        match record.event:
            case e.RackRunBegan(run=run):
                self._runs[run.id] = ""
            case e.RackStepDone(step=step) if step in SHOWN and (differs := _differs(case, SHOWN[step])):
                yield f"step {step} is done, and {differs}"
            case e.RackRunEnded(run=run, result=result):
                self._runs.pop(run, None)
                case.met[f"bring-up {result}"] += 1
                if result == "done" and (differs := _differs(case)):
                    yield f"the bring-up is done, and {differs}"
            case e.RackCertified():
                case.met["rack certified"] += 1
                if differs := _differs(case):
                    yield f"the rack is certified, and {differs}"
            case _:
                pass

    def work(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Violations by acts of a bring-up on assets on which a node depends that serves."""
        match record.event:
            case e.AssetOperationStarted(operation=operation) if operation.plan and operation.attempt == 1:
                if operation.kind == "verify_firmware":
                    return
                for page in case.reading.pages.values():
                    if page.pool and page.phase is Phase.production:
                        yield f"{operation.kind} of {operation.node} while {page.id} serves pool {page.pool}"
            case _:
                pass

    def end(self, case: LawCase) -> Iterator[str]:
        """Violations of a world that was healed and has had its time: a bring-up that never ended."""
        if case.world.rack_assets is None or self._laws is None:
            return
        yield from (f"bring-up {run} never ended" for run in self._runs)
        yield from (f"{operation} never ended" for operation in self._laws.under_way)
        for asset in case.world.rack_assets.assets.values():
            if asset.firmware.differs:
                yield f"{asset.name} runs {asset.firmware.differs} in the end"


def _differs(case: LawCase, kind: str = "") -> str:
    """The assets of this kind that do not run their bundle in truth, "" for none."""
    assets = case.world.rack_assets
    found = [one for one in assets.assets.values() if kind in ("", one.kind)] if assets is not None else []
    return ", ".join(f"{one.name} runs {one.firmware.differs}" for one in found if one.firmware.differs)
