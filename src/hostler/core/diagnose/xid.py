"""Reads the NVIDIA driver's Xid lines, in every form that drivers and loggers give them.

The form is `NVRM: Xid (PCI:dddd:bb:dd): code, pid=…, name=…, message`; "PCI:", function, MIG instance,
process and message may each be missing. The message's words are read only for codes where they matter.
"""

import re
from collections.abc import Callable

from msgspec.structs import replace

from hostler.core.diagnose import nvlink5
from hostler.core.diagnose.decoded import Decoded, Fact
from hostler.core.diagnose.line import LINE_LIMIT_CHARS, PCI, normal_pci, opens_line, printable, repeats
from hostler.core.diagnose.xid_catalog import XIDS, XidEntry

PREEMPTIVE_REMOVAL, DOUBLE_BIT, FALLEN_OFF_BUS, RECOVERY_CHANGED = 45, 48, 79, 154
REMAPS = (63, 64)
NVLINK5 = range(144, 151)
MEANINGFUL_REGISTERS = (0, 2, 3, 4)
"""Of the seven registers of Xid 74 the first, third, fourth and fifth tell causes apart."""

_XID = re.compile(
    rf"NVRM: {{0,4}}Xid {{0,4}}\((?:PCI:)?({PCI})(?: GPU-I:(\d{{1,4}}))?(?: GPU-CI:(\d{{1,4}}))?\): {{0,4}}"
    r"([0-9]{1,9})(?!\w)"
    r"(?:, {0,4}pid='?(?:([0-9]{1,10})\b|<unknown>)'?)?(?:, {0,4}name=([^,\r\n]{0,256}))?([^\r\n]*)",
    re.ASCII,
)
_FALLEN = re.compile(
    rf"NVRM: (?:The NVIDIA GPU|GPU at|GPU) (?:PCI:)?({PCI})(?!\w)"
    r"(?:(?!NVRM: (?:Xid|The|GPU))[^\0]){0,400}?fallen off the bus",
    re.ASCII,
)
_FALLEN_NAMELESS = re.compile(r"NVRM: fallen off the bus")
_CORE = re.compile(r"\(GPC ([0-9]{1,4}), TPC ([0-9]{1,4}), SM ([0-9]{1,4})\)", re.ASCII)
_CLUSTER = re.compile(r"\bENGINE [A-Z0-9_]{1,24} \(?GPC ?([0-9]{1,4})\b", re.ASCII)
_LINK = re.compile(r"\blink ([0-9]{1,3})\b(?: {0,2}\(([0-9a-fA-Fx, ]{1,200})\))?", re.ASCII)
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}", re.ASCII)
_RECOVERY = re.compile(r"changed from 0x[0-9a-fA-F]+ \(([^()]{1,64})\) to 0x[0-9a-fA-F]+ \(([^()]{1,64})\)")

_RECOVERIES = {
    "none": ("NONE", "info", "gpu.informational"),
    "gpu reset required": ("RESET_GPU", "gpu_reset", "gpu.reset_required"),
    "pf flr": ("RESET_GPU", "gpu_reset", "gpu.reset_required"),
    "node reboot required": ("RESTART_BM", "node_reboot", "gpu.reboot_required"),
    "os reboot": ("RESTART_BM", "node_reboot", "gpu.reboot_required"),
    "drain and reset": ("DRAIN_AND_RESET", "gpu_reset", "gpu.drain_and_reset"),
    "drain p2p": ("DRAIN_P2P", "manual", "gpu.xid_investigate"),
}
"""Recommendation of Xid 154, in the words of all drivers → action, severity, condition. Other words ask a person."""


def read(text: str) -> list[tuple[int, Decoded]]:
    """Every Xid of the text with its offset, and GPUs off the bus that no Xid 79 of the same text names."""
    found: list[tuple[int, Decoded]] = []
    if "Xid" in text:
        found = [(m.start(), _decoded(m)) for m in _XID.finditer(text) if opens_line(text, m.start())]
        found = _beside(found)
    if "fallen off the bus" in text:
        named = {decoded.pci for _, decoded in found if decoded.code == FALLEN_OFF_BUS}
        found += _fallen(text, named)
    return found


def _decoded(match: re.Match[str]) -> Decoded:
    address, instance, compute, number, pid, process, rest = match.groups()
    code, pci = int(number), normal_pci(address)
    facts: dict[str, Fact] = {}
    if instance:
        facts["gpu_instance"] = int(instance)
    if compute:
        facts["compute_instance"] = int(compute)
    if pid:
        facts["pid"] = int(pid)
    if process and (named := process.strip().strip("'")) != "<unknown>":
        facts["process"] = printable(named)
    entry = XIDS.get(code)
    line = printable(match[0][:LINE_LIMIT_CHARS])
    count = repeats(match.string, match.string.rfind("\n", 0, match.start()) + 1, match.start())
    if entry is None:
        text = f"Xid {code} on GPU {pci}: no catalogue lists this code"
        unknown = "unknown"
        return Decoded(
            "xid", "gpu.xid_unknown", text, "INVESTIGATE", code, False, pci, unknown, unknown, line, facts, count=count
        )
    action, severity, condition = entry.action, entry.severity, entry.condition
    details = _DETAILS.get(code) or _CATEGORY_DETAILS.get(entry.category)
    if details is not None:
        action, severity, condition = details(entry, rest, facts)
    if entry.investigate:
        facts.setdefault("investigatory", entry.investigate)
    text = f"Xid {code} on GPU {pci}: {entry.meaning}"
    ambiguous = _ambiguity(entry, action, facts)
    return Decoded(
        "xid",
        condition,
        text,
        action,
        code,
        True,
        pci,
        severity,
        entry.category,
        line,
        facts,
        count=count,
        ambiguous=ambiguous,
    )


def _ambiguity(entry: XidEntry, action: str, facts: dict[str, Fact]) -> str:
    """Why the line alone does not decide; "" where the catalogue does."""
    decoded = facts.get("decode")
    if decoded == nvlink5.TRUNCATED:
        return "the line ends before the words that tell its cause"
    if decoded == nvlink5.NO_RULE:
        return "the vendor's table has no row for these words"
    if action == nvlink5.LOOK and "*" in str(facts.get("nvlink_severity", "")):
        return "the vendor's table makes this severity conditional"
    if entry.code == RECOVERY_CHANGED and _recommended(facts) not in _RECOVERIES:
        return "the line does not say which recovery the driver recommends"
    if entry.code == PREEMPTIVE_REMOVAL:
        return "follows from another error, a kill or a reset, which the line does not name"
    return ""


def _beside(found: list[tuple[int, Decoded]]) -> list[tuple[int, Decoded]]:
    """Xid 48 of a GPU that recorded the bad row too (63, or 64 where it could not): the row's code says what to do."""
    rows: dict[str, tuple[str, ...]] = {}
    for _, one in found:
        if one.code in REMAPS and str(one.code) not in rows.get(one.pci, ()):
            rows[one.pci] = (*rows.get(one.pci, ()), str(one.code))
    return [
        (at, replace(one, facts={**one.facts, "beside": rows[one.pci]}))
        if one.code == DOUBLE_BIT and one.pci in rows
        else (at, one)
        for at, one in found
    ]


Answer = tuple[str, str, str]
"""Action, severity, condition: what a line's words make of its catalogue entry."""


def _as_listed(entry: XidEntry) -> Answer:
    return entry.action, entry.severity, entry.condition


def _program_fault(entry: XidEntry, rest: str, facts: dict[str, Fact]) -> Answer:
    if (core := _CORE.search(rest)) is not None:
        facts["gpc"], facts["tpc"], facts["sm"] = int(core[1]), int(core[2]), int(core[3])
    elif (cluster := _CLUSTER.search(rest)) is not None:
        facts["gpc"] = int(cluster[1])
    return _as_listed(entry)


def _double_bit(entry: XidEntry, _rest: str, facts: dict[str, Fact]) -> Answer:
    facts["action_solo"] = "RESET_GPU"
    return _as_listed(entry)


def _nvlink(entry: XidEntry, rest: str, facts: dict[str, Fact]) -> Answer:
    if (link := _LINK.search(rest)) is not None:
        facts["link"] = int(link[1])
        words = tuple(word.strip() for word in (link[2] or "").split(",") if word.strip())
        if words:
            facts["registers"] = words
        if bits := _register_bits(words):
            facts["register_bits"] = bits
    return _as_listed(entry)


def _register_bits(words: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Index of a register that says something → the bits that are set in it."""
    bits: dict[str, tuple[int, ...]] = {}
    for index in MEANINGFUL_REGISTERS:
        word = words[index] if index < len(words) else ""
        if _HEX.fullmatch(word) and (value := int(word, 16)):
            bits[str(index)] = tuple(bit for bit in range(value.bit_length()) if value >> bit & 1)
    return bits


def _recovery(entry: XidEntry, rest: str, facts: dict[str, Fact]) -> Answer:
    if (change := _RECOVERY.search(rest)) is not None:
        facts["recovery_from"], facts["recovery_to"] = printable(change[1]), printable(change[2])
    return _RECOVERIES.get(_recommended(facts), (nvlink5.LOOK, entry.severity, entry.condition))


def _recommended(facts: dict[str, Fact]) -> str:
    return str(facts.get("recovery_to", "")).strip().lower()


def _nvlink5(entry: XidEntry, rest: str, facts: dict[str, Fact]) -> Answer:
    reading = nvlink5.read(entry.code, rest)
    facts.update(reading.facts)
    return reading.action, reading.severity or entry.severity, reading.condition or entry.condition


_DETAILS: dict[int, Callable[[XidEntry, str, dict[str, Fact]], Answer]] = {
    48: _double_bit,
    74: _nvlink,
    154: _recovery,
    **dict.fromkeys(range(144, 151), _nvlink5),
}
_CATEGORY_DETAILS = {"app_or_channel": _program_fault}


def _fallen(text: str, named: set[str]) -> list[tuple[int, Decoded]]:
    """The driver's other sentence for it, printed when it meets the GPU again; counted once per GPU."""
    found: list[tuple[int, Decoded]] = []
    for match in _FALLEN.finditer(text):
        pci = normal_pci(match[1])
        if pci not in named and opens_line(text, match.start()):
            named.add(pci)
            found.append((match.start(), _off_bus(pci, match[0])))
    if not named:
        nameless = _FALLEN_NAMELESS.search(text)
        if nameless is not None and opens_line(text, nameless.start()):
            found.append((nameless.start(), _off_bus("", nameless[0])))
    return found


def _off_bus(pci: str, line: str) -> Decoded:
    """Without an address nobody is convicted: the Xid 79 that comes with it names the GPU."""
    entry = XIDS[FALLEN_OFF_BUS]
    return Decoded(
        "gpu_fallen_off_bus",
        entry.condition if pci else "gpu.driver_investigate",
        f"GPU {pci or '(address not given)'}: {entry.meaning}",
        entry.action,
        entry.code,
        True,
        pci,
        entry.severity,
        entry.category,
        printable(line[:LINE_LIMIT_CHARS]),
        {"xid_implied": True, "investigatory": entry.investigate},
        ambiguous="" if pci else "the line does not name the GPU",
    )
