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
