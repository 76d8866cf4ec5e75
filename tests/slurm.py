"""A real Slurm for tests: munged, slurmctld and a few slurmd of their own, on free loopback ports, in one folder.

One cluster per test process, empty again after each test. Everything ends with the test process, also when that is
killed; jobs' processes are found by the folder that their scripts lie in.
"""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from hostler.drivers.slurm.command_transport import Commands, CommandTransport
from hostler.drivers.slurm.wire import SlurmNode
from tests.end_to_end.processes import free_port
from tests.tied_processes import skip_where_nothing_can_be_tied, tied

NODES = ("gpu001", "gpu002", "box-1")
GPUS = 8
START_S = 60.0
MESSAGE_S = 3
"""Slurm's own patience: so long its commands wait for a controller that hangs, before they print an empty list."""

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={slurmd_user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=1
KillWait=15
SlurmdTimeout=300
MessageTimeout={patience}
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
GresTypes=gpu
RebootProgram=/bin/true
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/state/jwt.key
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=10
PartitionName=spot Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
PartitionName=hostler Nodes=ALL MaxTime=60 State=UP PriorityTier=1 PreemptMode=CANCEL GraceTime=0
"""
NODE = (
    "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=100 Gres=gpu:h100:{gpus}\n"
)
JOB = """#!/bin/sh
: > {folder}/begun/$SLURM_JOB_ID
exec sleep 900
"""
DEAF = """#!/bin/sh
trap 'echo TERM >> {folder}/signals/$SLURM_JOB_ID; told=$((told + 1)); [ $told -lt 2 ] || exit' TERM
: > {folder}/begun/$SLURM_JOB_ID
while :; do sleep 0.1; done
"""
SLOW = """#!/bin/sh
trap 'until [ -e {folder}/let-go/$SLURM_JOB_ID ]; do sleep 0.1; done; exit' TERM
: > {folder}/begun/$SLURM_JOB_ID
while :; do sleep 0.1; done
"""
SCRIPTS = {"job": JOB, "deaf": DEAF, "slow": SLOW}
"""Jobs that end when they are told to, when they are told twice, and when they are told and let go."""


class RealSlurm:
    """A cluster of `NODES` in `folder`. What administrators and users do to it are its methods."""

    def __init__(self) -> None:
        _check_installed()
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-slurm-", dir="/tmp"))
        self.conf = self.folder / "slurm.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self._lay_out()
            self._start_all()
        except BaseException:
            self.close()
            raise

    def transport(self, timeout_s: float = 15.0) -> CommandTransport:
        return CommandTransport(Commands(str(self.conf), timeout_s=timeout_s))

    # --- what people do

    def run(self, *words: str) -> str:
        """Run one of Slurm's commands, as its administrator."""
        done = subprocess.run(words, env=self._environment(), capture_output=True, text=True, check=False, cwd="/")
        if done.returncode:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout

    async def submit(self, *nodes: str, gpus: int = 0, **options: str) -> int:
        """A job that runs until it is ended, on just these nodes; its number once it runs and hears signals."""
        script = self.folder / options.pop("script", "job")
        words = ["sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "-w", ",".join(nodes), "-N", str(len(nodes))]
        words += [f"--gres=gpu:{gpus}"] if gpus else []
        words += ["--mem=10", "-n", str(len(nodes))]
        named = {name.replace("_", "-"): value for name, value in options.items()}
        words += [f"--{name}={value}" if value else f"--{name}" for name, value in named.items()]
        number = int(self.run(*words, str(script)))
        await self.until((self.folder / "begun" / str(number)).exists)
        await self.until(lambda: self.run("squeue", "-h", "-j", str(number), "-o", "%T").strip() == "RUNNING")
        return number

    async def admin(self, node: str, state: str, reason: str = "") -> None:
        """An administrator's `scontrol update`."""
        self.run("scontrol", "update", f"NodeName={node}", f"State={state}", *([f"Reason={reason}"] if reason else []))

    async def comment(self, node: str, text: str) -> None:
        self.run("scontrol", "update", f"NodeName={node}", f"Comment={text}")

    def listing(self) -> str:
        """The numbers of the jobs that run or end."""
        return self.run("squeue", "-h", "-t", "R,CG", "-o", "%i")

    def signals(self, job: int) -> int:
        """How many SIGTERMs a deaf job has counted."""
        counted = self.folder / "signals" / str(job)
        return len(counted.read_text().splitlines()) if counted.exists() else 0

    def let_go(self, job: int) -> None:
        """A slow job that was told to end does so now."""
        (self.folder / "let-go" / str(job)).touch()

    async def stop_answering(self, node: str) -> None:
        """The node's slurmd dies, and slurmctld notices."""
        self._end(node)
        with contextlib.suppress(AssertionError):
            self.run("scontrol", "update", f"NodeName={node}", "State=NoResp")

    async def boot(self, node: str) -> None:
        """The node comes back from a reboot."""
        self._end(node)
        await asyncio.sleep(1.1)  # Slurm counts in whole seconds: a boot in the second of its last word is none
        self._start_slurmd(node, "-b")

    async def state(self, node: str) -> SlurmNode:
        return (await self.transport().nodes())[node]

    async def until(self, holds: Callable[[], object], within_s: float = 60.0) -> None:
        """Wait until it holds."""
        last = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < last, f"not within {within_s} s:\n{self.run('sinfo', '-N')}{self.run('squeue')}"
            await asyncio.sleep(0.1)

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """slurmctld hangs: it accepts connections and answers nothing."""
        self._daemons["slurmctld"].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._daemons["slurmctld"].send_signal(signal.SIGCONT)

    @contextlib.asynccontextmanager
    async def rest(self) -> AsyncIterator[str]:
        """Start its slurmrestd, as somebody without rights; the address."""
        port = free_port()
        words = ("-a", "rest_auth/jwt", "-s", "openapi/v0.0.38", f"127.0.0.1:{port}")
        self._start("slurmrestd", "nobody", "/usr/sbin/slurmrestd", *words, SLURM_JWT="daemon")
        try:
            await self.until(lambda: _listens(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            self._end("slurmrestd")

    # --- its life

    def reset(self) -> None:
        """No jobs, all nodes idle."""
        self.run("scancel", "--ctld", "--state=RUNNING")
        self.run("scancel", "--ctld", "--state=PENDING")
        for name in NODES:
            if self._daemons[name].poll() is not None:
                self._start_slurmd(name)
        last = time.monotonic() + START_S
        while (rest := self._restless()) and time.monotonic() < last:
            for name, (state, comment) in rest.items():
                if comment:
                    self.run("scontrol", "update", f"NodeName={name}", "Comment=")
                if "drain" in state or "down" in state or "boot" in state:
                    with contextlib.suppress(AssertionError):
                        self.run("scontrol", "update", f"NodeName={name}", "State=RESUME")
            time.sleep(0.1)
        assert not rest, f"the cluster does not come to rest: {rest}"

    def close(self) -> None:
        for name in ("slurmrestd", "slurmctld", *NODES, "munged"):
            self._end(name)
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if entry.name.isdigit() and str(self.folder).encode() in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _restless(self) -> dict[str, tuple[str, str]]:
        told = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N|%T").splitlines()
        states = {line.partition("|")[0]: line.partition("|")[2] for line in told}
        listed = self.run("scontrol", "-o", "show", "nodes").splitlines()
        comments = {line.split()[0].partition("=")[2]: "hostler" if "Comment=" in line else "" for line in listed}
        return {n: (states[n], comments[n]) for n in NODES if states[n] != "idle" or comments[n]}

    def _lay_out(self) -> None:
        self.folder.chmod(0o755)
        for name in ("state", "spool", "log", "run", "dev", "munge"):
            (self.folder / name).mkdir(mode=0o755)
        ports = [free_port() for _ in range(1 + len(NODES))]
        user = _users("slurm")
        conf = CONF.format(
            folder=self.folder,
            host=socket.gethostname().partition(".")[0],
            port=ports[0],
            user=user,
            slurmd_user=_users("root"),
            patience=MESSAGE_S,
        )
        lines = [NODE.format(name=name, port=port, gpus=GPUS) for name, port in zip(NODES, ports[1:], strict=True)]
        self.conf.write_text(conf.replace("PartitionName=main", "".join(lines) + "PartitionName=main", 1))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        devices = [self.folder / "dev" / f"nvidia{index}" for index in range(GPUS)]
        for device in devices:
            device.touch()
        (self.folder / "gres.conf").write_text(f"Name=gpu Type=h100 File={self.folder}/dev/nvidia[0-{GPUS - 1}]\n")
        for name in ("begun", "signals", "let-go"):
            (self.folder / name).mkdir()
        for name, text in SCRIPTS.items():
            (self.folder / name).write_text(text.replace("{folder}", str(self.folder)))
        key, jwt_key = self.folder / "munge" / "key", self.folder / "state" / "jwt.key"
        for path, size in ((key, 1024), (jwt_key, 32)):
            path.write_bytes(os.urandom(size))
            path.chmod(0o400)
        for owner, names in (("slurm", ("state", "state/jwt.key", "log", "run")), ("munge", ("munge", "munge/key"))):
            for name in names:
                _give(self.folder / name, owner)

    def _start_all(self) -> None:
        munge = self.folder / "munge"
        words = [f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid"]
        words += [f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
        self._start("munged", "munge", "/usr/sbin/munged", "--foreground", *words)
        self._wait((munge / "socket").exists, "munged")
        self._start("slurmctld", "slurm", "/usr/sbin/slurmctld", "-D", "-c", "-f", str(self.conf))
        for name in NODES:
            (self.folder / "spool" / name).mkdir()
            self._start_slurmd(name)
        self._wait(lambda: not self._all_idle(), "slurmctld")

    def _all_idle(self) -> list[str]:
        """The nodes that are not idle yet."""
        try:
            return list(self._restless())
        except (AssertionError, KeyError, ValueError):
            return ["slurmctld"]

    def _start_slurmd(self, name: str, *words: str) -> None:
        self._start(name, "root", "/usr/sbin/slurmd", "-D", "-N", name, "-f", str(self.conf), *words)

    def _start(self, name: str, user: str, *words: str, **environment: str) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [*_as(user), *words],
                env=self._environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        last = time.monotonic() + START_S
        while not holds():
            if self._daemons[what].poll() is not None or time.monotonic() > last:
                logs = [path.read_text(errors="replace")[-1_500:] for path in sorted((self.folder / "log").iterdir())]
                pytest.fail(f"{what} does not start:\n" + "\n".join(logs))
            time.sleep(0.05)

    def _end(self, name: str) -> None:
        daemon = self._daemons.get(name)
        if daemon is None or daemon.poll() is not None:
            return
        daemon.terminate()
        try:
            daemon.wait(timeout=5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _environment(self) -> dict[str, str]:
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": str(self.conf), "LC_ALL": "C"}


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[RealSlurm]:
    """The cluster of this test process; skips where Slurm cannot be had."""
    cluster = RealSlurm()
    yield cluster
    cluster.close()


@pytest.fixture
def slurm(slurm_cluster: RealSlurm) -> RealSlurm:
    """A cluster without jobs whose nodes are idle."""
    slurm_cluster.reset()
    return slurm_cluster


def _check_installed() -> None:
    needed = ("slurmctld", "slurmd", "munged", "scontrol", "sbatch", "slurmrestd")
    missing = [name for name in needed if shutil.which(name, path="/usr/sbin:/usr/bin") is None]
    if missing:
        pytest.skip(
            f"no {missing[0]}: apt-get install --no-install-recommends "
            "slurmctld slurmd slurm-client slurmrestd slurm-wlm-basic-plugins slurm-wlm-jwt-plugin munge"
        )
    skip_where_nothing_can_be_tied()


def _users(name: str) -> str:
    """Names the user of a daemon: its own user where root starts it, else whoever runs the tests."""
    return name if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def _give(path: Path, owner: str) -> None:
    user = pwd.getpwnam(_users(owner))
    os.chown(path, user.pw_uid, user.pw_gid)


def _as(owner: str) -> list[str]:
    """Starts a program so that it ends with this process, as the right user."""
    dying = list(tied())
    if os.geteuid() or owner == "root":
        return dying
    user = pwd.getpwnam(owner)
    return [*dying, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
