"""An agent tells its node's parts when the controller does not hold them, and is believed as if it told them always."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.controller_client import About, ControllerClient, SpoolReceipt, UnavailableError
from hostler.agent.inventory_news import WHOLE_S, InventoryNews
from hostler.agent.local_observation import LocalObservation
from hostler.agent.spool import Spool
from hostler.agent.spool_upload import Uploader
from hostler.core.state.model import Facts, Part
from hostler.journal.memory import MemoryJournal
from tests.contract.api_world import DOCUMENTS, House, gpus_of, house

HOUR_S = 3_600.0
FACTS: Facts = {
    "covers": "gpu",
    "memory_kib": 2**20,
    "gpu0.link_speed": "32.0 GT/s PCIe",
    "mlx5_0.1.state": "4: ACTIVE",
}


class AgentOf:
    """The part of a node's agent that looks, tells, and says that it lives."""

    def __init__(self, world: House, node: str, folder: Path) -> None:
        folder.mkdir()
        token = folder / "token"
        token.write_text(world.agent(node).token)
        token.chmod(0o600)
        self.world, self.node, self.folder = world, node, folder
        self.boot, self.now_s = f"boot-{node}", 100.0
        self.parts, self.facts = gpus_of(node), FACTS
        self.controller = ControllerClient(world.session, world.url, token, node)
        self.starts()

    def starts(self) -> None:
        """Another process, of this boot or of another."""
        self.news = InventoryNews()
        self.spool = Spool(self.folder / "spool", self.boot, lambda: self.now_s, lambda: f"s-{self.boot}")
        self.uploader = Uploader(self.node, self.spool, self.controller, lambda: 0.0)

    async def beats(self) -> str:
        beat = await self.controller.heartbeat(
            self.boot, About("1", 1), SpoolReceipt(self.spool.id, self.spool.acknowledged)
        )
        self.news.held = beat.inventory
        return beat.inventory

    def looks(self, after_s: float = HOUR_S) -> bool:
        """The next look; whether it is to be told whole."""
        self.now_s += after_s
        news = self.news.of(NodeInventory(self.parts, self.facts), self.now_s)
        self.spool.append(news)
        return any(one.kind == "inventory" for one in news)

    async def hour(self) -> bool:
        """An hour as it goes by: whether the inventory was told whole in it."""
        await self.beats()
        told = self.looks()
        await self.uploader.send_all()
        return told

    async def settles(self) -> None:
        """Told once and held."""
        assert await self.hour()
        assert not await self.hour()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, agents=True) as inside:
        await inside.adopt(2)
        yield inside


@asynccontextmanager
async def agent_of(world: House, node: str, folder: Path) -> AsyncIterator[AgentOf]:
    agent = AgentOf(world, node, folder / node)
    yield agent
    agent.spool.close()


@pytest.fixture
async def agent(world: House, tmp_path: Path) -> AsyncIterator[AgentOf]:
    async with agent_of(world, "n0", tmp_path) as found:
        yield found


def kept(world: House, node: str) -> list[Any]:
    """The inventories of the node that the journal holds."""
    assert isinstance(world.cell.journal, MemoryJournal)
    return [o for o in world.cell.journal.observations_of(node, limit=1_000) if o.kind == "inventory"]


async def test_what_has_not_changed_is_told_once_a_day(agent: AgentOf, world: House) -> None:
    """Mutants: each look is told; nothing is told again, whatever goes by."""
    await agent.settles()
    before = len(kept(world, "n0"))
    told = [await agent.hour() for _ in range(48)]
    assert sum(told) == 2 == 48 * HOUR_S // WHOLE_S
    assert len(kept(world, "n0")) == before + 2


async def test_that_the_collector_works_is_told_when_it_is_news(agent: AgentOf) -> None:
    """Mutants: with each look; not after a failure."""
    found = NodeInventory(agent.parts, agent.facts)
    words = [one.facts.get("event") for one in agent.news.of(found, 1.0)]
    assert words == ["collector_started", None]
    assert [one.kind for one in agent.news.of(found, 2.0)] == ["inventory"]
    assert [one.facts["event"] for one in agent.news.failed("it hangs", 3.0)] == ["collector_failed"]
    assert [one.facts.get("event") for one in agent.news.of(found, 4.0)] == ["collector_started", None]


@pytest.mark.parametrize(
    "change",
    [
        {"parts": gpus_of("n0")[:1]},
        {"parts": (*gpus_of("n0"), Part("NEW", "nic", "ConnectX-7", "nic0"))},
        {"parts": tuple(msgspec.structs.replace(part, firmware="97.0") for part in gpus_of("n0"))},
        {"facts": {**FACTS, "memory_kib": 2**19}},
        {"facts": {**FACTS, "pci:0000:1b:00": "gpu0"}},
    ],
)
async def test_every_change_is_told_with_the_next_look(agent: AgentOf, change: dict[str, Any]) -> None:
    """Mutant: the digest is of the serials only."""
    await agent.settles()
    for name, value in change.items():
        setattr(agent, name, value)
    assert await agent.hour()


async def test_links_that_rest_change_nothing(agent: AgentOf) -> None:
    await agent.settles()
    agent.facts = {**FACTS, "gpu0.link_speed": "2.5 GT/s PCIe", "mlx5_0.1.state": "1: DOWN"}
    assert not await agent.hour()


async def test_a_controller_that_has_just_begun_is_told_the_whole(agent: AgentOf, world: House) -> None:
    """Mutant: what was told to the one before counts."""
    await agent.settles()
    world.cell.live.forget(world.cell.now())
    assert await agent.beats() == ""
    await agent.settles()


async def test_who_was_not_answered_tells_the_whole(agent: AgentOf) -> None:
    """An agent without an answer does not know what the controller holds. Mutant: the last answer counts for ever."""
    await agent.settles()
    agent.controller = ControllerClient(agent.world.session, "http://127.0.0.1:1", agent.folder / "token", "n0")
    with pytest.raises(UnavailableError):
        await agent.beats()
    agent.news.held = ""  # as the agent's heartbeats do
    assert agent.looks()


async def test_a_controller_of_the_version_before_is_told_the_whole_always(agent: AgentOf) -> None:
    """A controller of the version before says nothing of inventories."""
    await agent.settles()
    agent.news.held = ""
    assert [agent.looks() for _ in range(3)] == [True] * 3


async def test_an_agent_that_starts_anew_tells_the_whole(agent: AgentOf) -> None:
    await agent.settles()
    agent.spool.close()
    agent.starts()
    await agent.settles()


async def test_another_boot_is_told_whole_and_the_spool_of_the_one_before_stands_for_nothing(
    agent: AgentOf, world: House
) -> None:
    """Mutant: what was seen in the boot before is held for this one."""
    await agent.settles()
    agent.looks()
    agent.boot = "boot-2"
    agent.spool.close()
    agent.starts()
    assert await agent.beats() == "", "the boot is another"
    await agent.settles()
    assert world.cell.view.nodes["n0"].inventory_boot == "boot-2"


async def test_what_is_on_its_way_is_not_held(agent: AgentOf, world: House) -> None:
    """A part leaves and comes back before that is read. Mutant: what the controller holds counts alone."""
    await agent.settles()
    agent.parts = gpus_of("n0")[:1]
    assert agent.looks()
    agent.parts = gpus_of("n0")
    assert agent.looks(), "the last word on its way is another"
    await agent.uploader.send_all()
    assert len(world.cell.view.nodes["n0"].slots) == 2
    assert not any(c.type == "inventory.missing_part" for c in world.cell.view.nodes["n0"].conditions)


async def test_what_comes_twice_or_late_holds_what_was_read_last(agent: AgentOf, world: House) -> None:
    """Mutant: a repetition of an older inventory takes the place of the newer one."""
    await agent.settles()
    older = await agent.beats()
    agent.facts = {**FACTS, "memory_kib": 2**21}
    assert await agent.hour()
    newer = await agent.beats()
    assert newer not in ("", older)
    observations = [msgspec.to_builtins(o) for o in kept(world, "n0") if o.facts.get("digest") == older]
    for one in observations:
        del one["received"]
        body = {"node": "n0", "spool": one["spool"], "boot_id": agent.boot, "observations": [one]}
        status, _ = await world.agent("n0").post("/v1/agent/observations", body)
        assert status == 200
    assert await agent.beats() == newer


async def test_another_sku_asks_for_the_whole_and_judges_it(agent: AgentOf, world: House) -> None:
    """Mutant: a node is judged by the SKU of the day on which its inventory was told."""
    await agent.settles()
    other = {name: text.replace("gpus: 2", "gpus: 3") for name, text in DOCUMENTS.items()}
    status, answer = await world.operator.post("/v1/config", {"documents": other, "reason": "they have three"})
    assert status == 200, answer
    await world.until(lambda: world.cell.view.configuration_of(world.cell.view.nodes["n0"]).skus["h100"].gpus == 3)
    assert await agent.hour()
    assert [c.type for c in world.cell.view.nodes["n0"].conditions] == ["inventory.below_sku"]


async def test_while_a_condition_stands_on_what_it_tells_it_tells_it(agent: AgentOf, world: House) -> None:
    """A repeated inventory keeps a condition seen and ends it. Mutant: a node that lacks a part is silent about it."""
    await agent.settles()
    agent.parts = gpus_of("n0")[:1]
    assert [await agent.hour() for _ in range(3)] == [True] * 3
    assert any(c.type == "inventory.missing_part" for c in world.cell.view.nodes["n0"].conditions)
    agent.parts = gpus_of("n0")
    assert await agent.hour()
    assert not any(c.type == "inventory.missing_part" for c in world.cell.view.nodes["n0"].conditions)
    assert not await agent.hour()


async def test_whose_part_another_claims_tells_it_while_the_claim_stands(
    agent: AgentOf, world: House, tmp_path: Path
) -> None:
    """Both sides; on the holder the end is one record an hour too, and this world lasts for less (docs/adr/0181).

    Mutant: the holder is silent while another node shows its GPU.
    """
    async with agent_of(world, "n1", tmp_path) as thief:
        await agent.settles()
        await thief.settles()
        thief.parts = (gpus_of("n0")[0], gpus_of("n1")[1])
        assert [await thief.hour() for _ in range(2)] == [True, True]
        assert [await agent.hour() for _ in range(2)] == [True, True]
        assert world.cell.view.parts["GPU-n0-0"].node == "n0"
        thief.parts = gpus_of("n1")
        assert [await thief.hour() for _ in range(2)] == [True, True]
        assert await agent.hour(), "the claim stands until an hour of the cell's clock has gone by"


async def test_what_its_bmc_changes_in_the_record_the_agent_tells_again(agent: AgentOf, world: House) -> None:
    """Mutant: the digest alone is compared, whatever has become of what is recorded."""
    await agent.settles()
    power = ({"serial": "PSU-1", "kind": "psu", "model": "3 kW", "slot": "psu0"},)
    seen = {"node": "n0", "kind": "inventory", "source": "bmc", "spool": "bmc", "sequence": 1, "parts": power}
    observed = msgspec.convert({**seen, "received": world.cell.now()}, type=type(kept(world, "n0")[0]))
    await world.cell.observe("n0", (observed,))
    assert "PSU-1" in {serial for _, serial in world.cell.view.nodes["n0"].slots}
    assert await agent.hour()
    assert not await agent.hour()


@pytest.mark.parametrize("digest", ["", "x" * 129, 7, None, True])
async def test_a_digest_that_is_none_is_no_reason_to_be_silent(world: House, agent: AgentOf, digest: Any) -> None:
    facts = {"covers": "gpu"} | ({} if digest is None else {"digest": digest})
    agent.spool.append([LocalObservation("inventory", 100.0, facts=facts, parts=gpus_of("n0"))])
    await agent.uploader.send_all()
    assert await agent.beats() == ""
