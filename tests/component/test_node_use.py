"""Use of a node: people, holders of GPUs and others' load, read from files of /proc and from a real kernel."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostler.agent.node_use import NodeUse, UseLimits

AGENT = 100
KERNEL_THREAD = 0x0020_0000


class Proc:
    """A root with processes, as the kernel shows them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process(1, 0, "systemd")
        self.process(AGENT, 1, "hostler-agent")
        (root / "dev").mkdir()

    def process(self, pid: int, parent: int, comm: str, uid: int = 0, **more: int | str) -> None:
        place = self.root / "proc" / str(pid)
        (place / "fd").mkdir(parents=True, exist_ok=True)
        state, flags, ticks = more.get("state", "S"), more.get("flags", 0), more.get("ticks", 0)
        words = f"{state} {parent} 0 0 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0"
        (place / "stat").write_text(f"{pid} ({comm}) {words}\n")
        (place / "comm").write_text(comm)
        (place / "status").write_text(f"Name:\t{comm}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (place / "cgroup").write_text(f"0::{more.get('group', '/')}\n")

    def opens(self, pid: int, device: str) -> None:
        (self.root / "dev" / device).touch()
        (self.root / "proc" / str(pid) / "fd" / "9").symlink_to(f"/dev/{device}")

    def use(self, **limits: object) -> NodeUse:
        return NodeUse(self.root, AGENT, UseLimits(**limits))  # type: ignore[arg-type]


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_a_person_s_process_takes_the_node_and_no_service_s_does(proc: Proc) -> None:
    """Mutants: uid 999 or 60001 is a person; a name with spaces and brackets is misread; a zombie counts."""
    for pid, uid in enumerate((0, 105, 999, 60_001, 65_534), 200):
        proc.process(pid, 1, "daemon", uid)
    proc.process(300, 1, "gone", 1000, state="Z")
    proc.process(301, 2, "kworker/0:1", 1000, flags=KERNEL_THREAD)
    assert proc.use().taken() == ""
    proc.process(400, 1, "a (odd) name", 1000)
    assert proc.use().taken() == "a (odd) name (pid 400) of user 1000 runs there"


def test_what_the_agent_has_started_is_ours_however_deep(proc: Proc) -> None:
    """Mutants: children's children count; a ring of parents hangs the look."""
    proc.process(500, AGENT, "hostler-check", 1500)
    proc.process(501, 500, "python3", 1500)
    proc.opens(501, "nvidia0")
    proc.process(600, 601, "odd")
    proc.process(601, 600, "odd")
    assert proc.use().taken() == ""
    proc.process(700, 601, "python3", 1500)
    assert "pid 700" in proc.use().taken()


def test_the_site_s_ids_of_people_are_those_of_its_own_file(proc: Proc) -> None:
    (proc.root / "etc").mkdir()
    (proc.root / "etc/login.defs").write_text("# UID_MIN 1\nUID_MIN 5000\nUID_MAX\t6000\nUID_MAX x\n")
    proc.process(400, 1, "bash", 1000)
    assert proc.use().taken() == ""
    proc.process(401, 1, "bash", 5000)
    assert "pid 401" in proc.use().taken()


def test_a_manager_that_outlives_a_login_and_what_the_site_names_use_nothing(proc: Proc) -> None:
    """Mutants: everything below a person's manager is let; a name that the site did not give is let."""
    manager = "/user.slice/user-1000.slice/user@1000.service"
    proc.process(400, 1, "systemd", 1000, group=f"{manager}/init.scope")
    proc.process(401, 1, "node_exporter", 1001)
    proc.process(402, 1, "python3", 1001, group="/system.slice/metrics.service")
    assert "node_exporter" in proc.use(beside=("metrics.service",)).taken()
    assert "python3" in proc.use(beside=("node_exporter",)).taken()
    assert proc.use(beside=("node_exporter", "metrics.service")).taken() == ""
    proc.process(403, 400, "train.py", 1000, group=f"{manager}/app.slice/run.scope")
    assert "train.py" in proc.use(beside=("node_exporter", "metrics.service")).taken()


def test_who_holds_a_gpu_takes_the_node_whoever_it_is(proc: Proc) -> None:
    """Root in a container holds one; a monitor computes nothing. Mutant: a person's own `nvidia-smi` is let."""
    container = "/system.slice/docker-" + "a" * 64 + ".scope"
    proc.process(400, 1, "nv-hostengine")
    proc.opens(400, "nvidia0")
    proc.process(401, 1, "dcgm-collect", group="/system.slice/dcgm-exporter.service")
    proc.opens(401, "nvidia1")
    proc.process(402, 1, "tool")
    proc.opens(402, "nvidiactl")
    assert proc.use().taken() == ""
    proc.process(403, 1, "python3", group=container)
    proc.opens(403, "nvidia1")
    assert proc.use().taken() == "python3 (pid 403, container aaaaaaaaaaaa) holds a GPU"
    proc.process(404, 1, "nvidia-smi", 1000)
    assert "pid 404" in proc.use().taken()


def test_others_load_takes_the_node_once_it_has_lasted(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: one's own load counts; what ran before the check counts; a short burst takes it."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    proc.process(400, 1, "backup", ticks=1_000_000)
    use = proc.use(cores=2.0)
    assert use.taken() == ""
    hz = os.sysconf("SC_CLK_TCK")
    proc.process(400, 1, "backup", ticks=1_000_000 + int(1.5 * 6 * hz))
    proc.process(500, AGENT, "hostler-check", ticks=9 * 6 * hz)
    now[0] += 1.0
    assert use.taken() == ""
    now[0] += 5.0
    assert use.taken() == ""
    proc.process(401, 1, "make", ticks=int(3 * 6 * hz))
    now[0] += 6.0
    assert use.taken() == "others keep 3.0 cores busy, the most make (pid 401)"


def test_files_that_cannot_be_read_name_nobody(proc: Proc) -> None:
    proc.process(400, 1, "bash", 1000)
    (proc.root / "proc/400/stat").write_text("garbage")
    (proc.root / "proc/401").mkdir()
    assert proc.use().taken() == ""


NAMESPACE = """
import json, os, subprocess, sys, time
from pathlib import Path
folder, agent = Path(sys.argv[1]), sys.argv[2]
asked = subprocess.Popen([sys.executable, "-c", agent, str(folder)], stdout=subprocess.PIPE, text=True)

def suite():
    found = []
    for one in os.listdir("/proc"):
        if one.isdigit() and int(one) != os.getpid():
            try:
                words = open(f"/proc/{one}/cmdline").read()
                state = open(f"/proc/{one}/stat").read().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if "hostler_checks" in words and state != "Z":
                found.append(words)
    return found

def until(holds):
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > 60:
            sys.exit("it never came")
        time.sleep(0.01)

until(lambda: any("hostler_checks.child" in words for words in suite()))
time.sleep(1.0)
user = subprocess.Popen(["sleep", "60"], user=1500)
came = time.monotonic()
until(lambda: not suite())
gone_s = time.monotonic() - came
first = json.loads(asked.communicate(timeout=60)[0])
again = subprocess.run([sys.executable, "-c", agent, str(folder)], capture_output=True, text=True, timeout=60)
user.kill()
user.wait()
third = subprocess.run([sys.executable, "-c", agent, str(folder)], capture_output=True, text=True, timeout=120)
print(json.dumps({"gone_s": gone_s, "answers": [first, json.loads(again.stdout), json.loads(third.stdout)]}))
"""
AN_AGENT = """
import json, sys
from pathlib import Path
from hostler.agent.checks.check_suite import CheckSuite, SuiteSettings
from hostler.agent.node_use import UseLimits
folder = Path(sys.argv[1])
told = CheckSuite("n1", folder / "state", SuiteSettings(str(folder / "hostler-check"), use=UseLimits(cores=1e6)))
found = told.check("idle", "o1")
print(json.dumps([found.verdict.value, found.detail, sorted(found.facts)]))
"""
PROFILE = """profile: idle
for: 6s
resume: true
stages:
  - checks:
      - {check: gemm_abft, seconds: 0.2s, with: {n: 64}}
      - {check: gemm_perf, seconds: 5s, required: false}
"""
IN_A_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--")


@pytest.mark.nightly("a real suite computes, and is timed against a person who comes")
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="a process of another user needs root, and util-linux's unshare a world without this machine's own people",
)
def test_a_person_who_comes_takes_the_node_from_the_real_suite_at_once(tmp_path: Path) -> None:
    """A real kernel, suite and user. What was done counts: the third slot ends what the first began.

    Mutants: the check goes on; it is failed; it is begun beside a person; a run begins anew in each slot.
    """
    package = Path(__file__).parents[2] / "packages/checks"
    (tmp_path / "idle.yaml").write_text(PROFILE)
    words = f"{sys.executable} -m hostler_checks.main"
    program = tmp_path / "hostler-check"
    ran = f'PYTHONPATH={package} OMP_NUM_THREADS=1 exec {words} "$@" --profile {tmp_path}/idle.yaml --device cpu'
    program.write_text(f"#!/bin/sh\n{ran}\n")
    program.chmod(0o755)
    done = subprocess.run(
        (*IN_A_NAMESPACE, sys.executable, "-c", NAMESPACE, str(tmp_path), AN_AGENT),
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    first, again, third = told["answers"]
    assert told["gone_s"] < 5.0
    assert first[0] == "inconclusive"
    assert first[1].startswith("the suite: the node was taken: sleep (pid ")
    assert again[:2] == ["inconclusive", first[1].replace("the suite: the node was taken", "the node is in use")]
    assert third[0] == "passed", third
    kept = json.loads((tmp_path / "state/idle.report.json").read_text())
    assert kept["interruptions"] == 1
