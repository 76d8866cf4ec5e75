"""Planted bugs, each with the law whose watcher must notice it: what the suite and the soak run hunt with seeds."""

# ruff: noqa: SLF001 - a mutant is planted inside

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count, islice
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.controller import loop, operation_replies, scheduler_views, wakeups
from hostler.controller.inputs import Observed
from hostler.core.diagnose import judge as diagnose
from hostler.core.planning import domain_plans, drain, execution, idle_checks, remediation, spares
from hostler.core.policy import budgets, corroboration, guards, workload_consent
from hostler.core.state import health, index_keys
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.events import PlanAdvanced
from hostler.core.state.events import cell as cell_events
from hostler.core.state.health import DOUBTS
from hostler.core.state.model import Blocker, Phase, Verdict, Waiting
from hostler.core.state.pool_mode import Mode
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.ways_out import observed
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import RECIPES
from hostler.core.tables.verdicts import ENDS, StepEnd
from hostler.drivers.redfish import operation_driver
from hostler.journal.memory import MemoryJournal
from hostler.ports import Lease
from hostler.runtime.lease_validity import LeaseWatch
from hostler.sim.cell_shapes import Shape, meeting_shape, racked_shape, shape_of, wired_shape
from hostler.sim.checkers.law import Found, Law, LawCheckers, Violation
from hostler.sim.hostile_worlds import judge
from tests.simulation import meeting_mutants as meetings
from tests.simulation import network_mutants as network
from tests.simulation import rack_mutants as racks
from tests.simulation import way_out_mutants as ways

SEEDS = 60

Plant = Callable[[pytest.MonkeyPatch], None]


class Mutant(Struct, frozen=True):
    """A bug: which law it breaks, a word of what that law's watcher says of it, and how it is planted.

    `among`: the cells in which it can show at all. `wired`: they have a compute network. `meets`: their nodes meet.
    `racked`: they have a rack's assets.
    """

    name: str
    law: int
    says: str
    plant: Plant
    among: Callable[[Shape], bool] = lambda _shape: True
    wired: bool = False
    meets: bool = False
    racked: bool = False


class Catch(Struct, frozen=True):
    """Records what the watcher said, in which seed, and how many worlds were run for it."""

    text: str
    seed: int
    tried: int


class NoticedError(Exception):
    """Ends a world in which the planted bug was noticed: nothing that comes later changes that."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.text)
        self.violation = violation


def hunt(mutant: Mutant, known: int | None = None) -> Catch | None:
    """Plant it and run worlds until its law's watcher says so; None where none of SEEDS does.

    `known`: the seed that is tried before all others. The mutant may trip over its own bug in some worlds; one that
    does in every world was planted wrongly, and raises.
    """
    tripped: list[Exception] = []
    tried = 0
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        _end_where_noticed(mutant, patch)
        for seed in seeds_for(mutant, known):
            tried += 1
            try:
                found = judge(seed, wired=mutant.wired, meets=mutant.meets, racked=mutant.racked).violations
            except NoticedError as noticed:
                return Catch(noticed.violation.text, seed, tried)
            except Exception as trip:  # noqa: BLE001 - it is counted below
                tripped.append(trip)
                continue
            for violation in found:
                if _shows(mutant, violation):
                    return Catch(violation.text, seed, tried)
    if tripped and len(tripped) == tried:
        raise tripped[0]
    return None


def _shows(mutant: Mutant, violation: Violation) -> bool:
    return violation.law == mutant.law and mutant.says in violation.text


def _end_where_noticed(mutant: Mutant, patch: pytest.MonkeyPatch) -> None:
    """A law's watcher that notices the bug ends the world; what only a world's end shows is read there."""
    note = LawCheckers._note

    def noted(self: LawCheckers, law: Law, found: Found) -> None:
        before = len(self.violations)
        note(self, law, found)
        for violation in self.violations[before:]:
            if _shows(mutant, violation):
                raise NoticedError(violation)

    patch.setattr(LawCheckers, "_note", noted)


def seeds_for(mutant: Mutant, known: int | None) -> Iterator[int]:
    """The known seed, then SEEDS others in which the mutant can show, from 0 on."""
    if known is not None:
        yield known
    shape = meeting_shape if mutant.meets else wired_shape if mutant.wired else shape_of
    shape = racked_shape if mutant.racked else shape
    yield from islice((seed for seed in count() if mutant.among(shape(seed)) and seed != known), SEEDS)


def one_epoch_for_everybody(patch: pytest.MonkeyPatch) -> None:
    """Taking the lease does not fence the last holder."""
    acquire = MemoryJournal.acquire

    def same(self: MemoryJournal, holder: str, address: str = "", seen: Lease | None = None) -> int:
        acquire(self, holder, address, seen)
        self._lease = replace(self._lease, epoch=1)
        return 1

    patch.setattr(MemoryJournal, "acquire", same)


def the_deposed_send(patch: pytest.MonkeyPatch) -> None:
    """Sends without looking at what is left of the lease."""
    patch.setattr(LeaseWatch, "margin", lambda _self, _now: 1.0)


def cursors_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A sender that begins again is believed again."""
    observe = loop.Controller._observe

    def believe(self: loop.Controller, seen: Observed) -> None:
        self.cursors.clear()
        observe(self, seen)

    patch.setattr(loop.Controller, "_observe", believe)


def unknown_is_repeated(patch: pytest.MonkeyPatch) -> None:
    """An unknown outcome counts as one that did not happen."""
    of_reply = operation_replies.of_reply

    def blind(context: Any, node: Any, outcome: Any) -> Any:
        return of_reply(context, node, replace(outcome, result="not_done") if outcome.result == "unknown" else outcome)

    patch.setattr(operation_replies, "of_reply", blind)


def undo_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """A plan that ends early leaves its cordon behind."""
    patch.setattr(execution, "undo_tail", lambda _plan: ())


def budget_of_current_members(patch: pytest.MonkeyPatch) -> None:
    """Percent and count are of who is left, so that every node moved away makes room for the next."""

    unavailable = budgets.unavailable

    def current(context: Any, pool: Any) -> int:
        return unavailable(context, replace(pool, target=context.fleet.index.count(f"pool:{pool.name}")))

    patch.setattr(budgets, "unavailable", current)


def holds_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A person's hold stops nobody."""
    patch.setitem(guards._ANSWERS, "hold", lambda _context, _request: [])


def every_pool_acts(patch: pytest.MonkeyPatch) -> None:
    """The mode of a pool is not looked at."""
    patch.setattr("hostler.core.planning.remediation.mode_of", lambda *_: Mode.act)


def domains_have_no_budget(patch: pytest.MonkeyPatch) -> None:
    """Any number of nodes of one NVLink domain may be disturbed at once."""
    patch.setitem(guards._ANSWERS, "domain", lambda _context, _request: [])


def blockers_are_left_out(patch: pytest.MonkeyPatch) -> None:
    """Leaves the blockers out of a wait."""
    patch.setattr(
        wakeups, "Waiting", lambda what, since, _blockers, *rest, **more: Waiting(what, since, (), *rest, **more)
    )


def a_persons_cordon_is_lifted(patch: pytest.MonkeyPatch) -> None:
    """A plan that ends uncordons whatever it finds."""
    patch.setattr(execution, "_cordoned_by_person", lambda _context, _node: False)


def nobody_overrides(patch: pytest.MonkeyPatch) -> None:
    """Shows that a person has lifted our cordon and does not record it."""
    patch.setattr(scheduler_views, "of_override", lambda *_: ())


def any_bmc_will_do(patch: pytest.MonkeyPatch) -> None:
    """The driver does not look whose BMC answers at the address."""
    patch.setattr(operation_driver, "check_identity", lambda *_args, **_more: None)


def user_space_is_believed(patch: pytest.MonkeyPatch) -> None:
    """A line is as good as the kernel's, whoever wrote it."""

    class Everything:
        __hash__ = object.__hash__

        def __eq__(self, _other: object) -> bool:
            return True

        def __ne__(self, _other: object) -> bool:
            return False

    patch.setattr(diagnose, "KERNEL_FACILITY", Everything())


def root_is_believed(patch: pytest.MonkeyPatch) -> None:
    """A kernel log is the kernel's word, whoever has root on the node."""
    patch.setattr("hostler.core.policy.corroboration.tenant_has_root", lambda *_: False)


def silence_convicts(patch: pytest.MonkeyPatch) -> None:
    """An agent that is not heard needs no second witness."""
    patch.setattr(corroboration, "is_confirmed_down", lambda _live, _node: True)


def a_remedy_forgets_its_checks(patch: pytest.MonkeyPatch) -> None:
    """A power cycle leads straight back to service."""
    recipe = RECIPES["power_cycle"]
    unchecked = tuple(row for row in recipe.steps if row.act.kind != "run_checks")
    patch.setitem(RECIPES, "power_cycle", replace(recipe, steps=unchecked))


def the_doubted_are_delivered(patch: pytest.MonkeyPatch) -> None:
    """A spare of which nobody can say how it is is as good as any."""

    def is_free(node: Any) -> bool:
        free = node.phase is Phase.production and node.assignment is None and node.plan is None
        return free and not node.cordons and all(is_doubt(c) for c in node.conditions)

    def is_doubt(condition: Any) -> bool:
        return condition.type in DOUBTS or condition.unknown_since is not None

    patch.setattr(index_keys, "is_spare", is_free)


def nothing_times_out(patch: pytest.MonkeyPatch) -> None:
    """An operation without an answer is waited for, whatever its deadline."""
    outstanding = execution._outstanding

    def patient(context: Any, node: Any, plan: Any, operation: Any) -> Any:
        if operation.deadline > context.now:
            return outstanding(context, node, plan, operation)
        blocker = Blocker("operation", operation.id, "it will come", observed("it comes"))
        return Wait(plan.name, (blocker,), until=context.now + timedelta(hours=1))

    patch.setattr(execution, "_outstanding", patient)


def the_unexamined_are_condemned(patch: pytest.MonkeyPatch) -> None:
    """A node whose power could not be switched for its examination goes to its vendor."""
    patch.setitem(RECIPES, "examine", replace(RECIPES["examine"], failed_phase=Phase.rma))
    patch.setitem(PHASES, Phase.rma, replace(PHASES[Phase.rma], convicted=False))


def no_answer_convicts(patch: pytest.MonkeyPatch) -> None:
    """A check that says nothing has failed."""
    patch.setitem(ENDS, Verdict.inconclusive, StepEnd.failed)


def the_dead_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Keeps a dead node from its remedy while a scheduler goes on listing work there."""
    patch.setattr(drain, "_is_past_ending", lambda *_: False)


def everybody_is_doomed(patch: pytest.MonkeyPatch) -> None:
    """Any fault on a node gives its whole work up."""
    patch.setattr(workload_consent, "is_doomed", lambda *_: True)


def an_agreement_before_its_time(patch: pytest.MonkeyPatch) -> None:
    """A pool that lets work be ended after its drain deadline has it ended at once."""
    patch.setattr(drain, "_agreed_at", lambda context, *_: context.now)


def incidents_hold_nobody(patch: pytest.MonkeyPatch) -> None:
    """Treats node by node what one shared part brings about."""
    patch.setattr(guards, "holding", lambda *_: [])
    patch.setattr(execution, "holding", lambda *_: [])


def deadlines_before_observation(patch: pytest.MonkeyPatch) -> None:
    """Expires at once what was under way when nobody attended, with nobody having looked what came of it."""
    outstanding = execution._outstanding

    def hasty(context: Any, node: Any, plan: Any, operation: Any) -> Any:
        context.live.unobserved.clear()
        return outstanding(context, node, plan, operation)

    patch.setattr(execution, "_outstanding", hasty)
    patch.setattr(cell_events, "extend", lambda _fleet, _gap: None)


def taken_whole(shape: Shape) -> bool:
    """Cells in which all of a domain may be out at once."""
    return shape.whole


def members_begin_alone(patch: pytest.MonkeyPatch) -> None:
    """Of a domain those are taken that come first."""
    whole = remediation._domain
    patch.setattr(remediation, "_domain", lambda context, need, scope: whole(context, need, scope)[:1])


def members_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """A member of a domain act goes its own pace."""
    patch.setattr(domain_plans, "behind", lambda *_: ())


def members_turn_back_alone(patch: pytest.MonkeyPatch) -> None:
    """Lets one member turn back without the others."""
    patch.setattr(domain_plans, "turned_back", lambda *_: "")


def unmanaged(shape: Shape) -> bool:
    """A cell with a node that is not Hostler's to act upon."""
    return shape.unmanaged >= 0


def checked(shape: Shape) -> bool:
    """Whether idle nodes are checked there."""
    return shape.checked


def idle_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A node is checked in its slot whoever works there."""
    patch.setattr(idle_checks, "_is_quiet", lambda *_: True)
    patch.setattr(idle_checks, "_busy", lambda *_: "")


def nothing_keeps_checks_away(patch: pytest.MonkeyPatch) -> None:
    """Holds, faults and cordons are no reason to leave a node in peace."""
    patch.setattr(idle_checks, "_wanted_by_others", lambda *_: "")
    patch.setattr(idle_checks, "_stopped", lambda *_: "")


def checks_never_yield(patch: pytest.MonkeyPatch) -> None:
    """Once begun, a check goes on beside whoever comes."""
    patch.setattr(idle_checks, "end", lambda *_: None)


def the_unseen_are_idle(patch: pytest.MonkeyPatch) -> None:
    """Once begun, a check goes on though nobody sees any longer who works there."""
    patch.setattr(idle_checks, "_unheard", lambda *_: "")


def braked(shape: Shape) -> bool:
    """Cells small enough for their storm brake."""
    return shape.braked


def scarce(shape: Shape) -> bool:
    """Cells in which few may leave and few spares are left."""
    return shape.scarce


def the_brake_never_latches(patch: pytest.MonkeyPatch) -> None:
    """However much is disturbed, it is no storm."""
    patch.setattr(remediation, "storm", lambda *_: "")


def windows_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Starts at once what can wait for a maintenance window."""
    patch.setitem(guards._ANSWERS, "window", lambda _context, _request: [])


def any_number_leaves(patch: pytest.MonkeyPatch) -> None:
    """Removals of a day are not counted."""
    patch.setattr(budgets, "_removal_budget", lambda *_: [])


def nobody_is_kept_for_those_who_can_wait(patch: pytest.MonkeyPatch) -> None:
    """A node that could wait leaves its pool though no spare may take its place."""
    patch.setattr(budgets, "_spares_floor", lambda *_: [])


def the_last_spare_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """No spare is kept back."""
    balance = spares.balance

    def all_of_them(context: Any, pool: Any, dark: Any) -> Any:
        return balance(context, replace(pool, budget=replace(pool.budget, spares_floor=0)), dark)

    patch.setattr(loop, "balance", all_of_them)


def one_spare_too_many_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """A pool that is full gets one more."""
    balance = spares.balance

    def one_more(context: Any, pool: Any, dark: Any) -> Any:
        return balance(context, replace(pool, target=pool.target + 1), dark)

    patch.setattr(loop, "balance", one_more)


def a_failed_gate_is_never_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Refuses as a spare whoever came back from repair through a burn-in, for the gate of before is its last."""

    def passed(node: Any) -> bool:
        gates = [check.verdict is Verdict.passed for check in node.checks if check.profile == "gate"]
        return all(gates) and has_proven_itself(node)

    patch.setattr(health, "_last_gate_passed", passed)


def groups_have_no_domain_budget(patch: pytest.MonkeyPatch) -> None:
    """Asks no domain about nodes that are disturbed together."""
    asked = guards._ANSWERS["domain"]

    def alone(context: Any, request: Any) -> Any:
        return asked(context, request) if len(request.nodes) == 1 else []

    patch.setitem(guards._ANSWERS, "domain", alone)


def unknown_use_is_doomed(patch: pytest.MonkeyPatch) -> None:
    """Work of which nobody knows the GPUs counts as using the one that failed."""
    uses = workload_consent._uses
    patch.setattr(workload_consent, "_uses", lambda node, work, part: work.parts is None or uses(node, work, part))


def drains_are_passed_by(patch: pytest.MonkeyPatch) -> None:
    """A drain ends at once, and whoever is there is told to go by a later step."""

    def passed(_context: Any, node: Any, plan: Any) -> Act:
        return Act((PlanAdvanced(node.id, plan.id, plan.index + 1),))

    patch.setitem(execution._PRESENT, "drain", passed)


MUTANTS: tuple[Mutant, ...] = (
    Mutant("one epoch for everybody", 1, "epoch 1", one_epoch_for_everybody),
    Mutant("a deposed controller sends", 1, "a deposed controller has sent", the_deposed_send),
    Mutant("cursors are forgotten", 2, "raised it before", cursors_are_forgotten),
    Mutant("unknown is repeated blindly", 3, "is repeated", unknown_is_repeated),
    Mutant("drains are passed by", 3, "only now tells", drains_are_passed_by),
    Mutant("the undo tail is dropped", 3, "left out", undo_is_dropped),
    Mutant("the budget counts current members", 4, "are out already", budget_of_current_members),
    Mutant("holds are not asked", 4, "against the hold", holds_are_not_asked),
    Mutant("every pool acts", 4, "its pool stands at", every_pool_acts),
    Mutant("domains have no budget", 4, "are disturbed already", domains_have_no_budget),
    Mutant("members of a domain begin alone", 4, "begins without", members_begin_alone, taken_whole),
    Mutant("members of a domain do not wait", 4, "is open", members_do_not_wait, taken_whole),
    Mutant("members of a domain turn back alone", 4, "have turned back", members_turn_back_alone, taken_whole),
    Mutant("a group has no domain budget", 4, "are disturbed at once", groups_have_no_domain_budget, taken_whole),
    Mutant("the brake never latches", 4, "the brake allows", the_brake_never_latches, braked),
    Mutant("windows are ignored", 4, "outside the maintenance window", windows_are_ignored),
    Mutant("any number leaves a day", 4, "have left it within a day", any_number_leaves, scarce),
    Mutant("nobody is kept back", 4, "though it could wait", nobody_is_kept_for_those_who_can_wait, scarce),
    Mutant("the last spare is delivered", 4, "is delivered to", the_last_spare_is_delivered, scarce),
    Mutant("one spare too many is delivered", 4, "places are taken", one_spare_too_many_is_delivered),
    Mutant("incidents hold nobody", 4, "explains", incidents_hold_nobody),
    Mutant("blockers are left out", 5, "names no blocker", blockers_are_left_out),
    Mutant("a failed gate is never forgotten", 5, "is idle and waits", a_failed_gate_is_never_forgotten),
    Mutant("a person's cordon is taken back", 6, "is uncordoned against", a_persons_cordon_is_lifted),
    Mutant("nobody overrides", 6, "that is not recorded", nobody_overrides),
    Mutant("any BMC will do", 6, "reached the BMC of", any_bmc_will_do),
    Mutant("user space is believed", 7, "user space wrote", user_space_is_believed),
    Mutant("root is believed", 7, "who has root", root_is_believed),
    Mutant("silence alone convicts", 7, "no second witness", silence_convicts),
    Mutant("a remedy forgets its checks", 7, "no check has passed since", a_remedy_forgets_its_checks),
    Mutant("what could not be examined is condemned", 7, "goes to its vendor", the_unexamined_are_condemned),
    Mutant("no answer convicts", 7, "goes to its vendor", no_answer_convicts),
    Mutant("the doubted are delivered", 7, "is delivered, and nobody can say", the_doubted_are_delivered),
    Mutant("nothing times out", 8, "was due at", nothing_times_out),
    Mutant("deadlines before observation", 8, "before anybody has looked", deadlines_before_observation),
    Mutant("the dead are waited for", 8, "which ended when its host died", the_dead_are_waited_for),
    Mutant("everybody is doomed", 9, "without a right to", everybody_is_doomed),
    Mutant("unknown use is doomed", 9, "without a right to", unknown_use_is_doomed),
    Mutant("an agreement holds before its time", 9, "without a right to", an_agreement_before_its_time),
    Mutant("idle is not asked", 9, "works there", idle_is_not_asked, checked),
    Mutant("nothing keeps checks away", 9, "begins though", nothing_keeps_checks_away, checked),
    Mutant("checks never yield", 9, "has come", checks_never_yield, checked),
    Mutant("the unseen are idle", 9, "nobody sees who works there", the_unseen_are_idle, checked),
    Mutant("a partial discovery is believed", 7, "is as designed", network.the_partial_is_believed, wired=True),
    Mutant("a shrunken discovery is believed", 7, "is as designed", network.the_shrunken_is_believed, wired=True),
    Mutant("one look counts twice", 2, "told twice", network.one_look_counts_twice, wired=True),
    Mutant("one cable is asked for twice", 2, "both ask for", network.one_cable_is_asked_for_twice, wired=True),
    Mutant(
        "each link of a dead switch asks", 4, "is asked for by", network.each_link_of_a_dead_switch_asks, wired=True
    ),
    Mutant("a dead switch is its nodes", 4, "which is dead", network.a_dead_switch_is_its_nodes, wired=True),
    Mutant("the unmanaged are acted on", 9, "which is unmanaged", network.the_unmanaged_are_acted_on, unmanaged, True),
    Mutant("findings are never over", 8, "stands open", network.findings_are_never_over, wired=True),
    Mutant("a neighbour's port is reset", 9, "and leads to", network.a_neighbour_s_port_is_reset, wired=True),
    Mutant("nothing is a failed test", 7, "was ever wrong", meetings.nothing_is_a_failed_test, meets=True),
    Mutant("trays before detectors", 3, "before the detectors were dry", racks.trays_first, racks.rising, racked=True),
    Mutant(
        "an act on a tray is repeated",
        3,
        "sent again by the controller",
        racks.acts_are_repeated,
        racks.rising,
        racked=True,
    ),
    Mutant("the bundle is taken on trust", 7, "is done, and", racks.the_bundle_is_trusted, racks.rising, racked=True),
    Mutant("a frozen bring-up goes on", 7, "of nvsw", racks.a_frozen_bring_up_goes_on, racks.rising, racked=True),
    Mutant("a rack's work is not asked", 9, "serves pool", racks.work_is_not_asked, racks.in_service, racked=True),
    Mutant("a wet tray is sound", 7, "does not show it dry", racks.the_wet_are_sound, racked=True),
    Mutant("a unit leaks upon nobody", 4, "has no leak", racks.a_unit_leaks_upon_nobody, racked=True),
    Mutant("a leak is noted nowhere", 4, "counts as sound", racks.leaks_are_noted_nowhere, racked=True),
    Mutant("a dark tray stays dark", 8, "off in the end", racks.a_dark_tray_stays_dark, racked=True),
    Mutant("a way out is refused", 10, "is refused", ways.a_way_is_refused),
    Mutant("a way out names a dead hold", 10, "-gone", ways.a_way_names_a_dead_hold),
    Mutant("a way out names a dead ticket", 10, "is refused: hostler ticket", ways.a_way_names_a_dead_ticket),
    Mutant("a wait has no way out", 10, "has no way out", ways.a_wait_has_no_way),
    Mutant("members wait for each other", 10, "leads back", ways.members_wait_for_each_other, taken_whole),
)
"""Every planted bug; each law has at least one."""
