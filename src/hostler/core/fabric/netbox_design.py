"""A design from NetBox's cables: terminations are interfaces of devices, which say where they stand and what they are.

Shapes: NetBox REST API 3.3 and later, `dcim/cables` and `dcim/devices`. A cable's id takes the place of a line number.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hostler.core.fabric.design import Design
from hostler.core.fabric.design_csv import of_rows
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import Problem

WHERE = "netbox cable"
INTERFACE = "dcim.interface"
CONNECTED = "connected"
"""The status of a cable that is to lie there; planned ones and those that are taken away are none of the design."""


def design_of(
    cables: Iterable[Mapping[str, Any]], devices: Iterable[Mapping[str, Any]], models: Mapping[str, Model] | None = None
) -> Design:
    """The design of these cables. Raises InvalidInputError with each cable that is wrong.

    `models` are by the model of NetBox's device types; `hcas` there names the port behind an interface's name.
    """
    problems: list[Problem] = []
    places = {str(one.get("name")): one for one in devices}
    return of_rows(list(_rows(cables, places, problems)), WHERE, models, problems)


def _rows(
    cables: Iterable[Mapping[str, Any]], places: Mapping[str, Mapping[str, Any]], problems: list[Problem]
) -> Iterator[tuple[int, dict[str, str]]]:
    for cable in cables:
        number = int(cable.get("id") or 0)
        if _value(cable.get("status")) != CONNECTED:
            continue
        ends = [cable.get(f"{side}_terminations") or [] for side in "ab"]
        if any(len(end) != 1 for end in ends):
            problems.append(
                Problem(WHERE, number, "an end has several terminations", "give each end one interface in NetBox")
            )
            continue
        if any(end[0].get("object_type") != INTERFACE for end in ends):
            continue  # power, consoles and patch panels are no cables of a fabric
        row: dict[str, str] = {}
        for side, (end,) in zip("az", ends, strict=True):
            interface = end.get("object") or {}
            device = str((interface.get("device") or {}).get("name") or "")
            row |= {f"{side}_node": device, f"{side}_port": str(interface.get("name") or "")}
            row |= _placed(side, places.get(device, {}))
        yield number, row


def _placed(side: str, device: Mapping[str, Any]) -> dict[str, str]:
    unit = device.get("position")
    return {
        f"{side}_rack": str((device.get("rack") or {}).get("name") or ""),
        f"{side}_u": f"{float(unit):g}" if isinstance(unit, int | float) else "",
        f"{side}_model": str((device.get("device_type") or {}).get("model") or ""),
    }


def _value(status: object) -> str:
    return str(status.get("value")) if isinstance(status, Mapping) else str(status)
