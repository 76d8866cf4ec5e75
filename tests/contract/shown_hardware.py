"""Hardware that the machines of sushy-tools' fake driver show: by itself release 2.2 has NICs and drives alone.

Its configuration is Python: processors, memory and NICs are added to the driver there, its templates and routes stay.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

DRIVER = """
import os, time
from sushy_tools import error
from sushy_tools.emulator.resources.systems import fakedriver

def _shown(name):
    def get(self, identity):
        uuid = self._get(identity)["uuid"]
        while os.path.exists(f"{FOLDER}/hangs-{uuid}"):
            time.sleep(0.1)
        if SHOWN.get(uuid, {}).get(name) is None:
            raise error.NotSupportedError("Not implemented")
        return SHOWN[uuid][name]
    return get

SHOWN = {shown!r}
FOLDER = {folder!r}
for method, name in (
    ("get_total_memory", "memory"), ("get_total_cpus", "threads"),
    ("get_processors", "processors"), ("get_nics", "nics"),
):
    setattr(fakedriver.FakeDriver, method, _shown(name))
fakedriver.random.randint = lambda shortest, longest: shortest  # a change of power takes one second, not up to eleven
SUSHY_EMULATOR_STORAGE = {storage!r}
SUSHY_EMULATOR_DRIVES = {drives!r}
SUSHY_EMULATOR_VOLUMES = {volumes!r}
"""


class Hardware(Struct, frozen=True):
    """Parts that one machine shows, None for nothing of it. Each drive has sushy-tools' one serial number.

    A storage that is there and not configured is a 500 in sushy-tools, on which Ironic's client tries ten times.
    """

    memory_gib: int | None = 512
    cpus: int | None = 2
    drives: tuple[str, ...] = ("Bay1",)
    macs: tuple[str, ...] = ("52:54:00:00:01:01", "52:54:00:00:01:02")


def as_configuration(folder: Path, machines: Mapping[str, Hardware]) -> str:
    """Lines of the emulator's configuration: UUID of a machine → what it shows."""
    shown = {uuid: _shown(one) for uuid, one in machines.items()}
    drives = {
        (uuid, "1"): [
            {"Id": bay, "Name": f"Drive {bay}", "CapacityBytes": 960 * 10**9, "Protocol": "SATA"} for bay in one.drives
        ]
        for uuid, one in machines.items()
    }
    storage = {
        uuid: [{"Id": "1", "Name": "Storage", "StorageControllers": [], "Drives": list(one.drives)}]
        if one.drives
        else []
        for uuid, one in machines.items()
    }
    volumes: dict[tuple[str, str], list[object]] = {place: [] for place in drives}
    text = DRIVER
    said = {"shown": shown, "folder": str(folder), "storage": storage, "drives": drives, "volumes": volumes}
    for name, value in said.items():
        text = text.replace(f"{{{name}!r}}", repr(value))
    return text


def _shown(one: Hardware) -> dict[str, object]:
    sockets = range(one.cpus or 0)
    processors = [
        {"id": f"CPU{n}", "socket": f"CPU {n}", "vendor": "Intel", "model": "Xeon", "cores": 32, "threads": 64}
        for n in sockets
    ]
    return {
        "memory": one.memory_gib,
        "threads": 64 * one.cpus if one.cpus else None,
        "processors": processors if one.cpus is not None else None,
        "nics": [{"id": mac, "mac": mac} for mac in one.macs],
    }


def hang(folder: Path, uuid: str, *, on: bool = True) -> None:
    """Have the BMC answer nothing of this machine's hardware, or answer again."""
    mark = folder / f"hangs-{uuid}"
    mark.touch() if on else mark.unlink()
