"""Commands that start something long-lived: a simulated cluster, a cell's controller and API, a node's agent."""

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from hostler.app.start_settings import ServeSettings, UpSettings
from hostler.cli import server_contexts
from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.logs.clean import Form

_UP = UpSettings()
UP_CONTEXT = "up"
"""The context that `hostler up` writes and makes the current one."""
_SERVE = ServeSettings(data="")

SEEN = "hostler.dev/phase,hostler.dev/pool,hostler.dev/rack"
"""Labels that tell a cluster's users the most."""

_TOUR = """\
Five things to try, in another terminal:
  hostler status                                            the whole fleet on one screen
  hostler events -w                                         what happens, as it is recorded
  hostler node list -l condition                            nodes with faults; the console shows each one's lanes
  hostler node explain NODE                                 evidence, rule, remedy, outcome, and who acts next
  hostler node reboot NODE --reason "a try" --dry-run       whom an act would disturb, and what it would wait for"""

_STANDS_BY = " and stands by; the configuration comes from the journal, --config is ignored"


LogFormat = Annotated[
    Form,
    Parameter(
        env_var="HOSTLER_LOG_FORMAT", help="How log lines on stderr look; auto: JSON where it is not a terminal."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class WorldOptions:
    """The simulated cluster."""

    nodes: Annotated[int, Parameter(help="How many nodes it has.")] = _UP.nodes
    scale: Annotated[
        float, Parameter(help="How many times faster than the clock it lives; 1440 is a day a minute.")
    ] = _UP.scale
    seed: Annotated[int, Parameter(help="The same seed draws the same faults.")] = _UP.seed
    faults_per_hour: Annotated[float, Parameter(help="Faults an hour by the clock, over the whole fleet.")] = (
        _UP.faults_per_hour
    )
    real_agents: Annotated[
        bool, Parameter(negative=(), help="Give the nodes' agents only the checks that real ones have, and no erasing.")
    ] = _UP.real_agents
    adopted: Annotated[
        bool, Parameter(negative=(), help="Nodes serve their pools from the start; only spares are brought up.")
    ] = _UP.adopted


@Parameter(name="*")
@dataclass(frozen=True)
class ApiTransport:
    """How the API is reached, and the boot listener."""

    listen: Annotated[str, Parameter(help="HOST:PORT; port 0 takes a free one.")] = f"{_SERVE.host}:{_SERVE.port}"
    agent_listen: Annotated[
        str, Parameter(show_default=False, help="HOST:PORT for agents alone, with connections of its own.")
    ] = ""
    host_name: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(), show_default=False, help="A name that clients or a proxy call it by; others are refused."
        ),
    ] = ()
    tls_cert: Annotated[str, Parameter(show_default=False, help="PEM file.")] = ""
    tls_key: Annotated[str, Parameter(show_default=False, help="PEM file.")] = ""
    insecure_plain_http: Annotated[
        bool,
        Parameter(negative=(), help="Serve another address than loopback without TLS: tokens are readable on the way."),
    ] = False
    boot_listen: Annotated[
        str, Parameter(show_default=False, help="HOST:PORT for machines that boot over the network; plain HTTP.")
    ] = ""
    boot_images: Annotated[
        str, Parameter(show_default=False, help="Folder of the kernels and file systems that the configuration names.")
    ] = ""
    boot_key: Annotated[
        str, Parameter(show_default=False, help="Secret with the key of boots, for all controllers: `folder:NAME`.")
    ] = ""
    boot_signers: Annotated[
        str,
        Parameter(show_default=False, help="PEM file of Ed25519 public keys: boot what they signed alone."),
    ] = ""
    boot_media_listen: Annotated[
        str,
        Parameter(show_default=False, help="HOST:PORT for BMCs that fetch boot media by HTTPS, with --tls-cert."),
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True)
class AgentOptions:
    """Folder of undelivered observations, and the sources that the agent reads.

    `agent/main.py` has the same options.
    """

    state_dir: Annotated[str, Parameter(help="What is not delivered yet is kept here.")] = "/var/lib/hostler-agent"
    ca_file: Annotated[str, Parameter(show_default=False, help="Trust these authorities, not the system's.")] = ""
    kernel_log: Annotated[str, Parameter(help='The kernel log, or "journal"; "" reads none.')] = "/dev/kmsg"
    allow_actions: Annotated[bool, Parameter(negative=(), help="Permit reboot, gpu_reset and sanitise.")] = False
    cluster_server: Annotated[
        str, Parameter(show_default=False, help="API servers that the kubelet may join, with commas between.")
    ] = ""
    cluster_ca: Annotated[
        str, Parameter(show_default=False, help="PEM file of the authorities that these are known by.")
    ] = ""
    scratch: Annotated[
        tuple[str, ...], Parameter(negative=(), show_default=False, help="Devices that sanitise may erase.")
    ] = ()
    units: Annotated[
        tuple[str, ...], Parameter(negative=(), show_default=False, help="systemd units that must run.")
    ] = ()
    nvml_twin: Annotated[
        str, Parameter(show_default=False, help="Recorded GPUs in place of the driver's, in labs.")
    ] = ""
    dcgm: Annotated[
        str, Parameter(help='DCGM exporter\'s page on loopback, read where one answers; "" reads none.')
    ] = "http://127.0.0.1:9400/metrics"
    checks_dir: Annotated[str, Parameter(help="The site's own checks, owned by root.")] = "/etc/hostler/checks.d"
    check_program: Annotated[str, Parameter(help="hostler-check, for burn-in, suspect and idle checks.")] = (
        "/opt/hostler-checks/bin/hostler-check"
    )
    check_device: Annotated[Literal["auto", "gpu", "cpu"], Parameter(help="What they look at; cpu: without GPUs.")] = (
        "auto"
    )
    check_for: Annotated[
        str, Parameter(show_default=False, help="Their time under load, as 24h, instead of the profile's.")
    ] = ""
    idle_beside: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="Programs and units that an idle check may run beside."),
    ] = ()
    idle_cores: Annotated[
        float, Parameter(show_default=False, help="Cores that others may use meanwhile; 0: one in eight.")
    ] = 0.0
    meet: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="PORT=INTERFACE by which other nodes are met after checks."),
    ] = ()
    log_format: LogFormat = "auto"


@Parameter(name="*")
@dataclass(frozen=True)
class Peers:
    """How this controller stands among those of its cell. Whoever names the same journal stands by."""

    journal: Annotated[
        str,
        Parameter(
            env_var="HOSTLER_JOURNAL",
            show_default=False,
            help="postgresql://…, for several controllers; or a file, for one; else a file in the data directory.",
        ),
    ] = ""
    name: Annotated[str, Parameter(show_default=False, help="What it is called; host and port otherwise.")] = ""
    advertise: Annotated[
        str, Parameter(show_default=False, help="URL under which the other controllers reach this one.")
    ] = ""
    lease: Annotated[
        float, Parameter(help="Seconds after which another takes over from one that has fallen silent.")
    ] = _SERVE.lease_s
    archive: Annotated[
        str,
        Parameter(
            show_default=False,
            help="Once a day move there what has had its time (`hostler journal compact`); else the journal grows.",
        ),
    ] = ""
    peers_ca: Annotated[
        str, Parameter(show_default=False, help="Trust these authorities for the other controllers, not the system's.")
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True)
class Clusters:
    """The schedulers of the clusters that the cell's nodes serve in."""

    cluster: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            show_default=False,
            help="A Kubernetes cluster: NAME=KUBECONFIG[@CONTEXT][+SETTINGS]; in-cluster for the pod's own account.",
        ),
    ] = ()
    slurm: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A Slurm cluster: NAME, or NAME=FILE with how it is reached."),
    ] = ()


@Parameter(name="*")
@dataclass(frozen=True)
class ControllerStart:
    """Initial state of the controller."""

    config: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False, help="Documents to activate.")] = ()
    log_format: LogFormat = "auto"
    traces: Annotated[
        str,
        Parameter(show_default=False, help="Send traces of requests to this OpenTelemetry collector (OTLP over HTTP)."),
    ] = ""


PEERS, CLUSTERS, START = Peers(), Clusters(), ControllerStart()
WORLD, TRANSPORT, AGENT = WorldOptions(), ApiTransport(), AgentOptions()


def up(
    *,
    port: Annotated[int, Parameter(help="0 takes a free one.")] = _UP.port,
    world: WorldOptions = WORLD,
    data: Annotated[str, Parameter(show_default=False, help="Keep the journal here; otherwise nothing is kept.")] = "",
    kubernetes: Annotated[
        str,
        Parameter(show_default=False, help="Its nodes serve in this cluster, played by kwok: an admin's kubeconfig."),
    ] = "",
    log_format: LogFormat = "auto",
) -> int:
    """Start Hostler with a simulated cluster on this machine, until Ctrl-C. Later commands find it by themselves."""
    from hostler.app.compose import up as run_up

    _log(log_format)
    settings = UpSettings(
        port,
        world.nodes,
        world.scale,
        data,
        world.seed,
        world.faults_per_hour,
        kubernetes,
        world.real_agents,
        world.adopted,
    )
    return _until_stopped(run_up(settings, partial(_announce_up, settings)))


def serve(
    *,
    data: Annotated[str, Parameter(help="Directory of the journal and the tokens; made where it is not there.")],
    transport: ApiTransport = TRANSPORT,
    peers: Peers = PEERS,
    clusters: Clusters = CLUSTERS,
    start: ControllerStart = START,
) -> int:
    """Serve one cell: a controller, active or standing by, and the API, until SIGTERM or Ctrl-C."""
    host, port = address_of(transport.listen)

    from hostler.app.compose import serve as run_serve
    from hostler.app.first_start import TOKEN

    _log(start.log_format)
    first = Path(data) / TOKEN
    announce = partial(_announce_serve, None if first.exists() else first)
    settings = ServeSettings(
        data=data,
        host=host,
        port=port,
        tls_cert=transport.tls_cert,
        tls_key=transport.tls_key,
        insecure_plain_http=transport.insecure_plain_http,
        agents=address_of(transport.agent_listen, "--agent-listen") if transport.agent_listen else None,
        host_names=transport.host_name,
        config=start.config,
        journal=peers.journal,
        name=peers.name,
        advertise=peers.advertise,
        lease_s=peers.lease,
        archive=peers.archive,
        peers_ca=peers.peers_ca,
        slurm=clusters.slurm,
        clusters=clusters.cluster,
        boot=address_of(transport.boot_listen, "--boot-listen") if transport.boot_listen else None,
        boot_images=transport.boot_images,
        boot_key=transport.boot_key,
        boot_signers=transport.boot_signers,
        boot_media=address_of(transport.boot_media_listen, "--boot-media-listen")
        if transport.boot_media_listen
        else None,
        traces=start.traces,
    )
    return _until_stopped(run_serve(settings, announce))


def agent(
    *,
    server: Annotated[
        str,
        Parameter(env_var="HOSTLER_SERVER", show_default=False, help="The cell's controllers, with commas between."),
    ] = "",
    node: Annotated[str, Parameter(show_default=False, help="This node's id.")] = "",
    token_file: Annotated[str, Parameter(show_default=False, help="File with this node's token.")] = "",
    rss: Annotated[bool, Parameter(negative=(), help="Print this process's memory when loaded, and end.")] = False,
    options: AgentOptions = AGENT,
) -> int:
    """Run the node agent, until SIGTERM or Ctrl-C."""
    from hostler.agent.cluster_pins import PinsError
    from hostler.agent.main import AgentSettings, rss_kib, run_agent
    from hostler.agent.meetings import WaysError
    from hostler.logs.plain import begin

    if rss:
        print(f"{rss_kib()} KiB")
        return 0
    for value, name in ((server, "--server URL"), (node, "--node ID"), (token_file, "--token-file FILE")):
        if not value:
            raise unusable("an agent needs its server, its node's id and its token", f"give {name}")
    begin(options.log_format)
    settings = AgentSettings(
        node=node,
        server=server,
        token_file=Path(token_file),
        state_dir=Path(options.state_dir),
        ca_file=options.ca_file,
        kernel_log=options.kernel_log,
        allow_actions=options.allow_actions,
        cluster_server=options.cluster_server,
        cluster_ca=options.cluster_ca,
        scratch=options.scratch,
        checks_dir=options.checks_dir,
        check_program=options.check_program,
        check_device=options.check_device,
        check_for=options.check_for,
        idle_beside=options.idle_beside,
        idle_cores=options.idle_cores,
        meet=options.meet,
        dcgm=options.dcgm,
        units=options.units,
        nvml_twin=options.nvml_twin,
    )
    try:
        asyncio.run(run_agent(settings))
    except PermissionError as error:
        raise unusable(str(error), "make it readable by its owner alone (chmod 600), then start the agent") from error
    except (PinsError, WaysError) as error:
        raise unusable(str(error)) from error
    return 0


def address_of(listen: str, option: str = "--listen") -> tuple[str, int]:
    """Host and port of "HOST:PORT" ("[::1]:8440" for IPv6). Raises CommandError."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65_535:
        raise unusable(f"{option} {listen}", "write HOST:PORT, as 127.0.0.1:8440 or [::]:8440")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _until_stopped(run: Coroutine[Any, Any, None]) -> int:
    """Run a whole Hostler. Raises CommandError for what kept it from starting."""
    import uvloop

    from hostler.core.state.input_problems import InvalidInputError
    from hostler.ports import JournalError
    from hostler.server.server_settings import UnsafeListenError

    try:
        uvloop.run(run)
    except (InvalidInputError, UnsafeListenError) as error:
        raise unusable(str(error)) from error
    except JournalError as error:
        raise CommandError(ExitCode.unavailable, *_damaged(str(error))) from error
    except OSError as error:
        raise CommandError(
            ExitCode.unavailable, f"cannot start: {error}", "see that the port is free and the path is right"
        ) from error
    return 0


def _damaged(why: str) -> tuple[str, str]:
    """Words for what cannot be read, and what helps: tokens are beside the journal and no part of it."""
    if "tokens.db" in why:
        return f"the tokens: {why}", "put the file back from a backup; without one move it away and make new tokens"
    return f"the journal: {why}", "see `hostler journal check`"


def _announce_serve(first: Path | None, address: str, role: str) -> None:
    """Say what is served, and where the first operator's token is; `first` is None where that was there before."""
    print(f"hostler serves {address}" + (_STANDS_BY if role == "standby" else ""), flush=True)
    if first is not None and first.exists():
        lead = f"hostler context add first --server {address} --token-file {first}"
        print(f"the first operator's token is in {first}; commands find it after\n  {lead}", flush=True)


def _announce_up(settings: UpSettings, address: str, token_file: Path) -> None:
    """Say where everything is, and let commands find it."""
    written = server_contexts.use(UP_CONTEXT, server_contexts.Context(address, str(token_file)))
    lines = [
        f"Hostler is up with {settings.nodes} emulated nodes, time {settings.scale:g} times as fast.",
        f"  console   {address}/#token={token_file.read_text().strip()}",
        f"  API       {address}/v1",
        f"  commands  hostler status · hostler node list · hostler node explain NODE   (they read {written})",
        f"  data      {token_file.parent}",
        _TOUR,
        "Stop with Ctrl-C.",
    ]
    if settings.kubernetes:
        lines.insert(-1, f"  cluster   kubectl --kubeconfig={settings.kubernetes} get nodes -L {SEEN}")
    print("\n".join(lines), flush=True)
    if os.environ.get("HOSTLER_UP_JSON"):
        json.dump({"address": address, "token_file": str(token_file)}, sys.stderr)


def _log(form: Form) -> None:
    from hostler.logs.structured import begin

    begin(form)
