"""A thousand machines boot in the same second: how long a script takes, and how fast their images leave.

Machines and server share this process and its event loop, so that the figures are of both.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bench.figures import Figures
from hostler.core.state.verbs.nodes import Register
from tests.contract import boot_world as worlds

MACHINES = int(os.environ.get("BENCH_MACHINES", "1000"))
IMAGE_MB, RANGE_BYTES = 64, 1024 * 1024
"""Each machine fetches one range of the image; which one goes by its number."""
PATIENCE_S = 300.0


def main() -> Figures:
    """Run it."""
    figures = Figures(f"Boot: {MACHINES} machines ask for their script and a part of their image at once")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), figures))
    return figures


async def _measure(folder: Path, figures: Figures) -> None:
    worlds.KERNEL = os.urandom(1024 * 1024) * IMAGE_MB
    async with worlds.boot_world(folder) as world:
        specs = [
            {"id": f"n{n}", "sku": "h100", "serial": f"S{n}", "macs": [_mac(n)], "bmc": f"http://127.0.0.1:{n + 1}"}
            for n in range(MACHINES)
        ]
        await world.ask(Register(msgspec.json.encode(specs).decode()))
        async with asyncio.timeout(PATIENCE_S):
            while len(world.driver.given) < MACHINES or not _all_wait(world):  # noqa: ASYNC110 - the view has no event
                await asyncio.sleep(0.05)
        await world.script("/ipxe", mac="52:54:00:ff:ff:ff")  # checksums are verified with the first request
        began = time.monotonic()
        took = sorted(await asyncio.gather(*(_ask(world, n) for n in range(MACHINES))))
        scripts_s = time.monotonic() - began
        began = time.monotonic()
        sizes = await asyncio.gather(*(_fetch(world, n) for n in range(MACHINES)))
        files_s = time.monotonic() - began
    figures.add("scripts, all answered after", scripts_s, "s", f"each recorded first; load {os.getloadavg()[0]:.1f}")
    figures.add("a script's answer, P50", took[len(took) // 2] * 1000, "ms")
    figures.add("a script's answer, P99", took[int(len(took) * 0.99)] * 1000, "ms", "all asked in the same moment")
    figures.add("image, ranges of 1 MiB", sum(sizes) / files_s / 1e6, "MB/s", "its checksum verified before")


def _all_wait(world: worlds.BootWorld) -> bool:
    return all(n.plan is not None and n.plan.index == 2 for n in world.cell.view.nodes.values())


async def _ask(world: worlds.BootWorld, number: int) -> float:
    began = time.monotonic()
    endpoint = urlsplit(world.driver.given[f"n{number}"]).path.replace("/boot.efi", "/script")
    _, script = await world.script(endpoint, mac=_mac(number), serial=f"S{number}")
    assert "kernel " in script, script
    return time.monotonic() - began


async def _fetch(world: worlds.BootWorld, number: int) -> int:
    first = number % IMAGE_MB * RANGE_BYTES
    span = {"Range": f"bytes={first}-{first + RANGE_BYTES - 1}"}
    async with world.session.get(f"{world.url}/images/vmlinuz", headers=span) as answer:
        assert answer.status == 206
        return len(await answer.read())


def _mac(number: int) -> str:
    return f"52:54:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
