#!/usr/bin/env python3
"""A provider service for Hostler: answers the provider contract, version 1, by running a site's own commands.

Needs Python 3.11 and nothing else. `provider_service.py SETTINGS.json` serves until it is stopped; put TLS before it.
The contract is docs/provider-contract.md. Each request is carried out once: what was asked for is written to a file
of SQLite before its command starts.
"""

import base64
import hashlib
import hmac
import json
import sqlite3
import subprocess
import sys
import threading
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONTRACT = 1
TOLERANCE_S = 300
BODY_MOST = 64 * 1024
WAIT_S = 5.0  # how long an answer waits for its command; `status` tells what became of a longer one
ACTS = ("power_on", "power_off", "reboot", "replace")
REFUSED = 3  # the exit status by which a command says that it has done nothing, and will not


class Requests:
    """What was asked for and what became of it, on disk: a request that comes twice is carried out once."""

    def __init__(self, file: str) -> None:
        self.lock = threading.Lock()
        self.store = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self.store.execute("pragma journal_mode=wal")
        self.store.execute("pragma synchronous=full")
        self.store.execute(
            "create table if not exists requests (id text primary key, action text, state text, detail text, new text)"
        )

    def begin(self, request: str, action: str) -> bool:
        """Note the request; False where it was begun before."""
        with self.lock:
            added = self.store.execute(
                "insert or ignore into requests values (?, ?, 'running', '', '')", (request, action)
            )
            return added.rowcount == 1

    def end(self, request: str, state: str, detail: str, new: str) -> None:
        with self.lock:
            self.store.execute(
                "update requests set state = ?, detail = ?, new = ? where id = ?", (state, detail, new, request)
            )

    def answer(self, request: str) -> dict[str, object]:
        with self.lock:
            found = self.store.execute("select state, detail, new from requests where id = ?", (request,)).fetchone()
        if found is None:
            return {"state": "unknown", "detail": "this request never came here"}
        state, detail, new = found
        return {"state": state, "detail": detail, **({"replacement": json.loads(new)} if new else {})}


class Service:
    """The commands of a site, and what is asked of them."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.commands: dict[str, list[str]] = settings["commands"]
        self.timeout_s = float(settings.get("timeout_s", 600))
        self.wait_s = float(settings.get("wait_s", WAIT_S))
        text = str(settings["key"])
        self.key = base64.b64decode(text.removeprefix("whsec_")) if text.startswith("whsec_") else text.encode()
        self.requests = Requests(str(settings.get("file", "requests.db")))

    def is_signed(self, headers: Message, body: bytes) -> bool:
        """Whether the body comes from who has the key, and was signed within the last five minutes."""
        moment, identity = headers.get("webhook-timestamp", ""), headers.get("webhook-id", "")
        if not moment.isdecimal() or abs(time.time() - int(moment)) > TOLERANCE_S:
            return False
        signed = hmac.digest(self.key, f"{identity}.{moment}.".encode() + body, hashlib.sha256)
        wanted = f"v1,{base64.b64encode(signed).decode()}"
        return any(hmac.compare_digest(wanted, one) for one in headers.get("webhook-signature", "").split())

    def answer(self, asked: dict[str, Any]) -> dict[str, object]:
        """Answer one request of the contract."""
        if asked.get("version") != CONTRACT:
            return {"state": "refused", "detail": f"this service speaks version {CONTRACT} of the contract"}
        action, request = asked.get("action", ""), asked.get("request", "")
        if action == "notices":
            return {"notices": json.loads(self.run("notices", asked).stdout or "[]")}
        if action in ACTS and request:
            self.carry_out(action, request, asked)
        elif action not in ("status", "describe"):
            return {"state": "refused", "detail": f"no action {action!r} with request {request!r}"}
        told = self.requests.answer(request) if request else {"state": "done"}
        return {**told, "power": self.power(asked)}

    def carry_out(self, action: str, request: str, asked: dict[str, Any]) -> None:
        if not self.requests.begin(request, action):
            return
        work = threading.Thread(target=self.work, args=(action, request, asked), daemon=True)
        work.start()
        work.join(self.wait_s)

    def work(self, action: str, request: str, asked: dict[str, Any]) -> None:
        if action not in self.commands:
            return self.requests.end(request, "refused", f"this service has no command for {action}", "")
        try:
            ran = self.run(action, asked)
            new = json.dumps(json.loads(ran.stdout)) if action == "replace" and ran.returncode == 0 else ""
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            return self.requests.end(request, "failed", f"{action}: {error}", "")
        state = {0: "done", REFUSED: "refused"}.get(ran.returncode, "failed")
        return self.requests.end(request, state, ran.stderr.decode(errors="replace").strip()[-300:], new)

    def power(self, asked: dict[str, Any]) -> str:
        """The instance's power as the command shows it, "" where it shows none."""
        if not asked.get("instance") or "power" not in self.commands:
            return ""
        try:
            said = self.run("power", asked).stdout.decode(errors="replace").strip().lower()
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return said if said in ("on", "off") else ""

    def run(self, name: str, asked: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
        """Run a command without a shell; "{instance}" and "{node}" stand for what the request names."""
        named = {"{instance}": asked.get("instance", ""), "{node}": asked.get("node", "")}
        if any(value.startswith("-") for value in named.values()):
            raise ValueError("a name that begins with '-' would be an option of the command")
        vector = [named.get(word, word) for word in self.commands.get(name, [])]
        if not vector:
            return subprocess.CompletedProcess([], 0, b"", b"")
        return subprocess.run(vector, capture_output=True, timeout=self.timeout_s, check=False)


def handler_of(service: Service) -> type[BaseHTTPRequestHandler]:
    """The HTTP side: size, signature, JSON; everything else is the service's."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            if not 0 < length <= BODY_MOST:
                return self.reply(413, {"detail": f"a body has 1 to {BODY_MOST} bytes"})
            body = self.rfile.read(length)
            if not service.is_signed(self.headers, body):
                return self.reply(401, {"detail": "the signature or its moment is wrong"})
            try:
                return self.reply(200, service.answer(json.loads(body)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return self.reply(400, {"detail": f"not a request of the contract: {error}"})

        def reply(self, status: int, told: dict[str, object]) -> None:
            body = json.dumps({"version": CONTRACT, **told}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    """Serve until it is stopped."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    place = (settings.get("host", "127.0.0.1"), settings.get("port", 8088))
    server = ThreadingHTTPServer(place, handler_of(Service(settings)))
    print(f"provider service at {place[0]}:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
