"""The agent's process: settings, clocks and chance come in here, and its parts are tied together."""

import argparse
import asyncio
import ctypes
import logging
import os
import random
import secrets
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from msgspec import Struct

from hostler.agent import controller_client
from hostler.agent.check_plugins import CURSOR, Rounds
from hostler.agent.check_plugins import DIRECTORY as CHECKS
from hostler.agent.checks.check_suite import PROGRAM, SuiteSettings
from hostler.agent.cluster_pins import PinsError, read_pins
from hostler.agent.collector_loops import CollectorLoops
from hostler.agent.collectors.kernel_log import KernelLogReader, KmsgDevice, Source
from hostler.agent.collectors.kubelet_devices import Devices
from hostler.agent.collectors.network_ports import Ports
from hostler.agent.collectors.passive_samples import PassiveSamples
from hostler.agent.collectors.pstore import tell_crashes
from hostler.agent.collectors.systemd_journal import SystemdJournal
from hostler.agent.controller_client import (
    About,
    ControllerClient,
    MeetingAsk,
    RejectedError,
    SpoolReceipt,
    UnavailableError,
    backoff_s,
)
from hostler.agent.drill_injections import DrillInjections
from hostler.agent.host_commands import ActFailedError
from hostler.agent.inventory_news import InventoryNews
from hostler.agent.local_observation import LocalObservation, agent_event, collector_failed, collector_started
from hostler.agent.machine import HostMachine, Powers, RealHostMachine, SensorSources
from hostler.agent.meetings import Meetings, MeetingSettings, WaysError, ways_of
from hostler.agent.node_operations import KNOWN_KINDS, NodeOperations
from hostler.agent.node_use import UseLimits
from hostler.agent.operation_log import OperationLog
from hostler.agent.operation_worker import Operator
from hostler.agent.private_files import require_private
from hostler.agent.refused_token import RefusedToken
from hostler.agent.spool import Spool
from hostler.agent.spool_file import put_aside
from hostler.agent.spool_upload import Uploader
from hostler.core.state.meetings import MeetingReply
from hostler.core.state.model import Facts
from hostler.logs import plain as log_lines
from hostler.logs.clean import FORMS, Form
from hostler.logs.plain import facts

VERSION = "0.1.0"
MEETING_ASK_S = 60.0
"""Time for the answer to a question for somebody to meet, retries at other controllers included."""
HEARTBEAT_S = 5.0
INVENTORY_S = 3600.0
TIDY_S = 30.0
DCGM = "http://127.0.0.1:9400/metrics"
PORTS_S = 10.0
DEVICES_S = 5.0
PASSIVE_S = 60.0
PORTS_HANG_S = 30.0
THREADS = 12
"""The log's reader, an inventory, ports, GPUs, host, drives, an act, and room for short calls to the disk."""
LAST_POST_S = 3.0
"""Time for which a stopping agent tries to send what it still holds."""

log = logging.getLogger("hostler.agent")


class AgentSettings(Struct, frozen=True):
    """Settings with which an agent is started.

    `scratch`: the only devices that sanitise may erase.

    `server`: the cell's controllers, with commas between.
    `kernel_log` is /dev/kmsg, or a pipe with the same records, or "journal" for systemd's journal; "" reads none.
    `units` are systemd's units that must run. `nvml_twin` is a file of recorded GPUs, for a machine without any; `dcgm`
    the page of DCGM's exporter on this machine, "" for none. `cluster_server` and `cluster_ca` name the clusters that
    this node may join: API servers with commas between, and a PEM file; without them it joins none. `check_program` is
    the suite of active checks, `check_device` what it looks at (auto, gpu, cpu), `check_for` its time under load.
    `idle_beside` and `idle_cores` are what an idle check bears beside it (`node_use.UseLimits`).
    `meet`: "PORT=INTERFACE" by which other nodes are met after a check; without any nobody is. `pace` is how many times
    as seldom as usual it beats and looks: emulated agents share one machine, and many of them one core.
    """

    node: str
    server: str
    token_file: Path
    state_dir: Path
    ca_file: str = ""
    kernel_log: str = "/dev/kmsg"
    allow_actions: bool = False
    scratch: tuple[str, ...] = ()
    checks_dir: str = str(CHECKS)
    units: tuple[str, ...] = ()
    nvml_twin: str = ""
    dcgm: str = DCGM
    cluster_server: str = ""
    cluster_ca: str = ""
    log_format: Form = "auto"
    check_program: str = PROGRAM
    check_device: str = "auto"
    check_for: str = ""
    idle_beside: tuple[str, ...] = ()
    idle_cores: float = 0.0
    meet: tuple[str, ...] = ()
    pace: float = 1.0


async def run_agent(settings: AgentSettings) -> None:
    """Run the node agent until SIGTERM or SIGINT.

    Raises PermissionError for a token that others can read, PinsError and WaysError for clusters and ports that cannot
    be told.
    """
    if settings.token_file.exists():
        require_private(settings.token_file)
    clusters = read_pins(settings.cluster_server, settings.cluster_ca)
    ways_of(settings.meet)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS, "agent"))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    body = RealHostMachine(
        settings.node,
        settings.state_dir,
        Powers(settings.allow_actions, settings.scratch, clusters),
        SensorSources(
            settings.units,
            settings.nvml_twin,
            settings.dcgm,
            settings.kernel_log,
            checks=settings.checks_dir,
            suite=SuiteSettings(
                settings.check_program,
                settings.check_device,
                settings.check_for,
                UseLimits(settings.idle_beside, settings.idle_cores),
            ),
        ),
    )
    tidying = asyncio.create_task(_tidy())
    try:
        await serve(settings, body, stop)
    finally:
        tidying.cancel()
        body.close()


async def serve(settings: AgentSettings, body: HostMachine, stop: asyncio.Event) -> None:
    """Run the agent of the machine `body` until `stop` is set; then send what is left and release everything."""
    spool = Spool(settings.state_dir, body.boot_id(), time.monotonic, lambda: secrets.token_hex(8))
    log_of_operations = open_log_of_operations(settings.state_dir / "marks.sqlite", spool)
    try:
        async with controller_client.session(settings.server, settings.ca_file) as session:
            controller = ControllerClient(session, settings.server, settings.token_file, settings.node)
            await Agent(settings, body, spool, log_of_operations, controller).run(stop)
    finally:
        log_of_operations.close()
        spool.close()


def open_log_of_operations(path: Path, spool: Spool) -> OperationLog:
    """The marks; unreadable ones are put aside, and said: what was begun before is then unknown to this agent."""
    try:
        return OperationLog(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        put_aside(path)
        spool.append([collector_failed("marks", spool.now_s(), f"marks were unreadable and put aside: {error}")])
        return OperationLog(path)


async def _tidy() -> None:
    """Give back, for ever, what starting, an inventory or a storm has needed for a moment only."""
    while True:
        await asyncio.sleep(TIDY_S)
        give_back()


def rss_kib() -> int:
    """The resident memory of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def give_back() -> None:
    """Hand memory that is free back to the system; glibc keeps it otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Agent:
    """The tasks of a running agent. If one of them ends by a bug of ours, all end, and systemd starts us again."""

    def __init__(
        self,
        settings: AgentSettings,
        body: HostMachine,
        spool: Spool,
        log_of_operations: OperationLog,
        controller: ControllerClient,
    ) -> None:
        self._settings = settings
        self._body = body
        self._spool = spool
        self._controller = controller
        self._uploader = Uploader(settings.node, spool, controller, random.random)
        self._inventory = InventoryNews()
        self._samples = PassiveSamples(settings.node)
        self._watch = CollectorLoops(body, spool, self._uploader.wake, self._samples, settings.pace)
        self._meetings = self._meetings_of(settings)
        drills = DrillInjections(body.write_kernel_log, controller.fall_silent)
        operations = NodeOperations(settings.node, body, log_of_operations, self._meetings, drills)
        self._operator = Operator(operations, log_of_operations, spool, self._uploader, controller)

    def _meetings_of(self, given: AgentSettings) -> Meetings:
        """Meetings with other nodes; asked for by the thread of an operation."""
        loop = asyncio.get_running_loop()
        use = UseLimits(given.idle_beside, given.idle_cores)

        def ask(asked: MeetingAsk) -> MeetingReply:
            try:
                return asyncio.run_coroutine_threadsafe(self._controller.meeting(asked), loop).result(MEETING_ASK_S)
            except (TimeoutError, CancelledError, RuntimeError) as error:
                raise UnavailableError(f"the question for somebody to meet was not answered: {error}") from error

        folder = given.state_dir / "checks"
        return Meetings(MeetingSettings(ways_of(given.meet), given.check_program, use), folder, ask)

    async def run(self, stop: asyncio.Event) -> None:
        """Run all tasks until `stop` is set. Raises an ExceptionGroup where one of them fails: then all end."""
        facts: Facts = {"version": VERSION, "rss_kib": rss_kib()}
        now_s = self._spool.now_s()
        await self._note(agent_event("started", now_s, f"agent {VERSION}", facts), collector_started("spool", now_s))
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(work) for work in self._work()]
                await stop.wait()
                for task in running:
                    task.cancel()
        finally:
            self._meetings.close()
            await self._post_last()

    def wake(self) -> None:
        """There is something in the spool to send. Call it on the event loop's thread."""
        self._uploader.wake()

    async def settled(self) -> None:
        """Return once the controller has everything that was seen so far."""
        await self._uploader.drained()

    def _work(self) -> list[Coroutine[None, None, None]]:
        work = [
            self._heartbeats(),
            self._uploader.run(),
            self._operator.take_orders(random.random),
            self._operator.report(random.random),
            self._inventories(),
            self._ports(),
            self._devices(),
            self._site_checks(),
            self._passive_series(),
            self._watch.gpus(),
            self._watch.dcgm(),
            self._watch.host(),
            self._watch.drives(),
        ]
        return [*work, self._kernel_log(random.random)] if self._settings.kernel_log else work

    async def _heartbeats(self) -> None:
        """Say that we live. A missed beat is not repeated; the next one says the same.

        Each reason why one is missed is logged once, and the end with how many there were.
        """
        every_s = HEARTBEAT_S * self._settings.pace
        token = RefusedToken(self._settings.token_file, self._settings.node, every_s)
        while True:
            wait_s = every_s
            token.sends()
            try:
                had = SpoolReceipt(self._spool.id, self._spool.acknowledged)
                told = (self._body.profiles(), self._body.progress(), KNOWN_KINDS, self._body.barred())
                about = About(VERSION, rss_kib(), *told)
                beat = await self._controller.heartbeat(self._body.boot_id(), about, had)
                self._inventory.held = beat.inventory
                await self._uploader.rewind(beat.read, had)
                token.heard()
            except (UnavailableError, RejectedError, sqlite3.Error) as error:
                self._inventory.held = ""
                wait_s = token.missed(error)
            await token.rest(wait_s)

    async def _inventories(self) -> None:
        while True:
            now_s = self._spool.now_s()
            try:
                news = self._inventory.of(await asyncio.to_thread(self._body.inventory), now_s)
            except ActFailedError as error:
                news = self._inventory.failed(str(error), now_s)
            await self._note(*news)
            await asyncio.sleep(INVENTORY_S)

    async def _ports(self) -> None:
        """Look at the ports again and again; a look that hangs is told, and nobody looks beside it."""
        ports, hung = Ports(), False
        while True:
            looking = asyncio.ensure_future(asyncio.to_thread(self._body.ports))
            await asyncio.wait((looking,), timeout=PORTS_HANG_S)
            now_s = self._spool.now_s()
            if not looking.done():
                hung = True
                await self._note(collector_failed("ports", now_s, "a port's state in sysfs cannot be read: it hangs"))
            states = await looking
            if hung:
                hung = False
                await self._note(collector_started("ports", now_s))
            if news := ports.news(states, now_s):
                facts: Facts = {f"port:{port}": state for port, state in news.items()}
                await self._note(LocalObservation("ports", now_s, facts=facts))
            await asyncio.sleep(PORTS_S * self._settings.pace)

    async def _devices(self) -> None:
        """Tell which pod has which GPUs whenever that changes."""
        devices = Devices()
        while True:
            seen = await asyncio.to_thread(self._body.devices)
            now_s = self._spool.now_s()
            if (news := devices.news(seen, now_s)) is not None:
                facts: Facts = {f"pod:{uid}": ids for uid, ids in news.items()}
                await self._note(LocalObservation("devices", now_s, facts=facts))
            await asyncio.sleep(DEVICES_S * self._settings.pace)

    async def _site_checks(self) -> None:
        """Run the site's own checks, one after the other; see `plugins`."""
        kept = self._spool.cursor(CURSOR)
        rounds = Rounds(Path(self._settings.checks_dir), self._settings.node, kept=kept)
        while True:
            told, wait_s = await asyncio.to_thread(rounds.turn, self._spool.now_s())
            if told:
                await asyncio.to_thread(self._spool.append, told, rounds.cursor())
                self._uploader.wake()
            await asyncio.sleep(wait_s)

    async def _passive_series(self) -> None:
        """Send windows of passive series that are over. One that a controller does not take is let go, others wait."""
        while True:
            await asyncio.sleep(PASSIVE_S * self._settings.pace)
            while self._samples.waiting:
                number, ended_s, readings = window = self._samples.waiting[0]
                age_s = max(self._spool.now_s() - ended_s, 0.0)
                try:
                    await self._controller.readings(self._body.boot_id(), number, age_s, readings)
                except UnavailableError:
                    break
                except RejectedError as error:
                    log.info("readings_rejected", extra=facts(reason=str(error)))
                self._samples.waiting = [one for one in self._samples.waiting if one is not window]

    async def _kernel_log(self, draw: Callable[[], float]) -> None:
        """Keep the reader alive: its end is reported, and it is started again after a while."""
        attempt = 0
        await asyncio.to_thread(tell_crashes, self._spool, self._spool.now_s())
        source = log_source(self._settings.kernel_log)
        reader = KernelLogReader(source, self._spool, self._body.boot_id(), self._spool.now_s)
        while True:
            started_s = self._spool.now_s()
            error = await self._read_until_it_ends(reader)
            attempt = 0 if self._spool.now_s() - started_s > controller_client.MAX_BACKOFF_S else attempt + 1
            await self._note(collector_failed("kernel_log", self._spool.now_s(), f"the reader ended: {error}"))
            await asyncio.sleep(backoff_s(attempt, None, draw()))

    async def _read_until_it_ends(self, reader: KernelLogReader) -> str:
        """Run the reader in a thread; returns how it ended. When cancelled, stops it and waits for it."""
        loop = asyncio.get_running_loop()
        told, tell = os.pipe()
        wake = partial(_on, loop, self._uploader.wake)
        thread = asyncio.ensure_future(asyncio.to_thread(reader.run, told, wake))
        try:
            await asyncio.wait((thread,))
        finally:
            os.close(tell)
            await asyncio.wait((thread,))
            os.close(told)
        error = thread.exception()
        return f"{type(error).__name__}: {error}" if error else "without a reason"

    async def _note(self, *seen: LocalObservation) -> None:
        await asyncio.to_thread(self._spool.append, list(seen))
        self._uploader.wake()

    async def _post_last(self) -> None:
        await self._note(agent_event("stopped", self._spool.now_s()))
        try:
            async with asyncio.timeout(LAST_POST_S):
                await self._uploader.send_all()
                await self._operator.report_all()
        except (UnavailableError, RejectedError, sqlite3.Error, TimeoutError) as error:
            if left := self._spool.waiting:
                reason = str(error) or f"not sent within {LAST_POST_S} s"
                log.info("stopped_with_unsent", extra=facts(observations=left, reason=reason))


def log_source(name: str) -> Source:
    """Systemd's journal for "journal" or "journal:NAMESPACE"; a device, file or pipe for any other name."""
    kind, _, namespace = name.partition(":")
    return SystemdJournal(namespace) if kind == "journal" else KmsgDevice(name)


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call on the loop's thread, unless the loop is closed already."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def settings_from(arguments: Sequence[str] | None) -> AgentSettings | None:
    """The settings on the command line; None where only `--rss` was asked."""
    parser = argparse.ArgumentParser(prog="hostler-agent", description="Hostler's agent for one node.")
    parser.add_argument("--node", default=os.uname().nodename, help="this node's id")
    parser.add_argument(
        "--server", default="https://localhost:8443", help="the cell's controllers, with commas between"
    )
    parser.add_argument("--token-file", type=Path, default=Path("/etc/hostler/agent-token"))
    parser.add_argument("--state-dir", type=Path, default=Path("/var/lib/hostler-agent"))
    parser.add_argument("--ca-file", default="", help="trust these authorities instead of the system's")
    parser.add_argument("--kernel-log", default="/dev/kmsg", help='or "journal"; "" reads no kernel log')
    parser.add_argument("--allow-actions", action="store_true", help="permit reboot, resets, sanitise and firmware")
    parser.add_argument("--cluster-server", default="", help="API servers that the kubelet may join, commas between")
    parser.add_argument("--cluster-ca", default="", help="PEM file of the authorities that these are known by")
    parser.add_argument("--scratch", nargs="*", default=(), help="devices that sanitise may erase")
    parser.add_argument("--units", nargs="*", default=(), help="systemd units that must run, beside the usual ones")
    parser.add_argument("--nvml-twin", default="", help="a file of recorded GPUs in place of the driver's (for labs)")
    parser.add_argument(
        "--dcgm", default=DCGM, help='DCGM exporter\'s page on loopback, read where one answers; "": none'
    )
    parser.add_argument("--check-program", default=PROGRAM, help="hostler-check, for burn-in, suspect and idle checks")
    parser.add_argument("--check-device", default="auto", choices=("auto", "gpu", "cpu"), help="cpu: without GPUs")
    parser.add_argument("--check-for", default="", help="their time under load, as 24h, instead of the profile's")
    parser.add_argument("--idle-beside", nargs="*", default=(), help="programs and units that idle checks run beside")
    parser.add_argument("--idle-cores", type=float, default=0.0, help="cores that others may use meanwhile; 0: 1 in 8")
    parser.add_argument(
        "--meet", nargs="*", default=(), help="PORT=INTERFACE by which other nodes are met after checks"
    )
    parser.add_argument("--checks-dir", default=str(CHECKS), help="the site's own checks, owned by root")
    log_format = os.environ.get("HOSTLER_LOG_FORMAT", "auto")
    parser.add_argument(
        "--log-format",
        choices=FORMS,
        default=log_format,
        help="of log lines; auto: JSON where stderr is not a terminal",
    )
    parser.add_argument("--rss", action="store_true", help="print this process's memory when loaded, and end")
    given = vars(parser.parse_args(arguments))
    if given.pop("rss"):
        return None
    return AgentSettings(
        **{**given, **{name: tuple(given[name]) for name in ("scratch", "units", "idle_beside", "meet")}}
    )


def command() -> None:
    """Run `hostler` where the agent alone is installed: `hostler agent …`, with the options of `hostler-agent`."""
    match sys.argv[1:]:
        case ["agent", *options]:
            main(options)
        case ["--version"]:
            print(VERSION)  # noqa: T201 - what was asked for
        case _:
            sys.exit(
                "hostler: only the agent is installed here: hostler agent --help; all commands: pip install hostler"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the commands `hostler-agent` and `python -m hostler.agent.main`."""
    settings = settings_from(arguments)
    if settings is None:
        print(f"{rss_kib()} KiB")  # noqa: T201 - what was asked for
        return
    log_lines.begin(settings.log_format)
    try:
        asyncio.run(run_agent(settings))
    except (PermissionError, PinsError, WaysError) as error:
        sys.exit(f"hostler-agent: {error}")


if __name__ == "__main__":
    main()
