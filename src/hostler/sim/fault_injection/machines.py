"""Injects faults of machines: parts break, sensors lie, BMCs hang, refuse, forget and tell lies, agents begin again."""

from random import Random

from msgspec.structs import replace

from hostler.sim.bmc.request_faults import RequestFaultRule
from hostler.sim.fault_injection.injection import InjectionContext
from hostler.sim.world.fault_kinds import COMPONENTS, KINDS, LEAK, NVLINK5

HOUR_S = 3600.0
OFF_BUS = "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
MMU_FAULT = "NVRM: Xid (PCI:{pci}): 31, pid=4711, name=python3, MMU Fault"
SENSOR_HIGH_C, SENSOR_AT_LIMIT_C, SENSOR_DEAD_C = 97.0, 90.0, 255.0
LATE_S = (0.5, 120.0)
"""So long a boot's last heartbeat may be on its way, in a proxy or a queue."""

WRONG_CLOCK_S = 56 * 365 * 86_400.0
"""From 1970 to now, about."""


def part_breaks(injection: InjectionContext, node: str, chance: Random) -> None:
    """A part breaks of any component."""
    if injection.shape.kind == "rack" and chance.random() < 0.4:
        injection.world.strike(chance.choice(NVLINK5), "nvlink", node)
    else:
        injection.world.breaks(chance.choice(list(COMPONENTS)), node)


def two_break_at_once(injection: InjectionContext, node: str, chance: Random) -> None:
    """Within a millisecond, on one node or on two: which is the first to take the last of a budget?"""
    other = chance.choice([node, *injection.world.hosts])
    component = chance.choice(list(COMPONENTS))
    injection.world.breaks(component, node)
    injection.later(chance.choice((0.0, 0.001)), lambda: _breaks(injection, component, other))


def _breaks(injection: InjectionContext, component: str, node: str) -> None:
    injection.world.breaks(component, node)


def bad_lot(injection: InjectionContext, node: str, chance: Random) -> None:
    """GPUs of one lot run out of spare rows within hours: nodes of one pool are all to leave it."""
    assert injection.drive.law_checkers is not None, "small worlds are judged"
    pages = injection.drive.law_checkers.reading.pages
    others = [name for name, page in pages.items() if name != node and page.pool and page.pool == pages[node].pool]
    for name in [node, *chance.sample(others, min(len(others), 3))]:
        injection.strikes(chance.uniform(0, 2 * HOUR_S), KINDS["remap_failed"], "gpu_hbm3_memory", name)


def leak(injection: InjectionContext, node: str, _chance: Random) -> None:
    """A hose drips."""
    injection.world.strike(LEAK, "cooling", node)


def program_fault(injection: InjectionContext, node: str, _chance: Random) -> None:
    """A customer's program touches memory that is not its own, again and again."""
    for _ in range(6):
        injection.host(node).log(MMU_FAULT, pci="0000:2c:00")


def forged_line(injection: InjectionContext, node: str, chance: Random) -> None:
    """A program writes a line that looks like the driver's."""
    injection.host(node).log(OFF_BUS, pci="0000:1b:00", facility=chance.choice((1, 3, 16)))


def rooted_line(injection: InjectionContext, node: str, chance: Random) -> None:
    """A tenant with root has the kernel write that a GPU is gone, or asks for a reset."""
    assert injection.drive.law_checkers is not None, "small worlds are judged"
    if injection.shape.rooted and injection.drive.law_checkers.reading.pages[node].pool:
        line = chance.choice((OFF_BUS, KINDS["uncontained"].lines[0], KINDS["gsp"].lines[0]))
        injection.host(node).forge(line, pci=f"0000:{0x1B + 0x11 * chance.randrange(injection.shape.gpus):02x}:00")


def flapping_sensor(injection: InjectionContext, node: str, chance: Random) -> None:
    """One reading in between is high: no two polls say so."""
    host = injection.host(node)
    host.machine.spike("gpu0_temp_c", *(SENSOR_HIGH_C if n % 2 else 40.0 for n in range(chance.randint(2, 6))))
    host.show_sensors()


def sensor_at_limit(injection: InjectionContext, node: str, chance: Random) -> None:
    """Exactly at the limit, which is not above it."""
    _sensor(injection, node, SENSOR_AT_LIMIT_C, chance.uniform(60, HOUR_S))


def dead_sensor(injection: InjectionContext, node: str, chance: Random) -> None:
    """Make a sensor read what no hardware can have."""
    _sensor(injection, node, SENSOR_DEAD_C, chance.uniform(60, HOUR_S))


def _sensor(injection: InjectionContext, node: str, value: float, lasts_s: float) -> None:
    host = injection.host(node)
    host.machine.sensors["gpu1_temp_c"] = value
    host.show_sensors()

    def recovers() -> None:
        host.machine.sensors["gpu1_temp_c"] = 45.0
        host.show_sensors()

    injection.lasts(lasts_s, recovers)


def supply_fails(injection: InjectionContext, node: str, chance: Random) -> None:
    """A supply of several supplies has no input: the node goes on."""
    supply_of(injection, node, chance.uniform(600, 4 * HOUR_S))


def supply_of(injection: InjectionContext, node: str, lasts_s: float) -> None:
    """The node's first supply has no input for so long."""
    host = injection.host(node)
    host.machine.supplies["psu0"] = "Critical"
    host.show_sensors()

    def recovers() -> None:
        host.machine.supplies["psu0"] = "OK"
        host.show_sensors()

    injection.lasts(lasts_s, recovers)


def bmc_restarts(injection: InjectionContext, node: str, _chance: Random) -> None:
    """Restart the BMC: it is away, then deaf, and forgets its tasks."""
    injection.host(node).machine.restart_manager(injection.world.clock.now)


def bmc_hangs(injection: InjectionContext, node: str, chance: Random) -> None:
    """Hang the BMC: it takes every request and answers none."""
    _spoil(injection, node, chance, RequestFaultRule(drop="before", times=0))


def bmc_unavailable(injection: InjectionContext, node: str, chance: Random) -> None:
    """Make the BMC answer that it cannot answer now."""
    _spoil(injection, node, chance, RequestFaultRule(status=503, times=0))


def bmc_locks_out(injection: InjectionContext, node: str, chance: Random) -> None:
    """The BMC's password is not what it was."""
    _spoil(injection, node, chance, RequestFaultRule(status=401, times=0))


def bmc_half_done(injection: InjectionContext, node: str, chance: Random) -> None:
    """Let the BMC do the work and lose the answer."""
    _spoil(injection, node, chance, RequestFaultRule(method="POST", drop="after", times=chance.randint(1, 3)))


def bmc_lies(injection: InjectionContext, node: str, chance: Random) -> None:
    """Make the BMC show a false power state."""
    shown = chance.choice(("On", "Off"))
    _spoil(
        injection,
        node,
        chance,
        RequestFaultRule(path="*/Systems/*", method="GET", patch={"PowerState": shown}, times=0),
    )


def _spoil(injection: InjectionContext, node: str, chance: Random, rule: RequestFaultRule) -> None:
    faults = injection.host(node).service.faults
    faults.add(rule)
    injection.lasts(chance.uniform(300, 3 * HOUR_S), faults.clear)


def bad_flash(injection: InjectionContext, node: str, chance: Random) -> None:
    """The node's firmware cannot be written, or says that it was and was not."""
    machine = injection.host(node).machine
    sound = machine.quirks
    spoiled = {"fails_on": frozenset({"BIOS"})} if chance.random() < 0.5 else {"lies_about": frozenset({"BIOS"})}
    machine.quirks = replace(sound, **spoiled)

    def mended() -> None:
        machine.quirks = sound

    injection.lasts(12 * HOUR_S, mended)


def agent_restarts(injection: InjectionContext, node: str, _chance: Random) -> None:
    """Restart the agent: it begins again with what it had sent already."""
    host = injection.host(node)
    host.spool.rewind()
    host.greet()


def node_restarts(injection: InjectionContext, node: str, chance: Random) -> None:
    """The node's operating system restarts by itself, and what ran there is gone."""
    host = injection.host(node)
    if host.up:
        host.late_s = chance.choice((0.0, chance.uniform(*LATE_S)))
        host.reboot()


def late_heartbeat(injection: InjectionContext, _node: str, chance: Random) -> None:
    """The last heartbeat of a node that is about to be switched or restarted comes when its boot is over."""
    late_s = chance.uniform(*LATE_S)

    def lag(node: str) -> None:
        injection.host(node).late_s = late_s

    injection.before_power_act(lag)


def kubelet_dies(injection: InjectionContext, node: str, chance: Random) -> None:
    """The node's operating system stops, and its scheduler goes on listing what ran there, whoever tells that to go."""
    assert injection.world.tenants is not None, "small worlds have customers"
    injection.world.tenants.forsake(node)
    if chance.random() < 0.5:
        injection.host(node).die()


def agent_clock_wrong(injection: InjectionContext, node: str, chance: Random) -> None:
    """The agent's clock begins at 1970, or leaps while something waits in the spool: ages make no sense."""
    spool = injection.host(node).spool
    spool.wrong_s = chance.choice((WRONG_CLOCK_S, -WRONG_CLOCK_S, 7200.0, -7200.0))

    def set_right() -> None:
        spool.wrong_s = 0.0

    injection.lasts(chance.uniform(600, 4 * HOUR_S), set_right)
