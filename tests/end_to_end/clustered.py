"""A served cell beside a real Kubernetes, with machines: emulated servers, each with its BMC and the real agent."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import aiohttp

from hostler.agent.main import AgentSettings
from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.emulated.emulated_server import EmulatedHost, h100
from tests.contract.kubelet import Kubelet
from tests.contract.kubernetes_world import Admin, as_hostler, running
from tests.controlplane.plane import WORKS, ControlPlane
from tests.end_to_end.processes import HOSTLER, answers, end, free_port, spawn

POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
CLUSTER = "k1"
PATIENCE_S = 60.0
FASTER = 60.0
"""Machines boot and check themselves so many times faster than real ones."""

THREADS = 512
"""Each agent blocks some."""

LAB = {"time_scale": "60", "brake": "{disruptions: 30, percent: 2, window_s: 3600}", "agent_silence_s": "12"}
SKUS = "skus:\n  h100: {gpus: 8}\n"


def now() -> datetime:
    return datetime.now(UTC)


class Clustered:
    """The cell (`ask`, `read`, `until`), its machines by node, and the cluster's admin. A node's Node has its name."""

    def __init__(self, folder: Path, plane: ControlPlane, admin: Admin, session: aiohttp.ClientSession) -> None:
        self.admin = admin
        self.hosts: dict[str, EmulatedHost] = {}
        self._folder = folder
        self._plane = plane
        self._session = session
        self._port = free_port()
        self.server = f"http://127.0.0.1:{self._port}"
        self.operator = folder / "operator"
        self._serving: Any = None
        self._kubelets: dict[str, asyncio.Task[None]] = {}

    # --- the cell ---

    async def start(self) -> None:
        """Serve the cell; return when it answers."""
        clusters = ["--cluster", f"{CLUSTER}={await as_hostler(self._plane, self.admin)}@x"]
        documents = [word for name in ("policy.yaml", "pools.yaml") for word in ("--config", str(self._folder / name))]
        data = ["--data", str(self._folder / "data"), "--listen", f"127.0.0.1:{self._port}"]
        self._serving = await spawn(HOSTLER, "serve", *data, *clusters, *documents, log=self._folder / "log")
        try:
            await answers(self._session, f"{self.server}/readyz", PATIENCE_S, self._serving)
        except (AssertionError, TimeoutError) as why:
            raise AssertionError(f"{why}\n{(self._folder / 'log').read_text()[-2_000:]}") from None

    async def stop(self) -> None:
        """The cell is served no more."""
        if self._serving is not None:
            await end(self._serving)

    async def leave(self) -> None:
        """Leave nothing of it running."""
        for kubelet in self._kubelets.values():
            kubelet.cancel()
        await asyncio.gather(*self._kubelets.values(), return_exceptions=True)
        await self.stop()

    async def ask(self, verb: str, node: str, *, grants: bool = True, **args: Any) -> Any:
        """Ask for an act on a node, as an operator."""
        body = {"reason": "test", "act": args}
        return await self._post(f"/v1/nodes/{node}/{verb}", body, grants=grants)

    async def intend(self, verb: str, target: str, **args: Any) -> Any:
        return await self._post("/v1/intents", {"act": {"verb": verb, **args}, "target": target, "reason": "test"})

    async def activate(self, documents: dict[str, str]) -> Any:
        """Have this configuration in force."""
        return await self._post("/v1/config", {"documents": documents, "reason": "test"})

    async def read(self, path: str) -> Any:
        async with self._session.get(f"{self.server}{path}", headers=self._headers()) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def node(self, node: str) -> Any:
        return (await self.read(f"/v1/nodes/{node}"))["node"]

    async def history(self, node: str) -> list[Any]:
        """Returns the node's records, oldest first."""
        return list(reversed((await self.read(f"/v1/nodes/{node}/history?limit=200"))["items"]))

    async def until(self, words: str, path: str) -> None:
        """Until what stands there says these words."""
        await self.become(path, lambda seen: words in json.dumps(seen), words)

    async def waits(self, node: str, words: str) -> None:
        """Until the node says that it waits for this."""
        await self.until(words, f"/v1/nodes/{node}")

    async def become(self, path: str, holds: Callable[[Any], object], what: str) -> Any:
        seen: Any = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds(seen := await self.read(path)):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
        except TimeoutError:
            log = (self._folder / "log").read_text()[-2_000:]
            raise AssertionError(f"in vain for: {what}\n{_shortly(seen)}\n{log}") from None
        return seen

    async def ended(self, node: str, plan: str, times: int = 1) -> tuple[str, str]:
        """How the node's plan of this name ended and why, once it has (so many of them)."""
        found: list[tuple[str, str]] = []

        def over(history: Any) -> bool:
            names = {
                r["event"]["plan"]["id"]: r["event"]["plan"]["name"] for r in history["items"] if _is(r, "recorded")
            }
            ends = [r["event"] for r in reversed(history["items"]) if _is(r, "ended")]
            found[:] = [(one["result"], one["reason"]) for one in ends if names.get(one["plan"]) == plan]
            return len(found) >= times

        await self.become(f"/v1/nodes/{node}/history?limit=200", over, f"{plan} of {node} to end")
        return found[times - 1]

    async def plans(self, node: str) -> list[str]:
        """The names of the plans that were recorded for the node, oldest first."""
        return self.planned(await self.read(f"/v1/nodes/{node}/history?limit=200"))

    def planned(self, history: Any) -> list[str]:
        """The same, of a page of history."""
        return [r["event"]["plan"]["name"] for r in reversed(history["items"]) if _is(r, "recorded")]

    async def last_words(self, node: str, kind: str, facts: dict[str, str]) -> None:
        """The node's agent tells this, and is gone without a word; the machine goes on."""
        self.hosts[node].go_silent()
        token = (self._folder / "agents" / node / "token").read_text()
        seen = {"node": node, "kind": kind, "source": "agent", "spool": "last", "sequence": 1, "facts": facts}
        boot = self.hosts[node].boot_id
        body = {"node": node, "spool": "last", "boot_id": boot, "observations": [{**seen, "boot_id": boot}]}
        headers = {"Authorization": f"Bearer {token}"}
        path = f"{self.server}/v1/agent/observations"
        async with self._session.post(path, headers=headers, json=body) as answer:
            assert answer.status == 200, await answer.text()

    # --- the cluster ---

    async def spec(self, node: str) -> tuple[bool, list[str]]:
        """Whether the Node is unschedulable, and the keys of its taints that are not the platform's own."""
        seen = (await self.admin.get(f"/api/v1/nodes/{node}"))["spec"]
        taints = [t["key"] for t in seen.get("taints", []) if not t["key"].startswith("node.kubernetes.io/")]
        return bool(seen.get("unschedulable", False)), taints

    async def shut(self, node: str, *, shut: bool = True) -> None:
        """Until the Node is unschedulable, or is no more."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.spec(node))[0] is not shut:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def watching(self, node: str) -> AsyncIterator[list[bool]]:
        """Whether the Node was unschedulable after each change from now on: no moment is too short to be seen."""
        listed = await self.admin.get("/api/v1/nodes")
        query = {"resourceVersion": listed["metadata"]["resourceVersion"], "fieldSelector": f"metadata.name={node}"}
        told: list[bool] = []

        async def follow() -> None:
            async with self.admin.api.watch("/api/v1/nodes", query, 10 * PATIENCE_S) as lines:
                async for line in lines:
                    change = json.loads(line)
                    if change["type"] == "MODIFIED":
                        told.append(bool(change["object"]["spec"].get("unschedulable", False)))

        async with running(follow()):
            yield told

    async def pods(self, space: str) -> list[Any]:
        return list((await self.admin.get(f"/api/v1/namespaces/{space}/pods"))["items"])

    # --- machines ---

    def spooled(self, node: str) -> str:
        """Returns the observations on the agent's disk."""
        path = self._folder / "agents" / node / "spool.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return " ".join(bytes(body).decode() for (body,) in db.execute("SELECT body FROM rows"))

    def enter(self, kubelet: Kubelet, kubeconfig: str) -> None:
        """Wait until its kubelet is let into the cluster, or has to go."""
        if (before := self._kubelets.pop(kubelet.name, None)) is not None:
            before.cancel()
        if kubeconfig:
            entering = self._enter(kubelet, kubeconfig)
            self._kubelets[kubelet.name] = asyncio.get_running_loop().create_task(entering)

    async def _enter(self, kubelet: Kubelet, kubeconfig: str) -> None:
        config = kubelet.folder / "bootstrap-kubelet.conf"
        config.write_text(kubeconfig)
        config.chmod(0o600)
        own = await kubelet.join(config, f"csr-{kubelet.name}-{now():%H%M%S%f}")
        await kubelet.live(own)

    async def _post(self, path: str, body: Any, *, grants: bool = True) -> Any:
        async with self._session.post(f"{self.server}{path}", headers=self._headers(), json=body) as answer:
            said = await answer.text()
            assert (answer.status == 200) is grants, said
            return json.loads(said)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.operator.read_text()}"}


def _shortly(seen: Any) -> str:
    """A node's page without what never matters, else the beginning of what was read."""
    node = seen.get("node") if isinstance(seen, dict) else None
    if not node:
        return json.dumps(seen)[:4_000]
    plan = node["plan"] and {name: node["plan"][name] for name in ("name", "index", "state", "rule")}
    conditions = [(c["type"], c["evidence"][-1]["text"][:200]) for c in node["conditions"]]
    told = {"phase": node["phase"], "plan": plan, "conditions": conditions, "attempts": node["attempts"]}
    return json.dumps({**told, "waiting": node["waiting"], "operation": node["operation"]}, indent=1)


def _is(record: Any, what: str) -> bool:
    return bool(record["name"] == f"plan_{what}")


def policy(lines: dict[str, str]) -> str:
    """The default policy, faster, and with these lines of its own."""
    text = POLICY.read_text()
    for name, value in {**LAB, **lines}.items():
        text, found = re.subn(rf"(?m)^( +){re.escape(name)}: .*$", rf"\g<1>{name}: {value}", text)
        assert found == 1, name
    return text


class Machines:
    """Emulated servers behind their BMCs; an async context manager, inside which they live."""

    def __init__(self, folder: Path, world: Clustered, tokens: TokenStore) -> None:
        self._folder = folder
        self._world = world
        self._tokens = tokens
        self._farm = Farm(now, credentials=("hostler", "secret"))
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._farm)
        await self._stack.enter_async_context(running(self._turn()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(host.stop() for host in self._world.hosts.values()), return_exceptions=True)
        await self._stack.aclose()

    async def make(self, node: str, **spec: Any) -> dict[str, Any]:
        """A server, and what an inventory says of it."""
        state = self._folder / "agents" / node
        state.mkdir(parents=True)
        token = state / "token"
        token.write_text(self._tokens.create(Grant(node, Role.agent, node=node)))
        token.chmod(0o600)
        token.chmod(0o600)
        settings = AgentSettings(
            node=node,
            server=self._world.server,
            token_file=token,
            state_dir=state,
            kernel_log=str(state / "kmsg"),
            allow_actions=True,
        )
        host = self._world.hosts[node] = EmulatedHost(node, h100(f"S-{node}"), settings, now, FASTER)
        kubelet = Kubelet(state, node)
        host.kubelet = lambda kubeconfig: self._world.enter(kubelet, kubeconfig)
        bmc = await self._farm.serve(Service([host.machine]))
        return {"id": node, "sku": "h100", "serial": f"S-{node}", "bmc": bmc, **spec}

    async def _turn(self) -> None:
        while True:
            for host in self._world.hosts.values():
                host.machine.advance(now())
            await asyncio.sleep(0.05)


@asynccontextmanager
async def clustered(
    folder: Path,
    admin: tuple[ControlPlane, Admin],
    pools: str,
    members: dict[str, dict[str, Any]],
    lines: dict[str, str],
) -> AsyncIterator[Clustered]:
    """The members (node → its spec) in production; who has no pool is a spare and in no cluster.

    `pools` is the section's body; `lines` are of the policy.
    """
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    plane, people = admin
    data = folder / "data"
    data.mkdir(mode=0o700)
    (folder / "pools.yaml").write_text(f"{SKUS}pools:\n{pools}")
    (folder / "policy.yaml").write_text(policy(lines))
    bmc = data / "bmc.json"
    bmc.write_text(json.dumps({"http://127.0.0.0/8": {"username": "hostler", "password": "secret"}}))
    bmc.chmod(0o600)
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        world = Clustered(folder, plane, people, session)
        world.operator.write_text(store.create(Grant("ann", Role.operator)))
        stack.push_async_callback(world.leave)
        machines = await stack.enter_async_context(Machines(folder, world, store))
        specs = [await machines.make(node, **spec) for node, spec in members.items()]
        store.close()
        await people.nodes(*(node for node, spec in members.items() if "pool" in spec))
        await world.start()
        await world._post("/v1/adopt", {"nodes": specs, "reason": "test"})  # noqa: SLF001 - its own world
        for host in world.hosts.values():
            host.wake()
        await stand(world, members)
        yield world


async def stand(world: Clustered, members: Iterable[str]) -> None:
    """Until all of them are in production and heard."""

    def all_stand(seen: Any) -> bool:
        found = {one["id"]: one for one in seen["items"]}
        return all(found[node]["phase"] == "production" for node in members)

    await world.become("/v1/nodes?limit=200", all_stand, "all nodes in production")


async def job(admin: Admin, space: str, name: str, pods: int, **annotations: str) -> None:
    """An Indexed Job of so many pods, each of which takes a whole node."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    template = {
        "metadata": {"annotations": {WORKS: "true", **annotations}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "template": template}
    body = {"metadata": {"name": name}, "spec": {**spec, "backoffLimit": 100}}
    await admin.ask("POST", f"/apis/batch/v1/namespaces/{space}/jobs", body)


def on_nodes(pods: Iterable[Any], name: str = "") -> dict[str, str]:
    """Node → pod, of the pods that run and are not ending (of this Job)."""
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["name"]
        for pod in pods
        if pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"].startswith(name)
    }
