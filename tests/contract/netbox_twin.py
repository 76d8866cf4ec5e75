"""A twin of NetBox's REST API: devices and interfaces as its documentation shows them, in pages, bad answers too.

No NetBox can be had here (it needs PostgreSQL, Redis and Django). Field names, filters, the error's shape and the pages
are those of its REST API's documentation, version 4.
"""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

_PDUS = {"id": 9, "display": "power", "name": "Power", "slug": "power"}
_ENTRIES = "/api/extras/journal-entries/"
TOKEN = "0123456789abcdef0123456789abcdef01234567"


class NetboxTwin:
    """`devices`, their components and journal `entries` as stored. `mood` is how it answers badly, "" for well.

    `faults` are taken one by one by whatever writes, or by all with "any:" before them. `shows_entries` false: what is
    written shows later, as its transaction has not ended. `knows_filters` false: a filter is passed over. `forbidden`
    paths are those that the token may not read.
    """

    def __init__(self) -> None:
        self.devices: list[dict[str, Any]] = []
        self.interfaces: list[dict[str, Any]] = []
        self.power_ports: list[dict[str, Any]] = []
        self.power_outlets: list[dict[str, Any]] = []
        self.device_bays: list[dict[str, Any]] = []
        self.entries: list[dict[str, Any]] = []
        self.faults: deque[str] = deque()
        self.shows_entries = True
        self.knows_filters = True
        self.released = Event()
        self.forbidden: set[str] = set()
        self.mood = ""
        self.elsewhere = ""
        self.asked: list[str] = []
        self.tokens: list[str] = []
        self.url = ""

    def add(self, name: str, serial: str, macs: list[str], **more: Any) -> dict[str, Any]:
        """A device with an interface for each MAC address, and its BMC's own port."""
        number = len(self.devices) + 1
        device = {
            "id": number,
            "url": f"{self.url}/api/dcim/devices/{number}/",
            "display": name,
            "name": name,
            "serial": serial,
            "device_type": {"id": 3, "display": "H100", "model": "H100", "slug": "h100"},
            "role": {"id": 1, "display": "GPU server", "name": "GPU server", "slug": "gpu-server"},
            "site": {"id": 1, "display": "hall-1", "name": "Hall 1", "slug": "hall-1"},
            "rack": {"id": 7, "display": "r7", "name": "r7"},
            "position": 12.0,
            "status": {"value": "planned", "label": "Planned"},
            "oob_ip": {"id": 5, "display": "10.20.0.7/16", "family": {"value": 4}, "address": f"10.20.0.{number}/16"},
            "custom_fields": {},
            "tags": [],
            **more,
        }
        self.devices.append(device)
        for count, mac in enumerate(macs):
            self._port(device, f"eth{count}", mac, mgmt_only=False)
        self._port(device, "bmc", f"AA:BB:CC:00:00:{number:02X}", mgmt_only=True)
        return device

    def _port(self, device: dict[str, Any], name: str, mac: str, *, mgmt_only: bool) -> None:
        self.interfaces.append(
            {
                "id": len(self.interfaces) + 1,
                "device": {"id": device["id"], "display": device["name"], "name": device["name"]},
                "name": name,
                "type": {"value": "25gbase-x-sfp28", "label": "SFP28 (25GE)"},
                "enabled": True,
                "mgmt_only": mgmt_only,
                "mac_address": mac.upper(),
                "tags": [],
            }
        )

    def add_pdu(self, name: str, address: str, **fields: str) -> dict[str, Any]:
        """A PDU with a primary address and these custom fields."""
        ip = {"id": 90, "address": address, "family": {"value": 4}} if address else None
        pdu = self.add(name, "", [], oob_ip=None, primary_ip=ip, custom_fields={**fields}, site=_PDUS)
        self.interfaces.pop()
        return pdu

    def feed(self, device: dict[str, Any], port: str, pdu: dict[str, Any], outlet: str, **more: Any) -> dict[str, Any]:
        """A power port of the device that is cabled to an outlet of the PDU, and that outlet."""
        made = self._component(self.power_outlets, "power-outlets", pdu, outlet)
        self.power_port(device, port, connected_endpoints=[made], connected_endpoints_type="dcim.poweroutlet", **more)
        self.power_outlets[-1] = made | {"custom_fields": {}, "cable": {"id": 1}, "feed_leg": None}
        return self.power_outlets[-1]

    def power_port(self, device: dict[str, Any], name: str, **more: Any) -> None:
        """A power supply's inlet, as PowerPortSerializer shows it; without cable where nothing else is said."""
        reachable = bool(more.get("connected_endpoints"))
        bare = {"mark_connected": False, "connected_endpoints": None, "connected_endpoints_type": None}
        self._component(self.power_ports, "power-ports", device, name)
        self.power_ports[-1] |= {**bare, "connected_endpoints_reachable": reachable, "custom_fields": {}, **more}

    def install(self, device: dict[str, Any], bay: str, child: dict[str, Any] | None) -> None:
        """A device bay, and what is installed in it."""
        self._component(self.device_bays, "device-bays", device, bay)
        nested = {key: child[key] for key in ("id", "url", "display", "name")} if child else None
        self.device_bays[-1] |= {"installed_device": nested, "custom_fields": {}}

    def _component(self, rows: list[dict[str, Any]], kind: str, device: dict[str, Any], name: str) -> dict[str, Any]:
        nested = {key: device[key] for key in ("id", "url", "display", "name")}
        number = len(rows) + 1
        url = f"{self.url}/api/dcim/{kind}/{number}/"
        rows.append({"id": number, "url": url, "display": name, "device": nested, "name": name})
        return rows[-1]

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        """Status and body of a GET with a token that is known."""
        kinds = {
            "/api/dcim/devices/": self.devices,
            "/api/dcim/interfaces/": self.interfaces,
            "/api/dcim/power-ports/": self.power_ports,
            "/api/dcim/power-outlets/": self.power_outlets,
            "/api/dcim/device-bays/": self.device_bays,
        }
        if path in self.forbidden:
            return 403, {"detail": "You do not have permission to perform this action."}
        rows = {**kinds, _ENTRIES: self.entries if self.shows_entries else []}.get(path)
        if rows is None:
            return 404, {"detail": "Not found."}
        if "site" in query:
            rows = [row for row in rows if row["site"]["slug"] in query["site"]]
        for name in ("serial", "name") if self.knows_filters and rows is self.devices else ():
            if name in query:
                rows = [row for row in rows if str(row[name]).lower() == query[name][0].lower()]
        if "q" in query and self.knows_filters:
            rows = [row for row in rows if query["q"][0].lower() in row["comments"].lower()]
        if "id" in query and self.knows_filters:
            rows = [row for row in rows if str(row["id"]) in query["id"]]
        if "device_id" in query and self.knows_filters:
            rows = [row for row in rows if str(row["device"]["id"]) in query["device_id"]]
        limit, offset = int(query.get("limit", ["50"])[0]), int(query.get("offset", ["0"])[0])
        limit = min(limit, 2)  # a server may cap its pages (MAX_PAGE_SIZE)
        more = offset + limit < len(rows)
        origin = self.elsewhere or self.url
        after = f"{origin}{path}?limit={limit}&offset={offset + limit}" + "".join(
            f"&{key}={value}" for key, values in query.items() if key not in ("limit", "offset") for value in values
        )
        found = rows[offset : offset + limit]
        return 200, {"count": len(rows), "next": after if more else None, "previous": None, "results": found}

    def write(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and body of a POST with a token that is known; the fields are NetBox's own JournalEntry."""
        if path != _ENTRIES:
            return 405, {"detail": 'Method "POST" not allowed.'}
        assert body["assigned_object_type"] == "dcim.device"
        if not any(one["id"] == body["assigned_object_id"] for one in self.devices):
            return 400, {"assigned_object_id": [f"Invalid object: dcim.device ID {body['assigned_object_id']}"]}
        if body["kind"] not in ("info", "success", "warning", "danger"):
            return 400, {"kind": [f'"{body["kind"]}" is not a valid choice.']}
        number = len(self.entries) + 1
        entry = {"id": number, "url": f"{self.url}{_ENTRIES}{number}/", "tags": [], "custom_fields": {}, **body}
        self.entries.append(entry)
        return 201, entry | {"kind": {"value": body["kind"], "label": body["kind"].title()}}

    def fault(self, method: str) -> str:
        """The next fault, where this request takes it."""
        if not self.faults or (method == "GET" and not self.faults[0].startswith("any:")):
            return ""
        return self.faults.popleft().removeprefix("any:")


def _bad(fault: str) -> tuple[int, dict[str, str], bytes] | None:
    """Status, headers and body of a bad answer."""
    return {
        "429": (429, {"Retry-After": "7"}, b'{"detail": "Request was throttled."}'),
        "500": (500, {}, b'{"error": "boom", "exception": "DatabaseError"}'),
        "400": (400, {}, b'{"comments": ["This field may not be blank."]}'),
        "403": (403, {}, b'{"detail": "You do not have permission to perform this action."}'),
        "html": (200, {}, b"<html>Sign in to continue</html>"),
        "another": (201, {}, b'{"id": 9, "comments": "of somebody else"}'),
        "elsewhere": (302, {"Location": "/login/"}, b""),
    }.get(fault.removesuffix(" after"))


_MOODS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "html": (200, {}, b"<html>a proxy</html>"),
    "error": (500, {}, b'{"error": "boom"}'),
    "list": (200, {}, b"[1, 2]"),
    "odd": (200, {}, b'{"count": 1, "next": null, "results": [{"id": 1, "position": "top"}]}'),
    "large": (200, {}, b'{"results": "' + b"x" * (33 << 20) + b'"}'),
}
"""Answers to everything, by the twin's mood."""


@contextmanager
def netbox_twin() -> Iterator[NetboxTwin]:
    """A NetBox that listens while the block runs."""
    twin = NetboxTwin()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            posted = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            twin.asked.append(self.path)
            twin.tokens.append(self.headers.get("Authorization", ""))
            status, more, sent = self.answered(posted)
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("API-Version", "4.2")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(sent)

        def answered(self, posted: bytes) -> tuple[int, dict[str, str], bytes]:
            """Status, headers and body."""
            if twin.tokens[-1] != f"Token {TOKEN}":
                return 403, {}, b'{"detail": "Invalid token"}'
            parts, fault = urlsplit(self.path), twin.fault(self.command)
            status, body = 500, dict[str, Any]()
            if self.command == "GET":
                status, body = twin.answer(parts.path, parse_qs(parts.query))
            elif not fault or fault.endswith(" after"):
                status, body = twin.write(parts.path, json.loads(posted))
            if fault.startswith("hang"):
                twin.released.wait(30)
            return _bad(fault) or _MOODS.get(twin.mood) or (status, {}, json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    twin.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield twin
    finally:
        twin.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
