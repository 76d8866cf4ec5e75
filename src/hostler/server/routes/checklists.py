"""A node's inspection by hands: its checklist with ticks, and the photos and files of its items."""

import asyncio
from datetime import datetime

from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from hostler.client.answers import IntentView
from hostler.core.intents.onboarding import items_of
from hostler.core.state import events as e
from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.model import Node
from hostler.core.state.onboarding import NOT_BEGUN
from hostler.core.state.verbs.facts import Permission
from hostler.core.state.verbs.onboarding import AddItemFile
from hostler.journal.named_records import each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.dependencies import TheAppState, Who
from hostler.server.problems import unknown
from hostler.server.routes.attached_files import FILE_EXAMPLE, LARGEST_FILE, Attachment, FileBody, attach, sent
from hostler.server.routes.intents import TheCaller

ADDED = record_names(e.OnboardFileAdded)
"""Records in which a file of an earlier inspection is looked for."""


class ItemFileBody(FileBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A photo or file, and the number of the item that it shows."""

    item: int


class ItemView(Struct, frozen=True):
    """An item of the checklist: who ticked it when, "" and None where nobody has, and the files that show it."""

    number: int
    item: str
    ticked: bool
    person: str
    at: datetime | None
    note: str
    files: list[AttachedFile]


class ChecklistView(Struct, frozen=True):
    """The items of one node, those of its site before those of its SKU."""

    items: list[ItemView]


@get("/nodes/{node_id:str}/checklist", guards=[needs(Permission.work)])
async def node_checklist(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> ChecklistView:
    """The checklist of a node's inspection, with who ticked what; it is certified when all items are."""
    node = app_state.node(who, node_id)
    return ChecklistView(_items(app_state, node))


@post(
    "/nodes/{node_id:str}/checklist/files",
    guards=[needs(Permission.work)],
    request_max_body_size=LARGEST_FILE,
    status_code=200,
    example={**FILE_EXAMPLE, "item": 3},
)
async def post_item_file(
    app_state: TheAppState, caller: TheCaller, node_id: FromPath[str], data: JSONBody[ItemFileBody]
) -> IntentView:
    """Add a photo or file to an item of a node's checklist: JPEG, PNG, WebP, PDF or text, up to 8 MiB."""
    return await attach(app_state, caller, Attachment(AddItemFile, node_id, {"item": data.item}), data)


@get("/nodes/{node_id:str}/checklist/files/{digest:str}", guards=[needs(Permission.work)])
async def get_item_file(
    app_state: TheAppState, who: Who, node_id: FromPath[str], digest: FromPath[str]
) -> Response[bytes]:
    """A photo or file of a node's checklist, by its SHA-256: as it was sent, to be kept and never to be run."""
    node = app_state.node(who, node_id)
    file = next((one.file for one in (node.inspection or NOT_BEGUN).files if one.file.digest == digest), None)
    file = file or await asyncio.to_thread(_earlier, app_state, node, digest)
    if file is None:
        raise unknown("file", digest)
    return await sent(app_state, file)


def _earlier(app_state: AppState, node: Node, digest: str) -> AttachedFile | None:
    """A file of an inspection that is over, as the node's history names it."""
    wanted = RecordWindow(subject=node.id, names=ADDED)
    told = (record.event for record in each_record(app_state.cell.journal, wanted))
    added = (event.added.file for event in told if isinstance(event, e.OnboardFileAdded))
    return next((file for file in added if file.digest == digest), None)


def _items(app_state: AppState, node: Node) -> list[ItemView]:
    seen = node.inspection or NOT_BEGUN
    ticks = {tick.item: tick for tick in seen.ticks}
    found = []
    for number, item in enumerate(items_of(app_state.fleet, node), 1):
        tick = ticks.get(item)
        files = [one.file for one in seen.files if one.item == item]
        person, at, note = (tick.person, tick.at, tick.note) if tick is not None else ("", None, "")
        found.append(ItemView(number, item, tick is not None, person, at, note, files))
    return found


router = Router(path="/", route_handlers=[node_checklist, post_item_file, get_item_file], tags=["nodes"])
