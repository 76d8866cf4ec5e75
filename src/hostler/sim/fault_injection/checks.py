"""Injects faults of checks: agents that lack one, or answer without a verdict, late or never; some for good."""

from random import Random

from hostler.agent.node_operations import PROFILES
from hostler.sim.fault_injection.injection import InjectionContext

HOUR_S = 3600.0
WORDS = ("inconclusive", "stale", "never_verified", "unreadable")
ASKED = tuple(sorted(PROFILES - {"idle"}))
"""Profiles that an agent is asked for."""
FOR_GOOD = 0.3
"""Share of agents that stay as they are when the world is healed: no check is added by waiting."""


def lacking(injection: InjectionContext, node: str, chance: Random) -> None:
    """An agent of a version that has no such check begins on the node."""
    host, profile = injection.host(node), chance.choice(ASKED)
    lasts_s, for_good = chance.uniform(HOUR_S, 12 * HOUR_S), chance.random() < FOR_GOOD

    def upgraded() -> None:
        host.lacks.pop(profile, None)
        host.greet()

    host.lacks[profile] = None
    host.greet()
    if not for_good:
        injection.lasts(lasts_s, upgraded)


def says_nothing(injection: InjectionContext, node: str, chance: Random) -> None:
    """The check's harness breaks: its word is none that convicts or clears."""
    host, profile = injection.host(node), chance.choice(ASKED)
    host.says_nothing[profile] = chance.choice(WORDS)
    lasts_s, for_good = chance.uniform(HOUR_S, 12 * HOUR_S), chance.random() < FOR_GOOD
    if not for_good:
        injection.lasts(lasts_s, lambda: _forget(host.says_nothing, profile))


def mute(injection: InjectionContext, node: str, chance: Random) -> None:
    """The check is taken on, and its answer never arrives."""
    host, profile = injection.host(node), chance.choice(ASKED)
    host.mute_on[profile] = None
    injection.lasts(chance.uniform(HOUR_S, 12 * HOUR_S), lambda: _forget(host.mute_on, profile))


def _forget(kept: dict[str, str] | dict[str, None], profile: str) -> None:
    kept.pop(profile, None)
