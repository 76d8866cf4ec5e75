"""Conditions that Hostler concludes itself: a node is stuck, unlisted, under another's name, or back unasked."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.conditions import unanswered_checks
from hostler.core.conditions.lifecycle import stand
from hostler.core.conditions.machine_identity import MISBOUND_S, MISMATCH
from hostler.core.conditions.source_excess import quiet_again, quiet_at
from hostler.core.conditions.uninvited import UNINVITED, uninvited
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.state import bmc_login
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFICATE_EXPIRING, CERTIFICATE_FAILED, SITES_OWN, gives_up
from hostler.core.state.bmc_login import LOGIN_FAILED
from hostler.core.state.boot_medium import EJECT_FAILED
from hostler.core.state.configuration import LAB_PHASE_FLOOR_S, scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.dpu_login import DPU_LOGIN_FAILED
from hostler.core.state.dpus import bmcs_of, serials_of
from hostler.core.state.durations import duration
from hostler.core.state.model import STUCK, Evidence, Node, Phase
from hostler.core.state.source_budgets import LOUD
from hostler.core.tables.phases import PHASES

WORK_UNKNOWN = "work.unknown"
UNLISTED_S = 600.0
"""A cluster that has been heard for so long would have listed a node that has been its member for as long."""
_NAMES = ("kubernetes", "slurm", "hostname")


def concluded(context: DecisionContext, node: Node) -> tuple[e.Event, ...]:
    """The events that make these conditions agree with how the node is now; mostly none."""
    standing = [c.type for c in node.conditions]
    findings = (
        _stuck(context, node, STUCK in standing),
        _unlisted(context, node, WORK_UNKNOWN in standing),
        _misbound(context, node, MISMATCH in standing),
        uninvited(context, node, UNINVITED in standing),
        _login_failed(node, LOGIN_FAILED in standing),
        _dpu_login_failed(node, DPU_LOGIN_FAILED in standing),
        _certificate_failed(node, CERTIFICATE_FAILED in standing),
        _eject_failed(node, EJECT_FAILED in standing),
    )
    moot = tuple(unanswered_checks.moot(context, node)) if node.conditions else ()
    loud = tuple(quiet_again(context, node)) if any(kind in standing for kind in LOUD.values()) else ()
    if not any(findings) and not loud:
        return moot
    told = (
        stand(node, f, Evidence(context.now, "hostler", f.text, facts=f.facts), "") for f in (*findings, *loud) if f
    )
    return (*moot, *(event for event in told if event is not None))


def next_moment(context: DecisionContext, node: Node) -> datetime | None:
    """When the clock alone may make the next of them stand."""
    loud = (quiet_at(context, one) for one in node.conditions)
    moments = (_stuck_at(context, node), _unlisted_at(context, node), misbound_at(context, node), *loud)
    return min((at for at in moments if at is not None and at > context.now), default=None)


def _stuck_at(context: DecisionContext, node: Node) -> datetime | None:
    """When the node counts as stuck in its phase; None where its phase's work has a limit and goes on, or none is set.

    Who clears the condition grants it another usual stay.
    """
    row = PHASES[node.phase]
    kept_waiting = node.plan is None and not unanswered_checks.holds_the_phase(node)
    usual_s = row.usual_s or (row.limit_s if kept_waiting else None)
    if usual_s is None:
        return None
    return (node.stay_granted or node.phase_since) + timedelta(
        seconds=scaled(context.fleet.policy_of(node), usual_s, LAB_PHASE_FLOOR_S)
    )


def _stuck(context: DecisionContext, node: Node, stood: bool) -> Finding | None:
    at = _stuck_at(context, node)
    if (at is not None and at <= context.sure) == stood:
        return None
    if stood:
        return over(STUCK, f"the node moved on to {node.phase}" if node.plan is None else f"{node.plan.name} goes on")
    stay = duration((context.sure - node.phase_since).total_seconds())
    waits = node.waiting.blockers[0].text if node.waiting and node.waiting.blockers else "the reason is not recorded"
    text = f"in phase {node.phase} for {stay}: {waits}"
    return stands(STUCK, text, facts={"phase": node.phase.value, "since": node.phase_since.isoformat()})


def is_unlisted(context: DecisionContext, node: Node) -> bool:
    """Whether the node's own cluster is heard, has told of all its nodes, and this one is not among them."""
    cluster = _serves(node)
    if not cluster or not context.live.synced(cluster):
        return False
    here = context.live.nodes.get(node.id)
    return here is None or cluster not in here.workloads


def unlisted(context: DecisionContext, cluster: str) -> Iterator[str]:
    """The members of the cluster's pools of which it says nothing."""
    for pool in context.fleet.pools.values():
        if pool.cluster == cluster:
            members = context.fleet.index.members(f"pool:{pool.name}")
            yield from (node_id for node_id in members if is_unlisted(context, context.fleet.nodes[node_id]))


def _unlisted(context: DecisionContext, node: Node, stood: bool) -> Finding | None:
    """Of a cluster that is not heard nothing follows for its nodes: what was so before may be so still."""
    cluster = _serves(node)
    if stood and (not cluster or (context.live.synced(cluster) and not is_unlisted(context, node))):
        return over(WORK_UNKNOWN, "the cluster says what runs on the node, or the node is in no cluster any more")
    if stood:
        return None
    at = _unlisted_at(context, node)
    if at is None or context.now < at:
        return None
    names = ", ".join(f"{b.kind} {b.value}" for b in node.bindings if b.kind in _NAMES and b.until is None)
    text = f"cluster {cluster} lists no node that is called so: {names or node.id}"
    return stands(WORK_UNKNOWN, text, facts={"cluster": cluster})


def _unlisted_at(context: DecisionContext, node: Node) -> datetime | None:
    """When a member that its cluster does not list, and that nobody is at work on, counts as unlisted."""
    if node.assignment is None or node.plan is not None or not is_unlisted(context, node):
        return None
    since = max(context.live.whole_since.get(node.assignment.cluster, context.now), node.assignment.since)
    return since + timedelta(seconds=UNLISTED_S)


def _misbound(context: DecisionContext, node: Node, stood: bool) -> Finding | None:
    """Once seen it stands until a person has settled who is who: that both agree again explains nothing."""
    at = misbound_at(context, node)
    if stood or at is None or context.now < at:
        return None
    here, cluster = context.live.of(node.id), _serves(node)
    text = (
        f"what cluster {cluster} calls by this node's name runs under boot id {here.scheduler_boot}, the node's agent "
        f"under {node.boot_id}: another machine answers to the name"
    )
    return stands(MISMATCH, text, facts={"cluster": cluster, "there": here.scheduler_boot, "here": node.boot_id})


def misbound_at(context: DecisionContext, node: Node) -> datetime | None:
    """When two boots under one name are an error of nobody who tells of them; None while they agree."""
    here = context.live.nodes.get(node.id)
    if here is None or here.boots_differ_since is None or not _serves(node):
        return None
    bound = (b.since for b in node.bindings if b.until is None and b.kind in _NAMES)
    return max((here.boots_differ_since, *bound)) + timedelta(seconds=scaled(context.fleet.policy_of(node), MISBOUND_S))


def _serves(node: Node) -> str:
    """The cluster that the node is a member of, "" for none."""
    return node.assignment.cluster if node.assignment is not None and node.phase is Phase.production else ""


def _login_failed(node: Node, stood: bool) -> Finding | None:
    login = node.bmc_login
    if bmc_login.gives_up(login) == stood or login is None:
        return None
    if stood:
        return over(LOGIN_FAILED, "its password was renewed, or a person has asked for it again")
    text = f"the BMC's password could not be renewed ({login.result.replace('_', ' ')}): {login.detail}"
    return stands(
        LOGIN_FAILED, text[:500], facts={"tried": login.tried, "tries": login.tries, "pending": login.pending}
    )


def _dpu_login_failed(node: Node, stood: bool) -> Finding | None:
    """A finding where the first BMC of its DPUs is given up; what came of each is in the list of logins."""
    if not (node.dpu_logins or stood):
        return None
    named, cards = bmcs_of(node), serials_of(node)
    failed = [
        one for one in node.dpu_logins if one.bmc in named and one.gives_up(cards or one.cards) and not one.others
    ]
    if bool(failed) == stood:
        return None
    if stood:
        return over(DPU_LOGIN_FAILED, "their passwords were renewed, or a person has asked for it again")
    login, where = failed[0].login, failed[0].bmc
    text = (
        f"the password of its DPU's BMC {where} could not be renewed ({login.result.replace('_', ' ')}): {login.detail}"
    )
    return stands(
        DPU_LOGIN_FAILED, text[:500], facts={"tried": login.tried, "tries": login.tries, "pending": login.pending}
    )


def certificate_gives_up(node: Node) -> bool:
    """Whether no more is tried about the BMC's certificate until a person says so."""
    return gives_up(node.bmc_certificate)


def _certificate_failed(node: Node, stood: bool) -> Finding | None:
    known = node.bmc_certificate
    if certificate_gives_up(node) == stood or known is None:
        return None
    if stood:
        return over(CERTIFICATE_FAILED, "its certificate was renewed, or a person has asked for it again")
    text = f"the BMC could not be given a certificate ({known.result.replace('_', ' ')}): {known.detail}"
    return stands(CERTIFICATE_FAILED, text[:500], facts={"failures": known.failures})


def _eject_failed(node: Node, stood: bool) -> Finding | None:
    medium = node.medium
    if (medium is not None and medium.given_up) == stood:
        return None
    if medium is None or stood:
        return over(EJECT_FAILED, "the medium is out of the drive, or that of a later boot has taken its place")
    why = f"{medium.result.replace('_', ' ')}: {medium.detail}"
    text = f"a boot medium of an earlier boot stays in a virtual drive ({why})"
    return stands(EJECT_FAILED, text[:500], facts={"failures": medium.failures, "result": medium.result})


def who_renews(every_s: float, *, recorded: bool) -> str:
    """The renewer of a BMC's certificate, in words; `recorded`: Hostler knows the BMC by it."""
    if not recorded:
        return SITES_OWN
    return "a renewal is due by itself" if every_s else "nothing renews it by itself"


def certificate_expires(context: DecisionContext, node: Node) -> Finding | None:
    """A finding where the certificate that the BMC shows begins to expire soon, or does so no more; else None."""
    stood = any(c.type == CERTIFICATE_EXPIRING for c in node.conditions)
    known, policy = node.bmc_certificate, context.fleet.policy_of(node).bmc_certificates
    ends = known.shown.expires_at if known is not None and known.shown is not None else None
    soon = ends is not None and ends - timedelta(seconds=policy.warn_s) <= context.now
    if soon == stood:
        return None
    if ends is None or not soon:
        return over(CERTIFICATE_EXPIRING, "the BMC shows a certificate that is good for longer")
    left = (ends - context.now).total_seconds()
    when = f"expires in {duration(left)}, on {ends:%Y-%m-%d}" if left > 0 else f"has expired on {ends:%Y-%m-%d}"
    whose = who_renews(policy.renew_every_s, recorded=bool(node.binding(BMC_CERTIFICATE)))
    text = f"the BMC's certificate {when}; {whose}"
    return stands(CERTIFICATE_EXPIRING, text, facts={"expires_at": ends.isoformat()})
