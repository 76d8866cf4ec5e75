"""DCGM's exporter, from pages in its published form to conditions: read by the real child, joined with NVML's."""

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.agent import collector_loops
from hostler.agent.child_process import Companion, HungError
from hostler.agent.collectors import dcgm_reader, gpu_state
from hostler.agent.collectors.dcgm_state import DcgmState
from hostler.agent.collectors.gpu_state import GpuPoll
from hostler.agent.collectors.passive_samples import PassiveSamples
from hostler.agent.local_observation import LocalObservation
from hostler.agent.machine import EmulatedHostMachine, Powers, RealHostMachine, SensorSources
from hostler.agent.spool import Spool
from hostler.core.diagnose.judge import judge
from hostler.core.state import events as e
from hostler.core.state.model import Observation
from hostler.core.tables.conditions.row import DCGM_POLL_S
from tests.kit import Drive, a_node, configuration, pool_document
from tests.unit.test_diagnose_state import NODE, SKU

PCI = "0000:61:00"
HEALTHY = {
    "GPU_TEMP": 45, "MEMORY_TEMP": 50, "SLOWDOWN_TEMP": 87, "MEM_MAX_OP_TEMP": 95, "POWER_USAGE": 310.5,
    "CLOCKS_EVENT_REASONS": 0, "ECC_DBE_VOL_TOTAL": 0, "ROW_REMAP_FAILURE": 0, "ROW_REMAP_PENDING": 0,
    "PCIE_LINK_WIDTH": 16, "PCIE_MAX_LINK_WIDTH": 16, "PCIE_LINK_GEN": 5, "PCIE_MAX_LINK_GEN": 5, "GPU_UTIL": 99,
    "PCIE_REPLAY_COUNTER": 3, "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 2, "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0,
    "XID_ERRORS": 31,
}  # fmt: skip


def page(changes: dict[str, object] | None = None, labels: str = 'pci_bus_id="00000000:61:00.0",') -> str:
    """An exporter's page of one GPU, the third of its node."""
    lines = ["# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).", "# TYPE DCGM_FI_DEV_GPU_TEMP gauge"]
    named = f'{{gpu="3",UUID="GPU-5a",{labels}device="nvidia3",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"}}'
    lines += [f"DCGM_FI_DEV_{name}{named} {value}" for name, value in (HEALTHY | (changes or {})).items()]
    return "\n".join((*lines, "go_goroutines 12", ""))


def read(text: str) -> GpuPoll:
    return gpu_state.decoded(json.dumps(dcgm_reader.report(text)).encode())


def conditions(*pages: str, polls: int = 14) -> set[tuple[str, str]]:
    """Returns the controller's conditions after so many looks at each of the pages, one after the other."""
    follower, standing = DcgmState("b2", None), dict[tuple[str, str], bool]()
    for number, text in enumerate(pages):
        for poll in range(polls):
            for one in follower.take(read(text), (number * polls + poll) * DCGM_POLL_S):
                seen = Observation("n1", one.kind, "agent", "s", 1, boot_id="b2", text=one.text, facts=one.facts)
                standing |= {(f.type, f.part): f.standing for f in judge(seen, NODE, SKU)}
    return {key for key, stands in standing.items() if stands}


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({"ECC_DBE_VOL_TOTAL": 2}, "gpu.ecc_counted"),
        ({"ROW_REMAP_PENDING": 1}, "gpu.row_remap_pending"),
        ({"ROW_REMAP_FAILURE": 1}, "gpu.row_remap_failure"),
        ({"RETIRED_SBE": 40, "RETIRED_DBE": 21, "RETIRED_PENDING": 0}, "gpu.row_remap_failure"),
        ({"GPU_TEMP": 88}, "gpu.thermal"),
        ({"CLOCKS_EVENT_REASONS": 0x40}, "gpu.thermal"),
        ({"CLOCKS_EVENT_REASONS": 0x80}, "gpu.hw_slowdown"),
        ({"PCIE_LINK_WIDTH": 8}, "pcie.degraded_link"),
    ],
)
def test_what_dcgm_shows_is_the_condition_that_nvml_would_show(changes: dict[str, object], condition: str) -> None:
    """Mutants: a field under another fact's name; sums that overwrite each other."""
    assert {kind for kind, _ in conditions(page(changes))} == {condition}
    assert conditions(page()) == set()


def test_counters_that_grow_are_counted_by_the_hour() -> None:
    assert conditions(page(), page({"NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 2}))
    assert conditions(page(), page({"PCIE_REPLAY_COUNTER": 900}))


def test_what_passes_is_over_and_the_part_is_the_same_by_address_and_by_index() -> None:
    assert conditions(page({"GPU_TEMP": 88}), page()) == set()
    by_address, by_index = (
        conditions(page({"ECC_DBE_VOL_TOTAL": 1}, labels)) for labels in (f'pci_bus_id="0000{PCI}.0",', "")
    )
    assert len(by_address) == len(by_index) == 1


@pytest.mark.parametrize(
    "blank", [2147483632, 2147483633, 9223372036854775794, 140737488355328.0, "NaN", "-1", "+Inf", "9" * 30]
)
def test_what_is_no_reading_convicts_nobody(blank: object) -> None:
    """DCGM has numbers for "none". Mutant: `_BLANKS` is not asked, and every GPU without such a sensor melts."""
    assert conditions(page(dict.fromkeys(HEALTHY, blank))) == set()
    facts = dcgm_reader.report(page({"GPU_TEMP": blank, "ECC_DBE_VOL_TOTAL": blank}))["gpus"][0]["facts"]
    assert "temperature_c" not in facts
    assert "ecc_uncorrectable" not in facts


def test_an_instance_of_a_gpu_is_not_the_gpu() -> None:
    text = page({"ECC_DBE_VOL_TOTAL": 1}, 'GPU_I_ID="7",GPU_I_PROFILE="1g.10gb",')
    assert dcgm_reader.report(text) == {"state": "absent", "reason": "the exporter shows no GPU"}


@given(st.text(max_size=400), st.sampled_from(["", "DCGM_FI_DEV_GPU_TEMP{", 'DCGM_FI_DEV_GPU_TEMP{gpu="']))
def test_hostile_pages_never_raise(text: str, begin: str) -> None:
    told = dcgm_reader.report(f"{begin}{text}\n{page()}\n{begin}{text}")
    assert told["state"] == "answers"
    DcgmState("b", None).take(gpu_state.decoded(json.dumps(told).encode()), 0.0)


def test_many_gpus_and_long_lines_are_bounded() -> None:
    lines = "".join(f'DCGM_FI_DEV_GPU_TEMP{{gpu="{n}"}} 40\n' for n in range(5_000)) + "DCGM_FI_" + "x" * 1_000_000
    began = time.process_time()
    assert len(dcgm_reader.report(lines)["gpus"]) == dcgm_reader.MAX_GPUS
    assert time.process_time() - began < 5  # linear, not timed: a quadratic reader takes minutes


# --- the child and a page that is served


class Exporter:
    """Serves a page at a loopback port; `says` may be changed, `hangs` makes it accept and say nothing."""

    def __init__(self) -> None:
        self.says, self.status, self.asked = page().encode(), 200, 0
        self.hangs = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                if outer.hangs.is_set():
                    time.sleep(3)
                    return
                self.send_response(outer.status)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(outer.says)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    running = Exporter()
    yield running
    running.close()


@pytest.fixture
def body(tmp_path: Path, exporter: Exporter) -> Iterator[RealHostMachine]:
    made = RealHostMachine("n1", tmp_path, Powers(), SensorSources(dcgm=exporter.url))
    yield made
    made.close()


def test_the_real_child_reads_a_served_page(body: RealHostMachine, exporter: Exporter) -> None:
    report = body.dcgm()
    assert report.state == "answers"
    assert report.gpus[0].facts["pci"] == PCI
    exporter.status = 503
    assert "503" in body.dcgm().reason
    exporter.status, exporter.says = 200, b"\xff\xfe<html>"
    assert body.dcgm().state == "absent"
    exporter.says = page().encode()
    assert body.dcgm().state == "answers"


def test_an_endless_page_is_not_read_to_its_end(exporter: Exporter) -> None:
    exporter.says = b"x" * (dcgm_reader.MAX_PAGE_BYTES + 1)
    with pytest.raises(ValueError, match="longer than"):
        dcgm_reader.fetch(exporter.url)


def test_an_exporter_that_hangs_holds_up_nobody(exporter: Exporter) -> None:
    exporter.hangs.set()
    with pytest.raises(TimeoutError):
        dcgm_reader.fetch(exporter.url, 0.2)
    child = Companion((sys.executable, "-m", "hostler.agent.collectors.dcgm_reader", exporter.url))
    with pytest.raises(HungError):
        child.ask("read", 0.5)
    child.close()


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:9400/metrics", "https://127.0.0.1/", "file:///etc/passwd", "http://x/"]
)
def test_only_this_machine_is_asked(url: str) -> None:
    """Mutant: any host. Whoever writes the unit's options could have the agent fetch anything as root."""
    with pytest.raises(ValueError, match=r"loopback|address"):
        dcgm_reader.fetch(url)


def test_where_no_exporter_listens_no_child_is_started(tmp_path: Path, exporter: Exporter) -> None:
    exporter.close()
    made = RealHostMachine("n1", tmp_path, Powers(), SensorSources(dcgm=exporter.url))
    assert made.dcgm().state == "absent"
    assert made._dcgm.pid is None  # noqa: SLF001 - what is not started has no other sign


# --- joined with what NVML shows


def shown(kind: str, **facts: Any) -> dict[str, Any]:
    return {"kind": kind, "facts": {"pci": "0000:03:00", **facts}}


def test_both_ways_show_one_condition_and_it_ends_with_the_last_of_them() -> None:
    """Mutant: DCGM's word ends what NVML still shows."""
    drive = Drive(configuration({"train": pool_document(modes={"*": "observe"})}), [a_node("a")])
    hot, cool = ({"clock_event_reasons": bits, "temperature_c": 45.0, "slowdown_limit_c": 87.0} for bits in (0x40, 0))
    for kind in ("gpu_state", "dcgm_state"):
        drive.observe("a", **shown(kind, **hot))
    assert len([x for x in drive.events(e.ConditionRaised) if x.condition.type == "gpu.thermal"]) == 1
    (thermal,) = [c for c in drive.node("a").conditions if c.type == "gpu.thermal"]
    assert set(thermal.paths) == {"gpu_state", "dcgm_state"}
    drive.observe("a", **shown("dcgm_state", **cool))
    assert any(c.type == "gpu.thermal" for c in drive.node("a").conditions)
    drive.observe("a", **shown("gpu_state", **cool))
    assert not any(c.type == "gpu.thermal" for c in drive.node("a").conditions)


def test_what_dcgm_does_not_show_is_missed_by_nobody() -> None:
    told: list[LocalObservation] = DcgmState("b", None).take(
        GpuPoll("answers", (gpu_state.GpuReadings(0, {"pci": PCI}),)), 0.0
    )
    facts = told[0].facts if told else {"pci": PCI}
    seen = replace(Observation("n1", "dcgm_state", "agent", "s", 1), facts=facts)
    assert not [f for f in judge(seen, NODE, SKU) if f.standing]


class Exporting(EmulatedHostMachine):
    """A machine whose exporter shows these pages, one after the other; None where none answers."""

    def __init__(self, pages: list[str | None]) -> None:
        super().__init__("n1")
        self._pages = pages
        self._over = 0
        self.looked = threading.Event()

    def dcgm(self) -> GpuPoll:
        if len(self._pages) == 1:
            self._over += 1
            time.sleep(0.01)
        if self._over > 3:
            self.looked.set()
        text = self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]
        return read(text) if text is not None else gpu_state.nothing("absent", "refused")


async def test_an_exporter_that_was_there_and_is_gone_is_a_reader_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exporter that never was there is no fault. Mutants: `answered` is not asked; it is told at each look."""
    monkeypatch.setattr(collector_loops, "DCGM_EVERY_S", 0.0)
    monkeypatch.setattr(collector_loops, "DCGM_LOOK_FOR_S", 0.0)
    spool = Spool(tmp_path, "n1-boot-1", time.monotonic, lambda: "s")
    pages = [None] * 5 + [page()] + [None] * 2 + [page()] + [None] * 9 + [page()]
    body = Exporting(pages)
    task = asyncio.create_task(collector_loops.CollectorLoops(body, spool, lambda: None, PassiveSamples("n1")).dcgm())
    await asyncio.to_thread(body.looked.wait, 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    told = [one.observation for one in spool.pending(100, 1 << 20)]
    events = [seen.facts["event"] for seen in told if seen.kind == "agent"]
    assert events == ["collector_started", "collector_failed", "collector_started"]
    spool.close()
