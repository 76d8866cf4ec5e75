"""Joining a real cluster by a token: it lets one node in, once, for a while, and tells nobody else anything."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.agent import kubelet as agents
from hostler.core.state.bootstrap_kubeconfig import bootstrap_kubeconfig
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import GONE, Operation
from hostler.core.state.operations import ConfirmJoin, JoinCluster, LeaveCluster
from hostler.drivers.kubernetes.csr_approver import CsrApprover
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.ports import RefusedError, UnreachableError
from tests.contract.kubelet import REQUESTS, UNKNOWN, Kubelet
from tests.contract.kubernetes_world import running, until, until_asked
from tests.contract.scheduler_world import OWNER, KubernetesWorld, kubernetes_world, operation
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
DENIED = "certificates asked for with its token were denied"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
async def world(control_plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    async with kubernetes_world(control_plane) as found:
        await found.admin.delete("/api/v1/nodes/box-1")
        await until(lambda: "box-1" not in found.cache.nodes.items, "the Node's end to be seen")
        yield found
        await found.admin.delete("/api/v1/nodes/box-1")
        await found.admin.ask("DELETE", REQUESTS, {})
        for name in await tokens(found):
            await found.admin.delete(f"{SECRETS}/{name}")


async def tokens(world: KubernetesWorld) -> list[str]:
    """The Secrets of tokens that there are."""
    found = (await world.admin.get(SECRETS))["items"]
    return [one["metadata"]["name"] for one in found if one["type"] == "bootstrap.kubernetes.io/token"]


async def issued(world: KubernetesWorld, ttl_s: float = 600) -> tuple[Operation, JoinOffer]:
    """A join that has begun, and what it offers the node."""
    join = operation("join_cluster", world.node, token_ttl_s=ttl_s)
    assert (await world.scheduler.perform(join, world.node)).result == "done"
    offer = world.scheduler.joining.offer("n1")
    assert offer is not None
    return join, offer


def confirming(join: Operation) -> Operation:
    """The step behind it: the kubelet has come, and the token is over."""
    return replace(join, id=f"{join.id}-confirmed", act=ConfirmJoin(600))


def kubeconfig_of(offer: JoinOffer, folder: Path) -> Path:
    """The bootstrap kubeconfig as the agent lays it down."""
    given = msgspec.convert(msgspec.to_builtins(offer), agents.KubeletJoinOffer)
    assert agents.invite(folder, bootstrap_kubeconfig(given.cluster, given.server, given.ca, given.token))
    return folder / "bootstrap-kubelet.conf"


async def test_a_kubelet_joins_by_the_token_of_its_node_and_the_token_is_over(
    world: KubernetesWorld, tmp_path: Path
) -> None:
    """Mutants: the token outlives the join; a second request of the same bearer is signed too."""
    join, offer = await issued(world)
    ours = await world.admin.get(f"{SECRETS}/bootstrap-token-{offer.token[:6]}")
    assert ours["metadata"]["labels"] == {"hostler.dev/node": "n1", "hostler.dev/operation": join.id}
    config, box = kubeconfig_of(offer, tmp_path), Kubelet(tmp_path, "box-1")
    async with running(CsrApprover(world.api, world.scheduler.joining).run()):
        await box.join(config, "first")
        async with box.bootstrapping(config) as bearer:  # as long as it is there it lets nobody else in
            assert (await box.ask(bearer, "second")).status == 201
            status = await box.answer(bearer, "second")
            assert "its token is used" in json.dumps(status), status
        confirm = confirming(join)
        assert (await world.scheduler.observe(confirm, world.node)).result == "not_done"  # the token is still there
        assert (await world.scheduler.perform(confirm, world.node)).result == "done"
        assert (await world.scheduler.observe(confirm, world.node)).result == "done"
    assert await tokens(world) == []
    assert world.scheduler.joining.offer("n1") is None
    async with box.bootstrapping(config) as bearer:  # the API server remembers whom it has just let in for 10 s
        late = await box.ask(bearer, "third")
    await CsrApprover(world.api, world.scheduler.joining).turn()
    if late.status != 401:
        seen = await world.admin.get(f"{REQUESTS}/third")
        assert not seen["status"].get("conditions")
    seen = await world.admin.get("/api/v1/nodes/box-1")
    assert [taint["key"] for taint in seen["spec"]["taints"]][:1] == ["hostler.dev/cordon"]


async def test_the_api_server_knows_whose_token_it_is_and_it_opens_nothing_else(
    world: KubernetesWorld, tmp_path: Path
) -> None:
    _, offer = await issued(world)
    box = Kubelet(tmp_path, "box-1")
    async with box.bootstrapping(kubeconfig_of(offer, tmp_path)) as bearer:
        await box.let_in(bearer)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await bearer.change("POST", WHO, body)
        who = msgspec.json.decode(answer.body)["status"]["userInfo"]
        assert who["username"] == f"system:bootstrap:{offer.token[:6]}"
        assert {"system:bootstrappers:hostler", "system:bootstrappers:hostler:box-1"} <= set(who["groups"])
        for path in ("/api/v1/nodes", "/api/v1/nodes/box-1", SECRETS, "/api/v1/pods"):
            assert (await bearer.get(path)).status == 403


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"name": "box-2"}, "its token is for system:node:box-1"),
        ({"groups": "system:masters"}, "its token is for system:node:box-1"),
    ],
)
async def test_what_another_node_would_be_is_not_signed(
    world: KubernetesWorld, tmp_path: Path, asked: dict[str, str], why: str
) -> None:
    """The node's records have it. Mutants: the name that is asked for is not read; nobody is told. Kubernetes' own
    approver is at work too, and signs nothing."""
    join, offer = await issued(world)
    thief = Kubelet(tmp_path, "box-1")
    async with (
        thief.bootstrapping(kubeconfig_of(offer, tmp_path)) as bearer,
        running(CsrApprover(world.api, world.scheduler.joining).run()),
    ):
        await thief.let_in(bearer)
        answer = await thief.ask(bearer, "theft", **asked)
        if answer.status == 201:  # the API server itself refuses some
            status = await thief.answer(bearer, "theft")
            assert why in json.dumps(status)
            assert "certificate" not in status
            waits = await world.scheduler.perform(confirming(join), world.node)
            assert f"its kubelet has not said that it is ready; {DENIED}: " in waits.detail
            assert why in waits.detail
        else:
            assert answer.status in (400, 403, 422), answer


async def test_requests_of_others_are_left_to_others(world: KubernetesWorld, tmp_path: Path) -> None:
    """Mutant: whatever the signer is asked for is decided."""
    await issued(world)
    admin = Kubelet(tmp_path, "box-1")
    assert (await admin.ask(world.admin.api, "theirs")).status == 201
    await CsrApprover(world.api, world.scheduler.joining).turn()
    seen = await world.admin.get(f"{REQUESTS}/theirs")
    said = [one["reason"] for one in seen["status"].get("conditions", [])]
    assert set(said) <= {"AutoApproved"}  # Kubernetes' own approver lets an admin have it


async def test_a_join_that_is_given_up_undone_or_taken_over_leaves_no_old_token(
    world: KubernetesWorld, tmp_path: Path
) -> None:
    """Mutants: a revoked join's token stays; who takes over waits for a kubelet whose token it cannot know."""
    join, offer = await issued(world)
    assert (await world.scheduler.perform(join, world.node)).result == "done"
    assert world.scheduler.joining.offer("n1") == offer  # asked again, it is the same
    assert (await world.scheduler.observe(join, world.node)).result == "done"
    assert (await world.scheduler.perform(confirming(join), world.node)).result == "unknown"
    heir = KubernetesScheduler("k1", world.api, world.cache, OWNER)
    assert (await heir.observe(join, world.node)).result == "not_done"
    for ask in (heir.perform, heir.observe):
        lost = await ask(confirming(join), world.node)
        assert (lost.result, lost.facts) == ("failed", {GONE: "join_token"})
    assert (await heir.perform(join, world.node)).result == "done"
    assert (await heir.observe(confirming(join), world.node)).result == "not_done"
    new = heir.joining.offer("n1")
    assert new is not None
    assert new.token[:6] == offer.token[:6]
    assert new.token != offer.token
    assert len(await tokens(world)) == 1
    await heir.revoke(join, world.node)
    assert await tokens(world) == []
    assert heir.joining.offer("n1") is None
    async with Kubelet(tmp_path, "box-1").bootstrapping(kubeconfig_of(new, tmp_path)) as bearer:
        await until_asked(lambda: _is_refused(bearer), "the API server to see that the token is gone")
    await heir.perform(join, world.node)
    assert len(await tokens(world)) == 1
    undo = replace(join, id="n1-o99", act=LeaveCluster())
    assert (await heir.perform(undo, world.node)).result == "done"
    assert await tokens(world) == []


async def _is_refused(bearer: Api) -> bool:
    return (await bearer.get(REQUESTS)).status == UNKNOWN


class CutOff:
    """The API of a process that dies at one of its writes, before or after the server has taken it."""

    def __init__(self, api: Api, writes: int, *, after: bool) -> None:
        self._api, self._left, self._after = api, writes, after
        self.endpoint = api.endpoint

    def at(self, _turn: object) -> "CutOff":
        return self

    async def get(self, path: str) -> Any:
        return await self._api.get(path)

    async def change(self, *words: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise UnreachableError("it died")
        answer = await self._api.change(*words, **more)
        if self._left == 0:
            raise UnreachableError("it died")
        return answer


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("listed", [False, True])
async def test_a_node_that_enters_at_its_boot_is_cordoned_before_anything_lets_it_in(
    world: KubernetesWorld, listed: bool, writes: int, after: bool
) -> None:
    """Mutants: the token comes first; a Node that is listed already is left open; a cut leaves it half done."""
    guest = replace(world.node, assignment=None)
    if listed:
        await world.admin.node("box-1")
    mint = operation("issue_join_token", guest, cluster="k1", token_ttl_s=600.0)
    dying = KubernetesScheduler("k1", CutOff(world.api, writes, after=after), world.cache, OWNER)  # type: ignore[arg-type]
    with pytest.raises(UnreachableError):
        await dying.perform(mint, guest)
    if (writes, after) == (1, False):
        assert not await is_shut(world)
    elif not listed:  # of one that others write to as well the first write may have been refused
        assert await is_shut(world)
    if await tokens(world):
        assert await is_shut(world)
    heir = KubernetesScheduler("k1", world.api, world.cache, OWNER)
    assert (await heir.observe(mint, guest)).result == "not_done"
    assert (await heir.perform(mint, guest)).result == "done"
    assert (await heir.observe(mint, guest)).result == "done"
    assert await is_shut(world)
    assert len(await tokens(world)) == 1
    offer = heir.joining.offer("n1")
    assert offer is not None
    assert offer.taint == f"hostler.dev/cordon={OWNER}:NoSchedule"
    await world.admin.delete("/api/v1/nodes/box-1")
    assert (await heir.observe(mint, guest)).result == "not_done"


async def test_one_that_serves_there_is_left_to_its_plan(world: KubernetesWorld) -> None:
    """Mutant: each boot cordons it, and nobody's plan frees it."""
    await world.admin.node("box-1")
    mint = operation("issue_join_token", world.node, cluster="k1", token_ttl_s=600.0)
    assert (await world.scheduler.perform(mint, world.node)).result == "done"
    assert not await is_shut(world)
    assert (await world.scheduler.observe(mint, world.node)).result == "done"


async def is_shut(world: KubernetesWorld) -> bool:
    answer = await world.admin.api.get("/api/v1/nodes/box-1")
    return "hostler.dev/cordon" in str(msgspec.json.decode(answer.body).get("spec", {}).get("taints"))


async def test_a_token_expires_by_itself(world: KubernetesWorld, tmp_path: Path) -> None:
    """The API server refuses an expired token although nobody is there to delete it."""
    _, offer = await issued(world, ttl_s=3)
    box = Kubelet(tmp_path, "box-1")
    async with box.bootstrapping(kubeconfig_of(offer, tmp_path)) as bearer:
        await until(lambda: datetime.now(UTC) > offer.expires, "its end")
        assert (await bearer.get(REQUESTS)).status == 401
    assert world.scheduler.joining.offer("n1") is None


async def test_without_the_right_to_issue_tokens_it_is_said_and_without_a_ttl_none_is_wanted(
    world: KubernetesWorld, control_plane: ControlPlane
) -> None:
    """Mutant: the join waits for a kubelet that nothing lets in."""
    async with Api(load_kubeconfig(str(control_plane.kubeconfig("alice"))), lambda: None) as stranger:
        poor = KubernetesScheduler("k1", stranger, world.cache, OWNER)
        join = operation("join_cluster", world.node, token_ttl_s=600)
        with pytest.raises(RefusedError, match="join_token_ttl_s"):
            await poor.joining.issue(join, world.node, "box-1")
        await poor.joining.issue(replace(join, act=JoinCluster()), world.node, "box-1")
        assert poor.joining.offer("n1") is None


async def test_neither_the_offer_nor_its_log_lines_show_the_secret(
    world: KubernetesWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    join, offer = await issued(world)
    told: list[Any] = [repr(offer), caplog.text, [record.__dict__ for record in caplog.records]]
    assert "join_token_issued" in caplog.text
    assert offer.token.partition(".")[2] not in str(told)
    assert offer.token not in str((await world.scheduler.perform(join, world.node)).detail)
