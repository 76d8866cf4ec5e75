"""Reads what DCGM says of the GPUs from its exporter on this machine, in a process that may hang or be lied to.

`python -m hostler.agent.collectors.dcgm_reader URL DESK`: answers each line on stdin with a report in JSON, as
`nvml_state_reader` does of NVML. URL is the exporter's page, on loopback only. The page is Prometheus' text format, the
names are DCGM's field identifiers; what a version or its list of counters leaves out is simply not there.
"""

import http.client
import ipaddress
import json
import math
import os
import re
import sys
import time
from typing import Any
from urllib.parse import urlsplit

DEADLINE_S = 5.0
MAX_PAGE_BYTES = 8 * 1024 * 1024
MAX_LINE_CHARS = 4_096
MAX_GPUS = 64
READ_BYTES = 65_536
_BLANKS = (2_147_483_632, 140_737_488_355_328)
"""From here on DCGM's numbers mean that there is none: of 32 bits (16 of them), and of 64 bits or floating point."""

_SAMPLE = re.compile(r"(DCGM_FI_[A-Z0-9_]{1,80})\{([^{}]{0,2048})\} ([-+.0-9eEaNIinf]{1,32})(?: -?\d{1,20})?", re.ASCII)
_LABEL = re.compile(r'([A-Za-z_]\w{0,63})="((?:[^"\\]|\\.){0,256})"', re.ASCII)
_ADDRESS = re.compile(r"(?:[0-9a-f]{4})?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-9a-f]", re.ASCII)

NUMBERS = {
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
    "DCGM_FI_DEV_MEMORY_TEMP": "memory_temperature_c",
    "DCGM_FI_DEV_SLOWDOWN_TEMP": "slowdown_limit_c",
    "DCGM_FI_DEV_SHUTDOWN_TEMP": "shutdown_limit_c",
    "DCGM_FI_DEV_MEM_MAX_OP_TEMP": "memory_max_limit_c",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock_mhz",
    "DCGM_FI_DEV_GPU_UTIL": "utilization_percent",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "clock_event_reasons",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "clock_event_reasons",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_uncorrectable",
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": "pcie_width",
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": "pcie_width_max",
    "DCGM_FI_DEV_PCIE_LINK_GEN": "pcie_generation",
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": "pcie_generation_max",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "pcie_replays",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "nvlink_replays",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "nvlink_recoveries",
}
SUMS = {
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "nvlink_crc_errors",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "nvlink_crc_errors",
    "DCGM_FI_DEV_RETIRED_SBE": "retired_pages",
    "DCGM_FI_DEV_RETIRED_DBE": "retired_pages",
}
TRUTHS = {
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "remap_failure",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "remap_pending",
    "DCGM_FI_DEV_RETIRED_PENDING": "retired_pages_pending",
}
"""Field → the fact that NVML's reader gives of the same. The last Xid is left out: the kernel's log tells it once."""


def report(page: str) -> dict[str, Any]:
    """A page as a report: `state`, and of each GPU its index and facts. Hostile text gives less, never an error."""
    found: dict[int, dict[str, Any]] = {}
    for line in page.splitlines():
        sample = _SAMPLE.fullmatch(line) if line.startswith("DCGM_FI_") and len(line) <= MAX_LINE_CHARS else None
        if sample is None:
            continue
        labels = dict(_LABEL.findall(sample[2]))
        index, value = labels.get("gpu", ""), _number(sample[3])
        if value is None or not index.isdecimal() or int(index[:4]) >= MAX_GPUS or "GPU_I_ID" in labels:
            continue  # an instance of a GPU is not the GPU
        facts = found.setdefault(int(index), {})
        if address := _ADDRESS.fullmatch(labels.get("pci_bus_id", "").lower()):
            facts["pci"] = address[1]
        _take(facts, sample[1], value)
    gpus = [{"index": index, "facts": facts, "absent": {}, "lost": ""} for index, facts in sorted(found.items())]
    if not gpus:
        return {"state": "absent", "reason": "the exporter shows no GPU"}
    return {"state": "answers", "gpus": gpus}


def _take(facts: dict[str, Any], field: str, value: float) -> None:
    number = int(value) if value.is_integer() else value
    if name := NUMBERS.get(field):
        facts[name] = number
    elif name := SUMS.get(field):
        facts[name] = facts.get(name, 0) + number
    elif name := TRUTHS.get(field):
        facts[name] = number != 0


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    blank = value >= _BLANKS[1] or _BLANKS[0] <= value < _BLANKS[0] + 16
    return None if not math.isfinite(value) or value < 0 or blank else value


def fetch(url: str, deadline_s: float = DEADLINE_S) -> str:
    """The exporter's page. Raises OSError, ValueError or HTTPException; slow drops end at the deadline too."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or not ipaddress.ip_address(host).is_loopback:
        raise ValueError(f"{url!r} is not an http URL on a loopback address")
    until_s = time.monotonic() + deadline_s
    line = http.client.HTTPConnection(host, parts.port or 9400, timeout=deadline_s)
    try:
        line.request("GET", parts.path or "/metrics")
        answer = line.getresponse()
        if answer.status != http.client.OK:
            raise ValueError(f"the exporter answers {answer.status}")
        page = bytearray()
        while chunk := answer.read1(READ_BYTES):
            page += chunk
            if len(page) > MAX_PAGE_BYTES:
                raise ValueError(f"the exporter's page is longer than {MAX_PAGE_BYTES >> 20} MiB")
            if time.monotonic() > until_s:
                raise TimeoutError("the exporter's page does not end")
    finally:
        line.close()
    return page.decode("utf-8", "replace")


def serve(url: str, progress_fd: int) -> None:
    """Answer questions until stdin ends."""
    os.pwrite(progress_fd, b"DCGM's exporter\0", 0)
    for _ in sys.stdin:
        try:
            told = report(fetch(url))
        except (OSError, ValueError, http.client.HTTPException) as error:
            told = {"state": "absent", "reason": f"{type(error).__name__}: {error}"[:200]}
        sys.stdout.write(json.dumps(told, ensure_ascii=True) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
