"""Bodies of version 2 as version 3 writes them, and back: an operation was a kind, and its arguments were text."""

from collections.abc import Callable
from typing import Any

import msgspec

from hostler.core.state import operations as op
from hostler.core.state.firmware_versions import OR
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.pass_rules import PassRules

Arguments = dict[str, str]
BodyChange = Callable[[dict[str, Any]], dict[str, Any]]

_READ: dict[str, Callable[[Arguments], op.AnyAct]] = {
    "update_firmware": lambda a: op.WriteFirmware(
        component=a["component"],
        version=a["version"],
        image=a.get("image", ""),
        sha256=a.get("sha256", ""),
        good=_split(a.get("good", ""), OR),
        at_least=a.get("at_least", ""),
        activates=a.get("activates", ""),
        needs=dict(need.split("=", 1) for need in _split(a.get("needs", ""))),
        downgrade=a.get("downgrade") == "yes",
        push=a.get("push") == "yes",
        targets=_split(a.get("targets", "")),
    ),
    "verify_firmware": lambda a: op.VerifyFirmware({k: _split(v, OR) for k, v in a.items() if k != "baseline"}),
    "fetch_system_image": lambda a: op.FetchSystemImage(
        a["version"], a["image"], a["sha256"], _split(a.get("good", ""), OR)
    ),
    "install_system_image": lambda a: op.InstallSystemImage(
        a["version"], a["image"], _split(a.get("good", ""), OR), a.get("downgrade") == "yes", a.get("activates", "")
    ),
    "write_bios_settings": op.WriteBiosSettings,
    "verify_bios_settings": op.VerifyBiosSettings,
    "clean_machine": lambda a: op.CleanMachine(_split(a.get("steps", ""))),
    "reset_bmc": lambda a: op.ResetBmc(_split(a.get("unless_listed", ""))),
    "unplug": lambda a: op.PullCords(_split(a.get("components", ""))),
    "gpu_reset": lambda a: op.ResetGpus(
        () if a.get("gpu", "all") == "all" else _split(a["gpu"]),
        _split(a.get("clients", "")),
        a.get("fabric", ""),
        int(a.get("links", "0")),
    ),
    "run_checks": lambda a: op.RunChecks(
        a.get("profile", "gate"), _expected(a.get("expects", "")), _rules(a.get("rules", ""))
    ),
    "evict": lambda a: op.Evict(_split(a.get("workloads", ""))),
    "join_cluster": lambda a: op.JoinCluster(float(a.get("token_ttl_s", "0"))),
    "issue_join_token": lambda a: op.IssueJoinToken(a.get("cluster", ""), float(a.get("token_ttl_s", "0"))),
    "sanitise": lambda a: op.Sanitise(
        msgspec.json.decode(a.get("drives", "[]"), type=tuple[op.DriveToErase, ...]),
        msgspec.json.decode(a.get("keep", "[]"), type=tuple[str, ...]),
        a.get("tpm") == "yes",
        msgspec.json.decode(a.get("accounts", "null"), type=tuple[str, ...] | None),
    ),
    "renew_dpu_login": lambda a: msgspec.json.decode(a["order"], type=op.RenewDpuLogin),
    "wipe_dpu_login": lambda a: msgspec.json.decode(a["order"], type=op.WipeDpuLogin),
    "write_device_firmware": lambda a: msgspec.json.decode(a["order"], type=op.WriteDeviceFirmware),
    "verify_device_firmware": lambda a: msgspec.json.decode(a["order"], type=op.VerifyDeviceFirmware),
    "verify_inventory": lambda a: op.VerifyInventory(a.get("missing") == "convicts"),
}
"""Kind → its arguments read; those of other kinds were the fields' own names."""


def _split(text: str, by: str = ",") -> tuple[str, ...]:
    return tuple(filter(None, text.split(by)))


def _expected(text: str) -> Expected | None:
    try:
        return msgspec.json.decode(text, type=Expected) if text else None
    except msgspec.MsgspecError:
        return None


def _rules(text: str) -> PassRules | None:
    """The rules. Raises what msgspec raises: an order whose rules cannot be read is none that this version knows."""
    return msgspec.json.decode(text, type=PassRules) if text else None


def act_up(kind: str, args: Arguments) -> op.AnyAct:
    """The operation as a struct; what this version does not know is kept as it was recorded."""
    try:
        return _READ[kind](args) if kind in _READ else msgspec.convert({**args, "kind": kind}, op.AnyAct, strict=False)
    except (KeyError, ValueError, msgspec.MsgspecError):
        return op.RetiredOperation(kind, args)


_WRITTEN: dict[type, Callable[[Any], Arguments]] = {
    op.WriteFirmware: lambda act: {
        "component": act.component,
        "version": act.version,
        "image": act.image,
        **_stated(
            sha256=act.sha256,
            good=OR.join(act.good),
            at_least=act.at_least,
            activates=act.activates,
            needs=",".join(f"{name}={version}" for name, version in act.needs.items()),
            downgrade="yes" if act.downgrade else "",
            push="yes" if act.push else "",
            targets=",".join(act.targets),
        ),
    },
    op.SetBootNetwork: lambda act: {} if act == op.SetBootNetwork() else {"target": act.target, "url": act.url},
    op.VerifyFirmware: lambda act: {name: OR.join(versions) for name, versions in act.wanted.items()},
    op.FetchSystemImage: lambda act: {
        "version": act.version,
        "image": act.image,
        "sha256": act.sha256,
        "good": OR.join(act.good),
    },
    op.InstallSystemImage: lambda act: {
        "version": act.version,
        "image": act.image,
        "good": OR.join(act.good),
        **_stated(downgrade="yes" if act.downgrade else "", activates=act.activates),
    },
    op.WriteBiosSettings: lambda act: act.wanted,
    op.VerifyBiosSettings: lambda act: act.wanted,
    op.CleanMachine: lambda act: {"steps": ",".join(act.steps)},
    op.ResetBmc: lambda act: _stated(unless_listed=",".join(act.unless_listed)),
    op.PullCords: lambda act: _stated(components=",".join(act.components)),
    op.ResetGpus: lambda act: _stated(
        gpu=",".join(act.gpus),
        clients=",".join(act.clients),
        fabric=act.fabric,
        links=str(act.links) if act.links else "",
    ),
    op.RunChecks: lambda act: {"profile": act.profile, **_stated(expects=_text(act.expects), rules=_text(act.rules))},
    op.Evict: lambda act: {"workloads": ",".join(act.workloads)},
    op.JoinCluster: lambda act: _stated(token_ttl_s=f"{act.token_ttl_s:g}" if act.token_ttl_s else ""),
    op.IssueJoinToken: lambda act: {"cluster": act.cluster, "token_ttl_s": f"{act.token_ttl_s:g}"},
    op.Sanitise: lambda act: _stated(
        drives=_json(act.drives) if act.drives else "",
        keep=_json(act.keep) if act.keep else "",
        tpm="yes" if act.tpm else "",
        accounts=_json(act.accounts) if act.accounts is not None else "",
    ),
    op.RenewDpuLogin: lambda act: {"order": _json(act)},
    op.WipeDpuLogin: lambda act: {"order": _json(act)},
    op.WriteDeviceFirmware: lambda act: {"order": _json(act)},
    op.VerifyDeviceFirmware: lambda act: {"order": _json(act)},
    op.VerifyInventory: lambda act: {"missing": "convicts" if act.convicts else "waits"},
    op.RetiredOperation: lambda act: act.args,
}
"""Struct → its arguments as text; those of others are written under the fields' own names."""


def act_down(act: op.AnyAct) -> Arguments:
    """The operation's arguments as text."""
    if (written := _WRITTEN.get(type(act))) is not None:
        return written(act)
    return {name: str(getattr(act, name)) for name in act.__struct_fields__}


def _json(value: tuple[Any, ...]) -> str:
    return msgspec.json.encode(value).decode()


def _text(told: Expected | PassRules | None) -> str:
    return "" if told is None else msgspec.json.encode(told).decode()


def _stated(**args: str) -> Arguments:
    return {name: text for name, text in args.items() if text}


def _read(act: dict[str, Any]) -> op.AnyAct:
    read: op.AnyAct = msgspec.convert(act, op.AnyAct)
    return read


def operation_up(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation, its kind and arguments as one struct."""
    others = {name: value for name, value in operation.items() if name not in ("kind", "args")}
    return {**others, "act": msgspec.to_builtins(act_up(operation["kind"], operation.get("args", {})))}


def operation_down(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation, its arguments as text."""
    act = _read(operation["act"])
    others = {name: value for name, value in operation.items() if name != "act"}
    return {**others, "kind": act.kind, "args": act_down(act)}


def plan_up(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan, its steps' operations as structs."""
    return {**plan, "steps": [_step_up(step) for step in plan["steps"]]}


def plan_down(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan, the arguments of its steps as text."""
    return {**plan, "steps": [_step_down(step) for step in plan["steps"]]}


def _step_up(step: dict[str, Any]) -> dict[str, Any]:
    others = {name: value for name, value in step.items() if name not in ("operation", "args")}
    return {**others, "act": msgspec.to_builtins(act_up(step["operation"], step.get("args", {})))}


def _step_down(step: dict[str, Any]) -> dict[str, Any]:
    act = _read(step["act"])
    others = {name: value for name, value in step.items() if name != "act"}
    return {**others, "operation": act.kind, "args": act_down(act)}


def plan_recorded_up(body: dict[str, Any]) -> dict[str, Any]:
    """A recorded plan."""
    return {**body, "plan": plan_up(body["plan"])}


def plan_recorded_down(body: dict[str, Any]) -> dict[str, Any]:
    """A recorded plan."""
    return {**body, "plan": plan_down(body["plan"])}


def operation_started_up(body: dict[str, Any]) -> dict[str, Any]:
    """A started operation."""
    return {**body, "operation": operation_up(body["operation"])}


def operation_started_down(body: dict[str, Any]) -> dict[str, Any]:
    """A started operation."""
    return {**body, "operation": operation_down(body["operation"])}


def node_up(node: dict[str, Any]) -> dict[str, Any]:
    """A node: its plan, and what is under way or settles."""
    return _node(node, plan_up, operation_up)


def node_down(node: dict[str, Any]) -> dict[str, Any]:
    """A node: its plan, and what is under way or settles."""
    return _node(node, plan_down, operation_down)


def _node(node: dict[str, Any], plan: BodyChange, operation: BodyChange) -> dict[str, Any]:
    alone = {"plan": plan, "operation": operation, "aside": operation}
    changed = {name: cast(node[name]) for name, cast in alone.items() if node.get(name)}
    return {**node, **changed, "settling": [operation(one) for one in node.get("settling", ())]}


def node_registered_up(body: dict[str, Any]) -> dict[str, Any]:
    """A registered node."""
    return {**body, "node": node_up(body["node"])}


def node_registered_down(body: dict[str, Any]) -> dict[str, Any]:
    """A registered node."""
    return {**body, "node": node_down(body["node"])}
