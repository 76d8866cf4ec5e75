"""A twin of Vault's HTTP API: KV version 2 and the Kubernetes login as they are documented, bad answers too.

What it answers is from the API's documentation: statuses, shapes, and the errors' own words.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TOKEN, ROLE, JWT = "hvs.s3cr3t-token", "hostler", "eyJ.jwt.s3cr3t"


class VaultTwin:
    """`secrets` by "mount/path" (None: its latest version is deleted); `denied` are paths that no policy allows."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any] | None] = {}
        self.versions: Counter[str] = Counter()
        self.loses = False
        self.deletes = True
        self.denied: set[str] = set()
        self.tokens: set[str] = {TOKEN}
        self.lease_s = 3600
        self.mood = ""
        self.elsewhere = ""
        self.logins = 0
        self.asked: list[str] = []
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        match self.mood:
            case "sealed":
                return _errors(503, "Vault is sealed")
            case "slow":
                await asyncio.sleep(30)
            case "standby":
                return web.Response(status=307, headers={"Location": f"{self.elsewhere}{request.path}"})
            case "html":
                return web.Response(text="<html>s3cr3t proxy</html>", content_type="text/html")
            case "endless":
                return web.Response(body=b" " * (3 << 20))
            case "limited":
                return _errors(429, "request path rate limit quota exceeded")
        return await self._route(request)

    async def _route(self, request: web.BaseRequest) -> web.Response:
        if request.path == "/v1/auth/kubernetes/login":
            return await self._login(request)
        if request.headers.get("X-Vault-Token") not in self.tokens:
            return _errors(403, "permission denied")
        if request.method == "DELETE":
            return self._delete("/".join(request.path.removeprefix("/v1/").split("/metadata/", 1)))
        mount, _, path = request.path.removeprefix("/v1/").partition("/data/")
        if request.method == "POST":
            return self._write(f"{mount}/{path}", await request.json())
        return self._read(f"{mount}/{path}")

    def _write(self, name: str, asked: dict[str, Any]) -> web.Response:
        """Write the next version where "cas" is the number of the present one."""
        if name in self.denied:
            return _errors(403, "1 error occurred:\n\t* permission denied\n\n")
        if asked["options"]["cas"] != self._version(name):
            return _errors(400, "check-and-set parameter did not match the current version")
        self.versions[name] = self._version(name) + 1
        self.secrets[name] = asked["data"]
        if self.loses:
            return web.Response(status=502, text="bad gateway")
        return web.json_response({"data": {"version": self.versions[name], "destroyed": False}})

    def _delete(self, name: str) -> web.Response:
        """Metadata and all versions go; a policy for the data alone does not allow it."""
        if name in self.denied or not self.deletes:
            return _errors(403, "1 error occurred:\n\t* permission denied\n\n")
        self.secrets.pop(name, None)
        self.versions.pop(name, None)
        return web.Response(status=204)

    def _version(self, name: str) -> int:
        return max(self.versions[name], 1 if name in self.secrets else 0)

    async def _login(self, request: web.BaseRequest) -> web.Response:
        if await request.json() != {"role": ROLE, "jwt": JWT}:
            return _errors(403, "permission denied")
        self.logins += 1
        token = f"hvs.s3cr3t-login-{self.logins}"
        self.tokens.add(token)
        auth = {"client_token": token, "policies": ["hostler"], "lease_duration": self.lease_s, "renewable": True}
        return web.json_response({"request_id": "r", "lease_id": "", "data": None, "auth": auth})

    def _read(self, name: str) -> web.Response:
        if name in self.denied:
            return _errors(403, "1 error occurred:\n\t* permission denied\n\n")
        if name not in self.secrets:
            return _errors(404)
        fields = self.secrets[name]
        deleted = "" if fields else "2026-01-01T00:00:00Z"
        metadata = {"version": self._version(name), "destroyed": False, "deletion_time": deleted}
        body: dict[str, Any] = {"request_id": "r", "lease_id": "", "renewable": False, "lease_duration": 0}
        return web.json_response(
            {**body, "data": {"data": fields, "metadata": metadata}}, status=200 if fields else 404
        )


def _errors(status: int, *said: str) -> web.Response:
    return web.json_response({"errors": list(said)}, status=status)


@asynccontextmanager
async def vault_twin() -> AsyncIterator[VaultTwin]:
    """A running twin; `url` is where."""
    twin = VaultTwin()
    server = web.Server(twin.answer)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    twin.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield twin
    finally:
        await runner.cleanup()
