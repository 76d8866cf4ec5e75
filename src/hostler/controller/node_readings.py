"""Volatile readings of a node: power and readiness become live state, and an unusable BMC a condition."""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen
from hostler.core.conditions import recurrence
from hostler.core.conditions.lifecycle import stand
from hostler.core.conditions.staleness import BMC_TOO_LARGE
from hostler.core.diagnose.findings import over, stands
from hostler.core.state import events as e
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
    return (
        before != now_is or seen.bmc_exceeds is not None or seen.bmc_certificate is not None or seen.sensors is not None
    )


def of_reach(fleet: Fleet, node: Node, seen: NodeSeen, now: datetime) -> Iterator[e.Event]:
    """bmc.unreachable, bmc.refused and bmc.response_too_large come and go with what the looks at the BMC say."""
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
        if (event := stand(node, finding, Evidence(now, "bmc", finding.text), "")) is not None:
            yield event
            raised = isinstance(event, e.ConditionRaised)
            yield from recurrence.count(fleet, fleet.nodes[node.id], finding, now, raised=raised)


def _is_so(why: str | None) -> bool | None:
    return None if why is None else bool(why)
