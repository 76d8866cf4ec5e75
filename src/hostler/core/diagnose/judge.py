"""From one observation to its findings: a table from the observation's kind to the function that judges it.

Unknown is never healthy: what cannot be read is itself a finding, and only a reading that can be believed, of
the node's present boot, shows a condition to be over.
"""

from collections.abc import Callable

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.adapter_ports import judge_ports
from hostler.core.diagnose.decoded import Decoded, Fact, Victim
from hostler.core.diagnose.drill_marks import of_line, of_readings
from hostler.core.diagnose.event_log import judge_event_log
from hostler.core.diagnose.external import judge_external
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.firmware import judge_firmware
from hostler.core.diagnose.inventory import judge_inventory
from hostler.core.diagnose.kernel_log import TEXT_LIMIT_CHARS, decode, is_ordinary, malformed
from hostler.core.diagnose.line import printable
from hostler.core.diagnose.part_health import judge_part_health
from hostler.core.diagnose.reported_state import judge_dcgm_state, judge_gpu_state, judge_host_state
from hostler.core.diagnose.sensor_findings import judge_sensors
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Facts, Node, Observation, Phase, Scalar, Verdict
from hostler.core.tables.conditions import CONDITIONS

KERNEL_FACILITY = 0
"""Only the kernel itself can write records of this facility."""

TEXT_SHOWN_CHARS = 256
PART_CHARS = 80


def judge(observation: Observation, node: Node, sku: Sku | None) -> tuple[Finding, ...]:
    """Judge what the observation says about the node's conditions. Pure; never raises on what was observed.

    Findings of an earlier boot carry the fact `earlier_boot` and are history: they start nothing. A finding
    with `standing` False is given only for conditions that an observation may clear.
    """
    findings = KINDS.get(observation.kind, _unreadable)(observation, node, sku)
    earlier = observation.boot_id != node.boot_id and observation.boot_id in node.boots
    return tuple(
        _of_earlier_boot(finding) if earlier else finding
        for finding in findings
        if finding.standing or (not earlier and CONDITIONS[finding.type].clears == "observation")
    )


def says_nothing(observation: Observation) -> bool:
    """Whether `judge` finds nothing in it on any node: an ordinary line of the kernel log, as nearly all are."""
    return observation.kind == "kernel_log" and not observation.facts and is_ordinary(observation.text)


def _of_earlier_boot(finding: Finding) -> Finding:
    return replace(finding, facts={**finding.facts, "earlier_boot": True})


def _kernel_log(observation: Observation, node: Node, _sku: Sku | None) -> list[Finding]:
    """One finding per condition and part, however many lines say it."""
    if "pstore" in observation.facts:
        return [_crashed(decode(observation.text), observation)]
    by_kernel = observation.facility == KERNEL_FACILITY
    drilled = None if by_kernel else of_line(observation, node)
    decoded = decode(drilled.line if drilled is not None else observation.text)
    findings: list[Finding] = []
    if drilled is not None and not drilled.why:
        return [replace(finding, drill=drilled.drill) for finding in _reported(decoded, observation, node)]
    if by_kernel:
        findings = _reported(decoded, observation, node)
        unread = malformed(observation.text, decoded)
        if unread:
            text = f"a driver's fault report could not be read: {unread[:TEXT_SHOWN_CHARS]}"
            findings.append(stands("observation.unreadable", text, "kernel_log"))
    elif decoded:
        text = "a line that looks like a hardware fault was not written by the kernel"
        text = f"{text}: {drilled.why}" if drilled is not None else text
        facts: Facts = {"line": decoded[0].line, "facility": observation.facility, "kind": decoded[0].kind}
        findings = [stands("kernel_log.userspace_origin", text, facts=facts)]
    if len(observation.text) > TEXT_LIMIT_CHARS:
        text = f"{len(observation.text) - TEXT_LIMIT_CHARS} characters of kernel log were not read"
        findings = [finding for finding in findings if finding.type != "observation.unreadable"]
        findings.append(stands("observation.unreadable", text, "kernel_log"))
    return findings


def _crashed(decoded: tuple[Decoded, ...], observation: Observation) -> Finding:
    """Judge what a kernel left when it died: history, as the node has started since. The last fault named ended it."""
    record = printable(str(observation.facts["pstore"])[:TEXT_SHOWN_CHARS])
    if not decoded:
        text = "an earlier boot left a crash record that names no fault known here"
        return stands("host.crashed", text, facts={"record": record, "line": printable(observation.text[-200:])})
    last = decoded[-1]
    return stands("host.crashed", f"an earlier boot ended: {last.text}", facts={"record": record, "line": last.line})


def _reported(decoded: tuple[Decoded, ...], observation: Observation, node: Node) -> list[Finding]:
    told: dict[tuple[str, str], list[Decoded]] = {}
    serials = {**dict(node.slots), **dict(node.addresses)}
    for one in decoded:
        told.setdefault((one.condition, _part(one, serials)), []).append(one)
    return [
        stands(condition, lines[0].text, part, _facts(lines, observation)) for (condition, part), lines in told.items()
    ]


def _part(one: Decoded, serials: dict[str, str]) -> str:
    """The serial behind the address; else the address, the device or the server as the line names it."""
    if CONDITIONS[one.condition].one_per == "node":
        return ""
    if one.pci:
        slot = f"pci:{one.pci}"
        return serials.get(slot) or slot
    for fact, prefix in (("device", "dev"), ("server", "server")):
        if name := one.facts.get(fact):
            return printable(f"{prefix}:{name}"[:PART_CHARS])
    return ""


def _facts(lines: list[Decoded], observation: Observation) -> Facts:
    first = lines[0]
    facts: Facts = {name: _scalar(value) for name, value in first.facts.items()}
    for name in ("code", "pci", "event", "ambiguous"):
        if value := getattr(first, name):
            facts[name] = value
    facts |= {"action": first.action, "line": first.line}
    return {**facts, "count": sum(one.count for one in lines) * max(1, observation.count)}


def _scalar(fact: Fact) -> Scalar:
    match fact:
        case tuple():
            words = [f"{one.process} ({one.pid})" if isinstance(one, Victim) else one for one in fact]
            return printable(" ".join(words))
        case dict():
            return " ".join(f"{name}:{','.join(map(str, values))}" for name, values in fact.items())
        case str():
            return printable(fact)
        case _:
            return fact


def _verdict(observation: Observation, _node: Node, _sku: Sku | None) -> list[Finding]:
    """Facts "check" (or "profile"), "verdict", and "part" for a check of one part; `text` is its detail.

    Only passed clears. A verdict that is no word of ours is as inconclusive as one that says so.
    """
    name = observation.facts.get("check") or observation.facts.get("profile")
    if not isinstance(name, str):
        return _unreadable(observation, _node, _sku)
    subject, verdict = observation.facts.get("part"), observation.facts.get("verdict")
    part = printable(f"check:{name}/{subject}" if subject else f"check:{name}")
    facts: Facts = {"check": printable(name)}
    if subject:
        facts["part"] = printable(str(subject))
    detail = f": {observation.text[:TEXT_SHOWN_CHARS]}" if observation.text else ""
    match verdict:
        case Verdict.passed:
            text = f"{name} passed"
            return [
                over("check.failed", text, part),
                over("check.warning", text, part),
                over("check.inconclusive", text, part),
            ]
        case Verdict.failed if observation.facts.get("severity") == "warning":
            text = f"{name} warns{detail}"
            return [
                stands("check.warning", text, part, facts),
                over("check.failed", text, part),
                over("check.inconclusive", text, part),
            ]
        case Verdict.failed:
            text = f"{name} failed{detail}"
            return [stands("check.failed", text, part, facts), over("check.inconclusive", text, part)]
        case _:
            word = verdict if isinstance(verdict, str) and verdict in set(Verdict) else "unreadable"
            text = f"{name} is {word}{detail}"
            return [stands("check.inconclusive", text, part, {**facts, "verdict": word})]


AGENT_EVENTS: dict[str, tuple[str, bool]] = {
    "kernel_log.overrun": ("kernel_log.overrun", True),
    "spool_overflow": ("agent.spool_overflow", True),
    "collector_failed": ("agent.collector_failed", True),
    "collector_started": ("agent.collector_failed", False),
}
"""Event of an agent about itself (fact "event") → condition, and whether it stands."""

AGENT_ROUTINE = frozenset({"", "started", "stopped", "heartbeat"})
"""Events of an agent that say nothing about the node's health."""


def _agent(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    event = observation.facts.get("event", "")
    if event in AGENT_ROUTINE:
        return []
    row = AGENT_EVENTS.get(event) if isinstance(event, str) else None
    if row is None:
        return _unreadable(observation, node, sku)
    condition, standing = row
    collector = observation.facts.get("collector")
    part = printable(f"collector:{collector}") if collector and condition == "agent.collector_failed" else ""
    detail = f": {observation.text[:TEXT_SHOWN_CHARS]}" if observation.text else ""
    text = f"the agent reports {event}{detail}"
    facts = {name: _scalar(value) for name, value in observation.facts.items()}
    return [stands(condition, text, part, facts) if standing else over(condition, text, part)]


_OFF_ON_PURPOSE = frozenset({"cooling.leak", "thermal.over_limit"})


def _power(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Fact "power": off is expected outside production, under a plan that cuts it, and for protection."""
    match observation.facts.get("power"):
        case "on":
            return [over("power.off_unexpected", "the node is powered on")]
        case "off":
            planned = node.plan is not None and any(s.operation == "power_off" for s in node.plan.steps)
            protected = any(condition.type in _OFF_ON_PURPOSE for condition in node.conditions)
            if node.phase is not Phase.production or planned or protected:
                return []
            return [stands("power.off_unexpected", f"the node's {observation.source} says that it is off")]
        case _:
            return _unreadable(observation, node, sku)


def _sensors(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    return of_readings(judge_sensors(observation, node, sku), observation, node)


def _nothing(_observation: Observation, _node: Node, _sku: Sku | None) -> list[Finding]:
    return []


def _unreadable(observation: Observation, _node: Node, _sku: Sku | None) -> list[Finding]:
    kind = printable(observation.kind[:TEXT_SHOWN_CHARS])
    text = f"an observation of kind {kind!r} from {observation.source!r} could not be understood"
    return [stands("observation.unreadable", text, kind)]


Judge = Callable[[Observation, Node, Sku | None], list[Finding]]

KINDS: dict[str, Judge] = {
    "kernel_log": _kernel_log,
    "inventory": judge_inventory,
    "sensors": _sensors,
    "event_log": judge_event_log,
    "ports": judge_ports,
    "gpu_state": judge_gpu_state,
    "dcgm_state": judge_dcgm_state,
    "host_state": judge_host_state,
    "external": judge_external,
    "verdict": _verdict,
    "agent": _agent,
    "power": _power,
    "boot": _nothing,
    "devices": _nothing,
    "firmware": judge_firmware,
    "part_health": judge_part_health,
}
"""Observation kind → who judges it. Boots are recorded; by themselves they convict nobody."""
