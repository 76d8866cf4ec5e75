"""Looks that a notice of a subnet asks for: at its cables, its ports' counters, or its partitions.

A notice is a hint. It opens nothing and closes nothing; it only has what would be looked at anyway looked at sooner.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from hostler.core.state.subnets import NoticeOrigin, SubnetNotice


class HintedLook(StrEnum):
    """A look that a notice asks for."""

    cables = "cables"
    counters = "counters"
    partitions = "partitions"


TRAPS: Mapping[int, HintedLook] = {
    64: HintedLook.cables,  # GID in service
    65: HintedLook.cables,  # GID out of service
    128: HintedLook.cables,  # link state change
    129: HintedLook.counters,  # local link integrity threshold reached
    130: HintedLook.counters,  # excessive buffer overrun threshold reached
    131: HintedLook.counters,  # flow control update watchdog timer expired
    144: HintedLook.cables,  # capability mask, node description, width or speed, a manager's priority
    145: HintedLook.cables,  # system image GUID changed
    256: HintedLook.partitions,  # bad M_Key
    257: HintedLook.partitions,  # bad P_Key
    258: HintedLook.partitions,  # bad Q_Key
    259: HintedLook.partitions,  # bad P_Key at a switch's external port
}
"""Traps by their number: InfiniBand specification 1.4, 13.4.9 and 14.2.5.1, as opensm prints them."""

UFM_EVENTS: Mapping[int, HintedLook] = {
    64: HintedLook.cables,  # GID address out of service
    65: HintedLook.cables,  # GID address in service
    110: HintedLook.counters,  # symbol error
    112: HintedLook.counters,  # link downed
    113: HintedLook.counters,  # port receive errors
    328: HintedLook.cables,  # link is up
    329: HintedLook.cables,  # link is down
    331: HintedLook.cables,  # node is down
    332: HintedLook.cables,  # node is up
    702: HintedLook.counters,  # port is considered unhealthy
    907: HintedLook.cables,  # switch is down
    908: HintedLook.cables,  # switch is up
    917: HintedLook.counters,  # symbol bit error rate
    918: HintedLook.counters,  # symbol bit error rate warning
    1500: HintedLook.cables,  # new cable detected
    1502: HintedLook.cables,  # cable detected in a new location
}
"""UFM's events by their number, which is not always a trap's.

Numbers and meanings as imbue-ai/cluster-health, `ufm_events/find_problematic_events.py`, reads them in UFM's event log.
NVIDIA's own list is in the UFM Enterprise User Manual, "Supported Traps and Events", by alarm id.
"""


def asked_by(notices: Iterable[SubnetNotice]) -> frozenset[HintedLook]:
    """The looks that these notices ask for; a number that is not known asks for none."""
    table = {NoticeOrigin.manager: TRAPS, NoticeOrigin.ufm: UFM_EVENTS}
    return frozenset(look for one in notices if (look := table[one.origin].get(one.number)) is not None)
