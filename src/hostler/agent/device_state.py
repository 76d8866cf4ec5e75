"""Firmware of one part of this machine."""

from msgspec import Struct


class DeviceState(Struct, frozen=True):
    """The version that runs, and the one that runs after the next reset, "" for none or the same."""

    runs: str
    waits: str = ""
