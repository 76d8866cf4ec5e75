"""How long nodes were out of service: each stay from its plan to its end, and what is typical of a remedy."""

from collections import defaultdict
from datetime import datetime
from statistics import quantiles

from msgspec import Struct

from hostler.core.fleet import Fleet, is_healthy
from hostler.core.model import Node, Plan
from hostler.core.recipes import RECIPES

FEW = 3
"""Fewer stays than this say little: then the recipe's deadlines bound the estimate."""


class Typical(Struct, frozen=True):
    """How long a remedy keeps a node out, in seconds: median, and from the 10th to the 90th of a hundred.

    `stays` were recorded; of fewer than three the bounds are nothing and all the recipe's deadlines together.
    """

    remedy: str
    stays: int
    median_s: float
    least_s: float
    most_s: float


class Stays:
    """Follows the recorded fleet: which delivered nodes are out, since when, because of which remedy."""

    def __init__(self) -> None:
        self._out: dict[str, datetime] = {}
        self._why: dict[str, tuple[str, datetime]] = {}
        self._lengths: defaultdict[str, list[float]] = defaultdict(list)
        self.out_s: defaultdict[str, float] = defaultdict(float)

    def planned(self, plan: Plan, at: datetime) -> None:
        """A plan that takes a node out of service for a fault was recorded."""
        if plan.disruptive and plan.rule:
            self._why.setdefault(plan.node, (plan.remedy or plan.name, at))

    def see(self, node: Node | None, node_id: str, at: datetime) -> None:
        """The node as it is after a record."""
        out = node is not None and node.assignment is not None and not is_healthy(node)
        if out and node_id not in self._out:
            self._out[node_id] = at
        elif not out and node_id in self._out:
            self.out_s[node_id] += (at - self._out.pop(node_id)).total_seconds()
        if not out and node_id in self._why:
            remedy, since = self._why.pop(node_id)
            self._lengths[remedy].append((at - since).total_seconds())

    def so_far(self, node_id: str, at: datetime) -> float:
        """How long the node has been out by now, in seconds."""
        since = self._out.get(node_id)
        return self.out_s[node_id] + ((at - since).total_seconds() if since else 0.0)

    def end(self, at: datetime) -> None:
        """The window is over: who is out then was out until then; unfinished stays say nothing about lengths."""
        for node_id, since in self._out.items():
            self.out_s[node_id] += (at - since).total_seconds()
        self._out.clear()

    def since(self, fleet: Fleet, at: datetime) -> None:
        """Who is out when the window begins."""
        for node_id in fleet.nodes:
            self.see(fleet.nodes[node_id], node_id, at)

    def typical(self, remedy: str) -> Typical:
        """What the recorded stays say of this remedy."""
        lengths = sorted(self._lengths.get(remedy, ()))
        if len(lengths) < FEW:
            recipe = RECIPES.get(remedy)
            most_s = sum(step.deadline_s for step in recipe.steps if step.operation != "drain") if recipe else 0.0
            most_s = max(most_s, *lengths, 0.0)
            return Typical(remedy, len(lengths), lengths[len(lengths) // 2] if lengths else most_s / 2, 0.0, most_s)
        tenths = quantiles(lengths, n=10, method="inclusive")
        return Typical(remedy, len(lengths), tenths[4], tenths[0], tenths[8])
