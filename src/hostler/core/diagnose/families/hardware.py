"""Memory and processors that report errors: machine checks, EDAC, and what firmware hands over (GHES/APEI)."""

from msgspec.structs import replace

from hostler.core.diagnose.decoded import Decoded
from hostler.core.diagnose.family import Family, MessageRow

_WRONG, _RIGHTED, _CPU = "memory.uncorrectable", "memory.correctable", "cpu.machine_check"
_TOLD = "kernel_log.informational"
_HW = r"(?:mce: |EDAC [^\n:]{1,40}: )?(?:\{\d{1,6}\})?(?:\[Hardware Error\])?:? {0,2}"
_UNCORRECTED_BIT, _CORRUPT_BIT, _VALID_BIT = 1 << 61, 1 << 57, 1 << 63
_MEMORY_MASK, _MEMORY_CODE = 0xEF80, 0x0080
"""Compound error codes 0000 0000 1MMM CCCC are the memory controller's (Intel SDM 3B, 16.9.2)."""


def _machine_check(one: Decoded) -> Decoded | None:
    """Decode the bank's status register: valid, uncorrected, memory or not."""
    status = int(str(one.facts["mci_status"]), 16)
    if not status & _VALID_BIT:
        return None
    memory = status & _MEMORY_MASK == _MEMORY_CODE
    if not status & _UNCORRECTED_BIT:
        return one if memory else replace(one, condition=_TOLD, category="cpu")
    condition = _WRONG if memory else _CPU
    text = "host memory" if memory else "a processor"
    lost = status & _CORRUPT_BIT != 0
    return replace(
        one,
        event="mce_uncorrected",
        severity="fatal" if lost else "warning",
        action="INVESTIGATE",
        condition=condition,
        category="memory_host" if memory else "cpu",
        text=f"{text} reported an error that was not corrected",
        facts={**one.facts, "context_corrupt": lost},
    )


ROWS = (
    MessageRow(
        "mce_corrected",
        "Machine Check",
        rf"{_HW}CPU (?P<cpu>\d{{1,6}}): Machine Check(?: Exception|:)?:? (?P<mcg>[0-9a-f]{{1,16}}) "
        r"Bank (?P<bank>\d{1,4}): (?P<mci_status>[0-9a-f]{1,16})",
        "a machine check was corrected",
        "info",
        _RIGHTED,
        "NONE",
        "memory_host",
        detail=_machine_check,
    ),
    MessageRow(
        "mce_logged",
        "achine check events logged",
        rf"{_HW}Machine check events logged",
        "the processor logged machine checks",
        "info",
        _TOLD,
        category="cpu",
        ambiguous="the line says neither what failed nor whether it was corrected",
    ),
    MessageRow(
        "memory_uncorrectable",
        "Uncorrected hardware memory error",
        rf"{_HW}Uncorrected hardware memory error in user-access at (?P<address>[0-9a-f]{{1,16}})",
        "a program touched memory that is wrong",
        "fatal",
        _WRONG,
        category="memory_host",
    ),
    MessageRow(
        "memory_uncorrectable",
        "emory failure",
        r"(?:MCE|Memory failure):? (?P<address>0x[0-9a-f]{1,16}): (?:(?!already)[^\n]){0,200}",
        "a page of memory was found wrong and was taken out of use",
        "warning",
        _WRONG,
        category="memory_host",
        detail=lambda one: None if "unpoison" in one.line else one,
    ),
    MessageRow(
        "memory_uncorrectable",
        " UE ",
        r"EDAC (?:\w{1,24} )?MC(?P<controller>\d{1,4}): (?:\d{1,9} )?UE (?:page|memory|row|[\w ]{0,60} on |on )"
        r"(?:[^\n]{0,60}? on )?(?P<device>[\w#.-]{1,120})?",
        "a memory module returned an error that its code could not correct",
        "fatal",
        _WRONG,
        category="memory_host",
    ),
    MessageRow(
        "memory_correctable",
        "CE ",
        r"EDAC (?:\w{1,24} )?MC(?P<controller>\d{1,4}): (?:\d{1,9} )?CE (?:page|memory|row|[\w ]{0,60} on |on )"
        r"(?:[^\n]{0,60}? on )?(?P<device>[\w#.-]{1,120})?",
        "a memory module corrected an error",
        "info",
        _RIGHTED,
        "NONE",
        "memory_host",
    ),
    MessageRow(
        "memory_correctable",
        "CE memory read error",
        r"(?:[^\n]{1,60}: )?CE memory (?:read|scrubbing) error",
        "a memory module corrected an error",
        "info",
        _RIGHTED,
        "NONE",
        "memory_host",
    ),
    MessageRow(
        "hardware_error_fatal",
        "everity: ",
        r"(?:\{\d{1,6}\})?(?:\[Hardware Error\]: ?)?:? ?event severity: (?P<level>fatal)",
        "firmware reports a hardware error that it did not correct",
        "fatal",
        _CPU,
        category="cpu",
    ),
    MessageRow(
        "hardware_error_uncorrected",
        "everity: recoverable",
        r"(?:\{\d{1,6}\})?(?:\[Hardware Error\]: ?)?:? ?event severity: recoverable",
        "firmware reports a hardware error that was not corrected and need not be fatal",
        "warning",
        "host.kernel_warning",
        category="cpu",
        ambiguous="the lines that follow say which part failed",
    ),
    MessageRow(
        "hardware_error_fatal",
        "ystem Fatal error",
        rf"{_HW}System Fatal error",
        "the processor reports an error that it cannot survive",
        "fatal",
        _CPU,
        category="cpu",
    ),
    MessageRow(
        "hardware_error_uncorrected",
        "Uncorrected",
        rf"{_HW}Uncorrected, software (?:containable|restartable) error",
        "the processor reports an error that was not corrected",
        "warning",
        "host.kernel_warning",
        category="cpu",
        ambiguous="the lines that follow say which part failed",
    ),
    MessageRow(
        "mce_corrected",
        "Corrected error, no action required",
        rf"{_HW}Corrected error, no action required",
        "a machine check was corrected",
        "info",
        _TOLD,
        "NONE",
        "cpu",
        ambiguous="the lines that follow say which part had it",
    ),
)

HARDWARE = Family("kernel", "cpu", ROWS)
