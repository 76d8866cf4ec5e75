"""Jira, Cloud and Data Center, through REST API 2, whose texts are plain.

Sources: "The Jira Cloud platform REST API" v2 (issues, comments, transitions, search/jql) and "Jira Data Center REST
API" (search), "Add attachment" (multipart/form-data, part `file`, X-Atlassian-Token) and "Get Jira attachment
settings". A label finds an issue again. States are told by their category, as their names are each site's own.
"""

from collections.abc import Sequence
from typing import Any

from hostler.core.notify.messages import Message
from hostler.core.state.notify_routes import Route
from hostler.drivers.ticket_wording import description, headline, printable
from hostler.drivers.tickets.json_api import LOGIN_PAGE, JsonApi, UploadBody, list_of, refused, text_of
from hostler.drivers.tickets.upload_body import file_body
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import OutsideTicket, RefusedError, Secrets, TicketFile

API = "/rest/api/2"
DONE = "done"
_OPENING = ("indeterminate", "new")
_FOUND_MOST = 200
_UNKNOWN = ("(404)", "(405)", "(410)")


class JiraSystem:
    """`ports.TicketSystem`. `cell` is told in each issue."""

    def __init__(self, cell: str, secrets: Secrets) -> None:
        self._cell = cell
        self._api = JsonApi(secrets)
        self._search: dict[str, str] = {}

    async def find(self, labels: Sequence[str], route: Route) -> list[OutsideTicket]:
        """Search by label."""
        quoted = ", ".join(f'"{label}"' for label in labels)
        body = {
            "jql": f"labels in ({quoted}) ORDER BY created ASC",
            "fields": ["status", "labels", "resolution"],
            "maxResults": _FOUND_MOST,
        }
        answer = await self._searched(route, body)
        found = [_outside(issue, labels, route) for issue in list_of(answer, "issues")]
        return sorted((one for one in found if one is not None), key=lambda one: (len(one.ident), one.ident))

    async def _searched(self, route: Route, body: dict[str, Any]) -> Any:
        """Cloud has search/jql alone, Data Center search alone: which one is known after the first answer."""
        known = self._search.get(route.url)
        for path in (known,) if known else (f"{API}/search/jql", f"{API}/search"):
            try:
                answer = await self._api.call(route, "POST", path, body)
            except RefusedError as error:
                if known or path.endswith("/search") or not any(code in str(error) for code in _UNKNOWN):
                    raise
            else:
                self._search[route.url] = path
                return answer
        raise AssertionError("the last search raises or answers")

    async def create(self, label: str, message: Message, route: Route) -> OutsideTicket:
        """Create an issue."""
        fields = {
            "project": {"key": route.project},
            "issuetype": {"name": route.issue_type},
            "summary": headline(message),
            "description": _plain(description(message, self._cell)),
            "labels": [label, "hostler"],
        }
        try:
            answer = await self._api.call(route, "POST", f"{API}/issue", {"fields": fields})
        except RefusedError as error:
            raise refused(f"no issue of type {route.issue_type} in project {route.project}", error) from error
        key = text_of(answer, "key")
        return OutsideTicket(label, key, f"{route.url.rstrip('/')}/browse/{key}", text_of(answer, "id"))

    async def comment(self, ticket: OutsideTicket, text: str, route: Route) -> None:
        """Add a comment."""
        await self._api.call(route, "POST", f"{API}/issue/{ticket.ident}/comment", {"body": _plain(text)})

    async def attach(self, ticket: OutsideTicket, file: TicketFile, route: Route) -> None:
        """UploadBody the file, unless the issue has it; one that is too large for this Jira is not sent."""
        issue = f"{API}/issue/{ticket.ident}"
        shown = (await self._api.call(route, "GET", f"{issue}?fields=attachment")).get("fields")
        if any(_is_file(one, file) for one in list_of(shown, "attachment")):
            return
        meta = await self._api.call(route, "GET", f"{API}/attachment/meta")
        limit = meta.get("uploadLimit") if isinstance(meta, dict) else None
        if isinstance(meta, dict) and meta.get("enabled") is False:
            raise RefusedError("this Jira has attachments switched off; switch them on in its settings")
        if isinstance(limit, int) and len(file.data) > limit:
            told = f"it has {len(file.data):,} bytes, and this Jira takes {limit:,} at most"
            raise RefusedError(f"{told}; raise the limit in its settings")
        body, boundary = file_body(file.name, file.media_type, file.data)
        kind = f"multipart/form-data; boundary={boundary}"
        answer = await self._api.upload(
            route, f"{issue}/attachments", UploadBody(body, kind, {"X-Atlassian-Token": "no-check"})
        )
        if not isinstance(answer, list) or not any(_is_file(one, file) for one in answer):
            raise unreadable("Jira's answer", "it does not show the file with its size", LOGIN_PAGE)

    async def close(self, ticket: OutsideTicket, why: str, route: Route) -> None:
        """Say why, and take a transition to a state of the category done."""
        await self.comment(ticket, why, route)
        await self._move(ticket, (DONE,), route)

    async def reopen(self, ticket: OutsideTicket, why: str, route: Route) -> None:
        """Take a transition to a state in which there is work, and say why."""
        await self._move(ticket, _OPENING, route)
        await self.comment(ticket, why, route)

    async def _move(self, ticket: OutsideTicket, wanted: Sequence[str], route: Route) -> None:
        path = f"{API}/issue/{ticket.ident}/transitions"
        offered = list_of(await self._api.call(route, "GET", path), "transitions")
        leads = {_category(one.get("to")): one for one in reversed(offered) if isinstance(one, dict)}
        chosen = next((leads[category] for category in wanted if category in leads), None)
        if chosen is None:
            names = ", ".join(str(one.get("name", ""))[:40] for one in offered[:10] if isinstance(one, dict))
            raise RefusedError(
                f"{ticket.key}: no transition leads to {' or '.join(wanted)}; it offers {names or 'none'}"
                "; correct the route's states to those of the project's workflow"
            )
        await self._api.call(route, "POST", path, {"transition": {"id": text_of(chosen, "id")}})


def _outside(issue: Any, labels: Sequence[str], route: Route) -> OutsideTicket | None:
    """The issue, None where it has none of the labels after all. Raises UnreachableError where it is none."""
    fields = issue.get("fields") if isinstance(issue, dict) else None
    if not isinstance(fields, dict):
        raise unreadable("Jira's answer", "an issue in it has no fields", LOGIN_PAGE)
    label = next((one for one in labels if one in list_of(fields, "labels")), None)
    if label is None:
        return None
    key, resolution = text_of(issue, "key"), fields.get("resolution")
    why = resolution.get("name") if isinstance(resolution, dict) else ""
    done = _category(fields.get("status")) == DONE
    url = f"{route.url.rstrip('/')}/browse/{key}"
    return OutsideTicket(label, key, url, text_of(issue, "id"), done, why=printable(str(why or ""))[:100])


def _is_file(shown: Any, file: TicketFile) -> bool:
    return isinstance(shown, dict) and (shown.get("filename"), shown.get("size")) == (file.name, len(file.data))


def _category(status: Any) -> str:
    """The category of a status: new, indeterminate or done. Raises UnreachableError where it has none."""
    category = status.get("statusCategory") if isinstance(status, dict) else None
    return text_of(category, "key")


def _plain(text: str) -> str:
    """The text as wiki markup that is shown as it stands: no mention, link or macro comes from it."""
    return "{noformat}\n" + text.replace("{noformat}", "(noformat)") + "\n{noformat}"
