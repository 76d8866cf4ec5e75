"""The composition root: which journal, drivers and server make one running Hostler."""

import asyncio
import contextlib
import gc
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from hostler.app import emulated_life
from hostler.app.bmc_access import credentials
from hostler.app.boot_service import boot_service
from hostler.app.check_readings_keeper import ReadingsKeeper
from hostler.app.cluster_connections import (
    Kubelets,
    Rebooter,
    Watched,
    kubernetes_clusters,
    offered_by,
    resetter,
    slurm_clusters,
)
from hostler.app.cluster_examiner import examiners
from hostler.app.controller_process import Gate, Standing, journal_of, now, running
from hostler.app.daily_compaction import Compacting
from hostler.app.emulated_lab import EmulatedLab, in_kubernetes, in_memory
from hostler.app.evidence_keeper import EvidenceKeeper
from hostler.app.first_start import TOKEN
from hostler.app.ironic_access import with_ironic
from hostler.app.node_sanitiser import NodeSanitiser
from hostler.app.provider_access import read_providers
from hostler.app.secret_backends import secrets_of
from hostler.app.start_settings import ServeSettings, UpSettings
from hostler.app.trend_schedule import TrendSchedule
from hostler.core.fabric.discovery import FoundPort
from hostler.core.planning.port_reset import refused
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.model import Node
from hostler.core.state.notify_routes import NETBOX
from hostler.core.state.operations import ResetPort
from hostler.drivers.certificates.site_authority import SiteAuthority
from hostler.drivers.infiniband.agent_pages import AgentPages
from hostler.drivers.infiniband.fabric_source import InfinibandSource, LookPlaces, RegisteredSource
from hostler.drivers.infiniband.port_resets import PortResetter
from hostler.drivers.ironic.without_ironic import WithoutIronic
from hostler.drivers.netbox.journal_target import JournalTarget
from hostler.drivers.notify.apprise_target import AppriseTarget
from hostler.drivers.notify.http_targets import http_targets
from hostler.drivers.notify.mail import MailTarget
from hostler.drivers.provider.provider_client import Providers
from hostler.drivers.provider.provider_hands import ProviderHands, ProviderReboot
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.certificate_driver import CertificateDriver
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.login_driver import LoginDriver
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.drivers.redfish.rack_reader import RackReader
from hostler.drivers.redfish.system_discovery import Introduction
from hostler.drivers.redfish.system_image_driver import SystemImageDriver
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.standalone.scheduler import StandaloneScheduler, StandaloneWork
from hostler.drivers.tickets.ticket_target import ticket_systems
from hostler.polling.bmc_poller import BmcPoller
from hostler.polling.bmc_schedule import Pace
from hostler.polling.bmc_series import SeriesReader
from hostler.polling.fabric_schedule import FabricSchedule
from hostler.polling.link_rounds import LinkRounds
from hostler.polling.rack_rounds import RackRounds
from hostler.polling.subnet_rounds import Hints, SubnetRounds
from hostler.ports import OperationDriver, Scheduler, Secrets
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.runtime.merged_schedulers import SchedulerDriver, SchedulerReader, by_cluster
from hostler.runtime.performers import Wiring
from hostler.runtime.reachable_addresses import site_session
from hostler.runtime.runner import Cell
from hostler.server.oidc_provider import OidcProvider, SignIn
from hostler.server.server_settings import Settings, host_name
from hostler.server.sign_in_settings import read_sign_in
from hostler.server.tokens import Grant, Role
from hostler.sim.emulated.emulated_fleet import EmulatedFleet, FleetSettings
from hostler.sim.emulated.lab_pace import LOOKS_PER_S

Turn = Callable[[], Coroutine[object, object, None]]
"""Work that goes on while this controller is the active one."""

THREADS = 512
"""Emulated machines block threads while they check themselves; most of these sleep."""

SERVE_THREADS = 64
"""A database that does not answer may hold several for seconds."""


async def serve(settings: ServeSettings, announce: Callable[[str, str], None]) -> None:
    """Serve a cell until SIGTERM or SIGINT. Raises what makes starting impossible; nothing is half-started then.

    `announce` is called once, with the API's address and this controller's role, when both stand.
    """
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(SERVE_THREADS))
    gc.set_threshold(*COLLECTIONS)
    stop = _told_to_stop()
    documents = _read(settings.config)
    data = Path(settings.data)
    standing = _standing(settings)
    async with Connections() as connections, contextlib.AsyncExitStack() as stack:
        gate = Gate()
        outside = await stack.enter_async_context(site_session())
        secrets = await secrets_of(data, outside, gate, stack)
        clients = Clients(connections, credentials(data), gate, secrets)
        _reach_people(gate, data, secrets, outside)
        slurm = await slurm_clusters(settings.slurm, gate, stack)
        kubernetes = await kubernetes_clusters(settings.clusters, gate, stack)
        schedulers: list[Scheduler] = [*slurm, *(one.scheduler for one in kubernetes)]
        clusters = by_cluster(schedulers)
        providers = read_providers(data, secrets)
        rebooter = ProviderReboot(Rebooter(slurm, lambda: gate.agents), providers, gate.hears)
        gate.machines, gate.offered = Introduction(clients), offered_by(kubernetes)
        alone = StandaloneScheduler(lambda: gate.agents)
        scheduling = ReadingsKeeper(SchedulerDriver(clusters, alone, gate.show_node), gate)
        kubelets = Kubelets([one.scheduler.cluster for one in kubernetes], lambda: gate.agents)
        redfish, logins, certificates, systems, ports = _own_drivers(clients, secrets, gate)
        bmc, *other_machines = with_ironic(redfish, data, outside, secrets)
        machines = (ProviderHands(bmc, providers), *other_machines)
        booting = await boot_service(settings, data, secrets, gate)
        booted = booting.around(machines[0], rebooter) if booting else (rebooter,)
        around = (*_before_agents(gate, clients, redfish), kubelets, resetter(kubernetes, gate), *booted)
        wiring = Wiring((*machines, systems, logins, certificates, ports, scheduling), around)
        async with running(_listening(settings), standing, wiring, gate, documents) as inside:
            cell = inside.cell
            if booting is not None and settings.boot is not None:
                await stack.enter_async_context(booting.listening(cell, inside.tokens, settings.boot))
            announce(inside.address, cell.role)
            reader = SeriesReader(RedfishReader(clients), inside.trends, now)
            watching = cell.while_active(lambda: BmcPoller(cell, reader, now).run())
            _read_schedulers(gate, cell, clusters)
            telling = cell.while_active(lambda: _tell(gate))
            notifying = cell.while_active(inside.notifier.run)
            examining = [one.run for one in examiners([*slurm, *(k.scheduler for k in kubernetes)], cell)]
            compacting = [Compacting(str(journal_of(standing)), Path(settings.archive)).run] if settings.archive else []
            trending = TrendSchedule(inside.trends, cell, str(journal_of(standing))).run
            turns = (
                *_rounds(gate, clients, secrets, data),
                inside.returns.run,
                gate.provider_rounds(providers).run,
                trending,
                *_cluster_work(kubernetes, cell, standing.name or socket.gethostname()),
                *examining,
                *compacting,
            )
            marking = [cell.while_active(run) for run in turns]
            await _until_told(stop, [watching, telling, notifying, *marking, *(one.watch() for one in schedulers)])


def _cluster_work(kubernetes: Sequence[Watched], cell: Cell, name: str) -> Iterator[Turn]:
    """Work in the clusters while this controller is the active one: requests, marks, tidying, presence."""
    for one in kubernetes:
        yield one.marker(lambda: cell.view).run
        yield one.requester(lambda: cell.view, cell.ask).run
        yield one.tidier(lambda: cell.view).run
        yield one.restorer(lambda: cell.view).run
        yield one.presence(name).run
        yield one.admitter.run


def _read_schedulers(gate: Gate, cell: Cell, clusters: Mapping[str, tuple[Scheduler, ...]]) -> None:
    """Read workloads through the gate from the pools' clusters, and of pools without one."""
    watched, without = SchedulerReader(clusters, lambda: cell.view, lambda: cell.live), StandaloneWork()
    gate.read_schedulers = lambda: [*without.news(cell.view, cell.live), *watched.news()]
    gate.read_node = watched.of_node


def _before_agents(gate: Gate, clients: Clients, redfish: RedfishDriver) -> tuple[OperationDriver, ...]:
    """Drivers that take agents' operations, hand them on, and have more to do."""
    return EvidenceKeeper(gate, clients), NodeSanitiser(gate, clients, redfish)


def _standing(settings: ServeSettings) -> Standing:
    of, data = settings, Path(settings.data)
    return Standing(data, of.journal, of.name, of.advertise, of.lease_s, of.archive, of.traces)


def _own_drivers(
    clients: Clients, secrets: KeptSecrets, gate: Gate
) -> tuple[RedfishDriver, LoginDriver, CertificateDriver, SystemImageDriver, PortResetter]:
    """Drivers that act from this host: on machines through their BMCs, on BMCs themselves, on ports of switches."""
    certificates = CertificateDriver(clients, secrets, SiteAuthority(secrets, gate.now))
    logins, systems = LoginDriver(clients, secrets, gate.now), SystemImageDriver(clients, gate.now)
    return RedfishDriver(clients, gate.now), logins, certificates, systems, port_resetter(gate)


def _rounds(gate: Gate, clients: Clients, secrets: Secrets, data: Path) -> tuple[Turn, ...]:
    """Looks at networks, at readings of their ports, at their managers, and at what stands in racks beside nodes."""
    cell = gate.cell
    assert cell is not None, "the cell has started"
    reach = LookPlaces(AgentPages(lambda: gate.agents, gate.now), gate.fleet, secrets, data / "lldp")
    networks = RegisteredSource(InfinibandSource(), reach)
    looks = FabricSchedule(cell, networks)
    gate.wirings = looks.wirings
    links = LinkRounds(cell, networks, looks.wirings, gate.pairs)
    racks = RackRounds(cell, RackReader(clients))
    return looks.run, links.run, SubnetRounds(cell, networks, Hints(looks.hint, links.hint)).run, racks.run


def port_resetter(gate: Gate) -> PortResetter:
    """The driver of port resets, by what the last looks at the networks bound and found."""

    def refusal(node: Node, act: ResetPort) -> str:
        if gate.cell is None:
            return "the controller has not started"
        return refused(gate.cell.view, gate.cell.live, node, act)

    def places(fabric: str) -> dict[str, FoundPort]:
        bound = gate.wirings.get(fabric)
        return {str(port): at for at, port in bound.names.items()} if bound is not None else {}

    agents = AgentPages(lambda: gate.agents, gate.now)
    return PortResetter(InfinibandSource(), agents, gate.fleet, refusal, places)


def _reach_people(gate: Gate, data: Path, secrets: Secrets, session: aiohttp.ClientSession) -> None:
    """How people are told and asked, and how they sign in. Raises InvalidInputError for an oidc.json that is wrong."""
    gate.targets = lambda name, links: {
        **http_targets(name, secrets),
        "email": MailTarget(name, secrets),
        "apprise": AppriseTarget(name, secrets),
        NETBOX: JournalTarget(name, secrets, links),
    }
    gate.systems = lambda name: ticket_systems(name, secrets)
    rules = read_sign_in(data)
    gate.sign_in = SignIn(rules, OidcProvider(rules, secrets, session)) if rules is not None else None


async def up(settings: UpSettings, announce: Callable[[str, Path], None]) -> None:
    """Hostler with an emulated fleet on this machine, until SIGTERM or SIGINT. Raises InvalidInputError.

    `announce` is called once, with the API's address and the file of the operator's token, when the fleet is up.
    """
    if settings.data and settings.kubernetes:
        instead = "leave --data out: the cluster's nodes and jobs go with it"
        raise InvalidInputError((Problem("--data", 0, "is not kept beside a cluster of --kubernetes", instead),))
    if settings.adopted and settings.kubernetes:
        instead = "leave --adopted out: nodes join that cluster by being brought up"
        raise InvalidInputError((Problem("--adopted", 0, "does not go with --kubernetes", instead),))
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    gc.set_threshold(*COLLECTIONS)
    with contextlib.ExitStack() as stack:
        kept = settings.data or stack.enter_context(tempfile.TemporaryDirectory(prefix="hostler-"))
        async with Connections() as connections, contextlib.AsyncExitStack() as held:
            gate = Gate()
            where = settings.kubernetes
            lab = await in_kubernetes(where, settings.nodes, gate, held) if where else in_memory(settings.nodes, gate)
            await _up(settings, Path(kept), connections, lab, announce)


async def _up(
    settings: UpSettings, data: Path, connections: Connections, lab: EmulatedLab, announce: Callable[[str, Path], None]
) -> None:
    stop = _told_to_stop()
    gate = lab.gate
    access: dict[str, Access] = {}
    clients = Clients(connections, lambda _origin: access.get("all", Access()), gate)
    gate.machines = Introduction(clients)
    own = _own_drivers(clients, KeptSecrets({}, time.monotonic), gate)
    bmc = ProviderHands(own[0], Providers({}, KeptSecrets({}, time.monotonic)))
    wiring = Wiring(
        (bmc, *own[1:], WithoutIronic(), *lab.wiring.drivers),
        (*_before_agents(gate, clients, own[0]), *lab.wiring.around),
    )
    async with running(Settings(port=settings.port, clock=now), Standing(data), wiring, gate) as inside:
        fleet = EmulatedFleet(
            FleetSettings(
                nodes=settings.nodes,
                scale=settings.scale,
                seed=settings.seed,
                faults_per_hour=settings.faults_per_hour,
                data=data,
                server=inside.address,
                tokens=lambda nodes: inside.tokens.create_all(
                    [Grant(f"agent-{node}", Role.agent, node=node) for node in nodes]
                ),
                origins={node.id: node.binding("bmc") for node in inside.cell.view.nodes.values()},
                real_agents=settings.real_agents,
                adopted=settings.adopted,
            ),
            now,
        )
        async with fleet:
            access["all"] = Access("hostler", fleet.password)
            known = set(inside.cell.view.nodes)
            await emulated_life.load(inside, fleet, settings.scale)
            ours = [node for node in inside.cell.view.nodes.values() if node.id in fleet.hosts]
            await emulated_life.resume(inside, fleet, lab, [n for n in ours if n.id in known or n.assignment])
            announce(inside.address, inside.data / TOKEN)
            cell = inside.cell
            watched = SchedulerReader(lab.clusters, lambda: cell.view, lambda: cell.live)
            gate.read_schedulers, gate.read_node = watched.news, watched.of_node
            pace = Pace(looks_per_s=LOOKS_PER_S)
            watch = BmcPoller(cell, SeriesReader(RedfishReader(clients), inside.trends, now), now, pace)
            people = emulated_life.staff(cell, fleet), emulated_life.strain(fleet, time.monotonic)
            await _until_told(stop, [watch.run(), _tell(gate), *people, *lab.begin(fleet, cell)])


async def _tell(gate: Gate, period_s: float = 0.5) -> None:
    """Put what the schedulers show before the controller, again and again."""
    while True:
        gate.show()
        await asyncio.sleep(period_s)


def _told_to_stop() -> asyncio.Event:
    """Set by SIGTERM or SIGINT from now on: who is told to stop while it starts resigns all the same."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _until_told(stop: asyncio.Event, work: Sequence[object]) -> None:
    """Run until it is told to stop; a task that ends by a bug ends everything."""
    tasks = [asyncio.ensure_future(one) for one in work]  # type: ignore[call-overload]
    told = asyncio.ensure_future(stop.wait())
    done, _ = await asyncio.wait([*tasks, told], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    told.cancel()
    await asyncio.gather(*tasks, told, return_exceptions=True)
    for task in done - {told}:
        task.result()


def _listening(settings: ServeSettings) -> Settings:
    return Settings(
        host=settings.host,
        port=settings.port,
        agents=settings.agents,
        hosts=_called(settings),
        tls_certificate=Path(settings.tls_cert) if settings.tls_cert else None,
        tls_key=Path(settings.tls_key) if settings.tls_key else None,
        insecure_plain_http=settings.insecure_plain_http,
        peers_ca=Path(settings.peers_ca) if settings.peers_ca else None,
        clock=now,
    )


def _called(settings: ServeSettings) -> tuple[str, ...]:
    """The names that it was told, and the one under which the other controllers call it."""
    names = tuple(map(host_name, settings.host_names))
    told = urlsplit(settings.advertise).hostname if names and settings.advertise else None
    return (*names, told) if told else names


def _read(paths: Sequence[str]) -> dict[str, str]:
    """The documents by file name. Raises InvalidInputError for one that cannot be read."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            found[Path(path).name] = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError((Problem(path, 0, str(error), "give a readable YAML file"),)) from error
    return found
