"""A peer: a policy document, how far it may go, and the automation that acts beside it."""

from collections.abc import Callable
from importlib.resources import files

from msgspec import Struct

from hostler.sim.simulation_loop import Drive

Attends = Callable[[Drive], None]
"""Takes its place in a world before the job begins: follows the journal, and acts through persons or by itself."""


def _nobody_else(_drive: Drive) -> None:
    pass


class Peer(Struct, frozen=True):
    """A way of looking after a cluster.

    `policy`: a document of this package, "" for the one that Hostler ships. `cap_percent`: how much of the pool may be
    out at once, None for the limits that Hostler's own run has. `evicts`: customers' work is ended without asking.
    `attends`: who acts where the document does not say it. `gains` and `lacks`: what it has here that its real
    counterpart has not, and the other way round.
    """

    name: str
    title: str
    policy: str = ""
    cap_percent: float | None = None
    evicts: bool = False
    attends: Attends = _nobody_else
    gains: str = ""
    lacks: str = ""

    def document(self) -> str:
        """Text of its policy."""
        return (
            files("hostler.sim.peers").joinpath(self.policy).read_text(encoding="utf-8") if self.policy else shipped()
        )

    def pool(self, members: int) -> dict[str, object]:
        """The limits and the mode of its pool."""
        agreement = {"evict_after_deadline": True, "drain_deadline_s": 0} if self.evicts else {}
        return {"budget": self._budget(members), "modes": {"*": "act"}, **agreement}

    def _budget(self, members: int) -> dict[str, float]:
        if self.cap_percent is None:
            limits = (max(4, members // 50), 10.0, 8, max(8, members // 100))
        else:
            limits = (max(1, int(members * self.cap_percent / 100)), self.cap_percent, 0, members)
        return dict(zip(("count", "percent", "reserve", "removals_per_day"), limits, strict=True))


def shipped() -> str:
    """The text of the policy that Hostler ships."""
    return files("hostler.core.policy").joinpath("default_policy.yaml").read_text(encoding="utf-8")
