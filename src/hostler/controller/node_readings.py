"""Volatile readings of a node: power and readiness become live state, and an unusable BMC a condition."""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen
from hostler.core.conditions import recurrence
from hostler.core.conditions.lifecycle import stand, with_drill_seen
from hostler.core.conditions.own_conditions import certificate_expires
from hostler.core.conditions.staleness import BMC_TOO_LARGE
from hostler.core.diagnose.findings import over, stands
from hostler.core.policy.abilities import has_no_bmc
from hostler.core.state import events as e
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Evidence, Node
from hostler.core.state.sensor_watch import watched


def see_node(live: LiveState, seen: NodeSeen, now: datetime) -> bool:
    """Take over volatile readings; whether anything changed, or is told that is kept nowhere else."""
    here = live.entry(seen.node)
    before = (
        here.power,
        here.ready,
        here.bmc_unreachable,
        here.bmc_refused,
        here.bmc_login_refused,
        here.scheduler_boot,
    )
    if seen.power:
        here.power, here.power_at = seen.power, now
    if seen.ready is not None:
        here.ready = seen.ready
    if seen.bmc_unreachable is not None:
        here.bmc_unreachable = seen.bmc_unreachable
    if seen.bmc_refuses is not None:
        here.bmc_refused = bool(seen.bmc_refuses)
    if seen.bmc_login_refused is not None:
        here.bmc_login_refused = seen.bmc_login_refused
    if seen.boot_id is not None:
        here.scheduler_boot = seen.boot_id
    now_is = (
        here.power, here.ready, here.bmc_unreachable, here.bmc_refused, here.bmc_login_refused, here.scheduler_boot
    )  # fmt: skip
    if seen.sensors is not None:
        here.sensor_watch = watched(here.sensor_watch, replace(seen.sensors, at=now))
    told = (seen.bmc_exceeds, seen.bmc_certificate, seen.bmc_shown, seen.sensors)
    return before != now_is or any(one is not None for one in told)


def of_reach(fleet: Fleet, node: Node, seen: NodeSeen, now: datetime) -> Iterator[e.Event]:
    """bmc.unreachable, bmc.refused and bmc.response_too_large come and go with what the looks at the BMC say.

    A new certificate that is shown before its renewal has told of it is no other's.
    """
    if seen.bmc_certificate and node.aside is not None and node.aside.kind == CERTIFY:
        return
    if has_no_bmc(node):  # a look that began before a person said so
        return
    silence = f"the BMC does not answer: {seen.bmc_says}" if seen.bmc_says else "the BMC does not answer"
    refusal = f"the BMC answers and cannot be used: {seen.bmc_refuses}"
    changed = f"the BMC shows another certificate: {seen.bmc_certificate}"
    what, why = seen.bmc_exceeds or ("", None)
    told = (
        ("bmc.unreachable", "", seen.bmc_unreachable, silence, "the BMC answers"),
        ("bmc.refused", "", _is_so(seen.bmc_refuses), refusal, "the BMC serves us"),
        (
            "bmc.certificate_changed",
            "",
            _is_so(seen.bmc_certificate),
            changed,
            "the BMC shows the certificate recorded",
        ),
        (BMC_TOO_LARGE, what, _is_so(why), f"{what}: {why}", f"{what}: as much as is read"),
    )
    for kind, part, standing, bad, good in told:
        if standing is None:
            continue
        finding = stands(kind, bad, part) if standing else over(kind, good, part)
        if standing and node.drill is not None and node.drill.shows(kind, now):
            finding = replace(finding, drill=node.drill.id)
        if (event := stand(node, finding, Evidence(now, "bmc", finding.text), "")) is not None:
            yield from with_drill_seen(event)
            raised = isinstance(event, e.ConditionRaised)
            yield from recurrence.count(fleet, fleet.nodes[node.id], finding, now, raised=raised)


def of_certificate(context: DecisionContext, node_id: str, seen: NodeSeen) -> Iterator[e.Event]:
    """The certificate that the BMC is known by is noted, and bmc.certificate_expiring comes and goes with it."""
    node, shown = context.fleet.nodes[node_id], seen.bmc_shown
    if shown is None or not context.may_write("bmc_certificate_seen"):
        return
    if node.bmc_certificate is None or node.bmc_certificate.shown != shown:
        yield e.BmcCertificateSeen(node_id, shown)
    finding = certificate_expires(context, context.fleet.nodes[node_id])
    if finding is not None:
        evidence = Evidence(context.now, "bmc", finding.text, facts=finding.facts)
        if (event := stand(context.fleet.nodes[node_id], finding, evidence, "")) is not None:
            yield event


def _is_so(why: str | None) -> bool | None:
    return None if why is None else bool(why)
