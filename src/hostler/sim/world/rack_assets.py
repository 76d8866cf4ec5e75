"""Shelves, a coolant unit and switch trays of a simulated NVL72, beside the nodes that they power, cool and link.

Each is read as its BMC shows it, late, badly or not at all; technicians come for what is ticketed, and say that an
asset which leaked is sound, sometimes while it still drips. A bring-up that failed is asked for again by its ticket's
technician, one that is done is certified.
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from hostler.controller.inputs import RackSeen
from hostler.controller.step_output import Send
from hostler.core.policy.rack_faults import FAULT
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.model import Operation, Outcome, Phase
from hostler.core.state.rack_runs import RACK_FAILED
from hostler.core.state.racks import CONFIGURED, AssetLook
from hostler.core.state.verbs.nodes import Certify
from hostler.core.state.verbs.racks import AssetSound, RackBringUp, RackCertify
from hostler.sim.world.asset_firmware import BUNDLE, AssetFirmware, firmware_of
from hostler.sim.world.people import Errand, People
from hostler.sim.world.world_context import Site, Span

LOOKED_S = 60.0
"""How often each is looked at: as those with leak detectors are in production."""
HEALED_S = 600.0
"""How often one that is well is looked at in a world that was healed."""
LATENCY_S = (0.5, 8.0)
ANSWERS_S = 0.5
NOTICED_S = 3600.0
"""A ticket that is still open after so long is visited again."""
SUPPLIES = 6
MANAGES = "nvsw0"
"""The switch tray that runs the fabric manager."""
RACK = "rack:r0"
MENDS = 0.75
"""Share of visits after which the asset is well in truth; the rest finds nothing and says that it is done."""


class SimulatedAsset(Struct):
    """One asset as it is. `trouble` is "", ill, wet, silent or swapped; `lit`: a tray is switched on."""

    name: str
    kind: str
    serial: str
    trouble: str = ""
    lit: bool = True
    firmware: AssetFirmware = field(default_factory=lambda: AssetFirmware({}))

    def look(self, now: datetime) -> AssetLook:
        """The look that its BMC gives; it stands by when the asset is switched off."""
        if self.trouble == "silent":
            return AssetLook(now, why="it gave no answer")
        supplies = tuple((f"psu{n}", "ok") for n in range(SUPPLIES)) if self.kind == "power_shelf" else ()
        if supplies and self.trouble == "ill":
            supplies = (*supplies[:-1], (f"psu{SUPPLIES - 1}", "critical"))
        leaks = () if self.kind == "power_shelf" else (("floor", "critical" if self.trouble == "wet" else "ok"),)
        health = "critical" if self.trouble == "ill" and not supplies else "ok"
        serial = f"{self.serial}-X" if self.trouble == "swapped" else self.serial
        versions = tuple(self.firmware.runs.items())
        manages = CONFIGURED if self.name == MANAGES else ""
        look = AssetLook(now, serial=serial, health=health, supplies=supplies, leaks=leaks, firmware=versions)
        return replace(look, control_plane=manages)


class RackAssets:
    """The assets of one rack, who looks at them, and who mends them. `healed`: from then on every visit helps.

    `shown` is the last look that was told of each, `acts` what was done to whom, by operation. `fates` counts how the
    acts of bring-ups went, `runs` are the bring-ups under way; `sku` is the one for which they are asked.
    """

    def __init__(self, site: Site, people: People, pace: Span, healed: Callable[[], bool]) -> None:
        self.assets: dict[str, SimulatedAsset] = {}
        self.shown: dict[str, AssetLook] = {}
        self.acts: list[tuple[str, str, str]] = []
        self.fates: Counter[str] = Counter()
        self.runs: set[str] = set()
        self.sku = ""
        self._site, self._people, self._pace, self._healed = site, people, pace, healed
        self._open: dict[str, Ticket] = {}
        self._inspected: dict[str, bool] = {}
        self._visits = 0

    def add(self, name: str, kind: str, version: str = BUNDLE) -> SimulatedAsset:
        """One more asset, with firmware of this version; it is looked at from now on, each in its own moment."""
        firmware = firmware_of(kind, version)
        asset = self.assets[name] = SimulatedAsset(name, kind, f"S-{name}", firmware=firmware)
        self._site.clock.after(self._site.stream(f"looks {name}").uniform(1, LOOKED_S), partial(self._looked, name))
        return asset

    @property
    def busy(self) -> bool:
        """Whether anything of the rack is not as it should be, a ticket about it is open, or it is brought up."""
        ill = any(one.trouble or not one.lit or one.firmware.differs for one in self.assets.values())
        return bool(self._open or self.runs) or ill

    def bring_up(self) -> None:
        """A person has the rack brought up."""
        self._people.ask(Errand(RackBringUp(self.sku), RACK, "olga", "its turn has come"))

    def _looked(self, name: str) -> None:
        asset = self.assets[name]
        asset.firmware.settle(self._site.clock.now)
        seldom = self._healed() and not self._open and not self.runs
        self._site.clock.after(HEALED_S if seldom else LOOKED_S, partial(self._looked, name))
        look = self.shown[name] = asset.look(self._site.recorded)
        if (asset.kind, asset.trouble) == ("coolant_unit", "wet"):
            self._site.coolant = self._site.clock.now
        self._site.tell(RackSeen(name, look))

    def take(self, send: Send) -> None:
        """Take what the controller sends about an asset; answers are lost, doubled and late as any."""
        if send.how != "revoke":
            self._site.expects(send.operation)
            span = self._site.stream(f"{send.operation.id} {send.how} {send.operation.attempt}").uniform(*LATENCY_S)
            self._site.clock.after(span, partial(self._acts, send.operation, perform=send.how == "perform"))

    def _acts(self, operation: Operation, *, perform: bool) -> None:
        asset = self.assets[operation.node]
        if asset.trouble == "silent":
            told = "unknown"
        elif operation.kind in ("power_on", "power_off"):
            told = self._switched(asset, operation, perform=perform)
        else:
            told = self._flashed(asset, operation, perform=perform)
        if told:
            facts = asset.firmware.facts(operation)
            said = "no answer" if asset.trouble == "silent" else "as the asset is"
            self._site.reply(Outcome(operation.id, asset.name, told, said, facts, attempt=operation.attempt), ANSWERS_S)

    def _switched(self, asset: SimulatedAsset, operation: Operation, *, perform: bool) -> str:
        wanted = operation.kind == "power_on"
        if perform and asset.lit is not wanted:
            asset.lit = wanted
            self.acts.append((operation.id, asset.name, operation.kind))
            if wanted:
                asset.firmware.activate("dc_cycle")
        return "done" if asset.lit is wanted else "not_done"

    def _flashed(self, asset: SimulatedAsset, operation: Operation, *, perform: bool) -> str:
        now, honest = self._site.clock.now, self._healed()
        if honest:
            asset.firmware.mute.clear()
        if not perform:
            return asset.firmware.seen(operation, now)
        chance = self._site.stream(f"{operation.id} fate {operation.attempt}")
        fate, told = asset.firmware.perform(operation, now, chance, honest=honest)
        self.fates[fate] += 1
        if fate not in ("failed", "lost", "lies"):
            self.acts.append((operation.id, asset.name, operation.kind))
        return "" if fate == "never" else told

    def see(self, event: e.Event) -> None:
        """See what was recorded: a technician sets out for each ticket about an asset."""
        match event:
            case e.TicketOpened(ticket=ticket) if ticket.kind in (FAULT, RACK_FAILED):
                self._open[ticket.id] = ticket
                self._sets_out(ticket, self._pace)
            case e.TicketClosed(ticket=name):
                self._open.pop(name, None)
            case e.PhaseChanged(node=node, after=after):
                self._inspected[node] = after is Phase.onboard
            case e.RackStepDone(step="fabric_managers"):
                for node in [node for node, waits in self._inspected.items() if waits]:
                    self._people.ask(Errand(Certify(), node, "tina", "its rack stands by now"))
            case e.RackRunBegan(run=run):
                self.runs.add(run.id)
            case e.RackRunEnded(run=ended, result=result):
                self.runs.discard(ended)
                if result == "done":
                    self._people.ask(Errand(RackCertify(), RACK, "tina", "it stands"))
            case _:
                pass

    def _sets_out(self, ticket: Ticket, within: Span) -> None:
        self._visits += 1
        chance = self._site.stream(f"rack technician {self._visits}")
        self._site.clock.after(chance.uniform(*within), partial(self._visit, ticket))

    def _visit(self, ticket: Ticket) -> None:
        if ticket.id not in self._open:
            return
        self._visits += 1
        self._people.touches += 1
        asset = self.assets.get(ticket.component if ticket.kind == RACK_FAILED else ticket.node)
        if asset is not None and (self._healed() or self._site.stream(f"rack visit {self._visits}").random() < MENDS):
            asset.trouble = ""
        if ticket.kind == RACK_FAILED:
            self._people.mention(Errand(RackBringUp(self.sku), RACK, "tina", "as its ticket says"))
        elif asset is not None:
            self._people.mention(Errand(AssetSound(), asset.name, "tina", "looked at and dried"))
        self._sets_out(ticket, (NOTICED_S, 2 * NOTICED_S))
