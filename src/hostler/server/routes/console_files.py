"""The console's files. They are read once at start: a path that is no file of it is unknown, whatever it spells."""

import hashlib
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath
from msgspec import Struct

from hostler.server.problems import refuse

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}


class ConsoleFile(Struct, frozen=True):
    """A file of the console as it is sent."""

    body: bytes
    media_type: str
    etag: str


def _read() -> dict[str, ConsoleFile]:
    return {name: _file(found) for name, found in _walk(resources.files("hostler.server") / "console", "")}


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found.extend(_walk(entry, f"{prefix}{entry.name}/"))
        elif entry.name.rpartition(".")[2] in _TYPES:
            found.append((f"{prefix}{entry.name}", entry))
    return found


def _file(found: Traversable) -> ConsoleFile:
    body = found.read_bytes()
    return ConsoleFile(body, _TYPES[found.name.rpartition(".")[2]], f'"{hashlib.sha256(body).hexdigest()[:24]}"')


FILES = _read()


def _send(request: Request[Any, Any, Any], name: str) -> Response[bytes]:
    file = FILES.get(name)
    if file is None:
        raise refuse(404, "unknown", "no such page", "the console is at /")
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(b"", status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)


PAGES = (
    "nodes",
    "waiting",
    "tickets",
    "board",
    "approvals",
    "incidents",
    "parts",
    "pools",
    "fabrics",
    "flow",
    "bring-up",
    "returns",
    "trends",
    "maintenance",
    "policy",
    "audit",
)
"""First words of the console's own addresses: a link to one of its pages opens it, whoever follows the link."""


@get(["/", *(path for page in PAGES for path in (f"/{page}", f"/{page}/{{name:str}}"))], include_in_schema=False)
async def front(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The console, on whichever of its pages."""
    return _send(request, "index.html")


@get("/console/{name:path}", include_in_schema=False)
async def page(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    """One file of the console."""
    return _send(request, name.lstrip("/"))


handlers = [front, page]
