"""Whether the copy of the pods shows all who came to a node before it was cordoned: it is a moment late."""

import asyncio

from hostler.drivers.kubernetes.cluster_cache import PODS, ClusterCache
from hostler.drivers.kubernetes.kube_api import Api, checked
from hostler.drivers.kubernetes.wire import API_SERVER, Malformed, going_on, read_page
from hostler.drivers.unreadable_answers import unreadable

SHOWN_S = 2.0
"""How long the copy is waited for to show what was just done."""

AGAIN_S = 0.05


async def unseen(api: Api, cache: ClusterCache, node: str) -> str:
    """Pods that the API server has on the node and the copy does not show, by name; "" where none is missing.

    Waits for the copy `SHOWN_S` at most. Of a copy that does not count anyway nothing is asked. Raises PortError.
    """
    until = asyncio.get_running_loop().time() + SHOWN_S
    wait_s = AGAIN_S
    while not cache.lost:
        missing = [key for key, uid in await _there(api, node) if not _shows(cache, key, uid)]
        if not missing or asyncio.get_running_loop().time() > until:
            return ", ".join(missing[:4])
        await asyncio.sleep(wait_s)
        wait_s *= 2
    return ""


async def _there(api: Api, node: str) -> list[tuple[str, str]]:
    """Key and UID of each pod on the node now: a list without a version is read from the store, not from a memory."""
    body = checked(await api.get(PODS.path, fieldSelector=going_on(node)), f"pods of {node}")
    try:
        return [(pod.key, pod.uid) for pod in read_page(body, PODS.read).items]
    except Malformed as wrong:
        raise unreadable("the API server's list of pods", wrong, API_SERVER) from wrong


def _shows(cache: ClusterCache, key: str, uid: str) -> bool:
    pod = cache.pods.items.get(key)
    return pod is not None and pod.uid == uid
