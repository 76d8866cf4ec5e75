"""Requests from inside a cluster: an annotation on a Node becomes an intent, with its answer beside it.

Whoever may annotate nodes may ask, for members of pools of this cluster only; guards and consent decide as for anybody.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from urllib.parse import quote

from hostler.controller.step_output import Reply
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Bounds, Intent
from hostler.core.state.model import Node
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.remedies import Reboot, RequestReplacement, ReturnForMaintenance
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.kube_api import MERGE_PATCH, Api, checked
from hostler.drivers.kubernetes.node_status_writer import members
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.drivers.kubernetes.wire import ANSWER, REASON_GIVEN, REQUEST, AnnotationRequest, KubeNode
from hostler.logs.structured import logger
from hostler.ports import PortError, name_there
from hostler.runtime.input_queues import BusyError

log = logger()

TURN_S = 0.5
MAX_REASON = 200
MAX_ANSWER = 300


MEANINGS: dict[str, Verb] = {
    "reboot": Reboot(),
    "force-reboot": Reboot(now=True),
    "maintenance": ReturnForMaintenance(),
    "replacement": RequestReplacement(),
}
"""Requests that may be made, and the act that each stands for."""

Ask = Callable[[Intent], Awaitable[Reply]]


class Requester:
    """One cluster's. `ask` has an intent answered, and raises BusyError where nobody decides here now."""

    def __init__(
        self, scheduler: KubernetesScheduler, api: Api, cache: ClusterCache, fleet: Callable[[], Fleet], ask: Ask
    ) -> None:
        self._scheduler = scheduler
        self._api = api
        self._cache = cache
        self._fleet = fleet
        self._ask = ask

    async def run(self) -> None:
        """Answer until cancelled; what could not be answered is tried again at the next turn."""
        while True:
            await self.turn()
            await asyncio.sleep(TURN_S)

    async def turn(self) -> None:
        """Answer what is asked for now."""
        asked = {name: listed for name, listed in self._cache.nodes.items.items() if listed.asked is not None}
        if not asked or self._cache.lost:
            return
        for node in members(self._fleet(), self._scheduler.cluster):
            name = name_there(node, self._scheduler)
            listed = asked.get(name)
            if listed is not None and listed.asked is not None:
                try:
                    await self._answer(node, listed, listed.asked)
                except (PortError, BusyError) as error:
                    log.info("request_not_answered", node=node.id, reason=str(error))

    async def _answer(self, node: Node, listed: KubeNode, asked: AnnotationRequest) -> None:
        """Ask once: who asks again with the same change of the Node gets the first answer."""
        act = MEANINGS.get(asked.what)
        if act is None:
            said = f"refused: no request '{asked.what[:40]}'; there are {', '.join(MEANINGS)}"
        else:
            reply = await self._ask(self._intent(node, listed, asked, act))
            said = f"{'granted' if reply.granted else 'refused'}: {reply.text}"
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        notes = {REQUEST: None, REASON_GIVEN: None, ANSWER: f"{asked.what[:40]} {said[:MAX_ANSWER]} ({at})"}
        meta = {"resourceVersion": listed.version, "uid": listed.uid, "annotations": notes}
        path = f"/api/v1/nodes/{quote(listed.key, safe='')}"
        checked(await self._api.change("PATCH", path, {"metadata": meta}, MERGE_PATCH), f"the answer on {listed.key}")

    def _intent(self, node: Node, listed: KubeNode, asked: AnnotationRequest, act: Verb) -> Intent:
        cluster = self._scheduler.cluster
        return Intent(
            id=secrets.token_hex(8),
            act=act,
            target=node.id,
            person=f"{asked.by or 'somebody'} in cluster {cluster}"[:120],
            reason=(asked.reason or f"asked for on the Node in cluster {cluster}")[:MAX_REASON],
            at=datetime.now(UTC),
            key=f"{cluster}/{listed.uid}/{asked.what}/{asked.at}"[:128],
            bounds=Bounds(pool=node.pool),
        )
