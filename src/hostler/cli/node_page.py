"""The node's page: everything a person reads of one node at a glance."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hostler.cli.list_view import age, clock, field, severity, text_of
from hostler.cli.way_lines import blocker_lines

Object = dict[str, Any]
SPARE_ALL_THE_SAME = frozenset({"inventory.claimed_twice", "trend.drift"})
"""Conditions of a node that a pool takes all the same (`core.state.index_keys.is_spare`)."""


def node_page(found: Object, wide: bool) -> Iterator[str]:
    """A node with what ails it, what is done about it and what it waits for; `wide` adds parts and checks."""
    node, now = found["node"], datetime.now(UTC)
    yield f"{node['id']}  {node['phase']} for {age(node['phase_since'], now)}"
    for one in found.get("failures") or []:
        why = f": {one['why']}" if one["why"] else ""
        yield f"  failed: {one['what']} {one['result'].replace('_', ' ')} {age(one['at'], now)} ago{why}"
    if found.get("failures") and (then := field(found, "acts_next.text")):
        yield f"  next: {then}"
    for title, value in _facts(found, node, now):
        if value:
            yield f"  {title:<12}{value}"
    if not found.get("failures") and (acts_next := field(found, "acts_next.text")):
        yield f"  next: {acts_next}"
    yield from _waiting(node.get("waiting"), now)
    yield from _plan(node, now)
    yield from _conditions(node.get("conditions") or [], now)
    yield from _section("holds", [_hold(hold, now) for hold in found.get("holds") or []])
    yield from _section("tickets", [f"{t['id']}  {t['kind']}  {t['summary']}" for t in found.get("tickets") or []])
    yield from _section("work", [_work(work) for work in found.get("workloads") or []])
    if wide:
        yield from _section("parts", [_part(part) for part in found.get("parts") or []])
        yield from _section("checks", [_check(check, now) for check in node.get("checks") or []])
        yield from _section(
            "names", [f"{b['kind']} {b['value']}" for b in node.get("bindings") or [] if not b.get("until")]
        )
        yield from _section("firmware", [f"{name} {version}" for name, version in node.get("firmware") or []])


def _facts(found: Object, node: Object, now: datetime) -> Iterator[tuple[str, str]]:
    position, agent = node["position"], found.get("agent") or {}
    yield "pool", text_of(field(node, "assignment.pool")) or _spare(node)
    yield "tenant", text_of(field(node, "assignment.tenant"))
    yield "host name", found.get("hostname", "")
    yield "SKU", node["sku"]
    yield "place", " ".join(filter(None, (position.get("site"), position.get("row"), position.get("rack"))))
    yield "power", found.get("power", "")
    yield "agent", f"heard {age(agent['last_heard'], now)} ago" if agent.get("last_heard") else "not heard"
    yield "boot", _booted(node.get("boot"), now)
    yield "cordoned by", text_of(node.get("cordons"))
    yield "burn-in", field(found, "burn_in.text") or ""
    yield "deadline", age(node["deadline"], now) if node.get("deadline") else ""
    yield "workloads", "the scheduler has not told" if found.get("workloads") is None else ""


def _spare(node: Object) -> str:
    """Whether the node may fill a place of a pool, "" before production: whatever is known of it bars that."""
    if node["phase"] != "production":
        return ""
    known = {condition["type"] for condition in node.get("conditions") or []} - SPARE_ALL_THE_SAME
    return f"none, and no spare while this stands: {', '.join(sorted(known))}" if known else "spare"


def _booted(boot: Object | None, now: datetime) -> str:
    """The last boot over the network; one that is known by its MAC address alone says so."""
    if boot is None:
        return ""
    weak = ", known by its MAC address alone" if boot["identity"] == "mac" else ""
    refused = f", {boot['refused']} refused" if boot["refused"] else ""
    what = boot["image"] or boot["reason"] or boot["kind"]
    return f"{what} {age(boot['at'], now)} ago{weak}{refused}"


def _waiting(waiting: Object | None, now: datetime) -> Iterator[str]:
    if waiting is None:
        return
    yield f"  {waiting['what']} waits since {age(waiting['since'], now)} for"
    for blocker in waiting["blockers"]:
        yield from blocker_lines(blocker, "    ")


def _plan(node: Object, now: datetime) -> Iterator[str]:
    plan = node.get("plan")
    if plan is None:
        return
    yield f"  plan {plan['name']} ({plan['act_class']}), {plan['state']} for {age(plan['recorded_at'], now)}"
    for number, step in enumerate(plan["steps"]):
        mark = "✓" if number < plan["index"] else "▸" if number == plan["index"] else " "
        yield f"    {mark} {step['act']['kind']}"
    if operation := node.get("operation"):
        since, attempt = age(operation["started"], now), operation["attempt"]
        yield f"    {operation['act']['kind']} is under way for {since}, attempt {attempt}"


def _conditions(conditions: list[Object], now: datetime) -> Iterator[str]:
    yield from _section("conditions", [_condition(condition, now) for condition in conditions])


def _condition(condition: Object, now: datetime) -> str:
    part = f" on {condition['part']}" if condition.get("part") else ""
    evidence = condition.get("evidence") or []
    said = f": {evidence[-1]['text']}" if evidence else ""
    grave = severity(condition["severity"], now)
    unknown = condition.get("unknown_since")
    doubt = f", unknown for {age(unknown, now)}: who saw it is silent" if unknown else ""
    return f"{condition['type']}{part}  {grave}, {age(condition['since'], now)}, {condition['count']}×{doubt}{said}"


def _hold(hold: Object, now: datetime) -> str:
    until = f", until {clock(hold['until'], now)}" if hold.get("until") else ""
    return f"{hold['id']}  {hold['kind']} by {hold['owner']} for {age(hold['since'], now)}{until}: {hold['reason']}"


def _work(work: Object) -> str:
    return f"{work['id']}  {work['work_class']}, {work['tenant']}"


def _part(part: Object) -> str:
    return f"{part['slot'] or '?'}  {part['kind']} {part['model']}  {part['serial']}  {part['firmware']}".rstrip()


def _check(check: Object, now: datetime) -> str:
    detail = f": {check['detail']}" if check.get("detail") else ""
    return f"{check['profile']}  {check['verdict']} {age(check['at'], now)} ago{detail}"


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"  {title}"
        for line in lines:
            yield f"    {line}"
