"""Reads the output of `iblinkinfo --line` (infiniband-diags) as a `Discovery`.

A line is one port: GUID and description of its device, its number, width and signalling of a lane, state, and the far
end where a link is up. An adapter is named by the GUID of its port. Ports that are down are printed and are no links.
"""

import re

from msgspec import Struct, field

from hostler.core.fabric.discovery import LID_MOST, Discovery, FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.rates import LANE_GBPS, WIDTHS, Rate
from hostler.drivers.infiniband.page_text import MOST_BYTES, plain

_HEAD = re.compile(r'0x([0-9a-f]{16}) "\s*(.*?)"\s+(\d{1,5})\s+(\d{1,3})\[[^\]]*\] ==\(\s*(.*?)\s*\)==>(.*)')
_FAR = re.compile(r'\s*0x([0-9a-f]{16})\s+\d+\s+(\d{1,3})\[[^\]]*\] "(.*)" \(.*\)\s*')
_LINK = re.compile(r"(\d{1,2})X\s+([\d.]+) Gbps(?: \(([A-Z0-9 ]+)\))?\s+(\w+)/\s*(\w+)")
_NEAREST = 0.02
"""Share by which a printed signalling may differ from the specification's."""


class _Page(Struct):
    devices: dict[str, FoundDevice] = field(default_factory=dict)
    ports: dict[str, set[int]] = field(default_factory=dict)
    told: dict[FoundPort, tuple[FoundPort, Rate | None, int]] = field(default_factory=dict)
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
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            _read(page, number, line)
    if text and not text.endswith("\n"):
        page.doubt(text.count("\n") + 1, "the last line has no end: the page was cut off")
    links = tuple(_links(page))
    if not page.devices:
        page.wrong = page.wrong or "no device on the page"
    devices = {guid: _kind(page, device) for guid, device in page.devices.items()}
    lids = {at: lid for at, lid in page.lids.items() if not devices[at.guid].switch}
    return Discovery(devices, links, page.wrong, lids=lids)


def _read(page: _Page, number: int, line: str) -> None:
    head = _HEAD.fullmatch(line)
    if head is None:
        page.doubt(number, f"{plain(line)!r} is no line of `iblinkinfo --line`")
        return
    guid, port = head[1], int(head[4])
    known = page.devices.setdefault(guid, FoundDevice(guid, switch=False, description=plain(head[2])))
    if known.description != plain(head[2]):
        page.doubt(number, f"GUID {guid} is told with two descriptions")
    page.ports.setdefault(guid, set()).add(port)
    if 0 < int(head[3]) <= LID_MOST:
        page.lids[FoundPort(guid, port)] = int(head[3])
    link = _LINK.fullmatch(head[5].strip())
    if link is None or link[5] != "LinkUp" or port == 0:
        return
    far = _FAR.fullmatch(head[6])
    if far is None:
        page.doubt(number, "a link that is up, and no far end")
        return
    here, there = FoundPort(guid, port), FoundPort(far[1], int(far[2]))
    if here in page.told and page.told[here][0] != there:
        page.doubt(number, f"port {port} of {guid} is told with two neighbours")
    page.told[here] = (there, _rate(page, number, link), number)


def _rate(page: _Page, line: int, link: re.Match[str]) -> Rate | None:
    """Width and speed; what no name is known for makes the page partial, for no design says it either."""
    width, gbps = int(link[1]), float(link[2])
    speed = min(LANE_GBPS, key=lambda name: abs(LANE_GBPS[name] - gbps))
    if width not in WIDTHS or abs(LANE_GBPS[speed] - gbps) > _NEAREST * gbps:
        page.doubt(line, f"{width}X {gbps:g} Gbps is no rate of InfiniBand that is known here")
        return None
    return Rate(width, speed)


def _links(page: _Page) -> list[FoundLink]:
    """Each link once; where its two ends do not agree the page is partial."""
    found = []
    for here, (there, rate, line) in page.told.items():
        back = page.told.get(there)
        if back is None or back[0] != here:
            page.doubt(line, f"port {here.number} of {here.guid} leads where nothing leads back")
        elif here <= there:
            found.append(FoundLink(here, there, rate))
    return found


def _kind(page: _Page, device: FoundDevice) -> FoundDevice:
    """A switch has several ports or, in its description, a chassis; an adapter answers for one port at a time."""
    switch = len(page.ports[device.guid]) > 1 or device.description.startswith("MF0;")
    return FoundDevice(device.guid, switch, device.description)
