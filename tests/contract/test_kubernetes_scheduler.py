"""Behaviour of Kubernetes alone: taints and `unschedulable` that others hold too, budgets, graces, and rights."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from msgspec.structs import replace

from hostler.controller.step_output import Reply
from hostler.core.state.assets import Binding
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.model import Condition, Severity
from hostler.drivers.kubernetes.annotation_requests import Requester
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.kube_api import MERGE_PATCH, Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.node_status_writer import NodeStatusWriter
from hostler.drivers.kubernetes.reflector import Patience
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.ports import RefusedError
from tests.contract.kubernetes_world import PATIENCE_S, a_proxy, running, until, until_asked
from tests.contract.scheduler_world import (
    OWNER,
    KubernetesWorld,
    carry_out,
    kubernetes_world,
    observe,
    operation,
    perform,
    sees,
    view,
    works_of,
)
from tests.controlplane.plane import ControlPlane
from tests.kit import NOW, a_node, configuration, pool_document

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
BOX = "/api/v1/nodes/box-1"
UPGRADE = "nvidia.com/gpu-driver-upgrade-state"


@pytest.fixture
async def world(control_plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    async with kubernetes_world(control_plane) as found:
        yield found


async def spec(world: KubernetesWorld) -> tuple[bool, list[str]]:
    """Whether it is unschedulable, and the taints that are not the platform's own."""
    seen = (await world.admin.get(BOX))["spec"]
    taints = [t["key"] for t in seen.get("taints", []) if not t["key"].startswith("node.kubernetes.io/")]
    return seen.get("unschedulable", False), taints


async def test_a_cordon_shows_who_why_and_leaves_no_trace_when_it_is_lifted(world: KubernetesWorld) -> None:
    await perform(world, "cordon")
    seen = await world.admin.get(BOX)
    assert await spec(world) == (True, ["hostler.dev/cordon"])
    assert "plan n1-p1 of n1" in seen["metadata"]["annotations"]["hostler.dev/cordon-reason"]
    await perform(world, "uncordon")
    assert await spec(world) == (False, [])
    left = (await world.admin.get(BOX))["metadata"]["annotations"]
    assert not [key for key in left if key.startswith("hostler.dev/")]


async def test_an_admins_cordon_stands_when_ours_is_lifted(world: KubernetesWorld) -> None:
    """Mutant: `unschedulable` is cleared whoever set it."""
    await world.admin.patch(BOX, {"spec": {"unschedulable": True}}, manager="kubectl-test")
    await sees(world, "the admin's cordon", cordoned=False, cordoned_by_other="somebody with kubectl-test")
    await perform(world, "cordon")
    assert await spec(world) == (True, ["hostler.dev/cordon"])
    await perform(world, "uncordon")
    assert await spec(world) == (True, [])


async def test_other_peoples_taints_stay_as_they_are(world: KubernetesWorld) -> None:
    """Mutant: the list of taints is written with ours alone."""
    theirs = [{"key": "team/dedicated", "value": "a", "effect": "NoSchedule"}]
    await world.admin.patch(BOX, {"spec": {"taints": theirs}})
    await perform(world, "cordon")
    assert (await spec(world))[1] == ["team/dedicated", "hostler.dev/cordon"]
    await perform(world, "uncordon")
    assert (await spec(world))[1] == ["team/dedicated"]


async def test_a_listed_tool_that_uncordons_overrides_nobody_and_the_taint_still_keeps_work_away(
    world: KubernetesWorld,
) -> None:
    """Mutant: every uncordon is a person's."""
    await perform(world, "cordon")
    await world.admin.patch(BOX, {"metadata": {"labels": {UPGRADE: "uncordon-required"}}})
    await sees(world, "the upgrade", cordoned_by_other="GPU Operator's driver upgrade")
    await world.admin.patch(BOX, {"metadata": {"labels": {UPGRADE: "upgrade-done"}}, "spec": {"unschedulable": None}})
    await sees(world, "the tool's uncordon", cordoned_by_other="", cordoned=True, overridden="")
    assert await spec(world) == (False, ["hostler.dev/cordon"])


async def test_while_a_driver_upgrade_has_the_node_it_stays_shut_for_it(world: KubernetesWorld) -> None:
    """Mutant: who claims the node is not looked for."""
    await perform(world, "cordon")
    await world.admin.patch(BOX, {"metadata": {"labels": {UPGRADE: "drain-required"}}})
    await sees(world, "the upgrade", cordoned_by_other="GPU Operator's driver upgrade")
    await perform(world, "uncordon")
    assert await spec(world) == (True, [])


async def test_nobody_acts_beside_a_second_remediator(world: KubernetesWorld) -> None:
    await world.admin.patch(BOX, {"metadata": {"annotations": {"quarantineHealthEvent": "x"}}})
    with pytest.raises(RefusedError, match="NVSentinel treats box-1 too"):
        await perform(world, "cordon")
    assert await spec(world) == (False, [])


async def test_many_who_write_at_once_lose_no_cordon(world: KubernetesWorld) -> None:
    """Nor is what others write. Mutant: the patch tests no version: of two written lists of taints one is lost."""
    written: list[bool] = []
    async with running(_another(world, written)):
        for _ in range(10):
            await carry_out(world, "cordon")
            assert "hostler.dev/cordon" in (await spec(world))[1]
            await carry_out(world, "uncordon")
            assert "hostler.dev/cordon" not in (await spec(world))[1]
    assert written


async def _another(world: KubernetesWorld, written: list[bool]) -> None:
    """Another controller lays its taint and lifts it, all the time; what it wrote last has to stand."""
    theirs = {"key": "team/busy", "effect": "NoSchedule"}
    while True:
        node = await world.admin.get(BOX)
        taints = node["spec"].get("taints", [])
        stands = theirs in taints
        assert stands == bool(written and written[-1]), f"somebody else changed it: {taints}"
        wanted = [taint for taint in taints if taint != theirs] + ([] if stands else [theirs])
        meta = {"resourceVersion": node["metadata"]["resourceVersion"]}
        answer = await world.admin.api.change("PATCH", BOX, {"metadata": meta, "spec": {"taints": wanted}}, MERGE_PATCH)
        assert answer.status in (200, 409), answer
        written += [not stands] if answer.status == 200 else []
        await asyncio.sleep(0.02)


async def test_a_budget_that_blocks_is_named_and_gives_way(world: KubernetesWorld) -> None:
    """Mutants: budgets are not asked; the one that matches is not named."""
    await world.admin.budget("acme", "guard", 1, app="db")
    work = await world.works(WorkClass.interruptible, labels={"app": "db"})
    await until(lambda: "PodDisruptionBudget acme/guard" in _held(world, work), "the budget to be named")
    said = await perform(world, "evict", workloads=[work])
    assert said.result == "not_done"
    assert "acme/guard" in said.detail or "disruption budget" in said.detail
    await world.admin.delete("/apis/policy/v1/namespaces/acme/poddisruptionbudgets/guard")
    await until(lambda: not _held(world, work), "it to be free")
    await carry_out(world, "evict", workloads=[work])


async def test_a_budget_keeps_nobody_who_has_not_begun(world: KubernetesWorld) -> None:
    """Mutant: a pod whose image nobody can pull is waited for, because of a budget that the API asks of others only."""
    await world.admin.ask("POST", "/api/v1/nodes", {"metadata": {"name": "box-2"}})  # nothing starts pods there
    await world.admin.budget("acme", "guard", 1, app="db")
    may_go = {"hostler.dev/interruptible": "true"}
    await world.admin.pod("acme", "stuck", "box-2", labels={"app": "db"}, annotations=may_go)

    def seen() -> tuple[Workload, ...]:
        shown = world.scheduler.views().nodes.get("box-2")
        return shown.workloads if shown is not None else ()

    await until(seen, "the pod to be seen")
    await until(lambda: world.cache.budgets.items.get("acme/guard"), "the budget to be seen")
    (work,) = seen()
    assert work.held_by == ""
    world.node = replace(world.node, bindings=(Binding("kubernetes", "box-2", NOW),))
    await carry_out(world, "evict", workloads=[work.id])


async def test_several_budgets_for_one_pod_are_told_for_what_they_are(world: KubernetesWorld) -> None:
    """The Eviction API answers 500 for ever."""
    await world.admin.budget("acme", "one", 0, app="db")
    await world.admin.budget("acme", "two", 0, app="db")
    work = await world.works(WorkClass.interruptible, labels={"app": "db"})
    await until(lambda: "2 PodDisruptionBudgets match it (acme/one, acme/two)" in _held(world, work), "both names")
    said = await perform(world, "evict", workloads=[work])
    assert (said.result, "more than one PodDisruptionBudget" in said.detail) == ("not_done", True)


async def test_a_pod_that_has_its_grace_is_ending_and_is_waited_for(world: KubernetesWorld) -> None:
    """Mutant: what was asked to end counts as gone. A finalizer keeps it, as a long grace would."""
    work = await world.works(WorkClass.graceful, finalizers=["test/keep"])
    assert (await carry_out(world, "evict", workloads=[work])).facts == {"ending": work}
    assert _held(world, work).startswith("it is ending, and has until")
    name = work.partition("/")[2].partition(":")[0]
    await world.admin.patch(f"/api/v1/namespaces/acme/pods/{name}", {"metadata": {"finalizers": None}})
    await until(lambda: not works_of(world), "it to be gone")


async def test_the_platforms_pods_are_no_customers_and_leave_last(world: KubernetesWorld) -> None:
    """Mutant: a node is taken off the list with a customer's pod on it."""
    await world.admin.pod("kube-system", "dns", "box-1")
    work = await world.works(WorkClass.uninterruptible)
    await until(lambda: len(works_of(world)) == 2, "both to be seen")
    seen = view(world)
    assert seen is not None
    told = sorted((w.id.partition("/")[0], w.work_class.value) for w in seen.workloads)
    assert told == [("acme", "uninterruptible"), ("kube-system", "infrastructure")]
    with pytest.raises(RefusedError, match="still runs acme/"):
        await perform(world, "leave_cluster")
    await carry_out(world, "evict", workloads=[work])
    await until(lambda: work not in works_of(world), "the customer's work to be gone")
    await carry_out(world, "leave_cluster")
    await until(lambda: not works_of(world), "the infrastructure to be gone")


async def test_since_when_a_pod_runs_is_told(world: KubernetesWorld) -> None:
    await world.works(WorkClass.interruptible)

    def began() -> list[datetime | None]:
        return [work.began for work in found.workloads] if (found := view(world)) is not None else []

    await until(lambda: None not in (began() or [None]), "its kubelet to take it on")
    assert all(abs(datetime.now(UTC) - at) < timedelta(minutes=5) for at in began() if at)


async def test_a_pod_made_anew_under_an_old_name_is_other_work(world: KubernetesWorld) -> None:
    """On a node without a kubelet: kwok ends a deleted pod by its name, at times after the new one has come.

    Mutant: work is known by its name.
    """
    await world.admin.node("box-2", boot="box-2-boot")
    elsewhere = replace(world.node, bindings=(Binding("kubernetes", "box-2", NOW),))
    path = "/api/v1/namespaces/acme/pods/anew"

    def works() -> list[str]:
        seen = world.scheduler.views().nodes.get("box-2")
        return [work.id for work in seen.workloads] if seen is not None else []

    await world.admin.pod("acme", "anew", "box-2", gpus=1)
    await until(works, "the first to be seen")
    (old,) = works()
    await world.admin.ask("DELETE", path, {"gracePeriodSeconds": 0})
    await world.admin.pod("acme", "anew", "box-2", gpus=1)
    await until(lambda: works() not in ([], [old]), "the second to be seen in its place")
    said = await world.scheduler.perform(operation("evict", elsewhere, workloads=[old]), elsewhere)
    assert said.result == "done"
    assert (await world.admin.get(path))["metadata"].get("deletionTimestamp") is None


async def test_a_node_that_joins_is_listed_before_its_kubelet_comes_and_done_when_it_is_ready(
    world: KubernetesWorld,
) -> None:
    await perform(world, "leave_cluster")
    assert (await perform(world, "join_cluster")).result == "done"
    assert await observe(world, "join_cluster") == "done"
    assert (await perform(world, "confirm_join")).result == "unknown"
    assert await observe(world, "confirm_join") == "not_done"
    assert await spec(world) == (True, ["hostler.dev/cordon"])
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    await world.admin.patch(f"{BOX}/status", {"status": {"conditions": [ready]}})  # its kubelet comes

    async def joined() -> bool:
        return await observe(world, "confirm_join") == "done"

    await until_asked(joined, "the node to be ready")


async def test_it_can_do_no_more_than_the_manifest_says(world: KubernetesWorld) -> None:
    work = await world.works(WorkClass.uninterruptible)
    name = work.partition("/")[2].partition(":")[0]
    assert (await world.api.get("/api/v1/secrets")).status == 403
    assert (await world.api.change("DELETE", f"/api/v1/namespaces/acme/pods/{name}", {})).status == 403
    assert (await world.api.get(f"/api/v1/namespaces/acme/pods/{name}/log")).status == 403
    assert (await world.api.change("POST", "/api/v1/namespaces/acme/pods", {"metadata": {"name": "x"}})).status == 403


def _members() -> Fleet:
    """A fleet whose pool is served in the cluster."""
    fleet = Fleet(configuration({"train": pool_document(target=1)}))
    fleet.put_node("n1", a_node("n1", domains=("rack:r1", "nvlink:d 1", "rail:7")))
    fleet.merge()
    return fleet


async def test_users_see_phase_place_and_health_on_the_node_and_only_changes_are_written(
    world: KubernetesWorld, control_plane: ControlPlane
) -> None:
    """Mutants: a condition is written again at each turn; another manager's condition goes with ours."""
    fleet, writes = _members(), list[None]()
    fleet.put_node("n1", replace(fleet.nodes["n1"], bindings=world.node.bindings))
    kubeconfig = load_kubeconfig(str(control_plane.kubeconfig("hostler")))
    async with Api(kubeconfig, lambda: writes.append(None)) as api:
        await _is_marked(world, NodeStatusWriter(world.scheduler, api, world.cache, lambda: fleet), writes)


async def _is_marked(world: KubernetesWorld, marker: NodeStatusWriter, writes: list[None]) -> None:
    await marker.turn()
    seen = await world.admin.get(BOX)
    ours = {key: value for key, value in seen["metadata"]["labels"].items() if key.startswith("hostler.dev/")}
    assert ours["hostler.dev/phase"] == "production"
    assert ours["hostler.dev/pool"] == "train"
    assert (ours["hostler.dev/nvlink-domain"], ours["hostler.dev/rail"]) == ("d-1", "7")
    told = {c["type"]: (c["status"], c["reason"]) for c in seen["status"]["conditions"]}
    assert told["HostlerHealthy"] == ("True", "NothingAils")
    assert told["HostlerActive"] == ("False", "Idle")
    assert told["Drained"] == ("False", "None")
    assert told["Ready"][0] == "True"
    await until(lambda: len(world.cache.nodes.items["box-1"].shown) == 6, "the conditions to be seen")
    before = len(writes)
    assert before
    changed = (await world.admin.patch(BOX, {"metadata": {"labels": {"another": "s"}}}))["metadata"]["resourceVersion"]
    await until(lambda: int(world.cache.nodes.items["box-1"].version) >= int(changed), "another's label to be seen")
    await marker.turn()
    await marker.turn()
    assert len(writes) == before


async def test_a_fault_shows_as_a_condition_with_its_reason_and_as_an_event(world: KubernetesWorld) -> None:
    fleet = _members()
    fault = Condition("c1", "gpu.fallen_off_bus", "n1", Severity.catastrophic, NOW, NOW, "remedy", "hostler")
    fleet.put_node("n1", replace(fleet.nodes["n1"], bindings=world.node.bindings, conditions=(fault,)))
    await NodeStatusWriter(world.scheduler, world.api, world.cache, lambda: fleet).turn()
    conditions = (await world.admin.get(BOX))["status"]["conditions"]
    told = next(c for c in conditions if c["type"] == "HostlerHealthy")
    assert (told["status"], told["reason"]) == ("False", "GpuFallenOffBus")
    events = (await world.admin.get("/api/v1/namespaces/default/events"))["items"]
    assert "HostlerHealthyGpuFallenOffBus" in [e["reason"] for e in events if e["involvedObject"]["name"] == "box-1"]


async def test_what_is_asked_for_on_a_node_becomes_an_intent_once_and_its_answer_stands_there(
    world: KubernetesWorld,
) -> None:
    """Mutants: it is asked anew at each turn; an unknown word is passed on; the request stays."""
    fleet, asked = _members(), dict[str, Intent]()
    fleet.put_node("n1", replace(fleet.nodes["n1"], bindings=world.node.bindings))

    async def ask(intent: Intent) -> Reply:
        first = next(iter(asked), intent.key)
        asked[intent.key] = intent
        return Reply(0, granted=intent.key == first, text="as you like")

    requester = Requester(world.scheduler, world.api, world.cache, lambda: fleet, ask)
    for word, answer in (
        ("force-reboot", "granted: as you like"),
        ("reboot", "refused: as you like"),
        ("fly", "no request"),
    ):
        notes = {"hostler.dev/request": word, "hostler.dev/request-reason": "it hangs"}
        await world.admin.patch(BOX, {"metadata": {"annotations": notes}}, manager="kubectl-annotate")
        await until(lambda: world.cache.nodes.items["box-1"].asked, "the request to be seen")
        async with asyncio.timeout(PATIENCE_S):
            while world.cache.nodes.items["box-1"].asked:  # who changed the Node meanwhile makes it answer anew
                await requester.turn()
                await asyncio.sleep(0.02)
        await requester.turn()
        said = (await world.admin.get(BOX))["metadata"]["annotations"]
        assert answer in said["hostler.dev/request-answer"]
        assert "hostler.dev/request" not in said
    assert [(i.verb, i.args, i.target, i.reason) for i in asked.values()] == [
        ("reboot", {"now": "true"}, "n1", "it hangs"),
        ("reboot", {}, "n1", "it hangs"),
    ]
    first = next(iter(asked.values()))
    assert first.person == "kubectl-annotate in cluster k1"
    assert first.bounds.pool == "train"


def _held(world: KubernetesWorld, work: str) -> str:
    seen = view(world)
    return next((w.held_by for w in seen.workloads if w.id == work), "") if seen is not None else ""


def _watches_pods(path: str) -> bool:
    return path.startswith("/api/v1/pods?") and "watch=" in path


async def test_who_came_while_the_watch_was_silent_is_shown_before_the_cordon_is_done(
    world: KubernetesWorld, control_plane: ControlPlane
) -> None:
    """Mutant: a cordon is done when it is written."""
    async with a_proxy(control_plane) as proxy:
        behind = control_plane.kubeconfig("proxied", "admin-token", proxy.url)
        async with Api(load_kubeconfig(str(behind)), lambda: None) as api:
            cache = ClusterCache(api, OWNER, Random(1).random, patience=Patience(landing_s=0.0))
            late = KubernetesWorld(KubernetesScheduler("k1", api, cache, OWNER), world.admin, api, cache)
            async with running(cache.run()):
                await until(lambda: not cache.lost, "the lists")
                proxy.mood = "stall"
                proxy.cut()
                began = len(proxy.asked)
                await until(lambda: any(_watches_pods(path) for path in proxy.asked[began:]), "a silent watch of pods")
                await world.works(WorkClass.uninterruptible)
                said = await perform(late, "cordon")
                assert said.result == "unknown"
                assert "does not show acme/" in said.detail
                assert await observe(late, "cordon") == "unknown"
                proxy.mood = ""
                proxy.cut()
                await until(lambda: works_of(late) and works_of(late) == works_of(world), "who came")
                assert await observe(late, "cordon") == "done"
