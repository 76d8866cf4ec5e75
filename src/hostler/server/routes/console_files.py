"""The console's files. They are read once at start: a path that is no file of it is unknown, whatever it spells."""

import hashlib
import re
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath
from msgspec import Struct

from hostler.server.problems import refuse

_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "json": "application/json",
}


_EDITION = re.compile("[0-9a-f]{16}")


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
    return _of(found.name, found.read_bytes())


def _of(name: str, body: bytes) -> ConsoleFile:
    return ConsoleFile(body, _TYPES[name.rpartition(".")[2]], f'"{hashlib.sha256(body).hexdigest()[:24]}"')


def edition_of(files: dict[str, ConsoleFile]) -> str:
    """Digest of all files together: modules name each other by relative paths, so all of them lie under one."""
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name} {file.etag}\n".encode())
    return digest.hexdigest()[:16]


def front_page(files: dict[str, ConsoleFile], edition: str) -> ConsoleFile:
    """The page that all addresses of the console open, with every module named ahead: none waits for its importer."""
    modules = "".join(
        f'<link rel="modulepreload" href="/console/{name}">\n' for name in sorted(files) if name.endswith(".js")
    )
    page = files["index.html"].body.decode().replace("</head>", f"{modules}</head>")
    return _of("index.html", page.replace('"/console/', f'"/console/{edition}/').encode())


FILES = _read()
EDITION = edition_of(FILES)
FRONT = front_page(FILES, EDITION)
FOREVER = "public, max-age=31536000, immutable"


def _send(request: Request[Any, Any, Any], file: ConsoleFile, caching: str = "no-cache") -> Response[bytes]:
    headers = {"ETag": file.etag, "Cache-Control": caching}
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
    "jobs",
    "parts",
    "pools",
    "racks",
    "fabrics",
    "events",
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
    return _send(request, FRONT)


@get("/console/{name:path}", include_in_schema=False)
async def page(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    """One file of the console: under this edition's name it never changes, under any other it is asked for each time.

    A page that another controller gave, before an upgrade or beside this one, names that one's edition: it gets the
    file that this one has.
    """
    plain = name.lstrip("/")
    edition, _, rest = plain.partition("/")
    file = FILES.get(rest if _EDITION.fullmatch(edition) else plain)
    if file is None:
        raise refuse(404, "unknown", "no such page", "the console is at /")
    return _send(request, file, FOREVER if edition == EDITION else "no-cache")


handlers = [front, page]
