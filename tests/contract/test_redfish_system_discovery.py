"""A node is bound to one machine: where several are behind a BMC, whoever registers or adopts it says which."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.drivers.redfish.system_discovery import Introduction
from hostler.ports import UnreachableError
from hostler.server import bmc_system_choice
from hostler.sim.bmc.emulated_machine import Machine, Quirks
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.redfish_twin import in_memory
from tests.contract.api_world import House, house
from tests.contract.redfish_vendors import hardware_of
from tests.contract.redfish_world import START, a_machine

MANY, ONE, BOARD, SILENT = "https://many", "https://one", "https://board", "https://silent"


def _services() -> dict[str, Service]:
    board = Machine("m1", hardware_of("gb300"), quirks=Quirks(vendor="gb300"))
    return {
        MANY: Service([a_machine("SN1"), a_machine("SN2")]),
        ONE: Service([a_machine("SN3")]),
        BOARD: Service([board]),
    }


def _clients(services: dict[str, Service]) -> Callable[[str], RedfishClient]:
    def client(origin: str) -> RedfishClient:
        async def exchange(method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
            if origin not in services:
                raise UnreachableError(f"{origin} is not on the network")
            reply = services[origin].handle(
                ServiceRequest(method, path.partition("?")[0], "", in_memory(body), headers), START
            )
            return HttpResponse(reply.status, msgspec.json.encode(reply.body))

        return RedfishClient(exchange, origin)

    return client


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, machines=Introduction(_clients(_services()))) as inside:
        yield inside


@pytest.mark.parametrize("place", ["/v1/nodes", "/v1/adopt"])
async def test_a_bmc_of_several_machines_asks_which_is_meant(world: House, place: str) -> None:
    """Mutant: nobody asks; the node is known, and refused at every look from then on."""
    body = {"nodes": [{"id": "a", "sku": "h100", "bmc": ONE}, {"id": "b", "sku": "h100", "bmc": MANY}], "reason": "new"}
    status, answer = await world.operator.post(place, body)
    assert status == 422
    (problem,) = answer["problems"]
    assert problem["file"] == "nodes[1]"
    assert f"{MANY}#sys-SN1 (serial SN1)" in problem["what"]
    assert f"{MANY}#sys-SN2 (serial SN2)" in problem["what"]
    assert not world.cell.view.nodes
    body["nodes"] = [{"id": "b", "sku": "h100", "bmc": f"{MANY}#sys-SN2"}]
    assert (await world.operator.post(place, body))[0] == 200


async def test_a_baseboard_is_no_choice_and_a_silent_bmc_is_taken_as_given(world: House) -> None:
    """Mutants: each system counts as a machine; who cannot be reached cannot be registered."""
    nodes = [{"id": str(n), "sku": "h100", "bmc": bmc} for n, bmc in enumerate((ONE, BOARD, SILENT))]
    assert (await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"}))[0] == 200


async def test_bmcs_that_hang_hold_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: every answer is waited for; a rack of hanging BMCs holds the request for minutes."""
    monkeypatch.setattr(bmc_system_choice, "ASK_S", 0.05)
    began = asyncio.Event()

    async def hangs(_bmc: str) -> tuple[str, ...]:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with house(tmp_path, machines=hangs) as inside:
        body = {"nodes": [{"id": "a", "sku": "h100", "bmc": SILENT}], "reason": "new"}
        assert (await inside.operator.post("/v1/nodes", body))[0] == 200
        assert began.is_set()
