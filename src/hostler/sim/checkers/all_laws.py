"""The ten laws and who watches each. One table."""

from hostler.sim.checkers.danger_laws import Dangers
from hostler.sim.checkers.disruption_laws import Budgets, CustomerWork, DoubtIsNotHealth, NamedWaits, OnlyYourOwn
from hostler.sim.checkers.domain_act_laws import Wholeness
from hostler.sim.checkers.idle_check_laws import IdleChecks
from hostler.sim.checkers.journal_laws import EverythingEnds, FrozenPlans, LevelNotEdge, OneWriter
from hostler.sim.checkers.law import Law, LawCheckers
from hostler.sim.checkers.meeting_laws import BlameByMeetings, BlameIsAnswered
from hostler.sim.checkers.network_laws import Networks
from hostler.sim.checkers.policy_limit_laws import PolicyLimits
from hostler.sim.checkers.rack_bring_up_laws import RackBringUps
from hostler.sim.checkers.rack_service_laws import RackService
from hostler.sim.checkers.rma_triage_laws import Condemned
from hostler.sim.checkers.source_laws import SourcesKeepBudgets
from hostler.sim.checkers.way_out_laws import WaysOut
from hostler.sim.world.world import World


def law_checkers(world: World) -> LawCheckers:
    """A court with a fresh watcher for each of the ten laws."""
    one, level, frozen, budgets = OneWriter(), LevelNotEdge(), FrozenPlans(), Budgets()
    whole, idle, condemned, limits = Wholeness(), IdleChecks(), Condemned(), PolicyLimits()
    waits, own, doubt, ends, work = NamedWaits(), OnlyYourOwn(), DoubtIsNotHealth(), EverythingEnds(), CustomerWork()
    networks, racks, bring_ups = Networks(), RackService(), RackBringUps()
    ways = WaysOut()
    laws = (
        Law(1, one.record, one.batch, end=one.batch),
        Law(2, level.record),
        Law(3, frozen.record, frozen.batch, end=frozen.batch),
        Law(4, budgets.record),
        Law(4, whole.record, whole.batch),
        Law(4, limits.record, limits.batch),
        Law(4, SourcesKeepBudgets().record),
        Law(5, waits.record, waits.batch, end=waits.end),
        Law(6, own.record, own.batch, end=own.batch),
        Law(7, doubt.record),
        Law(7, condemned.record),
        Law(7, Dangers().record),
        Law(7, BlameByMeetings().record),
        Law(7, BlameIsAnswered().record),
        Law(8, ends.record, ends.batch, end=ends.end),
        Law(9, work.record, work.batch, end=work.batch),
        Law(9, idle.record, idle.batch),
        Law(7, networks.findings),
        Law(2, networks.tickets),
        Law(4, networks.switches),
        Law(9, networks.unmanaged, networks.resets),
        Law(8, end=networks.end),
        Law(7, racks.record),
        Law(4, batch=racks.batch),
        Law(8, end=racks.end),
        Law(3, bring_ups.order),
        Law(7, bring_ups.truth),
        Law(9, bring_ups.work),
        Law(8, end=bring_ups.end),
        Law(10, ways.record, committed=ways.committed),
    )
    return LawCheckers(world, laws)
