"""Day 0 with Debian's own cloud-init: power-on, image, NoCloud over HTTP, phone-home, Onboard (`make test-boot`).

In the second test cloud-init installs the Debian package of the agent that the boot listener serves; its unit
enrols with a key that the machine's TPM proves, and Seatrial, Zap and a burn-in of minutes are answered by that agent.
"""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.bringup_machines import depot
from tests.boot_guest import missing
from tests.contract.kubelet import REQUESTS, Kubelet
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler
from tests.controlplane.plane import ControlPlane
from tests.debian_guest import missing_for_debian
from tests.end_to_end.booted import (
    CLUSTER,
    DEBIAN_WITH_ALL,
    DEBIAN_WITH_KUBELET,
    BootedAgent,
    BootedCluster,
    BootedWorld,
    booted_world,
)
from tests.end_to_end.test_boot import HISTORY, register
from tests.kubelet_layer import why_no_kubelet
from tests.software_tpm import SoftwareTpm, missing_for_tpm
from tests.suite_layer import PROGRAM

LACKING = missing() or missing_for_debian() or missing_for_tpm()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING or "it boots")
ROOT = Path(__file__).parents[2]
AUTHORITY = "/etc/hostler/cluster.pem"
"""File on the machine: whose word its agent takes for a cluster."""
HARDWARE = {"schema": 1, "erasable": True, "serials": True}
DATA = b"a tenant's data" * 1000
OPTIONS = (
    "--allow-actions --kernel-log journal --scratch /dev/nvme0n1 "
    f"--check-device cpu --check-for 3m --check-program {PROGRAM}"
)
BOOT_S = 900.0
"""A boot with the agent takes 60 s on two quiet cores without KVM, and three times that beside others' work."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent's Debian package, of this tree."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import debian_packages as d;"
        "print(d.build(d.PACKAGES['hostler-agent'], Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    folders = [str(tmp_path_factory.mktemp(name)) for name in ("staging", "made")]
    done = subprocess.run([sys.executable, "-c", code, *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    return Path(done.stdout.split()[-1])


@pytest.mark.timeout(1800)
@pytest.mark.skipif(bool(why_no_kubelet()), reason=why_no_kubelet() or "it has one")
async def test_debian_s_cloud_init_brings_a_machine_to_onboard_and_its_kubelet_into_the_cluster(
    tmp_path: Path, control_plane: ControlPlane
) -> None:
    """A real kubelet enters a real cluster by the token that came with its boot, and nobody else does.

    Mutants: the seed's address is no NoCloud source; cloud-init finds its user-data no cloud-config; user-data come
    without the token; the kubeconfig lies where no kubelet looks; no request is approved; each one is.
    """
    async with an_admin(control_plane) as admin:
        await _say_where_nodes_reach(control_plane, admin)
        hostler = await as_hostler(control_plane, admin)
        world_of = booted_world(tmp_path, image=DEBIAN_WITH_KUBELET, cluster=BootedCluster(hostler))
        async with world_of as world:
            await _comes_up(world)
            node = await _is_ready(admin, world)
            assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.36.")
            assert node["status"]["nodeInfo"]["kernelVersion"].endswith("-cloud-amd64")
            await _lets_nobody_else_in(admin, control_plane, tmp_path)


async def _comes_up(world: BootedWorld) -> None:
    """The machine is in Onboard, by every step in its order."""
    await register(world)
    await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1", BOOT_S)
    told = _told(world)
    begins = [begin for begin in HISTORY if begin != "seed refused"]
    begins.insert(begins.index("cloud-init data given"), "issue_join_token done")
    steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in begins]
    assert steps == sorted(steps), told
    console = world.guest.console()
    assert "Cloud-init v." in console
    assert "DataSourceNoCloudNet" in console or "Datasource" in console, console[-2000:]


async def _say_where_nodes_reach(plane: ControlPlane, admin: Admin) -> None:
    """Write the cluster's cluster-info as kubeadm does: the API server as the machine in QEMU reaches it."""
    authority = base64.b64encode(plane.ca.read_bytes()).decode()
    cluster = {"server": _inside(plane), "certificate-authority-data": authority}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster}]}
    body = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": json.dumps(kubeconfig)}}
    answer = await admin.api.change("POST", "/api/v1/namespaces/kube-public/configmaps", body)
    assert answer.status in (201, 409), answer
    await admin.delete("/api/v1/nodes/n1")


def _inside(plane: ControlPlane) -> str:
    """The API server as a machine in QEMU reaches it."""
    return plane.url.replace("127.0.0.1", "10.0.2.2")


async def _is_ready(admin: Admin, world: BootedWorld) -> Any:
    """The Node once its kubelet has said that it is ready."""
    found: Any = None
    try:
        async with asyncio.timeout(BOOT_S):
            while True:
                answer = await admin.api.get("/api/v1/nodes/n1")
                found = msgspec.json.decode(answer.body)
                conditions = found["status"].get("conditions", ()) if answer.status == 200 else ()
                if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
                    return found
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise AssertionError(f"{found}\n{await admin.get(REQUESTS)}\n{world.guest.console()[-6000:]}") from None


async def _lets_nobody_else_in(admin: Admin, plane: ControlPlane, folder: Path) -> None:
    """Ask with the token of this boot for a certificate of another name, and of the same again: both are denied."""
    secrets = (await admin.get("/api/v1/namespaces/kube-system/secrets"))["items"]
    (data,) = (one["data"] for one in secrets if one["type"] == "bootstrap.kubernetes.io/token")
    token = ".".join(base64.b64decode(data[f"token-{part}"]).decode() for part in ("id", "secret"))
    thief = Kubelet(folder, "thief")
    async with thief.bootstrapping(plane.kubeconfig("bearer", token)) as api:
        for name, why in (("thief", "its token is for system:node:n1"), ("n1", "its token is used")):
            assert (await thief.ask(api, f"as-{name}", name)).status == 201
            status = await thief.answer(api, f"as-{name}")
            assert "certificate" not in status
            assert why in status["conditions"][0]["message"]


@pytest.mark.timeout(3600)
@pytest.mark.skipif(bool(why_no_kubelet()), reason=why_no_kubelet() or "it has one")
async def test_an_agent_comes_with_the_boot_and_answers_for_the_machine(
    tmp_path: Path, package: Path, control_plane: ControlPlane
) -> None:
    """From power-on to a tenant's pool: two boots, and no verdict that the machine itself has not given.

    Its kubelet is let into the pool's cluster by its agent, with the token of the delivery.

    Mutants: the token is written without an enrolment; the TPM is not asked; the agent's word closes the window;
    Seatrial, burn-in or erasing are passed by nobody's answer; the node is delivered before its kubelet is ready;
    the site's time server does not answer.
    """
    tpm, drive = SoftwareTpm(tmp_path / "tpm", in_a_machine=True), tmp_path / "drive"
    await tpm.start()
    with drive.open("wb") as file:
        file.write(DATA)
        file.truncate(64 << 20)
    try:
        async with depot() as bios, an_admin(control_plane) as admin:
            await _say_where_nodes_reach(control_plane, admin)
            cluster = BootedCluster(await as_hostler(control_plane, admin), at_boot=False)
            agent = _agent(package, tpm, bios, control_plane)
            world_of = booted_world(tmp_path, image=DEBIAN_WITH_ALL, agent=agent, cluster=cluster)
            async with world_of as world:
                world.guest.tpm, world.guest.drive = tpm.control, drive
                await _comes_to_onboard(world)
                await world.call("POST", "/v1/nodes/n1/certify", {"reason": "cabled and seen"})
                await _comes_to_production(world)
                await _is_delivered(world, admin)
    finally:
        await tpm.end()
    with drive.open("rb") as file:
        assert DATA not in file.read(1 << 20), "what the tenant wrote is still there"


def _agent(package: Path, tpm: SoftwareTpm, bios: str, plane: ControlPlane) -> BootedAgent:
    """The agent, which may join one cluster; the machine is for a pool of that."""
    sku = {"firmware": {"BIOS": "1.1.0"}, "images": {"BIOS": bios}, "sanitise": {}, "hardware": HARDWARE}
    pools = {"train": {"sku": "this", "target": 1, "tenant": "acme", "cluster": CLUSTER, "modes": {"*": "act"}}}
    options = f"{OPTIONS} --cluster-server {_inside(plane)} --cluster-ca {AUTHORITY}"
    return BootedAgent(package, options, tpm.authorities(), sku, pools, {AUTHORITY: plane.ca.read_text()})


async def _is_delivered(world: BootedWorld, admin: Admin) -> None:
    """The node serves its pool: its own kubelet is ready, and its Node open to work."""

    def serves(seen: dict[str, Any]) -> bool:
        return seen["node"].get("assignment") is not None and seen["node"].get("plan") is None

    try:
        await world.until(serves, "/v1/nodes/n1", BOOT_S)
    except AssertionError as late:
        raise AssertionError(f"{late}\n{_told(world)[-30:]}") from None
    node = await _is_ready(admin, world)
    told = _told(world)
    for step in ("join_cluster done", "start_kubelet done", "confirm_join done", "run_checks done", "uncordon done"):
        assert any(text.startswith(step) for text in told), (step, told[-30:])
    assert not node["spec"].get("unschedulable")
    assert node["status"]["nodeInfo"]["bootID"]


async def _comes_to_onboard(world: BootedWorld) -> None:
    await register(world)
    await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1", BOOT_S)
    told = _told(world)
    begins = [begin for begin in HISTORY if begin != "seed refused"]
    begins.insert(begins.index("phoned home"), "its agent enrolled with the key")
    steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in begins]
    assert steps == sorted(steps), told
    assert any("proved by the TPM" in text for text in told)
    assert not [text for text in told if "refused" in text]
    shown = await world.until(lambda seen: seen["agent"]["heard"], "/v1/nodes/n1", BOOT_S)
    assert shown["node"]["boot"]["tpm"]


async def _comes_to_production(world: BootedWorld) -> None:
    def ends(seen: dict[str, Any]) -> bool:
        return seen["node"]["phase"] in ("production", "triage", "zap_fail")

    shown = await world.until(ends, "/v1/nodes/n1", 4 * BOOT_S)
    told = _told(world)
    assert shown["node"]["phase"] == "production", "\n".join(told[-40:])
    assert world.guest.starts == 2
    assert "Selected source 10.0.2.2" in world.guest.console(), "chrony has not the site's time"
    assert len([text for text in told if text.startswith("its agent enrolled with the key")]) == 2
    checks = {check["profile"]: check["verdict"] for check in shown["node"]["checks"]}
    assert (checks["seatrial"], checks["burn_in"]) == ("passed", "passed")
    assert world.machine.firmware["BIOS"] == "1.1.0"
    assert any(text.startswith("sanitise done") for text in told), told


def _told(world: BootedWorld) -> list[str]:
    return [row["text"] for row in world.command("node", "history", "n1", "--limit", "500")["items"]]
