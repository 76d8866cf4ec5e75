"""Tests of networks by hand: their results, and the photos and files that belong to a run."""

import asyncio
import re
from hashlib import sha256
from typing import Annotated

from litestar import Router, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from hostler.core.fabric.manual_results import read
from hostler.core.intents.ask import REASON_MAX
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.manual_tests import FILE_BYTES_MOST, FILE_TYPES, ManualFile
from hostler.core.state.verbs.facts import Permission
from hostler.journal.evidence_files import EvidenceFiles, media_type_of
from hostler.ports import JournalError
from hostler.server.api_resources import IntentView
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.dependencies import TheAppState
from hostler.server.problems import invalid, refuse, unknown
from hostler.server.routes.fabrics import fabric_named
from hostler.server.routes.intents import RequestedIntent, TheCaller, submit

LARGEST_FILE = FILE_BYTES_MOST * 4 // 3 + 8_192
"""Bytes of a request that brings a file, which is written as base64 there."""

_UNSAFE = re.compile(r"[^\w. -]", re.ASCII)

Reason = Annotated[str, Meta(min_length=1, max_length=REASON_MAX)]
Key = Annotated[str, Meta(max_length=100)]


class ResultsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Results of a test by hand, as lines `metric,value`, and notes."""

    results: Annotated[str, Meta(max_length=200_000)]
    reason: Reason
    notes: Annotated[str, Meta(max_length=4_000)] = ""
    dry_run: bool = False
    key: Key = ""


class FileBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A photo or file: how it is called, and its bytes as base64."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    content: bytes
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class FileContent(Struct, frozen=True):
    """A kept photo or file, its bytes as base64."""

    name: str
    media_type: str
    content: bytes


@post("/fabrics/{name:str}/manual-test", guards=[needs(Permission.work)], status_code=200)
async def post_manual_test(
    app_state: TheAppState, caller: TheCaller, name: FromPath[str], data: JSONBody[ResultsBody]
) -> IntentView:
    """Enter the results of a test by hand; they are set against those of earlier runs."""
    try:
        read(data.results)  # the loop reads it again; a refusal there names no lines
    except InvalidInputError as error:
        raise invalid(error) from error
    args = {"results": data.results, "notes": data.notes}
    asked = RequestedIntent("enter-manual-test", name, data.reason, args, data.dry_run, data.key)
    return await submit(app_state, caller, asked)


@post(
    "/fabrics/{name:str}/manual-test/files",
    guards=[needs(Permission.work)],
    request_max_body_size=LARGEST_FILE,
    status_code=200,
)
async def post_manual_test_file(
    app_state: TheAppState, caller: TheCaller, name: FromPath[str], data: JSONBody[FileBody]
) -> IntentView:
    """Add a photo or file to the run of a test by hand that is under way: JPEG, PNG, WebP, PDF or text, up to 8 MiB."""
    kind = media_type_of(data.content)
    if not kind or not 0 < len(data.content) <= FILE_BYTES_MOST:
        what = (
            f"{len(data.content):,} bytes of a kind that is not taken" if not kind else f"{len(data.content):,} bytes"
        )
        raise refuse(422, "malformed", what, f"send 1 to {FILE_BYTES_MOST:,} bytes of {', '.join(FILE_TYPES)}")
    safe = _UNSAFE.sub("_", data.name)[-100:].lstrip(". ") or "file"
    digest = sha256(data.content).hexdigest()
    args = {"digest": digest, "name": safe, "media_type": kind, "size": str(len(data.content))}
    tried = RequestedIntent("add-manual-test-file", name, data.reason, args, dry_run=True)
    view = await submit(app_state, caller, tried)
    if data.dry_run or not view.granted:
        return view
    await asyncio.to_thread(_kept, app_state, data.content)
    return await submit(
        app_state, caller, RequestedIntent("add-manual-test-file", name, data.reason, args, key=data.key)
    )


@get("/fabrics/{name:str}/manual-test/files/{digest:str}", guards=[needs(Permission.see_cell)])
async def get_manual_test_file(app_state: TheAppState, name: FromPath[str], digest: FromPath[str]) -> FileContent:
    """A photo or file of a network's test by hand, by its SHA-256, as base64: no browser shows it by itself."""
    fabric = fabric_named(app_state, name)
    test = app_state.fleet.manual_tests.get(fabric.name)
    runs = test.runs if test is not None else ()
    named = (*(test.files if test is not None else ()), *(file for run in runs for file in run.files))
    file = next((one for one in named if one.digest == digest), None)
    if file is None:
        raise unknown("file", digest)
    data = await asyncio.to_thread(_read, app_state, file)
    return FileContent(file.name, file.media_type, data)


def _store(app_state: AppState) -> EvidenceFiles:
    found = app_state.outside.evidence
    if found is None:
        raise refuse(501, "unsupported", "this server keeps no files", "run it with --data")
    return found


def _kept(app_state: AppState, data: bytes) -> str:
    try:
        return _store(app_state).put(data)
    except JournalError as error:
        raise refuse(507, "full", str(error), "make room there, then send the file again") from error


def _read(app_state: AppState, file: ManualFile) -> bytes:
    try:
        data = _store(app_state).get(file.digest)
    except JournalError as error:
        raise refuse(500, "damaged", str(error), "take it from a copy of the folder") from error
    if data is None:
        what = f"the bytes of {file.name} are not here"
        raise refuse(404, "unknown", what, "they lie with the controller that took them, in the folder evidence")
    return data


router = Router(
    path="/",
    route_handlers=[post_manual_test, post_manual_test_file, get_manual_test_file],
    tags=["networks"],
)
