"""An emulated switch tray's own system (NVOS) over HTTP: images, actions and restarts, and the ways in which it lies.

Shapes as in NVIDIA's NVOS manual and its open clients (`drivers/redfish/wire_nvos`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

FETCH, INSTALL, RESTART = timedelta(seconds=90), timedelta(seconds=180), timedelta(seconds=300)
"""How long each takes."""
LINGERS = timedelta(seconds=45)
"""So long after an installation it still answers, and says how that ended."""
LIES = (
    "", "fetch fails", "fetch leaves no file", "install fails", "success changes nothing", "installed, never booted",
    "ends as an error and restarts", "actions are forgotten", "no number", "answer is lost",
)  # fmt: skip


@dataclass
class NvosSwitch:
    """One switch. `library` is what its URLs hold: file → build id. `lie` is one of LIES.

    `layout`: "object" partitions by number, "text" partitions by name, or "build" with build ids alone.
    """

    clock: Callable[[], datetime]
    serial: str = "TR-1"
    runs: str = "nvos-25.02.1884"
    library: dict[str, str] = field(default_factory=dict)
    lie: str = ""
    layout: str = "object"
    garbage: bool = False
    manager: dict[str, str] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    next: str = ""
    _actions: dict[str, tuple[str, str, datetime]] = field(default_factory=dict)
    _back: datetime | None = None
    _numbers: int = 0

    def _settle(self) -> None:
        """Let happen what was due."""
        now = self.clock()
        for number, (kind, name, due) in list(self._actions.items()):
            if due <= now and kind in ("fetch", "install"):
                self._actions[number] = (f"{kind} over", name, due)
                self._land(kind, name, due)
        if self._back is not None and self._back <= now:
            self._back = None
            if self.lie != "installed, never booted":
                self.runs = self.next or self.runs
            if self.lie == "actions are forgotten":
                self._actions.clear()

    def _land(self, kind: str, name: str, due: datetime) -> None:
        if kind == "fetch" and self.lie not in ("fetch fails", "fetch leaves no file"):
            self.files.add(name)
        if kind == "install" and self.lie not in ("install fails", "success changes nothing"):
            self.next = self.library.get(name, "")
            self._back = due + RESTART if self.lie != "installed, never booted" else None

    def next_due(self) -> datetime | None:
        """When something changes next."""
        moments = [due for kind, _, due in self._actions.values() if kind in ("fetch", "install")]
        return min((*moments, *((self._back,) if self._back else ())), default=None)

    def app(self) -> web.Application:
        """REST API of the switch."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._settle()
        if self._back is not None and self._back - RESTART + LINGERS <= self.clock() < self._back:
            assert request.transport is not None, "a connection is there"
            request.transport.abort()  # it restarts
            raise web.HTTPServiceUnavailable
        path = request.path.removeprefix("/nvue_v1")
        if request.method == "POST":
            return self._begun(path, await request.json(), request)
        if self.garbage:
            return web.Response(text="<html>nginx</html>")
        pages: dict[str, Any] = {
            "/platform": {"product-name": "N5110_LD", "serial-number": self.serial},
            "/system/image": self._images(),
            "/system/image/files": {name: {"path": f"/host/nos-images/{name}"} for name in sorted(self.files)},
            "/cluster/apps/nmx-controller": self.manager or None,
            "/action": {number: self._told(number) for number in self._actions},
            **{f"/action/{number}": self._told(number) for number in self._actions},
        }
        page = pages.get(path)
        return web.json_response(page) if page is not None else web.json_response({"title": "not found"}, status=404)

    def _images(self) -> dict[str, Any]:
        after = self.next or self.runs
        if self.layout == "build":
            return {"current": self.runs, "next": after}
        chosen = "2" if after != self.runs else "1"
        if self.layout == "text":
            return {"current": "partition1", "next": f"partition{chosen}", "partition1": self.runs, "partition2": after}
        both = {"partition1": {"build-id": self.runs}, "partition2": {"build-id": after}}
        return {"current": "1", "next": chosen, **both}

    def _begun(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        self._numbers += 1
        number = str(self._numbers)
        if path == "/system/image" and "@fetch" in body:
            name, kind, takes = body["@fetch"]["parameters"]["remote-url"].rpartition("/")[2], "fetch", FETCH
        elif path.startswith("/system/image/files/") and body.get("@install", {}).get("parameters", {}).get("force"):
            name, kind, takes = path.rpartition("/")[2], "install", INSTALL
            if name not in self.files:
                return web.json_response({"title": "no such file"}, status=404)
        else:
            return web.json_response({"title": f"no action: {json.dumps(body)}"}, status=400)
        self.asked.append(f"{kind} {name}")
        self._actions[number] = (kind, name, self.clock() + takes)
        if self.lie == "answer is lost":
            assert request.transport is not None, "a connection is there"
            request.transport.abort()
            raise web.HTTPServiceUnavailable
        return web.json_response({} if self.lie == "no number" else number, status=201)

    def _told(self, number: str) -> dict[str, Any]:
        kind, name, _ = self._actions[number]
        if kind in ("fetch", "install"):
            return {"state": "running", "status": f"{kind}ing {name}", "percentage": 40, "issue": []}
        failed = {"fetch over": "fetch fails", "install over": "install fails"}[kind]
        if self.lie == failed:
            return {"state": "action_error", "percentage": 40, "issue": [{"message": "Failed to verify the image"}]}
        if self.lie == "ends as an error and restarts" and kind == "install over":
            return {"state": "action_error", "percentage": 100, "status": "Installing image", "issue": []}
        return {"state": "action_success", "status": "Action succeeded", "percentage": 100, "issue": []}
