"""Jira and ServiceNow on loopback: they answer as their documents say, and badly where a test says so.

Each keeps its tickets, checks what it is sent by its own rules, and shows in a search only what its index has.
"""

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import BodyPartReader, web

AUTH = {"jira": "Basic b3BzQGV4YW1wbGUub3JnOmppcmEtdG9rZW4=", "servicenow": "Basic aG9zdGxlcjpzbi1wYXNzd29yZA=="}
FIELDS = {
    "jira": {"email": "ops@example.org", "token": "jira-token"},
    "servicenow": {"username": "hostler", "password": "sn-password"},
}
PAGE = "<html><body>Sign in to continue</body></html>"


class Twin:
    """Holds faults, taken one by one by requests that change something (or by all, with "any:" before them)."""

    kind = ""

    def __init__(self) -> None:
        self.url = ""
        self.faults: deque[str] = deque()
        self.requests: list[tuple[str, str, Any]] = []
        self.indexed = True
        self.released = asyncio.Event()
        self._hidden: set[str] = set()

    def fault(self, request: web.Request) -> str:
        if not self.faults:
            return ""
        everything = self.faults[0].startswith("any:")
        if not everything and (request.method == "GET" or "search" in request.path):
            return ""
        return self.faults.popleft().removeprefix("any:")

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        bare = "attachment" in request.path and request.method == "POST"
        body = await request.json() if request.can_read_body and not bare else None
        self.requests.append((request.method, request.path, body))
        if request.headers.get("Authorization") != AUTH[self.kind]:
            return web.json_response({"errorMessages": ["who are you?"]}, status=401)
        fault = self.fault(request)
        answer: web.StreamResponse | None = await handler(request) if not fault or fault.endswith(" after") else None
        if fault == "hang after":
            await self.released.wait()
        return bad(fault) or answer or web.Response()


def bad(fault: str) -> web.StreamResponse | None:
    """The bad answer of this name, None for a good one."""
    match fault.removesuffix(" after"):
        case "" | "hang":
            return None
        case "429":
            return web.Response(status=429, headers={"Retry-After": "7"})
        case "500":
            return web.Response(status=500, text="oops")
        case "html":
            return web.Response(text=PAGE, content_type="text/html")
        case "403":
            return web.json_response(
                {"errorMessages": ["You do not have permission to create attachments"]}, status=403
            )
        case "413":
            return web.Response(status=413, text="<html>Request Entity Too Large</html>", content_type="text/html")
        case "400":
            return web.json_response({"errorMessages": [], "errors": {"issuetype": "no such type"}}, status=400)
        case other:
            raise AssertionError(other)


class JiraTwin(Twin):
    """Issues with a workflow of three states. `cloud`: search/jql alone, as Cloud has it; else search alone."""

    kind = "jira"

    def __init__(self, *, cloud: bool = True) -> None:
        super().__init__()
        self.cloud = cloud
        self.upload_limit = 10 << 20
        self.uploads_enabled = True
        self.issues: dict[str, dict[str, Any]] = {}
        self.dead_end = False

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.guard], client_max_size=64 << 20)
        app.router.add_post("/rest/api/2/search/jql" if self.cloud else "/rest/api/2/search", self._search)
        app.router.add_post("/rest/api/2/issue", self._create)
        app.router.add_post("/rest/api/2/issue/{id}/comment", self._comment)
        app.router.add_get("/rest/api/2/issue/{id}/transitions", self._transitions)
        app.router.add_post("/rest/api/2/issue/{id}/transitions", self._move)
        app.router.add_get("/rest/api/2/issue/{id}", self._get)
        app.router.add_get("/rest/api/2/attachment/meta", self._meta)
        app.router.add_post("/rest/api/2/issue/{id}/attachments", self._attach)
        return app

    def files(self, key: str) -> list[tuple[str, bytes]]:
        return list(self._by_key(key)["files"])

    async def _get(self, request: web.Request) -> web.Response:
        assert request.query["fields"] == "attachment"
        shown = [self._file(*one) for one in self._of(request)["files"]]
        return web.json_response({"id": request.match_info["id"], "fields": {"attachment": shown}})

    def _file(self, name: str, data: bytes) -> dict[str, Any]:
        return {"id": "1", "filename": name, "size": len(data), "mimeType": "application/zip"}

    async def _meta(self, _request: web.Request) -> web.Response:
        return web.json_response({"enabled": self.uploads_enabled, "uploadLimit": self.upload_limit})

    async def _attach(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Atlassian-Token") != "no-check":
            return web.Response(status=403, text="XSRF check failed")
        part = await (await request.multipart()).next()
        if not isinstance(part, BodyPartReader) or part.name != "file" or not part.filename:
            return web.json_response({"errorMessages": ["no file"]}, status=400)
        data = bytes(await part.read())
        if len(data) > self.upload_limit:
            return web.Response(status=413)
        self._of(request)["files"].append((part.filename, data))
        return web.json_response([self._file(part.filename, data)])

    def state(self, key: str) -> str:
        return str(self._by_key(key)["state"])

    def comments(self, key: str) -> list[str]:
        return list(self._by_key(key)["comments"])

    def names(self) -> list[str]:
        return [str(issue["key"]) for issue in self.issues.values()]

    def person_closes(self, key: str) -> None:
        self._by_key(key).update(state="done", resolution="Fixed")

    def person_opens(self, key: str) -> None:
        self._by_key(key).update(state="new", resolution="")

    def appear(self) -> None:
        self._hidden.clear()

    def _by_key(self, key: str) -> dict[str, Any]:
        return next(issue for issue in self.issues.values() if issue["key"] == key)

    async def _search(self, request: web.Request) -> web.Response:
        body = await request.json()
        found = re.fullmatch(r"labels in \((.*)\) ORDER BY created ASC", body["jql"])
        if found is None or not re.fullmatch(r'"[\w.-]+"(, "[\w.-]+")*', found[1]):
            return web.json_response({"errorMessages": [f"Error in the JQL Query: {body['jql']}"]}, status=400)
        labels = set(re.findall(r'"([\w.-]+)"', found[1]))
        shown = [i for i in self.issues.values() if labels & set(i["labels"]) and i["id"] not in self._hidden]
        return web.json_response({"isLast": True, "issues": [self._shown(issue) for issue in shown]})

    def _shown(self, issue: dict[str, Any]) -> dict[str, Any]:
        resolution = {"name": issue["resolution"]} if issue["resolution"] else None
        status = {"name": "whatever", "statusCategory": {"id": 2, "key": issue["state"], "name": "…"}}
        fields = {"labels": issue["labels"], "status": status, "resolution": resolution}
        return {"id": issue["id"], "key": issue["key"], "self": "…", "fields": fields}

    async def _create(self, request: web.Request) -> web.Response:
        fields = (await request.json())["fields"]
        problems = {}
        if fields["project"] != {"key": "OPS"}:
            problems["project"] = "valid project is required"
        if not fields["summary"] or "\n" in fields["summary"] or len(fields["summary"]) > 255:
            problems["summary"] = "The summary is invalid because it contains newline characters."
        if any(" " in label for label in fields["labels"]):
            problems["labels"] = "The label contains spaces which is invalid."
        if problems:
            return web.json_response({"errorMessages": [], "errors": problems}, status=400)
        number = str(10_000 + len(self.issues))
        issue = {
            "id": number,
            "key": f"OPS-{len(self.issues) + 1}",
            "state": "new",
            "resolution": "",
            "comments": [],
            "files": [],
        }
        self.issues[number] = {**issue, **fields}
        if not self.indexed:
            self._hidden.add(number)
        return web.json_response({"id": number, "key": issue["key"], "self": "…"}, status=201)

    async def _comment(self, request: web.Request) -> web.Response:
        self.issues[request.match_info["id"]]["comments"].append((await request.json())["body"])
        return web.json_response({"id": "1", "body": "…"}, status=201)

    def _offered(self, issue: dict[str, Any]) -> list[dict[str, Any]]:
        named = {"new": ("11", "To Do"), "indeterminate": ("21", "Start"), "done": ("31", "Done")}
        left = [state for state in named if state != issue["state"] and not (self.dead_end and state == "done")]
        return [
            {"id": named[state][0], "name": named[state][1], "to": {"statusCategory": {"key": state}}} for state in left
        ]

    async def _transitions(self, request: web.Request) -> web.Response:
        return web.json_response({"expand": "transitions", "transitions": self._offered(self._of(request))})

    async def _move(self, request: web.Request) -> web.Response:
        issue, wanted = self._of(request), (await request.json())["transition"]["id"]
        for one in self._offered(issue):
            if one["id"] == wanted:
                state = one["to"]["statusCategory"]["key"]
                issue.update(state=state, resolution="Done" if state == "done" else "")
                return web.Response(status=204)
        return web.json_response({"errorMessages": ["transition is not valid"]}, status=400)

    def _of(self, request: web.Request) -> dict[str, Any]:
        return self.issues[request.match_info["id"]]


class ServiceNowTwin(Twin):
    """Records of the table incident. `archives`: what a person closes there is final (7), not only resolved (6)."""

    kind = "servicenow"

    def __init__(self, *, archives: bool = False) -> None:
        super().__init__()
        self.archives = archives
        self.upload_limit = 10 << 20
        self.records: dict[str, dict[str, Any]] = {}

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.guard], client_max_size=64 << 20)
        app.router.add_get("/api/now/table/incident", self._query)
        app.router.add_post("/api/now/table/incident", self._create)
        app.router.add_patch("/api/now/table/incident/{id}", self._patch)
        app.router.add_get("/api/now/attachment", self._attached)
        app.router.add_post("/api/now/attachment/file", self._attach)
        return app

    def files(self, key: str) -> list[tuple[str, bytes]]:
        return list(self._by_key(key)["files"])

    def _file(self, name: str, data: bytes) -> dict[str, str]:
        return {"file_name": name, "size_bytes": str(len(data)), "sys_id": "f" * 32}

    async def _attached(self, request: web.Request) -> web.Response:
        asked = re.fullmatch(r"table_sys_id=([0-9a-f]{32})\^file_name=([\w.-]+)", request.query["sysparm_query"])
        assert asked is not None, request.query["sysparm_query"]
        shown = [self._file(*one) for one in self.records[asked[1]]["files"] if one[0] == asked[2]]
        return web.json_response({"result": shown})

    async def _attach(self, request: web.Request) -> web.Response:
        record = self.records.get(request.query["table_sys_id"])
        if record is None or request.query["table_name"] != "incident":
            return web.json_response({"error": {"message": "Invalid sys_id"}, "status": "failure"}, status=400)
        data = await request.read()
        if len(data) > self.upload_limit:
            return web.Response(status=413)
        record["files"].append((request.query["file_name"], data))
        return web.json_response({"result": self._file(request.query["file_name"], data)}, status=201)

    def state(self, key: str) -> str:
        return {"1": "new", "2": "indeterminate", "6": "done", "7": "done"}[self._by_key(key)["state"]]

    def comments(self, key: str) -> list[str]:
        return list(self._by_key(key)["notes"])

    def names(self) -> list[str]:
        return [str(record["number"]) for record in self.records.values()]

    def person_closes(self, key: str) -> None:
        self._by_key(key).update(state="7" if self.archives else "6", close_notes="Fixed")

    def person_opens(self, key: str) -> None:
        self._by_key(key).update(state="2")

    def appear(self) -> None:
        self._hidden.clear()

    def _by_key(self, key: str) -> dict[str, Any]:
        return next(record for record in self.records.values() if record["number"] == key)

    async def _query(self, request: web.Request) -> web.Response:
        found = re.fullmatch(r"correlation_idIN([\w.,-]+)\^ORDERBYsys_created_on", request.query["sysparm_query"])
        assert found is not None, request.query["sysparm_query"]
        wanted, names = found[1].split(","), request.query["sysparm_fields"].split(",")
        shown = [r for r in self.records.values() if r["correlation_id"] in wanted and r["sys_id"] not in self._hidden]
        return web.json_response({"result": [{name: record[name] for name in names} for record in shown]})

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        if len(body["short_description"]) > 160 or not body["correlation_id"]:
            return web.json_response({"error": {"message": "invalid"}, "status": "failure"}, status=400)
        ident = f"{len(self.records):032x}"
        record = {"sys_id": ident, "number": f"INC{len(self.records) + 1:07d}", "state": "1", "close_notes": ""}
        self.records[ident] = {**record, "notes": [], "files": [], **body}
        if not self.indexed:
            self._hidden.add(ident)
        return web.json_response({"result": record}, status=201)

    async def _patch(self, request: web.Request) -> web.Response:
        record, body = self.records.get(request.match_info["id"]), await request.json()
        if record is None:
            return web.json_response({"error": {"message": "No Record found"}, "status": "failure"}, status=404)
        if body.get("state") == "6" and not (body.get("close_code") and body.get("close_notes")):
            return web.json_response({"error": {"message": "Data Policy Exception"}, "status": "failure"}, status=403)
        if "work_notes" in body:
            record["notes"].append(body.pop("work_notes"))
        record.update(body)
        return web.json_response({"result": {"sys_id": record["sys_id"], "number": record["number"]}})


@asynccontextmanager
async def serving(twin: Twin) -> AsyncIterator[Any]:
    """The twin on a free port of loopback."""
    runner = web.AppRunner(twin.app(), shutdown_timeout=0.1)  # type: ignore[attr-defined]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    twin.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield twin
    finally:
        twin.released.set()
        await runner.cleanup()


def text_of(twin: Twin) -> str:
    """Text of all that was sent."""
    return json.dumps(twin.requests)
