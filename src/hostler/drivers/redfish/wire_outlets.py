"""An outlet of a PDU as its Redfish service shows it. Pure.

Source: DMTF's schema Outlet (DSP8010 2024.4): PowerState, PowerEnabled, PowerWatts, UserLabel, PowerCycleDelaySeconds,
the action Outlet.PowerControl with its parameter PowerState.
"""

from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import child, document, number, objects, strings, text, truth
from hostler.drivers.redfish.wire import target_of


class PduOutlet(Struct, frozen=True):
    """One outlet. `watts` and `delay_s` are None where it does not tell them; `states` are those that it may be told.

    `delay_s`: how long the PDU leaves it dark in a power cycle. `states_info`: where `states` are listed, "" for
    nowhere. `locked`: it cannot be switched.
    """

    path: str
    power: str = ""
    watts: float | None = None
    label: str = ""
    delay_s: float | None = None
    target: str = ""
    states: tuple[str, ...] = ()
    states_info: str = ""
    etag: str = ""
    locked: bool = False


def outlet(raw: bytes, path: str) -> PduOutlet:
    """One outlet, read at `path`. Raises WireError."""
    doc = document(raw, "outlet")
    control = child(doc, "Actions", "#Outlet.PowerControl")
    info = control.get("@Redfish.ActionInfo")
    return PduOutlet(
        path,
        power=text(doc, "PowerState").lower(),
        watts=number(child(doc, "PowerWatts"), "Reading"),
        label=text(doc, "UserLabel"),
        delay_s=number(doc, "PowerCycleDelaySeconds"),
        target=target_of(control),
        states=strings(control, "PowerState@Redfish.AllowableValues"),
        states_info=info if isinstance(info, str) else "",
        etag=text(doc, "@odata.etag"),
        locked=truth(doc, "PowerEnabled") is False,
    )


def states_offered(raw: bytes) -> tuple[str, ...]:
    """The states that the action's ActionInfo lists."""
    parameters = objects(document(raw, "action info"), "Parameters")
    found = (strings(one, "AllowableValues") for one in parameters if text(one, "Name") == "PowerState")
    return next(found, ())
