"""The copy of a cluster's objects stays true to a real API server, whatever happens, and misses no deletion."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from random import Random

import pytest

from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.reflector import ObjectKind, Patience, Reflector
from hostler.drivers.kubernetes.wire import KubeNode, read_node
from tests.contract.kubernetes_world import Admin, Proxy, a_proxy, an_admin, let_go, running, until, until_asked
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]

QUICK = Patience(silence_s=1.0, lost_s=0.3, brief_s=0.2, again_s=0.02, again_most_s=0.2)


class Copy:
    """A reflector of the nodes behind a proxy, and what it told: folded, that must be what it shows."""

    def __init__(self, admin: Admin, proxy: Proxy, api: Api) -> None:
        self.admin = admin
        self.proxy = proxy
        self.told: dict[str, KubeNode] = {}
        self.deleted: list[str] = []
        kind = ObjectKind("nodes", "/api/v1/nodes", read_node)
        self.reflector = Reflector(api, kind, self._heard, Random(1).random, QUICK)

    def _heard(self, before: KubeNode | None, after: KubeNode | None) -> None:
        if after is None:
            assert before is not None
            del self.told[before.key]
            self.deleted.append(before.key)
        else:
            self.told[after.key] = after

    async def is_true(self) -> None:
        """Waits until the view shows exactly the nodes that the API server lists, and has told as much."""

        async def listed() -> dict[str, str]:
            page = await self.admin.get("/api/v1/nodes")
            return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in page["items"]}

        async def same() -> bool:
            truth = await listed()
            shown = {name: node.version for name, node in self.reflector.items.items()}
            return shown == truth and not self.reflector.lost and self.told == self.reflector.items

        await until_asked(same, "the copy to show what is listed")


@pytest.fixture
async def copy(control_plane: ControlPlane) -> AsyncIterator[Copy]:
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(an_admin(control_plane))
        proxy = await stack.enter_async_context(a_proxy(control_plane))
        behind = control_plane.kubeconfig("proxied", "admin-token", proxy.url)
        api = await stack.enter_async_context(Api(load_kubeconfig(str(behind)), lambda: None))
        found = Copy(admin, proxy, api)
        await admin.nodes("r1", "r2", "r3", "r4")
        await stack.enter_async_context(running(found.reflector.run()))
        yield found
        for node in (await admin.get("/api/v1/nodes"))["items"]:
            await admin.delete(f"/api/v1/nodes/{node['metadata']['name']}")
    let_go()


async def test_a_list_comes_in_pages_and_then_every_change_is_followed(copy: Copy) -> None:
    """Mutant: only the first page is read."""
    copy.proxy.limit = "3"
    copy.proxy.cut()
    await copy.is_true()
    await copy.admin.node("r5")
    await copy.admin.delete("/api/v1/nodes/r2")
    await copy.admin.patch("/api/v1/nodes/r1", {"spec": {"unschedulable": True}})
    await until(lambda: copy.told["r1"].unschedulable and "r2" in copy.deleted, "the changes")
    await copy.is_true()


async def test_pages_are_put_together(copy: Copy) -> None:
    """Mutant: a page takes the place of the one before it."""
    await copy.is_true()
    copy.proxy.limit, copy.proxy.mood = "3", "gone"
    copy.proxy.cut()
    await until(lambda: any("continue=" in path for path in copy.proxy.asked), "a second page")
    copy.proxy.mood = ""
    await copy.is_true()
    assert copy.deleted == []
    assert copy.reflector.relists > 0


@pytest.mark.parametrize("mood", ["refuse", "stall", "gone", "torn", "error", "slow"])
async def test_what_is_deleted_while_the_way_is_broken_is_told(copy: Copy, mood: str) -> None:
    """Mutants: no synthetic deletes after a relist; a torn line is passed over; no watch for silence."""
    await copy.is_true()
    copy.proxy.mood = mood
    copy.proxy.cut()
    await copy.admin.delete("/api/v1/nodes/r1")
    await copy.admin.node("r6")
    if mood in ("refuse", "error", "slow"):  # in the others lists are read all the same
        await until(lambda: copy.reflector.lost, "the copy to be doubted")
    before = len(copy.proxy.asked)
    await until(lambda: len(copy.proxy.asked) > before + 1, "more attempts")
    copy.proxy.mood = ""
    if mood != "stall":  # that it is silent is found out by itself
        copy.proxy.cut()
    await copy.is_true()
    assert copy.deleted == ["r1"]


async def test_an_api_server_that_was_away_and_knows_the_past_no_more_is_listed_anew(
    copy: Copy, control_plane: ControlPlane
) -> None:
    """A real 410: the watch cache of a server that has just started begins after where we stood."""
    await copy.is_true()
    copy.proxy.mood = "refuse"
    copy.proxy.cut()
    await copy.admin.delete("/api/v1/nodes/r3")
    await asyncio.gather(
        *(copy.admin.patch("/api/v1/nodes/r4", {"metadata": {"labels": {"n": str(n)}}}) for n in range(5))
    )
    control_plane.stop_api()
    await until(lambda: copy.reflector.lost, "the copy to be doubted")
    control_plane.start_api()
    copy.proxy.mood = ""
    await copy.is_true()
    assert copy.deleted == ["r3"]


async def test_nothing_counts_before_a_whole_list_was_read(copy: Copy) -> None:
    """Mutant: synced from the first page on."""
    copy.proxy.limit = "1"
    api = copy.reflector._api  # noqa: SLF001 - another reflector on the same way
    fresh: Reflector[KubeNode] = Reflector(
        api, ObjectKind("nodes", "/api/v1/nodes", read_node), lambda _before, _after: None, Random(2).random, QUICK
    )
    copy.proxy.mood = "error"
    async with running(fresh.run()):
        await until(lambda: "not been listed yet: HTTP 500" in fresh.lost, "an answer that is no list")
        assert fresh.items == {}
        copy.proxy.mood = ""
        await until(lambda: not fresh.lost, "it to be listed")
        assert len(fresh.items) == 4
