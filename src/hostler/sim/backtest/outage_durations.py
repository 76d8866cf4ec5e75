"""How long places of pools were out of service: each stay from its plan to its end, and what is typical of a remedy."""

from collections import defaultdict, deque
from datetime import datetime
from statistics import quantiles

from hostler.core.report.backtest_result import Typical
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import is_serving
from hostler.core.state.model import Node, Plan
from hostler.core.tables.recipes import RECIPES

FEW = 3
"""Fewer stays than this say little: then the recipe's deadlines bound the estimate."""


class Stays:
    """Follows the recorded fleet: which places of pools are out, since when, because of which remedy.

    A place is a member's until it leaves its pool; then it stays out under that member's name until the next node that
    is delivered to the pool serves.
    """

    def __init__(self) -> None:
        self._out: dict[str, datetime] = {}
        self._why: dict[str, tuple[str, datetime]] = {}
        self._pools: dict[str, str] = {}
        self._vacant: defaultdict[str, deque[str]] = defaultdict(deque)
        self._arriving: dict[str, str] = {}
        self._lengths: defaultdict[str, list[float]] = defaultdict(list)
        self.out_s: defaultdict[str, float] = defaultdict(float)

    def begin(self, fleet: Fleet, at: datetime) -> None:
        """Start the window with the nodes that serve and the nodes that are out."""
        for node_id in fleet.nodes:
            self.see(fleet.nodes[node_id], at)

    def planned(self, plan: Plan, at: datetime) -> None:
        """A plan that takes a node out of service for a fault was recorded."""
        if plan.disruptive and plan.rule:
            self._why.setdefault(plan.node, (plan.remedy or plan.name, at))

    def see(self, node: Node, at: datetime) -> None:
        """The node as it is after a record."""
        before = self._pools.setdefault(node.id, node.pool)
        if node.pool != before:
            self._moves(node.id, before, node.pool, at)
        if not node.pool or node.id in self._arriving:
            self._serves(node, at)
        elif is_serving(node):
            self._back(node.id, at)
        else:
            self._out.setdefault(node.id, at)

    def _moves(self, node_id: str, before: str, after: str, at: datetime) -> None:
        self._pools[node_id] = after
        if before and self._arriving.pop(node_id, "") == "":
            self._out.setdefault(node_id, at)
            self._vacant[before].append(node_id)
        if after:
            self._arriving[node_id] = after

    def _serves(self, node: Node, at: datetime) -> None:
        """Count a delivered node as serving: the place that has been vacant longest is filled."""
        if node.id in self._arriving and is_serving(node):
            vacant = self._vacant[self._arriving.pop(node.id)]
            if vacant:
                self._back(vacant.popleft(), at)

    def _back(self, name: str, at: datetime) -> None:
        since = self._out.pop(name, None)
        if since is not None:
            self.out_s[name] += (at - since).total_seconds()
        if name in self._why:
            remedy, begun = self._why.pop(name)
            self._lengths[remedy].append((at - begun).total_seconds())

    def is_out(self, name: str) -> bool:
        """Whether this member, or the place it has left, is out."""
        return name in self._out

    def so_far(self, name: str, at: datetime) -> float:
        """How long it has been out by now, in seconds."""
        since = self._out.get(name)
        return self.out_s[name] + ((at - since).total_seconds() if since else 0.0)

    def end(self, at: datetime) -> None:
        """The window is over: who is out then was out until then; unfinished stays say nothing about lengths."""
        for name, since in self._out.items():
            self.out_s[name] += (at - since).total_seconds()
        self._out.clear()

    def typical(self, remedy: str) -> Typical:
        """Summarise the recorded outages of this remedy."""
        lengths = sorted(self._lengths.get(remedy, ()))
        if len(lengths) < FEW:
            recipe = RECIPES.get(remedy)
            deadlines_s = [step.deadline_s for step in recipe.steps if step.act.kind != "drain"] if recipe else []
            most_s = max(sum(deadlines_s), *lengths, 0.0)
            return Typical(remedy, len(lengths), lengths[len(lengths) // 2] if lengths else most_s / 2, 0.0, most_s)
        tenths = quantiles(lengths, n=10, method="inclusive")
        return Typical(remedy, len(lengths), tenths[4], tenths[0], tenths[8])
