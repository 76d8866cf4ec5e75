"""Remembers whose posts are refused: a node whose heartbeats pass meanwhile is not taken for one that is heard."""

from hostler.core.state.durations import duration

REFUSED_S = 600.0
"""So long a node's posts are refused, without one taken in between, before it shows: a storm is over by then."""


class Refusals:
    """Nodes whose last post was refused, since when and why at first. `now` is monotonic, in seconds."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, str]] = {}

    def refused(self, node: str, why: str, now: float) -> None:
        """A post of the node was refused."""
        self._since.setdefault(node, (now, why))

    def taken(self, node: str) -> None:
        """A post of the node was taken."""
        self._since.pop(node, None)

    def standing(self, node: str, now: float) -> str:
        """Reason why the node's posts are refused, "" where they are taken or have not been refused for long."""
        since, why = self._since.get(node, (now, ""))
        if now - since < REFUSED_S:
            return ""
        return f"its heartbeats arrive, but its posts have been refused for more than {duration(REFUSED_S)}: {why}"
