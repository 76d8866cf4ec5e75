"""Events of locate lights: a person asks that one be lit or put out."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.light import Light


class LightAsked(Struct, frozen=True, tag="light_asked"):
    """The node's locate light is to be lit until then, or put out (`until` is None). `by`: a person, or hostler."""

    node: str
    by: str
    why: str
    until: datetime | None = None
    ticket: str = ""


def _ask(fleet: Fleet, event: LightAsked, at: datetime) -> None:
    node = node_of(fleet, event.node)
    known = node.light
    if event.until is not None:
        light = Light(event.by, at, event.until, event.ticket, lit=known is not None and known.wanted and known.lit)
        fleet.put_node(node.id, replace(node, light=light))
    elif known is not None and known.result == "refused" and not known.lit:
        fleet.put_node(node.id, replace(node, light=None))  # it has none, or lets nobody at it
    elif known is not None:
        out = replace(known, wanted=False, failures=0, failed_at=None, result="", detail="")
        fleet.put_node(node.id, replace(node, light=out))


ROWS: EventRows = (EventRow(LightAsked, of_node, _ask),)
