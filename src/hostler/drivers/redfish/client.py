"""Talks to one BMC: finds its systems, reads their state, and asks for power, boot, firmware, light and reset."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.drivers.redfish import ac_cycles, etags, multipart, wire, wire_accounts, wire_firmware
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access, Body, Exchange, HttpExchange, HttpResponse
from hostler.drivers.redfish.read_budget import ReadBudget
from hostler.drivers.redfish.sensor_layout import ResourceTree, SensorLayout
from hostler.drivers.redfish.tolerant_json import Document, WireError, child, document, link, local_path, text
from hostler.ports import ConflictError, LoginRefusedError, PortError, RefusedError, Secrets, UnreachableError

ROOT = "/redfish/v1/"
MAX_READS = 4
MAX_PAGES = 50
MAX_HOPS = 3
MAX_CLIENTS = 131_072
MAX_OFFERS = 16
MAX_ACCOUNTS = 32
MAX_SYSTEMS = 16
"""Of more systems behind one BMC each is taken for a machine of its own: no baseboard comes with so many."""
_LATER = {408, 425, 429}
_CONFLICT = {409}
_PRECONDITION = {412, 428}
_NEVER = {501, 505}
_UNKNOWN = 401
_MEND_LOGIN = "correct its user and password in bmc.json and start the controller again, or in the secret named there"


class BmcFailureError(UnreachableError):
    """The BMC answered that it failed (5xx), or that it is too busy. It may have worked all the same: observe."""


class NotOfferedError(RefusedError):
    """The BMC does not have this at all (404, 405, 410, 501, or no link to it)."""


class PreconditionError(ConflictError):
    """The BMC did nothing, as it was not told which state was meant, or another than it has (412, 428)."""


class RedfishClient:
    """One BMC, reached through an Exchange.

    Every call raises UnreachableError (no answer, a 5xx, or unreadable: it may have worked), RefusedError (with
    the BMC's own words) or ConflictError. Nothing is repeated here but what the BMC says it did not do (412, 428).
    Reads run MAX_READS at a time. Whoever asks for an actuation holds `alone` from the check of identity to the answer,
    so one BMC does one thing at a time.
    """

    def __init__(self, exchange: Exchange, origin: str) -> None:
        self.origin = origin
        self.alone = asyncio.Lock()
        self.layouts: dict[str, SensorLayout] = {}
        self.trees: dict[str, ResourceTree] = {}
        self.logs: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.apart: set[tuple[str, str]] = set()
        self._exchange = exchange
        self.budget = ReadBudget(origin)
        self._reads = asyncio.Semaphore(MAX_READS)
        self._root: wire.ServiceRoot | None = None
        self._only_system = ""
        self._first: tuple[wire.System, ...] = ()
        self._offers: dict[str, tuple[str, ...]] = {}

    @property
    def busy(self) -> bool:
        """Whether an act on this BMC is under way."""
        return self.alone.locked()

    def begin(self) -> None:
        """A new look, or a new operation: it has a whole budget."""
        self.budget = ReadBudget(self.origin)

    # what it is

    async def root(self) -> wire.ServiceRoot:
        """The service root; read once, as it changes only with the BMC's firmware."""
        if self._root is None:
            self._root = wire.service_root(await self.get(ROOT))
        return self._root

    async def system(self, wanted: str = "") -> wire.System:
        """The system with this id or path; without one the only machine that there is, beside its GPUs' baseboard."""
        if wanted:
            return await self._system_named(wanted)
        if self._only_system:
            try:
                return await self._system_at(self._only_system)
            except NotOfferedError:
                self._only_system = ""
        machines = await self.machines()
        if len(machines) != 1:
            raise RefusedError(
                f"{self.origin} serves {len(machines)} systems ({', '.join(self.choices(machines))}); "
                "name one in the node's bmc binding, as https://host#system-id"
            )
        self._only_system = machines[0].path
        return await self._system_at(self._only_system)

    async def systems(self) -> tuple[wire.System, ...]:
        """Systems, as listed; of one that cannot be read, of a single one and of too many no more than where it is.

        What was read to find the only machine is not read again.
        """
        found, self._first = self._first, ()
        return found or await self._read_systems()

    async def _read_systems(self) -> tuple[wire.System, ...]:
        paths = await self.member_paths(self._offered((await self.root()).systems, "systems"))
        if len(paths) == 1 or len(paths) > MAX_SYSTEMS:
            return tuple(wire.unread(path) for path in paths)
        return tuple([await self.system_if_shown(path) for path in paths])

    async def machines(self) -> tuple[wire.System, ...]:
        """The systems that are machines of their own."""
        self._first = await self._read_systems()
        return wire.hosts(self._first)

    @staticmethod
    def choices(machines: tuple[wire.System, ...]) -> list[str]:
        """How machines behind one BMC are told apart: the name to write, and the serial where one is shown."""
        shown = [f"{one.path} with serial {one.serial}" if one.serial else one.path for one in machines[:8]]
        return [*shown, f"and {len(machines) - 8} more"] if len(machines) > 8 else shown

    async def manager(self, system: wire.System) -> wire.Manager:
        """The BMC behind a system: the one it names, else the only one."""
        paths = list(system.managers) or await self.member_paths(self._offered((await self.root()).managers, "manager"))
        if not paths:
            raise NotOfferedError(
                f"{self.origin} shows no manager for system {system.id}"
                "; restart the BMC by the vendor's means, or update its firmware"
            )
        return await self.manager_at(paths[0])

    async def manager_at(self, path: str) -> wire.Manager:
        """The manager behind a link."""
        return wire.manager(await self.get(path), self.local(path))

    # what it does

    async def reset(self, system: wire.System, kinds: tuple[str, ...]) -> str:
        """Ask for a power change by the first of these types that is offered (On, ForceOff …), and say which it was.

        It has been accepted, not done, on return.
        """
        assert self.busy, "an actuation without `alone`: identity may have changed since it was checked"
        kind = self._first_of(kinds, await self.offered(system.resets, system.reset_info))
        target = system.reset_target or f"{system.path}/Actions/ComputerSystem.Reset"
        await self.send("POST", target, {"ResetType": kind})
        return kind

    async def offered(self, inline: tuple[str, ...], info: str) -> tuple[str, ...]:
        """The values that an action takes: as listed with it, else in its ActionInfo; none where neither says."""
        if inline or not info:
            return inline
        if info not in self._offers:
            try:
                found = wire.reset_types(await self.get(info))
            except (BmcFailureError, NotOfferedError, WireError):
                return ()
            self._offers = {info: found, **dict(list(self._offers.items())[: MAX_OFFERS - 1])}
        return self._offers[info]

    async def set_boot(self, system: wire.System, target: str, uri: str = "") -> None:
        """Boot from this target (Pxe, UefiHttp …) at the next boot only; `uri` is for UefiHttp."""
        assert self.busy, "an actuation without `alone`"
        allowed = await self.boot_targets(system)
        if allowed and target not in allowed:
            offered = ", ".join(dict.fromkeys(allowed))
            raise RefusedError(
                f"{self.origin} cannot boot from {target}; it offers {offered}"
                "; allow network boot in the machine's UEFI settings"
            )
        boot: dict[str, object] = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": target}
        if uri:
            boot |= {"HttpBootUri": uri}
        await self.write(ChangeTarget(system.path, system.settings, system.etag), {"Boot": boot}, _OVERRIDE)

    async def boot_targets(self, system: wire.System) -> tuple[str, ...]:
        """The boot targets that the BMC offers, () where it does not say."""
        return tuple(one for boot in await self.boots(system) for one in boot.targets)

    async def boots(self, system: wire.System) -> tuple[wire.BootOverride, ...]:
        """The boot override as it is, and as it will be where changes wait for the next start."""
        pending = await self._settings(system.settings, _OVERRIDE)
        return (system.boot, wire.boot_of(pending)) if pending else (system.boot,)

    async def write(self, place: "ChangeTarget", body: object, listed: tuple[str, ...]) -> None:
        """Change a resource: through its settings object where that lists the property at this path of keys."""
        assert self.busy, "an actuation without `alone`"
        pending = await self._settings(place.settings, listed)
        if pending:
            await self.patch(place.settings, body, text(pending, "@odata.etag"))
        else:
            await self.patch(place.path, body, place.etag)

    async def locate(self, system: wire.System, lit: bool) -> None:
        """Light or darken the locate LED."""
        assert self.busy, "an actuation without `alone`"
        if not system.led:
            raise NotOfferedError(
                f"{self.origin} shows no locate LED for system {system.id}"
                "; find the machine by its rack and slot (hostler node describe)"
            )
        value: object = lit if system.led == "LocationIndicatorActive" else "Lit" if lit else "Off"
        await self.patch(system.path, {system.led: value}, system.etag)

    async def reset_manager(self, manager: wire.Manager) -> None:
        """Restart the BMC itself; it is away for minutes afterwards. Running nodes are not disturbed."""
        assert self.busy, "an actuation without `alone`"
        kind = self._first_of(_RESTARTS, await self.offered(manager.resets, manager.reset_info))
        target = manager.reset_target or f"{manager.path}/Actions/Manager.Reset"
        await self.send("POST", target, {"ResetType": kind})

    async def ac_cycle(self, system: wire.System) -> str:
        """Ask for mains off and on by the vendor's own action, and say which it was; accepted, not done, on return.

        Raises NotOfferedError where the BMC offers none.
        """
        assert self.busy, "an actuation without `alone`"
        chassis = [path for path in await self.member_paths((await self.root()).chassis) if path.endswith("/BMC_0")]
        for path in (system.path, *chassis):
            if (offered := ac_cycles.offered(document(await self.get(path), "resource"))) is not None:
                await self.send("POST", offered.target, {"ResetType": offered.kind})
                return offered.kind
        raise NotOfferedError(
            f"{self.origin} offers no AC cycle: record the machine's outlets and set `activate: outlet_cycle`, "
            "let a technician pull the cords (`activate: unplug`), or set `activate: dc_cycle`"
        )

    async def change_bios(self, places: tuple["ChangeTarget", ...], body: object) -> None:
        """Ask for BIOS settings at the first of these places that takes any; accepted, not done, on return."""
        assert self.busy, "an actuation without `alone`"
        for place in places[:-1]:
            with contextlib.suppress(NotOfferedError):
                await self.patch(place.path, body, place.etag)
                return
        await self.patch(places[-1].path, body, places[-1].etag)

    async def apply_settings(self, jobs: str, settings: str) -> None:
        """Ask for the job that applies what waits in a settings object."""
        assert self.busy, "an actuation without `alone`"
        await self.send("POST", jobs, {"TargetSettingsURI": settings})

    async def collect_diagnostics(self, target: str, body: dict[str, str]) -> str:
        """Ask for a dump by a log's own action; returns its task's path or ""."""
        assert self.busy, "an actuation without `alone`"
        return self._task_path(await self.send("POST", target, body))

    async def password_rules(self) -> wire_accounts.PasswordRules:
        """Rules of the BMC for passwords, and where its accounts are."""
        where = self._offered((await self.root()).accounts, "account service")
        return wire_accounts.password_rules(await self.get(where))

    async def enters(self, accounts: str) -> Literal["no", "yes", "change"]:
        """Whether the login is taken; "change": to get a new password, and for nothing before. Raises PortError.

        One request is sent, to the account service at that path: each shows the password.
        """
        path = self.local(self._offered(accounts, "account service"))
        answer = await self._exchange("GET", path, None, {})
        if answer.status == _UNKNOWN:
            return "no"
        if answer.status == 403 and wire_accounts.demands_change(answer.body):
            return "change"
        self._check("GET", path, answer)
        return "yes"

    async def slots(self, accounts: str) -> list[wire_accounts.AccountSlot]:
        """The slots of a collection of accounts; each is read by itself, as inlined ones come without their etag."""
        paths = await self.member_paths(accounts)
        return [wire_accounts.slot(document(await self.get(path), "account"), path) for path in paths[:MAX_ACCOUNTS]]

    async def set_password(self, slot: wire_accounts.AccountSlot, password: str) -> bool:
        """Ask for a new password; False where the BMC calls it a success and shows an error all the same."""
        assert self.busy, "an actuation without `alone`"
        return not wire_accounts.is_error(await self.patch(slot.path, {"Password": password}, slot.etag))

    async def update_service(self) -> wire_firmware.UpdateService:
        """The update service's links. Raises NotOfferedError where there is none."""
        return wire_firmware.update_service(await self.get(self._offered((await self.root()).update, "update service")))

    async def push_update(self, targets: list[str], image: BinaryIO, name: str) -> str:
        """Send the image itself, to be written to these targets; returns its task's path or ""."""
        assert self.busy, "an actuation without `alone`"
        service = await self.update_service()
        body, boundary = multipart.update_body(targets, image, name)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        path = self.local(self._offered(service.push, "push of images"))
        answer = await self._exchange("POST", path, body, headers)
        self._check("POST", path, answer)
        return self._task_path(answer)

    async def simple_update(self, component: wire_firmware.FirmwareComponent, image: str, targets: list[str]) -> str:
        """Have the BMC fetch `image` (a URL) and write it to these targets; returns its task's path or "".

        Raises NotOfferedError where the BMC takes firmware by other means only.
        """
        assert self.busy, "an actuation without `alone`"
        service = await self.update_service()
        if not service.simple_update:
            raise NotOfferedError(
                f"{self.origin} takes no SimpleUpdate: Hostler verifies its firmware and does not update it; write "
                f"{component.name} by the vendor's own means, and its version is read again"
            )
        target = service.simple_update
        scheme = image.partition("://")[0].upper()
        body = {"ImageURI": image, "TransferProtocol": scheme, "Targets": targets}
        answer = await self.send("POST", target, body)
        return self._task_path(answer)

    async def task(self, path: str) -> wire.BmcTask | None:
        """A task's (or its monitor's) account; None where it is gone, as many are after they succeeded."""
        try:
            return wire.task(await self.get(path), path)
        except NotOfferedError:
            return None

    async def tasks(self) -> tuple[wire.BmcTask, ...]:
        """All tasks the BMC still lists; none where it has no task service."""
        try:
            service = self._offered((await self.root()).tasks, "task service")
            found = await self.collection(service.rstrip("/") + "/Tasks")
        except NotOfferedError:
            return ()
        return tuple(wire.task_of(doc, link(doc)) for doc in found)

    # how it talks

    async def get(self, reference: str) -> bytes:
        """The body behind a link on this BMC; redirects are followed on this BMC only."""
        return (await self._fetch(reference)).body

    async def _fetch(self, reference: str) -> HttpResponse:
        path = self.local(reference)
        for _ in range(MAX_HOPS):
            async with self._reads:
                answer = await self._exchange("GET", path, None, {})
            if answer.status not in {301, 302, 307, 308}:
                self._check("GET", path, answer)
                self.budget.answer(path, answer.body)
                return answer
            path = self.local(answer.headers.get("location", ""))
        raise RefusedError(
            f"{self.origin} redirects {reference} more than {MAX_HOPS} times"
            "; name the BMC's own address in the bmc binding, not a proxy's"
        )

    async def send(
        self, method: str, reference: str, body: object, headers: dict[str, str] | None = None
    ) -> HttpResponse:
        """One request that changes something, sent once."""
        path = self.local(reference)
        sent = {"Content-Type": "application/json"} | (headers or {})
        answer = await self._exchange(method, path, msgspec.json.encode(body), sent)
        self._check(method, path, answer)
        return answer

    async def send_form(self, reference: str, body: bytes, boundary: str) -> None:
        """Send a multipart form, once."""
        path = self.local(reference)
        answer = await self._exchange("POST", path, body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        self._check("POST", path, answer)

    async def patch(self, reference: str, body: object, etag: str = "") -> bytes:
        """Change settings, naming the state that was read where the BMC gives a strong etag; returns the answer's body.

        Where the BMC asks for another, or for one at all (412, 428), it has done nothing: the etag is fetched once
        more, and what it shows is tried in its strong form; at last none, or any state where it insists on one.
        """
        tried = etag if etags.is_strong(etag) else ""
        try:
            return (await self.send("PATCH", reference, body, etags.if_match(tried))).body
        except PreconditionError as error:
            refused = error
        for wanted in etags.worth_naming(await self._fetch(reference), tried):
            try:
                return (await self.send("PATCH", reference, body, etags.if_match(wanted))).body
            except PreconditionError as error:
                refused = error
        raise refused

    async def member_paths(self, reference: str) -> list[str]:
        """The paths of a collection's members, over all its pages."""
        return [self.local(link(doc)) async for doc in _pages(self, reference) if link(doc)]

    async def collection(self, reference: str) -> list[Document]:
        """The members of a collection as whole objects: inlined where the BMC offers it, else read one by one.

        A member that cannot be read stands in as {"@odata.id": …}: it exists, and nothing is known of it.
        """
        expand = (await self.root()).expand
        found = [doc async for doc in _pages(self, f"{reference}?{expand}" if expand else reference)]
        return [doc if len(doc) > 1 else await self._member(link(doc)) for doc in found]

    def local(self, reference: str) -> str:
        """The path of a link, if it stays on this BMC (else WireError)."""
        return local_path(reference, self.origin)

    async def _member(self, reference: str) -> Document:
        try:
            return document(await self.get(reference), "member")
        except (WireError, BmcFailureError, NotOfferedError):
            return {"@odata.id": reference}

    async def _system_named(self, wanted: str) -> wire.System:
        if wanted.startswith("/"):
            return await self._system_at(wanted)
        return await self._system_at(f"{self._offered((await self.root()).systems, 'systems').rstrip('/')}/{wanted}")

    async def system_if_shown(self, path: str) -> wire.System:
        """The system as far as it can be read now: a baseboard comes up minutes after its BMC."""
        try:
            return await self._system_at(path)
        except (BmcFailureError, WireError, RefusedError):
            return wire.unread(path)

    async def _system_at(self, path: str) -> wire.System:
        return wire.system(await self.get(path), path)

    async def _settings(self, reference: str, listed: tuple[str, ...]) -> Document:
        """The settings object, if it lists the property at this path of keys; an empty one where it does not."""
        if not reference:
            return {}
        try:
            pending = document(await self.get(reference), "settings")
        except NotOfferedError:
            return {}
        return pending if listed[-1] in child(pending, *listed[:-1]) else {}

    def _first_of(self, kinds: tuple[str, ...], offered: tuple[str, ...]) -> str:
        """The first of these types of reset that is offered, or the first where the BMC does not say what it offers."""
        if not offered:
            return kinds[0]
        if (kind := next((kind for kind in kinds if kind in offered), "")) == "":
            wanted = " nor ".join(kinds)
            raise RefusedError(
                f"{self.origin} does not offer the reset {wanted}; it offers {', '.join(offered)}"
                "; update the BMC's firmware, or switch the machine by hand"
            )
        return kind

    def _offered(self, reference: str, what: str) -> str:
        if not reference:
            raise NotOfferedError(
                f"{self.origin} offers no {what}; update the BMC's firmware, or do it by the vendor's own means"
            )
        return reference

    def _task_path(self, answer: HttpResponse) -> str:
        """Path at which the accepted update can be followed. It was accepted, so a bad link is no failure."""
        try:
            named = link(document(answer.body)) if answer.body else ""
            return self.local(named or answer.headers.get("location", ""))
        except WireError:
            return ""

    def _check(self, method: str, path: str, answer: HttpResponse) -> None:
        if 200 <= answer.status < 300:
            return
        said = ": ".join(filter(None, (str(answer.status), wire.error_text(answer.body))))
        mend = f"; {_MEND_LOGIN}" if answer.status == _UNKNOWN else ""
        raise _error_for(answer.status)(f"{self.origin} answered {method} {path} with {said}{mend}")


class Clients:
    """The clients of a fleet's BMCs, one per address, so that "one actuation per BMC" holds for all who ask.

    `access` says how an address is entered, `fence` raises UnreachableError where nothing may be sent now. At most
    MAX_CLIENTS are kept; the longest unused goes, never a busy one.
    """

    def __init__(
        self,
        sessions: Connections,
        access: Callable[[str], Access],
        fence: Callable[[], None] = lambda: None,
        secrets: Secrets | None = None,
    ) -> None:
        self._sessions = sessions
        self._secrets = secrets
        self._access = access
        self._fence = fence
        self._kept: OrderedDict[str, RedfishClient] = OrderedDict()
        self._pins: dict[str, str] = {}
        self._exchanges: dict[str, HttpExchange] = {}

    def __call__(self, origin: str, certificate: str = "") -> RedfishClient:
        """The client of an address. `certificate` is the one that is recorded for whoever is meant there."""
        client = self._kept.get(origin)
        if client is None or (certificate and certificate != self._pins.get(origin, "")):
            fresh = RedfishClient(self._exchange(origin, certificate), origin)
            fresh.alone = client.alone if client is not None else fresh.alone
            self._kept[origin], self._pins[origin] = fresh, certificate
            client = fresh
            self._shrink()
        self._kept.move_to_end(origin)
        return client

    def access(self, origin: str) -> Access:
        """How the address is entered. Raises RefusedError for one that is not talked to."""
        return self._access(origin)

    def refused(self, origin: str) -> str:
        """The password that this address has turned away last, "" for none."""
        exchange = self._exchanges.get(origin)
        return exchange.refused if exchange is not None else ""

    def entered_as(self, origin: str) -> str:
        """The account by which this address was entered last. Raises RefusedError where none is known."""
        exchange = self._exchanges.get(origin)
        if exchange is None or not exchange.entered_as:
            raise RefusedError(f"nobody knows by which account {origin} is entered; give bmc.json its login")
        return exchange.entered_as

    def entering(self, origin: str, certificate: str, username: str, password: str) -> RedfishClient:
        """A client of its own that enters with this login, for whoever is about to change it."""
        access = self._access(origin)
        own = Access(username, password, certificate if access.pin else access.fingerprint, timeout_s=access.timeout_s)
        own = replace(own, ca="" if access.pin else access.ca, keep=False)
        return RedfishClient(self._fenced(HttpExchange(self._sessions(origin, keep=False), origin, own)), origin)

    def _exchange(self, origin: str, certificate: str) -> Exchange:
        access = self._access(origin)
        if access.pin:
            access = _pinned(origin, access, certificate)
        exchange = HttpExchange(self._sessions(origin, keep=access.keep), origin, access, self._secrets)
        self._exchanges[origin] = exchange
        return self._fenced(exchange)

    def _fenced(self, exchange: Exchange) -> Exchange:
        """Reads pass; whatever may change something asks the fence as the last thing before it is sent."""

        async def fenced(method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
            if method != "GET":
                self._fence()
            return await exchange(method, path, body, headers)

        return fenced

    def _shrink(self) -> None:
        while len(self._kept) > MAX_CLIENTS:
            idle = next((origin for origin, client in self._kept.items() if not client.busy), None)
            if idle is None:
                return
            del self._kept[idle]
            self._pins.pop(idle, None)
            self._exchanges.pop(idle, None)
            self._sessions.release(idle)


def _pinned(origin: str, access: Access, certificate: str) -> Access:
    """The access by the recorded certificate. Raises RefusedError where none is: nobody is known there yet."""
    if not certificate:
        how = (
            "run `hostler bmc credentials rotate NODE`, which records it (`--dpu ADDRESS` for a DPU's), of an asset "
            "`hostler asset renew-login`"
            if access.pin == "first_contact"
            else "record it: `hostler node rebind NODE --kind bmc_certificate --value FINGERPRINT`, of a DPU "
            "`hostler bmc credentials rotate NODE --dpu ADDRESS --certificate FINGERPRINT`"
        )
        raise RefusedError(f"no certificate of {origin} is recorded, and bmc.json says that it is pinned; {how}")
    return replace(access, fingerprint=certificate, ca="")


class ChangeTarget(Struct, frozen=True):
    """A resource that can be changed: where, where changes of it wait ("" for nowhere), and the state that was read."""

    path: str
    settings: str = ""
    etag: str = ""


_OVERRIDE = ("Boot", "BootSourceOverrideTarget")
_RESTARTS = ("GracefulRestart", "ForceRestart")


def _error_for(status: int) -> type[PortError]:
    if status in _PRECONDITION:
        return PreconditionError
    if status in _CONFLICT:
        return ConflictError
    if status in {404, 405, 410} | _NEVER:
        return NotOfferedError
    if status in _LATER or status >= 500 or status < 200:
        return BmcFailureError
    return LoginRefusedError if status == _UNKNOWN else RefusedError


async def _pages(client: RedfishClient, reference: str) -> AsyncIterator[Document]:
    """The members of all pages of a collection, at most MAX_PAGES of them; a page that was read already ends it."""
    read: set[str] = set()
    while reference and len(read) < MAX_PAGES and (path := client.local(reference)) not in read:
        read.add(path)
        found, reference = wire.members(await client.get(path))
        client.budget.members(path, len(found))
        for doc in found:
            yield doc
