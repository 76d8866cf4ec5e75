"""A running cell with its boot listener over real HTTP; a hand in the BMC's place notes what it is given."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from hostler.core.boot.ipxe import ROOM_FOR_SCRIPT
from hostler.core.policy.documents import parse
from hostler.core.state.boot import BootRecord
from hostler.core.state.cases import Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.live_state import Release
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import EjectBootMedium, SetBootNetwork
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.nodes import Register
from hostler.core.tables.operations import OPERATIONS
from hostler.drivers.boot.boot_secret_handover import BootSecretHandover
from hostler.drivers.boot.network_reboot import NetworkReboot
from hostler.journal.memory import MemoryJournal
from hostler.ports import RefusedError
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.boot.boot_answers import BootAnswers
from hostler.server.boot.boot_requests import BootRequests
from hostler.server.boot.boot_wire import Answerer
from hostler.server.boot.image_catalogue import ImageCatalogue
from hostler.server.boot.listener import listening
from hostler.server.boot.signed_list import Signers
from hostler.server.connection_limits import ConnectionTable, limits
from hostler.server.guarded_listener import address, bound
from hostler.server.tokens import TokenStore
from tests.contract.api_world import PATIENCE_S, POLICY, ObligingHand

KEY = b"k" * 32
MAC, SERIAL = "52:54:00:00:00:01", "SN-n1"
KERNEL, INITRD = b"kernel" * 1000, b"initrd" * 2000
LOADER = b"MZ a boot loader"
MEDIUM = b"CD001" * 1000 + ROOM_FOR_SCRIPT + b"\0" * 300_000 + ROOM_FOR_SCRIPT + b"the end"
MEDIA = f"{{files: {{x86_64: {{file: boot.iso, sha256: {hashlib.sha256(MEDIUM).hexdigest()}}}}}}}"
SITE = "user_data: {timezone: Etc/UTC, users: [{name: ops}]}, meta_data: {region: north}"


@asynccontextmanager
async def boot_listening(answer: Answerer, host: str, port: int) -> AsyncIterator[str]:
    """The boot listener in this process; gives its address."""
    one = bound(host, port)
    url = f"http://{address(one)}"
    async with listening(answer, "boot", one, ConnectionTable(limits(1_024), "boot")):
        yield url


@asynccontextmanager
async def media_listening(answer: Answerer, host: str, port: int, tls: SSLContext) -> AsyncIterator[str]:
    """The listener of boot media in this process."""
    one = bound(host, port)
    url = f"https://{address(one)}"
    async with listening(answer, "boot-media", one, ConnectionTable(limits(1_024), "boot-media"), tls):
        yield url


class NotingHand(ObligingHand):
    """Does everything at once; nobody is heard after a power-on. Keeps the boot address that each BMC was given.

    `drive` is the medium in its virtual drive, where `has_drive`. `honest`: what is observed is so. `cut`: the kind of
    operation at which the controller is cut off, "before" or "after" the BMC did it.
    """

    def __init__(self, kinds: frozenset[str]) -> None:
        super().__init__(kinds)
        self.given: dict[str, str] = {}
        self.has_http = True
        self.offers: dict[str, JoinOffer] = {}
        self.mints = True
        self.minted: list[str] = []
        self.on = False
        self.sets = 0
        self.rebooted: list[str] = []
        self.has_drive = self.honest = False
        self.drive = ""
        self.refuses_eject = 0
        self.ejects = 0
        self.cut: tuple[str, str] | None = None
        self.cut_off = asyncio.Event()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        await self._cut_off(operation.kind, "before")
        said = await self._perform(operation, node)
        await self._cut_off(operation.kind, "after")
        return said

    async def _cut_off(self, kind: str, when: str) -> None:
        if self.cut == (kind, when):
            self.cut = None
            self.cut_off.set()
            await asyncio.Event().wait()

    async def _perform(self, operation: Operation, node: Node) -> Outcome:
        if isinstance(operation.act, SetBootNetwork) and operation.act.target == "medium":
            if not self.has_drive:
                raise RefusedError(f"no virtual drive takes {operation.act.url}")
            self.drive = operation.act.url
            return await super().perform(operation, node)
        if isinstance(operation.act, EjectBootMedium):
            self.ejects += 1
            if self.refuses_eject:
                self.refuses_eject -= 1
                raise RefusedError("the medium is in use")
            self.drive = "" if self.drive.startswith(operation.act.images) else self.drive
            return await super().perform(operation, node)
        self.on = self.on or (self.honest and operation.kind == "power_on")
        url = operation.act.url if isinstance(operation.act, SetBootNetwork) else ""
        if url and not self.has_http:
            raise RefusedError(f"this BMC has no {url}")
        if operation.kind == "set_boot_network":
            self.given[node.id] = url
            self.sets += 1
        if operation.kind == "reboot":
            self.rebooted.append(self.given.get(node.id, ""))
        if operation.kind == "issue_join_token":
            self.minted.append(operation.plan)
            if not self.mints:
                raise RefusedError("the API server is away")
            self.offers[node.id] = offer_for(node.id)
        return await super().perform(operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """A machine that is on already is seen to be."""
        if self.honest:
            true = {"power_on": self.on, "eject_boot_medium": not self.drive}.get(operation.kind, False)
            return Outcome(operation.id, node.id, "done" if true else "not_done", attempt=operation.attempt)
        seen = "done" if self.on and operation.kind == "power_on" else "unknown"
        return Outcome(operation.id, node.id, seen, attempt=operation.attempt)

    async def starts(self, node_id: str, boot_id: str) -> None:
        """The machine boots; its agent is not heard before somebody says so."""


def offer_for(node: str) -> JoinOffer:
    expires = datetime.now(UTC) + timedelta(minutes=15)
    return JoinOffer("mgmt", node, "https://10.0.0.1:6443", "PEM", "sha256:ab", "abcdef.0123456789abcdef", expires)


@dataclass
class BootWorld:
    """The cell, its listener's address, and what the BMC was given."""

    cell: Cell
    driver: NotingHand
    url: str
    session: aiohttp.ClientSession
    images: Path
    tokens: TokenStore
    requests: BootRequests
    seen: list[str] = field(default_factory=list)

    async def get(self, path: str, via: str = "", **headers: str) -> tuple[int, str]:
        """Status and text, asked from this address of the machine, "" for the usual one."""
        if via:
            connector = aiohttp.TCPConnector(local_addr=(via, 0))
            async with (
                aiohttp.ClientSession(connector=connector) as other,
                other.get(self.url + path, headers=headers) as answer,
            ):
                return answer.status, (await answer.read()).decode()
        async with self.session.get(self.url + path, headers=headers) as answer:
            return answer.status, (await answer.read()).decode()

    async def post(self, path: str) -> int:
        async with self.session.post(self.url + path, data={"instance_id": "x"}) as answer:
            return answer.status

    async def register(self, **more: Any) -> Node:
        """The node n1, powered on: the cell waits for it to come up."""
        await self.enter(**more)
        return await self.until(lambda n: n.plan is not None and n.plan.index == 2)

    async def enter(self, **more: Any) -> None:
        """The node n1 is registered; its bring-up begins by itself."""
        spec = {"id": "n1", "sku": "h100", "serial": SERIAL, "macs": [MAC], "bmc": "http://127.0.0.1:1", **more}
        await self.ask(Register(msgspec.json.encode([spec]).decode()))

    async def ask(self, act: Verb, target: str = FLEET) -> None:
        now = datetime.now(UTC)
        reply = await self.cell.ask(Intent(f"i{now.timestamp()}", act, target, "ann", "a test", now))
        assert reply.granted, reply.text

    async def until(self, holds: Any, node: str = "n1") -> Node:
        """Wait until the committed node is so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = self.cell.view.nodes.get(node)
                if found is not None and holds(found):
                    return found
                await asyncio.sleep(0.005)

    @property
    def plan(self) -> str:
        """The plan that powered the node on."""
        plan = self.cell.view.nodes["n1"].plan
        assert plan is not None
        return plan.id

    @property
    def booted(self) -> BootRecord:
        """The node's last boot."""
        boot = self.cell.view.nodes["n1"].boot
        assert boot is not None
        return boot

    def endpoint(self) -> str:
        """The path of the script that the BMC's address leads to."""
        return urlsplit(self.driver.given["n1"]).path.replace("/boot.efi", "/script")

    async def script(self, path: str = "", mac: str = MAC, serial: str = SERIAL, via: str = "") -> tuple[int, str]:
        return await self.get(f"{path or self.endpoint()}?mac={mac}&serial={serial}&arch=i386", via)

    async def seed(self) -> str:
        """The path of cloud-init's data, as the boot script gives it."""
        _, script = await self.script()
        return urlsplit(next(w for w in script.split() if w.startswith("hostler.seed=")).partition("=")[2]).path

    async def tickets(self, node: str, count: int) -> list[Ticket]:
        """The node's open tickets, once there are so many."""
        async with asyncio.timeout(PATIENCE_S):
            while len(found := self.cell.view.tickets_about(node)) != count:  # noqa: ASYNC110 - the view has no event
                await asyncio.sleep(0.005)
        return found

    def told(self, kind: str) -> list[Any]:
        """The recorded events of this stored name."""
        return [r.event for r in self.cell.journal.records() if type(r.event).__struct_config__.tag == kind]


def documents(url: str, sku: str = "gpus: 2", **more: str) -> dict[str, str]:
    sums = {name: hashlib.sha256(body).hexdigest() for name, body in (("vmlinuz", KERNEL), ("initrd", INITRD))}
    digests = ", ".join(f"{name}: {digest}" for name, digest in sums.items())
    image = f"{{kernel: vmlinuz, initrd: [initrd], args: quiet, sha256: {{{digests}}}}}"
    lines = "\n".join(f"  {key}: {value}" for key, value in more.items())
    loader = f"{{x86_64: {{file: ipxe.efi, sha256: {hashlib.sha256(LOADER).hexdigest()}}}}}"
    boot = f"boot:\n  url: {url}\n  images: {{production: {image}}}\n  loaders: {loader}\n"
    boot += f"  cloud_init: {{site: {{{SITE}}}}}\n{lines}\n"
    return {
        "policy.yaml": POLICY.replace("bring_up_at_once: 64", "bring_up_at_once: 4000"),
        "boot.yaml": f"skus:\n  h100: {{{sku}}}\n" + boot,
    }


@asynccontextmanager
async def boot_world(folder: Path, signers: Signers | None = None, **more: str) -> AsyncIterator[BootWorld]:
    """A cell with these settings of its boot section, and no node; `signers` sign the list of its images."""
    images = folder / "images"
    images.mkdir()
    (images / "vmlinuz").write_bytes(KERNEL)
    (images / "initrd").write_bytes(INITRD)
    (images / "ipxe.efi").write_bytes(LOADER)
    (images / "boot.iso").write_bytes(MEDIUM)
    driver = NotingHand(frozenset(kind for kind, row in OPERATIONS.items() if row.port != "present"))
    fleet: list[Cell] = []

    def view() -> Fleet:
        return fleet[0].view

    handover = BootSecretHandover(driver, view, KEY)
    cell = Cell(MemoryJournal(), performers(Wiring((driver,), (handover, NetworkReboot(driver, handover)))))
    fleet.append(cell)
    driver.cell = cell
    await cell.start()
    tokens = TokenStore(folder / "tokens.db")
    requests = BootRequests(cell, ImageCatalogue(images, signers), KEY, driver.offers.get, tokens)
    try:
        async with (
            boot_listening(BootAnswers(requests).answer, "127.0.0.1", 0) as url,
            aiohttp.ClientSession() as session,
        ):
            told = documents(url, **more)
            now = datetime.now(UTC)
            activate = Intent("i0", Activate(), FLEET, "ann", "a test", now)
            assert (await cell.ask(activate, parse(told), told)).granted
            async with asyncio.timeout(PATIENCE_S):
                while cell.view.cell.format < Release().reads:  # noqa: ASYNC110 - the view has no event
                    await asyncio.sleep(0.005)
            yield BootWorld(cell, driver, url, session, images, tokens, requests)
    finally:
        tokens.close()
        await cell.stop()
