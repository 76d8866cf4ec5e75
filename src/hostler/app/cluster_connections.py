"""The schedulers that `serve` is told of, and who reboots the nodes of their clusters."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import SystemRandom

from msgspec import Struct

from hostler.app.controller_process import Gate
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.kubernetes.annotation_requests import Ask, Requester
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.csr_approver import CsrApprover
from hostler.drivers.kubernetes.gpu_operator import Operands
from hostler.drivers.kubernetes.gpu_operator_reset import ResetCluster, Resetter, Restorer
from hostler.drivers.kubernetes.idle_check_jobs import Tidier
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.liveness_lease import LivenessLease
from hostler.drivers.kubernetes.node_status_writer import NodeStatusWriter
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.drivers.kubernetes.settings import KubernetesSettings
from hostler.drivers.kubernetes.settings import parse as parse_kubernetes
from hostler.drivers.slurm.command_transport import Commands, CommandTransport
from hostler.drivers.slurm.rest_transport import RestTransport
from hostler.drivers.slurm.scheduler import SlurmScheduler
from hostler.drivers.slurm.settings import SlurmSettings, parse
from hostler.drivers.slurm.transport import Transport
from hostler.ports import OperationDriver, RefusedError, UnreachableError

OWNER = "hostler"
"""Owner of our cordons, in a cluster that one cell serves."""

CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


async def slurm_clusters(given: Sequence[str], gate: Gate, stack: AsyncExitStack) -> list[SlurmScheduler]:
    """The schedulers of "NAME" or "NAME=FILE"; what they hold is let go with `stack`. Raises InvalidInputError."""
    return [
        SlurmScheduler(name, transport, gate, gate.now, settings.manner)
        for name, (transport, settings) in (await slurm_access(given, stack)).items()
    ]


async def slurm_access(given: Sequence[str], stack: AsyncExitStack) -> dict[str, tuple[Transport, SlurmSettings]]:
    """How each of the clusters "NAME" or "NAME=FILE" is reached. Raises InvalidInputError."""
    found: dict[str, tuple[Transport, SlurmSettings]] = {}
    for one in given:
        name, _, path = one.partition("=")
        if not CLUSTER.fullmatch(name) or name in found:
            raise _unusable(f"--slurm {one[:100]}", "each cluster needs a name of its own", "write NAME=FILE")
        settings = parse(path, _read(path)) if path else SlurmSettings()
        try:
            found[name] = await _transport(settings, stack), settings
        except RefusedError as error:
            raise _unusable(path, str(error), "correct that and start again") from error
    return found


class Watched(Struct, frozen=True):
    """A Kubernetes cluster: its scheduler, and what writes on its nodes once the fleet is there."""

    scheduler: KubernetesScheduler
    api: Api
    cache: ClusterCache

    def marker(self, fleet: Callable[[], Fleet]) -> NodeStatusWriter:
        """Shows the cluster's users what Hostler knows and does."""
        return NodeStatusWriter(self.scheduler, self.api, self.cache, fleet)

    @property
    def admitter(self) -> CsrApprover:
        """Has the certificates of joining kubelets signed."""
        return CsrApprover(self.api, self.scheduler.joining)

    def tidier(self, fleet: Callable[[], Fleet]) -> Tidier:
        """Takes idle checks away that nobody waits for."""
        return Tidier(self.scheduler.checks, self.cache, fleet)

    @property
    def operands(self) -> Operands:
        """Operands that hold GPUs there and are paused for a reset."""
        return Operands(self.api, OWNER, self.cache.settings.operands, self.cache.settings.actors)

    def restorer(self, fleet: Callable[[], Fleet]) -> Restorer:
        """Lets back what went for a GPU reset that is over."""
        return Restorer(self.operands, self.cache, fleet)

    def presence(self, holder: str) -> LivenessLease:
        """Shows that Hostler is up, and which controller decides."""
        return LivenessLease(self.api, OWNER, holder)

    def requester(self, fleet: Callable[[], Fleet], ask: Ask) -> Requester:
        """Answers what people ask for from inside the cluster."""
        return Requester(self.scheduler, self.api, self.cache, fleet, ask)


async def kubernetes_clusters(given: Sequence[str], gate: Gate, stack: AsyncExitStack) -> list[Watched]:
    """The clusters of "NAME=KUBECONFIG[@CONTEXT][+SETTINGS]"; "in-cluster" stands for the pod's own account.

    SETTINGS is a file (`kubernetes.settings`). What they hold is let go with `stack`. Raises InvalidInputError.
    """
    found: list[Watched] = []
    settings = kubernetes_settings(given)
    for name, api in (await kubernetes_access(given, gate, stack)).items():
        cache = ClusterCache(api, OWNER, SystemRandom().random, settings[name])
        found.append(Watched(KubernetesScheduler(name, api, cache, OWNER), api, cache))
    return found


async def kubernetes_access(given: Sequence[str], fence: Callable[[], None], stack: AsyncExitStack) -> dict[str, Api]:
    """The API of each of these clusters, behind the fence. Raises InvalidInputError."""
    found: dict[str, Api] = {}
    for one in given:
        name, _, where = one.partition("=")
        if not CLUSTER.fullmatch(name) or not where or name in found:
            instead = "write NAME=KUBECONFIG, NAME=KUBECONFIG@CONTEXT, either with +SETTINGS behind it"
            raise _unusable(f"--cluster {one[:100]}", "each cluster needs a name of its own and a kubeconfig", instead)
        path, _, context = where.partition("+")[0].partition("@")
        found[name] = await stack.enter_async_context(Api(load_kubeconfig(path, context), fence))
    return found


def kubernetes_settings(given: Sequence[str]) -> dict[str, KubernetesSettings]:
    """Settings of each of these clusters. Raises InvalidInputError."""
    paths = {one.partition("=")[0]: one.partition("+")[2] for one in given}
    return {name: parse_kubernetes(path, _read(path)) if path else KubernetesSettings() for name, path in paths.items()}


def offered_by(clusters: Sequence[Watched]) -> Callable[[str], JoinOffer | None]:
    """Find the join offer of whichever cluster the node is about to join."""
    return lambda node: next(filter(None, (one.scheduler.joining.offer(node) for one in clusters)), None)


async def _transport(settings: SlurmSettings, stack: AsyncExitStack) -> Transport:
    if settings.rest is None:
        return CommandTransport(settings.commands or Commands())
    session = await stack.enter_async_context(settings.rest.session())
    return RestTransport(session, settings.rest)


def resetter(clusters: Sequence[Watched], gate: Gate) -> Resetter:
    """The hand for GPU resets, around the agents'."""
    return Resetter([ResetCluster(one.scheduler, one.operands) for one in clusters], lambda: gate.agents, gate.fleet)


class Kubelets:
    """The driver of kubelets: the agents', for nodes of Kubernetes clusters.

    On a node of another cluster a kubelet is none of Hostler's business: nothing is sent to its agent.
    """

    kinds = frozenset({"start_kubelet", "stop_kubelet"})

    def __init__(self, clusters: Iterable[str], agents: Callable[[], OperationDriver | None]) -> None:
        self._clusters = frozenset(clusters)
        self._agents = agents

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Have the node's agent start or stop its kubelet."""
        return await self._driver(node).perform(operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Ask the node's agent whether it has."""
        return await self._driver(node).observe(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the agent call it off."""
        await self._driver(node).revoke(operation, node)

    def _driver(self, node: Node) -> OperationDriver:
        cluster = node.assignment.cluster if node.assignment else ""
        if cluster not in self._clusters:
            raise RefusedError(
                f"cluster {cluster or '(none)'} has no kubelets that Hostler starts or stops, and nothing waits for "
                "one; where it is a Kubernetes cluster, name it to the controller (hostler serve --cluster)"
            )
        if (agents := self._agents()) is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        return agents


class Rebooter:
    """The Hand for reboots: Slurm's where a node's cluster is to do it (`reboots: true`), else its agent's.

    `agents` gives the agents' hand, which comes to be when the house does.
    """

    kinds = frozenset({"reboot"})

    def __init__(self, clusters: Iterable[SlurmScheduler], agents: Callable[[], OperationDriver | None]) -> None:
        self._clusters: Mapping[str, SlurmScheduler] = {one.cluster: one for one in clusters if one.reboots}
        self._agents = agents

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Reboot through Slurm or the node's agent."""
        return await self._hand(node).perform(operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Ask the driver that was told to reboot whether it has happened."""
        return await self._hand(node).observe(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the same driver call the reboot off."""
        await self._hand(node).revoke(operation, node)

    def _hand(self, node: Node) -> OperationDriver:
        own = self._clusters.get(node.assignment.cluster) if node.assignment else None
        driver = own or self._agents()
        if driver is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        return driver


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error), "give a readable YAML file") from error


def _unusable(where: str, what: str, instead: str) -> InvalidInputError:
    return InvalidInputError((Problem(where, 0, what, instead),))
