"""The bound: who knows each true fault at once takes its node aside, and does the shortest thing that cures it."""

from hostler.sim.simulation_loop import Drive
from hostler.sim.world.fault_kinds import Fault

OWNER = "oracle"
CURE_S = {"gpu_reset": 30.0, "reboot": 180.0, "power_cycle": 300.0, "part": 4.5 * 3600}
"""How long each cure takes: an agent's reset, a boot, power off and a boot, a technician with a spare part."""


class Oracle:
    """No diagnosis, no check, no wrong step. What ends by itself is left alone."""

    def __init__(self, drive: Drive) -> None:
        self._world = drive.world
        drive.world.struck = self.see

    def see(self, fault: Fault) -> None:
        """Apply the right cure at once."""
        if fault.cure == "itself":
            return
        world = self._world
        if fault.kind.name == "corruption" and world.training is not None:
            world.training.fails(fault)
        world.scheduler.cordon(fault.node, OWNER)
        world.changed(fault.node)
        world.clock.after(CURE_S[fault.cure], lambda: self._cure(fault))

    def _cure(self, fault: Fault) -> None:
        world, host = self._world, self._world.hosts[fault.node]
        if fault.cure == "part":
            world.people.touches += 1
        host.remedied(fault.cure)
        if host.faults:
            return  # another's cure brings it back
        if not host.up:
            host.start_running()
        world.scheduler.uncordon(fault.node, OWNER)
        world.changed(fault.node)


def oracle(drive: Drive) -> None:
    """Hostler only watches."""
    Oracle(drive)
