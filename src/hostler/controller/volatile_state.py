"""Volatile state that an event makes useless: looks for an operation, words of a retired node."""

from hostler.controller.agenda import Agenda
from hostler.controller.live_updates import Silence
from hostler.core.state import events as e
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Phase

SOURCES = ("agent", "bmc")
"""Senders of a node's observations; each has a cursor of its own."""


def forget(
    event: e.Event, agenda: Agenda, live: LiveState, silent: Silence, cursors: dict[str, tuple[str, int]]
) -> None:
    """Forget what is not recorded and of no use any more after the event."""
    match event:
        case e.OperationFinished(operation=operation_id) | e.AssetOperationFinished(operation=operation_id):
            agenda.known(operation_id)
            live.observed(operation_id)
        case e.PhaseChanged(node=node_id, after=Phase.retired):
            silent.pop(node_id, None)
            live.nodes.pop(node_id, None)
            for source in SOURCES:
                cursors.pop(f"{node_id}/{source}", None)
        case _:
            pass
