"""Reads the output of `ibqueryerrors --details` (infiniband-diags): error counters of the ports that have any.

A port that is not printed has counted nothing, where the tool has asked every port; "port ALL" is a sum and no port.
"""

import re

from msgspec import Struct

from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.links import PortReading
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain

_PORT = re.compile(r"\s+GUID 0x([0-9a-f]{1,16}) port (ALL|\d{1,3}):((?: \[[A-Za-z0-9]+ == \d+[^\]]*\])*)\s*")
_COUNTER = re.compile(r"\[([A-Za-z0-9]+) == (\d+)")
_CHECKED = re.compile(r"## +(?:Summary: )?(\d+) (nodes|ports) checked, .*")
_FAILED = re.compile(r"## +(\d+) PMA query failures\s*")
_HEAD = re.compile(r"(Errors|Data Counters) for (0x[0-9a-f]+ )?\".*\"")


class CounterPage(Struct, frozen=True):
    """Readings of the ports that count errors. `whole`: every other port has counted none. `why`: what is missing."""

    ports: dict[FoundPort, PortReading]
    whole: bool
    why: str = ""


def parse(text: str) -> CounterPage:
    """The counters on this page. Never raises: what does not fit stands in `why`, and no port counts as clean then."""
    if len(text) > MOST_BYTES:
        return CounterPage({}, whole=False, why=f"{len(text):,} characters; at most {MOST_BYTES:,} are read")
    ports: dict[FoundPort, PortReading] = {}
    checked, wrong = False, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if port := _PORT.fullmatch(line):
            if port[2] != "ALL" and port[2] != "0":
                ports[FoundPort(f"{int(port[1], 16):016x}", int(port[2]))] = _reading(port[3])
        elif _CHECKED.fullmatch(line):
            checked = True
        elif failed := _FAILED.fullmatch(line):
            wrong = wrong or f"{failed[1]} ports did not answer"
        elif line.strip() and not line.startswith("##") and not _HEAD.fullmatch(line) and "Link info:" not in line:
            wrong = wrong or f"line {number}: {plain(line)!r} is nothing that ibqueryerrors prints"
    if not checked:
        wrong = wrong or "the page has no summary: it was cut off"
    return CounterPage(ports, whole=not wrong, why=wrong)


def _reading(text: str) -> PortReading:
    counts = {name: int(value) for name, value in _COUNTER.findall(text)}
    return PortReading(
        link_downed=counts.get("LinkDownedCounterExt", counts.get("LinkDownedCounter", 0)),
        symbol_errors=counts.get("SymbolErrorCounterExt", counts.get("SymbolErrorCounter", 0)),
    )
