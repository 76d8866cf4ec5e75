"""Kinds of fault: how each shows itself, whose work it ends, and what really cures it.

One table.

Which share of a component's failures looks how, and what cured them, is nobody's published figure: the shares here
are estimates in keeping with Llama 3's report (3 of 419 interruptions needed significant manual work) and with
NVIDIA's recommended action for each Xid.
"""

from datetime import datetime

from msgspec import Struct

CURES = ("itself", "gpu_reset", "reboot", "power_cycle", "part")
"""Cures of faults, gentlest first; each cure to the right of the named one ends the fault too."""


class FaultKind(Struct, frozen=True):
    """One way to fail.

    `shows`: lines (of the kernel's log), crash (of the host), dark (the power is gone), gone (a part vanishes from
    the inventory), heat, or nothing. `ends`: the work that is lost with it: part, node, job, or none. `cures`: what
    ends it, with its share. `found`: chance that a check profile sees it while it is there. `hangs`: the job stalls
    until its own watchdog gives up instead of crashing. `passes_s`: how long one lasts that ends by itself (least,
    most).
    """

    name: str
    shows: str
    ends: str
    cures: tuple[tuple[str, float], ...]
    lines: tuple[str, ...] = ()
    part: str = "gpu"
    found: float = 0.9
    hangs: bool = False
    passes_s: tuple[float, float] = (10.0, 60.0)


def _xid(code: int, words: str) -> str:
    return f"NVRM: Xid (PCI:{{pci}}): {code}, pid='<unknown>', name=<unknown>, {words}"


_RESET = (("gpu_reset", 0.80), ("reboot", 0.10), ("part", 0.10))
_HOST = (("power_cycle", 0.70), ("part", 0.30))
_PART = (("part", 1.0),)

KINDS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind(
            "off_bus",
            "lines",
            "part",
            (("power_cycle", 0.6), ("part", 0.4)),
            (_xid(79, "GPU has fallen off the bus."),),
        ),
        FaultKind("nvlink", "lines", "part", _RESET, (_xid(74, "NVLink: fatal error detected on link 3"),)),
        FaultKind("halted", "lines", "part", _RESET, (_xid(62, "PMU Halt"), _xid(45, "Ch 00000008"))),
        FaultKind(
            "double_bit",
            "lines",
            "part",
            (("gpu_reset", 0.75), ("part", 0.25)),
            (
                _xid(48, "An uncorrectable double bit error (DBE) has been detected on GPU"),
                _xid(63, "Row Remapper: New row marked for remapping"),
            ),
        ),
        FaultKind("contained", "lines", "part", (("gpu_reset", 0.9), ("part", 0.1)), (_xid(94, "Contained error"),)),
        FaultKind("uncontained", "lines", "part", _RESET, (_xid(95, "Uncontained error"),)),
        FaultKind("remap_failed", "lines", "part", _PART, (_xid(64, "Row Remapper: Error remapping row"),)),
        FaultKind(
            "gsp", "lines", "part", _RESET, (_xid(119, "Timeout after 6s of waiting for RPC response from GSP"),)
        ),
        FaultKind("heat", "heat", "part", _PART),
        FaultKind("corruption", "nothing", "job", _PART, found=0.7, hangs=True),
        FaultKind("host_crash", "crash", "node", _HOST, part="host"),
        FaultKind("memory", "crash", "node", (("reboot", 0.4), ("part", 0.6)), part="memory0"),
        FaultKind("dark", "dark", "node", _PART, part="host"),
        FaultKind("nic_gone", "gone", "node", (("power_cycle", 0.5), ("part", 0.5)), part="nic", hangs=True),
        FaultKind("drive_gone", "gone", "node", (("power_cycle", 0.3), ("part", 0.7)), part="drive"),
        FaultKind(
            "link_flap",
            "lines",
            "job",
            (("itself", 1.0),),
            ("mlx5_core 0000:1a:00.0 ibp26s0: Link down",),
            part="nic",
            found=0.0,
            hangs=True,
        ),
        FaultKind(
            "link_down",
            "lines",
            "node",
            _PART,
            ("mlx5_core 0000:1a:00.0 ibp26s0: Link down",),
            part="nic",
            hangs=True,
        ),
        FaultKind("stall", "nothing", "job", (("itself", 1.0),), found=0.0, hangs=True),
        FaultKind(
            "program",
            "lines",
            "job",
            (("itself", 1.0),),
            ("NVRM: Xid (PCI:{pci}): 31, pid=4711, name=python3, MMU Fault: ENGINE GRAPHICS",),
            found=0.0,
        ),
        FaultKind("exit", "nothing", "job", (("itself", 1.0),), found=0.0),
    )
}

LEAK = FaultKind("leak", "leak", "none", _PART, part="manifold0", found=0.0)
"""A leak detector is wet until somebody mends the hose."""

SLOW = FaultKind("slow", "nothing", "none", (("itself", 0.5), ("reboot", 0.2), ("part", 0.3)), found=0.5)
"""A GPU that computes, and takes longer than its peers. What cures how many is assumed."""

NVLINK5 = (
    FaultKind("xid_149", "lines", "part", _RESET, (_xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x004001c6 0x1)"),)),
    FaultKind(
        "xid_154",
        "lines",
        "part",
        _RESET,
        (
            _xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x004001c6 0x1)"),
            "NVRM: Xid (PCI:{pci}): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        ),
    ),
)
"""Lines that one tray of an NVL72 shows when one of its links fails."""

COMPONENTS: dict[str, tuple[tuple[str, float], ...]] = {
    "faulty_gpu": (("off_bus", 0.4), ("nvlink", 0.3), ("halted", 0.3)),
    "gpu_hbm3_memory": (("double_bit", 0.4), ("contained", 0.3), ("uncontained", 0.2), ("remap_failed", 0.1)),
    "gpu_sram_memory": (("uncontained", 0.6), ("double_bit", 0.4)),
    "gpu_system_processor": (("gsp", 1.0),),
    "gpu_thermal_interface_or_sensor": (("heat", 1.0),),
    "silent_data_corruption": (("corruption", 1.0),),
    "software_bug": (("program", 0.5), ("exit", 0.5)),
    "dependency": (("exit", 1.0),),
    "nccl_watchdog_timeout": (("stall", 1.0),),
    "network_switch_or_cable": (("link_flap", 0.8), ("link_down", 0.2)),
    "host_maintenance": (("host_crash", 1.0),),
    "nic": (("nic_gone", 0.7), ("link_down", 0.3)),
    "ssd": (("drive_gone", 1.0),),
    "power_supply": (("dark", 1.0),),
    "server_chassis": (("dark", 0.5), ("host_crash", 0.5)),
    "io_expansion_board": (("off_bus", 1.0),),
    "cpu": (("host_crash", 1.0),),
    "system_memory": (("memory", 1.0),),
}
"""Llama 3's components → ways to fail with their shares. Components of other tables fail as `OTHER`."""

OTHER = (("host_crash", 1.0),)


class Fault(Struct, eq=False):
    """A fault that is there until `cure` (or something graver) is done to its node.

    `slot` is the part it sits in ("gpu3"), "" for the host as a whole. `fault_schedule` is when work will meet it.
    """

    id: int
    kind: FaultKind
    component: str
    node: str
    slot: str
    cure: str
    since: datetime
    cured: datetime | None = None

    @property
    def active(self) -> bool:
        """Whether it is not cured yet."""
        return self.cured is None

    def cured_by(self, remedy: str) -> bool:
        """Whether this remedy ends it."""
        return CURES.index(remedy) >= CURES.index(self.cure)


def pci_of(slot: str) -> str:
    """The PCI address of a GPU's slot, as the kernel writes it."""
    number = int(slot.removeprefix("gpu")) if slot.startswith("gpu") else 0
    return f"0000:{0x1B + 0x11 * number:02x}:00"
