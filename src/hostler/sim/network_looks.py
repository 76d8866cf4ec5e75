"""Looks at a simulated network: the engine's own pace, reader, comparison and rounds, in virtual time.

What differs from production is the clock and the tool: the pages are those that the world prints, whole or spoilt.
"""

from collections import deque
from datetime import datetime
from random import Random

from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen, LinksSeen
from hostler.controller.loop import Controller
from hostler.core.fabric.binding import names_of
from hostler.core.fabric.design import Design
from hostler.core.fabric.design_csv import parse_csv
from hostler.core.fabric.discovery import Discovery, FoundPort
from hostler.core.fabric.validation_report import report
from hostler.core.policy.hosts_without_power import without_power
from hostler.core.policy.link_cases import resets
from hostler.core.state.fabrics import Fabric, FabricVerdict
from hostler.core.state.links import LinkRound
from hostler.drivers.infiniband import netdiscover
from hostler.polling.fabric_schedule import FabricPace, FabricTurn, due_s
from hostler.polling.link_rounds import ROUND_S, BoundCables, LinkWatch, wiring_of
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.simulated_network import NAME, SimulatedNetwork

POLL_S = 60.0
"""How often it is asked who is due; the engine asks each second, which no world here tells apart."""
TAKES_S = (0.2, 20.0)
PACE = FabricPace()

LATE, CUT, SHRUNKEN, TWICE, CONTRADICTORY = "late", "cut", "shrunken", "twice", "contradictory"
TROUBLES = (LATE, CUT, SHRUNKEN, TWICE, CONTRADICTORY)


class NetworkLooks:
    """Validations and rounds of readings of one network, for whichever controller is active.

    `spoilt`: what is wrong with the next discoveries, one after the other. `verdicts` counts what came of them.
    """

    def __init__(self, drive: Drive, network: SimulatedNetwork, chance: Random) -> None:
        self.spoilt: deque[str] = deque()
        self.verdicts: dict[str, int] = {}
        self._drive = drive
        self._network = network
        self._chance = chance
        self._term: Controller | None = None
        self._turn: FabricTurn | None = None
        self._watch = LinkWatch()
        self._wiring: BoundCables | None = None
        self._designs: dict[str, Design] = {}
        self._looking = False

    def places(self, fabric: str) -> dict[str, FoundPort]:
        """The network's ports by their names in its design, as the last whole validation bound them."""
        bound = self._wiring if fabric == NAME else None
        return {str(port): at for at, port in bound.names.items()} if bound is not None else {}

    def begin(self) -> None:
        """From now on."""
        clock = self._drive.world.clock
        clock.after(POLL_S, self._poll)
        clock.after(ROUND_S, self._round)

    def _poll(self) -> None:
        self._network.observe()
        self._drive.world.clock.after(POLL_S, self._poll)
        if (fabric := self._fabric()) is None or self._looking:
            return
        now = self._drive.world.clock.elapsed_s
        waited = now - self._turn.ended if self._turn is not None else 0.0
        if waited >= due_s(self._active().fleet, fabric, self._turn, PACE):
            self._look(fabric)

    def _active(self) -> Controller:
        assert self._term is not None, "its caller has found a network"
        return self._term

    def _fabric(self) -> Fabric | None:
        """The network as the active controller knows it; with a new one everything is looked at anew."""
        controller = self._drive.controller
        if controller is not self._term:
            self._term, self._turn, self._watch, self._wiring, self._looking = (
                controller,
                None,
                LinkWatch(),
                None,
                False,
            )
        return controller.fleet.fabrics.get(NAME) if controller is not None else None

    def _look(self, fabric: Fabric) -> None:
        site, term = self._drive.world.site, self._term
        began, spoilt = site.recorded, self.spoilt.popleft() if self.spoilt else ""
        found, takes_s = self._discovered(fabric, spoilt)
        self._looking = True

        def ended() -> None:
            if self._drive.controller is term:
                self._ended(fabric, found, began)
                if spoilt == TWICE:
                    site.clock.after(1.0, lambda: self._again(term, fabric, found, began))

        site.clock.after(takes_s, ended)

    def _discovered(self, fabric: Fabric, spoilt: str) -> tuple[Discovery, float]:
        """The page, read by the real reader, and how long the tool took; one that takes too long is left."""
        takes_s, limit_s = self._chance.uniform(*TAKES_S), fabric.source.timeout_s + PACE.slack_s
        if spoilt == LATE:
            takes_s = self._chance.uniform(limit_s / 2, limit_s * 1.5)
        if takes_s > limit_s:
            return Discovery({}, (), "the discovery did not end in its time, and was left"), limit_s
        return netdiscover.parse(self._page(spoilt)), takes_s

    def _page(self, spoilt: str) -> str:
        page = self._network.page(self._part() if spoilt == SHRUNKEN else None)
        match spoilt:
            case "cut":
                return page[: int(len(page) * self._chance.uniform(0.05, 0.98))]
            case "contradictory":
                blocks = page.split("vendid")
                return page + "vendid" + self._chance.choice(blocks[1:]).replace("[1]\t", "[2]\t") if blocks[1:] else ""
            case _:
                return page

    def _part(self) -> frozenset[str]:
        """Devices of a part of the network that is whole in itself: what a discovery from an isolated island sees."""
        devices = sorted(self._network.design.devices)
        return frozenset(self._chance.sample(devices, len(devices) // 2))

    def _again(self, term: Controller | None, fabric: Fabric, found: Discovery, began: datetime) -> None:
        """The same result once more, as from a second discovery that ran beside the first."""
        if self._drive.controller is term:
            self._tell(fabric, found, began)

    def _ended(self, fabric: Fabric, found: Discovery, began: datetime) -> None:
        self._looking = False
        if self._tell(fabric, found, began).concludes:
            self._wiring = wiring_of(self._design(fabric), names_of(self._design(fabric), found), found)

    def _tell(self, fabric: Fabric, found: Discovery, began: datetime) -> FabricVerdict:
        controller = self._active()
        found = replace(found, off=without_power(controller.fleet, controller.live, fabric))
        told = report(fabric, self._design(fabric), found, began)
        verdict = told.look.verdict
        self.verdicts[verdict.value] = self.verdicts.get(verdict.value, 0) + 1
        failed = 0 if verdict.concludes else (self._turn.failed if self._turn is not None else 0) + 1
        self._turn = FabricTurn(self._drive.world.clock.elapsed_s, told.look, failed)
        self._drive.world.site.tell(FabricSeen(told))
        return verdict

    def _design(self, fabric: Fabric) -> Design:
        if fabric.digest not in self._designs:
            self._designs = {fabric.digest: parse_csv(fabric.design.encode(), fabric.name)}
        return self._designs[fabric.digest]

    def _round(self) -> None:
        """One round of readings; agents that are not heard tell nothing."""
        self._drive.world.clock.after(ROUND_S, self._round)
        fabric = self._fabric()
        if fabric is None or self._wiring is None:
            return
        self._network.observe()
        began = self._drive.world.site.recorded
        standing = resets(self._active().fleet, NAME)
        faults, clean = self._watch.take(self._wiring, self._network.readings(), standing, began)
        count = len(self._watch.latest)
        self._drive.world.site.tell(LinksSeen(LinkRound(NAME, began, count, tuple(faults), tuple(clean))))
