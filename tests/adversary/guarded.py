"""A cell that two customers share, lynx and orca: something of each in every list, and a token for each identity."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.design_csv import parse_csv
from hostler.core.fabric.discovery import Discovery, FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.validation_report import report
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.live_state import Release
from hostler.core.state.trends import DriftFinding, LemonFinding, MetricLooked, ShiftFinding, TrendReport
from hostler.journal.readings import Reading
from hostler.server.tokens import Grant, Role
from tests.adversary.authorisation import DOCUMENTS, IDENTITIES, LYNX, ONLY_LYNX, ONLY_ORCA, ORCA, WHOLE
from tests.contract.api_world import POLICY, XID79, Client, House

GSP = "gpu.gsp_timeout: {remedy: gpu_reset,"
NETWORK = "ib0"
SHADOWED = POLICY.replace(GSP, GSP.replace("{", "{shadow: true, "))
XID119 = XID79.replace(" 79,", " 119,")


class Guarded:
    """The world, one client for each identity, and the things that requests name."""

    def __init__(self, world: House) -> None:
        self.world = world
        self.clients = {name: self._client(name) for name in IDENTITIES}
        self.things: dict[str, dict[str, frozenset[str]]] = {}
        """Kind of object → name → whose it is."""

    def _client(self, name: str) -> Client:
        grant, tokens, world = IDENTITIES[name].grant, self.world.tokens, self.world
        if grant is not None:
            person = name.replace(" ", ".").replace("'", "")
            return world.client(msgspec.convert({"name": person, **grant}, Grant))
        real = tokens.create(Grant("x", Role.operator))
        if name == "revoked token":
            tokens.revoke(real.split("_")[1])
        if name == "expired token":
            soon = datetime.now(UTC) + timedelta(seconds=0.05)
            real = tokens.create(Grant("x", Role.operator, expires=soon))
        wrong = real[:-3] + ("AAA" if not real.endswith("AAA") else "BBB")
        return Client(world.url, world.session, {"stranger": "", "wrong secret": wrong}.get(name, real))

    async def post(self, path: str, body: dict[str, Any], *statuses: int) -> dict[str, Any]:
        status, answer = await self.world.operator.post(path, body)
        assert status in (statuses or (200,)), (path, answer)
        return dict(answer)

    async def settle(self) -> None:
        """Put something of each customer in every list."""
        await self.post("/v1/config", {"documents": {**DOCUMENTS, "policy.yaml": SHADOWED}, "reason": "two customers"})
        for name in (ORCA, LYNX):
            await self._nodes(name)
        for name in (ORCA, LYNX):
            await self._life(name)
        await self._incident()
        await self._network()
        self._trends()
        opened = await self.post("/v1/nodes/lynx-0/open-rma", {"reason": "a fan of lynx"})
        self.rma = opened["text"].partition(" ")[0]
        intents: dict[str, frozenset[str]] = {}
        for name, whose in ((ORCA, ONLY_ORCA), (LYNX, ONLY_LYNX), (ORCA, ONLY_ORCA)):
            body = {"reason": f"last of {name}", "act": {"hours": 2}}
            held = await self.post(f"/v1/nodes/{name}-0/hold", body)
            intents[held["detail"]["intent"]] = whose
        incident = next(iter(self.world.cell.view.incidents.base))
        self.things |= {
            "node": {"lynx-0": ONLY_LYNX, "orca-0": ONLY_ORCA},
            "part": {"GPU-lynx-0-0": ONLY_LYNX, "GPU-orca-0-0": ONLY_ORCA},
            "pool": {"lynx-pool": ONLY_LYNX, "orca-pool": ONLY_ORCA},
            "rack": {"lynx-lane": ONLY_LYNX, "orca-lane": ONLY_ORCA, "both-rack": WHOLE},
            "incident": {incident: WHOLE},
            "rollout": {"none-runs": WHOLE},
            "route": {"none-told": WHOLE},
            "intent": intents,
            "letter": {"7": WHOLE},
            "fabric": {NETWORK: WHOLE},
            "rma": {self.rma: WHOLE},
            "golden": {"none-told": WHOLE},
            "backtest": {"b-20260101T000000000-000000000000": WHOLE},
            "ticket": {
                t.id: whose
                for t in self.world.cell.view.tickets.values()
                for node, whose in (("lynx-6", ONLY_LYNX), ("orca-6", ONLY_ORCA))
                if t.node == node
            },
        }

    async def _nodes(self, name: str) -> None:
        racks = ["both-rack", "both-rack", f"{name}-rack", f"{name}-row", f"{name}-lane", f"{name}-lane", f"{name}-end"]
        ids = [f"{name}-{n}" for n in range(len(racks))]
        nodes = [
            {
                "id": i, "sku": "h100", "hostname": f"host-{i}", "serial": f"SN-{i}", "rack": rack,
                "bmc": f"https://bmc-{i}.example", "pool": f"{name}-pool", "site": f"{name}-site",
            }
            for i, rack in zip(ids, racks, strict=True)
        ]  # fmt: skip
        await self.post("/v1/adopt", {"nodes": nodes, "reason": "they serve already"})
        for node in ids:
            self.world.driver.heard(node, f"first-{node}")
            await self.world.inventory(node, f"first-{node}")
            self.world.driver.works(node, ())
        view = self.world.cell
        await self.world.until(lambda: all(view.view.nodes[i].phase == "production" for i in ids))

    async def _life(self, name: str) -> None:
        """A fault with a plan and an operation, a waiting request, a domain act, a window, an approval, a ticket."""
        world = self.world
        cell = world.cell
        world.driver.stuck.add("power_off")
        await world.report(f"{name}-2", kind="kernel_log", text=f"{XID79} {name}", facility=0)
        await world.until(lambda: cell.view.nodes[f"{name}-2"].operation)
        await world.report(f"{name}-3", kind="kernel_log", text=f"{XID119} {name}", facility=0)
        await world.until(lambda: cell.view.nodes[f"{name}-3"].shadows)
        world.driver.verdict = "inconclusive"
        await self.post(f"/v1/nodes/{name}-6/reboot", {"reason": f"a driver for {name}"})
        await world.until(lambda: any(t.node == f"{name}-6" for t in cell.view.tickets.values()))
        work = (Workload(f"{name}-job", f"{name}-co", WorkClass.uninterruptible),)
        for n in (3, 4, 5):
            world.driver.works(f"{name}-{n}", work)
        await self.post(f"/v1/nodes/{name}-3/reboot", {"reason": f"a kernel for {name}"})
        await world.until(lambda: cell.view.nodes[f"{name}-3"].waiting)
        await self.post(f"/v1/racks/{name}-lane/drain", {"reason": f"a cable of {name}"})
        window = {"starts": "2036-01-01T00:00:00+00:00", "ends": "2036-01-01T04:00:00+00:00"}
        await self.post(
            "/v1/intents",
            {
                "act": {"verb": "schedule-maintenance", **window},
                "target": f"pool:{name}-pool",
                "reason": f"switch of {name}",
            },
        )
        moved = {"kind": "bmc", "value": f"https://new-{name}.example"}
        waits = await self.post(f"/v1/nodes/{name}-1/rebind", {"reason": f"moved for {name}", "act": moved}, 202)
        self.things.setdefault("approval", {})[waits["detail"]["approval"]] = frozenset({name})

    def _trends(self) -> None:
        """Readings of both customers' nodes, one of each drifting, and a cohort of both that has moved."""
        trends, now, metric = self.world.trends, datetime.now(UTC), "gemm_perf.bf16_tflops"
        assert trends is not None
        nodes = [f"{name}-{n}" for name in (ORCA, LYNX) for n in range(7)]
        trends.store.add([Reading(now, node, f"{node}-check", metric, "cuda:0", 700.0, "h100") for node in nodes])
        drifts = tuple(DriftFinding(n, metric, "cuda:0", -0.02, now, now, 1e-6, 1e-4) for n in nodes if n[-1] == "0")
        shift = ShiftFinding(metric, "driver=560", "driver=550", -0.06, now, len(nodes))
        lemons = tuple(
            LemonFinding("node", n, "h100", n, (n,), 50.0, {"check.failed": 3}, 9.0, 4.0, 16.0, 0.2, 0.99, 0.01, True)
            for n in nodes
        )
        trends.report = TrendReport(now, 60, drifts, (shift,), (MetricLooked(metric, len(nodes)),), (), lemons, now)

    async def _network(self) -> None:
        """A network in which the cables of both customers' nodes are exchanged at one switch."""
        world = self.world
        await world.until(lambda: world.cell.view.cell.format >= Release().reads)
        lines = [f"{name}-0,mlx5_0,leaf-1,{n}" for n, name in enumerate((LYNX, ORCA), start=1)]
        design = "\n".join(["a_node,a_port,z_node,z_port", *lines])
        await self.post("/v1/fabrics", {"fabric": {"name": NETWORK, "design": design}, "reason": "one for both"})
        guids = {name: f"{n:016x}" for n, name in enumerate(("leaf-1", f"{ORCA}-0 mlx5_0", f"{LYNX}-0 mlx5_0"))}
        devices = {guid: FoundDevice(guid, name == "leaf-1", name) for name, guid in guids.items()}
        switch, *hosts = guids.values()
        links = tuple(FoundLink(FoundPort(guid, 1), FoundPort(switch, n)) for n, guid in enumerate(hosts, start=1))
        fabric = world.cell.view.fabrics[NETWORK]
        found = Discovery(devices, links)
        world.cell.tell(FabricSeen(report(fabric, parse_csv(fabric.design.encode(), ""), found, world.cell.now())))
        await world.until(lambda: world.cell.view.cases_of(NETWORK))

    async def _incident(self) -> None:
        for name in (LYNX, ORCA):
            for n in (0, 1):
                await self.world.report(f"{name}-{n}", kind="power", facts={"power": "off"})
        await self.world.until(lambda: len(self.world.cell.view.incidents))
