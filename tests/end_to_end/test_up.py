"""The README's first command, `hostler up`, as a newcomer runs it, and a command beside it."""

import asyncio
import json
import re
import shlex
import signal
import socket
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.sim.emulated.emulated_fleet import targets_of
from tests.contract.kubernetes_world import Admin, let_go
from tests.controlplane.building import NoControlPlaneError, programs
from tests.end_to_end.processes import HOSTLER, free_port, process, run

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

PATIENCE_S = 90.0
RECORDS_MOST = 12
"""Of a node that serves from the start, when the fleet is said to be up."""


@pytest.mark.smoke
async def test_hostler_up_brings_emulated_nodes_up_and_its_operator_treats_the_one_that_fails_its_firmware(
    tmp_path: Path,
) -> None:
    """The story of the fleet's last node, as a person would tell it from its history. Mutants: anything of the emulated
    fleet that does not run on the command's event loop; nobody looks at zap_fail; the firmware is tried again as it is.
    """
    log = tmp_path / "log"
    newcomer = ("env", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}", HOSTLER)
    calm = ("--nodes", "2", "--faults-per-hour", "0", "--scale", "14400")
    said = ""
    async with process(*newcomer, "up", "--port", str(free_port()), *calm, log=log) as up:
        try:
            async with asyncio.timeout(PATIENCE_S):
                code = 1
                while code or len(said.split()) < 2:  # BMCs, boots, agents and firmware are behind them
                    assert up.returncode is None, log.read_text()
                    await asyncio.sleep(0.5)
                    tested = ("-l", "phase in (test,production)", "-o", "name")
                    code, said = await run(*newcomer, "node", "list", *tested)
        except TimeoutError:
            raise AssertionError(f"never tested: {said}\n{log.read_text()[-3000:]}") from None
        _, told = await run(*newcomer, "node", "history", "c1-n0002", "-o", "json")
    assert "Hostler is up with 2 emulated nodes" in log.read_text()
    moves = [one["event"] for one in json.loads(told)["items"] if one["name"] in ("phase_changed", "intent_recorded")]
    assert chapters(moves) == ["zap", "zap_fail", "emulated-operator zap-again", "zap", "test"]


def chapters(events: list[dict[str, Any]]) -> list[str]:
    """The node's way from its first firmware to its tests: phases, and who asked for what in between."""
    told = [
        f"{one['intent']['person']} {one['intent']['act']['verb']}" if "intent" in one else str(one["after"])
        for one in events
    ]
    return told[told.index("zap") : told.index("test") + 1]


async def test_an_adopted_fleet_serves_before_it_says_so_and_its_tour_can_be_walked(tmp_path: Path) -> None:
    """Count the cost: a few records a node. Mutants: adopted machines stay switched off, or wait for their
    agents one after the other; a command of the tour that is none.
    """
    log = tmp_path / "log"
    newcomer = ("env", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}")
    start = ("up", "--port", str(free_port()), "--nodes", "40", "--adopted", "--faults-per-hour", "0")
    async with process(*newcomer, HOSTLER, *start, log=log) as up:
        async with asyncio.timeout(PATIENCE_S):
            while "Stop with Ctrl-C." not in log.read_text():
                assert up.returncode is None, log.read_text()
                await asyncio.sleep(0.2)
        _, serving = await run(*newcomer, HOSTLER, "node", "list", "-l", "phase=production", "-o", "name")
        assert len(serving.split()) == sum(targets_of(40).values())
        _, jobs = await run(*newcomer, HOSTLER, "job", "list", "-o", "jsonl")
        assert jobs.splitlines()
        assert all(json.loads(job)["began"] for job in jobs.splitlines()), "since when each of them runs is told"
        _, told = await run(*newcomer, HOSTLER, "events", "--limit", "0", "-o", "jsonl")
        about = Counter(name for one in told.splitlines() for name in json.loads(one)["subjects"])
        assert all(about[name] <= RECORDS_MOST for name in serving.split()), about.most_common(3)
        for line in re.findall(r"^  (hostler .*?)  ", log.read_text(), re.MULTILINE):
            words = shlex.split(line.replace("NODE", "c1-n0003"))
            if "·" in line:
                continue
            if "-w" in words:  # goes on until it is ended
                async with (
                    process(*newcomer, HOSTLER, *words[1:], log=tmp_path / "watched"),
                    asyncio.timeout(PATIENCE_S),
                ):
                    while "phase_changed" not in (tmp_path / "watched").read_text():  # noqa: ASYNC110 - another process
                        await asyncio.sleep(0.1)
                continue
            code, said = await run(*newcomer, HOSTLER, *words[1:])
            assert code == 0, (line, said)
        policy = str(files("hostler.core.policy").joinpath("default_policy.yaml"))
        code, said = await run(*newcomer, HOSTLER, "backtest", "begin", policy, "--reason", "as it is", "--wait")
        assert (code, "fidelity" in said) == (0, True), said
        assert "done, asked by bootstrap: as it is" in said
    assert log.read_text().count("\n  hostler ") == 5


async def test_a_port_that_is_taken_is_named_with_what_to_do(tmp_path: Path) -> None:
    """As 8440 is for `serve` beside `make up`. Mutant: "Address already in use", and nobody knows which."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for start in (("up", "--port", str(port)), ("serve", "--data", str(tmp_path), "--listen", f"127.0.0.1:{port}")):
            code, said = await run("env", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}", HOSTLER, *start)
            assert (code, f"127.0.0.1:{port}" in said, "see that the port is free" in said) == (
                ExitCode.unavailable,
                True,
                True,
            ), said


async def test_adopted_does_not_go_with_a_real_cluster() -> None:
    """Mutant: its nodes are said to serve where no cluster lists them."""
    code, said = await run(HOSTLER, "up", "--port", str(free_port()), "--adopted", "--kubernetes", "/nowhere")
    assert (code, "--adopted: does not go with --kubernetes; leave --adopted out" in said) == (2, True), said


@pytest.mark.xdist_group("kubernetes")
async def test_make_up_kubernetes_brings_machines_into_a_real_cluster_and_jobs_onto_them(tmp_path: Path) -> None:
    """Machines join by tokens, Jobs land on them, kubectl sees them; all ends with it. Mutant: kwok is not told."""
    try:
        programs()
    except NoControlPlaneError as missing:
        pytest.skip(str(missing))
    log = tmp_path / "log"
    newcomer = ("env", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}", f"XDG_CACHE_HOME={Path.home() / '.cache'}")
    calm = ("--nodes", "4", "--faults-per-hour", "0", "--scale", "14400", "--port", str(free_port()))
    async with process(*newcomer, sys.executable, "-m", "tests.controlplane.up", *calm, log=log) as up:
        kubeconfig = await _said(log, r"export KUBECONFIG=(\S+)")
        async with Api(load_kubeconfig(kubeconfig), lambda: None) as api:
            admin = Admin(api)
            pod = await _first(admin, "/api/v1/pods?labelSelector=job-name&fieldSelector=status.phase=Running", log)
            name = pod["spec"]["nodeName"]
            production = f"labelSelector=hostler.dev/phase=production&fieldSelector=metadata.name={name}"
            node = await _first(admin, f"/api/v1/nodes?{production}", log)  # its label follows a moment later
            assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
            assert pod["spec"]["nodeSelector"]["hostler.dev/pool"] == node["metadata"]["labels"]["hostler.dev/pool"]
            code, said = await run(*newcomer, HOSTLER, "node", "drain", name, "--reason", "to see")
            assert code == 0, said
            await _first(admin, "/api/v1/nodes?fieldSelector=spec.unschedulable=true", log)
            assert (await admin.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"))["items"]  # waited for
        up.send_signal(signal.SIGINT)
        await asyncio.wait_for(up.wait(), PATIENCE_S)
    assert not Path(kubeconfig).parent.exists()
    let_go()


async def _said(log: Path, pattern: str) -> str:
    async with asyncio.timeout(PATIENCE_S):
        while (found := re.search(pattern, _text(log))) is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
    return found[1]


def _text(log: Path) -> str:
    return log.read_text() if log.exists() else ""


async def _first(admin: Admin, path: str, log: Path) -> dict[str, Any]:
    """The first object that is listed there, once there is one."""
    where, _, query = path.partition("?")
    asked = dict(word.split("=", 1) for word in query.split("&"))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await admin.api.get(where, **asked)
                if answer.status == 200 and (items := json.loads(answer.body)["items"]):
                    return dict(items[0])
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"nothing at {path}: {_text(log)[-3000:]}") from None
