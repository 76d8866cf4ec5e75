"""The whole loop without I/O: inputs in; what to append, send and answer out. `runner` and `sim` only drive it.

`step` decides on an overlay; `committed` makes it true; `lost` drops it, and this controller is finished: a new one
loads the journal. The next batch is not decided before the last one has committed. Nothing is sent before that.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import assert_never

from hostler.controller import inputs, live_updates, operation_replies, restore_diff, scheduler_views, wakeups
from hostler.controller.agenda import CALENDAR, OBSERVED_WITHIN, Agenda
from hostler.controller.batch_draft import BatchDraft
from hostler.controller.boot_replies import answered
from hostler.controller.company_calls import called
from hostler.controller.rack_turns import ROUNDS, RackTurns
from hostler.controller.recorded_texts import without_secrets
from hostler.controller.reply_effect import sent_again
from hostler.controller.report_intake import cause_of, of_report, waiting_for
from hostler.controller.source_intake import answered_intent, charge_followed, observed, remember_loud, store_tails
from hostler.controller.startup import first_words, of_clock
from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.controller.sweep_filter import needs_no_step, to_visit
from hostler.controller.volatile_state import forget
from hostler.core.conditions import own_conditions, staleness
from hostler.core.planning.next_step import next_step
from hostler.core.planning.rollouts import advance, judged
from hostler.core.planning.spares import balance
from hostler.core.policy import pool_places, rma_cases
from hostler.core.policy.expiry import ENTRIES, ended, next_moment
from hostler.core.policy.incidents import review
from hostler.core.state import events as e
from hostler.core.state import formats
from hostler.core.state.clock_doubt import Witness, opening
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Rest, Wait, soonest
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Node, Outcome
from hostler.ports import Restored


class Controller:
    """One active controller of one cell. Not reentrant: step, committed, step, and so on."""

    def __init__(self, fleet: Fleet, live: LiveState, cursors: dict[str, tuple[str, int]], epoch: int) -> None:
        self.fleet = fleet
        self.live = live
        self.epoch = epoch
        self.cursors = {key: told for key, told in cursors.items() if key.rpartition("/")[0] in fleet.nodes}
        self.silent: dict[str, datetime] = {}
        self.swept = 0
        self.agenda = Agenda()
        self.slot_waiters = wakeups.SlotWaiters()
        self._racks = RackTurns(self.agenda, self._record_all)
        self._ready: StepOutput | None = None
        self._touched: dict[str, str] = {}
        self._sweeping: dict[str, None] = {}
        self._suspects: dict[str, int] = {}
        self._begin(fleet.cell.last_at or datetime.min.replace(tzinfo=UTC))

    @property
    def now(self) -> datetime:
        """Controller time: the moment of the last step."""
        return self._now

    def resume(
        self, wall: datetime, version: str, *, witness: Witness | None = None, copy: Restored | None = None
    ) -> StepOutput:
        """The first step after loading: say so, and observe every outstanding operation before anything else.

        `witness` is what a standby has measured of the absence before it, `copy` the journal's word of being one.
        """
        formats.check(self.fleet.cell.format, self.live.release.reads)
        begun = opening(self.fleet.cell.last_at, wall, witness)
        self._begin(begun.now)
        self.live.started = begun.now
        remember_loud(self._context)
        self._record_all(first_words(self.fleet, e.ControllerStarted(self.epoch, version), begun, copy), "clock")
        self._look_again()
        return self._finish()

    def _look_again(self) -> None:
        """Observe what is outstanding before anything of it can expire, and look at every node anew."""
        for node in (self.fleet.nodes[i] for i in self.fleet.index.members("operating")):
            for operation in node.under_way:
                if operation.id not in self.live.unobserved:
                    self.live.unobserved[operation.id] = self._now + OBSERVED_WITHIN
                    self._draft.sends.append(Send("observe", operation, node))
        self._draft.sends += self._racks.look_again(self._context)
        self._touched.update(dict.fromkeys(self.fleet.nodes, "clock"))
        self.agenda.wake(CALENDAR, self._now, self._now)

    def step(self, told: Iterable[inputs.Input], now: datetime) -> StepOutput:
        """Decide on these inputs at this moment. Time never goes back: an earlier `now` counts as the last one."""
        assert self._ready is None, "the last batch has neither committed nor been lost"
        self._begin(max(now, self._now))
        for one in map(without_secrets, told):
            if self.fleet.cell.restored is not None:
                self._record_all(restore_diff.of_input(self.fleet, one, self.cursors), "restore")
            self._take(one)
        self._due()
        self._decide()
        return self._finish()

    def sweep(self, node_ids: Iterable[str]) -> None:
        """Have these nodes looked at in the next step though nothing touched them; `swept` counts what it found."""
        self._sweeping.update(dict.fromkeys(node_ids))

    def committed(self) -> None:
        """Take note that the batch of the last step is durable; merge it into the fleet."""
        assert self._ready is not None, "nothing waits for a commit"
        self.fleet.merge()
        self.cursors.update(self._ready.batch.cursors)
        self._ready = None

    def lost(self) -> None:
        """The batch did not become durable: forget it. This controller must not be used again."""
        self.fleet.drop()
        self._ready = None

    def _begin(self, now: datetime) -> None:
        self._now = now
        self._context = DecisionContext(self.fleet, self.live, now)
        self._draft = BatchDraft()
        self._eased = self._uneven = False
        self._quiet: dict[str, int] = {}

    def _finish(self) -> StepOutput:
        charge_followed(self._context, self._draft)
        self._ready = self._draft.ready(self.fleet.cell.format)
        if self._touched or self._suspects or self._racks.touched:
            self.agenda.wake(CALENDAR, self._now, self._now)
        return self._ready

    def _emit(self, event: e.Event, cause: str) -> None:
        """Put the event into the batch and the overlay, and note what it touches."""
        self._draft.sends += wakeups.revocations(self.fleet, event)
        errors = judged(self._context, event)
        event = formats.worded(self._context, event)
        record = e.Record(self.fleet.cell.seq + 1, self._now, self.epoch, cause, event)
        evolve(self.fleet, record)
        self._draft.records.append(record)
        self._eased = self._eased or wakeups.asks_all_again(self.fleet, event)
        self._follow_up(record)
        self._touch_all(self.slot_waiters.woken(event), cause)
        forget(event, self.agenda, self.live, self.silent, self.cursors)
        self._tell_all(errors, f"record:{record.seq}")
        self._tell_all(rma_cases.followed(self._context, event), f"record:{record.seq}")

    def _follow_up(self, record: e.Record) -> None:
        """Do what a record asks of this batch and of the clock."""
        event, cause = record.event, record.cause
        self._suspects.update(dict.fromkeys(wakeups.suspects(self.fleet, event), record.seq))
        match event:
            case e.RestoreReleased() | e.ClockConfirmed():
                self._look_again()
            case e.OperationStarted(operation=operation):
                self.agenda.attempted(operation.id)
                self._draft.sends.append(Send("perform", operation, self.fleet.nodes[operation.node]))
        if isinstance(event, ENTRIES):
            self._watch_calendar()
        self._touch_all(wakeups.concerned(self.fleet, event), cause)
        self._draft.sends += self._racks.noted(self._context, event, cause)

    def _watch_calendar(self) -> None:
        if (at := next_moment(self.fleet, self._now)) is not None:
            self.agenda.wake(CALENDAR, at, self._now)

    def _take(self, one: inputs.Input) -> None:  # noqa: C901, PLR0912 - one flat table of cases
        match one:
            case inputs.ClockSeen():
                self._set_clock(one)
            case inputs.FellowsSeen(fellows=fellows):
                self._eased = self._eased or fellows != self.live.fellows
                self.live.fellows = fellows
                self._record_all(formats.raised(self._context), "fellows")
            case inputs.Observed():
                self._observe(one)
            case inputs.IntentAsked():
                self._answer(one)
            case inputs.Replied(outcome=outcome):
                self._reply(outcome)
            case inputs.WorkSeen():
                changed = (one.whole or bool(one.lost)) and one.lost != self.live.clusters.get(one.cluster)
                self._eased = self._eased or changed
                for node_id in scheduler_views.see_work(self._context, one):
                    self._touch(node_id, "scheduler")
                    self._touch_all(wakeups.beside(self.fleet, node_id), "scheduler")
                if one.whole:
                    self._touch_all(own_conditions.unlisted(self._context, one.cluster), "scheduler")
                self._record_all(scheduler_views.of_override(self.fleet, one, self._now), "scheduler")
            case inputs.AgentHeard() | inputs.AgentSilent() | inputs.NodeSeen() | inputs.AgentRefused():
                if (told := live_updates.of_node(self._context, self.silent, one)) is not None:
                    self._uneven = self._uneven or bool(self.fleet.incidents_of(one.node))
                    self._tell_all(told.events, told.cause)
                    self._touch(one.node, told.cause)
            case (
                inputs.FabricSeen() | inputs.LinksSeen() | inputs.SubnetSeen() | inputs.RackSeen() | inputs.TrendsSeen()
                | inputs.AuditSeen() | inputs.DiskSeen()
            ):  # fmt: skip
                self._tell_all(of_report(self._context, one), cause_of(one))
                self._touch_all(waiting_for(self.fleet, one), "fabric")
            case inputs.BootAsked():
                events, reply = answered(self._context, one)
                self._record_all(events, "boot")
                self._draft.replies.append(reply)
            case inputs.CompanySought(node=node_id):
                self._touch_all(called(self._context, node_id), "meeting")
            case inputs.Tick() | inputs.AgentAhead():
                pass  # the one is time that passes, the other was compared with the copy
            case _:
                assert_never(one)

    def _set_clock(self, seen: inputs.ClockSeen) -> None:
        """Time went by that nobody attended to, or it is in doubt; after a gap all is unknown, as at a start."""
        self._record_all(of_clock(self.fleet, seen), "clock")
        if seen.unattended_s:
            self.silent.clear()
            self.live.forget(self._now)
            self._look_again()
        self._eased = True

    def _touch(self, node_id: str, cause: str) -> None:
        if node_id in self.fleet.nodes:
            self._touched.setdefault(node_id, cause)

    def _touch_all(self, node_ids: Iterable[str], cause: str) -> None:
        for node_id in node_ids:
            self._touch(node_id, cause)

    def _record_all(self, events: Iterable[e.Event], cause: str) -> None:
        for event in events:
            self._emit(event, cause)
            self._touch_all(e.subjects_of(event), cause)

    def _tell_all(self, events: Iterable[e.Event], cause: str) -> None:
        """Record what was seen or follows from it, as far as every controller of the cell reads it."""
        self._record_all(formats.tellable(self._context, events), cause)

    def _answer(self, one: inputs.IntentAsked) -> None:
        said = answered_intent(self._context, one)
        self._record_all(said.events, f"intent:{one.intent.id}")
        self._draft.replies.append(Reply(one.token, said.granted, said.text, detail=said.detail, ways=said.ways))

    def _observe(self, seen: inputs.Observed) -> None:
        """Record what is new to the sender's cursor, as far as the sender's budget goes."""
        for events, cause in observed(self._context, self._draft, self.cursors, seen):
            self._tell_all(events, cause)
            self._touch(seen.node, cause)

    def _reply(self, outcome: Outcome) -> None:
        node = self.fleet.nodes.get(outcome.node)
        if node is None:
            self._racks.reply(self._context, outcome)
            return
        if operation_replies.is_known_by(node, outcome) and self.live.observed(outcome.operation):
            self._touch(node.id, f"operation:{outcome.operation}")
        if restore_diff.is_of_the_copy(self.fleet, outcome):
            if outcome.result in ("unknown", "busy"):
                self.agenda.return_to("observe", outcome.operation, outcome.node, self._now)
            return
        reply = operation_replies.of_reply(self._context, node, outcome)
        if reply.observe or reply.resend:
            how = "observe" if reply.observe else "perform"
            self.agenda.return_to(how, outcome.operation, outcome.node, self._now)
            return
        if reply.events and outcome.result != "not_done":
            self.agenda.known(outcome.operation)
        self._tell_all(reply.events, f"operation:{outcome.operation}")

    def _due(self) -> None:
        for node_id in self.agenda.due(self._now):
            if node_id == CALENDAR:
                self._record_all(ended(self._context), "clock")
                self._eased = True
                self._watch_calendar()
            self._touch(node_id, "clock")
            node = self.fleet.nodes.get(node_id)
            self._draft.sends += self._racks.due(self._context, node_id)
            if node is None:
                continue
            store_tails(self._context, self._draft, node_id)
            for operation in node.under_way:
                how = self.agenda.due_for(operation.id, self._now)
                if how == "observe":
                    self._draft.sends.append(Send("observe", operation, node))
                elif how == "perform":
                    self._emit(sent_again(self.fleet, operation, node, self._now), "clock")

    def _decide(self) -> None:
        """Step every touched node forward, the most urgent first; then pools; then those who waited for either."""
        self._tell_all(staleness.review(self._context, list(self._touched), self.silent), "clock")
        for _ in range(ROUNDS):
            for node_id, cause in list(self._touched.items()):
                self._record_all(self._news(self.fleet.nodes.get(node_id)), cause)
            self._review()
            touched, self._touched = self._touched, {}
            busy = (i for i in touched if not needs_no_step(self._context, self.silent, i))
            for node_id in wakeups.ranked(self._context, busy):
                self._forward(node_id, touched[node_id])
            self._racks.forward(self._context)
            self._fill_and_ease()
            if not self._touched and not self._suspects:
                self._tell_all(advance(self._context), "clock")
            if not (self._touched or self._suspects or self._eased or self._racks.touched):
                break
        found = len(self._draft.records)
        for node_id in to_visit(self._context, self.silent, self._sweeping):
            self._forward(node_id, "sweep")
        self.swept += len(self._draft.records) - found
        self._sweeping = {}

    def _fill_and_ease(self) -> None:
        """Pools get spares for the places that nobody fills; who is blocked is asked again once something has eased."""
        eased = self._eased
        if eased or self._uneven:
            self._eased = self._uneven = False
            dark = pool_places.dark(self._context)
            for name, pool in self.fleet.pools.items():
                found = formats.together(self._context, balance(self._context, pool, dark.get(name, {})))
                self._record_all(found, f"pool:{name}")
        if eased:
            self._touch_all(self.fleet.index.members("blocked"), "eased")

    def _review(self) -> None:
        """Before anybody is treated: do the nodes that changed in this batch share a cause?"""
        suspects, self._suspects = self._suspects, {}
        if suspects:
            self._tell_all(review(self._context, suspects), f"record:{max(suspects.values())}")
            if not self.fleet.incidents.bare:
                self._uneven = True
                self._watch_calendar()

    def _news(self, node: Node | None) -> tuple[e.Event, ...]:
        """Events of the node by the clock. A node without any is not asked again before something is recorded."""
        if node is None or self._quiet.get(node.id) == len(self._draft.records):
            return ()
        found = tuple(formats.tellable(self._context, live_updates.by_clock(self._context, node, self.silent)))
        if not found:
            self._quiet[node.id] = len(self._draft.records)
        return found

    def _forward(self, node_id: str, cause: str) -> None:
        """Ask for the next step until the node waits or rests."""
        for _ in range(ROUNDS):
            node = self.fleet.nodes.get(node_id)
            if node is None:
                return
            events = self._news(node)
            if not events:
                answer = next_step(self._context, node)
                if not isinstance(answer, Act):
                    self._settle_down(node, answer, cause)
                    return
                events = answer.events
            for event in events:
                self._emit(event, cause)
                self._touch_all((one for one in e.subjects_of(event) if one != node_id), cause)
        raise AssertionError(f"{node_id} did not come to rest in {ROUNDS} steps: {self._draft.last_names()}")

    def _settle_down(self, node: Node, answer: Wait | Rest, cause: str) -> None:
        """Record a changed reason for waiting, and see to it that the clock wakes the node in time."""
        fresh = wakeups.told(node, answer, self._now, swept=cause == "sweep")
        if fresh != node.waiting:
            self._emit(e.WaitingChanged(node.id, fresh), cause)
            before, node = node, self.fleet.nodes[node.id]
            self._eased = self._eased or wakeups.eases(before, node)
        self.slot_waiters.note(self._context, node)
        if (at := soonest(self._now, answer.until, live_updates.next_by_clock(self._context, node))) is not None:
            self.agenda.wake(node.id, at, self._now)
