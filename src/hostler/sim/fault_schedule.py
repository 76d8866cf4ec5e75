"""Failures to come, drawn before a world begins: whoever looks after the cluster meets the same faults."""

import random
from functools import partial

from msgspec import Struct

from hostler.sim.failure_rates import Rates
from hostler.sim.world.fault_kinds import COMPONENTS, KINDS, OTHER
from hostler.sim.world.world import World

Shares = tuple[tuple[str, float], ...]


class Strike(Struct, frozen=True):
    """A fault to come: seconds after the job's start, and at which of its places (0 to 1 of all of them).

    Places fail, not names: whoever has replaced a node meets the fault on the replacement.
    """

    at_s: float
    component: str
    kind: str
    cure: str
    place: float


def drawn(rates: Rates, nodes: int, days: float, seed: int) -> tuple[Strike, ...]:
    """The faults of so many nodes in so many days: a Poisson process, each place as likely as another."""
    chance = random.Random(f"{seed}/strikes")
    per_second, length_s = rates.per_second(nodes), days * 86_400
    components: Shares = tuple((share.component, share.share) for share in rates.shares)
    found: list[Strike] = []
    at_s = chance.expovariate(per_second)
    while at_s < length_s:
        component = pick(components, chance)
        kind = KINDS[pick(COMPONENTS.get(component, OTHER), chance)]
        found.append(Strike(at_s, component, kind.name, pick(kind.cures, chance), chance.random()))
        at_s += chance.expovariate(per_second)
    return tuple(found)


def befall(world: World, strikes: tuple[Strike, ...]) -> None:
    """Have them happen, counted from now, to the members that the job has then."""
    for strike in strikes:
        world.clock.after(strike.at_s, partial(_befalls, world, strike))


def _befalls(world: World, strike: Strike) -> None:
    world.strike(KINDS[strike.kind], strike.component, place_of(world, strike), strike.cure)


def place_of(world: World, strike: Strike) -> str:
    """The node that has the strike's place just now."""
    assert world.training is not None, "faults befall the places of a job"
    members = list(world.training.members)
    return members[int(strike.place * len(members))]


def pick(shares: Shares, chance: random.Random) -> str:
    """A name, as often as its share says."""
    return chance.choices([name for name, _ in shares], [share for _, share in shares])[0]
