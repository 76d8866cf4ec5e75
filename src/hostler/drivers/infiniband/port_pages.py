"""Reads what an agent tells of its node's ports: sysfs' counters, and `mlxlink`'s JSON where the node has the tool.

mlxlink: NVIDIA Firmware Tools, sections "Operational Info", "Module Info", "Physical Counters and BER Info". Values are
text, numbers with a range behind them, or lists by lane; what cannot be read of them is left out.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hostler.core.state.links import PortReading
from hostler.drivers.infiniband.page_text import plain

MOST_PORTS = 64
MOST_LANES = 16
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_RANGE = re.compile(r"\[\s*-?[\d.]+\s*\.\.\s*(-?[\d.]+)\s*\]")
_SERIAL = re.compile(r"[A-Za-z0-9._\-]{3,40}")


class _Port(Struct, frozen=True):
    state: str = ""
    link_downed: int | None = None
    symbol_errors: int | None = None
    mlxlink: Any = None


class _Page(Struct, frozen=True):
    up_s: float
    ports: dict[str, _Port]


def read(page: bytes) -> dict[str, PortReading]:
    """Adapter ("mlx5_0") → the reading of its port 1. Raises ValueError for a page that is none."""
    told = msgspec.json.decode(page, type=_Page)
    if len(told.ports) > MOST_PORTS:
        raise ValueError(f"{len(told.ports)} ports of one node")
    return {name.removesuffix("/1"): _reading(port, told.up_s) for name, port in told.ports.items()}


def _reading(port: _Port, up_s: float) -> PortReading:
    sections = _sections(port.mlxlink)
    module, counters = sections.get("Module Info", {}), sections.get("Physical Counters and BER Info", {})
    temperature = _text(module.get("Temperature [C]"))
    numbers, limit = _NUMBER.findall(temperature.partition("[")[0]), _RANGE.search(temperature)
    serial = _text(module.get("Vendor Serial Number"))
    return PortReading(
        link_downed=port.link_downed,
        symbol_errors=port.symbol_errors,
        state="active" if port.state == "active" else "down" if port.state else "",
        temperature_c=float(numbers[0]) if numbers else None,
        temperature_limit_c=float(limit[1]) if limit else None,
        lane_ber=_lanes(counters.get("Raw Physical Errors Per Lane BER") or counters.get("Raw Physical BER Per Lane")),
        rx_dbm=_lanes(module.get("Rx Power Current [dBm]")),
        eeprom=_trouble(sections, "EEPROM"),
        power=_trouble(sections, "power"),
        module=serial if _SERIAL.fullmatch(serial) else "",
        up_s=up_s if up_s >= 0 else None,
    )


def _sections(page: object) -> Mapping[str, Mapping[str, Any]]:
    """Mlxlink's sections by name."""
    output: Any = page
    for name in ("result", "output"):
        output = output.get(name) if isinstance(output, dict) else None
    return {k: v for k, v in output.items() if isinstance(v, dict)} if isinstance(output, dict) else {}


def _trouble(sections: Mapping[str, Mapping[str, Any]], word: str) -> str:
    """The tool's recommendation where it speaks of this."""
    said = _text(sections.get("Troubleshooting Info", {}).get("Recommendation"))
    return plain(said) if word.lower() in said.lower() else ""


def _lanes(value: object) -> tuple[float, ...]:
    values = value.get("values") if isinstance(value, dict) else value
    words = values if isinstance(values, list) else _text(values).partition("[")[0].split(",")
    numbers = [_NUMBER.fullmatch(_text(word).strip()) for word in words[:MOST_LANES]]
    return tuple(float(number[0]) for number in numbers if number) if all(numbers) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
