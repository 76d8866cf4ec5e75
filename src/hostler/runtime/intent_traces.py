"""Says which intent's trace an operation belongs to: from record to record by their causes, in this process' memory.

What another process had asked is not known here: after a takeover operations of earlier intents have no trace.
"""

from collections import OrderedDict
from collections.abc import Iterable

from opentelemetry.trace import SpanContext

from hostler.core.state import events as e
from hostler.logs import traces

KEPT = 20_000
"""So many intents, conditions, plans and operations are followed at most; the oldest is forgotten."""


class IntentTraces:
    """Traces of intents and of what they brought about, by name. Nothing is kept while no trace is made."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._known: OrderedDict[str, SpanContext] = OrderedDict()

    def asked(self, intent: str) -> None:
        """Remember the running span for all that this intent brings about."""
        if (context := traces.running()) is not None:
            self._keep(f"intent:{intent}", context)

    def follow(self, records: Iterable[e.Record]) -> None:
        """Take what was recorded: conditions of a traced intent, plans for those, and the plans' operations."""
        if not self._known:
            return
        for record in records:
            named, by = _names(record.event)
            found = next((self._known[one] for one in (record.cause, *by) if one in self._known), None)
            if found is not None:
                for name in named:
                    self._keep(name, found)

    def of(self, operation: str) -> SpanContext | None:
        """The span of the intent that this operation is for, None where it is for none that is known here."""
        return self._known.get(f"operation:{operation}")

    def _keep(self, name: str, context: SpanContext) -> None:
        self._known[name] = context
        self._known.move_to_end(name)
        if len(self._known) > self._kept:
            self._known.popitem(last=False)


def _names(event: e.Event) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of what the event begins, and names of what it may have come from."""
    match event:
        case e.ConditionRaised(condition=condition):
            return (f"condition:{condition.id}",), ()
        case e.PlanRecorded(plan=plan):
            return (f"plan:{plan.id}",), tuple(f"condition:{cause}" for cause in plan.causes)
        case e.OperationStarted(operation=operation):
            return (f"operation:{operation.id}",), (f"plan:{operation.plan}",) if operation.plan else ()
        case _:
            return (), ()
