"""Judges what other watchers of a node say: node conditions of node-problem-detector, health events of NVSentinel.

They are somebody else's conclusions, drawn by programs of user space: shown with their words, joined to the part they
mean, and by themselves no reason to disturb anybody. What is not understood is shown as that, never passed over.
Shapes: Kubernetes' NodeCondition (core/v1) and NVSentinel's HealthEvent message in protobuf's JSON form.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.line import printable
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Facts, Node, Observation

TEXT_CHARS = 256
NAME_CHARS = 64
MAX_CONDITIONS = 64

LEFT_LYING = timedelta(minutes=30)
"""A watcher that lives writes its conditions anew every few minutes (node-problem-detector: five)."""

Json = dict[str, object]

NODE_CONDITIONS, HEALTH_EVENT = "node_conditions", "health_event"
_WELL_WHEN_TRUE = frozenset({"Ready"})
_KUBELETS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
"""Types that the kubelet writes itself; the scheduler's driver reads those."""


def judge_external(observation: Observation, node: Node, _sku: Sku | None) -> list[Finding]:
    """Fact "shape" says what `text` holds as JSON: "node_conditions" (one or a list) or "health_event".

    Fact "check" is the plug-in that hands it on: while it cannot, or hands on what its watcher has let lie, nobody says
    what the watcher sees.
    """
    shape = observation.facts.get("shape")
    read = _SHAPES.get(shape) if isinstance(shape, str) else None
    if read is None:
        return [_unread(f"an observation of the shape {printable(str(shape)[:NAME_CHARS])!r}")]
    try:
        document = msgspec.json.decode(observation.text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [_unread("it is not JSON")]
    check = observation.facts.get("check")
    named: Facts = {"check": printable(check[:NAME_CHARS])} if isinstance(check, str) else {}
    heartbeats = _heartbeats(document)
    if old := [at for at in heartbeats if observation.received and observation.received - at > LEFT_LYING]:
        return [_unwatched(named, f"its watcher last wrote this at {min(old):%Y-%m-%d %H:%M} UTC")]
    found = read(document, node)
    if named and heartbeats:
        found.append(over("check.inconclusive", "the monitor reports again", f"check:{named['check']}"))
    return [replace(one, facts={**one.facts, **named}) if one.standing else one for one in found]


def _heartbeats(document: object) -> list[datetime]:
    """When the watcher last wrote each node condition, as far as it says so."""
    listed = document if isinstance(document, list) else [document]
    told = (one.get("lastHeartbeatTime") for one in listed[:MAX_CONDITIONS] if isinstance(one, dict))
    return [at for value in told if (at := _moment(value)) is not None]


def _moment(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None and 2000 <= at.year < 9999 else None


def _unwatched(named: Facts, why: str) -> Finding:
    if not named:
        return _unread(why)
    text = f"what {named['check']} reports is out of date: {why}"
    return stands("check.inconclusive", text, f"check:{named['check']}", {**named, "verdict": "stale"})


def _node_conditions(document: object, _node: Node) -> list[Finding]:
    """True is a problem, False is none, Unknown is not understood: neither raised nor over."""
    listed = document if isinstance(document, list) else [document]
    if len(listed) > MAX_CONDITIONS:
        return [_unread(f"{len(listed)} node conditions at once, {MAX_CONDITIONS} are read")]
    return [finding for one in listed for finding in _node_condition(one)]


def _node_condition(one: object) -> list[Finding]:
    if not isinstance(one, dict) or not (kind := _text(one, "type")):
        return [_unread("a node condition without a type")]
    if kind in _KUBELETS:
        return []
    part = f"node-condition:{kind}"
    reason, message = _text(one, "reason"), _text(one, "message")
    text = f"{kind} ({reason}): {message}" if reason else f"{kind}: {message}"
    problem = {"True": kind not in _WELL_WHEN_TRUE, "False": kind in _WELL_WHEN_TRUE}.get(_text(one, "status"))
    if problem is None:
        return [_unread(f"{kind} has the status {_text(one, 'status')!r}")]
    if not problem:
        return [over("external.problem", text, part)]
    facts: Facts = {"watcher": "node-problem-detector", "reason": reason}
    return [stands("external.problem", text, part, facts)]


def _health_event(document: object, node: Node) -> list[Finding]:
    """One event about each entity it names. Healthy ends both degrees; nothing but true and false is believed."""
    if not isinstance(document, dict) or not (check := _text(document, "checkName", "check_name")):
        return [_unread("a health event without a check's name")]
    healthy = _truth(document, "isHealthy", "is_healthy")
    fatal = _truth(document, "isFatal", "is_fatal") or False
    if healthy is None and not fatal:
        return [_unread(f"{check} says neither healthy nor fatal")]
    if healthy and fatal:
        return [_unread(f"{check} says healthy and fatal at once")]
    codes = document.get("errorCode", document.get("error_code"))
    code = " ".join(str(one)[:NAME_CHARS] for one in codes[:8]) if isinstance(codes, list) else ""
    text = f"{check}: {_text(document, 'message') or ('healthy' if healthy else 'unhealthy')}"
    facts: Facts = {
        "watcher": "nvsentinel",
        "code": printable(code),
        "recommended": _text(document, "recommendedAction", "recommended_action"),
    }
    found: list[Finding] = []
    for entity in _entities(document, node) or [""]:
        part = f"{check}/{entity}" if entity else check
        kinds = ("external.fault", "external.problem")
        if healthy:
            found += [over(kind, text, part) for kind in kinds]
        else:
            found.append(stands(kinds[0] if fatal else kinds[1], text, part, facts))
    return found


def _entities(document: Json, node: Node) -> list[str]:
    """The parts that an event names: by serial where index or PCI address lead to one."""
    named = document.get("entitiesImpacted", document.get("entities_impacted"))
    slots, addresses = dict(node.slots), dict(node.addresses)
    found: list[str] = []
    for one in named[:MAX_CONDITIONS] if isinstance(named, list) else ():
        if not isinstance(one, dict):
            continue
        kind, value = _text(one, "entityType", "entity_type"), _text(one, "entityValue", "entity_value")
        serial = slots.get(f"gpu{value}") if kind.upper() == "GPU" else None
        if kind.upper().startswith("PCI"):
            serial = addresses.get(f"pci:{value.lower().rpartition('.')[0] or value.lower()}")
        found.append(serial or f"{kind}:{value}")
    return list(dict.fromkeys(found))


def _text(document: Json, *keys: str) -> str:
    value = next((document[key] for key in keys if document.get(key) is not None), "")
    return printable(str(value)[:TEXT_CHARS]) if isinstance(value, str | int) else ""


def _truth(document: Json, *keys: str) -> bool | None:
    value = next((document[key] for key in keys if key in document), None)
    return value if isinstance(value, bool) else None


def _unread(why: str) -> Finding:
    return stands("observation.unreadable", f"an external monitor's report could not be understood: {why}", "external")


_SHAPES: dict[str, Callable[[object, Node], list[Finding]]] = {
    NODE_CONDITIONS: _node_conditions,
    HEALTH_EVENT: _health_event,
}
