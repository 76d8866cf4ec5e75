"""The Redfish service of one or many emulated BMCs as a function: request and moment in, reply out, no sockets."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import msgspec
from msgspec import Struct

from hostler.sim.bmc import bios_shapes, multipart_push, redfish_documents, vendor_behaviour, virtual_drives
from hostler.sim.bmc.bmc_accounts import SERVICE as ACCOUNTS
from hostler.sim.bmc.bmc_accounts import BmcAccounts
from hostler.sim.bmc.bmc_certificates import BmcCertificates
from hostler.sim.bmc.bmc_dumps import BmcDumps
from hostler.sim.bmc.emulated_machine import BmcRefusalError, EmulatedBootOverride, EmulatedTask, Machine
from hostler.sim.bmc.request_faults import RequestFaultRule, RequestFaults, merge
from hostler.sim.bmc.resource_parts import ROOT, Document, collection, link


class ServiceRequest(Struct, frozen=True):
    """One HTTP request; `path` is without its query."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Fetch(Struct, frozen=True):
    """An image that the BMC now fetches; whoever serves the reply brings it to `machine.image_arrived`."""

    machine: Machine
    task: str
    image: str


class ServiceResponse(Struct, frozen=True):
    """The answer. `dropped`: none, the connection just ends. `latency_s`: how late it comes.

    `data` are bytes in the place of a document, which come so many `times`.
    """

    status: int
    body: Document | None = None
    headers: dict[str, str] = {}
    dropped: bool = False
    latency_s: float = 0.0
    fetch: Fetch | None = None
    data: bytes | None = None
    times: int = 1


DROPPED = ServiceResponse(0, dropped=True)


class Service:
    """One Redfish entry point in front of machines: a BMC of its own with one, a shared service with many.

    In a shared service, firmware and task ids carry the system's ("rack1-n3.BIOS").
    """

    def __init__(
        self,
        machines: Iterable[Machine],
        faults: RequestFaults | None = None,
        accounts: BmcAccounts | None = None,
        dumps: BmcDumps | None = None,
        certificates: BmcCertificates | None = None,
    ) -> None:
        self.machines = {machine.id: machine for machine in machines}
        self.accounts = accounts
        self.dumps = dumps
        self.certificates = certificates
        self.faults = faults or RequestFaults()
        self._pages: dict[str, Document] | None = None

    @property
    def only(self) -> Machine | None:
        """The machine, where there is just one."""
        return next(iter(self.machines.values())) if len(self.machines) == 1 else None

    def handle(self, request: ServiceRequest, now: datetime) -> ServiceResponse:
        """Answer one request as the BMC would at `now`, the rules of `faults` included."""
        path = request.path.rstrip("/")
        self._pages = None
        machine = self._machine_of(path, request)
        if machine and machine.away(now):
            return DROPPED
        if machine and machine.deaf(now):
            return _error(503, "The Redfish service is starting.")
        rule = self.faults.spoil(request.method, path, machine.id if machine else "")
        if rule is None:
            return self._answer(request, path, machine, now)
        if rule.drop == "before":
            return DROPPED
        if rule.status:
            return msgspec.structs.replace(
                _error(rule.status, f"A fault rule answers {rule.status}."), latency_s=rule.latency_s
            )
        return _spoiled(self._answer(request, path, machine, now), rule)

    def _answer(self, request: ServiceRequest, path: str, machine: Machine | None, now: datetime) -> ServiceResponse:
        try:
            match request.method:
                case "GET":
                    return self._get(path, request.query, machine, now)
                case "POST" | "PATCH":
                    return self._change(request, path, machine, now)
                case "DELETE" if self.accounts is not None and path.startswith(f"{ROOT}{ACCOUNTS}/Accounts/"):
                    self.accounts.remove(path.removeprefix(ROOT))
                    return ServiceResponse(204)
                case _:
                    return _error(405, f"The method {request.method} is not allowed here.")
        except BmcRefusalError as refusal:
            return _error(refusal.status, str(refusal), refusal.message_id)

    # reading

    def _get(self, path: str, query: str, machine: Machine | None, now: datetime) -> ServiceResponse:
        if self.dumps is not None and (found := self.dumps.fetch(path)) is not None:
            return ServiceResponse(found[0], data=found[1], times=found[2])
        doc = self._show(path, now)
        if doc is None:
            return _error(404, f"The resource at {path} was not found.")
        doc = self._expanded(doc, min(_levels(query), self.expands), now)
        for key in machine.missing_keys if machine else ():
            doc.pop(key, None)
        return ServiceResponse(202 if "/TaskMonitors/" in path and doc.get("TaskState") == "Running" else 200, doc)

    def _show(self, path: str, now: datetime) -> Document | None:
        if self.accounts is not None and path.startswith(f"{ROOT}{ACCOUNTS}"):
            return self.accounts.show(path.removeprefix(ROOT))
        if self.dumps is not None and (found := self.dumps.show(path.removeprefix(ROOT), now)) is not None:
            return found
        inside = path.removeprefix(ROOT)
        if self.certificates is not None and (found := self.certificates.show(inside)) is not None:
            return found
        doc = self._show_machine(path, now)
        if doc is not None and self.certificates is not None:
            doc = self.certificates.beside(inside, doc)
        if doc is not None and self.dumps is not None and path == f"{ROOT}/Managers/{self.dumps.manager}":
            doc = doc | {"LogServices": link(f"/Managers/{self.dumps.manager}/LogServices")}
        if doc is not None and path == ROOT and self.accounts is not None:
            return doc | {"AccountService": link(ACCOUNTS)}
        return doc

    def _show_machine(self, path: str, now: datetime) -> Document | None:
        machine = self.only
        if machine and (vendor := vendor_behaviour.vendor_of(machine)) and vendor_behaviour.shows(path):
            if self._pages is None:
                self._pages = vendor_behaviour.pages(machine, vendor, now)
            return self._pages.get(path)
        if path in _FIXED:
            return _FIXED[path](self)
        inside = path.removeprefix(ROOT)
        parent, _, member = inside.rpartition("/")
        match parent:
            case "/UpdateService/FirmwareInventory":
                owner = self._owner(member)
                return redfish_documents.firmware_item(owner, member, self._prefix(owner)) if owner else None
            case "/TaskService/Tasks" | "/TaskService/TaskMonitors":
                owner = self._owner(member)
                found = owner.tasks.get(member) if owner and member not in owner.untold else None
                return redfish_documents.task(found, self._prefix(owner)) if owner and found else None
            case _:
                machine = self._machine_of(path, None)
                return redfish_documents.of_machine(machine, inside, now) if machine else None

    def _expanded(self, doc: Document, levels: int, now: datetime) -> Document:
        """The document with what is subordinate to it inlined, so many levels deep; what lies under Links is not."""
        if not levels:
            return doc
        vendor = vendor_behaviour.vendor_of(self.only)
        drops = vendor is not None and vendor.drops

        def inlined(value: object) -> object:
            if isinstance(value, list):
                return [inlined(item) for item in value]
            if isinstance(value, dict) and value.keys() == {"@odata.id"}:
                found = self._show(str(value["@odata.id"]), now)
                if found and drops:
                    found = {key: shown for key, shown in found.items() if key not in _DROPPED}
                return self._expanded(found, levels - 1, now) if found else value
            return value

        return {key: value if key in _NOT_SUBORDINATE else inlined(value) for key, value in doc.items()}

    @property
    def expands(self) -> int:
        """How many levels of a document are inlined on request."""
        if vendor := vendor_behaviour.vendor_of(self.only):
            return vendor.expands
        return min(machine.quirks.expands for machine in self.machines.values()) if self.machines else 0

    # changing

    def _change(self, request: ServiceRequest, path: str, machine: Machine | None, now: datetime) -> ServiceResponse:
        if path == f"{ROOT}/UpdateService/update-multipart" and request.method == "POST":
            return self._pushed(request, now)
        inside = path.removeprefix(ROOT)
        if self.certificates is not None and self.certificates.owns(inside):
            return self._certified(inside, request, now)
        body = _body(request)
        if self.accounts is not None and path.startswith(f"{ROOT}{ACCOUNTS}"):
            said = self.accounts.change(path.removeprefix(ROOT), body, request.headers)
            away = machine is not None and machine.away(now)
            return DROPPED if away else ServiceResponse(200 if said else 204, said)
        if self.dumps is not None and path.endswith("/LogService.CollectDiagnosticData"):
            task = self.dumps.collect(body, now)
            return ServiceResponse(202, self._show(task, now), {"Location": task}) if task else ServiceResponse(204)
        return self._change_machine(request, path, machine, now)

    def _change_machine(
        self, request: ServiceRequest, path: str, machine: Machine | None, now: datetime
    ) -> ServiceResponse:
        """A change of the machine, in its vendor's own way."""
        body, within = _body(request), _within(path)
        if machine and (vendor := vendor_behaviour.vendor_of(machine)):
            if request.method == "PATCH":
                vendor_behaviour.admit(vendor, self._show(path, now), request.headers)
            vendor_behaviour.check(vendor, path, body)
            within = _MAINS if vendor_behaviour.takes_mains(vendor, path) else vendor_behaviour.meant(vendor, within)
        if path == f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate":
            return self._update(body, now)
        if machine is None:
            return _error(404, f"The resource at {path} was not found.")
        if virtual_drives.PLACE in within:
            return self._asked_of_a_drive(machine, request.method, path, body, now)
        change = _CHANGES.get((request.method, within))
        if request.method == "PATCH" and bios_shapes.is_change(machine, within):
            change = bios_shapes.change
        if change is None:
            return _error(405, f"{request.method} is not allowed at {path}.")
        change(machine, body, now)
        return ServiceResponse(204)

    def _certified(self, inside: str, request: ServiceRequest, now: datetime) -> ServiceResponse:
        """A change of the web server's certificate; its answer may be lost with the server's restart."""
        assert self.certificates is not None, "whose path it is"
        body = {} if inside.endswith(".Upload") else _body(request)
        said = self.certificates.change(inside, body, request.body, now)
        lost = self.certificates.lie == "drops" and not inside.endswith(".GenerateCSR")
        return DROPPED if lost else ServiceResponse(200 if said else 204, said)

    def _asked_of_a_drive(
        self, machine: Machine, method: str, path: str, body: Document, now: datetime
    ) -> ServiceResponse:
        vendor = vendor_behaviour.vendor_of(machine)
        shape = vendor.drives if vendor else virtual_drives.PLAIN
        owner = vendor.drives_at if vendor else f"/Systems/{machine.id}"
        asked = virtual_drives.DriveRequest(method, path.removeprefix(f"{ROOT}{owner}/"), body)
        if shape is None or asked.within == path:
            return _error(404, f"The resource at {path} was not found.")
        fetched = virtual_drives.medium_asked(machine, shape, asked, now)
        return ServiceResponse(204, fetch=Fetch(machine, f"drive {fetched[0]}", fetched[1]) if fetched else None)

    def _update(self, body: Document, now: datetime) -> ServiceResponse:
        targets, image = body.get("Targets"), body.get("ImageURI")
        if not isinstance(image, str) or not isinstance(targets, list) or len(targets) != 1:
            raise BmcRefusalError(400, "ImageURI and exactly one of Targets are required.")
        member = str(targets[0]).rpartition("/")[2]
        machine = self._owner(member)
        if machine and (vendor := vendor_behaviour.vendor_of(machine)):
            vendor_behaviour.fetch(vendor)
            member = vendor_behaviour.component_at(machine, self._show(str(targets[0]), now), "")
        if machine is None:
            raise BmcRefusalError(400, f"The target {targets[0]} was not found.")
        if machine.quirks.refuses_images:
            raise BmcRefusalError(400, f"The value {image!r} for ImageURI is not of an acceptable location.")
        task = machine.start_update(member.removeprefix(self._prefix(machine)), image, now)
        return self._accepted(machine, task, Fetch(machine, task.id, image))

    def _pushed(self, request: ServiceRequest, now: datetime) -> ServiceResponse:
        """An image that came with the request; writing begins at once."""
        targets, body = multipart_push.read(request.headers, request.body)
        member = targets[0].rpartition("/")[2] if len(targets) == 1 else ""
        machine = self._owner(member)
        if machine is None or not member:
            raise BmcRefusalError(400, "Exactly one of Targets is required.")
        component = vendor_behaviour.component_at(machine, self._show(targets[0], now), member)
        task = machine.start_update(component.removeprefix(self._prefix(machine)), "pushed", now)
        machine.image_arrived(task.id, body, now)
        return self._accepted(machine, task, None)

    def _accepted(self, machine: Machine, task: EmulatedTask, fetch: Fetch | None) -> ServiceResponse:
        if machine.quirks.taskless:
            machine.untold.add(task.id)
            return ServiceResponse(204, fetch=fetch)
        monitor = f"{ROOT}/TaskService/TaskMonitors/{task.id}"
        shown = redfish_documents.task(task, self._prefix(machine))
        return ServiceResponse(202, shown, {"Location": monitor}, fetch=fetch)

    # whose is it

    def _machine_of(self, path: str, request: ServiceRequest | None) -> Machine | None:
        if self.only:
            parts = path.split("/")
            named = parts[4] if len(parts) > 4 and parts[3] in _PLACES else self.only.id
            return self.only if request is not None or named == self.only.id else None
        parts = path.split("/")
        if len(parts) <= 4:
            return None
        if parts[3] in _PLACES:
            return self.machines.get(parts[4])
        member = parts[-1]
        if request is not None and request.method == "POST":
            member = _target_of(request)
        return self._owner(member)

    def _owner(self, member: str) -> Machine | None:
        if self.only:
            return self.only
        return self.machines.get(member.partition(".")[0]) or self.machines.get(member.rpartition("-")[0])

    def _prefix(self, machine: Machine) -> str:
        return "" if self.only else f"{machine.id}."


def _firmware(service: Service) -> Document:
    ids = [
        member
        for machine in service.machines.values()
        for member in redfish_documents.firmware_ids(machine, "" if service.only else f"{machine.id}.")
    ]
    return collection("/UpdateService/FirmwareInventory", ids)


def _tasks(service: Service) -> Document:
    ids = [task for machine in service.machines.values() for task in machine.tasks if task not in machine.untold]
    return collection("/TaskService/Tasks", ids)


def _root(service: Service) -> Document:
    serves = service.only.id if service.only else f"{len(service.machines)} systems"
    return redfish_documents.service_root(serves, service.expands)


def _levels(query: str) -> int:
    """How many levels a query asks to be inlined; 0 where it asks for none."""
    found = _EXPAND.search(query)
    return int(found[1] or 1) if found else 0


_EXPAND = re.compile(r"\$expand=[.*~](?:\(\$levels=(\d{1,2})\))?")
_DROPPED = frozenset({"Id", "Name", "@odata.etag"})
_NOT_SUBORDINATE = frozenset({"Links", "RelatedItem", "RedundancyGroup", "Actions"})


_PLACES = ("Systems", "Chassis", "Managers")
_FIXED: Mapping[str, Callable[[Service], Document]] = {
    "/redfish": lambda _: {"v1": f"{ROOT}/"},
    ROOT: _root,
    f"{ROOT}/UpdateService": lambda _: redfish_documents.update_service(),
    f"{ROOT}/UpdateService/FirmwareInventory": _firmware,
    f"{ROOT}/TaskService": lambda _: redfish_documents.task_service(),
    f"{ROOT}/TaskService/Tasks": _tasks,
    f"{ROOT}/Systems": lambda service: collection("/Systems", service.machines),
    f"{ROOT}/Chassis": lambda service: collection("/Chassis", service.machines),
    f"{ROOT}/Managers": lambda service: collection("/Managers", service.machines),
}


def _reset_system(machine: Machine, body: Document, now: datetime) -> None:
    machine.reset(str(body.get("ResetType", "")), now)


def _ac_cycle(machine: Machine, _body: Document, now: datetime) -> None:
    machine.ac_cycle(now)


def _reset_manager(machine: Machine, _body: Document, now: datetime) -> None:
    machine.reset_manager(now)


def _patch_system(machine: Machine, body: Document, now: datetime) -> None:
    led = "IndicatorLED" if machine.quirks.older else "LocationIndicatorActive"
    boot, lit = body.get("Boot"), body.get(led)
    if machine.quirks.older:
        lit = {"Lit": True, "Off": False}.get(str(lit))
    if not isinstance(boot, Mapping) and not isinstance(lit, bool):
        raise BmcRefusalError(400, f"Only Boot and {led} can be changed.")
    if isinstance(boot, Mapping):
        machine.set_boot(_boot(machine.boot, boot), now)
    if isinstance(lit, bool):
        machine.set_locate(lit, now)


_MAINS = "Systems:Actions/Oem/OemSystemExtensions.Reset"
_Change = Callable[[Machine, Document, datetime], None]
_CHANGES: Mapping[tuple[str, str], _Change] = {
    ("POST", "Systems:Actions/ComputerSystem.Reset"): _reset_system,
    ("POST", _MAINS): _ac_cycle,
    ("POST", "Managers:Actions/Manager.Reset"): _reset_manager,
    ("PATCH", "Systems:"): _patch_system,
    ("POST", "Managers:Jobs"): bios_shapes.schedule,
}


def _within(path: str) -> str:
    """The path of a change without the system's id: "Systems:Actions/ComputerSystem.Reset"."""
    place, _, rest = path.removeprefix(ROOT).strip("/").partition("/")
    return f"{place}:{rest.partition('/')[2]}"


def _boot(now: EmulatedBootOverride, wanted: Mapping[object, object]) -> EmulatedBootOverride:
    def chosen(key: str, otherwise: str) -> str:
        value = wanted.get(key, otherwise)
        return value if isinstance(value, str) else ""

    return EmulatedBootOverride(
        chosen("BootSourceOverrideEnabled", now.enabled),
        chosen("BootSourceOverrideTarget", now.target),
        chosen("HttpBootUri", now.uri),
    )


def _body(request: ServiceRequest) -> Document:
    try:
        body = msgspec.json.decode(request.body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BmcRefusalError(400, "The request body is malformed JSON.") from error
    if not isinstance(body, dict):
        raise BmcRefusalError(400, "The request body is no JSON object.")
    return body


def _target_of(request: ServiceRequest) -> str:
    try:
        targets = _body(request).get("Targets")
    except BmcRefusalError:
        return ""
    return str(targets[0]).rpartition("/")[2] if isinstance(targets, list) and targets else ""


def _spoiled(reply: ServiceResponse, rule: RequestFaultRule) -> ServiceResponse:
    if rule.drop == "after":
        return msgspec.structs.replace(reply, dropped=True)
    body = reply.body
    if rule.patch and body is not None:
        changed = merge(body, rule.patch)
        body = changed if isinstance(changed, dict) else body
    return msgspec.structs.replace(reply, body=body, latency_s=rule.latency_s)


def _error(status: int, message: str, message_id: str = "Base.1.12.GeneralError") -> ServiceResponse:
    info = {
        "@odata.type": "#Message.v1_1_2.Message",
        "MessageId": message_id,
        "Message": message,
    }
    return ServiceResponse(
        status,
        {"error": {"code": "Base.1.12.GeneralError", "message": message, "@Message.ExtendedInfo": [info]}},
    )
