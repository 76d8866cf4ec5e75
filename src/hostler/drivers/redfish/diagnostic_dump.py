"""Has a BMC make a dump of itself (LogService.CollectDiagnosticData), and fetches it.

Nothing of what the BMC says is taken on its word: a dump is what a new entry of that log leads to, and a page that
tells of an error, or nothing at all, is none. The dump stays in the BMC's log, where its vendor's tools find it too.
"""

import asyncio

import msgspec
from msgspec import Struct

from hostler.drivers.redfish import wire
from hostler.drivers.redfish.client import NotOfferedError, RedfishClient
from hostler.drivers.redfish.tolerant_json import Document, child, document, link, strings, text
from hostler.ports import RefusedError

POLL_S = 2.0
LATE_POLLS = 15
"""Polls for which the entry of a dump may be missing after its task has ended, or was gone."""
_ACTION = "#LogService.CollectDiagnosticData"


class DumpService(Struct, frozen=True):
    """A log that makes dumps: its action, what it is asked for, and where its entries are."""

    target: str
    body: dict[str, str]
    entries: str


async def dump(client: RedfishClient, system: wire.System) -> bytes:
    """A dump of the BMC behind this system. Raises PortError; whoever calls sets the time."""
    service = await _service(client, system)
    before = frozenset(await client.member_paths(service.entries))
    async with client.alone:
        task = await client.collect_diagnostics(service.target, service.body)
    return await _fetched(client, await _entry(client, service, before, task))


async def _service(client: RedfishClient, system: wire.System) -> DumpService:
    """The first log that makes dumps, the BMC's own before its system's. Raises NotOfferedError."""
    manager = await client.manager(system)
    for place in (manager.logs, system.collections.get("LogServices", "")):
        for doc in await client.collection(place) if place else ():
            if (found := offered(doc)) is not None:
                return found
    raise NotOfferedError(f"{client.origin} makes no dump of itself; export one by the vendor's own means")


def offered(doc: Document) -> DumpService | None:
    """The dump that a log offers: of the manager, else of the vendor's first kind; None where it offers neither."""
    action, entries = child(doc, "Actions", _ACTION), link(doc, "Entries")
    target = text(action, "target")
    if not target or not entries:
        return None
    kinds = strings(action, "DiagnosticDataType@Redfish.AllowableValues")
    own = strings(action, "OEMDiagnosticDataType@Redfish.AllowableValues")
    if not kinds or "Manager" in kinds:
        return DumpService(target, {"DiagnosticDataType": "Manager"}, entries)
    if "OEM" in kinds and own:
        return DumpService(target, {"DiagnosticDataType": "OEM", "OEMDiagnosticDataType": own[0]}, entries)
    return None


async def _entry(client: RedfishClient, service: DumpService, before: frozenset[str], task: str) -> str:
    """The path of the entry that the dump made. Raises RefusedError where the BMC says that it failed, or has none."""
    late = 0
    while late < LATE_POLLS:
        await asyncio.sleep(POLL_S)
        seen = await client.task(task) if task else None
        if seen is not None and seen.state == "failed":
            why = seen.detail or "it does not say why"
            raise RefusedError(f"{client.origin} could not make its dump: {why}; take it by the vendor's means")
        if seen is not None and seen.state == "running":
            continue
        fresh = [path for path in await client.member_paths(service.entries) if path not in before]
        if fresh:
            return fresh[-1]
        late += 1
    raise RefusedError(
        f"{client.origin} says that its dump is made, and its log has no new entry; take it by the vendor's means"
    )


async def _fetched(client: RedfishClient, entry: str) -> bytes:
    where = text(document(await client.get(entry), "dump's entry"), "AdditionalDataURI")
    if not where:
        raise RefusedError(
            f"{client.origin} lists a dump, and not where its bytes are ({entry}); take it by the vendor's means"
        )
    data = await client.get(where)
    if not data or is_error_page(data):
        what = "an error page" if data else "nothing"
        raise RefusedError(
            f"{client.origin} gave {what} for its dump, and called that a success; take it by the vendor's means"
        )
    return data


def is_error_page(data: bytes) -> bool:
    """Whether the bytes are a page for people, or a Redfish error, whatever their status was."""
    begins = data.lstrip()[:64].lower()
    if begins.startswith((b"<!doctype html", b"<html")):
        return True
    if not begins.startswith(b"{"):
        return False
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return False
    return isinstance(found, dict) and "error" in found
