"""Outputs of others' tools → readings and faults, pure: dcgmi diag, nccl-tests, nvbandwidth, perftest, fio and others.

A reader refuses what is cut short, contradicts itself or is no output of its tool (UnableError): then nothing was
measured. A number that is no number stays one, for the judge to name.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hostler_checks.answers import MAX_ITEMS, clean
from hostler_checks.device import UnableError

MIB, MAX_FAULTS = 1 << 20, 16
CORRUPT = 84
"""EILSEQ: what fio tells where a block's checksum is wrong."""


@dataclass(frozen=True)
class ToolReport:
    """Contents of a tool's output: readings by name, definite faults, and one sentence."""

    looked: str
    readings: dict[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


ToolReader = Callable[[str, int], ToolReport]
"""The output and the exit code → what they say. Raises UnableError."""


def dcgm_diag(text: str, code: int) -> ToolReport:
    """`dcgmi diag -r 1|2|3|4 -j`, of DCGM 3 ("DCGM GPU Diagnostic") and 4 ("DCGM Diagnostic")."""
    told = _json(text)
    body = _object(told.get("DCGM Diagnostic", told.get("DCGM GPU Diagnostic", told)))
    if error := body.get("runtime_error") or told.get("runtime_error"):
        raise UnableError(f"dcgmi diag could not run: {clean(str(error), 200)}")
    counts: dict[str, int] = {}
    faults = []
    for test, result in _diag_results(body):
        status = str(result.get("status", "")).strip().lower()
        counts[status] = counts.get(status, 0) + 1
        if status == "fail":
            where = result.get("gpu_ids", result.get("entity_id", ""))
            why = "; ".join(str(_object(w).get("warning", "")) for w in _list(result.get("warnings")))
            faults.append(clean(f"{test} failed on GPU {where}: {why}".rstrip(": ")))
    if unknown := counts.keys() - {"pass", "fail", "warn", "skip", "not run", "notrun"}:
        raise UnableError(f"dcgmi diag says {clean(min(unknown), 40)!r}, which is no result that is known")
    if not counts.get("pass") and not faults:
        raise UnableError("dcgmi diag has passed no test")
    if code and not faults:
        raise UnableError(f"dcgmi diag names no failure, and ended with {code}")
    return ToolReport(", ".join(f"{n} {status}" for status, n in sorted(counts.items())), faults=_few(faults))


def _diag_results(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for category in _list(body.get("test_categories")):
        for test in _list(_object(category).get("tests")):
            name = clean(str(_object(test).get("name", "")), 60)
            for result in _list(_object(test).get("results")):
                yield name, _object(result)


_NCCL_ROW = re.compile(r"\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)\s+(.+)")
_NCCL_AVERAGE = re.compile(r"#\s*Avg bus bandwidth\s*:\s*(\S+)")
_NCCL_WRONG = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)\s+(\w+)")


def nccl_tests(text: str, code: int) -> ToolReport:
    """The table of `all_reduce_perf` and its kin: bus bandwidths in GB/s, and elements that came out wrong."""
    average, checked = _NCCL_AVERAGE.search(text), _NCCL_WRONG.search(text)
    rows = [match for line in text.splitlines() if (match := _NCCL_ROW.fullmatch(line)) is not None]
    if average is None or checked is None or not rows:
        raise UnableError("the table of nccl-tests is not whole: it has no rows or no summary")
    peak, wrong, unchecked = -math.inf, 0, False
    for row in rows:
        words = row[6].split()
        if len(words) != 8:
            raise UnableError(f"a row of nccl-tests has {5 + len(words)} columns, not 13")
        peak = max(peak, _number(words[2]), _number(words[6]))
        unchecked |= "N/A" in (words[3], words[7])
        wrong += sum(int(_number(word)) for word in (words[3], words[7]) if word != "N/A" and _number(word) > 0)
    faults = [f"{wrong} elements came out wrong"] if wrong or checked[2] != "OK" else []
    if code and not faults:
        raise UnableError(f"nccl-tests names no wrong element, and ended with {code}")
    how = "not verified" if unchecked else "verified"
    readings = {"avg_bus_gb_s": _number(average[1]), "peak_bus_gb_s": peak}
    return ToolReport(f"{len(rows)} sizes, {how}", readings, _few(faults))


def nvbandwidth(text: str, code: int) -> ToolReport:
    """`nvbandwidth -j`: the least cell of each test's matrix in GB/s."""
    body = _object(_json(text).get("nvbandwidth"))
    if error := body.get("error"):
        raise UnableError(f"nvbandwidth could not run: {clean(str(error), 200)}")
    readings: dict[str, float] = {}
    faults = []
    for case in map(_object, _list(body.get("testcases"))):
        name, status = _name(case.get("name")), str(case.get("status", "")).lower()
        if status == "passed":
            cells = [
                _number(cell) for row in _list(case.get("bandwidth_matrix")) for cell in _list(row) if cell != "N/A"
            ]
            if cells:
                readings[f"{name}_gb_s"] = next((one for one in cells if not math.isfinite(one)), min(cells))
        elif status not in ("waived", "not found"):
            faults.append(clean(f"{name}: {status or 'no status'}"))
    if not readings and not faults:
        raise UnableError("nvbandwidth measured nothing: every test was waived")
    if code and not faults:
        raise UnableError(f"nvbandwidth names no failure, and ended with {code}")
    return ToolReport(f"{len(readings)} tests", readings, _few(faults))


_PERFTEST_HEAD = re.compile(r"#bytes\s+#iterations\s+BW peak\[(\S+?)\]\s+BW average\[(\S+?)\]")


def ib_write_bw(text: str, code: int) -> ToolReport:
    """The table of perftest's bandwidth tests (`ib_write_bw`, `ib_read_bw`, `ib_send_bw`): its last row in Gbit/s."""
    head = _PERFTEST_HEAD.search(text)
    if head is None:
        raise UnableError(f"no table of perftest: {clean(text, 160) or f'it ended with {code}'}")
    scale = {"Gb/sec": 1.0, "MB/sec": 8 * MIB / 1e9}.get(head[2])
    if scale is None or head[1] != head[2]:
        raise UnableError(f"perftest tells {head[2][:20]!r}, not Gb/sec or MB/sec")
    rows = [line.split() for line in text[head.end() :].splitlines()[1:] if re.match(r"\s*\d+\s", line)]
    if not rows or len(rows[-1]) < 4:
        raise UnableError("the table of perftest is cut short")
    if code:
        raise UnableError(f"perftest told a bandwidth, and ended with {code}")
    peak, average = (_number(word) * scale for word in rows[-1][2:4])
    return ToolReport(f"{rows[-1][0]} bytes", {"avg_gbit_s": average, "peak_gbit_s": peak})


def fio(text: str, code: int) -> ToolReport:
    """`fio --output-format=json`: GB/s of all jobs together; notes before the document are passed over."""
    jobs = [_object(job) for job in _list(_json(text[max(text.find("{"), 0) :]).get("jobs"))]
    if not jobs:
        raise UnableError("fio tells of no job")
    errors = [int(_number(job.get("error", 0))) for job in jobs]
    faults = [f"fio read other bytes than it wrote (job {n})" for n, error in enumerate(errors) if error == CORRUPT]
    if (any(errors) or code) and not faults:
        raise UnableError(f"fio ended with {code}, its jobs with {clean(str(errors), 60)}")
    readings = {}
    for way in ("read", "write"):
        bytes_a_second = sum(_number(_object(job.get(way)).get("bw_bytes", 0)) for job in jobs)
        if bytes_a_second:
            readings[f"{way}_gb_s"] = bytes_a_second / 1e9
    return ToolReport(f"{len(jobs)} jobs", readings, _few(faults))


_STRESS_COUNT = re.compile(r"stress-ng: \w+:\s+\[\d+\]\s+(passed|failed|skipped): (\d+)")
_STRESS_FAIL = re.compile(r"stress-ng: fail:\s+\[\d+\]\s+(.*)")
_STRESS_METRIC = re.compile(
    r"stress-ng: (?:metrc|info):\s+\[\d+\]\s+([a-z][\w-]*)\s+(\d+)\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+([\d.]+)"
)


def stress_ng(text: str, code: int) -> ToolReport:
    """The log of `stress-ng --verify --metrics-brief`: operations a second, and what its verification found."""
    counts = {match[1]: int(match[2]) for match in _STRESS_COUNT.finditer(text)}
    faults = [clean(match[1]) for match in _STRESS_FAIL.finditer(text)]
    if counts.get("failed") and not faults:
        faults = [f"{counts['failed']} stressors failed"]
    is_whole = "successful run completed" in text or "unsuccessful run completed" in text
    if not faults and (not is_whole or code or not counts.get("passed")):
        raise UnableError(f"stress-ng has passed nothing, or its log is cut short (it ended with {code})")
    readings = {f"{_name(m[1]).replace('-', '_')}_ops_s": _number(m[4]) for m in _STRESS_METRIC.finditer(text)}
    return ToolReport(f"{counts.get('passed', 0)} passed, {counts.get('skipped', 0)} skipped", readings, _few(faults))


_MEMTESTER_FAULT = re.compile(r"FAILURE: .{1,160}")


def memtester(text: str, code: int) -> ToolReport:
    """The log of `memtester`, whose progress is written with backspaces: each failure names its offset."""
    plain = re.sub(r"[\b]+", " ", text)
    faults = [clean(match[0]) for match in _MEMTESTER_FAULT.finditer(plain)]
    if not faults and code & 0b110:
        faults = [f"memtester ended with {code}: a test of its memory failed"]
    if not faults and (code or "Done." not in plain or ": ok" not in plain.replace("  ", " ")):
        raise UnableError(f"memtester did not come to its end (it ended with {code})")
    loops = len(re.findall(r"Loop \d+", plain))
    return ToolReport(f"{loops} loops", faults=_few(faults))


def iperf3(text: str, code: int) -> ToolReport:
    """`iperf3 -J`: Gbit/s received, and what TCP sent again."""
    told = _json(text)
    if error := told.get("error"):
        raise UnableError(f"iperf3 could not run: {clean(str(error), 200)}")
    end = _object(told.get("end"))
    received = _object(end.get("sum_received", end.get("sum")))
    if "bits_per_second" not in received or code:
        raise UnableError(f"iperf3 tells of no bandwidth (it ended with {code})")
    readings = {"received_gbit_s": _number(received["bits_per_second"]) / 1e9}
    if "retransmits" in (sent := _object(end.get("sum_sent"))):
        readings["retransmits"] = _number(sent["retransmits"])
    return ToolReport("iperf3", readings)


READERS: dict[str, ToolReader] = {
    "dcgm_diag": dcgm_diag,
    "fio": fio,
    "ib_write_bw": ib_write_bw,
    "iperf3": iperf3,
    "memtester": memtester,
    "nccl_tests": nccl_tests,
    "nvbandwidth": nvbandwidth,
    "stress_ng": stress_ng,
}


def read(tool: str, text: str, code: int) -> ToolReport:
    """Reads the output of a tool. Raises UnableError."""
    found = READERS[tool](text, code)
    if len(found.readings) > MAX_ITEMS:
        raise UnableError(f"{tool} tells {len(found.readings)} readings, at most {MAX_ITEMS} are taken")
    return found


def _json(text: str) -> dict[str, Any]:
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UnableError(f"its JSON cannot be read: {clean(str(error), 100)}") from None


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnableError("its JSON is not laid out as the tool's")
    return value


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnableError("its JSON is not laid out as the tool's")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnableError("a number of its output is none")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.inf
    if not math.isfinite(number):
        raise UnableError(f"a number of its output is {clean(str(value), 30)!r}")
    return number


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,47}", value):
        raise UnableError("a name of its output is none")
    return value


def _few(faults: list[str]) -> tuple[str, ...]:
    return tuple(faults[:MAX_FAULTS])
