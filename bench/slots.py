"""Measures what an idle check costs the customer who comes: how much later its pod runs than on a truly idle node.

A real API server, scheduler and controllers; kwok stands for the kubelets, and ends a container at once where a real
kubelet may take the check's grace (1 s) besides. One node, a customer who wants all its GPUs, one after the other.
"""

import asyncio
import os
import statistics
import time

from msgspec.structs import replace

from bench.figures import Figures
from hostler.drivers.kubernetes.idle_check_jobs import GRACE_S
from tests.contract.kubernetes_world import Admin, until
from tests.contract.slot_world import KubernetesSlots, kubernetes_slots
from tests.controlplane.plane import ControlPlane

CUSTOMERS = 60
WHERE = "/api/v1/namespaces/acme/pods"


def main() -> Figures:
    """Run it."""
    return asyncio.run(_measure())


async def _measure() -> Figures:
    plane = ControlPlane()
    try:
        async with kubernetes_slots(plane) as world:
            idle = [await _customer(world, number, checked=False) for number in range(CUSTOMERS)]
            checked = [await _customer(world, number, checked=True) for number in range(CUSTOMERS, 2 * CUSTOMERS)]
    finally:
        plane.close()
    figures = Figures(f"Idle checks: from a customer's pod asked for until it runs, {CUSTOMERS} each")
    for what, took in (("idle node", idle), ("node being checked", checked)):
        cuts = statistics.quantiles(took, n=100, method="inclusive")
        for name, value in (("P50", cuts[49]), ("P99", cuts[98]), ("longest", max(took))):
            figures.add(
                f"{what}, {name}", value * 1000, "ms", f"load {os.getloadavg()[0]:.1f}" if name == "P50" else ""
            )
    later = (statistics.median(checked) - statistics.median(idle)) * 1000
    figures.add("later for the check's sake, P50", later, "ms", f"a real kubelet: up to {GRACE_S} s more")
    return figures


async def _customer(world: KubernetesSlots, number: int, *, checked: bool) -> float:
    """Seconds from asking for the pod until it runs, as a watch of its own tells."""
    admin, operation = world.world.admin, replace(world.check(None), id=f"n1-idle-{number}")
    if checked:
        await world.scheduler.perform(operation, world.node)
        await until(lambda: _works(world), "the check to run")
    version = (await admin.get(f"{WHERE}?limit=1"))["metadata"]["resourceVersion"]
    watching = asyncio.ensure_future(_runs(admin, version))
    await asyncio.sleep(0.3)
    began = time.perf_counter()
    name = (await world.wants()).partition("/")[2]
    async with asyncio.timeout(30):
        took = await watching - began
    await world.scheduler.revoke(operation, world.node)
    await admin.ask("DELETE", f"{WHERE}/{name}", {"gracePeriodSeconds": 0})
    await until(lambda: not _works(world), "the node to be idle")
    return took


def _works(world: KubernetesSlots) -> bool:
    return bool(world.scheduler.views().nodes["box-1"].workloads)


async def _runs(admin: Admin, version: str) -> float:
    async with admin.api.watch(WHERE, {"resourceVersion": version}, 60.0) as lines:
        async for line in lines:
            if b'"phase":"Running"' in line:
                return time.perf_counter()
    raise AssertionError("the watch ended")
