"""Says which intent's trace an operation belongs to: from record to record by their causes, in this process' memory.

Of what another process was asked the node's history names the intent, and the intent's id its trace.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

from opentelemetry.trace import SpanContext

from hostler.core.state import events as e
from hostler.core.state.model import Operation
from hostler.journal.named_records import record_names
from hostler.logs import traces

KEPT = 20_000
"""So many intents, conditions, plans and operations are followed at most; the oldest is forgotten."""
READ_BACK = record_names(e.PlanRecorded, e.ConditionRaised)
"""Records of a node that are looked through for the intent of an operation that is not known here."""

History = Callable[[str], Iterable[e.Record]]
"""Records of the names READ_BACK about a node, newest first. Blocks."""
_ASKED = "intent:"


class IntentTraces:
    """Traces of intents and of what they brought about, by name. Nothing is kept while no trace is made."""

    def __init__(self, history: History = lambda _: (), kept: int = KEPT) -> None:
        self._history = history
        self._kept = kept
        self._known: OrderedDict[str, SpanContext | int] = OrderedDict()

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

    async def of(self, operation: Operation) -> traces.Earlier:
        """The span of the intent that this operation is for, its trace alone where another process was asked.

        None where nobody asked. Raises JournalError.
        """
        if not traces.on():
            return None
        found = self._known.get(f"operation:{operation.id}") or self._known.get(f"plan:{operation.plan}")
        if found is None and operation.plan and (intent := await asyncio.to_thread(self._intent, operation)):
            found = traces.of_intent(intent)
            self._keep(f"plan:{operation.plan}", found)
        return found

    def _intent(self, operation: Operation) -> str:
        return _asked_for(self._history(operation.node), operation.plan)

    def _keep(self, name: str, context: SpanContext | int) -> None:
        self._known[name] = context
        self._known.move_to_end(name)
        if len(self._known) > self._kept:
            self._known.popitem(last=False)


def _asked_for(records: Iterable[e.Record], plan: str) -> str:
    """The intent that the plan came from, by the node's records from the newest on; "" where nobody asked for it."""
    causes: frozenset[str] = frozenset()
    for record in records:
        match record.event:
            case e.PlanRecorded(plan=recorded) if recorded.id == plan:
                if record.cause.startswith(_ASKED):
                    return record.cause.removeprefix(_ASKED)
                causes = frozenset(recorded.causes)
            case e.ConditionRaised(condition=condition) if condition.id in causes:
                return record.cause.removeprefix(_ASKED) if record.cause.startswith(_ASKED) else ""
            case _:
                continue
    return ""


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
