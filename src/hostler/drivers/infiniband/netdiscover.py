"""Reads the output of `ibnetdiscover` (infiniband-diags) as a `Discovery`.

A block a device: lines `key=value`, a head line with type, ports and quoted node id, then a line for each port that has
a link. A description is whatever the device says, so it may hold blanks, quotes, escape codes; what breaks its line
breaks the page, and such a page is partial.
"""

import re
from collections.abc import Iterator

from msgspec import Struct, field

from hostler.core.fabric.discovery import LID_MOST, Discovery, FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.rates import Rate, rate_of
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain

_HEAD = re.compile(r'(Switch|Ca|Rt)\s+(\d{1,3})\s+"([SHR])-([0-9a-f]{16})"\s*#\s*"(.*)"')
_LINK = re.compile(
    r'\[(\d{1,3})\](?:\(([0-9a-f]{1,16})\))?\s+"([SHR])-([0-9a-f]{16})"\[(\d{1,3})\](?:\([0-9a-f]+\))?\s*#(.*)'
)
_RATE = re.compile(r"(\d{1,2}x[A-Z]{3}(?:10)?)\s*$")
_LID = re.compile(r'" lid (\d{1,5}) \S+\s*$')
"""LID of the far port, behind its description."""
_KEY = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x[0-9a-f]+(\([0-9a-f]+\))?")


class _Page(Struct):
    devices: dict[str, FoundDevice] = field(default_factory=dict)
    told: dict[FoundPort, tuple[FoundPort, Rate | None]] = field(default_factory=dict)
    also: dict[str, FoundPort] = field(default_factory=dict)
    lids: dict[FoundPort, int] = field(default_factory=dict)
    wrong: str = ""

    def doubt(self, line: int, what: str) -> None:
        """The first reason why the page may not be all of it."""
        self.wrong = self.wrong or f"line {line}: {what}"


def parse(text: str) -> Discovery:
    """The devices and links on this page. Never raises: what does not fit makes it partial, with the line."""
    if len(text) > MOST_BYTES:
        return Discovery(
            {}, (), f"{len(text):,} characters; at most {MOST_BYTES:,} are read; look from a smaller subnet"
        )
    page = _Page()
    _read(page, text)
    links = tuple(_links(page))
    if text and not text.endswith("\n"):
        page.doubt(text.count("\n") + 1, "the last line has no end: the page was cut off")
    if not page.devices:
        page.wrong = page.wrong or "no device on the page"
    return Discovery(page.devices, links, page.wrong, page.also, page.lids)


def _read(page: _Page, text: str) -> None:
    current = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("["):
            _link(page, number, line, current)
        elif line.startswith(("Switch\t", "Ca\t", "Rt\t", "Switch ", "Ca ", "Rt ")):
            current = _head(page, number, line)
        elif line.strip() and not line.startswith("#") and not _KEY.fullmatch(line.strip()):
            page.doubt(number, f"{plain(line)!r} is nothing that ibnetdiscover prints")


def _head(page: _Page, number: int, line: str) -> str:
    """The GUID of the device whose lines follow, "" where its line is not understood."""
    head = _HEAD.match(line)
    if head is None:
        page.doubt(number, f"{plain(line)!r} is no device")
        return ""
    guid = head[4]
    if guid in page.devices:
        page.doubt(number, f"GUID {guid} is told twice")
    page.devices[guid] = FoundDevice(guid, head[1] == "Switch", plain(head[5]))
    return guid


def _link(page: _Page, number: int, line: str, current: str) -> None:
    link = _LINK.match(line)
    if link is None or not current:
        page.doubt(number, f"{plain(line)!r} is no link" if current else "a link of no device")
        return
    here, there = FoundPort(current, int(link[1])), FoundPort(link[4], int(link[5]))
    if link[2]:
        page.also[f"{int(link[2], 16):016x}"] = here
    if 0 in (here.number, there.number):
        return  # a switch's own processor, where no cable is
    if here in page.told and page.told[here][0] != there:
        page.doubt(number, f"port {here.number} of {current} is told with two neighbours")
    if link[3] == "H" and (lid := _LID.search(link[6])) and 0 < int(lid[1]) <= LID_MOST:
        page.lids[there] = int(lid[1])
    rate = _RATE.search(link[6])
    page.told[here] = (there, rate_of(rate[1]) if rate else None)


def _links(page: _Page) -> Iterator[FoundLink]:
    """Each link once. Both its ends tell it; where they do not agree, the page is partial."""
    for here, (there, rate) in page.told.items():
        back = page.told.get(there)
        if back is None or back[0] != here:
            said = f"told by port {here.number} of {here.guid} and not by port {there.number} of {there.guid}"
            page.doubt(0, f"a link is {said}")
        elif here <= there:
            yield FoundLink(here, there, rate)
