"""Reads the event logs of one machine: of its own system, its baseboards and its managers, each from where it was left.

BMCs keep several logs in one place. The first in `_WANTED` that has entries is read; what tells of sessions, settings
and starts is left aside. A cursor has a line for each log: its entries' path and the last entry's mark.
"""

from hostler.drivers.redfish import resource_tree, wire, wire_event_log
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.tolerant_json import Document, WireError, link, name_of
from hostler.ports import PortError

MAX_LOGS = 8
"""Places of one machine in which logs are looked for."""
_WANTED = ("sel", "iml", "platformlog", "platform", "eventlog", "event", "log1", "faultlist")
"""Names in their plain form, the first first: SEL everywhere, HPE's IML, Lenovo's PlatformLog, Supermicro's Log1."""
_ASIDE = ("audit", "dump", "journal", "lclog", "lifecycle", "iel", "postcode", "hostlogger", "crash", "security")
_NOT_OURS = frozenset({"sl", "maintenance", "maintenancelog", "session", "console", "dbus"})


async def read(
    client: RedfishClient, system: wire.System, cursor: str = ""
) -> tuple[tuple[wire_event_log.LogEntry, ...], str]:
    """Entries behind `cursor`, of each log oldest first, and the new cursor.

    A log that is met for the first time, where others were read before, is history. Raises NotOfferedError where the
    machine keeps no log.
    """
    places = await _places(client, system)
    if not places:
        raise NotOfferedError(
            f"{client.origin} keeps no event log for system {system.id}"
            "; its events are not read: send them to a syslog server by the vendor's means"
        )
    positions, legacy = _positions(cursor)
    found: list[wire_event_log.LogEntry] = []
    failed: list[PortError] = []
    for number, candidates in enumerate(places):
        try:
            path, entries = await _first_with_entries(client, candidates)
        except (BmcFailureError, NotOfferedError, WireError) as error:
            failed.append(error)
            client.logs.pop(system.path, None)
            continue
        known = positions.get(path, legacy if number == 0 else None)
        new, mark = wire_event_log.after(entries, known or "")
        found += new if known is not None or not cursor else ()
        positions[path] = mark
    if len(failed) == len(places):
        raise failed[0]
    return tuple(found), "\n".join(f"{path} {mark}" for path, mark in sorted(positions.items()))


def _positions(cursor: str) -> tuple[dict[str, str], str | None]:
    """The mark by log; one that was written before there were several is the first log's."""
    if cursor and not cursor.startswith("/"):
        return {}, cursor
    lines = (line.partition(" ") for line in cursor.split("\n") if line)
    return {path: mark for path, _, mark in lines}, None


async def _first_with_entries(
    client: RedfishClient, candidates: tuple[str, ...]
) -> tuple[str, list[wire_event_log.LogEntry]]:
    """The first log of one place that has entries, the first of all where none has."""
    for path in candidates:
        entries = [entry for doc in await client.collection(path) if (entry := wire_event_log.log_entry(doc))]
        if entries:
            return path, entries
    return candidates[0], []


async def _places(client: RedfishClient, system: wire.System) -> tuple[tuple[str, ...], ...]:
    """For each place the entries of its logs, the wanted first; learned once."""
    if (known := client.logs.get(system.path)) is not None:
        return known
    survey = Survey(client)
    machine = await resource_tree.known(survey, system)
    beside = [await client.system_if_shown(path) for path in machine.baseboards]
    services = [one.collections.get("LogServices", "") for one in (system, *beside)]
    services += [await _of_manager(survey, path) for path in machine.managers]
    found: list[tuple[str, ...]] = []
    for place in [one for one in dict.fromkeys(services) if one][:MAX_LOGS]:
        kept = [(rank, link(doc, "Entries")) for doc in await survey.many(place, "LogServices") if (rank := _rank(doc))]
        entries = tuple(path for _, path in sorted(kept, key=lambda one: one[0]) if path)
        found += [entries] if entries else []
    if not survey.broken and not any(one.unread for one in beside):
        client.logs[system.path] = tuple(found)
    return tuple(found)


async def _of_manager(survey: Survey, path: str) -> str:
    """The logs of a manager, "" where it keeps none or cannot be read: the others' are read all the same."""
    try:
        return (await survey.client.manager_at(path)).logs
    except (BmcFailureError, NotOfferedError, WireError) as error:
        survey.pass_over(str(error))
        return ""


def _rank(doc: Document) -> int:
    """How much a log is wanted, 1 the most; 0 for one that is left aside."""
    name = "".join(c for c in name_of(doc).lower() if c.isalnum())
    if name in _NOT_OURS or any(mark in name for mark in _ASIDE):
        return 0
    return _WANTED.index(name) + 1 if name in _WANTED else len(_WANTED) + 1
