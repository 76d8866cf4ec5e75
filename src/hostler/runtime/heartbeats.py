"""Heartbeats: nodes heard and nodes silent. Memory only: the crossing alone becomes an input."""

from collections import OrderedDict
from datetime import datetime, timedelta

from hostler.core.state.live_state import NOTHING_SAID, AgentAbilities

AT_ONCE = 500
"""Silent nodes told in one batch; a thousand a second where nothing else is to be decided."""
KINDS_SHARED = 256
"""Sets of operations that agents tell: those of one release are one value for a fleet, others are kept one by one."""


class HeartbeatTable:
    """Last heard per node, oldest first, so that asking for the silent costs what is found."""

    def __init__(self) -> None:
        self._heard: OrderedDict[str, datetime] = OrderedDict()
        self._silent: dict[str, datetime] = {}
        self._unheard: set[str] = set()
        self._boots: dict[str, str] = {}
        self._said: dict[str, AgentAbilities] = {}
        self._shared: dict[AgentAbilities, AgentAbilities] = {}

    def begin(self, node_ids: list[str], now: datetime) -> None:
        """After a start nobody is silent yet: each gets one full interval."""
        for node_id in node_ids:
            if node_id not in self._heard and node_id not in self._silent:
                self._unheard.add(node_id)
            self._heard.setdefault(node_id, now)

    def begin_anew(self, now: datetime) -> None:
        """Start anew after a while without listening: each gets a full interval, every next heartbeat is news."""
        self._heard = OrderedDict.fromkeys([*self._heard, *self._silent], now)
        self._unheard = set(self._heard)
        self._silent.clear()
        self._boots.clear()

    def beat(self, node_id: str, boot_id: str, now: datetime, said: AgentAbilities = NOTHING_SAID) -> bool:
        """Note a heartbeat; whether it tells something new (first, after silence, another boot, other abilities)."""
        new = node_id in self._silent or self._boots.get(node_id) != boot_id
        new = self._says_news(node_id, said) or new
        self._silent.pop(node_id, None)
        self._unheard.discard(node_id)
        self._boots[node_id] = boot_id
        self._heard[node_id] = now
        self._heard.move_to_end(node_id)
        return new

    def overdue(self, now: datetime, limit_s: float) -> list[tuple[str, datetime]]:
        """Nodes that have passed the limit, each once, with when they were last heard; the longest silent first.

        No more than AT_ONCE: where a whole fleet falls silent, other things are decided in between.
        """
        found: list[tuple[str, datetime]] = []
        limit = now - timedelta(seconds=limit_s)
        while self._heard and len(found) < AT_ONCE:
            node_id, at = next(iter(self._heard.items()))
            if at > limit:
                break
            del self._heard[node_id]
            self._silent[node_id] = at
            self._boots.pop(node_id, None)
            found.append((node_id, at))
        return found

    def renew(self, node_id: str) -> None:
        """The node's power was cut: its next heartbeat is news whatever it says."""
        self._boots.pop(node_id, None)

    def _says_news(self, node_id: str, said: AgentAbilities) -> bool:
        """Note what the agent says that it can; whether that is news. What it leaves out now stays as it was told."""
        known = self._said.get(node_id, NOTHING_SAID)
        profiles = known.profiles if said.profiles is None else said.profiles
        verbs = known.verbs if said.verbs is None else said.verbs
        if (profiles, verbs) == (known.profiles, known.verbs):
            return False
        told = AgentAbilities(profiles, verbs)
        if len(self._shared) < KINDS_SHARED:
            told = self._shared.setdefault(told, told)
        self._said[node_id] = self._shared.get(told, told)
        return True

    def abilities(self, node_id: str) -> AgentAbilities:
        """Abilities that the node's agent has told since the start."""
        return self._said.get(node_id, NOTHING_SAID)

    def last(self, node_id: str) -> datetime | None:
        """When the node was last heard, None if never since the start: an interval that was given is no word."""
        if node_id in self._unheard:
            return None
        return self._heard.get(node_id) or self._silent.get(node_id)

    def forget(self, node_id: str) -> None:
        """The node is retired."""
        self._said.pop(node_id, None)
        self._heard.pop(node_id, None)
        self._silent.pop(node_id, None)
        self._unheard.discard(node_id)
        self._boots.pop(node_id, None)
