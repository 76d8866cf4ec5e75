"""Assets of a rack over real HTTP: shelves and coolant units by DMTF's schemas, switch trays by their BMC; and lies."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from hostler.core.state.assets import Asset, AssetKind, Binding, Position
from hostler.core.state.racks import AssetLook
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.rack_reader import RackReader
from hostler.sim.bmc.emulated_machine import Hardware, Machine, Quirks
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from tests.contract.redfish_world import ACCESS, PASSWORD, START, USER

NOW = datetime(2026, 1, 1, tzinfo=UTC)
V1 = "/redfish/v1"


def link(path: str) -> dict[str, str]:
    return {"@odata.id": f"{V1}{path}"}


def collection(path: str, names: list[str]) -> dict[str, Any]:
    return {**link(path), "Members": [link(f"{path}/{name}") for name in names], "Members@odata.count": len(names)}


def shelf_pages(supplies: dict[str, str | None]) -> dict[str, Any]:
    """A power shelf as PowerEquipment has it: its own health is OK, whatever its supplies say."""
    shelf = "/PowerEquipment/PowerShelves/1"
    return {
        "": {"RedfishVersion": "1.15.0", "Systems": link("/Systems"), "PowerEquipment": link("/PowerEquipment")},
        "/PowerEquipment": {"PowerShelves": link("/PowerEquipment/PowerShelves")},
        "/PowerEquipment/PowerShelves": collection("/PowerEquipment/PowerShelves", ["1"]),
        shelf: {
            **link(shelf),
            "Id": "1",
            "EquipmentType": "PowerShelf",
            "SerialNumber": "SH-1 ",
            "FirmwareVersion": "2.4",
            "Status": {"State": "Enabled", "Health": "OK"},
            "PowerSupplies": link(f"{shelf}/PowerSupplies"),
        },
        f"{shelf}/PowerSupplies": collection(f"{shelf}/PowerSupplies", list(supplies)),
        **{
            f"{shelf}/PowerSupplies/{name}": {
                **link(f"{shelf}/PowerSupplies/{name}"),
                "Id": name,
                "Name": name,
                "Status": {"State": "Enabled", **({"Health": word} if word else {})},
            }
            for name, word in supplies.items()
        },
    }


def unit_pages(detectors: dict[str, str | None]) -> dict[str, Any]:
    """A coolant unit as ThermalEquipment has it; a detector of None is there and says nothing."""
    unit = "/ThermalEquipment/CDUs/1"
    place = f"{unit}/LeakDetection/LeakDetectors"
    return {
        "": {"RedfishVersion": "1.15.0", "Systems": link("/Systems"), "ThermalEquipment": link("/ThermalEquipment")},
        "/ThermalEquipment": {"CDUs": link("/ThermalEquipment/CDUs")},
        "/ThermalEquipment/CDUs": collection("/ThermalEquipment/CDUs", ["1"]),
        unit: {
            **link(unit),
            "Id": "1",
            "SerialNumber": "CDU-1",
            "Status": {"Health": "OK"},
            "LeakDetection": link(f"{unit}/LeakDetection"),
        },
        f"{unit}/LeakDetection": {**link(f"{unit}/LeakDetection"), "LeakDetectors": link(place)},
        place: collection(place, list(detectors)),
        **{
            f"{place}/{name}": {**link(f"{place}/{name}"), "Id": name, "DetectorState": word, "Status": {}}
            for name, word in detectors.items()
        },
    }


@asynccontextmanager
async def serving(pages: dict[str, Any], hangs: Callable[[str], bool] = lambda _: False) -> AsyncIterator[str]:
    over = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        path = request.path.removeprefix(V1).rstrip("/")
        if hangs(path):
            await over.wait()
        if path not in pages:
            return web.json_response({"error": {"message": "not here"}}, status=404)
        return web.json_response(pages[path])

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        over.set()
        await runner.cleanup()


async def looked_at(url: str, access: Access = Access(timeout_s=1.0)) -> AssetLook:  # noqa: B008 - frozen
    asset = Asset("x", AssetKind.power_shelf, Position("c1", rack="r1"), (Binding("bmc", url, NOW),))
    async with Connections() as connections:
        return await RackReader(Clients(connections, lambda _: access)).look(asset, NOW)


async def test_a_shelf_is_read_supply_by_supply_and_its_own_word_excuses_none() -> None:
    """The shelf says OK with a failed supply. Mutants: its word is taken; a supply without a word is left out."""
    supplies = {**{f"psu{n}": "OK" for n in range(4)}, "psu4": "Critical", "psu5": None}
    async with serving(shelf_pages(supplies)) as url:
        look = await looked_at(url)
    assert (look.why, look.serial, look.health) == ("", "SH-1", "ok")
    assert dict(look.firmware) == {"FirmwareVersion": "2.4"}
    words = [word for _, word in look.supplies]
    assert sorted(words) == ["", "critical", "ok", "ok", "ok", "ok"]


async def test_leak_detectors_are_told_one_by_one_and_a_silent_one_is_not_dry() -> None:
    """Mutant: a detector without a state is dry, or is not there."""
    async with serving(unit_pages({"manifold": "OK", "tray": "Critical", "floor": None})) as url:
        look = await looked_at(url)
    assert dict(look.leaks) == {"manifold": "ok", "tray": "critical", "floor": ""}
    assert look.serial == "CDU-1"


async def test_a_detector_that_never_answers_makes_no_look() -> None:
    """Mutant: what was read until then counts as the whole of it."""
    pages = unit_pages({"manifold": "OK", "tray": "OK"})
    async with serving(pages, lambda path: path.endswith("/tray")) as url:
        look = await looked_at(url)
    assert look.why
    assert not look.leaks


async def test_an_asset_that_nobody_reaches_says_why() -> None:
    look = await looked_at("http://127.0.0.1:9")
    assert look.why
    assert (look.serial, look.supplies) == ("", ())


@pytest.mark.parametrize("vendor", ["nvswitch", ""])
async def test_a_switch_tray_is_read_as_its_bmc_lays_it_out(vendor: str) -> None:
    """Firmware as it is reported, serial, health and leak detectors. Mutant: a version that waits counts as running."""
    machine = Machine("System_0" if vendor else "tray", Hardware("TRAY-1"), quirks=Quirks(vendor=vendor))
    machine.leaks["manifold"] = "Critical"
    async with Farm(lambda: START, credentials=(USER, PASSWORD)) as farm:
        look = await looked_at(await farm.serve(Service([machine])), ACCESS)
    assert (look.why, look.serial) == ("", "TRAY-1")
    assert look.firmware
    assert any(word == "critical" for _, word in look.leaks)
