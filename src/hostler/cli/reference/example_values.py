"""Example values made from types, with words that such a field really has: for sentences in the reference."""

import types
import typing
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields, replace

from hostler.core.state.boot import HOLD, LOADER
from hostler.core.state.events import Event
from hostler.core.state.fabrics import FabricVerdict
from hostler.core.state.model import Verdict
from hostler.core.state.operations import SwitchOff
from hostler.core.state.scopes import TEXTS, Scope
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.ways_out import observed

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NODE, FAULT, PART = "c1-n0042", "gpu.fallen_off_bus", "pci:0000:5b:00"
WORDS: dict[str, Any] = {
    "Approval.id": "a-4711",
    "ApprovalEnded.approval": "a-4711",
    "ApprovalEnded.result": "denied",
    "Asset.id": "rack:r7",
    "AssetChanged.asset": "rack:r7",
    "AssetAct.act": SwitchOff(),
    "rack": "r7",
    "RackRunEnded.result": "failed",
    "RackRunEnded.why": "switch trays did not stand in time: sw1 says critical of its health",
    "AssetOperationFinished.result": "failed",
    "AssetOperationFinished.asset": "r7-sw1",
    "AssetOperationSettled.detail": "its settle time is over",
    "AssetOperationSettled.asset": "r7-sw1",
    "RackStepDone.step": "switch_trays",
    "RackRunEnded.step": "switch_trays",
    "RackCertificateVoided.why": "r7-sw1 was swapped: it shows serial TR-9, TR-1 was certified",
    "AssetChanged.state": "in_repair",
    "Binding.kind": "bmc",
    "Binding.value": "https://10.20.0.42",
    "Blocker.ways": (observed("another node of the pool is back in service", "hostler"),),
    "Blocker.kind": "budget",
    "Blocker.text": "pool train: 3 of 96 unavailable, 1 more would exceed the budget of 3",
    "CheckResult.detail": "8 GPUs, 64 GiB memory and 2 drives looked at",
    "CheckResult.verdict": Verdict.passed,
    "Condition.count": 3,
    "Condition.id": f"{NODE}/{FAULT}/{PART}",
    "ConditionCleared.condition": f"{NODE}/{FAULT}/{PART}",
    "ClockGap.doubt": "the wall clock jumped forward by 2 d",
    "Seal.number": 4711,
    "Difference.journal": "on",
    "Difference.reality": "off",
    "Difference.what": "power",
    "Evidence.text": "Xid 79 on GPU 0000:5b:00: the GPU does not answer on PCIe",
    "Hold.id": "h-17",
    "Hold.scope": Scope.of(NODE),
    "HoldReleased.hold": "h-17",
    "FabricCase.fabric": "ib-train",
    "FabricCase.waits": "10 tickets are open for this network",
    "Fabric.name": "ib-train",
    "Fabric.digest": "5be01ad2c9f3",
    "FabricLook.why": "the discovery ended before its time",
    "fabric": "ib-train",
    "headline": "leaf-3 port 12 runs at 2x of 4x",
    "key": "width:leaf-3/12",
    "Incident.also": (Scope.of("psu:r7-2"),),
    "Incident.id": "i-9",
    "IncidentClosed.incident": "i-9",
    "IncidentUpdated.incident": "i-9",
    "IncidentUpdated.state": "confirmed",
    "Intent.act": VERBS["reboot"](),
    "IntentRecorded.answer": f"{NODE}: reboot will start",
    "KnowledgeChanged.known": {NODE: (f"{NODE}/{FAULT}/{PART}",)},
    "KnowledgeChanged.unknown": {NODE: (f"{NODE}/{FAULT}/{PART}",)},
    "ModeSet.remedy": "power_cycle",
    "NodeRegistered.adopted": False,
    "OperationFinished.result": "failed",
    "OperationFinished.detail": "the BMC did not answer within 30 s",
    "OperationSettled.detail": "the node has booted since",
    "OutcomeLate.detail": "power is off",
    "OutcomeLate.result": "done",
    "PartMoved.after": "c1-n0043",
    "PartMoved.before": NODE,
    "Plan.state": "running",
    "PlanEnded.result": "failed",
    "PlanEnded.reason": "power_on failed after 3 attempts",
    "Position.rack": "r7",
    "RecurrenceCounted.part": PART,
    "Rollout.id": "r-3",
    "Rollout.index": 0,
    "RolloutCompleted.rollout": "r-3",
    "RolloutStopped.rollout": "r-3",
    "Shadow.waits": "pool train: 3 of 96 unavailable, 1 more would exceed the budget of 3",
    "SliceErrorSeen.rollout": "r-3",
    "SliceStarted.rollout": "r-3",
    "SliceError.kind": "plan_not_foreseen",
    "SliceError.text": "power_cycle for gpu.fallen_off_bus was not foreseen when the slice began",
    "SourcesChanged.heard": {NODE: ("bmc",)},
    "SourcesChanged.silent": {NODE: ("agent",)},
    "Step.act": SwitchOff(),
    "Operation.act": SwitchOff(),
    "Tally.result": "gpu.suspect",
    "Tally.row": "falls off the bus",
    "Ticket.id": "t-21",
    "Ticket.kind": "rma",
    "Ticket.summary": f"return {NODE} to the vendor: {FAULT}",
    "TicketClaimed.before": "tina",
    "TicketHandedOver.before": "tina",
    "TicketHandedOver.to": "tom",
    "TicketClosed.ticket": "t-21",
    "TicketFileAdded.ticket": "t-21",
    "WalkStopChanged.ticket": "ib0-w417",
    "AttachedFile.name": "leaf-001.jpg",
    "AttachedFile.digest": "9f2c71d04be5",
    "AttachedFile.media_type": "image/jpeg",
    "WindowAnswered.window": "w-5",
    "WindowEnded.window": "w-5",
    "BootRefused.what": "the boot script",
    "BootRefused.reason": "another address than its binding's asked",
    "FabricFindingSeen.kind": "width",
    "action": "power_cycle",
    "address": "10.20.1.7",
    "image": "ubuntu-24.04",
    "mac": "52:54:00:3c:11:08",
    "approved_by": "second-operator",
    "boot_id": "3f0e6a52-7c1d-4f7e-9a51-0c2b6d1f8e44",
    "by": "remedy",
    "cluster": "train-a",
    "condition": FAULT,
    "conditions": (FAULT,),
    "detail": "power is off",
    "kind": "power_off",
    "members": ("ctl-a", "ctl-b"),
    "name": "power_cycle",
    "node": NODE,
    "nodes": (NODE,),
    "operation": "op-301",
    "owner": "operator",
    "part": PART,
    "person": "operator",
    "plan": "p-88",
    "pool": "train",
    "profile": "gate",
    "reason": "planned work on the rack",
    "remediators": ("nvsentinel",),
    "remediator": "nvsentinel",
    "remedy": "power_cycle",
    "resolution": "the part was replaced",
    "rule": FAULT,
    "scope": "rack:r7",
    "serial": "1650123456789",
    "sha256": "960a45be4a28d0c1",
    "sku": "h100",
    "source": "agent",
    "target": NODE,
    "tenant": "acme",
    "ticket": "t-21",
    "type": FAULT,
    "unattended_s": 372.0,
    "version": "1.4.0",
    "what": "power_cycle",
    "window_s": 3600.0,
    "workload": "train/llama-7-0",
    "id": "x-1",
}
"""Words by "Struct.field", or by a field's name in every struct; a word of another type than the field is left out."""
ALWAYS = frozenset(
    {"Intent.act", "Configuration.sha256", "Rollout.slices", "Hold.scope", "Radius.nodes", "Approval.nodes"}
)
"""Fields that even the least example fills: no such thing is without them."""


OTHERS: dict[str, tuple[dict[str, Any], ...]] = {
    "PartMoved": ({"before": ""}, {"after": ""}),
    "AgentEnrolled": ({"tpm": ""}, {"pcrs": ()}),
    "BootAnswered": ({"boot": {"kind": HOLD}}, {"boot": {"kind": LOADER}}),
    "IncidentOpened": (
        {"incident": {"conditions": (), "syndrome": "cabling", "scope": "switch:leaf-3", "ticket": ""}},
    ),
    "TicketHandedOver": ({"to": ""}, {"before": "operator"}),
    "RepairRecorded": ({"repair": {"part": ""}},),
    "StrangerSeen": ({"stranger": {"mac": ""}},),
    "WalkStopChanged": ({"stop": {"proved": None}},),
    "FabricValidated": ({"look": {"findings": 0, "verdict": FabricVerdict.as_designed}},),
}
"""Fields of further examples of an event, where another value makes another sentence; those of a struct by name."""


def examples(event: type[Struct]) -> Iterator[Event]:
    """Instances of an event: with all that it can hold, with the least, and with other values."""
    hints = _hints(event)
    full = typing.cast("dict[str, Any]", {name: _value(event, name, hint, full=True) for name, hint in hints.items()})
    yield typing.cast("Event", event(**full))
    least = {name: _value(event, name, hint, full=False) for name, hint in hints.items()}
    yield typing.cast("Event", event(**least))
    for name, hint in hints.items():
        if hint is bool:
            yield typing.cast("Event", event(**(full | {name: not full[name]})))
    for other in OTHERS.get(event.__name__, ()):
        changed = {name: replace(full[name], **to) if isinstance(to, dict) else to for name, to in other.items()}
        yield typing.cast("Event", event(**(full | changed)))


def _hints(struct: type[Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    return {field.name: hints[field.name] for field in fields(struct)}


def _value(owner: type[Struct], name: str, hint: Any, *, full: bool) -> Any:
    """A value of a field; the least one is the field's default, nothing of what is optional, no members."""
    if not full and f"{owner.__name__}.{name}" not in ALWAYS:
        known = next(field for field in fields(owner) if field.name == name)
        if not known.required:
            return known.default_factory() if callable(known.default_factory) else known.default
    word = WORDS.get(f"{owner.__name__}.{name}", WORDS.get(name))
    if isinstance(word, Struct) or (word is not None and _fits(word, hint)):
        return word
    return _of_type(hint, full=full, name=name)


def _of_type(hint: Any, *, full: bool, name: str = "") -> Any:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint(**{f: _value(hint, f, h, full=full) for f, h in _hints(hint).items()})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[-1] if full else next(iter(hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        some = next(a for a in args if a is not type(None))
        return _of_type(some, full=full, name=name) if full or type(None) not in args else None
    if origin is typing.Literal:
        return args[0]
    if origin is tuple:
        return tuple(_of_type(one, full=True, name=name) for one in args if one is not Ellipsis)
    if origin is dict:
        return {_of_type(args[0], full=True, name="node"): _of_type(args[1], full=True, name=name)}
    plain = {str: WORDS.get(name) or name, int: 2, float: 2.0, bool: True, datetime: START + timedelta(hours=1)}
    if hint in TEXTS:
        return TEXTS[hint](str(WORDS.get(name) or name))
    return plain.get(hint, WORDS.get(name) or name)


def _fits(word: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(word, one) for one in args)
    if origin is tuple:
        return isinstance(word, tuple) and all(_fits(one, args[0]) for one in word)
    return isinstance(word, origin or hint)
