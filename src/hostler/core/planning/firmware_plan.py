"""Steps that bring a node's firmware to its SKU's baseline, and what differs from it. Pure.

Components are written order by order; those of one order share the deepest of their activations, and their versions are
verified before the next order begins. The last power cycle and verification are the recipe's own. Those that a BMC does
not reach are written by the node's agent.
"""

from collections.abc import Iterator

from msgspec import Struct

from hostler.core.diagnose.firmware import DRIFT
from hostler.core.state import operations as op
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import ACTIVATIONS, DeviceTool, FirmwareStage, FirmwareUpdate
from hostler.core.state.firmware_versions import downgrade, is_adapter_name, is_bios_name, is_older, plain_name
from hostler.core.state.hardware import bios_to_write
from hostler.core.state.model import RECOVERY, STAGED, Node, Profile
from hostler.core.tables.recipes import StepRow

_WRITE_S, _VERIFY_S, _BMC_S, _POWER_S, _BOOT_S = 5400.0, 900.0, 900.0, 180.0, 1200.0
_HANDS_S = 21_600.0
"""A technician has as long as Zap has in all: there the phase's limit comes first."""
_DEEPEST = {name: depth for depth, name in enumerate(ACTIVATIONS)}
_CYCLES: dict[str, tuple[op.AnyAct, ...]] = {
    "dc_cycle": (),
    "ac_cycle": (op.CycleMains(),),
    "outlet_cycle": (op.CycleOutlets(),),
    op.UNPLUG: (),
}
"""Operations between a machine's being off and on again, by how deep the cycle is; what people do is asked by name."""


class FirmwareRow(Struct, frozen=True):
    """One component of the baseline, against what its BMC last reported.

    `act` is none, write, activate, refuse (nothing may be written, and zap stops there) or leave (it is not Hostler's
    to write). `staged` is written and does not run yet, `recovery` is what a spare image holds.
    """

    component: str
    reported: str
    baseline: str
    act: str
    why: str
    staged: str = ""
    recovery: str = ""
    allowed: tuple[str, ...] = ()


class _Component(Struct, frozen=True):
    name: str
    version: str
    how: FirmwareUpdate

    @property
    def good(self) -> tuple[str, ...]:
        """The versions that satisfy the baseline, the target first."""
        return (self.version, *self.how.allowed)

    @property
    def by_agent(self) -> bool:
        """Whether the node's agent writes it."""
        return self.how.via == "agent"

    @property
    def power(self) -> str:
        """The power state in which it is written; an agent's machine is on."""
        return "on" if self.by_agent else self.how.power

    def target(self, stage: FirmwareStage | None) -> FirmwareStage:
        """The version, image and its sum that are written: an intermediate one's, or the baseline's."""
        return stage or FirmwareStage(self.version, self.how.image, self.how.sha256)


def firmware_rows(node: Node, sku: Sku) -> tuple[FirmwareRow, ...]:
    """Every component of the baseline, in the order in which they are written."""
    return tuple(_row(node, one) for one in _components(sku))


def to_verify(node: Node, sku: Sku) -> dict[str, tuple[str, ...]]:
    """Component of the BMC → versions that satisfy it; without those that are not Hostler's to write."""
    return {one.name: one.good for one in _components(sku) if not (one.by_agent or _left(node, one))}


def devices_to_verify(node: Node, sku: Sku) -> dict[str, op.DeviceBaseline]:
    """Component that the agent writes → its parts, and the versions that satisfy them."""
    return {one.name: _device(one, one.good) for one in _components(sku) if one.by_agent and not _left(node, one)}


def firmware_steps(node: Node, sku: Sku) -> Iterator[StepRow]:
    """The steps from what the node last reported to the baseline, but for the recipe's last power cycle.

    A BIOS whose settings are to follow runs before: a new one has others, and may forget those that it had.
    """
    due = [one for one in _components(sku) if _row(node, one).act in ("write", "activate", "refuse")]
    rounds = list(_rounds(node, due))
    is_on, set_after = True, bool(bios_to_write(node, sku.hardware))
    for number, written in enumerate(rounds):
        for one, stage in written:
            yield from _powered(is_on, one.power)
            is_on = one.power != "off" and (is_on or one.power == "on")
            yield StepRow(_write_device(node, one, stage) if one.by_agent else _write(one, stage), _WRITE_S)
        depth = max((one.how.activate for one, _ in written), key=_DEEPEST.__getitem__)
        is_last = number == len(rounds) - 1 and not (set_after and any(is_bios_name(one.name) for one, _ in written))
        if is_last and depth in ("none", "dc_cycle"):
            return  # the recipe's own power cycle follows
        yield from _activated(depth, is_on, tuple(one.name for one, _ in written))
        is_on = is_on or depth in _CYCLES
        yield from _verified(written)


def _verified(written: list[tuple[_Component, FirmwareStage | None]]) -> Iterator[StepRow]:
    if listed := {one.name: _expected(one, stage) for one, stage in written if not one.by_agent}:
        yield StepRow(op.ResetBmc(tuple(listed)), _BMC_S)
        yield StepRow(op.VerifyFirmware(listed), _VERIFY_S)
    if devices := {one.name: _device(one, _expected(one, stage)) for one, stage in written if one.by_agent}:
        yield StepRow(op.VerifyDeviceFirmware(devices), _VERIFY_S)


def _components(sku: Sku) -> list[_Component]:
    found = [
        _Component(name, version, sku.updates.get(name) or FirmwareUpdate(image=sku.images.get(name, "")))
        for name, version in sku.firmware.items()
    ]
    return sorted(found, key=lambda one: (one.how.order, one.name))


def _rounds(node: Node, wanted: list[_Component]) -> Iterator[list[tuple[_Component, FirmwareStage | None]]]:
    """Components written between two activations: an order's intermediate versions one by one, then targets."""
    for order in sorted({one.how.order for one in wanted}):
        here = [one for one in wanted if one.how.order == order]
        left = {one.name: _to_pass(node, one) for one in here}
        for turn in range(max(map(len, left.values()))):
            yield [(one, left[one.name][turn]) for one in here if turn < len(left[one.name])]
        yield [(one, None) for one in here]


def _to_pass(node: Node, one: _Component) -> list[FirmwareStage]:
    """The intermediate versions that the node is not known to have passed."""
    runs = _listed(node, one.name)
    return [stage for stage in one.how.through if is_older(runs, stage.version) is not False]


def _write(one: _Component, stage: FirmwareStage | None) -> op.WriteFirmware:
    """The driver decides by what runs when it asks, and nothing is left to choose."""
    how, wanted = one.how, one.target(stage)
    return op.WriteFirmware(
        component=one.name,
        version=wanted.version,
        image=wanted.image,
        sha256=wanted.sha256,
        good=one.good,
        at_least=wanted.version if stage else "",
        activates=how.activate,
        needs=dict(sorted(how.needs.items())),
        downgrade=how.downgrade,
        push=how.push,
        targets=how.targets,
    )


def _write_device(node: Node, one: _Component, stage: FirmwareStage | None) -> op.WriteDeviceFirmware:
    """The agent decides part by part by what runs there."""
    how, wanted = one.how, one.target(stage)
    return op.WriteDeviceFirmware(
        component=one.name,
        tool=_tool(how),
        models=how.models,
        version=wanted.version,
        image=wanted.image,
        sha256=wanted.sha256,
        good=one.good,
        at_least=wanted.version if stage else "",
        slots=how.slots,
        downgrade=how.downgrade,
        spares_infiniband=node.profile is Profile.unmanaged,
    )


def _device(one: _Component, good: tuple[str, ...]) -> op.DeviceBaseline:
    return op.DeviceBaseline(_tool(one.how), one.how.models, good, one.how.slots)


def _tool(how: FirmwareUpdate) -> DeviceTool:
    assert how.tool is not None, "the configuration was checked: what an agent writes has a tool"
    return how.tool


def _expected(one: _Component, stage: FirmwareStage | None) -> tuple[str, ...]:
    """Versions that satisfy a verification between two orders: a node that was further on already is as good."""
    later = [other.version for other in one.how.through] if stage else []
    return tuple(dict.fromkeys((stage.version, *later, *one.good) if stage else one.good))


def _powered(is_on: bool, power: str) -> Iterator[StepRow]:
    if power == "off" and is_on:
        yield StepRow(op.SwitchOff(), _POWER_S)
    elif power == "on" and not is_on:
        yield from (StepRow(op.PowerOn(), _POWER_S), StepRow(op.WaitBoot(), _BOOT_S))


def _activated(depth: str, is_on: bool, written: tuple[str, ...]) -> Iterator[StepRow]:
    if depth == "bmc_reset":
        yield StepRow(op.ResetBmc(), _BMC_S)
    if depth in _CYCLES:
        if is_on:
            yield StepRow(op.SwitchOff(), _POWER_S)
        if depth == op.UNPLUG:
            yield StepRow(op.PullCords(written), _HANDS_S)
        yield from (StepRow(act, _BMC_S) for act in _CYCLES[depth])
        yield from (StepRow(op.PowerOn(), _POWER_S), StepRow(op.WaitBoot(), _BOOT_S))


def _row(node: Node, one: _Component) -> FirmwareRow:
    reported = _drifted(node, one) or _listed(node, one.name)
    staged, recovery = (_listed(node, f"{mark}{one.name}") for mark in (STAGED, RECOVERY))
    act, why = _act(node, one, reported, staged)
    return FirmwareRow(one.name, reported, one.version, act, why, staged, recovery, one.how.allowed)


def _drifted(node: Node, one: _Component) -> str:
    """The version by which an agent's component drifted, "" for none: a drive was swapped since it was verified."""
    drifted = (c for c in node.conditions if one.by_agent and c.type == DRIFT and c.part == one.name and c.evidence)
    return next((str(c.evidence[-1].facts.get("versions", "")).partition(",")[0] for c in drifted), "")


def _act(node: Node, one: _Component, reported: str, staged: str) -> tuple[str, str]:
    if reported == one.version:
        return "none", "at the baseline"
    if reported in one.how.allowed:
        return "none", f"allowed beside {one.version}"
    if left := _left(node, one):
        return "leave", left
    if staged == one.version:
        return "activate", f"written already; it runs after a {one.how.activate}"
    if not reported:
        return "write", f"its {'agent' if one.by_agent else 'BMC'} has not reported a version yet; it is read first"
    if why := downgrade(reported, one.version, allowed=one.how.downgrade):
        return "refuse", why
    way = " → ".join((reported, *(stage.version for stage in _to_pass(node, one)), one.version))
    return "write", f"{way}, then {one.how.activate}"


def _left(node: Node, one: _Component) -> str:
    """Why a component of an unmanaged node is not Hostler's to write, "" where it is."""
    if node.profile is not Profile.unmanaged:
        return ""
    adapter = one.how.infiniband
    if adapter or (adapter is None and (is_adapter_name(one.name) or one.how.tool == "flint")):
        return "an InfiniBand adapter of an unmanaged node: its firmware is never written"
    return "an unmanaged node gets firmware at its first delivery only" if node.handover is not None else ""


def _listed(node: Node, name: str) -> str:
    """The version that the BMC last listed for the component, "" for none; what was verified before it was asked."""
    wanted = plain_name(name)
    known = (*node.versions, *node.firmware)
    return next((version for known_as, version in known if plain_name(known_as) == wanted), "")
