"""Folds findings into bursts: what has one cause is one burst, however many lines and parts of a node report it."""

import re

from msgspec import Struct

from hostler.core.diagnose.decoded import Decoded

APPLICATION = "application"
FABRIC = "fabric"

_APPLICATION_CONDITIONS = frozenset({"gpu.application_error", "host.application_crash", "host.out_of_memory"})
_FABRIC_KINDS = frozenset({"sxid", "fabric_manager"})
_TORN_DOWN, _RECOVERY_CHANGED, _OFF_THE_BUS = 45, 154, 79
_FOLLOWS = frozenset({_TORN_DOWN, _RECOVERY_CHANGED})
"""Codes that tell of another: they join whatever else the GPU reports."""
_KERNEL = "kernel"
_OF_THE_KERNEL = frozenset(
    {"kernel_oops", "kernel_bug", "kernel_panic", "soft_lockup", "hard_lockup", "rcu_stall", "hung_task"}
)
"""Conditions of the kernel itself: a hung task, the oops behind it and the panic that ends it are one thing."""
_OF_A_PORT = frozenset({"pcie_link_down", "pcie_link_training_failed"})
_DISK = re.compile(r"(nvme\d{1,4}|[shv]d[a-z]{1,4}|xvd[a-z]{1,4})", re.ASCII)


class Burst(Struct, frozen=True):
    """One thing that happened on a node. `cause` says who bears it: the application, the fabric, or a part."""

    cause: str
    findings: tuple[Decoded, ...]


class _BurstContext(Struct, frozen=True):
    """Summary of the findings: GPUs and devices with faults of their own, and whether others share theirs."""

    bearers: frozenset[str]
    off_the_bus: frozenset[str]
    disks: tuple[str, ...]
    fabric: bool
    application: bool
    kernel: bool


def fold(findings: tuple[Decoded, ...]) -> tuple[Burst, ...]:
    """The bursts of findings that came together, in the order in which they began.

    Faults of programs are one burst and ask nothing of the node. NVLink and NVSwitch faults are the fabric's: its
    ends all report them. What else a part reports is one burst of that part, which codes that only follow (a
    channel torn down, a recovery recommended) join, and so does the PCIe port's report of a GPU off the bus. What lies
    upon disks (device mapper, arrays, file systems that name none) joins the one disk that fails.
    """
    own = [one for one in findings if one.code not in _FOLLOWS and not _of_application(one) and not _of_fabric(one)]
    context = _BurstContext(
        bearers=frozenset(one.pci for one in own if one.pci),
        off_the_bus=frozenset(one.pci for one in own if one.code == _OFF_THE_BUS),
        disks=_disks(own),
        fabric=any(_of_fabric(one) for one in findings),
        application=any(_of_application(one) for one in findings),
        kernel=any(one.event in _OF_THE_KERNEL for one in findings),
    )
    causes: dict[str, list[Decoded]] = {}
    for one in findings:
        causes.setdefault(_cause(one, context), []).append(one)
    return tuple(Burst(cause, tuple(found)) for cause, found in causes.items())


def _cause(one: Decoded, context: _BurstContext) -> str:
    if _of_fabric(one):
        return FABRIC
    follows = one.code in _FOLLOWS
    if (follows or _of_application(one)) and one.pci in context.bearers:
        return one.pci
    if follows and context.fabric:
        return FABRIC
    if _of_application(one) or (one.code == _TORN_DOWN and context.application):
        return APPLICATION
    if _of_a_port(one) and one.pci not in context.off_the_bus and len(context.off_the_bus) == 1:
        return next(iter(context.off_the_bus))
    if one.event in _OF_THE_KERNEL or (one.event == "nfs_writeback_hang" and context.kernel):
        return _KERNEL
    if one.kind == "disk" and len(context.disks) == 1 and not _DISK.match(_device(one)):
        return context.disks[0]
    return one.pci or _part(one)


def _disks(findings: list[Decoded]) -> tuple[str, ...]:
    """The disks that the findings name; where they name none, the devices upon them."""
    names = [_part(one) for one in findings if one.kind == "disk" and _device(one)]
    return tuple(dict.fromkeys([name for name in names if _DISK.match(name)] or names))


def _device(one: Decoded) -> str:
    return str(one.facts.get("device", ""))


def _part(one: Decoded) -> str:
    """The disk of a partition, a server, or the kind of event itself where the line names no part."""
    device = _device(one)
    disk = _DISK.match(device)
    return (disk[1] if disk else device) or str(one.facts.get("server") or one.event or one.kind)


def _of_a_port(one: Decoded) -> bool:
    return one.kind == "pcie_aer" or one.event in _OF_A_PORT


def _of_fabric(one: Decoded) -> bool:
    return one.kind in _FABRIC_KINDS or one.category == "nvlink"


def _of_application(one: Decoded) -> bool:
    return one.condition in _APPLICATION_CONDITIONS
