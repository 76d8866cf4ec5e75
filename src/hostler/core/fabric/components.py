"""Differences between design and reality, port by port: the parts that have nothing to do with each other.

Both are matchings on ports, so each port has one designed and one found neighbour at most, and what differs falls
apart into paths and cycles along which designed and found cables take turns. Each of them is a repair of its own; no
fewer will do.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from hostler.core.fabric.design import Port
from hostler.core.fabric.findings import Move, Repair

Matching = Mapping[Port, Port]
"""Each port's neighbour; symmetric."""


class Component(Struct, frozen=True):
    """Ports along the way. Between `ports[i]` and the next lies a designed cable, or a found one; they take turns.

    `designed_first`: the first one is designed. `closed`: the last port is joined to the first again. The smallest
    possible description of each: which end or way round it was met from makes no difference.
    """

    ports: tuple[Port, ...]
    designed_first: bool
    closed: bool = False

    @property
    def designed(self) -> tuple[tuple[Port, Port], ...]:
        """Cables that should be there."""
        return self._every(start=0 if self.designed_first else 1)

    @property
    def found(self) -> tuple[tuple[Port, Port], ...]:
        """Cables that should not."""
        return self._every(start=1 if self.designed_first else 0)

    def _every(self, start: int) -> tuple[tuple[Port, Port], ...]:
        edges = len(self.ports) if self.closed else len(self.ports) - 1
        return tuple((self.ports[i], self.ports[(i + 1) % len(self.ports)]) for i in range(start, edges, 2))


def components(designed: Matching, found: Matching) -> Iterator[Component]:
    """Components in which the two differ, by their smallest port."""
    off = sorted(
        {port for port, at in designed.items() if found.get(port) != at}
        | {port for port, at in found.items() if designed.get(port) != at}
    )
    done: set[Port] = set()
    for port in off:
        if port in done:
            continue
        way = _component(port, designed, found)
        done.update(way.ports)
        yield way


def _component(start: Port, designed: Matching, found: Matching) -> Component:
    """The one in which the smallest port `start` lies."""
    ahead, closed = _walk(start, designed, found)
    if closed:
        return Component(tuple(ahead), designed_first=True, closed=True)
    behind, _ = _walk(start, found, designed)
    ports = (*reversed(behind[1:]), *ahead)
    first_is_designed = (len(behind) - 1) % 2 == 0
    if ports[-1] < ports[0]:
        edges = len(ports) - 1
        first_is_designed = first_is_designed if edges % 2 else not first_is_designed
        ports = tuple(reversed(ports))
    return Component(ports, first_is_designed)


def _walk(start: Port, first: Matching, second: Matching) -> tuple[list[Port], bool]:
    """From `start` along `first`, then `second`, and so on; True where the way comes back to where it began."""
    ports, turn, other = [start], first, second
    while (after := turn.get(ports[-1])) is not None and other.get(ports[-1]) != after:
        if after == start:
            return ports, True
        ports.append(after)
        turn, other = other, turn
    return ports, False


def repair(way: Component, places: Mapping[str, str]) -> Repair:
    """The fewest acts that make it as designed, and among those the ones that lie in one device, or else one rack.

    `places`: the rack of each device.
    """
    choices = [_fitted(way, step) for step in (1, -1)]
    return min(choices, key=lambda choice: _effort(choice, places))


def _effort(choice: Repair, places: Mapping[str, str]) -> tuple[object, ...]:
    at = [port for move in choice.moves for port in (move.source, move.target)]
    return (
        len(choice.lay) + len(choice.remove),
        len({port.device for port in at}),
        len({places.get(port.device, "") for port in at}),
        choice.moves,
    )


def _fitted(way: Component, step: int) -> Repair:
    """Each found cable becomes the designed one before it (`step` -1) or after it (1): one of its plugs moves there."""
    ports, count = way.ports, len(way.ports)
    edges = count if way.closed else count - 1
    moves: list[Move] = []
    fitted: set[int] = set()
    remove: list[tuple[Port, Port]] = []
    for i in range(1 if way.designed_first else 0, edges, 2):
        near, far = ports[i], ports[(i + 1) % count]
        goal = (i + step) % count if way.closed else i + step
        if not 0 <= goal < edges:
            remove.append((near, far))
            continue
        fitted.add(goal)
        if step == 1:
            moves.append(Move(near, ports[(goal + 1) % count], far))
        else:
            moves.append(Move(far, ports[goal], near))
    goals = range(0 if way.designed_first else 1, edges, 2)
    lay = [(ports[i], ports[(i + 1) % count]) for i in goals if i not in fitted]
    return Repair(tuple(sorted(moves)), tuple(lay), tuple(remove))
