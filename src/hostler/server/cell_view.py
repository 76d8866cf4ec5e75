"""Port from the server to the running cell, as it is seen from HTTP. `engine.runner.Cell` answers it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from prometheus_client import Histogram

from hostler.controller.inputs import Input
from hostler.controller.step_output import Reply
from hostler.core.state.configuration import Configuration
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import NOTHING_SAID, AgentAbilities, LiveState
from hostler.core.state.model import Observation, Outcome
from hostler.ports import Archived, RecordWindow
from hostler.runtime.cell_controllers import ControllerHealth
from hostler.runtime.subscribers import Subscription


class JournalView(Protocol):
    """Questions to the journal. Blocking: call it in a thread."""

    def records(self, after: int = 0) -> Iterator[Record]:
        """All records after `after`, in order."""

    def history(self, subject: str, before: int | None = None, limit: int = 200) -> list[Record]:
        """Records about one subject, newest first."""
        ...

    def named_since(self, names: Sequence[str], at: datetime, limit: int, beyond: Record | None = None) -> list[Record]:
        """Records of these event names since a moment, the latest first, of those beyond one where it is given."""
        ...

    def window(self, wanted: RecordWindow, limit: int) -> list[Record]:
        """At most `limit` records of the window, in its order."""
        ...

    def first_since(self, at: datetime) -> int:
        """The first record, by moment, of that moment or later; 0 where there is none."""
        ...

    def observation(self, identity: str) -> Observation | None:
        """The raw observation of this id, None where it is not kept."""

    def archived(self) -> Archived | None:
        """Records that a history no longer holds."""
        ...

    def latest_seq(self) -> int:
        """The last record's number, 0 for an empty journal."""
        ...


@runtime_checkable
class ObservationLog(Protocol):
    """A journal that lists a node's raw observations; the others only find one by its id."""

    def observations_of(
        self, node: str, since: datetime | None = None, limit: int = 200, beyond: str = ""
    ) -> list[Observation]:
        """The node's raw observations, newest first; of those after `beyond`, where it is given."""


class HeartbeatView(Protocol):
    """Last contact with each node's agent."""

    def last(self, node_id: str) -> datetime | None:
        """Moment of the node's last heartbeat, None where none was heard since the start."""


class CellView(Protocol):
    """One running cell. `view` is committed state; reading it on the event loop needs no lock."""

    name: str
    version: str
    role: str

    @property
    def epoch(self) -> int:
        """Number of the lease under which this controller decides."""

    @property
    def elsewhere(self) -> str:
        """The active controller's address, "" where this is the one, or none is known."""
        ...

    @property
    def view(self) -> Fleet:
        """The committed fleet."""

    @property
    def commits(self) -> Histogram:
        """How long commits took since the process began."""

    @property
    def live(self) -> LiveState:
        """Live state: what is so now and not recorded."""

    @property
    def journal(self) -> JournalView:
        """The journal, for questions."""

    @property
    def heartbeats(self) -> HeartbeatView:
        """Last contact with each node's agent."""

    async def observe(self, node: str, observations: tuple[Observation, ...], *, urgent: bool = False) -> Reply:
        """Durable when it returns. Raises BusyError, NoRoomError."""
        ...

    def demand_room(self) -> None:
        """Raises NoRoomError where the disk has only what is kept for records and acts."""
        ...

    async def ask(
        self, intent: Intent, configuration: Configuration | None = None, documents: dict[str, str] | None = None
    ) -> Reply:
        """Durable when it returns. Raises BusyError."""
        ...

    def heartbeat(self, node: str, boot_id: str, said: AgentAbilities = NOTHING_SAID) -> None:
        """Note a heartbeat: the node, its boot, and what its agent says that it can."""

    def read_to(self, node: str) -> tuple[str, int]:
        """The spool of the node's agent, and the number up to which it is durable; ("", 0) where none is known."""
        ...

    def known_inventory(self, node: str, boot_id: str) -> str:
        """The digest of the inventory that the node's agent need not tell again in this boot, "" for none."""
        ...

    def tell(self, one: Input) -> None:
        """Put a volatile reading before the controller."""
        ...

    def replied(self, outcome: Outcome) -> None:
        """Hand in an operation's outcome."""

    def subscribe(self, after: int, quiet_s: float | None = None) -> Subscription:
        """Records after `after`, then live, in batches; ends with an error for a consumer that does not keep up."""
        ...

    def health(self) -> ControllerHealth:
        """Whether this controller decides, how far it is behind, and why."""
