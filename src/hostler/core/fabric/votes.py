"""Devices that stand in each other's place: their cables are right, their names are not.

Each link of a device says whose link it would be by design. Where three quarters of a device's links name one other
device, and those who are named so are among themselves, the devices have changed places. A host votes with all its
adapters.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from hostler.core.fabric.components import Matching
from hostler.core.fabric.design import Port

SHARE = 0.75
"""Of a device's links, so many name who it stands for: a device that has a few wrong cables besides is still found."""

LEAST_LINKS = 2
"""One link alone says nothing: a cable in the wrong port looks the same."""

_MOST_ROUNDS = 4
"""A device whose neighbours have changed places too is understood once they are; nests deeper than this are none."""


def standing_for(designed: Matching, found: Matching, absent: frozenset[str]) -> dict[str, str]:
    """Find devices in another's place. `absent`: devices of the design not seen, whose place may be taken."""
    whole: dict[str, str] = {}
    for _ in range(_MOST_ROUNDS):
        at = in_place(whole)
        swaps = _closed(_named(designed, {at(a): at(z) for a, z in found.items()}), absent - frozenset(whole.values()))
        if not swaps:
            break
        whole = _after(whole, swaps)
    return {device: place for device, place in whole.items() if device != place}


def in_place(places: Mapping[str, str]) -> Callable[[Port], Port]:
    """Each port by the name of the device whose place its own device has taken."""

    def at(port: Port) -> Port:
        place = places.get(port.device)
        return port if place is None else Port(place, port.port)

    return at


def _named(designed: Matching, found: Matching) -> dict[str, str]:
    """Each device that most of its links name another for."""
    suspects = {port.device for port, at in found.items() if designed.get(port) != at}
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    links: Counter[str] = Counter()
    for port, at in found.items():
        if port.device not in suspects:
            continue
        links[port.device] += 1
        if (wanted := designed.get(at)) is not None and wanted.port == port.port:
            votes[port.device][wanted.device] += 1
    named = {}
    for device, counted in votes.items():
        place, count = max(counted.items(), key=lambda one: (one[1], one[0]))
        if place != device and count >= LEAST_LINKS and count >= SHARE * links[device]:
            named[device] = place
    return named


def _closed(named: Mapping[str, str], absent: frozenset[str]) -> dict[str, str]:
    """Of these, who change places among themselves, or take the place of one that is absent: nobody is put out."""
    kept = {device: place for device, place in named.items() if place in named or place in absent}
    while True:
        heirs = Counter(kept.values())
        still = {
            device: place for device, place in kept.items() if heirs[place] == 1 and (place in kept or place in absent)
        }
        if len(still) == len(kept):
            return still
        kept = still


def _after(whole: Mapping[str, str], swaps: Mapping[str, str]) -> dict[str, str]:
    """Apply both one after the other: `swaps` speaks of devices by the names that `whole` gave them."""
    backwards = {place: device for device, place in whole.items()}
    joined = dict(whole)
    for device, place in swaps.items():
        joined[backwards.get(device, device)] = place
    return joined
