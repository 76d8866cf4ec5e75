"""Documents of telemetry in the data directory: in place of the network's own tool, fresh, whole or refused."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hostler.core.fabric.discovery import FoundPort
from hostler.drivers.infiniband.fabric_source import FRESH_S, InfinibandSource, LookPlaces, RegisteredSource
from hostler.ports import LinkReadings
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.kit import Drive

SEEDS = Path(__file__).parents[1] / "fuzz/seeds/telemetry"
LEAF = "0002c90000000100"


async def _read(data: Path) -> LinkReadings:
    async def pages(_nodes: object, _tool: str) -> tuple[dict[str, bytes], dict[str, str]]:
        return {}, {}

    cell = FabricCell(Drive(), a_fabric())
    reach = LookPlaces(
        cast("Any", SimpleNamespace(pages=pages)), lambda: cell.drive.fleet, cast("Any", None), data / "lldp"
    )
    return await RegisteredSource(InfinibandSource("/nowhere"), reach).read(cell.fabric)


def _folder(data: Path, *names: str) -> Path:
    folder = data / "telemetry" / NAME
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes((SEEDS / name).read_bytes())
    return folder


async def test_a_document_tells_ports_and_says_nothing_of_others(tmp_path: Path) -> None:
    """Mutants: the tool is asked beside it, so counters change their source; a port that is not told is clean."""
    _folder(tmp_path, "low_freq.csv")
    told = await _read(tmp_path)
    assert told.found[FoundPort(LEAF, 2)].link_downed == 7
    assert (told.whole, told.why) == (False, "")


async def test_an_old_document_says_nothing(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "low_freq.csv")
    then = time.time() - FRESH_S - 60
    os.utime(folder / "low_freq.csv", (then, then))
    told = await _read(tmp_path)
    assert (told.found, told.whole) == ({}, False)
    assert "low_freq.csv: it is 1 h" in told.why


async def test_one_document_that_is_refused_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "converted_enterprise.csv")
    (folder / "broken.csv").write_text("<html>busy</html>\n")
    told = await _read(tmp_path)
    assert list(told.found) == [FoundPort(LEAF, 1)]
    assert "broken.csv: line 1: no column Node_GUID" in told.why


async def test_an_empty_folder_is_no_reason_to_believe_anything(tmp_path: Path) -> None:
    """Mutant: a folder that is filled no more makes all ports clean."""
    _folder(tmp_path)
    told = await _read(tmp_path)
    assert (told.found, told.whole, told.why) == ({}, False, "no telemetry document; write one, or remove its folder")


async def test_without_a_folder_the_networks_tool_is_asked(tmp_path: Path) -> None:
    told = await _read(tmp_path)
    assert "ibqueryerrors" in told.why
