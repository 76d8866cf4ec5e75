"""Turns requests of the boot network into questions to the controller, and its answers into scripts and documents."""

import asyncio
import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.step_output import Reply
from hostler.core.boot import ipxe
from hostler.core.boot.boot_decision import (
    BMC,
    ENROL,
    FIRMWARE,
    HOME,
    MAC,
    SCRIPT,
    WRONG,
    BootRequest,
    loader_arch,
    may_read_on,
)
from hostler.core.boot.boot_decision import MEDIUM as READS_MEDIUM
from hostler.core.boot.boot_decision import SEED as CLOUD_INIT
from hostler.core.boot.boot_target import IMAGE
from hostler.core.boot.cloud_init import DOCUMENTS, compose
from hostler.core.boot.secrets import DOOR, MEDIUM, SEED, is_secret_of, secret_of
from hostler.core.state.assets import is_mac, normal_mac
from hostler.core.state.boot import LOCAL_DISK, BootConfiguration
from hostler.core.state.fleet import Fleet
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import Node
from hostler.server.boot.agent_enrolment import AgentEnrolment, AgentTokens, InvalidClaimError
from hostler.server.boot.image_catalogue import ImageCatalogue
from hostler.server.boot.medium_template import MediumTemplate, NoTemplateError, script_of, template_of

ASKS_MAX = 2_000
"""Requests that wait for the controller at a time; more are told to come again."""
TOKEN_S = 20.0
"""So long a request for user-data waits for its token; cloud-init asks again."""
LOOK_S = 0.1

OK, ACCEPTED, BAD_REQUEST, FORBIDDEN, NOT_FOUND, AGAIN = 200, 202, 400, 403, 404, 503

_PRINTABLE = re.compile(r"[ -~]{0,64}")


class BootCell(Protocol):
    """The running cell, as the boot listener asks it."""

    @property
    def view(self) -> Fleet:
        """Fleet as committed."""
        ...

    async def boot(self, request: BootRequest) -> Reply:
        """Durable when it returns. Raises BusyError."""
        ...


class Said(Struct, frozen=True):
    """An answer: its status, and its text."""

    status: int
    text: str = ""


class Medium(Struct, frozen=True):
    """The boot medium of one boot: its image, and the script on it."""

    template: MediumTemplate
    script: bytes


class BootRequests:
    """Answers of the boot listener. `offered`: what lets a node into its cluster now; `tokens`: those of agents."""

    def __init__(
        self,
        cell: BootCell,
        catalogue: ImageCatalogue,
        key: bytes,
        offered: Callable[[str], JoinOffer | None],
        tokens: AgentTokens,
    ) -> None:
        self._cell = cell
        self._key = key
        self._offered = offered
        self._enrolment = AgentEnrolment(tokens, key)
        self._room = asyncio.Semaphore(ASKS_MAX)
        self._templates: dict[tuple[str, str], MediumTemplate] = {}
        self.catalogue = catalogue

    @property
    def boots(self) -> BootConfiguration | None:
        """The boot configuration in force."""
        return self._cell.view.configuration.boot

    async def script(self, asked: BootRequest, secret: str, again: str) -> Said:
        """The boot script for the machine; it says why where there is nothing to boot."""
        boots = self.boots
        if boots is None:
            return Said(OK, ipxe.hold_script("", "the configuration has no section boot", again))
        unusable = await self.catalogue.verify(boots, self._cell.view.configuration.sha256)
        asked = replace(self._known(asked, secret, DOOR), what=SCRIPT, unusable=unusable)
        said = await self._ask(asked)
        kind, node = said.detail["kind"], said.detail["node"]
        if said.granted and kind == LOCAL_DISK:
            return Said(OK, ipxe.local_script(again))
        if not said.granted or kind != IMAGE:
            return Said(OK, ipxe.hold_script(node, said.text, again))
        return Said(OK, self._image_script(boots, said, again))

    async def loader(self, asked: BootRequest, secret: str) -> Said | Path:
        """The boot loader's file for UEFI that shows this secret, where one is configured for its architecture."""
        boots = self.boots
        if boots is None or not boots.loaders:
            return Said(NOT_FOUND, "the configuration names no boot loader (boot.loaders)")
        asked = replace(self._known(asked, secret, DOOR), what=FIRMWARE)
        said = await self._ask(asked)
        return await self.loader_of(said.detail["image"]) if said.granted else Said(said.acknowledged, said.text)

    async def loader_of(self, arch: str) -> Said | Path:
        """The boot loader's file for an architecture; everybody on the boot network may have it."""
        boots = self.boots
        named = boots.loaders.get(arch) if boots is not None else None
        if boots is None or named is None:
            return Said(NOT_FOUND, f"the configuration names no boot loader for {arch[:20]}")
        await self.catalogue.verify(boots, self._cell.view.configuration.sha256)
        file = self.catalogue.file(boots, named.file)
        return file if file is not None else Said(NOT_FOUND, f"{named.file} is not what its sha256 says")

    async def medium(self, asked: BootRequest, secret: str) -> Said | Medium:
        """The boot medium of the boot whose secret this is. Who began to read it reads on unrecorded."""
        boots, view = self.boots, self._cell.view
        if boots is None or boots.media is None:
            return Said(NOT_FOUND, "the configuration names no boot media (boot.media)")
        asked = replace(self._known(asked, secret, MEDIUM), what=READS_MEDIUM)
        node = view.nodes.get(asked.node)
        if node is None or not may_read_on(node, asked):
            said = await self._ask(asked)
            if not said.granted:
                return Said(said.acknowledged, said.text)
        node = self._cell.view.nodes.get(asked.node)
        if node is None:
            return Said(NOT_FOUND, "the node is gone")
        template = await self._template(boots, loader_arch(self._cell.view, node))
        if isinstance(template, Said):
            return template
        door = secret_of(self._key, node.id, asked.plan, DOOR)
        return Medium(template, script_of(ipxe.first_script(f"{boots.url}/n/{node.id}/{door}/script", bare=True)))

    async def _template(self, boots: BootConfiguration, arch: str) -> MediumTemplate | Said:
        named = boots.media.files.get(arch) if boots.media is not None else None
        if named is None:
            return Said(NOT_FOUND, f"the configuration names no boot medium for {arch}")
        await self.catalogue.verify(boots, self._cell.view.configuration.sha256)
        file = self.catalogue.file(boots, named.file)
        if file is None:
            return Said(NOT_FOUND, f"{named.file} is not what its sha256 says")
        key = (named.file, named.sha256)
        if key not in self._templates:
            try:
                self._templates |= {key: await asyncio.to_thread(template_of, file)}
            except (NoTemplateError, OSError) as error:
                return Said(NOT_FOUND, f"{named.file} {error}")
        return self._templates[key]

    def _image_script(self, boots: BootConfiguration, said: Reply, again: str) -> str:
        node, plan, image = said.detail["node"], said.detail["plan"], boots.images[said.detail["image"]]
        seed = f"{boots.url}/n/{node}/{secret_of(self._key, node, plan, SEED)}/ci/" if plan else ""
        return ipxe.image_script(node, image, ipxe.ImageUrls(f"{boots.url}/images", seed, again))

    async def document(self, asked: BootRequest, secret: str, name: str) -> Said:
        """A document of cloud-init's documents. user-data, which carry the join token, are given once."""
        asked = self._known(asked, secret, SEED)
        node = self._cell.view.nodes.get(asked.node)
        if name not in DOCUMENTS:
            return Said(NOT_FOUND, "no such document")
        if name != "user-data" and node is not None and asked.identity == BMC:
            return Said(OK, compose(self._cell.view, node).text(name))
        return await self._user_data(replace(asked, what=CLOUD_INIT), secret)

    async def _user_data(self, asked: BootRequest, secret: str) -> Said:
        said = await self._ask(replace(asked, offered=self._has_offer(asked.node)))
        if said.acknowledged == ACCEPTED:
            await self._minted(asked.node)
            if not self._has_offer(asked.node):
                return Said(AGAIN, "its join token has not been issued")
            said = await self._ask(asked)
        node = self._cell.view.nodes.get(said.detail["node"])
        if not said.granted or node is None:
            return Said(said.acknowledged if not said.granted else NOT_FOUND, said.text)
        assert self.boots is not None, "a boot window needs a boot configuration"
        own = f"{self.boots.url}/n/{node.id}/{secret}"
        return Said(OK, compose(self._cell.view, node, own, self._join(node)).text("user-data"))

    async def home(self, asked: BootRequest, secret: str) -> Said:
        """The node has come up."""
        said = await self._ask(replace(self._known(asked, secret, SEED), what=HOME))
        return Said(OK if said.granted else said.acknowledged, said.text)

    async def enrol(self, asked: BootRequest, secret: str, body: bytes) -> Said:
        """The token of this boot's agent, sealed to the key that it shows; where it shows a TPM, a challenge first."""
        boots = self.boots
        if boots is None or boots.agent is None:
            return Said(NOT_FOUND, "the configuration names no agent for booted nodes (boot.agent)")
        asked = self._known(asked, secret, SEED)
        try:
            proven = self._enrolment.judge(body, f"{asked.node}/{asked.plan}", boots.agent.tpm_authorities)
        except InvalidClaimError as error:
            return Said(BAD_REQUEST, str(error))
        if proven.challenge and not proven.fault and asked.identity == BMC:
            return Said(ACCEPTED, base64.b64encode(proven.challenge).decode())
        facts = {"key": proven.key, "tpm": proven.tpm, "pcrs": proven.pcrs, "fault": proven.fault}
        said = await self._ask(replace(asked, what=ENROL, **facts))
        if not said.granted:
            return Said(said.acknowledged, said.text)
        return Said(OK, await asyncio.to_thread(self._enrolment.token, said.detail["node"], proven))

    def _known(self, asked: BootRequest, secret: str, purpose: str) -> BootRequest:
        """The request with how the machine shows who it is."""
        if not secret:
            return replace(asked, identity=MAC)
        node = self._cell.view.nodes.get(asked.node)
        plan = node.plan.id if node is not None and node.plan is not None else ""
        known = is_secret_of(secret, self._key, asked.node, plan, purpose)
        return replace(asked, identity=BMC if known else WRONG, plan=plan if known else "")

    def _has_offer(self, node_id: str) -> bool:
        """Whether what goes with user-data is at hand, or none is wanted."""
        node, boots = self._cell.view.nodes.get(node_id), self.boots
        if node is None or boots is None or not boots.cluster:
            return True
        return not self._cell.view.policy_of(node).join_token_ttl_s or self._join(node) is not None

    def _join(self, node: Node) -> JoinOffer | None:
        offer, boots = self._offered(node.id), self.boots
        return offer if offer is not None and boots is not None and offer.cluster == boots.cluster else None

    async def _minted(self, node_id: str) -> None:
        """Wait until the token is there or is not to come, for as long as a request may wait."""
        for _ in range(round(TOKEN_S / LOOK_S)):
            node = self._cell.view.nodes.get(node_id)
            if self._has_offer(node_id) or node is None or node.aside is None:
                return
            await asyncio.sleep(LOOK_S)

    async def _ask(self, asked: BootRequest) -> Reply:
        async with self._room:
            return await self._cell.boot(asked)


def request_of(address: str, node: str = "", mac: str = "", serial: str = "", arch: str = "") -> BootRequest:
    """The request, of what can be read of it: what is no MAC address or no serial number counts as not shown."""
    mac = normal_mac(mac)
    return BootRequest(
        what=SCRIPT,
        address=address[:64],
        mac=mac if is_mac(mac) else "",
        serial=serial.strip() if _PRINTABLE.fullmatch(serial.strip()) else "",
        node=node[:64],
        arch=ARCHES.get(arch, ""),
    )


ARCHES = {"i386": "x86_64", "x86_64": "x86_64", "arm64": "arm64"}
"""A boot loader's word for its processor → the architecture of images that start there."""
