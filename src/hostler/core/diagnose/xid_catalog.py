"""The Xid codes of NVIDIA's driver: what each asks for, and the condition it is here.

Codes, mnemonics, actions and severities are the facts of NVIDIA's Xid catalogue
(docs.nvidia.com/deploy/xid-errors); meanings and conditions are ours. Mnemonics lack `ROBUST_CHANNEL_`.
"""

from msgspec import Struct


class XidEntry(Struct, frozen=True):
    """One code. `action` and `investigate` are the catalogue's words, INVESTIGATE where no action is."""

    code: int
    mnemonic: str
    action: str
    investigate: str
    severity: str
    category: str
    condition: str
    meaning: str


_APP = "gpu.application_error"
_INFO = "gpu.informational"
_LOOK = "gpu.xid_investigate"
_ECC = "gpu.ecc_uncorrectable"
_RESET = "gpu.reset_required"
_GSP = "gpu.gsp_timeout"
_NVLINK = "gpu.nvlink_error"
_ASK = "CONTACT_SUPPORT"
_CUDA = "CHECK_APP/CUDA"

_FAMILIES: tuple[tuple[str, str, str, str, dict[int, tuple[str, str, str]]], ...] = (
    (
        "RESTART_APP",
        "app",
        "app_or_channel",
        _APP,
        {
            8: ("FIFO_ERROR_IDLE_TIMEOUT", _ASK, "a channel made no progress"),
            11: ("GR_ERROR_MISSING_HW", _CUDA, "a command stream was corrupt"),
            13: ("GR_EXCEPTION", "WORKFLOW_XID_13", "a kernel of the program did something illegal"),
            25: ("GR_ILLEGAL_NOTIFY", _CUDA, "a command stream was illegal"),
            31: (
                "FIFO_ERROR_MMU_ERR_FLT",
                "WORKFLOW_XID_31",
                "the program touched an address that is not mapped",
            ),
            32: (
                "PBDMA_ERROR",
                _CUDA,
                "the channel's DMA engine read a bad command buffer; repeated, suspect PCIe",
            ),
            69: ("GR_CLASS_ERROR", _CUDA, "the program sent a bad class method or data"),
            80: ("PBDMA_PUSHBUFFER_CRC_MISMATCH", _CUDA, "a command buffer reached the GPU corrupted"),
        },
    ),
    (
        "IGNORE",
        "info",
        "app_or_channel",
        _INFO,
        {
            14: ("FAKE_ERROR", _ASK, "user space injected a test error"),
        },
    ),
    (
        "IGNORE",
        "info",
        "app_or_channel",
        _APP,
        {
            37: (
                "FECS_ERR_UNIMP_FIRMWARE_METHOD",
                _CUDA,
                "the program asked context firmware for a method it lacks",
            ),
            38: ("FECS_ERR_WATCHDOG_TIMEOUT", _ASK, "the watchdog of the context firmware fired"),
            43: (
                "RESETCHANNEL_VERIF_ERROR",
                _ASK,
                "a software fault ended one channel; the program must exit",
            ),
            44: ("GR_FAULT_DURING_CTXSW", _ASK, "a fault while switching between contexts"),
            66: (
                "FECS_ERR_REG_ACCESS_VIOLATION",
                "INVESTIGATE_SW",
                "the driver touched a register it may not",
            ),
            67: ("FECS_ERR_VERIF_VIOLATION", _ASK, "context firmware refused what the driver sent"),
            108: (
                "NVLINK_REMOTE_TRANSLATION_ERROR",
                "XID_137_FLOW",
                "a peer's address could not be translated",
            ),
            137: (
                "NVLINK_PRIV_ERR",
                "XID_137_FLOW",
                "a program reached for a peer's memory that it may not touch",
            ),
            141: ("FAST_PATH_ERROR", _ASK, "an error in CUDA's fast path"),
        },
    ),
    (
        "WORKFLOW_XID_45",
        "info",
        "app_or_channel",
        _INFO,
        {
            45: (
                "PREEMPTIVE_REMOVAL",
                "RESTART_FM when alone, IGNORE beside another Xid",
                "a channel was torn down, as follows from an earlier error, a kill or a reset",
            ),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "timeout",
        _RESET,
        {
            46: ("GPU_TIMEOUT_ERROR", _ASK, "the GPU stopped processing"),
            109: ("CTXSW_TIMEOUT_ERROR", _ASK, "switching between contexts took too long"),
            158: ("GPU_FATAL_TIMEOUT", _ASK, "a fatal timeout of the GPU"),
        },
    ),
    (
        "WORKFLOW_XID_48",
        "gpu_reset",
        "memory",
        _ECC,
        {
            48: ("GPU_ECC_DBE", "WORKFLOW_XID_48", "two bits of one memory word were wrong"),
        },
    ),
    (
        "CHECK_MECHANICALS",
        "manual",
        "power",
        _LOOK,
        {
            54: (
                "SILENT_RUNNING_PWR_REDUCED_CLOCKING",
                _ASK,
                "the board's auxiliary power cable is not connected",
            ),
        },
    ),
    (
        "RESTART_APP",
        "app",
        "media_engine",
        _APP,
        {
            60: ("SEC2_ERROR", "INVESTIGATE_SW", "exception of the SEC2 processor"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "microcontroller",
        _RESET,
        {
            62: ("PMU_HALT_ERROR", _ASK, "the GPU's power controller halted"),
        },
    ),
    (
        "IGNORE",
        "info",
        "memory",
        "gpu.row_remap_pending",
        {
            63: ("INFOROM_DRAM_RETIREMENT_EVENT", "IGNORE", "a bad memory row was recorded for replacement"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "memory",
        "gpu.row_remap_failure",
        {
            64: (
                "INFOROM_DRAM_RETIREMENT_FAILURE",
                _ASK,
                "a bad memory row could not be recorded for replacement",
            ),
        },
    ),
    (
        "WORKFLOW_NVLINK_ERR",
        "decode",
        "nvlink",
        _NVLINK,
        {
            74: ("NVLINK_ERROR", _ASK, "an NVLink (generation 1 to 4) reported an error"),
        },
    ),
    (
        "UPDATE_SWFW",
        "manual",
        "vgpu",
        _LOOK,
        {
            78: (
                "VGPU_START_ERROR",
                "UPDATE_SWFW",
                "a virtual GPU did not start: driver mismatch or unsupported type",
            ),
        },
    ),
    (
        "RESTART_BM",
        "node_reboot",
        "bus",
        "gpu.fallen_off_bus",
        {
            79: ("GPU_HAS_FALLEN_OFF_THE_BUS", _ASK, "the GPU does not answer on PCIe"),
        },
    ),
    (
        "IGNORE",
        "info",
        "memory",
        _LOOK,
        {
            92: ("EXCESSIVE_SBE_INTERRUPTS", _ASK, "correctable memory errors come too often"),
            93: ("INFOROM_ERASE_LIMIT_EXCEEDED", _ASK, "the InfoROM has been rewritten to its limit"),
            157: ("RESOURCE_RETIREMENT_FAILURE", _ASK, "a resource could not be retired: no spare is left"),
            160: ("CHANNEL_RETIREMENT_EVENT", "INVESTIGATE_SW", "a channel of the GPU's memory was retired"),
            161: (
                "CHANNEL_RETIREMENT_FAILURE",
                "INVESTIGATE_SW",
                "a channel of the GPU's memory could not be retired",
            ),
        },
    ),
    (
        "RESTART_APP",
        "app",
        "memory",
        "gpu.ecc_contained",
        {
            94: (
                "CONTAINED_ERROR",
                "IGNORE (sympathetic)",
                "an uncorrectable memory error hit one program only",
            ),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "memory",
        "gpu.ecc_uncontained",
        {
            95: (
                "UNCONTAINED_ERROR",
                "IGNORE (sympathetic)",
                "an uncorrectable memory error hit several programs",
            ),
        },
    ),
    (
        "IGNORE",
        "info",
        "test",
        _INFO,
        {
            106: ("SMBPBI_TEST_MESSAGE", "IGNORE", "a test message from out of band"),
            107: ("SMBPBI_TEST_MESSAGE_SILENT", "IGNORE", "a silent test from out of band"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "security",
        _RESET,
        {
            110: ("SEC_FAULT_ERROR", "INVESTIGATE_SW", "a security fault, rare and likely hardware"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "gsp",
        _GSP,
        {
            119: ("GSP_RPC_TIMEOUT", "INVESTIGATE_SW", "the GSP did not answer a call in time"),
            120: ("GSP_ERROR", "INVESTIGATE_SW", "the firmware of the GSP failed"),
        },
    ),
    (
        "IGNORE",
        "info",
        "c2c",
        _LOOK,
        {
            121: ("C2C_ERROR", _ASK, "the link between CPU and GPU corrected errors and may retrain"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "nvlink",
        _NVLINK,
        {
            136: ("ALI_TRAINING_FAIL", "INVESTIGATE_LINK_SI", "an NVLink did not train"),
            155: ("NVLINK_SW_DEFINED_ERROR", "INVESTIGATE_SW_USER", "software took an NVLink down"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "memory",
        _ECC,
        {
            140: ("UNRECOVERABLE_ECC_ERROR_ESCAPE", _ASK, "a memory error escaped the books of bad rows"),
        },
    ),
    (
        _ASK,
        "manual",
        "media_engine",
        _LOOK,
        {
            142: ("NVENC3_ERROR", "", "exception of video encoder 3"),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "init",
        _RESET,
        {
            143: ("GPU_INIT_ERROR", _ASK, "the GPU did not initialise"),
        },
    ),
    (
        "RESTART_VM",
        "node_reboot",
        "security",
        "gpu.reboot_required",
        {
            151: ("KEY_ROTATION_ERROR", _ASK, "confidential computing could not rotate its keys"),
        },
    ),
    (
        "IGNORE",
        "info",
        "dla",
        _LOOK,
        {
            152: ("DLA_SMMU_ERROR", _ASK, "address translation failed for the DLA"),
            153: ("DLA_TIMEOUT", _ASK, "the DLA did not answer in time"),
        },
    ),
    (
        "XID_154_EVAL",
        "from_text",
        "recovery_action",
        _LOOK,
        {
            154: (
                "GPU_RECOVERY_ACTION_CHANGED",
                "informs about another Xid",
                "the driver changed the recovery it recommends",
            ),
        },
    ),
    (
        "RESET_GPU",
        "gpu_reset",
        "memory",
        _RESET,
        {
            156: ("RESOURCE_RETIREMENT_EVENT", "IGNORE", "a resource of the GPU was retired"),
        },
    ),
    (
        "CHECK_UVM",
        "gpu_reset_if_uvm",
        "c2c",
        _LOOK,
        {
            159: (
                "CHI_NON_DATA_ERROR",
                "SYMPATHETIC_REPORT_SOLO",
                "a bus error between CPU and GPU that carried no data",
            ),
        },
    ),
)
"""Codes of one action, severity, category and condition: code → mnemonic, what to investigate, meaning."""

_MEDIA = {
    68: ("NVDEC0_ERROR", "video decoder 0"),
    83: ("NVDEC1_ERROR", "video decoder 1"),
    84: ("NVDEC2_ERROR", "video decoder 2"),
    88: ("NVDEC3_ERROR", "video decoder 3"),
    89: ("NVDEC4_ERROR", "video decoder 4"),
    96: ("NVDEC5_ERROR", "video decoder 5"),
    97: ("NVDEC6_ERROR", "video decoder 6"),
    98: ("NVDEC7_ERROR", "video decoder 7"),
    82: ("NVJPG0_ERROR", "JPEG engine 0"),
    **{98 + n: (f"NVJPG{n}_ERROR", f"JPEG engine {n}") for n in range(1, 8)},
    86: ("OFA0_ERROR", "optical-flow engine 0"),
    139: ("OFA1_ERROR", "optical-flow engine 1"),
}
"""Engines whose failure ends the program that used them, and nothing else."""

_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
"""The codes of copy engines 0, 1, 2 …"""

_NVLINK5 = {144: "SAW", 145: "RLW", 146: "TLW", 147: "TREX", 148: "NVLPW_CTRL", 149: "NETIR", 150: "MSE"}
"""The units of NVLink 5; `nvlink5` reads what their lines say."""

_WITHOUT_ACTION = {
    162: ("PSHC_REENGAGED", "power", _LOOK, "the power-smoothing circuit works again"),
    163: ("PSHC_DISENGAGED", "power", _LOOK, "the power-smoothing circuit switched itself off"),
    164: ("PSHC_LOW_LIFETIME", "power", _LOOK, "the power-smoothing circuit is nearly worn out"),
    165: ("PSHC_ZERO_LIFETIME", "power", _LOOK, "the power-smoothing circuit is worn out"),
    166: ("NVLINK_SECURE_CRYPTO_ERR", "nvlink", _LOOK, "encryption of an NVLink failed"),
    167: ("PCIE_FATAL_TIMEOUT", "bus", _LOOK, "a fatal timeout on PCIe"),
    168: ("REDUCED_GPU_MEMORY_CAPACITY", "memory", _LOOK, "protected memory has errors while ECC is off"),
    169: ("SEC2_HALT_ERROR", "microcontroller", _LOOK, "the SEC2 controller halted"),
    170: ("NVLINK_SECURE_OTHER", "nvlink", _LOOK, "another security event of an NVLink"),
    171: ("UNCORRECTABLE_DRAM_ERROR", "memory", _ECC, "detail of Xid 48: the error was in DRAM"),
    172: ("UNCORRECTABLE_SRAM_ERROR", "memory", _ECC, "detail of Xid 48: the error was in SRAM"),
    173: ("C2C_FATAL_LINK_FAILURE", "c2c", _LOOK, "the link between CPU and GPU failed"),
}
"""Codes the catalogue names without saying what to do."""

_UNUSED = (
    *(*range(1, 8), 9, 10, 12, *range(15, 25), *range(26, 31), *range(33, 37), 42, 47, *range(49, 54)),
    *(*range(55, 60), 61, 65, 73, 81, 87, 90, 91, *range(111, 119), *range(122, 126), 138),
)
"""Codes that drivers for Ampere and newer do not send. If one comes, the vendor is asked."""

XIDS: dict[int, XidEntry] = {
    entry.code: entry
    for entry in (
        *(
            XidEntry(code, name, action, investigate, severity, category, condition, meaning)
            for action, severity, category, condition, codes in _FAMILIES
            for code, (name, investigate, meaning) in codes.items()
        ),
        *(
            XidEntry(code, name, "RESTART_APP", _ASK, "app", "media_engine", _APP, f"exception of {engine}")
            for code, (name, engine) in _MEDIA.items()
        ),
        *(
            XidEntry(
                code,
                f"CE{n}_ERROR",
                "RESTART_APP",
                _ASK,
                "app",
                "copy_engine",
                _APP,
                f"exception of copy engine {n}",
            )
            for n, code in enumerate(_COPY_ENGINES)
        ),
        *(
            XidEntry(
                code,
                f"NVLINK_{unit}_ERROR",
                "WORKFLOW_NVLINK5_ERR",
                "WORKFLOW_NVLINK5_ERR",
                "decode",
                "nvlink",
                _LOOK,
                f"unit {unit} of an NVLink reported an event",
            )
            for code, unit in _NVLINK5.items()
        ),
        *(
            XidEntry(code, name, "INVESTIGATE", "", "unspecified", category, condition, meaning)
            for code, (name, category, condition, meaning) in _WITHOUT_ACTION.items()
        ),
        *(
            XidEntry(
                code,
                "UNUSED",
                _ASK,
                "",
                "unused",
                "unused",
                _LOOK,
                "a code that current GPUs should not send",
            )
            for code in _UNUSED
        ),
    )
}
