"""Has a switch tray's own system (NVOS) fetch an image and install it, and tells by its version whether that is so.

Over NVOS's REST API, with the login that `bmc.json` has for its address. An installation restarts the switch by itself.
Sources: NVIDIA's NVOS manual, installation management; actions as the NVUE reference and NVIDIA's open clients have
them: POST of `@fetch` to `/nvue_v1/system/image`, of `@install` to `/nvue_v1/system/image/files/FILE`.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.firmware_versions import downgrade
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import FetchSystemImage, InstallSystemImage, kind_of
from hostler.drivers.redfish import wire_nvos
from hostler.drivers.redfish.client import NotOfferedError, RedfishClient
from hostler.drivers.redfish.firmware_images import FirmwareImages, HttpImages, checked
from hostler.drivers.redfish.http_exchange import parse_address
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import RefusedError, UnreachableError

PLATFORM, IMAGE, FILES, ACTIONS = (
    "/nvue_v1/platform", "/nvue_v1/system/image", "/nvue_v1/system/image/files", "/nvue_v1/action",
)  # fmt: skip
MAX_IMAGE_BYTES = 4 * 1024**3
LANDS = timedelta(seconds=60)
"""How long after sending nothing need be seen of it."""
BOOTS = timedelta(minutes=20)
"""How long the switch may take to run what it has installed: firmware of its ASICs may come first."""
MAX_REMEMBERED = 256
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


class SentImage(Struct):
    """Memory of a sent operation: when, the action's number, and since when the action has been over."""

    sent: datetime | None = None
    action: str = ""
    over: datetime | None = None


class SystemImageDriver:
    """The Hand for NVOS's images. Both calls raise only PortError.

    `perform` refuses unless NVOS shows the serial number that is recorded for the tray, and an image whose bytes are
    not those of its SHA-256. What is kept in memory only makes observing sharper.
    """

    def __init__(
        self,
        clients: Callable[[str, str], RedfishClient],
        clock: Callable[[], datetime],
        images: FirmwareImages | None = None,
    ) -> None:
        self.kinds = frozenset({kind_of(FetchSystemImage), kind_of(InstallSystemImage)})
        self._clients = clients
        self._clock = clock
        self._images = images or HttpImages(MAX_IMAGE_BYTES)
        self._memories: OrderedDict[str, SentImage] = OrderedDict()

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Send the action, unless what it is for is so already."""
        client, act = self._reach(node), _act(operation)
        try:
            if (seen := await self._seen(client, operation)).result == "done":
                return seen
            if isinstance(act, FetchSystemImage):
                await self._verified(act)
            async with client.alone:
                await _check_serial(client, node)
                return await self._send(client, operation, act)
        except WireError as error:
            raise RefusedError(f"{client.origin}: {error}; restart the switch's nvued") from error

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Read from NVOS whether it has happened; its action's word is not its version."""
        client = self._reach(node)
        try:
            seen = await self._seen(client, operation)
            return seen if seen.result == "done" else await self._followed(client, operation, seen)
        except WireError as error:
            raise UnreachableError(f"{client.origin}: {error}; restart the switch's nvued") from error

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing, as an action of NVOS is not called off; its settle time covers it."""

    def _reach(self, node: Node) -> RedfishClient:
        if not node.binding("nvos"):
            raise RefusedError(
                f"asset {node.id} has no address of its own system"
                f"; record it (hostler asset rebind {node.id} --kind nvos --value https://… --reason …)"
            )
        client = self._clients(parse_address(node.binding("nvos")).origin, "")
        client.begin()
        return client

    async def _verified(self, act: FetchSystemImage) -> None:
        """Raises RefusedError unless the image behind the URL is the one that was meant."""
        try:
            await checked(self._images, act.image, act.sha256)
        except UnreachableError as error:
            raise RefusedError(f"nothing was sent to the switch: {error}") from error

    async def _seen(self, client: RedfishClient, operation: Operation) -> Outcome:
        """Done where the wanted version runs, or, of a fetch, its file is there and nothing writes it any more."""
        act = _act(operation)
        images = wire_nvos.system_images(await client.get(IMAGE))
        facts: Facts = {"NVOS": images.current, "next": images.next}
        runs = f"NVOS runs {images.current or 'an unknown version'}"
        if images.current in act.good:
            return _outcome(operation, "done", runs, facts)
        known = self._memories.get(operation.id)
        is_fetched = isinstance(act, FetchSystemImage) and (known is None or not known.action)
        if is_fetched and wire_nvos.lists_file(await client.get(FILES), _file(act.image)):
            return _outcome(operation, "done", f"{runs}; {_file(act.image)} is on the switch", facts)
        return _outcome(operation, "not_done", runs, facts)

    async def _send(
        self, client: RedfishClient, operation: Operation, act: FetchSystemImage | InstallSystemImage
    ) -> Outcome:
        name, memory = _file(act.image), self._memory_of(operation)
        if isinstance(act, InstallSystemImage):
            images = wire_nvos.system_images(await client.get(IMAGE))
            if why := downgrade(images.current, act.version, allowed=act.downgrade):
                raise RefusedError(f"NVOS: {why}; nothing was sent")
            if not wire_nvos.lists_file(await client.get(FILES), name):
                raise RefusedError(f"{client.origin} lists no image {name}; run `hostler rack bring-up` again")
            path, asked = f"{FILES}/{name}", {"@install": _start(force=True, **{"image-file": name})}
        else:
            path, asked = IMAGE, {"@fetch": _start(**{"remote-url": act.image})}
        memory.sent = self._clock()
        answer = await client.send("POST", path, asked)
        memory.action = wire_nvos.action_id(answer.body)
        return _outcome(operation, "unknown", f"asked for {name}, action {memory.action or 'without a number'}")

    async def _followed(self, client: RedfishClient, operation: Operation, seen: Outcome) -> Outcome:
        """How far an action is whose effect is not there yet."""
        memory, now = self._memory_of(operation), self._clock()
        since = memory.sent or operation.started
        facts, boots_next = seen.facts, seen.facts.get("next") in _act(operation).good
        doing = await self._action(client, memory.action)
        if doing is None:
            if boots_next and now < since + BOOTS:
                return _outcome(operation, "unknown", f"{seen.detail}; it restarts into {facts['next']}", facts)
            if now < since + LANDS or wire_nvos.running_actions(await client.get(ACTIONS)):
                return _outcome(operation, "unknown", f"{seen.detail}; it may take effect still", facts)
            result = "failed" if memory.action else "not_done"
            return _not_booted(operation, seen) if boots_next else _outcome(operation, result, seen.detail, facts)
        if doing.state == "running":
            return _outcome(operation, "unknown", f"{seen.detail}; {doing.detail or 'its action is under way'}", facts)
        memory.over = memory.over or now
        if doing.state == "failed" and not doing.handed_over:
            return _outcome(operation, "failed", f"{seen.detail}; its action failed: {doing.detail}", facts)
        if isinstance(operation.act, FetchSystemImage):
            listed = wire_nvos.lists_file(await client.get(FILES), _file(operation.act.image))
            told = f"{seen.detail}; its action says done, and the image is {'' if listed else 'not '}on the switch"
            return _outcome(operation, "done" if listed else "failed", told, facts)
        if now < memory.over + (BOOTS if boots_next or doing.handed_over else LANDS):
            return _outcome(operation, "unknown", f"{seen.detail}; the switch restarts by itself", facts)
        told = f"{seen.detail}; its action says {doing.state}, which the version contradicts"
        return _not_booted(operation, seen) if boots_next else _outcome(operation, "failed", told, facts)

    async def _action(self, client: RedfishClient, number: str) -> wire_nvos.NvosAction | None:
        """The action as NVOS has it, None where it has none of this number: a restart forgets them."""
        if not number:
            return None
        try:
            return wire_nvos.action(await client.get(f"{ACTIONS}/{number}"))
        except NotOfferedError:
            return None

    def _memory_of(self, operation: Operation) -> SentImage:
        memory = self._memories.setdefault(operation.id, SentImage())
        while len(self._memories) > MAX_REMEMBERED:
            self._memories.popitem(last=False)
        return memory


async def _check_serial(client: RedfishClient, node: Node) -> None:
    """Raises RefusedError unless NVOS runs on the tray that is recorded."""
    wanted, found = node.binding("serial"), wire_nvos.serial_number(await client.get(PLATFORM))
    if not wanted or found != wanted:
        raise RefusedError(
            f"binding mismatch: asset {node.id} is bound to serial {wanted or 'none'!r}, but NVOS at {client.origin} "
            f"shows {found or 'none'!r}; nothing was done. Correct the asset's nvos or serial binding"
        )


def _act(operation: Operation) -> FetchSystemImage | InstallSystemImage:
    act = operation.act
    if not isinstance(act, (FetchSystemImage, InstallSystemImage)):
        raise RefusedError(
            f"NVOS is asked for no operation {operation.kind!r}; run the same version of Hostler everywhere"
        )
    return act


def _file(image: str) -> str:
    """The image's name on the switch. Raises RefusedError for one that would not be a plain file's there."""
    name = image.rpartition("/")[2]
    if not _FILE.fullmatch(name):
        raise RefusedError(f"the image {image!r} ends with no plain file name; rename it to letters, digits, '.', '-'")
    return name


def _start(**parameters: object) -> dict[str, object]:
    return {"state": "start", "parameters": parameters}


def _not_booted(operation: Operation, seen: Outcome) -> Outcome:
    """The end of an installation that the switch has not booted in time; where a power cycle follows, that boots it."""
    act, told = operation.act, f"{seen.detail}; {seen.facts['next']} is installed and was not booted"
    if isinstance(act, InstallSystemImage) and act.activates:
        return _outcome(operation, "done", f"{told}: {act.activates.replace('_', ' ')} follows", seen.facts)
    again = "restart the switch (nv action reboot system), then begin the bring-up again"
    return _outcome(operation, "failed", f"{told}: {again}", seen.facts)


def _outcome(operation: Operation, result: str, detail: str, facts: Facts | None = None) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, facts or {}, attempt=operation.attempt)
