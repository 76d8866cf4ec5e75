"""Accelerators beside their Xids: the NVIDIA driver's other reports, fabric manager, AWS Neuron."""

from msgspec.structs import replace

from hostler.core.diagnose.decoded import Decoded
from hostler.core.diagnose.family import DEVICE, Family, MessageRow
from hostler.core.diagnose.sxid_catalog import SXIDS

_NVRM = r"NVRM: (?:GPU ?\d{1,4}:? )?"

DRIVER = Family(
    "nvidia_driver",
    "nvlink",
    (
        MessageRow(
            "nvlink_post_rx_detect_failure",
            "ostRxDetLinkMask failed",
            _NVRM + r"(?:\w{1,80}: )?Getting peer ?(?P<peer>\d{1,4})(?:'s)? postRxDetLinkMask failed",
            "the driver could not learn which NVLinks of a peer are connected",
            "warning",
            "gpu.driver_investigate",
        ),
        MessageRow(
            "nvlink_post_rx_detect_failure",
            "Rx Detect Link mask",
            _NVRM + r"(?:\w{1,80}: )?Failed to update Rx Detect Link mask",
            "the driver could not learn which NVLinks of the GPU are connected",
            "warning",
            "gpu.driver_investigate",
        ),
        MessageRow(
            "gpu_init_failed",
            "RmInitAdapter failed",
            rf"NVRM: (?:GPU {DEVICE}: )?RmInitAdapter failed!",
            "the driver could not start the GPU",
            "gpu_reset",
            "gpu.reset_required",
            "RESET_GPU",
            "init",
        ),
        MessageRow(
            "driver_version_mismatch",
            "API mismatch",
            r"NVRM: API mismatch: ",
            "the programs' driver library and the kernel's driver differ in version",
            "warning",
            "gpu.driver_investigate",
            category="init",
        ),
    ),
)


def _of_switch(one: Decoded) -> Decoded:
    """Fabric manager names the SXid; its catalogue entry says what to do."""
    code = int(str(one.facts["switch_code"]))
    entry = SXIDS.get(code)
    facts = {name: value for name, value in one.facts.items() if name != "switch_code"}
    known = entry is not None and entry.listed
    action = entry.action if entry else "INVESTIGATE"
    return replace(one, code=code, known=known, action=action, facts=facts)


def _fm(event: str, trigger: str, pattern: str, text: str, severity: str = "warning") -> MessageRow:
    return MessageRow(event, trigger, pattern, text, severity, "nvswitch.fabric_manager")


def _fm_switch(event: str, word: str, severity: str) -> MessageRow:
    return MessageRow(
        event,
        "NVSwitch",
        rf"(?:\[\w{{1,12}}\] )?[Dd]etected NVSwitch {word} error (?P<switch_code>\d{{1,9}}) on fid (?P<fid>\d{{1,9}}) "
        rf"on NVSwitch (?:pci bus id|PCI bus ID|PCI Bus Id) {DEVICE}(?: physical id (?P<switch>\d{{1,6}}))?"
        r"(?: port (?P<port>\d{1,6}))?",
        f"fabric manager saw a {word.replace('(?:', '').split('|')[0]} error of an NVSwitch",
        severity,
        "nvswitch.fabric_manager",
        detail=_of_switch,
    )


FABRIC_MANAGER = Family(
    "fabric_manager",
    "nvswitch",
    (
        _fm(
            "fm_topology_mismatch",
            "match with any supported system topology",
            r"[Dd]etected number of NVSwitch(?:es|s)? (?:don't|doesn't|do not|does not) "
            r"match with any supported system topology",
            "fabric manager finds another number of NVSwitches than any system has, and ends",
            "fatal",
        ),
        _fm_switch("fm_nvswitch_fatal", "fatal", "fatal"),
        _fm_switch("fm_nvswitch_nonfatal", "non-?fatal", "warning"),
        _fm(
            "fm_gpu_handle_not_found",
            "failed to find the GPU handle",
            r"failed to find the GPU handle (?P<handle>[0-9a-fA-Fx]{1,24})",
            "fabric manager does not know a GPU that a program wants to multicast to",
        ),
        _fm(
            "fm_nothing_to_do",
            "NV_WARN_NOTHING_TO_DO",
            r"request to query NVSwitch device information from NVSwitch driver failed with "
            r"error:? ?WARNING Nothing to do",
            "fabric manager found no NVSwitch to manage",
        ),
    ),
    writer=r"(?:[\w.-]{1,64} )?nv-fabricmanager(?:\[\d{1,10}\])?: (?:\[[^\[\]\n]{1,48}\] {0,4}){0,3}",
)

_ACRONYMS = frozenset({"SRAM", "HBM", "NC", "DMA", "ECC", "DRAM", "PCIE", "AXI", "SDMA", "TPB"})


def _neuron_event(one: Decoded) -> Decoded:
    """SRAM_UNCORRECTABLE_ERROR is NeuronSRAMUncorrectableError; what is corrected is no failure."""
    words = [word if word in _ACRONYMS else word.capitalize() for word in str(one.facts["error"]).split("_") if word]
    uncorrectable = "Uncorrectable" in words
    condition = "accelerator.failed" if uncorrectable else "accelerator.error"
    return replace(one, event="Neuron" + "".join(words), condition=condition)


NEURON = Family(
    "neuron",
    "accelerator_other",
    (
        MessageRow(
            "",
            "NEURON_HW_ERR=",
            r"(?:[\w ./:,()-]{0,80}[ :])?NEURON_HW_ERR=(?P<error>[A-Z][A-Z0-9_]{1,60})",
            "a Neuron device reports a hardware error",
            "fatal",
            "accelerator.failed",
            detail=_neuron_event,
        ),
    ),
)
