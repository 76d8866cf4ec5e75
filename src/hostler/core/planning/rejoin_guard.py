"""Turns away a Node that is listed against its journal: it is cordoned, and deleted where its node has left. Pure.

Its operations run beside the node's plan (`Node.aside`): they act on the cluster's list and not on the machine, and a
Node that is open to work must not wait for an examination to end. They pass the same guards as everything else.
"""

from datetime import timedelta

from msgspec.structs import replace

from hostler.core.conditions.machine_identity import rebinding
from hostler.core.conditions.uninvited import UNINVITED, entered_at_boot, listed_against_journal
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.holds_and_pauses import restored_at
from hostler.core.policy.pool_modes import mode_of
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait, soonest
from hostler.core.state.model import ActClass, Assignment, Blocker, Node, Operation
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import POOL
from hostler.core.state.verbs.modes import SetMode
from hostler.core.state.ways_out import by_act, by_time, observed
from hostler.core.tables.recipes import RECIPES, StepRow

TURN_AWAY = "turn_away"
"""The recipe, and the name under which a pool's modes speak of it."""

CORDON, DELETE = RECIPES[TURN_AWAY].steps

PAUSES_S = (2.0, 5.0, 15.0, 60.0, 300.0)
"""How long after an operation that came to nothing the next one begins: after the first in a row, the second …"""
REFUSED_PAUSE_S = 3600.0
"""The same after a refusal: the scheduler will say so again until somebody has changed something."""


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer with what is done beside it, or waited for, to turn the node away from the cluster it has left."""
    if isinstance(answer, Act) or (aside := turn_away(context, node)) is None:
        return answer
    if isinstance(aside, Act):
        return aside
    until = soonest(context.now, answer.until, aside.until)
    if isinstance(answer, Rest):
        return Wait(TURN_AWAY, aside.blockers, until)
    if not aside.blockers:
        return Wait(answer.what, answer.blockers, until)
    if node.operation is not None:  # the node shows that by itself
        return Wait(TURN_AWAY, aside.blockers, until)
    return Wait(f"{answer.what}, {TURN_AWAY}", (*answer.blockers, *aside.blockers), until)


def turn_away(context: DecisionContext, node: Node) -> Act | Wait | None:
    """The next operation against the uninvited Node, what that waits for, or None where there is nothing to do."""
    if node.aside is not None:
        return _outstanding(context, node, node.aside)
    where = listed_against_journal(context, node)
    cluster = where or node.left_cluster or entered_at_boot(context.fleet, node)
    if not cluster or not any(c.type == UNINVITED for c in node.conditions):
        return None
    if stopped := _stopped(context, node, cluster):
        return Wait(TURN_AWAY, stopped, until=None)
    if not where:
        return None  # the condition is about to end
    row = CORDON if cluster in context.live.of(node.id).open or _is_guest(context, node, cluster) else DELETE
    if row is DELETE and (works := _customers(context, node, cluster)):
        return Wait(TURN_AWAY, works, until=None)
    return _paused(context, node) or Act((e.OperationStarted(_operation(context, node, row, cluster)),))


def _outstanding(context: DecisionContext, node: Node, operation: Operation) -> Act | Wait:
    """The operation is answered, observed or given up at its deadline; the node shows it, so no blocker does."""
    restored, first = context.fleet.cell.restored, context.live.unobserved.get(operation.id)
    if restored is not None and operation.started < restored:
        return Wait(TURN_AWAY, (restored_at(restored),), until=None)
    if first is not None and context.now < first:
        return Wait(TURN_AWAY, (), until=first)
    if context.now < operation.deadline:
        return Wait(TURN_AWAY, (), until=operation.deadline)
    late = "it did not finish in time"
    return Act((e.OperationFinished(node.id, operation.id, operation.kind, "timed_out", late),))


def _stopped(context: DecisionContext, node: Node, cluster: str) -> tuple[Blocker, ...]:
    """Blockers that keep the Node as it is: a cluster not heard, another machine behind the name, or a guard."""
    if not context.live.synced(cluster):
        why = context.live.clusters.get(cluster) or "it has not been heard yet"
        text = f"the nodes that cluster {cluster} lists are not known: {why}"
        return (Blocker("scheduler", cluster, text, observed("the cluster answers again", "scheduler")),)
    there = context.live.of(node.id).scheduler_boot
    if there and node.boot_id and there != node.boot_id:
        text = f"the node that cluster {cluster} lists by this name runs boot {there}, not {node.boot_id}"
        return (
            Blocker(
                "binding",
                node.id,
                text,
                (observed("both report one boot", "agent"), rebinding(node)),
            ),
        )
    pool = "" if _is_guest(context, node, cluster) else node.left_pool
    member = replace(node, assignment=Assignment(pool, "", cluster, node.phase_since))
    found = blockers(context, DisruptionRequest(TURN_AWAY, ActClass.immediate, (member,)))
    if not found and mode_of(context, member, TURN_AWAY) is Mode.propose:
        text = f"{TURN_AWAY} is only proposed in pool {node.left_pool}, so a person has to delete the Node"
        gone = observed(f"a person deletes the Node in cluster {cluster}", "scheduler")
        acts = by_act(SetMode(Mode.act, TURN_AWAY), f"{POOL}:{node.left_pool}", "a person sets the mode")
        return (Blocker("mode", f"{node.left_pool}:{TURN_AWAY}", text, (gone, acts)),)
    return found


def _is_guest(context: DecisionContext, node: Node, cluster: str) -> bool:
    """Whether its boot has let it in there: it is kept cordoned, and no pool's mode is asked."""
    return cluster == entered_at_boot(context.fleet, node)


def _customers(context: DecisionContext, node: Node, cluster: str) -> tuple[Blocker, ...]:
    """The customers' work that has come to the Node: it ends by itself, and nobody asks it to."""
    works = context.live.of(node.id).workloads.get(cluster, ())
    return tuple(
        Blocker(
            "workload", work.id, f"workload {work.id} runs there in cluster {cluster}", observed("it ends", "scheduler")
        )
        for work in works
        if work.work_class is not WorkClass.infrastructure
    )


def _paused(context: DecisionContext, node: Node) -> Wait | None:
    """Wait before a failed attempt is repeated, a longer time after each."""
    failed = node.aside_failed
    if failed is None:
        return None
    pause_s = PAUSES_S[min(failed.times, len(PAUSES_S)) - 1]
    again = failed.at + timedelta(seconds=REFUSED_PAUSE_S if failed.result == "refused" else pause_s)
    if again <= context.now:
        return None
    text = f"{failed.kind} {failed.result.replace('_', ' ')}: {failed.detail}"
    tries = by_time(f"the next try is at {again:%H:%M:%S} UTC", again)
    return Wait(TURN_AWAY, (Blocker("clock", failed.kind, text, tries),), again)


def _operation(context: DecisionContext, node: Node, row: StepRow, cluster: str) -> Operation:
    return Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=replace(row.act, cluster=cluster),
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=row.deadline_s),
        aside=True,
    )
