"""The design of a fabric: devices, where they stand, and which port is cabled to which."""

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from hostler.core.fabric.rates import Rate
from hostler.core.state.fabrics import Model


class Port(NamedTuple):
    """A place for a plug. A host's port has its adapter's name ("mlx5_0"), a switch's its InfiniBand number ("5")."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


class DeviceKind(StrEnum):
    """A host has an adapter behind each port; a switch has all its ports behind one identity."""

    host = "host"
    switch = "switch"


class Device(Struct, frozen=True):
    """A host or a switch. `guids` are its identities: of a switch one, of a host one for each adapter, by port."""

    name: str
    kind: DeviceKind
    rack: str = ""
    unit: str = ""
    model: str = ""
    guids: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        """Place at which a technician finds it: "r07 U12 gpu-0412"."""
        unit = f"U{self.unit}" if self.unit else ""
        return " ".join(word for word in (self.rack, unit, self.name) if word)


class Cable(Struct, frozen=True):
    """Two ports that belong together, and the rate that their link is to have. `line`: where the design says so."""

    a: Port
    z: Port
    rate: Rate | None = None
    line: int = 0


class Design(Struct, frozen=True):
    """A whole fabric. Each port is in one cable at most, and each cable's devices are there."""

    devices: dict[str, Device]
    cables: tuple[Cable, ...]
    models: dict[str, Model] = {}

    def label(self, port: Port) -> str:
        """The port's name as a technician reads it at the panel."""
        device = self.devices.get(port.device)
        model = self.models.get(device.model) if device else None
        return model.panel(port.port) if model else port.port

    def place(self, port: Port) -> str:
        """Device and panel label: "r07 U12 gpu-0412 port mlx5_0"."""
        device = self.devices.get(port.device)
        return f"{device.place if device else port.device} port {self.label(port)}"


def ends(a: Port, z: Port) -> tuple[Port, Port]:
    """The two ports in their order: a cable has no direction."""
    return (a, z) if a <= z else (z, a)
