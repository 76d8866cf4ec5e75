"""Photos and files of tickets: attached by who works on them, read by those who may."""

from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody

from hostler.client.answers import IntentView
from hostler.core.state import events as e
from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.verbs.facts import Permission
from hostler.core.state.verbs.tickets import AddTicketFile
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.dependencies import TheAppState, Who
from hostler.server.problems import unknown
from hostler.server.routes.attached_files import FILE_EXAMPLE, LARGEST_FILE, Attachment, FileBody, attach, sent
from hostler.server.routes.intents import TheCaller
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity

WORK = [needs(Permission.work)]


@post(
    "/tickets/{ticket:str}/files",
    guards=WORK,
    request_max_body_size=LARGEST_FILE,
    status_code=200,
    example=FILE_EXAMPLE,
)
async def post_ticket_file(
    app_state: TheAppState, caller: TheCaller, ticket: FromPath[str], data: JSONBody[FileBody]
) -> IntentView:
    """Attach a photo or file to an open ticket: JPEG, PNG, WebP, PDF or text, up to 8 MiB."""
    return await attach(app_state, caller, Attachment(AddTicketFile, ticket), data)


@get("/tickets/{ticket:str}/files/{digest:str}", guards=WORK)
async def get_ticket_file(
    app_state: TheAppState, who: Who, ticket: FromPath[str], digest: FromPath[str]
) -> Response[bytes]:
    """A photo or file of a ticket, open or closed, by its SHA-256: as it was sent, to be kept and never to be run."""
    about, files = await _files(app_state, ticket)
    file = next((one for one in files if one.digest == digest), None)
    if file is None or not _reaches(app_state, who, about):
        raise unknown("file", digest)
    return await sent(app_state, file)


async def _files(app_state: AppState, name: str) -> tuple[str, tuple[AttachedFile, ...]]:
    """The node or asset of the ticket, and its files; of a closed one as they were recorded."""
    if (ticket := app_state.fleet.tickets.get(name)) is not None:
        return ticket.node, ticket.files
    records = await app_state.named(name, e.TicketFileAdded)
    added = [r.event for r in records if isinstance(r.event, e.TicketFileAdded) and r.event.ticket == name]
    return (added[0].node if added else ""), tuple(event.file for event in added)


def _reaches(app_state: AppState, who: Identity, about: str) -> bool:
    if who.whole:
        return True
    node = app_state.fleet.nodes.get(about)
    return node is not None and sees(who, node)


router = Router(path="/", route_handlers=[post_ticket_file, get_ticket_file], tags=["tickets"])
