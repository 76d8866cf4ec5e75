"""A month of healthy life in virtual time: a fleet at work with all that sound machines say, and nothing wrong with it.

Rates are estimates of what fleets of this kind see: programs fail on GPUs, memory and links correct errors within
bounds, containers run out of memory, sensors spike for one reading, agents restart, and the network is gone for less
than anybody calls silence.
"""

import gc
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from bench.detection.boot_logs import SERVERS, boot_log
from bench.detection.decided import record
from bench.detection.table import Quiet
from hostler.agent.collectors.kernel_log import Intake, LogPosition
from hostler.core.state import events as e
from hostler.core.state.model import Severity
from hostler.sim.downtime_accounts import HARMLESS
from hostler.sim.failure_rates import load
from hostler.sim.pool_run import SETTLE_S, START, SimSettings, build
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.fault_kinds import pci_of
from hostler.sim.world.message_spool import ObservationContent
from hostler.sim.world.simulated_host import SimulatedHost

DAY_S = 86_400.0
GPUS = 8
MODULES = 32
"""Of memory, in each host: errors that are corrected fall on any of them."""
_PROGRAM = (
    "NVRM: Xid (PCI:{gpu}): 31, pid={pid}, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
    "NVRM: Xid (PCI:{gpu}): 13, pid={pid}, name=python3, Graphics SM Warp Exception on (GPC 1, TPC 2, SM 1)",
    "NVRM: Xid (PCI:{gpu}): 43, pid={pid}, name=python3, Ch 00000008",
)
_CORRECTED = (
    "EDAC MC{mc}: 1 CE memory read error on CPU_SrcID#0_MC#{mc}_Chan#{chan}_DIMM#0 (channel:0 slot:0 page:0x1a)",
    "pcieport 0000:00:01.0: AER: Corrected error received: {gpu}.0",
    "nvidia {gpu}.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
)
_OF_CONTAINERS = (
    "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999",
    (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a.scope,mems_allowed=0-1,oom_memcg=/kubepods.slice/a,"
        "task_memcg=/kubepods.slice/a/b,task=python3,pid={pid},uid=0"
    ),
    "Memory cgroup out of memory: Killed process {pid} (python3) total-vm:91234kB, anon-rss:88000kB, file-rss:0kB",
    "python3[{pid}]: segfault at 0 ip 0000558a1 sp 00007ffd1 error 6 in python3.10[558a0000+2b2000]",
)
_LINKS = ("mlx5_core 0000:18:00.0 ens0f0np0: Link down", "mlx5_core 0000:18:00.0 ens0f0np0: Link up")


class Ears:
    """The collector of a host's kernel log: what it lets through goes into the host's spool."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host
        self._intake = Intake(LogPosition(host.boot_id))
        self.lines = 0

    def hear(self, *lines: str) -> None:
        """The kernel writes these lines now."""
        now_s = self._host.site.clock.elapsed_s
        for line in lines:
            self._intake.take(record(line, self.lines, now_s), now_s)
            self.lines += 1
        seen, _ = self._intake.batch(now_s)
        for one in seen:
            said = ObservationContent(one.text, one.facts, facility=one.facility)
            self._host.spool.put(one.kind, said, self._host.boot_id)


class Life:
    """Lives one healthy host's life: each kind of thing happens at its own times, drawn from the host's own stream."""

    def __init__(self, host: SimulatedHost, until_s: float, lived: Counter[str]) -> None:
        self._host = host
        self._chance = host.site.stream(f"life of {host.node}")
        self._until_s = until_s
        self._lived = lived
        self._ears = Ears(host)
        self._everyday = boot_log(self._chance.choice([one for one in SERVERS if one.gpus == GPUS]), 0)

    def begin(self) -> None:
        """The host's boot is read, and life begins."""
        self._ears.hear(*self._everyday)
        self._lived["kernel lines"] += len(self._everyday)
        for name, per_day, happens in (
            ("everyday kernel lines", 20.0, self._line),
            ("failed programs", 0.1, self._program),
            ("corrected errors", 0.3, self._corrected),
            ("containers that died", 0.2, self._container),
            ("links that retrained", 0.02, self._link),
            ("sensors that spiked", 0.1, self._spike),
            ("agents that restarted", 0.1, self._restart),
            ("network blips", 0.1, self._blip),
        ):
            self._again(name, per_day, happens)

    def _again(self, name: str, per_day: float, happens: Callable[[], None]) -> None:
        clock = self._host.site.clock
        wait_s = self._chance.expovariate(per_day / DAY_S)
        if clock.elapsed_s + wait_s < self._until_s:
            clock.after(wait_s, partial(self._now, name, per_day, happens))

    def _now(self, name: str, per_day: float, happens: Callable[[], None]) -> None:
        if self._host.heard:
            self._lived[name] += 1
            happens()
        self._again(name, per_day, happens)

    def _say(self, *lines: str, gpu: int = 0) -> None:
        draw = self._chance.randrange
        words = {"gpu": pci_of(f"gpu{gpu}"), "pid": draw(2, 4_000_000), "mc": draw(MODULES // 2), "chan": draw(2)}
        self._lived["kernel lines"] += len(lines)
        self._ears.hear(*(line.format(**words) if "{" in line else line for line in lines))

    def _line(self) -> None:
        self._ears.hear(self._chance.choice(self._everyday))
        self._lived["kernel lines"] += 1

    def _program(self) -> None:
        """On one GPU, or on all that the program uses."""
        line = self._chance.choice(_PROGRAM)
        for gpu in range(GPUS) if self._chance.random() < 0.5 else (self._chance.randrange(GPUS),):
            self._say(line, gpu=gpu)

    def _corrected(self) -> None:
        self._say(self._chance.choice(_CORRECTED), gpu=self._chance.randrange(GPUS))

    def _container(self) -> None:
        self._say(*(_OF_CONTAINERS[:3] if self._chance.random() < 0.5 else _OF_CONTAINERS[3:]))

    def _link(self) -> None:
        self._say(*_LINKS)

    def _spike(self) -> None:
        """One reading that no sensor can mean; the next one is sound again."""
        sensor = f"gpu{self._chance.randrange(GPUS)}_temp_c"
        self._host.machine.spike(sensor, self._chance.choice((0.0, 119.0, 127.0, 255.0)))
        self._host.show_sensors()

    def _restart(self) -> None:
        """The agent's process ends in good order and is back within seconds, with its spool."""
        host = self._host
        host.spool.put("agent", ObservationContent(facts={"event": "stopped"}), host.boot_id)
        host.spool.open = False
        host.site.clock.after(self._chance.uniform(2, 20), partial(self._back, host.boot_id))

    def _back(self, boot_id: str) -> None:
        host = self._host
        if host.boot_id != boot_id or host.severed:
            return
        host.spool.open = True
        host.spool.put("agent", ObservationContent(facts={"event": "started"}), boot_id)
        host.spool.put(
            "agent", ObservationContent(facts={"event": "collector_started", "collector": "kernel_log"}), boot_id
        )
        host.spool.rewind()
        host.report_inventory()
        host.report_ports()

    def _blip(self) -> None:
        """The management network is gone for less than anybody calls silence."""
        host = self._host
        host.sever()
        host.site.clock.after(self._chance.uniform(1, host.site.silence_s - 2), host.mend)


class Judge:
    """Listens to the journal: whatever accuses, and whatever is planned against a node, is a false alarm."""

    def __init__(self) -> None:
        self.alarms: list[str] = []
        self.notes: Counter[str] = Counter()

    def see(self, told: e.Record) -> None:
        """One record."""
        match told.event:
            case e.ConditionRaised(condition=c) if c.severity > Severity.info:
                self.alarms.append(f"{told.at:%d %H:%M:%S} {c.node}: {c.type} of {c.part}: {c.evidence[-1].text}")
            case e.ConditionRaised(condition=c):
                self.notes[c.type] += 1
            case e.PlanRecorded(plan=plan) if plan.name not in HARMLESS:
                self.alarms.append(f"{told.at:%d %H:%M:%S} {plan.node}: the plan {plan.name}")
            case _:
                pass


def month(nodes: int, days: float, seed: int = 1, more: Callable[[Drive], None] | None = None) -> Quiet:
    """So many nodes with a job over all of them live for so many days. `more` may do something to the world."""
    settings = SimSettings(nodes=nodes, days=days, seed=seed, spares=2, warm=1)
    drive, _ = build(settings, load(settings.rates))
    judge, lived = Judge(), Counter[str]()
    drive.watchers.append(judge.see)
    world = drive.world
    assert world.training is not None, "the pool's world has a job"
    world.training.begin()
    until_s = world.clock.elapsed_s + days * DAY_S
    for host in world.hosts.values():
        Life(host, until_s, lived).begin()
    if more is not None:
        more(drive)
    gc.freeze()
    drive.run(START + timedelta(seconds=SETTLE_S, days=days))
    gc.unfreeze()
    lived["node-days"] = round(nodes * days)
    return Quiet(f"{days:g} days of {nodes} healthy nodes", dict(lived), tuple(judge.alarms), dict(judge.notes))
