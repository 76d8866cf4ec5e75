"""A burn-in goes on where it was cut off: killed, disk full, state damaged, two at once; wrong bits end it early."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler_checks import report, run_state, state_dir, suite
from hostler_checks.answers import CheckResult, Verdict
from hostler_checks.disturbance import Look
from hostler_checks.plants import PERMISSION
from hostler_checks.profiles import Profile, parsed
from hostler_checks.progress import left_s, sentence
from hostler_checks.report import body, html
from hostler_checks.runner import CheckRunner
from tests.checks.suite_runs import argv, command, env, quiet, told

pytestmark = pytest.mark.nightly("processes compute with tensors")

PROFILE = """profile: burn_in
for: 1s
resume: true
stages:
  - name: first_look
    checks:
      - {check: gemm_abft, seconds: 0.2s, with: {n: 64}}
      - {check: host_memory, seconds: 0.2s, with: {mib: 4}}
  - name: bits
    share: 0.25
    checks:
      - {check: gemm_abft, seconds: 0.2s, with: {n: 64}}
      - {check: hbm_pattern, seconds: 0.2s, with: {mib: 8}}
  - name: links
    share: 0.25
    checks:
      - {check: launch_latency, seconds: 0.2s}
"""
KILLS, SEED = 10, 61
PATIENCE_S = 120.0


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(PROFILE)
    return path


def started(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv(folder, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env())


def steps(folder: Path) -> int:
    told = state_dir.read(folder / "burn_in.state.json")
    return int(told["state"]["steps_done"]) if told else 0


def wait_for(folder: Path, wanted: int, runner: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE_S
    while steps(folder) < wanted and runner.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


def verdicts(report: dict[str, Any]) -> dict[str, Any]:
    """Reduces an end to its verdicts, without figures."""
    checks = {name: set(row) for name, row in report["checks"].items()}
    return {
        "verdict": report["verdict"],
        "stages": [(s["name"], s["ended"]) for s in report["stages"]],
        "checks": checks,
    }


def test_killed_at_ten_moments_it_comes_to_the_same_end(profile: Path, tmp_path: Path) -> None:
    """A mutant that writes the state before it records the step loses one; one that starts anew never ends."""
    whole = told(command(tmp_path / "whole", "--profile", str(profile), "--for", "6s"))
    rng = random.Random(SEED)
    folder, landed, before = tmp_path / "cut", 0, 0
    for _ in range(KILLS):
        runner = started(folder, "--profile", str(profile), "--for", "6s")
        wait_for(folder, before + rng.randint(0, 1), runner)
        time.sleep(rng.uniform(0.0, 0.3))
        landed += runner.poll() is None
        runner.kill()
        runner.wait()
        assert steps(folder) >= before
        before = steps(folder)
    end = told(command(folder, "--profile", str(profile), "--for", "6s"))
    assert verdicts(end) == verdicts(whole)
    assert whole["verdict"] == "passed"
    assert landed == KILLS
    assert 0 < end["interruptions"] <= KILLS
    assert end["load_s"] >= end["wanted_s"] == 3.0
    assert sum(sum(row.values()) for row in end["checks"].values()) == end["steps"]
    assert all(stage["load_s"] >= 1.5 for stage in end["stages"][1:])
    kept = folder / "burn_in.report.json"
    verify = [sys.executable, "-m", "hostler_checks.main", "verify"]
    assert subprocess.run([*verify, str(kept)], check=False, env=env(), capture_output=True).returncode == 0
    kept.write_text(kept.read_text().replace('"passed"', '"failed"', 1))
    assert subprocess.run([*verify, str(kept)], check=False, env=env(), capture_output=True).returncode == 3


def test_a_full_disk_loses_nothing_and_passes_nobody(profile: Path, tmp_path: Path) -> None:
    """The disk fills after the first step; when there is room again, the run goes on from the last step kept."""
    if os.geteuid():
        pytest.skip("hardware: only root may mount a small file system to fill")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("hardware: this container may not mount a small file system to fill")
    try:
        runner = started(folder, "--profile", str(profile))
        wait_for(folder, 2, runner)
        runner.send_signal(signal.SIGTERM)
        runner.wait()
        before = steps(folder)
        fill(folder / "filler")
        full = told(command(folder, "--profile", str(profile)))
        assert (full["verdict"], "No space left" in full["detail"]) == ("inconclusive", True)
        assert steps(folder) == before > 0
        (folder / "filler").unlink()
        end = told(command(folder, "--profile", str(profile)))
        assert (end["verdict"], end["steps"] > before, end["interruptions"]) == ("passed", True, 1)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


LEAPING = """
import itertools, time
_leap, _wall, _wall_ns = itertools.cycle((0, 86400, -86400, 3600)), time.time, time.time_ns
time.time = lambda: _wall() + next(_leap)
time.time_ns = lambda: _wall_ns() + next(_leap) * 10**9
"""
PULSED = PROFILE + "      - {check: power_pulse, seconds: 0.2s, with: {n: 64, period_s: 0.2}}\n"


def test_a_wall_clock_that_leaps_by_days_adds_and_takes_no_hour(tmp_path: Path) -> None:
    """In the runner and in each check. A mutant that counts wall-clock time ends at once, or never."""
    (tmp_path / "sitecustomize.py").write_text(LEAPING)
    (tmp_path / "small.yaml").write_text(PULSED)
    began = time.monotonic()
    leaping = f"{tmp_path}:{env()['PYTHONPATH']}"
    words = ("--profile", str(tmp_path / "small.yaml"), "--for", "2s")
    end = told(command(tmp_path / "s", *words, PYTHONPATH=leaping))
    passed_s = time.monotonic() - began
    assert end["verdict"] == "passed", end["detail"]
    assert 1.0 <= end["load_s"] <= end["elapsed_s"] <= passed_s
    assert "leapt" in command_of(leaping), "the leaping clock is the one that the checks read"


def command_of(path: str) -> str:
    """Two looks at the wall clock under this PYTHONPATH, told to leap where they lie an hour apart."""
    text = "import time; a = time.time(); print('leapt' if abs(time.time() - a) > 3000 else 'steady')"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=env(PYTHONPATH=path)
    )
    return done.stdout


def test_a_reboot_in_the_middle_is_counted_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node comes back under another boot id. Mutants: it begins anew; boots are not told; a step counts twice."""
    monkeypatch.setenv("PYTHONPATH", env()["PYTHONPATH"])
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(suite, "BOOT_ID", boot)
    boot.write_text("boot-1\n")
    reports: list[str] = []
    cut = CheckRunner(watch=quiet)

    def off_after_three(said: str) -> None:
        reports.append(said)
        if len(reports) == 3:
            cut.call_off()

    wanted = suite.SuiteRun(small(), tmp_path / "s", "n1", 1.0, "cpu", "o1", told=off_after_three)
    assert suite.run(wanted, cut).verdict == "inconclusive"
    boot.write_text("boot-2\n")
    end = suite.run(replace(wanted, told=lambda _: None), CheckRunner(watch=quiet))
    assert (end.verdict, end.boots, end.interruptions) == ("passed", ["boot-1", "boot-2"], 1), end.detail
    assert sum(sum(row.values()) for row in end.counts.values()) == end.steps_done > 3
    page = (tmp_path / "s/burn_in.report.html").read_text()
    assert "1 (boots: 2)" in page


def test_two_runners_of_one_node_are_one_and_one_that_says_so(profile: Path, tmp_path: Path) -> None:
    runner = started(tmp_path / "s", "--profile", str(profile), "--for", "60s")
    wait_for(tmp_path / "s", 1, runner)
    other = told(command(tmp_path / "s", "--profile", str(profile)))
    assert (other["verdict"], f"in use by another run of checks (process {runner.pid})" in other["detail"]) == (
        "inconclusive",
        True,
    )
    runner.kill()
    runner.wait()


def test_called_off_it_says_nothing_and_goes_on_later(profile: Path, tmp_path: Path) -> None:
    words = argv(tmp_path / "s", "--profile", str(profile))
    runner = subprocess.Popen(words, stdout=subprocess.PIPE, env=env())
    wait_for(tmp_path / "s", 2, runner)
    runner.send_signal(signal.SIGTERM)
    output, _ = runner.communicate()
    assert (json.loads(output)["verdict"], runner.returncode) == ("inconclusive", 3)
    before = steps(tmp_path / "s")
    end = told(command(tmp_path / "s", "--profile", str(profile)))
    assert (end["verdict"], end["steps"] > before, end["interruptions"]) == ("passed", True, 1)


@pytest.mark.smoke
def test_a_damaged_state_is_set_aside_and_said(profile: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    runner = started(folder, "--profile", str(profile))
    wait_for(folder, 2, runner)
    runner.kill()
    runner.wait()
    state = folder / "burn_in.state.json"
    state.write_text(state.read_text().replace('"load_s": ', '"load_s": 9', 1))
    end = told(command(folder, "--profile", str(profile)))
    assert (end["verdict"], end["interruptions"]) == ("passed", 0)
    assert "digest is not that of its content; it is kept as burn_in.state.json.damaged-1" in end["notes"][0]
    assert (folder / "burn_in.state.json.damaged-1").exists()


def test_a_finished_run_is_not_run_again_and_another_one_is(profile: Path, tmp_path: Path) -> None:
    first = told(command(tmp_path / "s", "--profile", str(profile), "--run-id", "o1"))
    again = told(command(tmp_path / "s", "--profile", str(profile), "--run-id", "o1"))
    assert again == first
    other = command(tmp_path / "s", "--profile", str(profile), "--run-id", "o2", "--for", "1s")
    assert (told(other)["run_id"], told(other)["verdict"], other.returncode) == ("o2", "passed", 0)


@pytest.mark.parametrize(
    ("plant", "verdict", "code"),
    [
        ("bit_flip", "failed", 2),
        ("nan", "inconclusive", 3),
        ("crash", "inconclusive", 3),
    ],
)
def test_wrong_bits_end_it_early_and_no_reading_is_no_pass(
    plant: str, verdict: str, code: int, profile: Path, tmp_path: Path
) -> None:
    done = command(tmp_path / "s", "--profile", str(profile), "--plant", plant, "--for", "1s", **{PERMISSION: "1"})
    report = told(done)
    assert (report["verdict"], done.returncode, report["planted"]) == (verdict, code, plant)
    if plant == "bit_flip":
        assert (report["steps"], "row 3, column 39" in report["detail"]) == (1, True)
        assert report["stages"][0]["ended"].startswith("ended early: gemm_abft on cpu failed")


@pytest.mark.smoke
def test_faults_are_not_planted_without_permission(profile: Path, tmp_path: Path) -> None:
    done = command(tmp_path / "s", "--profile", str(profile), "--plant", "nan", **{PERMISSION: ""})
    assert (done.returncode, done.stdout) == (3, "")
    assert "planted by tests alone" in done.stderr


def test_a_node_in_the_words_of_a_plug_in(profile: Path, tmp_path: Path) -> None:
    """A planted run that finds nothing passes nobody. The message to a scheduler carries the readings too."""
    message = tmp_path / "message"
    options = ("--profile", str(profile), "--for", "1s", "-o", "plugin", "--message", str(message))
    sound = command(tmp_path / "a", *options)
    assert (json.loads(sound.stdout)["verdict"], sound.returncode) == ("passed", 0)
    carried = json.loads(message.read_text())
    assert {name: carried[name] for name in ("verdict", "detail")} == json.loads(sound.stdout)
    looked = state_dir.verified((tmp_path / "a/burn_in.report.json").read_bytes())["latest"]
    kept = [one["part"] for one in looked if one["check"] == "gemm_abft" and not one["disturbed"]]
    assert list(carried.get("readings", {}).get("gemm_abft|products", {})) == kept
    planted = command(tmp_path / "b", *options, "--plant", "slow_link", **{PERMISSION: "1"})
    assert (json.loads(planted.stdout)["verdict"], planted.returncode) == ("inconclusive", 3)


# the arithmetic of a run, without children


def small() -> Profile:
    return parsed(PROFILE, "small.yaml")


def result(
    check: str = "gemm_abft", verdict: Verdict = Verdict.passed, load_s: float = 0.5, **more: Any
) -> CheckResult:
    return CheckResult(check, verdict, "said", part="cpu", load_s=load_s, readings={"x": 1.0}, **more)


@pytest.mark.smoke
def test_hours_count_by_the_monotonic_clock_alone() -> None:
    """A check that claims more than passed is cut; a wall clock that leaps is asked by nobody."""
    state = run_state.begun(small(), "n1", 3.0, ("cpu",))
    run_state.record(small(), state, [result(load_s=1e6)], 2.0)
    assert state.load_s == 2.0
    run_state.record(small(), state, [result(load_s=1.0), result(load_s=0.25)], -5.0)
    assert state.load_s == 2.0
    source = Path(run_state.__file__).read_text()
    assert "datetime" not in source
    assert "import time" not in source


@pytest.mark.smoke
def test_a_stage_that_makes_no_load_ends_and_does_not_pass() -> None:
    text = "resume: true\nfor: 60s\nstages: [{name: a, share: 1, checks: [pcie_bandwidth]}]"
    idle = parsed(text, "idle.yaml")
    state = run_state.begun(idle, "n1", 60.0, ("cpu",))
    for _ in range(3):
        run_state.record(idle, state, [result("pcie_bandwidth", Verdict.inconclusive, 0.0)], 0.1)
    assert state.verdict == "inconclusive"
    assert "made no load" in state.detail


@pytest.mark.smoke
def test_progress_names_stage_hours_and_what_is_left() -> None:
    state = run_state.begun(small(), "n1", 30.0, ("cpu",))
    assert left_s(small(), state) is None
    for _ in range(3):
        run_state.record(small(), state, [result()], 1.0)
    assert left_s(small(), state) == pytest.approx(2 * (7.0 + 7.5))
    assert sentence(small(), state) == (
        "burn_in: stage bits (2 of 3), hbm_pattern, 2 s of 15 s under load, about 29 s left"
    )


@pytest.mark.smoke
def test_a_state_is_read_back_as_it_was() -> None:
    state = run_state.begun(small(), "n1", 3.0, ("cpu",), "o1")
    run_state.record(small(), state, [result(verdict=Verdict.failed)], 1.0)
    kept = json.loads(json.dumps(run_state.as_body(state)))
    assert run_state.state_of(kept, small()) == state
    with pytest.raises(ValueError, match="profile has changed"):
        run_state.state_of(kept, replace(small(), digest="other"))


@pytest.mark.smoke
def test_a_suspect_result_ends_the_run_as_suspect() -> None:
    state = run_state.begun(small(), "n1", 3.0, ("cpu",))
    run_state.record(small(), state, [result(verdict=Verdict.suspect, grave=True)], 1.0)
    assert (state.verdict, run_state.next_step(small(), state)) == ("suspect", None)


@pytest.mark.smoke
def test_drift_and_deviation_of_a_reading() -> None:
    series = run_state.Series()
    for value in (100.0, 99.0, 98.0, 97.0):
        series.add(value)
    assert (series.low, series.high, series.mean) == (97.0, 100.0, 98.5)
    assert series.drift_percent == pytest.approx(-3 / 98.5 * 100)
    assert series.deviation == pytest.approx(1.2909944)


@pytest.mark.smoke
def test_the_page_escapes_what_it_shows() -> None:
    state = run_state.begun(small(), "<script>alert(1)</script>", 3.0, ("cpu",))
    run_state.end(state, Verdict.failed, "<b>")
    page = html(state_dir.signed(body(small(), state)))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def beside_a_build(on_gpus: bool) -> Look:
    return replace(quiet(on_gpus), computing=("cc1 (pid 7, GPU-1)",))


def test_a_gate_remembers_its_readings_and_a_failing_write_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readings beside others' work are not remembered. A mutant that keeps them lowers what the node is held to."""
    monkeypatch.setenv("PYTHONPATH", env()["PYTHONPATH"])
    own = tmp_path / "own.yaml"
    own.write_text("profile: gate\nhistory: true\nstages: [{checks: [{check: launch_latency, seconds: 0.2s}]}]")
    wanted = suite.SuiteRun(parsed(own.read_text(), str(own)), tmp_path / "s", "n1", 1.0, "cpu")
    for count, watch in ((1, quiet), (1, beside_a_build), (2, quiet)):
        suite.run(wanted, CheckRunner(watch=watch))
        (row,) = state_dir.read(tmp_path / "s/history.json")["history"].values()  # type: ignore[index]
        assert len(row) == count
    limited = subprocess.run(
        argv(tmp_path / "s", "--profile", str(own)),
        capture_output=True,
        text=True,
        check=False,
        env=env(),
        preexec_fn=_no_files,
    )
    assert (limited.returncode, "could not be kept" in json.loads(limited.stdout)["detail"]) == (3, True)


def _no_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))


def test_each_burn_in_s_report_is_kept_with_the_node(profile: Path, tmp_path: Path) -> None:
    """By its digest, which the journal has. Mutants: the next one takes its place; a gate's are kept too."""
    folder = tmp_path / "s"
    ends = [told(command(folder, "--profile", str(profile), "--run-id", f"o{number}")) for number in range(2)]
    kept = {path.name for path in (folder / "reports").iterdir()}
    assert kept == {f"burn_in.{end['digest'][:12]}.{kind}" for end in ends for kind in ("json", "html")}
    for end in ends:
        assert state_dir.read(folder / f"reports/burn_in.{end['digest'][:12]}.json") == end


def test_of_too_many_kept_reports_the_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "KEPT_MOST", 3)
    names = []
    for number in range(5):
        state = run_state.begun(small(), "n1", 1.0, ("cpu",), f"o{number}")
        report.write(tmp_path, small(), state)
        names.append(json.loads((tmp_path / "burn_in.report.json").read_text())["digest"][:12])
        for path in (tmp_path / "reports").glob(f"*{names[-1]}*"):
            os.utime(path, (number, number))
    assert {path.name.split(".")[1] for path in (tmp_path / "reports").iterdir()} == {names[0], *names[3:]}
