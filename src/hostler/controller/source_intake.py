"""The door where what sources say enters the loop: each is held to its budget, by who says it.

Beyond a source's budget its news is counted in one condition on the source itself. What still passes: a grave fault of
its own node, a few times, and the end of what stands; an attacker may be on a node that catches fire. What began within
the budget is recorded whole. See `core/state/source_budgets`, and docs/adr/0180.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hostler.controller.batch_draft import BatchDraft
from hostler.controller.inputs import IntentAsked, Observed
from hostler.controller.observation_intake import Caused, caused_by, received_at, see_devices, unread
from hostler.controller.step_output import Reply
from hostler.core.boot.boot_decision import BMC, BootDecision, BootRequest
from hostler.core.boot.boot_target import IMAGE
from hostler.core.conditions.lifecycle import stand
from hostler.core.conditions.source_excess import loud_events
from hostler.core.diagnose.judge import judge
from hostler.core.intents.ask import Answered, AnyAsk, Ask, RefusalError
from hostler.core.intents.intent_decision import decide_intent, refused
from hostler.core.state import events as e
from hostler.core.state.boot import Stranger
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Evidence, Node, Observation, Severity
from hostler.core.state.source_budgets import (
    GRAVE_MOST,
    HOUR_S,
    SOURCE_OF,
    UNPROVEN,
    Excess,
    SourceLimits,
    Stored,
    Used,
    size_of,
)
from hostler.core.state.verbs.every import VERBS

NODE_BOOTS = SourceLimits(16, 64, 1.0, 4.0)
"""Records of one node that unproven machines may cause in its name: a person who looks for the reason reads no more."""
TOLD_AGAIN_S = HOUR_S
_EASING = frozenset(verb for verb, kind in VERBS.items() if kind.facts.easing)

Told = tuple[tuple[e.Event, ...], str]
"""Events to record, each before the next are asked for, and their cause."""


def observed(
    context: DecisionContext, draft: BatchDraft, cursors: dict[str, tuple[str, int]], seen: Observed
) -> Iterator[Told]:
    """Events that the observations of one sender lead to; the reply says how far it was read.

    What is new to its cursor is stored; a gap ends the batch, and the sender resends from the answer.
    """
    node = context.fleet.nodes.get(seen.node)
    if node is None:
        draft.replies.append(Reply(seen.token, granted=False, text=f"no node {seen.node}"))
        return
    source = seen.observations[0].source if seen.observations else "agent"
    sender = _Sender(context, draft, node, source)
    read = draft.read.get(sender.key) or cursors.get(sender.key) or ("", 0)
    used, records, plain = context.live.budgets.used, draft.records, 0
    for observation in unread(seen.observations, read):
        stamped, before = received_at(observation, context.now), len(records)
        if see_devices(context.live, stamped):
            yield (), stamped.id
        free = sender.key not in used  # why here: nearly all senders have recorded nothing lately, and cost a look-up
        for caused in caused_by(context, node.id, stamped) if free else sender.news(stamped):
            yield (caused.event,), caused.cause
        if free and sender.room and len(records) == before:
            draft.store(sender.key, stamped)
            plain += len(stamped.text) if not stamped.facts and not stamped.parts else size_of(stamped)
            sender.rows += 1
        else:
            sender.store(stamped, len(records) - before)
    sender.count(plain)
    if sender.folded:
        yield from ((events, source) for events in loud_events(context, node.id, source))
    spool, sequence = draft.read.get(sender.key, read)
    draft.replies.append(Reply(seen.token, acknowledged=sequence, text=spool))


class _Sender:
    """One post of an agent or a BMC, held to its budgets. Room for rows is asked for once: a post is stored whole."""

    def __init__(self, context: DecisionContext, draft: BatchDraft, node: Node, source: str) -> None:
        self.key = f"{node.id}/{source}"
        self.folded, self.rows, self._within = False, 0, True
        self._context, self._draft, self._node = context, draft, node.id
        self._budgets, policy = context.live.budgets, context.fleet.policy_of(node)
        self._policy, self._scale = policy.sources, policy.time_scale
        self._limits = policy.sources.of_node(source)
        stored = self._budgets.stored.get(self.key)
        if stored is None:
            stored = self._budgets.stored[self.key] = Stored(context.now)
        self._stored = stored
        self.room = stored.has_room(policy.sources, context.now, policy.time_scale)
        if stored.tail and stored.is_due(context.now):
            _store_tail(draft, stored, context)

    def news(self, seen: Observation) -> Iterator[Caused]:
        """Events that one observation leads to, as far as the budget goes."""
        self._within = self._budgets.admits(self.key, self._limits, self._context.now, self._scale)
        if self._within:
            return caused_by(self._context, self._node, seen)
        return _grave(self._context, self._fold(seen), seen)

    def store(self, seen: Observation, made: int) -> None:
        """Store the observation; its source is charged with the records that it has caused."""
        size = size_of(seen)
        if made:
            self._draft.charge(seen.id, self.key, made)
            self._budgets.use(self.key, made, size * made, self._context.now)
        if self.room or made:
            self._draft.store(self.key, seen)
            self._stored.rows += 1
            self._stored.size += size
            return
        self._draft.skip(self.key, seen)
        self._stored.keep(seen, self._policy.rows_kept, self._context.now)
        if self._within:
            self._fold(seen)

    def count(self, size: int) -> None:
        """Count the rows of this post that were stored without more, and their bytes."""
        self._stored.rows += self.rows
        self._stored.size += size

    def _fold(self, seen: Observation) -> Excess:
        self.folded = True
        return self._budgets.fold(self.key, seen.text or seen.kind, self._context.now)


def _grave(context: DecisionContext, excess: Excess, seen: Observation) -> Iterator[Caused]:
    """Grave faults of its own node that do not stand yet: they are recorded of a source over its budget, too."""
    node = context.fleet.nodes[seen.node]
    if excess.grave >= GRAVE_MOST or seen.kind == "inventory":
        return
    sku = context.fleet.configuration_of(node).skus.get(node.sku)
    path = "bmc" if seen.source == "bmc" else seen.kind
    for finding in judge(seen, node, sku):
        if not finding.standing or finding.severity < Severity.critical or excess.grave >= GRAVE_MOST:
            continue
        node = context.fleet.nodes[seen.node]
        evidence = Evidence(context.now, seen.source, finding.text, seen.id, finding.facts, path)
        event = stand(node, finding, evidence, seen.boot_id, seen.count)
        if isinstance(event, e.ConditionRaised):
            excess.grave += 1
            yield Caused(event, seen.id)


def _store_tail(draft: BatchDraft, stored: Stored, context: DecisionContext) -> None:
    draft.observations.extend(stored.tail)
    stored.tail.clear()
    stored.told = context.now


def store_tails(context: DecisionContext, draft: BatchDraft, node_id: str) -> None:
    """Store the last observations of a node's sources that had no room, now that its clock has come."""
    for source in ("agent", "bmc"):
        stored = context.live.budgets.stored.get(f"{node_id}/{source}")
        if stored is not None and stored.tail:
            _store_tail(draft, stored, context)


def metered(context: DecisionContext, node_id: str, source: str, events: Iterable[e.Event]) -> Iterator[e.Event]:
    """The events that one word of a node's agent or BMC leads to, as far as its budget goes.

    The end of a condition always passes: it ends at most what was recorded.
    """
    node = context.fleet.nodes[node_id]
    budgets, key, policy = context.live.budgets, f"{node_id}/{source}", context.fleet.policy_of(node)
    limits = policy.sources.of_node(source)
    for event in events:
        passes = isinstance(event, e.ConditionCleared) or budgets.admits(key, limits, context.now, policy.time_scale)
        if passes:
            budgets.use(key, 1, 0, context.now)
            yield event
        else:
            budgets.fold(key, e.name_of(event), context.now)
    for told in loud_events(context, node_id, source):
        yield from told


def charge_followed(context: DecisionContext, draft: BatchDraft) -> None:
    """Charge each source with the records of this batch that followed from what it said, plans and waits too."""
    context.live.budgets.sweep(context.now)
    for key, records in draft.followed().items():
        context.live.budgets.use(key, records, 0, context.now)


def remember_loud(context: DecisionContext) -> None:
    """Begin a term: a source that was over its budget under the controller before has used it up."""
    unproven = _unproven_told(context)
    if unproven is not None and (context.now - unproven.at).total_seconds() < HOUR_S:
        used = context.live.budgets.used[UNPROVEN] = Used(context.now)
        used.fill(context.fleet.policy.sources.boot)
    for node in [context.fleet.nodes[node_id] for node_id in context.fleet.index.members("ailing")]:
        for one in node.conditions:
            if (source := SOURCE_OF.get(one.type)) is not None:
                policy, key = context.fleet.policy_of(node), f"{node.id}/{source}"
                used = context.live.budgets.used[key] = Used(context.now)
                used.fill(policy.sources.of_node(source))
                text = one.evidence[-1].text if one.evidence else ""
                context.live.budgets.excess[key] = Excess(one.since, context.now, text, text, context.now, one.count)


# --- machines of the boot network that have not shown their boot's secret


def bounded_boot(context: DecisionContext, asked: BootRequest, said: BootDecision) -> BootDecision:
    """The decision, without its records where unproven machines have said too much: the answer is given all the same.

    One bound for all reasons together, of each node and of the network. An image in its boot window is always recorded,
    for its secret opens once, and so is what a machine with its boot's secret asks for.
    """
    if not said.events or not all(map(_is_unproven, said.events)):
        return said
    budgets, now, limits = context.live.budgets, context.now, context.fleet.policy.sources.boot
    scale, own = context.fleet.policy.time_scale, f"{UNPROVEN}/{said.node}"
    if budgets.admits(UNPROVEN, limits, now, scale) and (not said.node or budgets.admits(own, NODE_BOOTS, now, scale)):
        size = sum(map(len, (asked.mac, asked.serial, asked.address)))
        budgets.use(UNPROVEN, len(said.events), size, now)
        if said.node:
            budgets.use(own, len(said.events), size, now)
        return said
    excess = budgets.fold(UNPROVEN, f"{asked.what} from {asked.address}", now)
    return replace(said, events=_tell_unproven(context, asked, excess))


def _is_unproven(event: e.Event) -> bool:
    """Whether the record is of a machine that nothing proves, and nothing depends on it."""
    match event:
        case e.BootAnswered(boot=boot):
            return boot.identity != BMC and not (boot.kind == IMAGE and boot.plan)
        case e.BootRefused() | e.StrangerSeen():
            return True
        case _:
            return False


def _unproven_told(context: DecisionContext) -> Stranger | None:
    """The line that was told last of all unproven machines together."""
    return next((one for one in context.fleet.cell.strangers if not one.mac), None)


def _tell_unproven(context: DecisionContext, asked: BootRequest, excess: Excess) -> tuple[e.Event, ...]:
    """One line of the cell for all that is not recorded: at first, when it is ten times as much, and each hour."""
    known = _unproven_told(context)
    lately = known is not None and (context.now - known.at).total_seconds() < TOLD_AGAIN_S
    if known is not None and lately and excess.count < 10 * known.count:
        return ()
    why = f"says too much: {excess.count} requests were not recorded, first {excess.first_text}"
    seen = Stranger("", "", asked.address, context.now, excess.count, why)
    return (e.StrangerSeen(seen),) if context.may_write("stranger_seen") else ()


# --- people


def answered_intent(context: DecisionContext, one: IntentAsked) -> Answered:
    """The answer to an intent; beyond the budget of its person or tenant it is refused, and counted.

    What eases is decided all the same, and recorded where it is granted: it ends at most what stands. What records
    nothing is always answered. One refusal is recorded each hour.
    """
    ask: AnyAsk = Ask(context, one.intent, one.configuration, one.documents)
    intent, budgets, policy = one.intent, context.live.budgets, context.fleet.policy
    keys = [(f"person/{intent.person}", intent.person, policy.sources.person)]
    if intent.bounds.tenant:
        keys.append((f"tenant/{intent.bounds.tenant}", f"tenant {intent.bounds.tenant}", policy.sources.tenant))
    over = [spent for spent in keys if not budgets.admits(spent[0], spent[2], context.now, policy.time_scale)]
    if over and intent.verb not in _EASING and not intent.dry_run and intent.key not in context.fleet.answers:
        key, name, limits = over[0]
        return _too_many(context, ask, key, f"{name} says too much: more than {_in_words(limits)} were asked for")
    said = decide_intent(ask)
    if over:
        return said if said.granted else replace(said, events=())
    if said.events:
        size = sum(map(len, one.documents.values())) + len(intent.reason)
        for key, _, _ in keys:
            budgets.use(key, 1, size, context.now)
    return said


def _too_many(context: DecisionContext, ask: AnyAsk, key: str, why: str) -> Answered:
    budgets = context.live.budgets
    excess = budgets.fold(key, ask.intent.verb, context.now)
    again = excess.count > 1 and (context.now - excess.told).total_seconds() < TOLD_AGAIN_S
    refusals = f"{excess.count} since {excess.since:%H:%M} UTC were refused, the first {excess.first_text}"
    text = f"{why}; {refusals}. Ask again later"
    said = refused(replace(ask, intent=replace(ask.intent, key="")), RefusalError(text))
    if again:
        return replace(said, events=())
    excess.told = context.now
    return said


def _in_words(limits: SourceLimits) -> str:
    return f"{limits.records_per_hour:,} requests an hour or {limits.records_per_day:,} a day"
