"""An emulated BMC of a rack's power shelf, PDU or coolant unit: it serves no system, and has accounts as others."""

import json
from datetime import datetime, timedelta
from typing import Literal

from hostler.sim.bmc.bmc_accounts import SERVICE as ACCOUNTS
from hostler.sim.bmc.bmc_accounts import BmcAccounts
from hostler.sim.bmc.bmc_certificates import BmcCertificates
from hostler.sim.bmc.emulated_machine import BmcRefusalError
from hostler.sim.bmc.redfish_service import DROPPED, ServiceRequest, ServiceResponse
from hostler.sim.bmc.resource_parts import ROOT, Document, collection, link, resource, status

Kind = Literal["PowerShelves", "RackPDUs", "CDUs"]
_SERVICE = {"PowerShelves": "PowerEquipment", "RackPDUs": "PowerEquipment", "CDUs": "ThermalEquipment"}
AWAY_S = 240.0


class RackEquipment:
    """The Redfish service of one piece of equipment. `empty_systems`: its root names systems, and it serves none."""

    def __init__(
        self, kind: Kind, serial: str, accounts: BmcAccounts, certificates: BmcCertificates, *, empty_systems: bool
    ) -> None:
        self.kind, self.serial, self.empty_systems = kind, serial, empty_systems
        self.accounts, self.certificates = accounts, certificates
        self._back: datetime | None = None

    @property
    def only(self) -> "RackEquipment":
        """The equipment: it goes away when this BMC restarts."""
        return self

    def away(self, now: datetime) -> bool:
        """Whether the BMC has no power, or is starting."""
        return self._back is not None and now < self._back

    def restart_manager(self, now: datetime) -> None:
        """Restart, or lose power for a moment: the BMC is away until it has started."""
        self._back = now + timedelta(seconds=AWAY_S)

    def handle(self, request: ServiceRequest, now: datetime) -> ServiceResponse:
        """Answer one request as the BMC would at `now`."""
        if self.away(now):
            return DROPPED
        inside = request.path.rstrip("/").removeprefix(ROOT)
        try:
            if request.method == "PATCH" and inside.startswith(f"{ACCOUNTS}/Accounts/"):
                said = self.accounts.change(inside, json.loads(request.body or b"{}"), request.headers)
                return DROPPED if self.away(now) else ServiceResponse(204 if said is None else 200, said)
            doc = self._show(inside) if request.method == "GET" else None
        except BmcRefusalError as refusal:
            return ServiceResponse(refusal.status, {"error": {"code": "Base.1.12", "message": str(refusal)}})
        return ServiceResponse(200, doc) if doc is not None else ServiceResponse(404)

    def _show(self, inside: str) -> Document | None:
        if inside.startswith(ACCOUNTS):
            return self.accounts.show(inside)
        service = f"/{_SERVICE[self.kind]}"
        place = f"{service}/{self.kind}"
        root = resource("", "#ServiceRoot.v1_17_0.ServiceRoot", "RootService", "Root")
        systems = {"Systems": link("/Systems")} if self.empty_systems else {}
        pages: dict[str, Document] = {
            "": root | systems | {service.strip("/"): link(service), "AccountService": link(ACCOUNTS)},
            service: {"@odata.id": ROOT + service, self.kind: link(place)},
            place: collection(place, ["1"]),
            f"{place}/1": resource(f"{place}/1", "#Equipment", "1", self.kind)
            | {"SerialNumber": f"{self.serial} ", "FirmwareVersion": "2.4", "Status": status()},
        }
        return pages.get(inside)
