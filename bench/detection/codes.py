"""The codes of NVIDIA's drivers to plant: every Xid and SXid, NVLink 5 in both driver layouts, and the odd forms.

Facts from NVIDIA's Xid catalogue, its NVLink 5 decoding table and the fabric manager guide; which condition each asks
for is written down here once more, so that the tables under test are judged by others.
"""

from bench.detection.plants import Plant

LAST_XID = 173

_XIDS: dict[str, tuple[int, ...]] = {
    "gpu.application_error": (
        *(8, 11, 13, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 60, 66, 67, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83),
        *(84, 85, 86, 88, 89, *range(96, 106), 108, *range(126, 136), 137, 139, 141),
    ),
    "gpu.informational": (14, 45, 106, 107),
    "gpu.ecc_contained": (94,),
    "gpu.ecc_uncontained": (95,),
    "gpu.ecc_uncorrectable": (48, 140, 171, 172),
    "gpu.row_remap_pending": (63,),
    "gpu.row_remap_failure": (64,),
    "gpu.fallen_off_bus": (79,),
    "gpu.gsp_timeout": (119, 120),
    "gpu.nvlink_error": (74, 136, 155),
    "gpu.reboot_required": (151,),
    "gpu.reset_required": (46, 62, 109, 110, 143, 156, 158),
}
"""Codes whose action is known; every other code of the catalogue asks a person to look."""

_SAYS = {
    13: "Graphics Exception: ESR 0x504648=0x10e0006 0x504650=0x20 0x504644=0xd3eff2 0x50464c=0x17f",
    31: "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_3 faulted @ 0x7f2e_9a000000",
    43: "Ch 00000008",
    45: "Ch 00000008",
    48: "DBE (double bit error) ECC Error",
    63: "Row Remapper: New row (0x0000000002b2e000) marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Failed to remap row, all reserved rows for bank are remapped",
    74: "NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "GPU has fallen off the bus.",
    94: "Contained: CE User Channel (0x9). RST: No, D-RST: No",
    95: "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL).",
    140: "Unrecovered ECC error",
}
_FORMS = (
    "NVRM: Xid (PCI:{gpu}): CODE, pid=4711, name=python3, SAYS",
    "NVRM: Xid ({gpu}): CODE, pid=4711, SAYS",
    "NVRM: Xid (PCI:{gpu}.0): CODE, SAYS",
    "NVRM: Xid (PCI:{gpu}): CODE, pid='<unknown>', name=<unknown>, SAYS",
    "NVRM: Xid (PCI:{gpu}): CODE",
    "NVRM: Xid (PCI:{gpu} GPU-I:05): CODE, pid=4711, name=train.py, SAYS",
    "NVRM: Xid (PCI:{gpu}): CODE, pid=4711, name=python3, SAYS\r",
)

_FATAL = (
    *(12020, 22003, 22011, *range(23001, 23018)),
    19084,
)
"""SXids that take the node's NVLink fabric down."""
_PORT = (
    *(11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, *range(12024, 12028), *range(12030, 12033)),
    *(14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063, 19064),
    *(19066, 19067, 19069, 19070, 20034, 22012, 24004, 24005, 24006, 24007),
)
"""SXids that are fatal to a port where the line says so; without that word somebody looks."""
_PORT_ALWAYS = (10003, 11004, 12028)
_LOOK = (10001, 10002, 10004, 20001, 20009, 20012, 12033, 26006, 26007, 26008)
_NOISE = (
    *(10005, 11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065, 19068),
    *(19071, 22013, 24001, 24002, 24003, 28006),
)

_NVLINK5 = (
    (144, "SAW_MVB", 0x021, 0x01, False, "1:L 2:R 4:N 8:L 10:R 20:N"),
    (145, "RLW_CTRL", 0x062, 0x03, False, "80000000:L"),
    (145, "RLW_REMAP", 0x082, 0x04, False, "1:L 2:L 4:L 8:L 10:L 20:L 40:R 80:R 100:N 200:N 80000000:L"),
    (145, "RLW_RSPCOL", 0x0A2, 0x05, False, "1:N 2:R 80000000:L"),
    (145, "RLW_RXPIPE", 0x0C2, 0x06, False, "1:L 2:L 4:L 8:L 80000000:L"),
    (145, "RLW_SRC_TRACK", 0x0E2, 0x07, False, "1:R 2:N 4:L 8:L 10:R 20:R 80000000:L"),
    (145, "RLW_TAGSTATE", 0x102, 0x08, False, "1:N 2:R 10000:N 20000:R 100000:R 80000000:L"),
    (146, "TLW_CTRL", 0x123, 0x09, False, "1:N 2:L 4:R 80000000:L"),
    (146, "TLW_RX_PIPE0", 0x143, 0x0A, False, "1:N 2:L 4:R 80000000:L"),
    (146, "TLW_RX_PIPE1", 0x143, 0x0B, False, "1:N 2:L 4:R 80000000:L"),
    (146, "TLW_TX_PIPE0", 0x163, 0x0C, False, "1:N 2:L 4:R 80000000:L"),
    (146, "TLW_TX_PIPE1", 0x163, 0x0D, False, "1:N 2:L 4:R 80000000:L"),
    (147, "TREX", 0x184, 0x0E, False, "1:L 80000000:L"),
    (148, "NVLPW", 0x005, 0x0F, False, "80000000:L"),
    (149, "NETIR_INT", 0x006, 0x18, True, "0:R"),
    (
        149,
        "NETIR_LINK_DOWN",
        0x1C6,
        0x11,
        True,
        "0:R 1:R 2:R 4:R a:R f:R 10:R 11:R 12:R 15:R 16:R 20:R 21:R 22:R 23:R 24:R 25:R 26:L 28:L 2a:R 2b:R",
    ),
    (149, "NETIR_BER_EVENT", 0x226, 0x13, False, "0:L 1:L 2:L 3:L"),
    (149, "NETIR_MFDE_EVENT", 0x246, 0x14, False, "1:L 3:N 4:L 5:L 7:L"),
    (150, "MSE Degraded", 0x000, 0x00, False, "0:R ffffffff:R"),
    (150, "MSE_WATCHDOG", 0x000, 0x00, False, "0:R"),
)
"""Xid, unit, unit's number in the first word under the layout before and since driver R575, whether the second column
is the reason (bits 25 to 20 of the first word) or the error status, and what each asks for: R a reset of the GPU,
L that somebody looks (also where the table's severity has a star), N nothing."""
_ASKED = {"R": "gpu.nvlink_error", "L": "gpu.xid_investigate", "N": "gpu.informational"}

_RECOVERIES = (
    ("0x0", "None", "gpu.informational"),
    ("0x1", "GPU Reset Required", "gpu.reset_required"),
    ("0x2", "Node Reboot Required", "gpu.reboot_required"),
    ("0x4", "Drain and Reset", "gpu.drain_and_reset"),
    ("0x3", "Drain P2P", "gpu.xid_investigate"),
)


def xids() -> tuple[Plant, ...]:
    """Every code of the catalogue, in turn in the forms that drivers of different ages print."""
    known = {code: condition for condition, codes in _XIDS.items() for code in codes}
    found: list[Plant] = []
    for code in range(1, LAST_XID + 1):
        condition = known.get(code, "gpu.xid_investigate")
        line = _FORMS[code % len(_FORMS)].replace("CODE", str(code)).replace("SAYS", _SAYS.get(code, "reported"))
        found.append(Plant("Xid", f"Xid {code}", condition, "{serial}", (line,)))
    unlisted = "NVRM: Xid (PCI:{gpu}): 911, pid=4711, name=python3, something new"
    found.append(Plant("Xid", "Xid 911, which no catalogue lists", "gpu.xid_unknown", "{serial}", (unlisted,)))
    for number, word, condition in _RECOVERIES:
        line = f"NVRM: Xid (PCI:{{gpu}}): 154, GPU recovery action changed from 0x0 (None) to {number} ({word})"
        found.append(Plant("Xid", f"Xid 154 to {word}", condition, "{serial}", (line,)))
    return tuple(found)


def nvlink5() -> tuple[Plant, ...]:
    """Every row of the NVLink 5 table in both layouts, and words that no row has."""
    found: list[Plant] = []
    for xid, unit, old, new, by_reason, rows in _NVLINK5:
        for row in rows.split(" "):
            word, _, asked = row.partition(":")
            for layout, low in (("V1", old), ("V2", new)):
                info = int(word, 16) << 20 | low if by_reason else low
                status = 0 if by_reason else int(word, 16)
                line = (
                    f"NVRM: Xid (PCI:{{gpu}}): {xid}, {unit} Nonfatal XC0 i0 Link 05 "
                    f"(0x{info:08x} 0x{status:08x} 0x00000000 0x00000000 0x00000000 0x00000000)"
                )
                name = f"Xid {xid} {unit} {word} in layout {layout}"
                found.append(Plant("NVLink 5 (Xid 144 to 150)", name, _ASKED[asked], "{serial}", (line,)))
    for status in (1, 4, 5, 7):
        fatal = f"149, NETIR_MFDE_EVENT Fatal XC0 i0 Link 05 (0x00000014 0x{status:08x} 0x0 0x0 0x0 0x0)"
        name = f"Xid 149 NETIR_MFDE_EVENT {status}, generally fatal and said to be"
        line = f"NVRM: Xid (PCI:{{gpu}}): {fatal}"
        found.append(Plant("NVLink 5 (Xid 144 to 150)", name, "gpu.nvlink_error", "{serial}", (line,)))
    strange = "NVRM: Xid (PCI:{gpu}): 149, NETIR_NEWCOMER Fatal XC0 i0 Link 05 (0x03f001c6 0x00000000 0x0 0x0 0x0 0x0)"
    name = "Xid 149 of a unit that no row has"
    found.append(Plant("NVLink 5 (Xid 144 to 150)", name, "gpu.xid_investigate", "{serial}", (strange,)))
    return tuple(found)


def sxids() -> tuple[Plant, ...]:
    """Every code of the NVSwitches' catalogue, and one that none lists."""
    groups = (
        (_FATAL, "Fatal", "nvswitch.fabric_fatal"),
        (_PORT, "Fatal", "nvswitch.link_fatal"),
        (_PORT, "Non-fatal", "nvswitch.investigate"),
        (_PORT_ALWAYS, "Fatal", "nvswitch.link_fatal"),
        (_LOOK, "Non-fatal", "nvswitch.investigate"),
        (_NOISE, "Non-fatal", "kernel_log.informational"),
        ((31999,), "Fatal", "nvswitch.unknown"),
    )
    return tuple(
        Plant(
            "SXid",
            f"SXid {code}, {word}",
            condition,
            "pci:{pci}",
            (f"nvidia-nvswitch2: SXid (PCI:{{pci}}.0): {code}, {word}, Link 17 egress reported (First)",),
        )
        for codes, word, condition in groups
        for code in codes
    )


def bursts() -> tuple[Plant, ...]:
    """Reports of several lines, repeats that a logger folded, and programs that fail one after the other on one GPU."""
    family = "Xids that belong together"
    fallen = (
        "NVRM: GPU at PCI:{gpu}: GPU-12345678-1234-5678-9abc-def012345678",
        "NVRM: Xid (PCI:{gpu}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: GPU {gpu}.0: GPU has fallen off the bus.",
    )
    alone = ("NVRM: GPU {gpu}.0: GPU has fallen off the bus.",)
    memory = (
        "NVRM: Xid (PCI:{gpu}): 48, pid=4711, name=python3, DBE (double bit error) ECC Error",
        "NVRM: Xid (PCI:{gpu}): 63, pid=4711, name=python3, Row Remapper: New row marked for remapping",
        "NVRM: Xid (PCI:{gpu}): 45, pid=4711, name=python3, Ch 00000008",
    )
    storm = tuple(
        f"NVRM: Xid (PCI:{{gpu}}): 95, pid={4711 + n}, name=train, Uncontained: LTC TAG. RST: Yes" for n in range(12)
    )
    strangers = tuple(
        f"NVRM: Xid (PCI:{{gpu}}): 13, pid={100 + n}, name={name}, Graphics SM Warp Exception on (GPC 1, TPC 2, SM 1)"
        for n, name in enumerate(("alpha", "beta", "gamma"))
    )
    folded = (
        "message repeated 5 times: [ NVRM: Xid (PCI:{gpu}): 94, pid=9, name=a, Contained: CE User Channel. RST: No]",
    )
    return (
        Plant(family, "a GPU off the bus in three lines", "gpu.fallen_off_bus", "{serial}", fallen),
        Plant(family, "a GPU off the bus without its Xid", "gpu.fallen_off_bus", "{serial}", alone),
        Plant(
            family,
            "a double bit error with its remap",
            "gpu.row_remap_pending",
            "{serial}",
            memory,
            ("gpu.ecc_uncorrectable", "gpu.informational"),
        ),
        Plant(family, "a storm of uncontained errors", "gpu.ecc_uncontained", "{serial}", storm),
        Plant(
            family,
            "programs of three names on one GPU",
            "gpu.suspect",
            "{serial}",
            strangers,
            ("gpu.application_error",),
        ),
        Plant(family, "repeats folded by a logger", "gpu.ecc_contained", "{serial}", folded),
        Plant(
            family,
            "an Xid that cannot be read",
            "observation.unreadable",
            "kernel_log",
            ("NVRM: Xid (PCI:{gpu}): twelve, pid=1",),
        ),
    )
