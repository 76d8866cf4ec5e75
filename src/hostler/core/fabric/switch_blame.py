"""Faults of many links that one switch explains: told as one fault of the switch, and not as one of each link."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from hostler.core.fabric.design import Cable, Port
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, PortReading, switch_key

LEAST = 3
"""Fewer links that fail the same check at one switch are as many faults of their own."""
SHARE = 0.5
"""Of the switch's links that were read so many must fail the check where it is the switch that fails."""

_SHARED = frozenset({LinkCheck.down, LinkCheck.flaps, LinkCheck.bit_errors, LinkCheck.power, LinkCheck.temperature})
"""Checks that a switch can make all of its links fail; an EEPROM, optics and firmware are of each module."""


def joined(
    faults: Iterable[LinkFault],
    cables: Iterable[Cable],
    readings: Mapping[Port, PortReading],
    is_switch: Callable[[str], bool],
) -> list[LinkFault]:
    """The faults, those that a switch explains as the switch's; of two switches the one that explains more."""
    left = list(faults)
    told: list[LinkFault] = []
    for check in sorted({f.check for f in left if f.grade is LinkGrade.act} & _SHARED):
        heard = links_heard(cables, readings, check)
        while (blamed := _most(left, check, heard, is_switch)) is not None:
            switch, mine = blamed
            told.append(_of_switch(switch, mine, heard[switch]))
            left = [fault for fault in left if fault not in mine]
    return [*left, *told]


def links_heard(cables: Iterable[Cable], readings: Mapping[Port, PortReading], check: LinkCheck) -> Counter[str]:
    """Device → how many of its links were read by somebody who would say whether they fail this check."""
    found: Counter[str] = Counter()
    for cable in cables:
        told = [readings[port] for port in (cable.a, cable.z) if port in readings]
        if any(reading.state for reading in told) if check is LinkCheck.down else told:
            found.update((cable.a.device, cable.z.device))
    return found


def _most(
    faults: list[LinkFault], check: LinkCheck, heard: Mapping[str, int], is_switch: Callable[[str], bool]
) -> tuple[str, list[LinkFault]] | None:
    """The switch at which most links fail the check, with their faults; None where none explains enough."""
    at: defaultdict[str, list[LinkFault]] = defaultdict(list)
    for fault in faults:
        if fault.check is check and fault.grade is LinkGrade.act:
            for device in {port.rpartition(":")[0] for port in (fault.a, fault.z)}:
                at[device].append(fault)
    enough = [
        name for name, mine in at.items() if is_switch(name) and len(mine) >= max(LEAST, SHARE * heard.get(name, 0))
    ]
    if not enough:
        return None
    switch = min(enough, key=lambda name: (-len(at[name]), name))
    return switch, at[switch]


def _of_switch(switch: str, faults: list[LinkFault], heard: int) -> LinkFault:
    first = min(faults, key=lambda fault: fault.key)
    text = f"{len(faults)} of its {heard} links that were read show the same: {first.text}"[:300]
    links = tuple(sorted(fault.key for fault in faults))
    return LinkFault(switch_key(switch).rstrip("|"), "", first.check, LinkGrade.act, text, (), links)
