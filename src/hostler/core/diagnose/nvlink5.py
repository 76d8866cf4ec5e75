"""Reads what NVLink 5 says in Xid 144 to 150: unit, severity, link, and the words that tell causes apart.

The first word (IntrInfo) holds the reason in bits 25 to 20 and the unit in its low bits, which differ between
two driver layouts, V1 and V2; the second is the error status. Facts from NVIDIA's NVLink 5 decoding table
(docs.nvidia.com/deploy/xid-errors, "XID 144-150 Decode"). Where the table has no row, or its severity is conditional
and the line does not settle it, a person looks: the driver's own advice follows in Xid 154, and nobody is disturbed on
a guess.

The fact `decode` lists the layouts under which the words match a row. Where none does it is a word: `truncated` (the
line ends before both words are whole) or `no_rule` (the table has no row for what the line says).
"""

import re

from msgspec import Struct

from hostler.core.diagnose.decoded import Fact

_LINE = re.compile(
    r", {0,4}([A-Z][A-Z0-9_/]*(?: Degraded)?) +(Fatal|Non-?[Ff]atal) +XC\d{1,2} +i(\d) +"
    r"Link +(-?\d{1,3})(?: *\((0x[0-9a-fA-F]{1,8})(?= |\))(?: +(0x[0-9a-fA-F]{1,8})(?= |\)))?)?",
    re.ASCII,
)
"""A word counts only where something follows it: the last one of a line that was cut off may lack digits."""

_BEGUN = re.compile(
    r"(?:, {0,4}(?:[A-Z][A-Z0-9_/]{0,63}(?: Degraded)?"
    r"(?: +[FN][A-Za-z-]{0,8}(?: +X[C\d]{0,3}(?: +i\d?(?: +L[ink]{0,3}(?: +-?)?)?)?)?)?)?)?[ ,]{0,8}",
    re.ASCII,
)
"""Pattern of a line that was cut off before its link's number, from the code on."""

TRUNCATED, NO_RULE = "truncated", "no_rule"

RESET, IGNORE, EVAL, LOOK = "RESET_GPU", "IGNORE", "XID_154_EVAL", "INVESTIGATE"
_LOOKED_AT = "gpu.xid_investigate"
_ASK = "CONTACT_SUPPORT"
_FLOW = "CHECK_NVLINK_FAILURE_FLOW"
_SIGNAL = "INVESTIGATE_LINK_SI"
_CABLES = "INVESTIGATE_LINK_SI_AND_CABLES"
_PEER = "INVESTIGATE_PEER_DEVICE"
_USER = "INVESTIGATE_SW_USER"


class Nvlink5Cause(Struct, frozen=True):
    """Action for an error status (or reason). `escalated`: the action if the escalation bit is set."""

    action: str
    investigate: str
    severity: str
    escalated: str = ""


class Unit(Struct, frozen=True):
    """A unit of one Xid. `v1` and `v2` are its number in the low 10 and 7 bits of IntrInfo.

    `by_status` is asked where `by_reason` is empty; a sum of its values has no row and is looked at.
    `by_reason` answers whatever the status.
    """

    xid: int
    names: tuple[str, ...]
    v1: int
    v2: int
    by_status: dict[int, Nvlink5Cause] = {}
    by_reason: dict[int, Nvlink5Cause] = {}


class Nvlink5Reading(Struct, frozen=True):
    """Content of a line; `action` is INVESTIGATE where the table has no row for its words, or doubts its own."""

    action: str
    severity: str
    condition: str
    facts: dict[str, Fact]


_NOISE = Nvlink5Cause(IGNORE, IGNORE, "Non-fatal")
_REPORT = Nvlink5Cause(IGNORE, _ASK, "Non-fatal")
_FATAL = Nvlink5Cause(RESET, _ASK, "Fatal")
_SOFTWARE = {0x8000_0000: _REPORT}
_RX_PIPE = Nvlink5Cause(IGNORE, _ASK, "Non-fatal*", escalated=RESET)
_TRANSLATION = Nvlink5Cause(EVAL, _FLOW, "Non-fatal")
_FABRIC = Nvlink5Cause(EVAL, _ASK, "Non-fatal")
_TIMEOUT = Nvlink5Cause(EVAL, IGNORE, "Non-fatal")
_BIT_ERRORS = Nvlink5Cause(IGNORE, _CABLES, "Non-fatal")
_FIRMWARE = Nvlink5Cause(RESET, _ASK, "Fatal**")
_SAW = {0x01: _REPORT, 0x02: _FATAL, 0x04: _NOISE, 0x08: _REPORT, 0x10: _FATAL, 0x20: _NOISE}
_TLW = {0x1: _NOISE, 0x2: _REPORT, 0x4: _FATAL, **_SOFTWARE}


def _down(investigate: str, action: str = RESET, severity: str = "Link Fatal") -> Nvlink5Cause:
    return Nvlink5Cause(action, investigate, severity)


_LINK_DOWN = {
    0x00: _down("SYMPATHETIC_REPORT_SOLO"),
    0x01: _down("REPORT_ISSUE (if seen >1 per day)"),
    0x02: _down(_SIGNAL),
    0x04: _down(_SIGNAL),
    0x0A: _down(_SIGNAL),
    0x0F: _down(_USER),
    0x10: _down("INVESTIGATE_SW_USER_LINK_SI"),
    0x11: _down(_USER),
    0x12: _down("INVESTIGATE_SW_USER_LINK_SI"),
    0x15: _down(_PEER),
    0x16: _down(_USER),
    **dict.fromkeys((0x20, 0x21, 0x22, 0x23, 0x24, 0x25), _down(_PEER)),
    0x26: _down("INVESTIGATE_SW/USER", IGNORE),
    0x28: _down("INVESTIGATE_HOST", IGNORE, "Fatal"),
    0x2A: _down(_CABLES, severity="Link Fatal?"),
    0x2B: _down(_CABLES, severity="Link Fatal?"),
}
"""Reasons for which a link goes down."""

UNITS = (
    Unit(144, ("SAW_MVB",), 0b00_0010_0001, 0b000_0001, _SAW),
    Unit(145, ("RLW_CTRL",), 0b00_0110_0010, 0b000_0011, _SOFTWARE),
    Unit(
        145,
        ("RLW_REMAP",),
        0b00_1000_0010,
        0b000_0100,
        {
            **dict.fromkeys((0x1, 0x2), _FABRIC),
            **dict.fromkeys((0x4, 0x8, 0x10, 0x20), _TRANSLATION),
            **dict.fromkeys((0x40, 0x80), _FATAL),
            **dict.fromkeys((0x100, 0x200), _NOISE),
            **_SOFTWARE,
        },
    ),
    Unit(145, ("RLW_RSPCOL",), 0b00_1010_0010, 0b000_0101, {0x1: _NOISE, 0x2: _FATAL, **_SOFTWARE}),
    Unit(
        145,
        ("RLW_RXPIPE",),
        0b00_1100_0010,
        0b000_0110,
        {**dict.fromkeys((0x1, 0x2, 0x4), _RX_PIPE), 0x8: _REPORT, **_SOFTWARE},
    ),
    Unit(
        145,
        ("RLW_SRC_TRACK",),
        0b00_1110_0010,
        0b000_0111,
        {
            **dict.fromkeys((0x1, 0x10, 0x20), _FATAL),
            0x2: _NOISE,
            **dict.fromkeys((0x4, 0x8), _TIMEOUT),
            **_SOFTWARE,
        },
    ),
    Unit(
        145,
        ("RLW_TAGSTATE",),
        0b01_0000_0010,
        0b000_1000,
        {
            **dict.fromkeys((0x1, 0x1_0000), _NOISE),
            **dict.fromkeys((0x2, 0x2_0000, 0x10_0000), _FATAL),
            **_SOFTWARE,
        },
    ),
    Unit(146, ("TLW_CTRL",), 0b01_0010_0011, 0b000_1001, _TLW),
    Unit(146, ("TLW_RX", "TLW_RX_PIPE0"), 0b01_0100_0011, 0b000_1010, _TLW),
    Unit(146, ("TLW_RX", "TLW_RX_PIPE1"), 0b01_0100_0011, 0b000_1011, _TLW),
    Unit(146, ("TLW_TX", "TLW_TX_PIPE0"), 0b01_0110_0011, 0b000_1100, _TLW),
    Unit(146, ("TLW_TX", "TLW_TX_PIPE1"), 0b01_0110_0011, 0b000_1101, _TLW),
    Unit(147, ("TREX",), 0b01_1000_0100, 0b000_1110, {0x1: _REPORT, **_SOFTWARE}),
    Unit(148, ("NVLPW_CTRL", "NVLPW"), 0b00_0000_0101, 0b000_1111, _SOFTWARE),
    Unit(
        149,
        ("NETIR", "NETIR_INT"),
        0b00_0000_0110,
        0b001_1000,
        by_reason={0: _down("SYMPATHETIC_REPORT_SOLO")},
    ),
    Unit(149, ("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 0b01_1100_0110, 0b001_0001, by_reason=_LINK_DOWN),
    Unit(
        149,
        ("NETIR_BER_EVENT",),
        0b10_0010_0110,
        0b001_0011,
        dict.fromkeys(range(4), _BIT_ERRORS),
    ),
    Unit(
        149,
        ("NETIR_MFDE_EVENT",),
        0b10_0100_0110,
        0b001_0100,
        {**dict.fromkeys((0x1, 0x4, 0x5, 0x7), _FIRMWARE), 0x3: _NOISE},
    ),
    Unit(150, ("MSE DEGRADED",), 0, 0, dict.fromkeys((0, 0xFFFF_FFFF), _FATAL)),
    Unit(150, ("MSE_WATCHDOG",), 0, 0, {0: _FATAL}),
)

_OF_XID = {xid: tuple(unit for unit in UNITS if unit.xid == xid) for xid in range(144, 151)}
_SEVERITIES = {RESET: "gpu_reset", IGNORE: "info", EVAL: "from_xid154", LOOK: "decode"}
_ORDER = (RESET, EVAL, LOOK, IGNORE)
"""Gravest first: where the layouts disagree, the graver answer stands."""

_ESCALATED = {"V1": 1 << 10, "V2": 1 << 7}


def read(xid: int, rest: str) -> Nvlink5Reading:
    """Read the text after the code of an Xid 144 to 150. `condition` is "" where the line is not of their form."""
    match = _LINE.search(rest)
    if match is None:
        return Nvlink5Reading(LOOK, "", "", {"decode": TRUNCATED if _BEGUN.fullmatch(rest.rstrip()) else NO_RULE})
    word, severity, injected, link, info_word, status_word = match.groups()
    facts: dict[str, Fact] = {
        "subcode": word,
        "line_severity": severity,
        "link": int(link),
        "injected": injected != "0",
    }
    if info_word is None or status_word is None:
        return Nvlink5Reading(LOOK, "decode", _LOOKED_AT, {**facts, "decode": TRUNCATED})
    info, status = int(info_word, 16), int(status_word, 16)
    facts |= {"intrinfo": info_word, "reason": info >> 20 & 0x3F, "error_status": status_word}
    causes = [(*row, _action(row, info, severity)) for row in _causes(xid, word, info, status)]
    if not causes:
        return Nvlink5Reading(LOOK, "decode", _LOOKED_AT, {**facts, "decode": NO_RULE})
    layouts = tuple(dict.fromkeys(layout for layout, _, _, _ in causes))
    _, unit, cause, action = min(causes, key=lambda row: _ORDER.index(row[3]))
    facts |= {
        "unit": "/".join(unit.names),
        "decode": layouts,
        "nvlink_severity": cause.severity,
        "investigatory": cause.investigate,
    }
    return Nvlink5Reading(action, _SEVERITIES[action], _condition(action, cause.investigate), facts)


_Row = tuple[str, Unit, Nvlink5Cause]


def _causes(xid: int, word: str, info: int, status: int) -> list[_Row]:
    """(layout, unit, cause) for each row of the table that these words match."""
    names = set(word.upper().split("/"))
    found: list[_Row] = []
    for unit in _OF_XID.get(xid, ()):
        if names.isdisjoint(unit.names):
            continue
        for layout, low, number in (("V1", info & 0x3FF, unit.v1), ("V2", info & 0x7F, unit.v2)):
            if low == number:
                found += [(layout, unit, cause) for cause in _of_unit(unit, info >> 20 & 0x3F, status)]
    return found


def _action(row: _Row, info: int, line_severity: str) -> str:
    """Choose the row's action, given what the line leaves open.

    The table's notes: `*` is an error that may be promoted, which the escalation bit says; `**` is generally fatal,
    and the line's own severity says whether it was. What neither settles is looked at.
    """
    layout, _, cause = row
    if cause.escalated and info & _ESCALATED[layout]:
        return cause.escalated
    if cause.severity.endswith("**"):
        return cause.action if line_severity == "Fatal" else LOOK
    return LOOK if cause.severity.endswith("*") else cause.action


def _of_unit(unit: Unit, reason: int, status: int) -> list[Nvlink5Cause]:
    if unit.by_reason:
        return [unit.by_reason[reason]] if reason in unit.by_reason else []
    if reason:
        return []
    return [unit.by_status[status]] if status in unit.by_status else []


def _condition(action: str, investigate: str) -> str:
    if action == RESET:
        return "gpu.nvlink_error"
    return "gpu.informational" if investigate == IGNORE and action == IGNORE else _LOOKED_AT
