"""An emulated PDU of a rack: outlets over Redfish's PowerEquipment, and what their machines lose with them."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hostler.sim.bmc.emulated_machine import BmcRefusalError, Machine
from hostler.sim.bmc.redfish_service import DROPPED, ServiceRequest, ServiceResponse
from hostler.sim.bmc.resource_parts import ROOT, Document, collection, link, resource

PDU = "/PowerEquipment/RackPDUs/1"
RUNNING_W = 640.0
STANDBY_W = 35.0


@dataclass
class EmulatedOutlet:
    """One outlet, and the machine that it truly feeds. `dark_until`: it has no power before that moment.

    Lies: `deaf` takes an order and does nothing, `keeps_delay` takes another delay and keeps its own, `dies` takes the
    order and never answers, `info_only` lists its states by an ActionInfo alone. `metered` None tells no load.
    """

    machine: Machine | None = None
    label: str = ""
    delay_s: float | None = 5.0
    states: tuple[str, ...] = ("On", "Off", "PowerCycle")
    is_on: bool = True
    locked: bool = False
    metered: bool = True
    info_only: bool = False
    deaf: bool = False
    keeps_delay: bool = False
    dies: bool = False
    dark_until: datetime | None = None
    orders: list[str] = field(default_factory=list)

    def is_dark(self, now: datetime) -> bool:
        """Whether it gives no power now."""
        return not self.is_on or (self.dark_until is not None and now < self.dark_until)


class RackPdu:
    """The Redfish service of one PDU. `others` are PDUs that feed the same machines: power is lost with the last."""

    only = None
    accounts = None
    certificates = None

    def __init__(self, **outlets: EmulatedOutlet) -> None:
        self.outlets = outlets
        self.others: tuple[RackPdu, ...] = ()

    def handle(self, request: ServiceRequest, now: datetime) -> ServiceResponse:
        """Answer one request as the PDU would at `now`."""
        path = request.path.rstrip("/").removeprefix(ROOT)
        place, _, action = path.removeprefix(f"{PDU}/Outlets/").partition("/")
        outlet = self.outlets.get(place)
        try:
            if request.method == "GET":
                doc = self._show(path, place, action, now)
                return ServiceResponse(200, doc) if doc is not None else _refusal(404, f"{path} was not found.")
            if outlet is None:
                return _refusal(404, f"{path} was not found.")
            body = json.loads(request.body or b"{}")
            if request.method == "PATCH":
                return _set_delay(outlet, body)
            return self._ordered(outlet, str(body.get("PowerState", "")), now)
        except BmcRefusalError as refused:
            return _refusal(refused.status, str(refused))

    def feeds(self, machine: Machine) -> list[EmulatedOutlet]:
        """The outlets, of every PDU, that feed the machine."""
        return [one for pdu in (self, *self.others) for one in pdu.outlets.values() if one.machine is machine]

    def _show(self, path: str, place: str, action: str, now: datetime) -> Document | None:
        if not path:
            return resource("", "#ServiceRoot.v1_17_0.ServiceRoot", "RootService", "PDU") | {
                "RedfishVersion": "1.20.0",
                "Systems": link("/Systems"),
                "PowerEquipment": link("/PowerEquipment"),
            }
        if path == f"{PDU}/Outlets":
            return collection(path, self.outlets)
        if place not in self.outlets:
            return None
        if action == "PowerControlActionInfo":
            allowed = {"Name": "PowerState", "AllowableValues": list(self.outlets[place].states)}
            return resource(path, "#ActionInfo.v1_4_2.ActionInfo", "PowerControl", "PowerControl") | {
                "Parameters": [allowed]
            }
        return _document(self.outlets[place], f"{PDU}/Outlets/{place}", place, now) if not action else None

    def _ordered(self, outlet: EmulatedOutlet, state: str, now: datetime) -> ServiceResponse:
        if state not in outlet.states or outlet.locked:
            raise BmcRefusalError(400, f"The value {state!r} for PowerState is not acceptable.")
        outlet.orders.append(state)
        if not outlet.deaf:
            if state == "PowerCycle":
                outlet.dark_until = now + timedelta(seconds=outlet.delay_s or 0)
            else:
                outlet.is_on = state == "On"
            if outlet.machine is not None and all(one.is_dark(now) for one in self.feeds(outlet.machine)):
                outlet.machine.lose_mains(now)
        return DROPPED if outlet.dies else ServiceResponse(204)


def _document(outlet: EmulatedOutlet, path: str, place: str, now: datetime) -> Document:
    info = {"@Redfish.ActionInfo": f"{ROOT}{path}/PowerControlActionInfo"}
    listed = info if outlet.info_only else {"PowerState@Redfish.AllowableValues": list(outlet.states)}
    doc = resource(path, "#Outlet.v1_4_2.Outlet", place, f"Outlet {place}") | {
        "@odata.etag": f'"{outlet.delay_s}"',
        "PowerState": "Off" if outlet.is_dark(now) else "On",
        "PowerEnabled": not outlet.locked,
        "UserLabel": outlet.label,
        "Actions": {"#Outlet.PowerControl": {"target": f"{ROOT}{path}/Outlet.PowerControl", **listed}},
    }
    if outlet.metered:
        runs = outlet.machine is not None and outlet.machine.power == "On"
        load = 0.0 if outlet.is_dark(now) or outlet.machine is None else RUNNING_W if runs else STANDBY_W
        doc["PowerWatts"] = {"Reading": load}
    return doc if outlet.delay_s is None else doc | {"PowerCycleDelaySeconds": outlet.delay_s}


def _set_delay(outlet: EmulatedOutlet, body: Document) -> ServiceResponse:
    wanted = body.get("PowerCycleDelaySeconds")
    if not isinstance(wanted, int) or outlet.delay_s is None:
        raise BmcRefusalError(400, "The property PowerCycleDelaySeconds is not in the list of valid properties.")
    if not outlet.keeps_delay:
        outlet.delay_s = float(wanted)
    return ServiceResponse(204)


def _refusal(status: int, message: str) -> ServiceResponse:
    return ServiceResponse(status, {"error": {"code": "Base.1.12.GeneralError", "message": message}})
