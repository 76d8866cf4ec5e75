"""A real Kubernetes to try the driver on: what its admin does to it, and a proxy on the way that misbehaves."""

import asyncio
import contextlib
import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml
from aiohttp import web

from hostler.drivers.kubernetes.kube_api import MERGE_PATCH, Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.rbac import JOINING
from hostler.drivers.kubernetes.rbac import RIGHTS as WANTED
from tests.controlplane.plane import ControlPlane

PATIENCE_S = 60.0
FAKE = {"kwok.x-k8s.io/node": "fake"}


async def until(holds: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - another process rings no bell
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"in vain for: {what}") from None


async def until_asked(asks: Callable[[], Awaitable[object]], what: str) -> None:
    """The same of what has to be asked for."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await asks():  # noqa: ASYNC110 - another process rings no bell
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"in vain for: {what}") from None


class Admin:
    """Acts on the cluster as a person with all rights."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        answer = await self.api.change(method, path, body, kind)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body[:500]!r}"
        return msgspec.json.decode(answer.body)

    async def get(self, path: str) -> Any:
        answer = await self.api.get(path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.body[:300]!r}"
        return msgspec.json.decode(answer.body)

    async def node(self, name: str, gpus: int = 8, boot: str = "", **labels: str) -> None:
        """A node with a kubelet that says it is ready: kwok, or with a boot id one that says this once and no more.

        Of such a node nobody but the test writes the status.
        """
        much = {"cpu": "128", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
        status: dict[str, Any] = {"allocatable": much, "capacity": much}
        if boot:
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            status |= {"nodeInfo": {"bootID": boot}, "conditions": [ready]}
        meta = {"name": name, "annotations": {} if boot else FAKE, "labels": labels}
        await self.ask("POST", "/api/v1/nodes", {"kind": "Node", "metadata": meta, "status": status})

    async def nodes(self, *names: str) -> None:
        await asyncio.gather(*(self.node(name) for name in names))

    async def delete(self, path: str) -> None:
        answer = await self.api.change("DELETE", path, {})
        assert answer.status in (200, 202, 404), answer

    async def patch(self, path: str, body: Any, manager: str = "kubectl") -> Any:
        answer = await self.api.change("PATCH", path, body, MERGE_PATCH, {"fieldManager": manager})
        assert answer.status == 200, f"{path}: {answer.status} {answer.body[:500]!r}"
        return msgspec.json.decode(answer.body)

    async def space(self, name: str) -> None:
        """A namespace, where there is none of that name."""
        answer = await self.api.change("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert answer.status in (201, 409), answer

    async def clear(self, *spaces: str) -> None:
        """No node, and in these namespaces no pod and no budget, is left."""
        for space in spaces:
            await self.ask("DELETE", f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets", {})
            await self.ask("DELETE", f"/api/v1/namespaces/{space}/pods", {"gracePeriodSeconds": 0})
        await self.ask("DELETE", "/api/v1/nodes", {})

    async def pod(self, space: str, name: str, node: str, gpus: int = 0, **meta: Any) -> Any:
        """A pod that is bound to the node already, as if its scheduler had put it there."""
        asks = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
        spec = {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i", **asks}],
        }
        body = {"metadata": {"name": name, **meta}, "spec": spec}
        return await self.ask("POST", f"/api/v1/namespaces/{space}/pods", body)

    async def begun(self, space: str, name: str) -> None:
        """Until a kubelet has started the pod: before that the Eviction API asks no budget."""

        async def so() -> bool:
            return bool((await self.get(f"/api/v1/namespaces/{space}/pods/{name}"))["status"]["phase"] != "Pending")

        await until_asked(so, f"{space}/{name} to begin")

    async def budget(self, space: str, name: str, least: int, **match: str) -> None:
        spec = {"minAvailable": least, "selector": {"matchLabels": match}}
        where = f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"
        await self.ask("POST", where, {"metadata": {"name": name}, "spec": spec})


RIGHTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"
CHECKING = RIGHTS.with_name("checks.yaml")
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ServiceAccount": "/api/v1/namespaces/{space}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{space}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{space}/rolebindings",
}


async def as_hostler(plane: ControlPlane, admin: Admin) -> Path:
    """The kubeconfig of the service account of our own manifest, with exactly the rights that stand there, in force."""
    made = False
    for document in (one for file in (RIGHTS, CHECKING) for one in yaml.safe_load_all(file.read_text())):
        place = PLACES[document["kind"]].format(space=document["metadata"].get("namespace", ""))
        answer = await admin.api.change("POST", place, document)
        assert answer.status in (201, 409), answer
        made = made or answer.status == 201
    account = "/api/v1/namespaces/hostler/serviceaccounts/hostler-controller/token"
    token = await admin.ask("POST", account, {"spec": {"expirationSeconds": 3600}})
    kubeconfig = plane.kubeconfig("hostler", token["status"]["token"])
    if made:
        async with Api(load_kubeconfig(str(kubeconfig)), lambda: None) as api:
            await until_asked(lambda: _may_all(Admin(api)), "the rights that were just granted")
    return kubeconfig


async def _may_all(account: Admin) -> bool:
    """Whether the API server has taken over the rules, which it does a moment after they are written."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    reviews = await asyncio.gather(*(account.ask("POST", path, right.review()) for right in (*WANTED, *JOINING)))
    return all(review["status"]["allowed"] for review in reviews)


@asynccontextmanager
async def an_admin(plane: ControlPlane) -> AsyncIterator[Admin]:
    async with Api(load_kubeconfig(str(plane.kubeconfig("admin"))), lambda: None) as api:
        yield Admin(api)


class Proxy:
    """On the way to the API server. What it does to requests that begin is `mood`; `cut` ends what is under way.

    Moods: "" passes on, "refuse" closes, "stall" begins watches and says no more, "gone" answers watches with 410,
    "torn" ends each watch in the middle of its next line, "error" answers 500, "slow" answers 429 with Retry-After.
    `limit` makes pages smaller than they were asked for.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.mood = ""
        self.limit = ""
        self.asked: list[str] = []
        self._open: set[asyncio.Task[Any]] = set()
        self.url = ""

    def cut(self) -> None:
        for task in self._open:
            task.cancel()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            return await self._answer(request)
        finally:
            self._open.discard(task)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        watches = "watch" in request.query
        match self.mood:
            case "refuse":
                assert request.transport is not None
                request.transport.abort()
                raise asyncio.CancelledError
            case "stall" if watches:
                response = web.StreamResponse()
                await response.prepare(request)
                await asyncio.Event().wait()
            case "gone" if watches:
                return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
            case "error":
                return web.json_response({"kind": "Status", "code": 500, "message": "etcd leader changed"}, status=500)
            case "slow":
                return web.json_response({"code": 429}, status=429, headers={"Retry-After": "1"})
            case _:
                pass
        return await self._pass_on(request, tears=watches and self.mood == "torn")

    async def _pass_on(self, request: web.Request, *, tears: bool) -> web.StreamResponse:
        query = dict(request.query)
        if self.limit and query.get("limit"):
            query["limit"] = self.limit
        headers = {k: v for k, v in request.headers.items() if k in ("Authorization", "Content-Type")}
        async with (
            aiohttp.ClientSession(auto_decompress=True) as session,
            session.request(
                request.method,
                f"{self._target}{request.path}",
                params=query,
                data=await request.read(),
                headers=headers,
                ssl=False,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as answer,
        ):
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                if tears:
                    await response.write(piece[: len(piece) // 2])
                    assert request.transport is not None
                    request.transport.abort()
                    raise asyncio.CancelledError
                await response.write(piece)
            await response.write_eof()
            return response


@asynccontextmanager
async def a_proxy(plane: ControlPlane) -> AsyncIterator[Proxy]:
    """A proxy to the plane's API server, over plain HTTP."""
    proxy = Proxy(plane.url)
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", proxy.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield proxy
    finally:
        proxy.cut()
        await runner.cleanup()


@asynccontextmanager
async def running(*work: Any) -> AsyncIterator[None]:
    """The coroutines run inside, and are ended outside."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def let_go() -> None:
    """Connections whose other end was killed are collected here, without the warning that they were not closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
