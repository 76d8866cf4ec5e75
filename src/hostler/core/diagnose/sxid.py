"""Reads the NVSwitch driver's SXid lines.

The form is `nvidia-nvswitchN: SXid (PCI:dddd:bb:dd.f): code, Fatal, Link NN message`. Further lines of a report repeat
its code and carry data words or a severity instead; they are marked as continuations.
"""

import re
from collections.abc import Iterator

from hostler.core.diagnose.decoded import Decoded, Fact
from hostler.core.diagnose.line import LINE_LIMIT_CHARS, PCI, line_at, lines_with, normal_pci, printable
from hostler.core.diagnose.sxid_catalog import SXIDS, SxidEntry

_SXID = re.compile(
    rf"nvidia-nvswitch(?P<switch>\d{{1,4}}): {{1,4}}SXid {{0,4}}\((?:PCI:)?(?P<pci>{PCI})\): {{0,4}}"
    r"(?P<code>\d{1,9})(?!\w)"
    r"(?:, {0,4}(?P<rest>[^\r\n]{0,2000}))?",
    re.ASCII,
)
_WORDS = re.compile(r"(Fatal|Non-?[Ff]atal)\b,? ?")
_LINK = re.compile(r"\bLink {1,4}(\d{1,4})\b", re.ASCII)
_CONTINUES = re.compile(r"(?:Data ?[\[{(]|Severity \d|Engine instance|data\[\d+\] ?=)", re.ASCII)


def read(text: str) -> Iterator[tuple[int, Decoded]]:
    """Every SXid of the text with its offset."""
    for at in lines_with(text, "SXid"):
        line = line_at(text, at)
        if found := _SXID.match(line.message):
            yield line.offset, _decoded(found, line.count)


def _decoded(found: re.Match[str], count: int) -> Decoded:
    code, pci, rest = int(found["code"]), normal_pci(found["pci"]), found["rest"] or ""
    facts: dict[str, Fact] = {"switch": int(found["switch"])}
    if word := _WORDS.match(rest):
        facts["line_severity"] = word[1]
    if link := _LINK.search(rest):
        facts["link"] = int(link[1])
    if _CONTINUES.match(rest):
        facts["continuation"] = True
    line = printable(found[0][:LINE_LIMIT_CHARS])
    entry = SXIDS.get(code)
    if entry is None:
        text = f"SXid {code} of NVSwitch {pci}: no catalogue lists this code"
        return Decoded(
            "sxid",
            "nvswitch.unknown",
            text,
            "INVESTIGATE",
            code,
            False,
            pci,
            "unknown",
            "unknown",
            line,
            facts,
            count=count,
        )
    condition, ambiguous = _weighed(entry, facts)
    text = f"SXid {code} of NVSwitch {pci}: {entry.meaning}"
    category = f"nvswitch_{entry.group}"
    return Decoded(
        "sxid",
        condition,
        text,
        entry.action,
        code,
        entry.listed,
        pci,
        entry.severity,
        category,
        line,
        facts,
        count=count,
        ambiguous=ambiguous,
    )


def _weighed(entry: SxidEntry, facts: dict[str, Fact]) -> tuple[str, str]:
    """A code that may be fatal, on a line that does not say it is, is looked at and nobody is disturbed for it."""
    if entry.group != "fatal_potential" or facts.get("line_severity") == "Fatal":
        return entry.condition, ""
    if "line_severity" in facts:
        return "nvswitch.investigate", "the catalogue fears the code, the driver calls this one non-fatal"
    return "nvswitch.investigate", "the code may be fatal or not, and the line does not say which"
