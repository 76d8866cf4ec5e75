"""Firmware of a simulated shelf or switch tray: what runs, what was written and waits, and how badly an act may go."""

from datetime import datetime, timedelta
from random import Random

from msgspec import Struct

from hostler.core.state.model import Facts, Operation
from hostler.core.state.operations import (
    AnyAct,
    FetchSystemImage,
    InstallSystemImage,
    ResetBmc,
    VerifyFirmware,
    WriteFirmware,
)
from hostler.core.state.racks import SYSTEM

OLD, BUNDLE = "1.0", "2.0"
COMPONENTS = {"power_shelf": ("PMC",), "switch_tray": ("FW", SYSTEM)}
ACTIVATES = {"PMC": "bmc_reset", "FW": "dc_cycle", SYSTEM: "none"}
"""Component → what makes it run; a tray's own system restarts into what it has installed."""

FATES = (("done", 0.72), ("late", 0.08), ("lies", 0.05), ("failed", 0.05), ("never", 0.05), ("lost", 0.05))
"""Ends of an act, and their shares: it is done, later, only said to be done, failed, done and never answered, lost."""
LATE_S = (60.0, 1200.0)


class AssetFirmware(Struct):
    """Versions of one asset, by component. `staged` waits for its activation, `due` is written at that moment.

    `fetched` are images on a tray's own system. `mute`: operations that nobody will be answered about.
    """

    runs: dict[str, str]
    staged: dict[str, str] = {}
    fetched: set[str] = set()
    due: list[tuple[datetime, AnyAct]] = []
    mute: set[str] = set()

    @property
    def differs(self) -> str:
        """The components that do not run the bundle, "" for none."""
        return ", ".join(f"{name} {version}" for name, version in self.runs.items() if version != BUNDLE)

    def settle(self, now: datetime) -> None:
        """Let happen what was due."""
        for at, act in [one for one in self.due if one[0] <= now]:
            self.due.remove((at, act))
            self._lands(act)

    def perform(self, operation: Operation, now: datetime, chance: Random, *, honest: bool) -> tuple[str, str]:
        """Take an act: its fate, and what is answered. `honest`: nothing goes wrong any more."""
        if isinstance(operation.act, VerifyFirmware):
            return "done", self.seen(operation, now)
        if self.seen(operation, now) == "done":
            return "done", "done"
        fate = "done" if honest else chance.choices([name for name, _ in FATES], [share for _, share in FATES])[0]
        if fate in ("done", "never"):
            self._lands(operation.act)
        if fate == "late":
            self.due = [*self.due, (now + timedelta(seconds=chance.uniform(*LATE_S)), operation.act)]
        if fate == "never":
            self.mute.add(operation.id)
        return fate, {"done": "done", "lies": "done", "failed": "failed"}.get(fate, "unknown")

    def seen(self, operation: Operation, now: datetime) -> str:
        """Answer to an observer of an act; "" where nobody is answered."""
        self.settle(now)
        act = operation.act
        if operation.id in self.mute:
            return ""
        match act:
            case VerifyFirmware(wanted=wanted):
                return "done" if all(self.runs.get(name) in good for name, good in wanted.items()) else "failed"
            case WriteFirmware(component=name, version=version):
                done = version in (self.runs.get(name), self.staged.get(name))
            case FetchSystemImage(image=image, version=version):
                done = image in self.fetched or self.runs.get(SYSTEM) == version
            case InstallSystemImage(version=version):
                done = self.runs.get(SYSTEM) == version
            case _:
                done = not any(ACTIVATES[name] == "bmc_reset" for name in self.staged)
        if done:
            return "done"
        return "unknown" if any(waits == act for _, waits in self.due) else "not_done"

    def facts(self, operation: Operation) -> Facts:
        """Facts of a verification: what runs."""
        return dict(self.runs) if isinstance(operation.act, VerifyFirmware) else {}

    def activate(self, how: str) -> None:
        """Have run what waits for this."""
        for name in [name for name in self.staged if ACTIVATES[name] == how]:
            self.runs[name] = self.staged.pop(name)

    def _lands(self, act: AnyAct) -> None:
        match act:
            case WriteFirmware(component=name, version=version):
                self.staged = {**self.staged, name: version}
            case FetchSystemImage(image=image):
                self.fetched = {*self.fetched, image}
            case InstallSystemImage(version=version):
                self.runs = {**self.runs, SYSTEM: version}
            case ResetBmc():
                self.activate("bmc_reset")
            case _:
                raise AssertionError(f"no asset takes {act.kind}")


def firmware_of(kind: str, version: str) -> AssetFirmware:
    """The firmware of an asset of this kind, all of this version."""
    return AssetFirmware(dict.fromkeys(COMPONENTS.get(kind, ()), version))
