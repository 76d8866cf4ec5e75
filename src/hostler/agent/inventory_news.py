"""Chooses which looks at the node's parts are told: what the controller does not hold, and everything once a day."""

from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.local_observation import LocalObservation, collector_failed, collector_started

WHOLE_S = 86_400.0
"""An inventory is told whole at least so often: what of it only the controller knows is put right by then."""


class InventoryNews:
    """Choice of the looks that are told. `held` is the digest that the controller said last that it holds, "" for none.

    An inventory that was told and is not held yet may be on its way: then the next look is told whole, too, so that one
    before it is never taken for the last word.
    """

    def __init__(self) -> None:
        self.held = ""
        self._told = ""
        self._told_s = 0.0
        self._works = False

    def of(self, found: NodeInventory, now_s: float) -> list[LocalObservation]:
        """A look that came to its end."""
        news = [] if self._works else [collector_started("inventory", now_s)]
        self._works = True
        digest = found.digest()
        if not digest == self._told == self.held or now_s - self._told_s >= WHOLE_S:
            self._told, self._told_s = digest, now_s
            news.append(LocalObservation("inventory", now_s, facts=found.facts | {"digest": digest}, parts=found.parts))
        return news

    def failed(self, why: str, now_s: float) -> list[LocalObservation]:
        """A look that failed: nobody knows what it would have shown."""
        self._works = False
        return [collector_failed("inventory", now_s, why)]
