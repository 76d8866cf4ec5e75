"""Photos and files over HTTP: judged by their bytes, kept by their digest, sent back so that no browser runs them."""

import asyncio
import re
from hashlib import sha256
from typing import Annotated

from litestar import Response
from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.client.answers import IntentView
from hostler.core.state.attached_files import FILE_BYTES_MOST, FILE_TYPES, AttachedFile
from hostler.core.state.verbs.facts import FileVerb
from hostler.journal.evidence_files import EvidenceFiles, media_type_of
from hostler.ports import JournalError
from hostler.server.acts import act_made
from hostler.server.app_state import AppState
from hostler.server.problems import refuse
from hostler.server.routes.intents import Caller, Key, Reason, RequestedIntent, submit

LARGEST_FILE = FILE_BYTES_MOST * 4 // 3 + 8_192
"""Bytes of a request that brings a file, which is written as base64 there."""

_UNSAFE = re.compile(r"[^\w. -]", re.ASCII)
_ONLY_KEPT = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""A file is kept by who asks for it: nothing in it is run, loaded or guessed."""


FILE_EXAMPLE = {
    "name": "done.txt",
    "content": "VGhlIGNhYmxlIG9mIHBvcnQgMyBpcyByZXBsYWNlZC4K",
    "reason": "the cable is replaced",
}


class FileBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A photo or file: how it is called, and its bytes as base64."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    content: bytes
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class Attachment(Struct, frozen=True):
    """Verb and target by which a file is attached, and further arguments of that verb."""

    kind: type[FileVerb]
    target: str
    more: dict[str, int] = {}


async def attach(app_state: AppState, caller: Caller, to: Attachment, data: FileBody) -> IntentView:
    """Attach the file by this verb, once its bytes are kept. Raises ProblemError."""
    kind = media_type_of(data.content)
    if not kind or not 0 < len(data.content) <= FILE_BYTES_MOST:
        what = f"{len(data.content):,} bytes{'' if kind else ' of a kind that is not taken'}"
        raise refuse(422, "malformed", what, f"send 1 to {FILE_BYTES_MOST:,} bytes of {', '.join(FILE_TYPES)}")
    safe = _UNSAFE.sub("_", data.name)[-100:].lstrip(". ") or "file"
    digest = sha256(data.content).hexdigest()
    file = {"digest": digest, "name": safe, "media_type": kind, "size": len(data.content)}
    wanted = RequestedIntent(act_made(to.kind, file | to.more), to.target, data.reason, key=data.key)
    view = await submit(app_state, caller, replace(wanted, dry_run=True, key=""))
    if data.dry_run or not view.granted:
        return view
    await asyncio.to_thread(_keep, app_state, data.content)
    return await submit(app_state, caller, wanted)


async def sent(app_state: AppState, file: AttachedFile) -> Response[bytes]:
    """The file as an answer that a browser saves, and never shows or runs by itself. Raises ProblemError."""
    data = await asyncio.to_thread(_read, app_state, file)
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"', **_ONLY_KEPT}
    return Response(data, media_type=file.media_type, headers=headers)


def _store(app_state: AppState) -> EvidenceFiles:
    found = app_state.outside.evidence
    if found is None:
        raise refuse(501, "unsupported", "this server keeps no files", "run it with --data")
    return found


def _keep(app_state: AppState, data: bytes) -> str:
    try:
        return _store(app_state).put(data)
    except JournalError as error:
        raise refuse(507, "full", str(error), "make room there, then send the file again") from error


def _read(app_state: AppState, file: AttachedFile) -> bytes:
    try:
        data = _store(app_state).get(file.digest)
    except JournalError as error:
        raise refuse(500, "damaged", str(error), "take it from a copy of the folder") from error
    if data is None:
        what = f"the bytes of {file.name} are not here"
        raise refuse(404, "unknown", what, "they lie with the controller that took them, in the folder evidence")
    return data
