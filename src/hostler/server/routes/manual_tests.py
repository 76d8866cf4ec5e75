"""Tests of networks by hand: their results, and the photos and files that belong to a run."""

from typing import Annotated

from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from hostler.client.answers import IntentView
from hostler.core.fabric.manual_results import read
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.verbs.fabrics import AddManualTestFile, EnterManualTest
from hostler.core.state.verbs.facts import Permission
from hostler.server.auth import SEE_CELL, needs
from hostler.server.dependencies import TheAppState
from hostler.server.problems import invalid, unknown
from hostler.server.routes.attached_files import FILE_EXAMPLE, LARGEST_FILE, Attachment, FileBody, attach, sent
from hostler.server.routes.fabrics import fabric_named
from hostler.server.routes.intents import Key, Reason, RequestedIntent, TheCaller, submit


class ResultsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Results of a test by hand, as lines `metric,value`, and notes."""

    results: Annotated[str, Meta(max_length=200_000)]
    reason: Reason
    notes: Annotated[str, Meta(max_length=4_000)] = ""
    dry_run: bool = False
    key: Key = ""


@post(
    "/fabrics/{name:str}/manual-test",
    guards=[needs(Permission.work)],
    status_code=200,
    example={"results": "allreduce_gbps,391.5\n", "reason": "test of the new row", "notes": "12 nodes"},
)
async def post_manual_test(
    app_state: TheAppState, caller: TheCaller, name: FromPath[str], data: JSONBody[ResultsBody]
) -> IntentView:
    """Enter the results of a test by hand; they are set against those of earlier runs."""
    try:
        read(data.results)  # the loop reads it again; a refusal there names no lines
    except InvalidInputError as error:
        raise invalid(error) from error
    act = EnterManualTest(data.results, data.notes)
    asked = RequestedIntent(act, name, data.reason, data.dry_run, data.key)
    return await submit(app_state, caller, asked)


@post(
    "/fabrics/{name:str}/manual-test/files",
    guards=[needs(Permission.work)],
    request_max_body_size=LARGEST_FILE,
    status_code=200,
    example=FILE_EXAMPLE,
)
async def post_manual_test_file(
    app_state: TheAppState, caller: TheCaller, name: FromPath[str], data: JSONBody[FileBody]
) -> IntentView:
    """Add a photo or file to the run of a test by hand that is under way: JPEG, PNG, WebP, PDF or text, up to 8 MiB."""
    return await attach(app_state, caller, Attachment(AddManualTestFile, name), data)


@get("/fabrics/{name:str}/manual-test/files/{digest:str}", guards=SEE_CELL)
async def get_manual_test_file(app_state: TheAppState, name: FromPath[str], digest: FromPath[str]) -> Response[bytes]:
    """A photo or file of a network's test by hand, by its SHA-256: to be kept and never to be run."""
    fabric = fabric_named(app_state, name)
    test = app_state.fleet.manual_tests.get(fabric.name)
    runs = test.runs if test is not None else ()
    named = (*(test.files if test is not None else ()), *(file for run in runs for file in run.files))
    file = next((one for one in named if one.digest == digest), None)
    if file is None:
        raise unknown("file", digest)
    return await sent(app_state, file)


router = Router(
    path="/",
    route_handlers=[post_manual_test, post_manual_test_file, get_manual_test_file],
    tags=["networks"],
)
