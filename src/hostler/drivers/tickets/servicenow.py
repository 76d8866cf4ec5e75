"""ServiceNow through its Table API: records of a table (incident) with our label as correlation_id.

Sources: "Table API" (GET, POST and PATCH of /api/now/table/TABLE), "Attachment API" (GET of /api/now/attachment, POST
of /api/now/attachment/file), "Encoded query strings" (IN, ORDERBY), and the states of incidents: 2 in progress, 6
resolved, 7 closed, 8 canceled.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from hostler.core.notify.messages import Message
from hostler.core.state.model import Severity
from hostler.core.state.notify_routes import Route
from hostler.drivers.ticket_wording import description, headline, printable
from hostler.drivers.tickets.json_api import LOGIN_PAGE, JsonApi, UploadBody, list_of, refused, text_of
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import OutsideTicket, RefusedError, Secrets, TicketFile

WORK, RESOLVED = "2", "6"
_FINAL = ("7", "8")
_FOUND_MOST = 200
_ATTACHMENT = "/api/now/attachment"
_FIELDS = "sys_id,number,state,correlation_id,close_notes"


class ServiceNowSystem:
    """`ports.TicketSystem`. `cell` is told in each record."""

    def __init__(self, cell: str, secrets: Secrets) -> None:
        self._cell = cell
        self._api = JsonApi(secrets)

    async def find(self, labels: Sequence[str], route: Route) -> list[OutsideTicket]:
        """Ask for the records of these correlation ids."""
        asked = urlencode(
            {
                "sysparm_query": f"correlation_idIN{','.join(labels)}^ORDERBYsys_created_on",
                "sysparm_fields": _FIELDS,
                "sysparm_limit": str(_FOUND_MOST),
                "sysparm_exclude_reference_link": "true",
                "sysparm_display_value": "false",
            },
            quote_via=quote,
        )
        answer = await self._api.call(route, "GET", f"{_table(route)}?{asked}")
        found = [_outside(record, route) for record in list_of(answer, "result")]
        return [one for one in found if one.label in labels]

    async def create(self, label: str, message: Message, route: Route) -> OutsideTicket:
        """Create a record."""
        grave = "1" if message.severity >= Severity.critical else "3"
        fields = {
            "short_description": headline(message),
            "description": description(message, self._cell),
            "correlation_id": label,
            "correlation_display": "Hostler",
            "urgency": grave,
            "impact": grave,
            **({"assignment_group": route.project} if route.project else {}),
        }
        try:
            answer = await self._api.call(route, "POST", _table(route), fields)
        except RefusedError as error:
            raise refused(f"no record in table {route.table}", error) from error
        return _outside({**_result(answer), "correlation_id": label}, route)

    async def comment(self, ticket: OutsideTicket, text: str, route: Route) -> None:
        """Add a work note."""
        await self._patch(ticket, route, work_notes=printable(text))

    async def attach(self, ticket: OutsideTicket, file: TicketFile, route: Route) -> None:
        """UploadBody the file, unless the record has it."""
        known = urlencode(
            {
                "sysparm_query": f"table_sys_id={ticket.ident}^file_name={file.name}",
                "sysparm_fields": "file_name,size_bytes",
                "sysparm_limit": "10",
            },
            quote_via=quote,
        )
        answer = await self._api.call(route, "GET", f"{_ATTACHMENT}?{known}")
        if any(_is_file(one, file) for one in list_of(answer, "result")):
            return
        place = {"table_name": route.table, "table_sys_id": ticket.ident, "file_name": file.name}
        path = f"{_ATTACHMENT}/file?{urlencode(place, quote_via=quote)}"
        taken = await self._api.upload(route, path, UploadBody(file.data, file.media_type))
        if not _is_file(_result(taken), file):
            raise unreadable("ServiceNow's answer", "it does not show the file with its size", LOGIN_PAGE)

    async def close(self, ticket: OutsideTicket, why: str, route: Route) -> None:
        """Resolve the record."""
        words = printable(why) or "done"
        await self._patch(ticket, route, state=RESOLVED, close_code=route.close_code, close_notes=words)

    async def reopen(self, ticket: OutsideTicket, why: str, route: Route) -> None:
        """Have a resolved record be in progress again."""
        await self._patch(ticket, route, state=WORK, work_notes=printable(why))

    async def _patch(self, ticket: OutsideTicket, route: Route, **fields: str) -> None:
        answer = await self._api.call(route, "PATCH", f"{_table(route)}/{quote(ticket.ident, safe='')}", fields)
        text_of(_result(answer), "sys_id")


def _is_file(shown: Any, file: TicketFile) -> bool:
    """Whether this is the file; sizes come as text."""
    found = (shown.get("file_name"), str(shown.get("size_bytes"))) if isinstance(shown, dict) else None
    return found == (file.name, str(len(file.data)))


def _table(route: Route) -> str:
    return f"/api/now/table/{route.table}"


def _result(answer: Any) -> dict[str, Any]:
    found = answer.get("result") if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


def _outside(record: Any, route: Route) -> OutsideTicket:
    """The record. Raises UnreachableError where it is none."""
    ident, state = text_of(record, "sys_id"), str(record.get("state", ""))
    url = f"{route.url.rstrip('/')}/nav_to.do?uri={quote(f'{route.table}.do?sys_id={ident}', safe='')}"
    done, final = state in (RESOLVED, *_FINAL), state in _FINAL
    why = printable(str(record.get("close_notes") or ""))[:200]
    return OutsideTicket(text_of(record, "correlation_id"), text_of(record, "number"), url, ident, done, final, why)
