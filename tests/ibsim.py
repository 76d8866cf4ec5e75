"""A fabric in ibsim, which answers infiniband-diags as real devices do: one simulator a fabric, ended with its test."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hostler.core.fabric.design import DeviceKind, Port
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.rates import Rate
from hostler.drivers.infiniband.diagnostics import Diagnostics, discover
from tests.fabrics import Fabric
from tests.tied_processes import tied

PRELOAD = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
START_S = 240.0
"""98,304 links are loaded in 25 s on a quiet machine."""
EXTENDED = {"FDR": 1, "EDR": 2, "HDR": 4}
"""The bit of an extended speed in ibsim's netlists. HDR is the fastest that Debian's knows."""


def lacking() -> str:
    """Packages that the simulator lacks on this machine and how to get them, "" for none."""
    if shutil.which("ibsim") is None or not PRELOAD.exists():
        return "no ibsim: apt-get install ibsim-utils"
    return "" if shutil.which("ibnetdiscover") else "no ibnetdiscover: apt-get install infiniband-diags"


def required() -> None:
    """Skip where the simulator cannot be had."""
    if why := lacking():
        pytest.skip(why)


def manager_required() -> None:
    """Skip where no subnet manager can be had either."""
    required()
    if not Path("/usr/sbin/opensm").exists():
        pytest.skip("no opensm: apt-get install opensm")


def netlist(fabric: Fabric) -> str:
    """The fabric as ibsim reads it: a block a device, a line a port that has a cable."""
    lines = ["width=2", "speed=7", "extspeed=4", ""]
    ports: dict[Port, list[Port]] = {}
    for cable in fabric.design.cables:
        for port in (cable.a, cable.z):
            ports.setdefault(fabric.identity(port), [])
    for port in sorted(fabric.lit()):
        ports[fabric.identity(port)].append(port)
    for at, theirs in ports.items():
        lines += [*_head(fabric, at), *(_line(fabric, port) for port in theirs), ""]
    return "\n".join(lines)


def _head(fabric: Fabric, at: Port) -> list[str]:
    guid, description = fabric.guids[at], fabric.description(at)
    if fabric.design.devices[at.device].kind is DeviceKind.switch:
        known = ["vendid=0x2c9", "devid=0xd2f2", f"sysimgguid=0x{guid}", f"switchguid=0x{guid}({guid})"]
        return [*known, f'Switch 64 "S-{guid}" # "{description}"']
    known = ["vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{guid}", f"caguid=0x{guid}"]
    return [*known, f'Hca 1 "H-{guid}" # "{description}"']


def _line(fabric: Fabric, port: Port) -> str:
    here, there = fabric.found(port), fabric.found(fabric.links[port])
    far = fabric.design.devices[fabric.links[port].device].kind
    rate = fabric.rates.get(port) or Rate(4, "HDR")
    slow = f" e={EXTENDED[rate.speed]}" if rate.speed != "HDR" else ""
    narrow = " w=1" if rate.width == 1 else ""
    return f'[{here.number}] "{"S" if far is DeviceKind.switch else "H"}-{there.guid}"[{there.number}]{narrow}{slow}'


@asynccontextmanager
async def simulated(fabric: Fabric) -> AsyncIterator[dict[str, str]]:
    """The environment in which the tools see this fabric."""
    with tempfile.TemporaryDirectory(prefix="ibsim-") as folder:
        text = netlist(fabric)
        (Path(folder) / "fabric.net").write_text(text)
        control = Path(folder) / "control"
        os.mkfifo(control)
        held = os.open(control, os.O_RDWR)  # at the end of its input ibsim spins
        name = f"ibsim-{os.getpid()}-{Path(folder).name}"
        limits = ("-N", "40000", "-S", "4096", "-P", "300000", "-L", "49152")
        child = await asyncio.create_subprocess_exec(
            *tied("ibsim", "-s"),
            *limits,
            f"{folder}/fabric.net",
            env=os.environ | {"IBSIM_SOCKNAME": name},
            stdin=held,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        asking = next(port for port in sorted(fabric.lit()) if port.device.startswith("gpu"))
        seen = {
            "IBSIM_SOCKNAME": name,
            "LD_PRELOAD": str(PRELOAD),
            "SIM_HOST": f"H-{fabric.guids[fabric.identity(asking)]}",
        }
        _CONTROLS[name] = control
        try:
            await _answers(child, name)
            with contextlib.chdir(folder):  # the simulator's library makes a folder where each tool runs, and keeps it
                yield seen  # where the tool is killed
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            os.close(held)
            del _CONTROLS[name]


async def routed(environment: dict[str, str], folder: Path, engine: str = "minhop") -> None:
    """Have a real subnet manager give LIDs and write forwarding tables once; its dumps lie in the folder."""
    child = await asyncio.create_subprocess_exec(
        *tied("/usr/sbin/opensm"),
        *("-o", "-R", engine, "-D", "0x43", "-f", str(folder / "opensm.log")),
        env=os.environ | environment | {"OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)},
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(START_S):
            assert await child.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


_CONTROLS: dict[str, Path] = {}
"""Places at which each simulator reads its console's lines, by its socket's name."""
CONSOLE_S = 0.2
"""ibsim reads its console between two packets and does not say when it has."""


async def told(environment: dict[str, str], line: str) -> None:
    """Say a line, of 127 characters at most, at the simulator's console."""
    assert len(line) < 128
    await asyncio.to_thread(_CONTROLS[environment["IBSIM_SOCKNAME"]].write_text, f"{line}\n")
    await asyncio.sleep(CONSOLE_S)


async def _answers(child: asyncio.subprocess.Process, name: str) -> None:
    """Until its socket stands, which is in no folder but in the kernel's list."""
    async with asyncio.timeout(START_S):
        while f"{name}:ctl" not in await asyncio.to_thread(Path("/proc/net/unix").read_text):
            assert child.returncode is None, f"ibsim ended with {child.returncode}"
            await asyncio.sleep(0.05)


async def found(fabric: Fabric) -> Discovery:
    """Returns the output of `ibnetdiscover`."""
    required()
    async with simulated(fabric) as environment:
        return await discover(Diagnostics(timeout_s=120.0), environment)
