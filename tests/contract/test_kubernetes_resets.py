"""A GPU reset in a real cluster: DaemonSets' pods go and come, the agent's real hands name who holds a GPU.

kwok runs no process, so that of each pod on the node is put into the /proc that the agent's fake tools have.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.agent import gpu_reset as resetting_by_agent
from hostler.agent.gpu_reset import ResetRequest, reset
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HELD, Node, Operation, Outcome
from hostler.drivers.kubernetes import gpu_operator_reset
from hostler.drivers.kubernetes.gpu_operator import DEPLOY, OPERANDS, PAUSED_FOR, Operands
from hostler.drivers.kubernetes.gpu_operator_reset import ResetCluster, Resetter, Restorer
from hostler.drivers.kubernetes.kube_api import Api, KubeResponse
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from tests.contract.kubernetes_world import PATIENCE_S, until
from tests.contract.scheduler_world import OWNER, KubernetesWorld, kubernetes_world, operation
from tests.controlplane.plane import ControlPlane
from tests.kit import configuration
from tests.unit.gpu_tools import Machine

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
SPACE = "gpu-operator"
OURS = f"paused-for-{OWNER}-reset"
DCGM, PLUGIN, DRIVER = f"{DEPLOY}dcgm", f"{DEPLOY}device-plugin", f"{DEPLOY}driver"
STATE = "nvidia.com/gpu-driver-upgrade-state"
BOX = "/api/v1/nodes/box-1"


class Agent(EmulatedHostMachine):
    """The node's agent: its own marks, verbs and reset, on a machine where each pod of the node holds GPU 0."""

    kinds = frozenset({"gpu_reset"})

    def __init__(self, machine: Machine, site: "Site") -> None:
        super().__init__("n1")
        self.machine = machine
        self.site = site
        self.operation_log = OperationLog(machine.home / "marks.sqlite")
        self.operations = NodeOperations("n1", self, self.operation_log)
        self.orders: list[str] = []

    def reset_gpus(self, wanted: ResetRequest) -> str:
        return reset(wanted, self.machine.root)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.orders.append(operation.id)
        for number, pod in enumerate(await self.site.pods()):
            uid = pod["metadata"]["uid"].replace("-", "_")
            home = f"/kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{'ab' * 32}.scope"
            self.machine.process(100 + number, pod["metadata"]["labels"]["app"][:15], home, "/dev/nvidia0")
        return await asyncio.to_thread(self.operations.perform, operation, 1)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return await asyncio.to_thread(self.operations.observe, operation, 1)

    async def revoke(self, operation: Operation, node: Node) -> None:
        raise AssertionError((operation, node))


class Site:
    """A node with DaemonSets as the GPU Operator has them, its agent, and what is recorded of it."""

    def __init__(self, world: KubernetesWorld, machine: Machine) -> None:
        self.world = world
        self.agent = Agent(machine, self)
        self.node = world.node
        self.operation = operation("gpu_reset", self.node)
        self.recorded: Node | None = replace(self.node, operation=self.operation)
        self.operands = Operands(world.api, OWNER, OPERANDS)

    def fleet(self) -> Fleet:
        fleet = Fleet(configuration())
        if self.recorded is not None:
            fleet.put_node("n1", self.recorded)
        fleet.merge()
        return fleet

    def resetter(self, clear_s: float = 20.0, operands: Operands | None = None) -> Resetter:
        place = ResetCluster(self.world.scheduler, operands or self.operands)
        return Resetter([place], lambda: self.agent, self.fleet, clear_s)

    def restorer(self) -> Restorer:
        return Restorer(self.operands, self.world.cache, self.fleet)

    async def perform(self, clear_s: float = 20.0) -> Outcome:
        return await self.resetter(clear_s).perform(self.operation, self.node)

    async def label(self, **labels: str | None) -> None:
        await self.world.admin.patch(BOX, {"metadata": {"labels": labels}})

    async def labels(self) -> dict[str, str]:
        found: dict[str, str] = (await self.world.admin.get(BOX))["metadata"]["labels"]
        return {key: value for key, value in found.items() if key.startswith(DEPLOY)}

    async def said(self) -> str | None:
        found: str | None = (await self.world.admin.get(BOX))["metadata"]["annotations"].get(PAUSED_FOR)
        return found

    async def pods(self) -> list[dict[str, Any]]:
        """Of the operator, on the node."""
        found = await self.world.admin.get(f"/api/v1/namespaces/{SPACE}/pods")
        return [pod for pod in found["items"] if pod["spec"].get("nodeName") == "box-1"]

    async def apps(self) -> list[str]:
        return sorted(pod["metadata"]["labels"]["app"] for pod in await self.pods())

    async def runs(self, *apps: str) -> None:
        """Waits until these pods and no others run there."""
        for _ in range(600):
            if await self.apps() == sorted(apps):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{await self.apps()} run there, not {apps}")

    async def deploys(self, app: str, label: str = "", *, stays: bool = False) -> None:
        """A DaemonSet; `stays`: its pods have a finalizer, and so do not go."""
        meta: dict[str, Any] = {"labels": {"app": app}}
        if stays:
            meta["finalizers"] = ["test.hostler.dev/stays"]
        spec = {
            "nodeSelector": {label: "true"} if label else {},
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i"}],
        }
        body = {"selector": {"matchLabels": {"app": app}}, "template": {"metadata": meta, "spec": spec}}
        where = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets"
        await self.world.admin.ask("POST", where, {"metadata": {"name": app}, "spec": body})

    async def shown(self, key: str, value: str) -> None:
        """The copy shows a label's pause, or none with ""."""

        def is_shown() -> bool:
            node = self.world.cache.nodes.items.get("box-1")
            return node is not None and dict(node.paused).get(key, "") == value

        await until(is_shown, f"{key}={value} to be seen")

    async def let_back(self) -> None:
        """The tidier's turns until nothing of ours is left."""
        for _ in range(100):
            await self.restorer().turn()
            if OURS not in (await self.labels()).values() and await self.said() is None:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{await self.labels()}, {await self.said()}")


@asynccontextmanager
async def a_site(plane: ControlPlane, machine: Machine) -> AsyncIterator[Site]:
    async with kubernetes_world(plane) as world:
        site = Site(world, machine)
        await world.admin.space(SPACE)
        try:
            yield site
        finally:
            site.agent.operation_log.close()
            await world.admin.ask("DELETE", f"/apis/apps/v1/namespaces/{SPACE}/daemonsets", {})
            for pod in await site.pods():
                where = f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}"
                await world.admin.api.change(
                    "PATCH", where, {"metadata": {"finalizers": None}}, "application/merge-patch+json"
                )
            await world.admin.clear(SPACE)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, gpus=1)
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.setattr(resetting_by_agent, "POLL_S", 0.1)
    monkeypatch.setattr(gpu_operator_reset, "AGAIN_S", 0.1)
    return made


@pytest.fixture
async def site(control_plane: ControlPlane, machine: Machine) -> AsyncIterator[Site]:
    async with a_site(control_plane, machine) as found:
        yield found


async def test_operands_go_for_a_reset_and_come_back_when_it_is_over(site: Site) -> None:
    """As the service account of our manifest. Mutants: the agent is asked at once; the driver goes too; they are let
    back while the reset may still take effect; what was "false" before is let in."""
    await site.label(**{DCGM: "true", PLUGIN: "true", DRIVER: "true", f"{DEPLOY}dcgm-exporter": "false"})
    for app, label in (("dcgm", DCGM), ("plugin", PLUGIN), ("nvidia-persistenced", DRIVER)):
        await site.deploys(app, label)
    await site.runs("dcgm", "plugin", "nvidia-persistenced")
    said = await site.perform()
    assert (said.result, site.agent.machine.knows("resets")) == ("done", ["all"]), said.detail
    assert await site.apps() == ["nvidia-persistenced"]
    paused = {DCGM: OURS, PLUGIN: OURS, DRIVER: "true", f"{DEPLOY}dcgm-exporter": "false"}
    assert (await site.labels(), await site.said()) == (paused, site.operation.id)
    await site.shown(DCGM, OURS)
    for settling in (False, True):
        still = {"settling": (site.operation,)} if settling else {"operation": site.operation}
        site.recorded = replace(site.node, **still)
        await site.restorer().turn()
        assert await site.labels() == paused
    site.recorded = site.node
    await site.let_back()
    assert await site.labels() == paused | {DCGM: "true", PLUGIN: "true"}
    await site.runs("dcgm", "plugin", "nvidia-persistenced")


class CutApi(Api):
    """API in which something happens at one of its requests: before it is sent, or after it was answered."""

    def __init__(self, kubeconfig: Path, at: int, happens: Callable[[], None], *, after: bool = False) -> None:
        super().__init__(load_kubeconfig(str(kubeconfig)), lambda: None)
        self.left, self.happens, self.after = at, happens, after

    async def _ask(self, *args: Any) -> KubeResponse:
        self.left -= 1
        if self.left == 0 and not self.after:
            self.happens()
        answer = await super()._ask(*args)
        if self.left == 0 and self.after:
            self.happens()
        return answer


def killed() -> None:
    raise asyncio.CancelledError


async def test_whoever_takes_over_lets_back_what_was_cut_off_anywhere(site: Site, control_plane: ControlPlane) -> None:
    """Killed before and after each request, and at its end; the reset goes on, or is over. Mutant: only who has let
    them go lets them back."""
    done, cut = 0, 0
    while done < 2 and cut < 20:
        cut += 1
        for after in (False, True):
            await site.label(**{DCGM: "true", PLUGIN: "true"})
            site.recorded = replace(site.node, operation=site.operation)
            async with CutApi(control_plane.kubeconfig("hostler"), cut, killed, after=after) as api:
                operands = Operands(api, OWNER, OPERANDS)
                doing = asyncio.ensure_future(site.resetter(operands=operands).perform(site.operation, site.node))
                await asyncio.wait([doing])
                done += not doing.cancelled()
            value = (await site.labels())[DCGM]
            await site.shown(DCGM, value if value == OURS else "")
            await site.restorer().turn()
            assert (await site.labels())[DCGM] == value, "it is still under way"
            site.recorded = site.node
            await site.let_back()
            assert await site.labels() == {DCGM: "true", PLUGIN: "true"}
    assert done == 2
    assert cut > 6, "the node, its change, its pods; the node, its pods, and its pods in the store"
    assert len(site.agent.orders) == 2, "nobody was asked before they had gone"


async def test_called_off_at_any_moment_the_agent_is_not_asked(site: Site, control_plane: ControlPlane) -> None:
    """Mutant: it is looked whether the operation stands before the last look, not after it."""

    def called_off() -> None:
        site.recorded = site.node

    for at in range(1, 7):
        await site.label(**{DCGM: "true", PLUGIN: None})
        site.recorded = replace(site.node, operation=site.operation)
        async with CutApi(control_plane.kubeconfig("hostler"), at, called_off) as api:
            resetter = site.resetter(operands=Operands(api, OWNER, OPERANDS))
            said = await resetter.perform(site.operation, site.node)
        assert (said.result, api.left <= 0) == ("refused", True)
        await site.shown(DCGM, (await site.labels())[DCGM].replace("true", ""))
        await site.let_back()
    assert site.agent.orders == []


@pytest.mark.parametrize(
    ("mark", "by"),
    [
        ({STATE: "drain-required"}, "GPU Operator's driver upgrade"),
        ({PLUGIN: "paused-for-mig-change"}, "whoever has set paused-for-mig-change"),
        ({PLUGIN: f"{OURS}_paused-for-driver-upgrade"}, f"whoever has set {OURS}_paused-for-driver-upgrade"),
    ],
)
async def test_somebody_elses_hands_are_waited_for_and_named(site: Site, mark: dict[str, str], by: str) -> None:
    """Mutants: a driver upgrade's value is overwritten; the agent is asked all the same; it counts against the GPU."""
    await site.label(**{DCGM: "true", **mark})
    before = await site.labels()
    said = await site.perform(clear_s=0.3)
    assert (said.result, said.facts, site.agent.orders) == ("failed", {HELD: by}, [])
    assert (await site.labels(), await site.said()) == (before, None)
    waiting = asyncio.ensure_future(site.perform())
    await asyncio.sleep(0.3)
    await site.label(**dict.fromkeys(mark, "upgrade-done" if STATE in mark else "true"))
    assert (await waiting).result == "done"


async def test_pods_that_are_no_operands_hold_it_by_name_and_no_strike(site: Site) -> None:
    """Mutants: somebody's DaemonSet is waited for in vain; the operands stay away from a node that was not reset."""
    await site.label(**{DCGM: "true"})
    await site.deploys("dcgm", DCGM)
    await site.deploys("watcher")
    await site.runs("dcgm", "watcher")
    said = await site.perform()
    (pod,) = await site.pods()
    assert (said.result, "not gone" in said.detail) == ("failed", False)
    assert str(said.facts[HELD]).startswith(f"watcher (pid 100, pod {pod['metadata']['uid']}")
    assert site.agent.machine.knows("resets") == []
    site.recorded = site.node
    await site.let_back()
    await site.runs("dcgm", "watcher")


async def test_a_pod_that_does_not_go_is_the_agents_to_name(site: Site) -> None:
    """Mutants: it is waited for without end; called off meanwhile, the agent is asked all the same."""
    await site.label(**{DCGM: "true"})
    await site.deploys("dcgm", DCGM, stays=True)
    await site.runs("dcgm")
    waiting = asyncio.ensure_future(site.perform(clear_s=3600.0))
    await asyncio.sleep(0.5)
    site.recorded = site.node
    async with asyncio.timeout(PATIENCE_S):
        said = await waiting
    assert (said.result, site.agent.orders) == ("refused", [])
    site.recorded = replace(site.node, operation=site.operation)
    said = await site.perform(clear_s=0.3)
    assert (said.result, len(site.agent.orders)) == ("failed", 1)
    assert f"not gone after 0.3 s: {SPACE}/dcgm-" in said.detail
    assert str(said.facts[HELD]).startswith("dcgm (pid 100")


async def test_a_person_may_change_a_label_at_any_moment_and_is_not_overruled(site: Site) -> None:
    """Mutants: what is let back does not look whose it is now; a Node of a node that is nobody's stays paused."""
    await site.label(**{DCGM: "true", PLUGIN: "true"})
    await site.perform()
    await site.shown(DCGM, OURS)
    seen = site.world.cache.nodes.items["box-1"]
    await site.label(**{DCGM: "false"})
    assert not await site.operands.let_back(seen), "decided on a copy that is older"
    assert await site.labels() == {DCGM: "false", PLUGIN: OURS}
    site.recorded = None
    await site.let_back()
    assert await site.labels() == {DCGM: "false", PLUGIN: "true"}


async def test_let_back_late_is_nothing_to_the_next_reset(site: Site) -> None:
    """Mutant: a tidier that decided before the next reset began lets the operands back in the middle of it."""
    await site.label(**{DCGM: "true"})
    await site.perform()
    await site.shown(DCGM, OURS)
    seen = site.world.cache.nodes.items["box-1"]
    site.operation = operation("gpu_reset", site.node)
    site.recorded = replace(site.node, operation=site.operation)
    await site.perform()
    assert not await site.operands.let_back(seen)
    assert (await site.labels(), await site.said()) == ({DCGM: OURS}, site.operation.id)


async def test_out_of_the_cluster_or_off_its_list_nothing_is_in_the_way(
    site: Site, control_plane: ControlPlane
) -> None:
    """And where the cluster is not heard nobody is asked, as nobody knows whose hands the driver is in."""
    await site.label(**{DCGM: "true"})
    spare = replace(site.node, assignment=None)
    assert (await site.resetter().perform(site.operation, spare)).result == "done"
    assert await site.labels() == {DCGM: "true"}
    nowhere = control_plane.kubeconfig("nobody", "nobody-token", "http://127.0.0.1:9")
    async with Api(load_kubeconfig(str(nowhere)), lambda: None) as api:
        site.operation = operation("gpu_reset", site.node)
        site.recorded = replace(site.node, operation=site.operation)
        away = site.resetter(0.3, Operands(api, OWNER, OPERANDS))
        said = await away.perform(site.operation, site.node)
    assert (said.result, len(site.agent.orders)) == ("failed", 1)
    assert "which is not known" in str(said.facts[HELD])
    await site.world.admin.delete(BOX)
    assert (await site.perform()).result == "done"
