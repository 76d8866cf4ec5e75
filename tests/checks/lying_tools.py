"""Tools of others that lie, one program for each tool and lie, read as a site's check of the suite."""

import re
from dataclasses import dataclass
from pathlib import Path

from hostler_checks import site_checks
from hostler_checks.profiles import Step
from hostler_checks.runner import Request
from hostler_checks.tool_outputs import READERS
from tests.checks.test_tool_outputs import FAULTS, GOOD

TOOLS = tuple(READERS)
NUMBERS = {
    "nccl_tests": ("avg_bus_gb_s", r"262\.01", 262.01),
    "nvbandwidth": ("host_to_device_memcpy_ce_gb_s", r"5[45]\.\d\d", 54.9),
    "ib_write_bw": ("avg_gbit_s", r"390\.2", 390.2),
    "fio": ("read_gb_s", r"3000000000", 3.0),
    "stress_ng": ("cpu_ops_s", r"268\.23", 268.23),
    "iperf3": ("received_gbit_s", r"21000000000\.0", 21.0),
}
"""Of each tool that measures: a reading, the place of its number in the good output, its value there."""

LIES = {
    "none": "the tool's good output",
    "admits": "the tool's own words for a failure, and its exit code",
    "exit_0": "the same words, and it ends with 0",
    "lying_exit": "the good output, and it ends with 1",
    "slow": "a thousandth of the reading",
    "too_fast": "a thousand times the reading",
    "nan": "a reading that is NaN",
    "negative": "a reading that is negative",
    "cut_off": "the first third of the good output",
    "garbage": "bytes that are no text",
    "flood": "5 MiB",
    "silent": "nothing, and it ends with 0",
}


@dataclass(frozen=True)
class Said:
    """Output and exit code of a tool."""

    text: str
    code: int = 0


def said(tool: str, lie: str) -> Said | None:
    """The tool's words; None where it has none of this kind: it measures nothing, or never admits a failure."""
    good = next(text for name, text, _ in GOOD if name == tool)
    faults = next(((text, code) for name, text, code, _ in FAULTS if name == tool), None)
    told = {
        "none": Said(good),
        "admits": Said(*faults) if faults else None,
        "exit_0": Said(faults[0]) if faults else None,
        "lying_exit": Said(good, 1),
        "cut_off": Said(good[: len(good) // 3]),
        "garbage": Said("\x00\x1b[31m{]" * 100),
        "flood": Said(good + "x" * (5 << 20)),
        "silent": Said(""),
    }
    return told[lie] if lie in told else _measuring(tool, lie, good)


def _measuring(tool: str, lie: str, good: str) -> Said | None:
    if tool not in NUMBERS:
        return None
    place = NUMBERS[tool][1]
    number = float(re.findall(place, good)[0])
    told = {"slow": number / 1000, "too_fast": number * 1000, "nan": float("nan"), "negative": -number}[lie]
    text = "NaN" if lie == "nan" else f"{told:.4f}"
    return Said(re.sub(place, text, good))


def step(tool: str, program: Path) -> Step:
    """A site's check of the tool: under half of the good reading is a failure, over twice as much a broken test."""
    readings = ""
    if tool in NUMBERS:
        name, _, value = NUMBERS[tool]
        readings = f"readings:\n  {name}: {{floor: {value / 2}, bound: {value * 2}}}\n"
    text = f"check: site_{tool}\ntool: {tool}\nprofiles: [gate]\n{readings}command: [/bin/sh, {program}]\n"
    found, _ = site_checks.parsed(text, f"{tool}.yaml")
    return found


def request(tool: str, lie: str, folder: Path) -> Request | None:
    """The check, and a program that lies so."""
    told = said(tool, lie)
    if told is None:
        return None
    output, program = folder / f"{tool}-{lie}.out", folder / f"{tool}-{lie}.sh"
    output.write_text(told.text)
    program.write_text(f"cat {output}\nexit {told.code}\n")
    found = step(tool, program)
    return Request(found.spec, "cpu", 0.1, found.params, limits=found.limits)
