"""Talks to an Ironic over its REST API: one request each, bounded in time and size."""

import base64
from http import HTTPStatus

import aiohttp
import msgspec
from msgspec import Struct

from hostler.drivers.bounded_body import read_body
from hostler.drivers.ironic import wire
from hostler.drivers.ironic.keystone_tokens import KeystoneTokens
from hostler.ports import BusyTargetError, RefusedError, Secrets, UnreachableError

MICROVERSION = "1.81"
"""The API version that is asked for: node faults (1.42) and inventories (1.81) are in it, as of Ironic 21.3 (2023)."""
MOST_BYTES = 1024 * 1024
KEYSTONE_HEADER = "X-Auth-Token"


class IronicAccess(Struct, frozen=True, forbid_unknown_fields=True):
    """Address of an Ironic, and how it is entered: `secret` names a username and password, "" for none (noauth).

    `keystone` is the address of the Keystone (https://…/v3) to which the secret is shown instead, for a token.
    """

    url: str
    secret: str = ""
    timeout_s: float = 60.0
    keystone: str = ""


class IronicClient:
    """One Ironic. Every call raises only PortError."""

    def __init__(self, session: aiohttp.ClientSession, access: IronicAccess, secrets: Secrets) -> None:
        self._session = session
        self._access = access
        self._secrets = secrets
        self._tokens = KeystoneTokens(access.keystone, access.secret, secrets, access.timeout_s)

    async def node(self, name: str) -> wire.IronicNode:
        """The node of this name or UUID. Raises RefusedError where it has none."""
        return _node(await self._send("GET", f"/v1/nodes/{name}"))

    async def provision(self, name: str, target: str, body: dict[str, object] | None = None) -> None:
        """Ask for a provision state by its verb (manage, inspect, clean, provide, active …); it is reached later."""
        await self._send("PUT", f"/v1/nodes/{name}/states/provision", {"target": target, **(body or {})})

    async def write(self, name: str, place: str, value: object) -> None:
        """Write this into the node's record, as /extra/hostler or /instance_info."""
        await self._send("PATCH", f"/v1/nodes/{name}", [{"op": "add", "path": place, "value": value}])

    async def history(self, name: str) -> bytes:
        """The node's events, as Ironic keeps them; empty where it keeps none."""
        try:
            return await self._send("GET", f"/v1/nodes/{name}/history?detail=true")
        except RefusedError:
            return b""

    async def inventory(self, name: str) -> bytes:
        """The findings of the node's last inspection; empty where Ironic keeps none ([inventory] data_backend=none)."""
        try:
            return await self._send("GET", f"/v1/nodes/{name}/inventory")
        except RefusedError:
            return b""

    async def set_power(self, name: str, target: str) -> None:
        """Ask for power ("power on", "power off"); it lands later."""
        await self._send("PUT", f"/v1/nodes/{name}/states/power", {"target": target})

    async def set_boot_device(self, name: str, device: str) -> None:
        """Boot from this device the next time, and only then."""
        body = {"boot_device": device, "persistent": False}
        await self._send("PUT", f"/v1/nodes/{name}/management/boot_device", body)

    async def boot_device(self, name: str) -> tuple[str, bool | None]:
        """The boot device as Ironic reads it from the BMC."""
        return wire.boot_device(await self._send("GET", f"/v1/nodes/{name}/management/boot_device"))

    async def _send(self, method: str, path: str, body: object = None) -> bytes:
        entry = await self._entry()
        status, raw = await self._exchange(method, path, body, entry)
        if status == HTTPStatus.UNAUTHORIZED and self._access.keystone:  # a token may be revoked before it expires
            entry = {KEYSTONE_HEADER: await self._tokens.token(refused=entry[KEYSTONE_HEADER])}
            status, raw = await self._exchange(method, path, body, entry)
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise _error(status, raw)
        return raw

    async def _entry(self) -> dict[str, str]:
        """The header that enters Ironic, {} for none."""
        if self._access.keystone:
            return {KEYSTONE_HEADER: await self._tokens.token()}
        if not self._access.secret:
            return {}
        fields = (await self._secrets.read(self._access.secret)).fields
        login = f"{fields.get('username', '')}:{fields.get('password', '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}

    async def _exchange(self, method: str, path: str, body: object, entry: dict[str, str]) -> tuple[int, bytes]:
        """One request, sent once: its status and its answer. Raises UnreachableError."""
        headers = {"X-OpenStack-Ironic-API-Version": MICROVERSION, "Content-Type": "application/json", **entry}
        data = msgspec.json.encode(body) if body is not None else None
        url, limit = f"{self._access.url.rstrip('/')}{path}", aiohttp.ClientTimeout(self._access.timeout_s)
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=limit, allow_redirects=False
            ) as answer:
                raw = await read_body(answer, MOST_BYTES, "the answer of Ironic")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"Ironic does not answer: {type(error).__name__}; see that it runs") from error
        return answer.status, raw


def _node(raw: bytes) -> wire.IronicNode:
    try:
        return wire.node(raw)
    except wire.IronicWireError as error:
        raise RefusedError(f"{error}; is the address of ironic.json an Ironic's?") from error


def _error(status: int, raw: bytes) -> Exception:
    """An answer that is no success, as advice to the caller."""
    said = wire.fault_of(raw)
    match status:
        case HTTPStatus.CONFLICT:
            return BusyTargetError(f"Ironic has the node locked: {said}; it is asked again")
        case HTTPStatus.NOT_ACCEPTABLE:
            return RefusedError(f"Ironic does not speak API version {MICROVERSION}: {said}; upgrade Ironic")
        case HTTPStatus.NOT_FOUND:
            return RefusedError(f"Ironic knows no such node: {said}; register it there under the node's id")
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return RefusedError(f"Ironic lets us not in ({status}): correct the secret that ironic.json names")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnreachableError(f"Ironic answers {status}: {said}; it is asked again")
        case _:
            return RefusedError(f"Ironic refuses ({status}): {said}; correct the node there")
