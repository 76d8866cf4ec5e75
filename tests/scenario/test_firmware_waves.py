"""A new firmware baseline reaches nodes in service in waves: a few of one pool, then pool by pool.

The waves are the slices of its configuration's rollout. Each node is written under its pool's budget, by the driver
that runs in production, at an emulated BMC of its own.
"""

import hashlib
import json
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import IntentAsked
from hostler.core.planning.rollouts import waits_for
from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.configuration import Configuration
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Node, Phase
from hostler.sim.bmc.emulated_machine import NO_QUIRKS, Delays, Machine, Quirks, gpu_server, make_image
from tests.kit import NOW, POLICY, a_node, intent_of, pool_document
from tests.scenario.planted_fleet import PlantedFleet

SIZES = {"dev": 8, "web": 16}
CANARIES = 4
"""`reach.first_nodes` of the shipped policy."""


def configured(bios: str) -> Configuration:
    update = {"image": f"http://images/BIOS/{bios}", "sha256": hashlib.sha256(make_image("BIOS", bios)).hexdigest()}
    sku = {"gpus": 8, "firmware": {"BIOS": bios}, "updates": {"BIOS": {**update, "activate": "dc_cycle"}}}
    budget, modes = {"count": 4, "percent": 100}, {"*": "act"}
    pools = {name: pool_document(sku="x", target=size, budget=budget, modes=modes) for name, size in SIZES.items()}
    return documents.parse({"policy.yaml": POLICY, "x.yaml": json.dumps({"skus": {"x": sku}, "pools": pools})})


class Serving(PlantedFleet):
    """Nodes in service, in two pools, whose BMCs tell their firmware once an hour."""

    def node_at_first(self, name: str, sku: str, machine: Machine) -> Node:
        bindings = (Binding("serial", machine.hardware.serial, NOW), Binding("bmc", f"https://{name}", NOW))
        known = (("BIOS", machine.firmware["BIOS"]),)
        return replace(a_node(name, pool=name.partition("-")[0], sku=sku, firmware=known), bindings=bindings)

    def hours(self, number: int) -> None:
        """Time passes."""
        for _ in range(number):
            for name, machine in self.machines.items():
                if machine.power == "On":
                    self.observe(name, "firmware", source="bmc", facts={"firmware.BIOS": machine.firmware["BIOS"]})
            self.live(hours=1)

    def bring(self, bios: str) -> None:
        """Ann activates the baseline, and Bob approves."""
        self._token += 1
        intent = intent_of("activate", "activate", "fleet", "ann", "the vendor's bundle of May", self.now, {})
        reply = self.step(IntentAsked(self._token, intent, configured(bios), {"x.yaml": bios})).replies[0]
        if approval := reply.detail.get("approval"):
            assert self.ask("approve-request", approval, person="bob").granted

    def asked_to_write(self) -> list[str]:
        """Nodes whose BMC was asked to write, in their order."""
        writes = (one.operation for one in self.events(e.OperationStarted) if one.operation.kind == "update_firmware")
        return list(dict.fromkeys(one.node for one in writes))


def serving(quirks: Quirks = NO_QUIRKS) -> Serving:
    machines = {
        f"{pool}-{number:02d}": ("x", Machine("m", gpu_server(f"S-{pool}{number}", 8), Delays(), quirks))
        for pool, size in SIZES.items()
        for number in range(size)
    }
    fleet = Serving(configured("1.0.0"), machines, {}, begins=Phase.production)
    fleet.step(fleet.view())
    fleet.hours(1)
    assert not fleet.asked_to_write()
    return fleet


def test_a_baseline_goes_from_a_few_nodes_to_their_pool_and_on_to_the_next() -> None:
    """Mutants: a new baseline is an error of its own rollout; the next wave begins before this one runs it."""
    fleet = serving()
    fleet.bring("2.0.0")
    fleet.hours(40)
    order = fleet.asked_to_write()
    waves = order[:CANARIES], order[CANARIES : SIZES["dev"]], order[SIZES["dev"] :]
    assert [{name.partition("-")[0] for name in wave} for wave in waves] == [{"dev"}, {"dev"}, {"web"}]
    began = {one.operation.node: one.operation.started for one in fleet.events(e.OperationStarted)}
    over = {r.event.node: r.at for r in fleet.journal if isinstance(r.event, e.PlanEnded)}
    for wave, following in pairwise(waves):
        assert max(over[name] for name in wave) <= min(began[name] for name in following)
    assert all(machine.firmware["BIOS"] == "2.0.0" for machine in fleet.machines.values())
    assert fleet.fleet.rollout is None
    assert fleet.fleet.configuration.skus["x"].firmware == {"BIOS": "2.0.0"}
    assert not fleet.events(e.RolloutStopped)


def test_the_next_wave_waits_for_a_node_that_cannot_be_written_and_says_which() -> None:
    """Mutant: an hour without an error is proof, though nobody was written."""
    fleet = serving()
    assert fleet.ask("hold", "dev-02", hours="200").granted
    fleet.bring("2.0.0")
    fleet.hours(10)
    rollout = fleet.fleet.rollout
    assert rollout is not None
    said = waits_for(DecisionContext(fleet.fleet, fleet.controller.live, fleet.now), rollout)
    assert "dev-02 does not run its new firmware baseline yet" in said
    assert len(fleet.asked_to_write()) == CANARIES - 1


@pytest.mark.parametrize(
    "bad",
    [
        Quirks(lies_about=frozenset({"BIOS"})),
        Quirks(fails_on=frozenset({"BIOS"})),
        Quirks(flaps=frozenset({"BIOS"})),
        Quirks(refuses_images=True),
    ],
    ids=["success that is none", "failure", "a version that flaps", "refusal"],
)
def test_a_baseline_that_fails_stops_at_its_first_nodes(bad: Quirks) -> None:
    """Mutants: failed updates are no errors of the wave; the next wave begins all the same."""
    fleet = serving(bad)
    fleet.bring("2.0.0")
    fleet.hours(60)
    (stopped,) = fleet.events(e.RolloutStopped)
    assert "errors on 4 nodes" in stopped.reason
    assert len(fleet.asked_to_write()) <= CANARIES
    assert fleet.fleet.configuration.skus["x"].firmware == {"BIOS": "1.0.0"}
    untouched: dict[str, Any] = {name: fleet.machines[name].counts for name in fleet.machines if name.startswith("web")}
    assert not any(counts["SimpleUpdate"] for counts in untouched.values())
