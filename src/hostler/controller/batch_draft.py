"""The batch that one step makes: its records and observations, how far senders were read, sends and replies."""

from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.core.state import events as e
from hostler.core.state.model import Observation
from hostler.ports import Batch


class BatchDraft:
    """One step's output while it is decided on. `read`: sender → spool and sequence."""

    def __init__(self) -> None:
        self.records: list[e.Record] = []
        self.observations: list[Observation] = []
        self.read: dict[str, tuple[str, int]] = {}
        self.sends: list[Send] = []
        self.replies: list[Reply] = []
        self._sources: dict[str, str] = {}
        self._charged: dict[str, int] = {}

    def charge(self, cause: str, source: str, records: int) -> None:
        """Note that the source has caused so many records by this observation, and is charged with them."""
        self._sources[cause] = source
        self._charged[source] = self._charged.get(source, 0) + records

    def followed(self) -> dict[str, int]:
        """Records that followed from what each source said, beside those that it is charged with."""
        if not self._sources:
            return {}
        first, by = self.records[0].seq, list[str]()
        more = {source: -records for source, records in self._charged.items()}
        for record in self.records:
            source = self._sources.get(record.cause, "")
            if not source and record.cause.startswith("record:"):
                earlier = int(record.cause.removeprefix("record:")) - first
                source = by[earlier] if 0 <= earlier < len(by) else ""
            by.append(source)
            if source:
                more[source] += 1
        return {source: records for source, records in more.items() if records > 0}

    def skip(self, sender: str, observation: Observation) -> None:
        """Note that its sender was read so far; the observation itself is not stored."""
        self.read[sender] = (observation.spool, observation.sequence)

    def store(self, sender: str, observation: Observation) -> None:
        """Store it, and note that its sender was read so far."""
        self.read[sender] = (observation.spool, observation.sequence)
        self.observations.append(observation)

    def ready(self, cell_format: int) -> StepOutput:
        """The whole batch, to be appended under the cell's format."""
        batch = Batch(tuple(self.records), tuple(self.observations), self.read, cell_format)
        return StepOutput(batch, tuple(self.sends), tuple(self.replies))

    def last_names(self) -> str:
        """The last few records' names, for a bug's message."""
        return ", ".join(e.name_of(record.event) for record in self.records[-6:])
