"""Tools of others: outputs laid out as their documents have them, and hostile ones, which are never passed."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler_checks import site_checks
from hostler_checks.checks import site
from hostler_checks.device import Device, UnableError
from hostler_checks.tool_outputs import READERS, read
from hostler_checks.work import Work
from hostler_checks.yaml_reader import ProfileError


def diag(*statuses: str, key: str = "DCGM Diagnostic", **more: Any) -> str:
    results = [{"entity_group": "GPU", "entity_id": n, "gpu_ids": str(n), "status": s} for n, s in enumerate(statuses)]
    results = [
        {**one, "warnings": [{"warning": "xid 79", "error_id": 1}]} if one["status"] == "Fail" else one
        for one in results
    ]
    tests = [{"name": "memory", "results": results}]
    return json.dumps({key: {"test_categories": [{"category": "Hardware", "tests": tests}], **more}})


NCCL = """# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    67108864      16777216     float     sum      -1    510.2  131.53  230.18      {wrong}    508.9  131.87  230.77  0
   134217728      33554432     float     sum      -1    801.3  167.50  293.12      0    799.0  167.98  293.97      0
# Out of bounds values : {wrong} {word}
# Avg bus bandwidth    : 262.01
"""
PERFTEST = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]
 65536      5000             {peak}             {average}            0.747
---------------------------------------------------------------------------------------
"""
STRESS = """stress-ng: info:  [71] dispatching hogs: 2 cpu, 1 vm
{fail}stress-ng: info:  [71] skipped: 0
stress-ng: info:  [71] passed: {passed}: cpu (2) vm (1)
stress-ng: info:  [71] failed: {failed}
stress-ng: metrc: [71] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [71]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [71] cpu              16094     60.00    119.50      0.10       268.23         134.56
stress-ng: info:  [71] successful run completed in 60.02s
"""
MEMTESTER = """memtester version 4.6.0 (64-bit)
want 16MB (16777216 bytes)
got  16MB (16777216 bytes), trying mlock ...locked.
Loop 1/1:
  Stuck Address       : \b\b\b\b\b\b\b\b\b\b\btesting   0\b\b\b\b\b\b\b\b\b\b\bok
  Random Value        : {what}

Done.
"""


def bandwidth(*cases: dict[str, Any]) -> str:
    return json.dumps({"nvbandwidth": {"CUDA Runtime Version": 12080, "testcases": list(cases)}})


def case(name: str, status: str, *cells: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "bandwidth_matrix": [list(cells)], "average": 1.0}


def fio_page(error: int = 0, read: Any = 3_000_000_000) -> str:
    jobs = [{"jobname": "check", "error": error, "read": {"bw_bytes": read}, "write": {"bw_bytes": 0}}]
    return f"fio: a note before it\n{json.dumps({'fio version': 'fio-3.33', 'jobs': jobs})}"


def iperf(**end: Any) -> str:
    return json.dumps({"start": {}, "intervals": [], "end": end})


GOOD: list[tuple[str, str, dict[str, float]]] = [
    ("dcgm_diag", diag("Pass", "Pass", "Skip"), {}),
    ("dcgm_diag", diag("PASS", key="DCGM GPU Diagnostic"), {}),
    ("nccl_tests", NCCL.format(wrong=0, word="OK"), {"avg_bus_gb_s": 262.01, "peak_bus_gb_s": 293.97}),
    (
        "nvbandwidth",
        bandwidth(case("host_to_device_memcpy_ce", "Passed", "55.63", "54.90"), case("d2d", "Waived")),
        {"host_to_device_memcpy_ce_gb_s": 54.9},
    ),
    (
        "ib_write_bw",
        PERFTEST.format(unit="Gb/sec", peak=391.8, average=390.2),
        {"avg_gbit_s": 390.2, "peak_gbit_s": 391.8},
    ),
    (
        "ib_write_bw",
        PERFTEST.format(unit="MB/sec", peak=11_700, average=11_600),
        {"avg_gbit_s": 97.31, "peak_gbit_s": 98.15},
    ),
    ("fio", fio_page(), {"read_gb_s": 3.0}),
    ("stress_ng", STRESS.format(fail="", passed=3, failed=0), {"cpu_ops_s": 268.23}),
    ("memtester", MEMTESTER.format(what="ok"), {}),
    (
        "iperf3",
        iperf(sum_received={"bits_per_second": 2.1e10}, sum_sent={"retransmits": 3}),
        {"received_gbit_s": 21.0, "retransmits": 3.0},
    ),
]


@pytest.mark.parametrize(("tool", "text", "readings"), GOOD)
def test_what_a_tool_measured(tool: str, text: str, readings: dict[str, float]) -> None:
    told = read(tool, text, 0)
    assert told.readings == pytest.approx(readings, abs=0.01)
    assert told.faults == ()


FAULTS = [
    ("dcgm_diag", diag("Pass", "Fail"), 226, "memory failed on GPU 1: xid 79"),
    ("nccl_tests", NCCL.format(wrong=7, word="FAILED"), 1, "7 elements"),
    ("nvbandwidth", bandwidth(case("h2d", "Failed", "1.0")), 1, "h2d: failed"),
    ("fio", fio_page(error=84), 1, "other bytes"),
    (
        "stress_ng",
        STRESS.format(fail="stress-ng: fail:  [73] vm: detected 5 bit errors\n", passed=2, failed=1),
        2,
        "5 bit errors",
    ),
    ("memtester", MEMTESTER.format(what="FAILURE: 0x1 != 0x3 at offset 0x20."), 4, "offset 0x20"),
    ("memtester", MEMTESTER.format(what="ok"), 2, "ended with 2"),
]


@pytest.mark.parametrize(("tool", "text", "code", "words"), FAULTS)
def test_what_a_tool_found(tool: str, text: str, code: int, words: str) -> None:
    """Mutant: a tool that says so and ends with 0 has passed."""
    for ended in (code, 0) if tool != "memtester" or code == 4 else (code,):
        (fault,) = read(tool, text, ended).faults
        assert words in fault


UNABLE = [
    ("dcgm_diag", diag(runtime_error="nvvs is not installed")),
    ("dcgm_diag", diag("Skip")),
    ("dcgm_diag", diag("Excellent")),
    ("dcgm_diag", "{}"),
    ("nccl_tests", NCCL.format(wrong=0, word="OK").partition("# Out of")[0]),
    ("nccl_tests", NCCL.format(wrong="x", word="OK")),
    ("nvbandwidth", bandwidth(case("h2d", "Waived"))),
    ("nvbandwidth", bandwidth(case("h2d", "Passed", "fast"))),
    ("nvbandwidth", json.dumps({"nvbandwidth": {"error": "no device"}})),
    ("ib_write_bw", "Unable to find the Infiniband/RoCE device"),
    ("ib_write_bw", PERFTEST.format(unit="Gb/sec", peak=1, average=1).partition(" 65536")[0]),
    ("ib_write_bw", PERFTEST.format(unit="Tb/sec", peak=1, average=1)),
    ("fio", fio_page(error=5)),
    ("fio", fio_page(read="much")),
    ("fio", fio_page()[:60]),
    ("stress_ng", STRESS.format(fail="", passed=3, failed=0).partition("stress-ng: info:  [71] successful")[0]),
    ("stress_ng", STRESS.format(fail="", passed=0, failed=0)),
    ("memtester", MEMTESTER.format(what="ok").partition("Done.")[0]),
    ("iperf3", json.dumps({"error": "unable to connect to server"})),
    ("iperf3", iperf()),
    *(
        (tool, hostile)
        for tool in READERS
        for hostile in ("", "garbage", "[" * 100_000, "[]", "\x00\x1b[31m", '{"a": 1')
    ),
]


@pytest.mark.parametrize(("tool", "text"), UNABLE)
def test_what_says_nothing_was_not_measured(tool: str, text: str) -> None:
    """Mutant: nothing found is passed."""
    with pytest.raises(UnableError):
        read(tool, text, 0)


@pytest.mark.parametrize(("tool", "text", "readings"), GOOD)
def test_an_exit_code_that_says_otherwise_is_never_passed(tool: str, text: str, readings: dict[str, float]) -> None:
    try:
        assert read(tool, text, 1).faults
    except UnableError:
        assert readings is not None


@pytest.mark.parametrize(("tool", "text", "readings"), GOOD)
def test_cut_off_anywhere_it_is_the_same_or_nothing(tool: str, text: str, readings: dict[str, float]) -> None:
    """A tool that was killed: what is read of its beginning claims nothing that the whole does not."""
    for end in range(0, len(text), max(1, len(text) // 60)):
        try:
            told = read(tool, text[:end], 0)
        except UnableError:
            continue
        assert told.faults == ()
        assert told.readings.keys() <= readings.keys() or tool == "ib_write_bw"


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(READERS)), st.text(max_size=400), st.integers(-20, 300))
def test_whatever_is_printed_is_read_or_refused(tool: str, text: str, code: int) -> None:
    try:
        told = read(tool, text, code)
    except UnableError:
        return
    assert told.faults


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(GOOD), st.data())
def test_a_good_output_with_a_wrong_spot_is_read_or_refused(good: tuple[str, str, Any], data: st.DataObject) -> None:
    tool, text, _ = good
    at = data.draw(st.integers(0, len(text)))
    odd = data.draw(st.sampled_from(["NaN", "-1", "1e999", "\x00", '"', "null", "{}", "9" * 400, "Fail", ""]))
    try:
        told = read(tool, text[:at] + odd + text[at + len(odd) :], 0)
    except UnableError:
        return
    assert all(isinstance(value, float) for value in told.readings.values())


# a site's check that reads a tool

FILE = """
check: rail_bandwidth
detects: a slow rail
profiles: [gate]
tool: ib_write_bw
readings:
  avg_gbit_s: {unit: Gbit/s, floor: 360, bound: 400}
command: COMMAND
"""


def a_work(command: list[str], tool: str = "ib_write_bw", wanted: tuple[str, ...] = ("avg_gbit_s",)) -> Work:
    params = {"command": command, "tool": tool, "wanted": list(wanted)}
    return Work("rail_bandwidth", Device("cpu"), params, 1.0)


def printing(text: str) -> list[str]:
    return [sys.executable, "-c", f"print({text!r})"]


def test_a_sites_check_reads_its_tool() -> None:
    step, profiles = site_checks.parsed(FILE.replace("COMMAND", "[ib_write_bw, peer]"), "own.yaml")
    assert profiles == ("gate",)
    assert (step.params["tool"], step.params["wanted"]) == ("ib_write_bw", ["avg_gbit_s"])
    told = site.run(a_work(printing(PERFTEST.format(unit="Gb/sec", peak=391.8, average=390.2))))
    assert told.readings == {"avg_gbit_s": 390.2}


def test_a_tool_that_nobody_knows_is_refused_with_the_file() -> None:
    with pytest.raises(ProfileError, match="a tool is one of"):
        site_checks.parsed(FILE.replace("COMMAND", "[x]").replace("tool: ib_write_bw", "tool: made_up"), "own.yaml")


def test_a_reading_that_the_output_lacks_was_not_measured() -> None:
    with pytest.raises(UnableError, match="has no other"):
        site.run(a_work(printing(PERFTEST.format(unit="Gb/sec", peak=1, average=1)), wanted=("other",)))


def test_a_gigabyte_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: all of it is taken into memory first."""
    script = "import sys\nfor _ in range(1024): sys.stdout.write('x' * 1048576)\nopen('whole', 'w')"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnableError, match="printed more than"):
        site.run(a_work([sys.executable, "-c", script]))
    assert not (tmp_path / "whole").exists()
