"""Puts together what is known of one node for its vendor: files with its story, log, parts, readings and the case.

Everything is bounded, and redacted: no secret, no name of a customer, of its pools, clusters, work or people. What is
recorded of people's acts and customers' work is left out as a whole; what is left is searched for their names.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Observation, Part, Scalar
from hostler.core.state.scopes import text_hook
from hostler.core.tables.conditions import CONDITIONS
from hostler.logs.secret_patterns import HIDDEN as SECRET_HIDDEN
from hostler.logs.secret_patterns import is_secret, redact

MAX_RECORDS, MAX_OBSERVATIONS = 2_000, 2_000
WHOLE_DAYS = 30
"""Records of so many days are all in a bundle, and before them as many as make MAX_RECORDS."""
CITED_MOST = 20_000
"""Observations beyond the last that are looked up because a condition rests on them."""
MAX_FILE = 1024 * 1024
"""Characters of one file; what is more is cut, and the file says so."""
MAX_LINE = 1_000
HIDDEN = "[removed]"

MACHINE_EVENTS: tuple[type[Struct], ...] = (
    e.PhaseChanged,
    e.BootObserved,
    e.ConditionRaised,
    e.ConditionCleared,
    e.PlanEnded,
    e.OperationStarted,
    e.OperationFinished,
    e.CheckRecorded,
    e.InventorySeen,
    e.HardwareSeen,
    e.PartMoved,
)
"""Records that tell of the machine; what tells of people and of customers' work stays here."""
_OF_WORK = frozenset(
    {"cordon", "uncordon", "evict", "drain", "join_cluster", "confirm_join", "leave_cluster", "idle_check"}
    | {"start_kubelet", "stop_kubelet"}
)
_LOGS = ("kernel_log", "event_log")
_USER_OF_URL = re.compile(rf"(?<=://)[^/\s:@]+(?=:{re.escape(SECRET_HIDDEN)}@)")
_PROCESS = re.compile(r"(?m)(?<=^)(\s*(?:Name|Command)\s*:\s+)\S.*$|(\|\s+\d+\s+\S+\s+\S+\s+\d+\s+[CGM+]+\s+)\S.*$")
"""Processes in NVIDIA's own report: in the list of each GPU, and in nvidia-smi's table."""
_PROGRAM = re.compile(r"(?<=\bname=)[^,\s]+|(?<=\bComm: )\S+")
"""Programs that the kernel names in its lines: a customer's are its own affair."""


class EvidenceBundle(Struct, frozen=True):
    """Files by name, each a text, with the SHA-256 of each."""

    node: str
    made: datetime
    files: dict[str, str]
    sha256: dict[str, str]


READINGS = "readings.json"
"""The file of what the agent has just read."""


class Brought(Struct, frozen=True):
    """Texts that were fetched for a bundle, by file and bounded; and what could not be had, and why."""

    texts: dict[str, str] = {}
    missing: tuple[str, ...] = ("nvidia-bug-report, BMC dump: not fetched for a bundle that is put together on demand",)


ON_DEMAND = Brought()


class Known(Struct, frozen=True):
    """Reading for a bundle: the fleet, the node, its records and raw observations, newest first.

    Of observations before `log_since` only those are here on which a condition rests; None: all are.
    """

    fleet: Fleet
    node: Node
    records: Sequence[e.Record]
    observations: Sequence[Observation]
    made: datetime
    log_since: datetime | None = None


def evidence_bundle(known: Known, brought: Brought = ON_DEMAND) -> EvidenceBundle:
    """The bundle of one node at this moment, with what was fetched for it."""
    hide = Redaction(_names_of(known.fleet, known.node))
    logs = [seen for seen in reversed(known.observations) if _is_of_machine(seen)]
    files = {
        "case.json": _json(_case(known), hide),
        "timeline.txt": _lines(_timeline(known), hide),
        "log.txt": _latest_lines(_log(logs), hide),
        "checks.json": _json([*known.node.checks], hide),
        "parts.json": _json(_parts(known), hide),
        "firmware.json": _json(dict(known.node.versions) or dict(known.node.firmware), hide),
        "hardware.json": _json(dict([*known.node.hardware, *known.node.hardware_own]), hide),
        "sensors.csv": _lines(_sensors(known.observations), hide),
        "collected.json": _json(list(_collected(known.records)), hide),
        "missing.txt": _lines((*_missing(known, brought), *brought.missing), hide),
        **{name: hide.text(_PROCESS.sub(_unnamed, text)) for name, text in brought.texts.items()},
    }
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    return EvidenceBundle(known.node.id, known.made, files, digests)


class Redaction:
    """Takes names and secrets out of texts. `names`: what may not be read, longest first so that none hides another."""

    def __init__(self, names: Iterable[str]) -> None:
        listed = sorted({name for name in names if len(name) > 2}, key=lambda name: (-len(name), name))
        words = "|".join(re.escape(name) for name in listed)
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE) if words else None

    def text(self, text: str) -> str:
        """The text without them, its control characters made visible."""
        kept = _PROGRAM.sub(HIDDEN, _USER_OF_URL.sub(HIDDEN, redact(text)))
        kept = self._names.sub(HIDDEN, kept) if self._names is not None else kept
        return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in kept)

    def value(self, value: Any, name: str = "") -> Any:
        """A value of JSON without them; what stands under a secret's name is taken out whole."""
        if not isinstance(value, bool) and value is not None and is_secret(name, str(value)):
            return HIDDEN
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(one, str(key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return self.text(value) if isinstance(value, str) else value


def _unnamed(found: re.Match[str]) -> str:
    return f"{found[1] or found[2]}{HIDDEN}"


def _names_of(fleet: Fleet, node: Node) -> Iterator[str]:
    """Names of customers and of what is theirs; of what may be called like a part of the machine none is left out."""
    configuration = fleet.configuration_of(node)
    for pool in configuration.pools.values():
        yield from (pool.name, pool.tenant, pool.cluster, pool.owner)
    if node.assignment is not None:
        yield from (node.assignment.pool, node.assignment.tenant, node.assignment.cluster)
    yield from (node.left_cluster, node.left_pool, node.certified_by)
    yield from (node.binding(kind) for kind in ("kubernetes", "slurm", "hostname") if node.binding(kind) != node.id)


def _is_of_machine(seen: Observation) -> bool:
    """Lines of the kernel (facility 0) and of the BMC: those of programs may say anything."""
    return seen.kind in _LOGS and seen.facility in (None, 0)


def _case(known: Known) -> dict[str, Any]:
    """The fields that a vendor's case form asks for."""
    node = known.node
    slots = {serial: slot for slot, serial in node.slots}
    parts = {part.serial: part for part in known.fleet.parts.of(node.id)}
    faults = [c for c in node.conditions if c.type in CONDITIONS and not c.type.startswith(("operator.", "check."))]
    return {
        "hardware_id": node.id,
        "system_serial": node.binding("serial"),
        "model": node.sku,
        "site": node.position.site,
        "rack": node.position.rack,
        "rack_unit": node.position.u,
        "phase": node.phase.value,
        "in_service_since": node.handover,
        "faults": [
            {
                "fault": c.type,
                "description": c.evidence[-1].text if c.evidence else "",
                "first_seen": c.since,
                "last_seen": c.last_seen,
                "times": c.count,
                "part": _part_fields(parts.get(c.part)) or {"slot": slots.get(c.part, c.part)},
            }
            for c in faults
        ],
        "failed_checks": [f"{check.profile}: {check.detail}" for check in node.checks if check.verdict == "failed"],
        "repairs_tried": [{"action": a.remedy, "part": a.part, "at": a.at, "failed": a.failed} for a in node.attempts],
        "tickets": [ticket.id for ticket in known.fleet.tickets_about(node.id)],
        "prepared": known.made,
    }


def _part_fields(part: Part | None) -> dict[str, str]:
    if part is None:
        return {}
    named = {"kind": part.kind, "model": part.model, "serial": part.serial, "slot": part.slot}
    return named | {"firmware": part.firmware}


def _timeline(known: Known) -> Iterator[str]:
    for record in sorted(known.records, key=lambda one: one.seq):
        event = record.event
        if not isinstance(event, MACHINE_EVENTS):
            continue
        kind = event.operation.kind if isinstance(event, e.OperationStarted) else getattr(event, "kind", "")
        if kind in _OF_WORK or (isinstance(event, e.ConditionRaised) and event.condition.type.startswith("operator.")):
            continue
        yield f"{record.at:%Y-%m-%d %H:%M:%S} {sentence(event)}"


def _log(logs: Iterable[Observation]) -> Iterator[str]:
    for seen in logs:
        at = f"{seen.received:%Y-%m-%d %H:%M:%S}" if seen.received else ""
        again = f" ({seen.count} times)" if seen.count > 1 else ""
        yield f"{at} {seen.source}: {' '.join(redact(seen.text).split())}{again}"


def _parts(known: Known) -> list[dict[str, str]]:
    return [_part_fields(part) for part in known.fleet.parts.of(known.node.id)]


def _sensors(observations: Sequence[Observation]) -> Iterator[str]:
    """One line for each reading that was recorded: they are when something changed, and once an hour."""
    yield "received,sensor,value"
    for seen in reversed(observations):
        if seen.kind in ("sensors", "gpu_state") and seen.received is not None:
            for name, value in sorted(seen.facts.items()):
                if isinstance(value, int | float | str) and not is_secret(name, str(value)):
                    yield f"{seen.received:%Y-%m-%dT%H:%M:%SZ},{_cell(name)},{_cell(value)}"


def _cell(value: Scalar) -> str:
    """A field of a table that no spreadsheet takes for a formula or for two fields."""
    text = " ".join(str(value).split()).replace(",", ";").replace('"', "'")
    return f"'{text}" if text.startswith(("=", "+", "@")) else text


def _collected(records: Sequence[e.Record]) -> Iterator[dict[str, Any]]:
    """Readings that the agent collected before the power went off, newest first."""
    for record in records:
        event = record.event
        if isinstance(event, e.OperationFinished) and event.kind == "collect_evidence":
            yield {"at": record.at, "result": event.result, "detail": event.detail, "facts": event.facts}


def _missing(known: Known, brought: Brought) -> Iterator[str]:
    """Names what a vendor may ask for and is not recorded, and why."""
    if READINGS not in brought.texts and not any(one["facts"] for one in _collected(known.records)):
        yield "readings before the last power cycle: none were collected"
    if not any(seen.kind == "event_log" for seen in known.observations):
        yield "BMC event log: no entry is kept since the node is known"
    if len(known.records) >= MAX_RECORDS:
        yield f"timeline: records before {known.records[-1].at:%Y-%m-%d %H:%M} UTC may be left out"
    if known.log_since is not None:
        since = f"{known.log_since:%Y-%m-%d %H:%M:%S} UTC"
        yield f"log, sensors: of observations before {since} only those on which a condition rests are here"


def _lines(lines: Iterable[str], hide: Redaction) -> str:
    """The lines, each cut; a secret may go over several, and half a secret looks like none: it is hidden before."""
    return _bounded(_cut_lines(lines, hide))


def _latest_lines(lines: Iterable[str], hide: Redaction) -> str:
    """The same, of lines of which the last matter most."""
    text = _cut_lines(lines, hide)
    return text if len(text) <= MAX_FILE else f"[cut before the last {MAX_FILE} characters]\n{text[-MAX_FILE:]}"


def _cut_lines(lines: Iterable[str], hide: Redaction) -> str:
    whole = hide.text("\n".join(lines))
    return "\n".join(line[:MAX_LINE] for line in whole.split("\n")) + "\n"


def _json(value: Any, hide: Redaction) -> str:
    plain = hide.value(msgspec.to_builtins(value, str_keys=True, enc_hook=text_hook))
    return _bounded(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n")


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_FILE else f"{text[:MAX_FILE]}\n[cut after {MAX_FILE} characters]\n"
