"""A seeded rack in virtual time: shelves, a coolant unit and switch trays that lie, answer late or never, and crashes.

First a time with faults, in which a person has the rack brought up again whenever that has failed; then all is put
right, and the bring-up must come to its end. The controller is the real one; the twin answers as BMCs
have been seen to.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, Input, IntentAsked, RackSeen, Replied, Tick
from hostler.controller.loop import Controller
from hostler.controller.step_output import Send, StepOutput
from hostler.core.state import events as e
from hostler.core.state.bmc_login import gives_up
from hostler.core.state.configuration import Configuration
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import Fellow, LiveState, Release
from hostler.core.state.model import Facts, Operation, Outcome
from hostler.core.state.operations import RenewBmcLogin, VerifyFirmware, WriteFirmware
from hostler.core.state.racks import AssetLook
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.nodes import RegisterAssets
from hostler.core.state.verbs.racks import RackBringUp, RackCertify, RenewAssetLogin
from hostler.sim.checkers.rack_laws import RackLaws

START = datetime(2026, 1, 1, tzinfo=UTC)
RACK = "r1"
BUNDLE, OLD = "2.0", "1.0"
COMPONENT = {"power_shelf": "PMC", "switch_tray": "FW"}
TROUBLES = ("well", "well", "well", "ill", "silent", "swapped", "wet")
FATES = ("done", "done", "done", "late", "lies", "failed", "never", "lost")
CRASHES = 0.02
"""Chance that the controller dies after a batch, before what it recorded is sent."""
ASKS = 0.02
"""Chance, for each asset at each look, that a person asks for a new password of its BMC."""
RESTARTS = 0.5
"""Chance that a BMC which takes its new password late has done so by the time it is asked."""


class Twin(Struct):
    """One asset as it really is. `due`: when a write takes effect, `writing` what it will run then.

    `entered` is the renewal that set its BMC's password, "" for the factory's; `setting` one that may count later.
    """

    name: str
    kind: str
    trouble: str
    runs: str = OLD
    writing: str = ""
    due: datetime | None = None
    entered: str = ""
    setting: str = ""

    def settle(self, now: datetime) -> None:
        """Let happen what was due."""
        if self.due is not None and self.due <= now:
            self.runs, self.writing, self.due = self.writing, "", None

    def look(self, now: datetime) -> AssetLook:
        """The look that its BMC gives."""
        self.settle(now)
        if self.trouble == "silent":
            return AssetLook(now, why="it gave no answer")
        supplies = tuple((f"psu{n}", "ok") for n in range(6)) if self.kind == "power_shelf" else ()
        if supplies and self.trouble == "ill":
            supplies = (*supplies[:5], ("psu5", "critical"))
        leaks = (("floor", "warning" if self.trouble == "wet" else "ok"),) if self.kind == "coolant_unit" else ()
        health = "critical" if self.trouble == "ill" and self.kind != "power_shelf" else "ok"
        name = COMPONENT.get(self.kind, "")
        return AssetLook(
            now,
            serial=f"{self.name}-X" if self.trouble == "swapped" else f"{self.name}-S",
            health=health,
            supplies=supplies,
            leaks=leaks,
            firmware=((name, self.runs),) if name else (),
        )

    @property
    def stands(self) -> bool:
        """Whether it is in truth as the manifest says."""
        well = self.trouble == "well" or (self.trouble == "wet" and self.kind != "coolant_unit")
        return well and (self.kind not in COMPONENT or self.runs == BUNDLE)


class RackWorld:
    """One seed's rack, the controller around it, and what the watcher found."""

    def __init__(self, seed: int, configuration: Configuration) -> None:
        self.rng = Random(seed)
        self.now = START
        self.journal: list[e.Record] = []
        self.found: list[str] = []
        self.healed = False
        self._sku = next(name for name, sku in configuration.skus.items() if sku.rack is not None)
        kinds = ("power_shelf", "power_shelf", "coolant_unit", "switch_tray", "switch_tray")
        self.twins = {f"a{n}": Twin(f"a{n}", kind, self.rng.choice(TROUBLES)) for n, kind in enumerate(kinds)}
        trays = frozenset(name for name, twin in self.twins.items() if twin.kind == "switch_tray")
        self.laws = RackLaws(trays, self._untrue)
        self._pending: list[Send] = []
        self._silenced: set[str] = set()
        self._token = 0
        self.crashes = 0
        self._enter(e.Record(1, START, 1, "seed", e.ConfigActivated(configuration, {}, "ann")))
        self._begin(1)
        assets = [
            {"id": t.name, "kind": t.kind, "rack": RACK, "serial": f"{t.name}-S", "bmc": f"https://{t.name}"}
            for t in self.twins.values()
        ]
        self._ask(RegisterAssets(json.dumps(assets)), "fleet")

    def _untrue(self) -> str:
        for twin in self.twins.values():
            twin.settle(self.now)
        return ", ".join(f"{t.name} is {t.trouble}, runs {t.runs}" for t in self.twins.values() if not t.stands)

    def _enter(self, record: e.Record) -> None:
        self.journal.append(record)

    def _begin(self, epoch: int) -> None:
        fleet = Fleet()
        for record in self.journal:
            evolve(fleet, record)
        fleet.merge()
        self.controller = Controller(fleet, LiveState(), {}, epoch)
        self._complete(self.controller.resume(self.now, "sim"))
        self._step(FellowsSeen((Fellow("sim", Release().reads),)))

    def _complete(self, ready: StepOutput) -> None:
        for record in ready.batch.records:
            self.found += [f"record {record.seq}: {text}" for text in self.laws.record(record)]
            self._enter(record)
        self.controller.committed()
        if not self.healed and self.rng.random() < CRASHES:
            self.crashes += 1
            self._pending.clear()
            self._begin(self.controller.epoch + 1)
            return
        self._pending += ready.sends

    def _step(self, *inputs: Input) -> None:
        self._complete(self.controller.step(inputs, self.now))

    def _ask(self, act: Verb, target: str) -> None:
        self._token += 1
        self._step(IntentAsked(self._token, Intent(f"i{self._token}", act, target, "ann", "because", self.now)))

    def run(self, hours: float) -> None:
        """Let so much time pass: looks every two minutes, answers as they come, the agenda in between."""
        end = self.now + timedelta(hours=hours)
        while self.now < end:
            for twin in self.twins.values():
                self._step(RackSeen(twin.name, twin.look(self.now)))
            until = min(end, self.now + timedelta(minutes=2))
            while self.now < until:
                self._serve()
                wake = self.controller.agenda.next()
                self.now = max(self.now + timedelta(seconds=1), min(until, wake) if wake is not None else until)
                self._step(Tick())
            for asset in list(self.controller.fleet.assets.values()):
                if gives_up(asset.bmc_login) if self.healed else self.rng.random() < ASKS:
                    self._ask(RenewAssetLogin(), asset.id)
            rack = self.controller.fleet.racks.get(RACK)
            if rack is None or (rack.run is None and (rack.ended is None or rack.ended.result != "done")):
                self._ask(RackBringUp(self._sku), f"rack:{RACK}")

    def heal(self) -> None:
        """Put all right: nothing lies, fails or is silent any more."""
        self.healed = True
        self._silenced.clear()
        for twin in self.twins.values():
            twin.trouble = "well"

    def certify(self) -> bool:
        """Have the rack certified; whether it is now."""
        self._ask(RackCertify(), f"rack:{RACK}")
        rack = self.controller.fleet.racks.get(RACK)
        return rack is not None and rack.certificate is not None and rack.certificate.holds

    def _serve(self) -> None:
        pending, self._pending = self._pending, []
        for send in pending:
            outcome = self._observed(send.operation) if send.how == "observe" else self._performed(send.operation)
            if outcome is not None:
                self._step(Replied(outcome))

    def _performed(self, operation: Operation) -> Outcome | None:
        twin = self.twins[operation.node]
        twin.settle(self.now)
        fate = "done" if self.healed else self.rng.choice(FATES)
        match operation.act:
            case VerifyFirmware():
                return self._verified(operation, twin)
            case RenewBmcLogin():
                return self._renewed(operation, twin, fate)
            case WriteFirmware(version=version) if twin.runs != version:
                return self._written(operation, twin, version, fate)
            case _:
                return _told(operation, "done")

    def _written(self, operation: Operation, twin: Twin, version: str, fate: str) -> Outcome | None:
        match fate:
            case "done":
                twin.runs = version
            case "late" | "never":
                twin.writing = version
                twin.due = self.now + timedelta(minutes=self.rng.randint(1, 20))
                if fate == "never":
                    self._silenced.add(operation.id)
                    return None
                return _told(operation, "unknown")
            case "failed":
                return _told(operation, "failed")
            case "lost":
                return _told(operation, "unknown")
            case _:
                pass  # it lies: done, and nothing has changed
        return _told(operation, "done")

    def _observed(self, operation: Operation) -> Outcome | None:
        twin = self.twins[operation.node]
        twin.settle(self.now)
        if operation.id in self._silenced:
            return None
        if isinstance(operation.act, VerifyFirmware):
            return self._verified(operation, twin)
        if isinstance(operation.act, RenewBmcLogin):
            if twin.setting == operation.id and self.rng.random() < RESTARTS:
                twin.entered, twin.setting = operation.id, ""
            return _told(operation, "done" if twin.entered == operation.id else "not_done")
        if not isinstance(operation.act, WriteFirmware):
            return _told(operation, "done")
        if twin.runs == operation.act.version:
            return _told(operation, "done")
        return _told(operation, "unknown" if twin.due is not None else "not_done")

    def _renewed(self, operation: Operation, twin: Twin, fate: str) -> Outcome | None:
        """The driver's answer about a password: what it proved, or how a BMC that lies was seen through."""
        if fate == "done":
            twin.entered, twin.setting = operation.id, ""
            return _told(operation, "done")
        if fate in ("late", "never"):
            twin.setting = operation.id
        if fate == "never":
            self._silenced.add(operation.id)
            return None
        if fate == "failed":
            return _told(operation, "refused")
        return _told(operation, "unknown" if fate in ("lost", "late") else "failed")

    @staticmethod
    def _verified(operation: Operation, twin: Twin) -> Outcome:
        wanted = operation.act.wanted if isinstance(operation.act, VerifyFirmware) else {}
        right = all(twin.runs in good for good in wanted.values())
        facts: Facts = dict.fromkeys(wanted, twin.runs)
        return replace(_told(operation, "done" if right else "failed"), facts=facts)


def _told(operation: Operation, result: str) -> Outcome:
    return Outcome(operation.id, operation.node, result, "as the twin has it", attempt=operation.attempt)


def lives(seed: int, configuration: Configuration, hours: float = 12.0) -> Iterator[str]:
    """Live one seed: violations, and what did not come to its end once all was put right."""
    world = RackWorld(seed, configuration)
    world.run(hours)
    world.heal()
    world.run(16.0)
    yield from world.found
    rack = world.controller.fleet.racks.get(RACK)
    if rack is None or rack.ended is None or rack.ended.result != "done":
        yield f"seed {seed}: healed, and the bring-up is not done: {rack.run if rack is not None else None}"
    elif not world.certify():
        yield f"seed {seed}: healed, and not certified"
    renews = bool(configuration.policy.bmc_credentials.renew_every_s)
    if renews and (left := [t.name for t in world.twins.values() if not t.entered]):
        yield f"seed {seed}: healed, and {left} have the factory's password"
    if world.laws.under_way:
        yield f"seed {seed}: {world.laws.under_way} never ended"
