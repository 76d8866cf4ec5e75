"""PCI Express: what the port services print of errors (AER, DPC) and of links that run below what they can."""

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.decoded import Decoded
from hostler.core.diagnose.family import DEVICE, Family, MessageRow
from hostler.core.diagnose.line import PCI, normal_pci

_DRIVER = rf"(?:[\w-]{{1,32}} {DEVICE}: )?"
_AER = rf"{_DRIVER}(?:AER: )?"


def _source(one: Decoded) -> Decoded:
    """The device that the port names as the source is the one that failed; the port only reports."""
    source = one.facts.get("source")
    if not isinstance(source, str) or not source:
        return one
    facts = {**one.facts, "reporter": one.facts.get("bdf", one.pci), "bdf": source}
    return replace(one, pci=normal_pci(source), facts=facts)


class _Grade(Struct, frozen=True):
    """How grave an error is: the event and condition it is here, and the words of old and new kernels for it."""

    event: str
    words: str
    severity: str
    condition: str
    text: str
    action: str = "INVESTIGATE"


_GRADES = (
    _Grade(
        "aer_uncorrectable_fatal",
        r"Uncorrect(?:ed|able) \(Fatal\)",
        "fatal",
        "pcie.uncorrectable",
        "a PCI Express link or device failed fatally",
    ),
    _Grade(
        "aer_uncorrectable_nonfatal",
        r"Uncorrect(?:ed|able) \(Non-[Ff]atal\)",
        "warning",
        "pcie.error",
        "a PCI Express transaction failed",
    ),
    _Grade(
        "aer_correctable",
        r"Correct(?:ed|able)",
        "info",
        "pcie.correctable",
        "a PCI Express link corrected an error",
        "NONE",
    ),
)


def _aer(grade: _Grade) -> tuple[MessageRow, MessageRow]:
    """Rows for the port's report of an error and for the report of the device that had it.

    A dying machine may write no more than the line's first words; those alone tell what happened.
    """
    received = (
        rf"{_AER}(?:Multiple )?{grade.words} error (?:message )?received\b"
        rf"(?:(?::| from) {{1,2}}(?:id=[0-9a-f]{{1,4}}|(?P<source>{PCI})))?"
    )
    layer = rf"{_AER}PCIe Bus Error: severity={grade.words}(?:, (?:type|id)=(?P<layer>[\w ]{{1,40}}))?"
    rest = (grade.text, grade.severity, grade.condition, grade.action)
    return (
        MessageRow(grade.event, " received", received, *rest, detail=_source),
        MessageRow(grade.event, "PCIe Bus Error: severity=", layer, *rest),
    )


_KINDS = {
    "gpu": ("nvidia", "nouveau", "amdgpu", "i915", "xe", "habanalabs", "neuron"),
    "nic": (
        *("mlx4_core", "mlx5_core", "bnxt_en", "bnx2x", "ice", "i40e", "ixgbe", "igb", "igc", "e1000e", "ena", "efa"),
        *(
            "ionic",
            "cxgb4",
            "qed",
            "qede",
            "sfc",
            "enic",
            "hfi1",
            "hns3",
            "irdma",
            "be2net",
            "nfp",
            "gve",
            "idpf",
            "tg3",
        ),
    ),
    "switch": ("nvidia-nvswitch", "pcieport", "switchtec"),
    "drive": ("nvme", "mpt3sas", "mpi3mr", "megaraid_sas", "smartpqi", "aacraid"),
}
_DRIVEN = {driver: kind for kind, drivers in _KINDS.items() for driver in drivers}
"""Linux driver → the kind of device that it drives, of those whose bandwidth work depends on."""

_NO_DRIVER = ("", "pci")
"""Before a driver has taken a device, the bus itself speaks of it."""

NARROWEST_LANES, SLOWEST_GTPS = 4, 8.0
"""GPUs, network adapters, switches and NVMe drives of servers can do at least four lanes of PCI Express 3."""


def _of_interest(one: Decoded) -> Decoded | None:
    """The finding where the device is a GPU, NIC, switch or drive, else None.

    The driver tells; where none has the device yet, what the device can do: a USB controller, a sound chip or a BMC's
    graphics has fewer or slower lanes than NARROWEST_LANES and SLOWEST_GTPS.
    """
    driver = str(one.facts.get("driver", ""))
    if driver not in _NO_DRIVER:
        return one if driver in _DRIVEN else None
    lanes, speed = one.facts.get("width_capable"), str(one.facts.get("speed_capable", ""))
    wide = isinstance(lanes, int) and lanes >= NARROWEST_LANES
    return one if wide and float(speed.removesuffix(" GT/s")) >= SLOWEST_GTPS else None


ROWS = (
    *(row for grade in _GRADES for row in _aer(grade)),
    MessageRow(
        "aer_recovery_failed",
        "recover",
        rf"{_AER}(?:device recovery failed|can't recover \()",
        "a PCI Express device did not come back after an error",
        "fatal",
        "pcie.uncorrectable",
    ),
    MessageRow(
        "dpc_containment",
        "DPC: containment event",
        rf"{_DRIVER}DPC: containment event, status:(?P<dpc_status>0x[0-9a-f]{{1,8}})",
        "a PCI Express port cut off what is behind it after a fatal error",
        "fatal",
        "pcie.uncorrectable",
    ),
    MessageRow(
        "pcie_bandwidth_limited",
        "available PCIe bandwidth, limited by",
        rf"(?:(?P<driver>[\w-]{{1,32}}) {DEVICE}: )?"
        r"(?P<gbps>\d{1,6}\.\d{1,4}) Gb/s available PCIe bandwidth, limited by "
        rf"(?P<speed>\d{{1,4}}(?:\.\d)? GT/s) (?:PCIe )?x(?P<width>\d{{1,3}}) link at (?P<limited_at>{PCI}) "
        r"\(capable of (?P<gbps_capable>\d{1,6}\.\d{1,4}) Gb/s with (?P<speed_capable>\d{1,4}(?:\.\d)? GT/s) "
        r"(?:PCIe )?x(?P<width_capable>\d{1,3}) link\)",
        "a PCI Express link runs below what the device can do",
        "warning",
        "pcie.degraded_link",
        "REBOOT_THEN_SUPPORT",
        kind="pcie_link",
        ambiguous="a slot that is narrower or slower by design says the same",
        detail=_of_interest,
    ),
    MessageRow(
        "pcie_link_down",
        "Link Down",
        rf"{_DRIVER}(?:pciehp: )?Slot\((?P<slot>[\w-]{{1,24}})\): Link Down",
        "the link of a PCI Express slot went down",
        "warning",
        "pcie.error",
        kind="pcie_link",
    ),
    MessageRow(
        "pcie_link_training_failed",
        "rain",
        rf"{_DRIVER}(?:pciehp: )?Slot\((?P<slot>[\w-]{{1,24}})\): (?:Link Training Error occurs|Cannot train link)",
        "the link of a PCI Express slot could not be trained",
        "warning",
        "pcie.error",
        kind="pcie_link",
    ),
    MessageRow(
        "pcie_link_retrained",
        "retraining",
        rf"[\w-]{{1,32}} {DEVICE}: (?:broken device, retraining non-functional downstream link at "
        r"(?P<speed>\d{1,4}(?:\.\d)? ?GT/s)|retraining failed)",
        "a PCI Express link did not come up and is trained again at a lower speed",
        "warning",
        "pcie.degraded_link",
        kind="pcie_link",
        ambiguous="some boards say the same of an empty slot",
    ),
)

PCIE = Family("pcie_aer", "bus", ROWS)
