"""A twin of NetBox's REST API: devices and interfaces as its documentation shows them, in pages, bad answers too.

No NetBox can be had here (it needs PostgreSQL, Redis and Django). Field names, filters, the error's shape and the pages
are those of its REST API's documentation, version 4.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "0123456789abcdef0123456789abcdef01234567"


class NetboxTwin:
    """`devices` and `interfaces` as stored. `mood` is how it answers badly, "" for well."""

    def __init__(self) -> None:
        self.devices: list[dict[str, Any]] = []
        self.interfaces: list[dict[str, Any]] = []
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

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        """Status and body of a GET with a token that is known."""
        rows = {"/api/dcim/devices/": self.devices, "/api/dcim/interfaces/": self.interfaces}.get(path)
        if rows is None:
            return 404, {"detail": "Not found."}
        if "site" in query:
            rows = [row for row in rows if row["site"]["slug"] in query["site"]]
        if "device_id" in query:
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


@contextmanager
def netbox_twin() -> Iterator[NetboxTwin]:
    """A NetBox that listens while the block runs."""
    twin = NetboxTwin()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            twin.asked.append(self.path)
            twin.tokens.append(self.headers.get("Authorization", ""))
            parts = urlsplit(self.path)
            status, body = 403, {"detail": "Invalid token"}
            if twin.tokens[-1] == f"Token {TOKEN}":
                status, body = twin.answer(parts.path, parse_qs(parts.query))
            sent = json.dumps(body).encode()
            match twin.mood:
                case "html":
                    status, sent = 200, b"<html>a proxy</html>"
                case "error":
                    status, sent = 500, b'{"error": "boom"}'
                case "list":
                    status, sent = 200, b"[1, 2]"
                case "odd":
                    status, sent = 200, b'{"count": 1, "next": null, "results": [{"id": 1, "position": "top"}]}'
                case "large":
                    status, sent = 200, b'{"results": "' + b"x" * (33 << 20) + b'"}'
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("API-Version", "4.2")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

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
        server.shutdown()
        server.server_close()
        thread.join()
