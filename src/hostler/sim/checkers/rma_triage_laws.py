"""Law 7, of the way to the vendor: only what was ever wrong with a machine sends it there, or a person's word."""

from collections.abc import Iterator

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.sim.checkers.law import LawCase


class Condemned:
    """A node goes to its vendor with a fault that it was given since it came back last, or because a person said so.

    `_sent` are the nodes that a person has just sent; what the record of the move says of itself is not asked.
    """

    def __init__(self) -> None:
        self._sent: dict[str, None] = {}

    def record(self, case: LawCase, record: e.Record) -> Iterator[str]:
        """Judge a move to RMA by the faults found since the node came back last."""
        match record.event:
            case e.IntentRecorded(intent=intent, granted=True) if intent.verb == "rma-send":
                self._sent[intent.target] = None
            case e.PhaseChanged(node=node, after=Phase.rma, reason=why):
                if node not in self._sent and not case.world.hosts[node].ailed:
                    yield f"{node} goes to its vendor, and nothing was ever wrong with it: {why}"
                self._sent.pop(node, None)
            case _:
                pass
