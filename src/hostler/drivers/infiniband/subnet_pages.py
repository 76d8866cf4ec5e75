"""Reads what `sminfo`, `saquery SMIR`, `saquery PKTR` and opensm's log tell of a subnet.

A page that is cut off, contradicts itself or holds anything else is refused whole, by ValueError.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from hostler.core.state.subnets import ManagerState, SubnetManager
from hostler.drivers.infiniband.page_text import plain

MOST_MANAGERS = 64
"""A subnet with more managers is none that anybody has built."""
MOST_PARTITIONS = 32_768
STATES = tuple(ManagerState)

_SMINFO = re.compile(
    r"sminfo: sm lid (\d{1,5}) sm guid 0x([0-9a-f]{1,16}), activity count (\d{1,10}) priority (\d{1,2}) "
    r"state ([0-3]) SMINFO_([A-Z]+)\s*"
)
_FIELD = re.compile(r"\s*([A-Za-z_]+)\.{2,}(\S.*?)\s*")
_BLOCK = re.compile(r"(?:\s*0x[0-9a-f]{4}){8}\s*")


def master(text: str) -> SubnetManager:
    """The manager that `sminfo` prints: the one that the asking port obeys."""
    found = _SMINFO.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"`sminfo` printed {plain(text.strip())!r}")
    told = _manager(found[2], found[4], found[5])
    if told.state is not ManagerState.master:
        raise ValueError(f"`sminfo` asked {told.guid}, which is {told.state} and no master")
    return told


def managers(text: str, asked: SubnetManager) -> tuple[SubnetManager, ...]:
    """All managers by `saquery SMIR`, the master first. `asked`: the master by `sminfo`, who must be it here too."""
    found = [_of_record(record) for record in _records(text, "SMInfoRecord dump:")]
    if len(found) > MOST_MANAGERS:
        raise ValueError(f"`saquery SMIR` lists {len(found)} managers; at most {MOST_MANAGERS} are read")
    if len({one.guid for one in found}) != len(found):
        raise ValueError("`saquery SMIR` lists a manager twice")
    masters = [one for one in found if one.state is ManagerState.master]
    if [one.guid for one in masters] != [asked.guid]:
        told = ", ".join(one.guid for one in masters) or "none"
        raise ValueError(f"master is {asked.guid} by `sminfo`, {told} by `saquery SMIR`")
    return (*masters, *sorted((one for one in found if one not in masters), key=lambda one: one.guid))


def _of_record(record: Mapping[str, str]) -> SubnetManager:
    try:
        return _manager(record["GUID"].removeprefix("0x"), record["Priority"], record["SMState"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"`saquery SMIR` printed a record without {plain(str(error))}: it was cut off") from error


def _manager(guid: str, priority: str, state: str) -> SubnetManager:
    number, rank, at = int(guid, 16), int(priority), int(state)
    if not 0 < number < 1 << 64 or not 0 <= rank < 16 or not 0 <= at < len(STATES):
        raise ValueError(f"GUID {plain(guid)!r} with priority {plain(priority)!r} and state {plain(state)!r}")
    return SubnetManager(f"{number:016x}", rank, STATES[at])


def _records(text: str, head: str) -> Iterator[dict[str, str]]:
    """Fields of each record. Raises ValueError where there is none, or a line is no field."""
    records: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() == head:
            records.append({})
        elif field := _FIELD.fullmatch(line):
            if not records or field[1] in records[-1]:
                raise ValueError(f"`saquery` line {number}: {plain(line)!r} stands twice, or before any record")
            records[-1][field[1]] = field[2]
        elif line.strip() not in ("", "RID", "SMInfo dump:"):
            raise ValueError(f"`saquery` line {number}: {plain(line)!r} is nothing that it prints")
    if not records:
        raise ValueError("`saquery` printed no record")
    yield from records


def partitions(text: str) -> tuple[str, ...]:
    """Partitions that any port bears, by `saquery PKTR`: four rows of eight keys for each block of a port."""
    found: set[int] = set()
    records = rows = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if _BLOCK.fullmatch(line):
            rows += 1
            found.update(int(key, 16) & 0x7FFF for key in line.split())
        elif line.strip() == "PKeyTableRecord dump:":
            if rows != 4 * records:
                raise ValueError(f"`saquery` line {number}: the block before ends after {rows - 4 * records + 4} rows")
            records += 1
        elif line.strip() not in ("", "PKey Table:") and not _FIELD.fullmatch(line):
            raise ValueError(f"`saquery` line {number}: {plain(line)!r} is nothing that it prints")
    if not records or rows != 4 * records:
        raise ValueError("`saquery PKTR` printed no whole record: it was cut off")
    return tuple(f"0x{number:04x}" for number in sorted(found - {0}))


_STARTED = re.compile(r"osm_vendor_bind: Mgmt class 0x81 binding to port GUID 0x([0-9a-f]{1,16})")
_MASTER = re.compile(r"Entering (DISCOVERING|STANDBY|MASTER|NOT-?ACTIVE) state")
_ROUTED = re.compile(r"osm_ucast_mgr_process: ([A-Za-z0-9_\-]{1,32}) tables configured on all switches")


def routing(log: Iterable[str], master_guid: str) -> str:
    """The engine by the last lines of opensm's log. Raises ValueError where the log is not the master's own."""
    guid = engine = state = ""
    for line in log:
        if started := _STARTED.search(line):
            guid, engine, state = f"{int(started[1], 16):016x}", "", ""
        elif entered := _MASTER.search(line):
            state, engine = entered[1], engine if entered[1] == state else ""
        elif routed := _ROUTED.search(line):
            engine = routed[1]
    if guid != master_guid:
        whose = f"{guid}'s" if guid else "of a manager that it does not name"
        raise ValueError(f"opensm's log is {whose}, and the master is {master_guid}")
    if state != "MASTER" or not engine:
        raise ValueError("opensm's log tells no routing since its manager became master")
    return engine
