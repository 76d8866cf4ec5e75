"""The SXid codes of NVSwitches: how grave each is, what it asks for, and the condition it is here.

Codes, classes and actions are the facts of NVIDIA's fabric manager guide; words and conditions are ours.
"""

from msgspec import Struct


class SxidEntry(Struct, frozen=True):
    """One code. `group` is the guide's chapter; `listed` is False where it has none and only drivers print it."""

    code: int
    group: str
    action: str
    severity: str
    condition: str
    meaning: str
    listed: bool = True


_FABRIC, _LINK = "nvswitch.fabric_fatal", "nvswitch.link_fatal"
_LOOK, _INFO = "nvswitch.investigate", "kernel_log.informational"
_GUEST = "RESTART_GUEST_VM"
_ALL = "RESTART_HOST_OR_RESET_ALL_GPUS_AND_NVSWITCHES"
_RESET = "RESET_ALL_GPUS_AND_NVSWITCHES"

_UNITS = {
    10: "host interface",
    11: "ingress",
    12: "egress",
    14: "tracking",
    15: "routing",
    19: "port buffers",
    20: "data link",
    22: "link controller",
    23: "buffer credits",
    24: "source tracking",
    26: "on-chip processor",
    28: "multicast",
}
"""The unit of the switch that the first two digits of a code name."""

_CORRECTED = "a single wrong bit was corrected"

_GROUPS: tuple[tuple[str, str, str, str, dict[int, str]], ...] = (
    (
        "fatal_potential",
        _GUEST,
        "fatal",
        _LINK,
        {
            11001: "an invalid command came in",
            11009: "a packet on a virtual channel that may not carry it",
            11013: "two wrong bits in a header",
            11018: "two wrong bits in the request routing table",
            11019: "two wrong bits in the lane routing table",
            11020: "control words of wrong parity",
            12001: "the crossbar's buffer overflowed",
            12002: "a packet was routed to where it may not go",
            12022: "two wrong bits on the way in",
            12024: "two wrong bits on the way out",
            12025: "more credits than there can be",
            12026: "a request for a destination that does not exist",
            12027: "a response for a destination that does not exist",
            12030: "control words of wrong parity",
            12031: "credits of wrong parity",
            12032: "a packet's pieces do not fit together",
            14017: "an answer did not come in time",
            15001: "a buffer ran over or empty",
            15006: "more transfers ended than began, or fewer",
            15009: "two wrong bits in the group table",
            15010: "routing words of wrong parity",
            15012: "two wrong bits in what came in",
            15013: "credits of wrong parity",
            19047: "two wrong bits in a header from the crossbar",
            19048: "two wrong bits in data from the crossbar",
            19054: "two wrong bits in header memory",
            19056: "two wrong bits in data memory 0",
            19058: "two wrong bits in data memory 1",
            19060: "two wrong bits in a coalesced request's header",
            19061: "two wrong bits in a coalesced request's data",
            19063: "two wrong bits in a response's header",
            19064: "two wrong bits in a response's data",
            19066: "two wrong bits in a common header",
            19067: "two wrong bits in common data",
            19069: "two wrong bits in a second response's header",
            19070: "two wrong bits in a second response's data",
            20034: "the link went down under traffic",
            24004: "two wrong bits in the first store",
            24005: "two wrong bits in the first store's tracking data",
            24006: "two wrong bits in the second store",
            24007: "a request was never answered",
        },
    ),
    (
        "fatal_potential",
        "CHECK_MECHANICALS",
        "fatal",
        _LINK,
        {22012: "the link is not answered: seating, cabling, or a peer that was shut down"},
    ),
    (
        "always_fatal",
        _ALL,
        "fatal",
        _FABRIC,
        {
            12020: "packets out of sequence",
            22003: "the controller halted",
            22011: "the controller met an external error",
            **dict.fromkeys((23001, 23010), "a source buffer overflowed"),
            **dict.fromkeys((23002, 23011), "a source buffer underflowed"),
            **dict.fromkeys((23003, 23012), "a destination's credits overflowed"),
            **dict.fromkeys((23004, 23013), "a destination's credits underflowed"),
            **dict.fromkeys((23005, 23014), "a burst of packets broke the rules"),
            **dict.fromkeys((23006, 23015), "a packet error that stays"),
            **dict.fromkeys((23007, 23016), "gaps in a stream that may have none"),
            23008: "a packet for a destination that does not exist",
            23009: "a packet of wrong parity",
            23017: "credits of wrong parity",
        },
    ),
    (
        "non_fatal",
        "IGNORE",
        "info",
        _INFO,
        {
            **dict.fromkeys((11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011), _CORRECTED),
            **dict.fromkeys((19049, 19055, 19057, 19059, 19062, 19065, 19068, 19071), _CORRECTED),
            **dict.fromkeys((24001, 24002, 24003), _CORRECTED),
            22013: "the link asked for a change of state",
        },
    ),
    (
        "non_fatal",
        "IGNORE",
        "warning",
        _LOOK,
        {20001: "packets were sent again; a rising rate means a link that wears out"},
    ),
    (
        "non_fatal",
        "AUDIT_FABRIC_ROUTING_THEN_RESTART_GUEST_VM",
        "fatal",
        _LINK,
        {11004: "a packet that its partition may not send: the partition's routing is wrong"},
    ),
    ("non_fatal", _GUEST, "fatal", _LINK, {12028: "a register access failed and traffic stalls"}),
    ("non_fatal", _RESET, "fatal", _FABRIC, {19084: "the heartbeat stopped, mostly beside another fatal code"}),
    (
        "non_fatal",
        "CHECK_MECHANICALS",
        "warning",
        _LOOK,
        {20012: "the two ends of the link disagree: seating, cabling, or a peer that was shut down"},
    ),
    (
        "notable",
        "INVESTIGATE",
        "warning",
        _LOOK,
        {
            10001: "a register access was refused; a graver code may follow",
            10002: "a register access was not answered; a graver code may follow",
            20009: "many short errors on the receiving side: the link's signal is weak",
        },
    ),
    ("notable", _RESET, "fatal", _LINK, {10003: "an interrupt that nobody handles"}),
    ("notable", "CHECK_COOLING", "warning", _LOOK, {10004: "the switch is hot and may slow its links"}),
    ("notable", "IGNORE", "info", _INFO, {10005: "the switch has cooled down"}),
    (
        "unlisted",
        "INVESTIGATE",
        "unknown",
        _LOOK,
        {
            12033: "details of another code",
            26006: "the processor halted",
            26007: "the processor met an external error",
            26008: "the processor's watchdog fired",
        },
    ),
    ("unlisted", "IGNORE", "info", _INFO, {28006: "an answer to a multicast did not come in time"}),
)
"""Codes of one chapter, action, severity and condition: code → what happened."""

SXIDS: dict[int, SxidEntry] = {
    code: SxidEntry(code, group, action, severity, condition, f"{_UNITS[code // 1000]}: {meaning}", group != "unlisted")
    for group, action, severity, condition, meanings in _GROUPS
    for code, meaning in meanings.items()
}
