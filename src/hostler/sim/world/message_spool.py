"""A sender's spool: nothing observed is lost while the controller is away, and everything is numbered."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import Observed
from hostler.controller.step_output import Reply
from hostler.core.state.model import Facts, Observation, Part
from hostler.sim.world.world_context import Site

POST_MAX = 50
RESEND_S = 10.0
SENT_KEPT = 16


class ObservationContent(Struct, frozen=True):
    """Content of an observation."""

    text: str = ""
    facts: Facts = {}
    parts: tuple[Part, ...] = ()
    facility: int | None = None


class MessageSpool:
    """Observations of one source about one node until the controller has acknowledged them.

    `wrong_s` is what a sender with a wrong clock adds to the age of everything.
    """

    def __init__(self, site: Site, node: str, source: str, name: str) -> None:
        self.open = True
        self.wrong_s = 0.0
        self._site = site
        self._chance = site.stream(f"{name} of {node}")
        self._node = node
        self._source = source
        self._name = name
        self._sequence = 0
        self._kept: list[tuple[datetime, Observation]] = []
        self._posting = False
        self._sent: list[tuple[datetime, Observation]] = []

    def put(self, kind: str, said: ObservationContent, boot_id: str = "") -> str:
        """Spool an observation made now, and post it soon. Returns its id."""
        self._sequence += 1
        seen = Observation(
            self._node,
            kind,
            self._source,
            self._name,
            self._sequence,
            boot_id=boot_id,
            text=said.text,
            facts=said.facts,
            parts=said.parts,
            facility=said.facility,
        )
        self._kept.append((self._site.clock.now, seen))
        self.post_soon(self._chance.uniform(0.05, 1.0))
        return seen.id

    def rewind(self) -> None:
        """The sender has restarted and begins again with what it had sent already."""
        self._kept = [*self._sent, *self._kept]
        self._sent = []
        self.post_soon()

    def post_soon(self, after_s: float = 0.1) -> None:
        """Post what is spooled after this delay, unless a post is due already."""
        if not self._posting:
            self._posting = True
            self._site.clock.after(after_s, self._post)

    def _post(self) -> None:
        self._posting = False
        if not self.open or not self._kept:
            return
        now = self._site.clock.now
        batch = tuple(
            replace(seen, received=self._site.wall, age_s=(now - at).total_seconds() + self.wrong_s)
            for at, seen in self._kept[:POST_MAX]
        )
        self._site.tell(Observed(self._site.token(self._acknowledged), self._node, batch))
        self.post_soon(RESEND_S)

    def _acknowledged(self, reply: Reply) -> None:
        if reply.text == self._name:
            sent = [(at, seen) for at, seen in self._kept if seen.sequence <= reply.acknowledged]
            self._sent = [*self._sent, *sent][-SENT_KEPT:]
            self._kept = [(at, seen) for at, seen in self._kept if seen.sequence > reply.acknowledged]
