"""Shelves, a coolant unit and switch trays of a simulated NVL72, beside the nodes that they power, cool and link.

Each is read as its BMC shows it, late, badly or not at all; technicians come for what is ticketed, and say that an
asset which leaked is sound, sometimes while it still drips.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec import Struct

from hostler.controller.inputs import RackSeen
from hostler.controller.step_output import Send
from hostler.core.policy.rack_faults import FAULT
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.model import Operation, Outcome
from hostler.core.state.racks import AssetLook
from hostler.sim.world.people import Errand, People
from hostler.sim.world.world_context import Site, Span

LOOKED_S = 60.0
"""How often each is looked at: as those with leak detectors are in production."""
LATENCY_S = (0.5, 8.0)
NOTICED_S = 3600.0
"""A ticket that is still open after so long is visited again."""
SUPPLIES = 6
MENDS = 0.75
"""Share of visits after which the asset is well in truth; the rest finds nothing and says that it is done."""


class SimulatedAsset(Struct):
    """One asset as it is. `trouble` is "", ill, wet, silent or swapped; `lit`: a tray is switched on."""

    name: str
    kind: str
    serial: str
    trouble: str = ""
    lit: bool = True

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
        return AssetLook(now, serial=serial, health=health, supplies=supplies, leaks=leaks)


class RackAssets:
    """The assets of one rack, who looks at them, and who mends them. `healed`: from then on every visit helps.

    `shown` is the last look that was told of each, `acts` what was done to whom, by operation.
    """

    def __init__(self, site: Site, people: People, pace: Span, healed: Callable[[], bool]) -> None:
        self.assets: dict[str, SimulatedAsset] = {}
        self.shown: dict[str, AssetLook] = {}
        self.acts: list[tuple[str, str, str]] = []
        self._site, self._people, self._pace, self._healed = site, people, pace, healed
        self._open: dict[str, Ticket] = {}
        self._visits = 0

    def add(self, name: str, kind: str) -> SimulatedAsset:
        """One more asset; it is looked at from now on, each in its own moment."""
        asset = self.assets[name] = SimulatedAsset(name, kind, f"S-{name}")
        self._site.clock.after(self._site.stream(f"looks {name}").uniform(1, LOOKED_S), partial(self._looked, name))
        return asset

    @property
    def busy(self) -> bool:
        """Whether anything of the rack is not as it should be, or a ticket about it is open."""
        return bool(self._open) or any(one.trouble or not one.lit for one in self.assets.values())

    def _looked(self, name: str) -> None:
        self._site.clock.after(LOOKED_S, partial(self._looked, name))
        asset = self.assets[name]
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
        wanted = operation.kind == "power_on"
        if asset.trouble == "silent":
            outcome = Outcome(operation.id, asset.name, "unknown", "no answer", attempt=operation.attempt)
        else:
            if perform and asset.lit is not wanted:
                asset.lit = wanted
                self.acts.append((operation.id, asset.name, operation.kind))
            result = "done" if asset.lit is wanted else "not_done"
            outcome = Outcome(operation.id, asset.name, result, "as the asset is", attempt=operation.attempt)
        self._site.reply(outcome, 0.5)

    def see(self, event: e.Event) -> None:
        """See what was recorded: a technician sets out for each ticket about an asset."""
        match event:
            case e.TicketOpened(ticket=ticket) if ticket.kind == FAULT:
                self._open[ticket.id] = ticket
                self._sets_out(ticket, self._pace)
            case e.TicketClosed(ticket=name):
                self._open.pop(name, None)
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
        asset = self.assets[ticket.node]
        if self._healed() or self._site.stream(f"rack visit {self._visits}").random() < MENDS:
            asset.trouble = ""
        self._people.mention(Errand("asset-sound", asset.name, "tina", "looked at and dried"))
        self._sets_out(ticket, (NOTICED_S, 2 * NOTICED_S))
