"""From recorded states of NVML to conditions: the real collector, its child process and the twin, without a GPU."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.agent.child_process import Companion, DiedError, HungError
from hostler.agent.collector_loops import pause_s
from hostler.agent.collectors import gpu_state, nvml_state_reader
from hostler.agent.collectors.gpu_state import GpuPoll, GpuReadings, GpuState
from hostler.agent.collectors.nvml_calls import Calls
from hostler.agent.collectors.nvml_twin import NvmlTwin
from hostler.agent.gpu_reset import ResetRequest
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.agent.machine import Powers, RealHostMachine, SensorSources
from hostler.core.diagnose.gpu import GPU_ASPECTS
from hostler.core.diagnose.judge import judge
from hostler.core.state.model import Observation
from tests.unit.test_diagnose_state import NODE, SKU

STATES = Path(__file__).parents[1] / "nvml_states"
NAMES = sorted(json.loads((STATES / "healthy_h100x8.json").read_text())["each"])
THIRD = "pci:0000:61:00"
POLL_S = 10.0


def read(state: str, reader: nvml_state_reader.NvmlStateReader | None = None, now_s: float = 0.0) -> GpuPoll:
    """A report as it comes over the pipe."""
    reader = reader or nvml_state_reader.NvmlStateReader(NvmlTwin(str(STATES / f"{state}.json")), lambda _doing: None)
    return gpu_state.decoded(json.dumps(reader.report(now_s)).encode())


def polls(follower: GpuState, report: GpuPoll, times: int, begin_s: float = 0.0) -> list[LocalObservation]:
    return [seen for n in range(times) for seen in follower.take(report, begin_s + n * POLL_S)]


def conditions(seen: list[LocalObservation]) -> set[tuple[str, str]]:
    """Returns the controller's conditions after these observations, in their order."""
    standing: dict[tuple[str, str], bool] = {}
    for one in seen:
        observation = Observation("n1", one.kind, "agent", "s", 1, boot_id="b2", text=one.text, facts=one.facts)
        standing |= {(f.type, f.part): f.standing for f in judge(observation, NODE, SKU)}
    return {key for key, stands in standing.items() if stands}


def test_a_child_that_is_slow_to_start_says_nothing_of_the_driver() -> None:
    """A starved machine needs half a minute for the child's imports. Mutant: its first start convicts the driver."""
    slow, stuck = GpuPoll("hung", reason="no answer within 20 s"), GpuPoll("hung", doing="nvmlInit")
    follower = GpuState("b2", None)
    assert polls(follower, slow, 2) == []
    assert polls(follower, slow, 1) != [], "but not for ever"
    assert conditions(polls(GpuState("b2", None), stuck, 1)) == {("gpu.driver_unresponsive", "")}


def test_a_healthy_node_is_read_in_full_and_told_once() -> None:
    """Mutant: every poll is told. A day of polls is nine records, and nine more at its end."""
    report = read("healthy_h100x8")
    assert [gpu.absent for gpu in report.gpus] == [{"retired_pages": "not supported"}] * 8
    follower = GpuState("b2", None)
    seen = polls(follower, report, 500)
    assert len(seen) == 9
    assert conditions(seen) == set()
    facts = next(one.facts for one in seen if one.facts.get("pci") == "0000:61:00")
    wanted = {"serial": "1653023000003", "nvlinks_active": 18, "fabric_state": "completed", "slowdown_limit_c": 87}
    assert facts.items() >= {**wanted, "memory_temperature_c": 41, "power_limit_w": 700.0}.items()
    assert "unsettled" not in facts
    assert len(polls(follower, report, 120, 86_400.0)) == 9


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("remap_pending", {("gpu.row_remap_pending", THIRD)}),
        ("remap_failure", {("gpu.row_remap_failure", THIRD), ("gpu.spare_rows_spent", THIRD)}),
        ("ecc_uncorrectable", {("gpu.ecc_counted", THIRD)}),
        ("sram_threshold", {("gpu.sram_threshold", THIRD)}),
        ("thermal_slowdown", {("gpu.thermal", THIRD)}),
        ("gpu_lost", {("gpu.fallen_off_bus", THIRD)}),
        ("nvlink_down", {("gpu.nvlink_down", THIRD)}),
        ("reset_asked", {("gpu.reset_required", THIRD)}),
        ("pcie_narrow", {("pcie.degraded_link", THIRD)}),
        ("pcie_idle", set()),
    ],
)
def test_each_recorded_state_is_told_as_what_it_is(state: str, expected: set[tuple[str, str]]) -> None:
    seen = polls(GpuState("b2", None), read(state), 40)
    assert conditions(seen) == expected
    assert (Rank.urgent in {one.rank for one in seen}) == bool(expected)


def test_states_of_every_gpu() -> None:
    for state, condition in (("power_brake", "gpu.hw_slowdown"), ("fabric_not_completed", "gpu.fabric_unready")):
        found = conditions(polls(GpuState("b2", None), read(state), 40))
        assert len(found) == 8
        assert {kind for kind, _ in found} == {condition}


def test_a_gpu_that_was_there_and_is_not_is_missing() -> None:
    follower = GpuState("b2", None)
    polls(follower, read("healthy_h100x8"), 40)
    assert follower.take(read("gpu_missing"), 500.0) == [], "one poll is not enough"
    (seen,) = follower.take(read("gpu_missing"), 510.0)
    assert seen.facts["gpus_in_nvml"] == 7
    assert "0000:61:00" not in str(seen.facts["pcis"])


def test_what_latches_is_told_at_the_first_poll_and_what_wavers_after_three() -> None:
    """Mutants: `raise_polls` is not looked at; a latched error waits for the thermometer."""
    for state, polls_until_told in (("remap_pending", 1), ("thermal_slowdown", 3)):
        follower = GpuState("b2", None)
        polls(follower, read("healthy_h100x8"), 40)
        told = [bool(follower.take(read(state), 500.0 + n * POLL_S)) for n in range(polls_until_told)]
        assert told == [False] * (polls_until_told - 1) + [True]


def test_an_aspect_that_comes_and_goes_is_told_ever_more_rarely() -> None:
    """Mutant: no doubling: a day's flapping is hundreds of records."""
    follower = GpuState("b2", None)
    well, hot = read("healthy_h100x8"), read("thermal_slowdown")
    seen = [one for n in range(1080) for one in follower.take(hot if n % 30 < 5 else well, n * POLL_S)]
    assert len(seen) < 30


def test_a_rising_count_is_news_only_when_it_has_doubled() -> None:
    follower = GpuState("b2", None)
    polls(follower, read("healthy_h100x8"), 40)
    seen = []
    for n in range(1, 130):
        gpus = (GpuReadings(3, {"pci": "0000:61:00", "ecc_uncorrectable": n}),)
        seen += [s for s in follower.take(GpuPoll("answers", gpus), 500 + n * POLL_S) if "ecc" in s.text]
    assert len(seen) == 8


def test_readings_that_do_not_exist_are_never_health() -> None:
    """Mutant: NOT_SUPPORTED reads as 0. Every aspect of such a GPU stays unknown, and that is told."""
    for state in ("not_supported", "garbage"):
        report = read(state)
        for gpu in report.gpus:
            judged = {name: row.judge({**gpu.facts, "lost": gpu.lost}).mark for name, row in GPU_ASPECTS.items()}
            assert {n for n, mark in judged.items() if mark == "good"} <= {"lost"}, (state, gpu.facts)
        found = conditions(polls(GpuState("b2", None), report, 40))
        assert {kind for kind, _ in found} == {"reading.never_verified"}
        assert len(found) == 8


def test_what_was_readable_once_is_missed_also_by_the_next_agent_and_the_next_boot() -> None:
    """Mutant: the cursor is not kept, and a restarted agent forgets what it once could read."""
    follower = GpuState("b2", None)
    polls(follower, read("healthy_h100x8"), 40)
    for boot in ("b2", "b3"):
        later = GpuState(boot, follower.cursor()[1])
        found = conditions(polls(later, read("not_supported"), 40))
        assert {kind for kind, _ in found} == {"reading.missing"}
        assert len(found) == 8


def test_a_restarted_agent_repeats_nothing() -> None:
    follower = GpuState("b2", None)
    polls(follower, read("remap_pending"), 40)
    assert polls(GpuState("b2", follower.cursor()[1]), read("remap_pending"), 40, 400.0) == []
    assert len(polls(GpuState("b2", b"{garbled"), read("remap_pending"), 40, 400.0)) >= 9


def test_a_lost_gpu_says_nothing_else_and_keeps_its_address(tmp_path: Path) -> None:
    """NVML_ERROR_GPU_IS_LOST from every call, the address too: it is remembered from before."""
    state = tmp_path / "state.json"
    well: dict[str, Any] = {"base": str(STATES / "healthy_h100x8.json")}
    state.write_text(json.dumps(well))
    reader = nvml_state_reader.NvmlStateReader(NvmlTwin(str(state)), lambda _doing: None)
    follower = GpuState("b2", None)
    polls(follower, read("", reader), 40)
    identity = ("nvmlDeviceGetPciInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial")
    state.write_text(json.dumps({**well, "change": {"3": {name: {"error": 15} for name in (*NAMES, *identity)}}}))
    report = read("", reader, 400.0)
    assert report.gpus[3].lost == "gpu_is_lost"
    assert conditions(follower.take(report, 400.0)) == {("gpu.fallen_off_bus", THIRD)}


def test_counters_become_growth_and_links_that_recover_are_told() -> None:
    follower = GpuState("b2", None)
    well = read("healthy_h100x8")
    polls(follower, well, 40)
    gpu = well.gpus[3]
    worse = GpuReadings(3, {**gpu.facts, "nvlink_recoveries": 2, "pcie_replays": 4})
    seen = polls(follower, GpuPoll("answers", (*well.gpus[:3], worse, *well.gpus[4:])), 40, 400.0)
    assert conditions(seen) == {("gpu.nvlink_degraded", THIRD)}


# --- the child process


@pytest.fixture
def body(tmp_path: Path) -> Iterator[Callable[[str], RealHostMachine]]:
    bodies: list[RealHostMachine] = []

    def make(state: str) -> RealHostMachine:
        bodies.append(RealHostMachine("n1", tmp_path, Powers(), SensorSources(nvml_twin=str(STATES / f"{state}.json"))))
        return bodies[-1]

    yield make
    for one in bodies:
        one.close()


def test_the_child_answers_again_and_again(body: Callable[[str], RealHostMachine]) -> None:
    here = body("healthy_h100x8")
    first, second = here.gpus(), here.gpus()
    assert first.state == second.state == "answers"
    assert len(second.gpus) == 8
    assert body("no_driver").gpus().reason == "the driver is not loaded"


def test_a_call_that_hangs_is_named_and_the_next_question_starts_a_new_child(
    body: Callable[[str], RealHostMachine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.agent.machine.GPUS_S", 2.0)
    report = body("hang_in_one_call").gpus()
    assert (report.state, report.doing) == ("hung", "0000:61:00 temperature")
    (seen,) = GpuState("b2", None).take(report, 0.0)
    assert conditions([seen]) == {("gpu.driver_unresponsive", "")}
    assert seen.facts["call"] == "0000:61:00 temperature"
    assert seen.rank is Rank.urgent


def test_a_child_that_crashes_is_a_report_with_its_last_call(body: Callable[[str], RealHostMachine]) -> None:
    report = body("child_crash").gpus()
    assert report.state == "crashed"
    assert "ended with -11 while at: 0000:61:00 power" in report.reason


def test_a_gpu_that_is_being_reset_is_held_open_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the poll waits for the reset; the poll's child lives through it; the poll opens the GPU meanwhile."""
    tool = tmp_path / "nvidia-smi"
    twin = tmp_path / f"{os.getpid()}-reset.json"
    twin.write_text(json.dumps({"base": str(STATES / "healthy_h100x8.json")}))
    tool.write_text(
        '#!/bin/sh\n[ "$1" = --gpu-reset ] || exit 0\n'
        f"grep -sl '{os.getpid()}-reset[.]json' /proc/[0-9]*/cmdline > {tmp_path}/holders\n"
        f"touch {tmp_path}/begun\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.01; done\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    here = RealHostMachine("n1", tmp_path, Powers(actions=True), SensorSources(nvml_twin=str(twin)))
    assert here.gpus().state == "answers"
    with ThreadPoolExecutor(1) as operations:
        reset = operations.submit(here.reset_gpus, ResetRequest())
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        assert here.gpus().state == "busy"
        assert GpuState("b2", None).take(here.gpus(), 0.0) == []
        (tmp_path / "go").touch()
        reset.result(20)
    assert (tmp_path / "holders").read_text() == ""
    assert here.gpus().state == "answers"
    here.close()


def test_children_that_cannot_be_killed_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: every poll starts one more child that hangs in the kernel."""
    unkilled: list[int] = []
    monkeypatch.setattr("hostler.agent.child_process.REAP_S", 0.0)
    monkeypatch.setattr("os.killpg", lambda pid, _signal: unkilled.append(pid))
    asked = Companion((sys.executable, "-c", "import time; time.sleep(60)"))
    for _ in range(2):
        with pytest.raises(HungError, match="no answer"):
            asked.ask("read", 0.05)
    with pytest.raises(HungError, match="not started: 2 earlier"):
        asked.ask("read", 0.05)
    assert len(unkilled) == 2
    monkeypatch.undo()
    for pid in unkilled:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(HungError, match="no answer"):
        asked.ask("read", 0.05)


def test_a_child_that_floods_or_ends_is_no_answer() -> None:
    with pytest.raises(DiedError):
        Companion((sys.executable, "-c", "pass")).ask("read", 5)
    with pytest.raises(HungError):
        Companion((sys.executable, "-c", "while True: print('x' * 65536, end='')")).ask("read", 5)


def test_a_poll_that_fails_is_repeated_ever_more_rarely() -> None:
    assert [pause_s(10.0, n) for n in range(8)] == [10, 10, 20, 40, 80, 160, 300, 300]


# --- no state, however garbled


ANSWERS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5), st.just([])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.fixed_dictionaries({"error": st.integers(0, 40)}),
        st.fixed_dictionaries({"args": st.dictionaries(st.sampled_from(["*", "0", "1,0"]), inner, max_size=3)}),
        st.fixed_dictionaries({"fields": st.dictionaries(st.sampled_from(["82", "94", "230"]), inner, max_size=3)}),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("twin") / "state.json"


def garbled(place: Path, answers: dict[str, Any]) -> GpuPoll:
    """One GPU that answers so."""
    healthy = json.loads((STATES / "healthy_h100x8.json").read_text())
    place.write_text(json.dumps({"gpus": [{**healthy["gpus"][3], **answers}]}))
    return read("", nvml_state_reader.NvmlStateReader(NvmlTwin(str(place)), lambda _doing: None))


@settings(max_examples=100)
@given(change=st.dictionaries(st.sampled_from(NAMES), ANSWERS, max_size=6))
def test_no_garbled_state_crashes_the_collector_or_makes_anything_healthy(change: dict[str, Any], place: Path) -> None:
    """A garbled value is unknown, or a fault that the garble happens to spell.

    Mutants: `_flag` takes any number for a switch; `_scalar` lets NaN pass; a structure that NVML did not fill counts.
    """
    healthy = json.loads((STATES / "healthy_h100x8.json").read_text())["each"]
    conditions(polls(GpuState("b2", None), garbled(place, {**healthy, **change}), 15))
    nonsense = {name: answer for name, answer in change.items() if not _plausible(answer)}
    for gpu in garbled(place, nonsense).gpus:
        assert "good" not in {row.judge(gpu.facts).mark for name, row in GPU_ASPECTS.items() if name != "lost"}


def _plausible(answer: Any) -> bool:
    """Whether the garble could be a true answer, alone or inside."""
    if isinstance(answer, dict):
        return any(_plausible(inner) for inner in answer.values() if not isinstance(inner, dict) or inner) and (
            "error" not in answer
        )
    if isinstance(answer, list):
        return any(_plausible(inner) for inner in answer)
    return isinstance(answer, int | float) and 0 <= answer < 2**63


def test_every_call_of_the_table_is_one_of_the_real_library() -> None:
    """The twin refuses names that `pynvml` does not have; each call of the table has an answer in the healthy state."""
    twin = NvmlTwin(str(STATES / "healthy_h100x8.json"))
    assert all(callable(getattr(twin, name)) for name in NAMES)
    with pytest.raises(AttributeError):
        twin.nvmlDeviceGetNothing  # noqa: B018
    assert len({name for name, _, _ in Calls}) == len(Calls)


@pytest.fixture(params=["twin", "library"])
def nvml(request: pytest.FixtureRequest) -> Any:
    if request.param == "twin":
        return NvmlTwin(str(STATES / "healthy_h100x8.json"))
    import pynvml  # noqa: PLC0415

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        pytest.skip(f"hardware: no NVIDIA GPU here ({error})")
    return pynvml


def test_library_and_twin_answer_alike(nvml: Any) -> None:
    """The contract: identity, temperature, ECC and PCIe of every GPU, and absences with their reason."""
    begin_s = time.monotonic()
    report = gpu_state.decoded(
        json.dumps(nvml_state_reader.NvmlStateReader(nvml, lambda _doing: None).report(begin_s)).encode()
    )
    assert report.state == "answers"
    assert report.gpus
    for gpu in report.gpus:
        assert gpu.lost == ""
        assert {"pci", "uuid", "name", "temperature_c", "pcie_width", "clock_event_reasons"} <= gpu.facts.keys()
        assert all(gpu.absent.values())
