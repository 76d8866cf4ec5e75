"""Examines a cluster before Hostler acts in it: other programs that treat nodes, our rights, its list of nodes."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE
from hostler.drivers.kubernetes.cluster_cache import NODES, PODS, ClusterCache
from hostler.drivers.kubernetes.external_controllers import ACTORS, DUTIES, OBSERVE, REFUSE, Actor, Signs, at_work
from hostler.drivers.kubernetes.kube_api import NOT_FOUND, OK, Api, checked
from hostler.drivers.kubernetes.rbac import JOINING, RIGHTS, Right
from hostler.drivers.kubernetes.reflector import PAGE, ObjectKind
from hostler.drivers.kubernetes.wire import API_SERVER, K, KubeNode, KubePod, Malformed, read_page
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import PortError, UnreachableError
from hostler.runtime.cluster_findings import ClusterFinding, unlisted

OLDEST, TRIED = (1, 29), (1, 36)
"""The oldest version whose APIs are all used as they are, and the one that tests run."""

S = TypeVar("S")

FORBIDDEN = 403
MAX_PAGES = 1_000


class _Version(Struct, frozen=True):
    major: str = ""
    minor: str = ""
    gitVersion: str = ""  # noqa: N815 - the API's name


class _Verdict(Struct, frozen=True):
    allowed: bool = False


class _Review(Struct, frozen=True):
    status: _Verdict = _Verdict()


class _Objects(Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] | None = ()


class _Group(Struct, frozen=True):
    class Preferred(Struct, frozen=True):
        groupVersion: str = ""  # noqa: N815 - the API's name

    name: str = ""
    preferredVersion: Preferred = Preferred()  # noqa: N815 - the API's name


class _Groups(Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


async def examine(
    api: Api, cluster: str, names: Mapping[str, str], actors: tuple[Actor, ...] = ACTORS
) -> list[ClusterFinding]:
    """Tell what can be told of the cluster; `names` are our nodes by the names they should have there.

    A cluster that does not answer is a finding, not an error.
    """
    found: list[ClusterFinding] = []
    try:
        found.append(await _version(api, cluster))
        found.extend(await _permissions(api, cluster))
        nodes, pods = await _whole(api, NODES), await _whole(api, PODS)
        signs = signs_of(nodes, pods, await _standing(api, actors))
    except PortError as error:
        instead = "check the kubeconfig with `kubectl --kubeconfig=FILE get nodes`"
        return [*found, ClusterFinding(cluster, "reach", "api", str(error), bad=True, instead=instead)]
    found.extend(_tool(cluster, actor, sign) for actor, sign in at_work(signs, actors) if _is_told(actor))
    found.extend(unlisted(cluster, "kubernetes", dict(names), frozenset(node.key for node in nodes)))
    return found


async def second_remediators(api: Api, cache: ClusterCache, actors: tuple[Actor, ...] = ACTORS) -> tuple[str, ...]:
    """List the second remediators at work now, from the cached copies. Raises PortError where that cannot be told."""
    if cache.lost:
        raise UnreachableError(cache.lost)
    signs = signs_of(cache.nodes.items.values(), cache.pods.items.values(), await _standing(api, actors))
    return tuple(actor.name for actor, _ in at_work(signs, actors) if actor.duty == REFUSE)


def signs_of(nodes: Iterable[KubeNode], pods: Iterable[KubePod], apis: frozenset[str] = frozenset()) -> Signs:
    """Collect signs of programs at work."""
    seen = tuple(nodes)
    return Signs(
        managers=frozenset(node.shut_by for node in seen if node.shut_by),
        node_keys=frozenset(key for node in seen for key in node.node_keys),
        images=frozenset(pod.image for pod in pods if pod.image),
        apis=apis,
    )


def _is_told(actor: Actor) -> bool:
    """Leave out what every cluster has."""
    return actor.duty != OBSERVE or bool(actor.images or actor.apis)


def _tool(cluster: str, actor: Actor, sign: str) -> ClusterFinding:
    refused = actor.duty == REFUSE
    instead = f"take it away, or say that both may: hostler doctor accept {cluster} '{actor.name}' --reason …"
    text = f"{actor.duty}: {sign}; {DUTIES[actor.duty]}"
    return ClusterFinding(cluster, "tool", actor.name, text, refused, instead if refused else "", remediator=refused)


async def _version(api: Api, cluster: str) -> ClusterFinding:
    said = _decoded(checked(await api.get("/version"), "its version"), _Version)
    minor = "".join(c for c in said.minor if c.isdigit())
    known = (int(said.major), int(minor)) if said.major.isdigit() and minor else (0, 0)
    text = f"Kubernetes {said.gitVersion}; tried with {TRIED[0]}.{TRIED[1]}"
    old = known < OLDEST
    return ClusterFinding(cluster, "version", "api", text, old, f"upgrade to {OLDEST[0]}.{OLDEST[1]}" if old else "")


async def _permissions(api: Api, cluster: str) -> list[ClusterFinding]:
    """Each right that is missing; that all are there is told too."""
    granted = await asyncio.gather(*(_may(api, right) for right in (*RIGHTS, *JOINING)))
    may = dict(zip((*RIGHTS, *JOINING), granted, strict=True))
    found = [_missing(cluster, right, bad=True) for right in RIGHTS if not may[right]]
    lacking = [right for right in JOINING if not may[right]]
    if lacking:
        text = f"no nodes are admitted by tokens: not granted is {'; '.join(map(str, lacking))}"
        found.append(ClusterFinding(cluster, "permission", "joining", text))
    if not any(one.bad for one in found):
        found.append(
            ClusterFinding(cluster, "permission", "all", f"{len(RIGHTS)} rights are granted, all that are needed")
        )
    return found


def _missing(cluster: str, right: Right, *, bad: bool) -> ClusterFinding:
    text = f"not granted; without it Hostler cannot {right.what_for}"
    return ClusterFinding(
        cluster, "permission", str(right), text, bad, "apply deploy/kubernetes/rbac.yaml, or its Helm chart"
    )


async def _may(api: Api, right: Right) -> bool:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await api.change("POST", path, right.review())
    return _decoded(checked(answer, f"whether it may {right}"), _Review).status.allowed


async def _standing(api: Api, actors: tuple[Actor, ...]) -> frozenset[str]:
    """List the actors' resources that have objects, as "RESOURCE" or with why that is not known: unknown counts."""
    wanted = {resource for actor in actors for resource in actor.apis}
    if not wanted:
        return frozenset()
    served = _decoded(checked(await api.get("/apis"), "its API groups"), _Groups)
    versions = {group.name: group.preferredVersion.groupVersion for group in served.groups}
    found = set()
    for resource in sorted(wanted):
        plural, _, group = resource.partition(".")
        if group in versions and (sign := await _objects(api, versions[group], plural)) is not None:
            found.add(f"{resource}{sign}")
    return frozenset(found)


async def _objects(api: Api, version: str, plural: str) -> str | None:
    """Why it is not known whether there are any, "" where there are, None where there are none."""
    answer = await api.get(f"/apis/{version}/{plural}", limit="1")
    if answer.status == FORBIDDEN:
        return " (as far as may be: this account may not list them)"
    if answer.status == NOT_FOUND:
        return None
    return "" if _decoded(checked(answer, plural), _Objects).items else None


async def _whole(api: Api, kind: ObjectKind[K]) -> list[K]:
    """All objects of the kind, as they are now. Raises PortError."""
    items: list[K] = []
    query = {"limit": str(PAGE)} | ({"fieldSelector": kind.selector} if kind.selector else {})
    for _ in range(MAX_PAGES):
        answer = await api.get(kind.path, **query)
        if answer.status != OK:
            checked(answer, f"a list of {kind.name}")
        try:
            page = read_page(answer.body, kind.read)
        except Malformed as wrong:
            raise unreadable(f"the API server's list of {kind.name}", wrong, API_SERVER) from wrong
        items.extend(page.items)
        if not page.token:
            return items
        query["continue"] = page.token
    raise UnreachableError(
        f"the list of {kind.name} has more than {MAX_PAGES * PAGE} objects; find what creates so many of them"
    )


def _decoded(body: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(body, type=kind)
    except UNREADABLE as wrong:
        raise unreadable(f"the API server's {kind.__name__.strip('_')}", wrong, API_SERVER) from wrong
