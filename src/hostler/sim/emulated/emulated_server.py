"""One emulated GPU server: its BMC's machine, what is wrong with it, and the real agent that runs while it is up."""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.checks import emulated_gate
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.gpu_reset import ResetRequest
from hostler.agent.host_commands import ActFailedError, NotPossibleError
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.machine import ANSWERED, NoSensors, emulated_erasure
from hostler.agent.main import AgentSettings
from hostler.core.diagnose.gate.readings import GateReadings, KernelLine
from hostler.core.diagnose.gpu import HW_SLOWDOWN
from hostler.core.diagnose.kernel_log import decode
from hostler.core.state import pass_rules
from hostler.core.state.bootstrap_kubeconfig import bootstrap_kubeconfig
from hostler.core.state.erasure import ErasureReport
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Facts, Part, Verdict
from hostler.core.state.operations import Sanitise
from hostler.core.state.pass_rules import PassRules
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine
from hostler.sim.emulated.emulated_agent import AgentCrowd, EmulatedKernelLog

CHECK_S = {"gate": 120.0, "seatrial": 3600.0, "suspect": 7200.0, "burn_in": 86_400.0}
"""How long the check profiles take on a real machine; an emulated one divides by the fleet's scale."""


class Trouble(Struct):
    """A fault that is in the machine: the kernel line that tells it, and the acts that end it.

    `cures` are of gpu_reset, reboot, power_cycle, repair; a power cycle reboots, and a reboot resets the GPUs.
    """

    name: str
    line: str
    cures: tuple[str, ...]
    crashes: bool = False


class EmulatedHost:
    """An emulated server. Its agent is the real one, spool, marks and HTTP; only the machine under it is not there.

    `crowd` is what its agent shares with those of other servers; one alone has a crowd of its own. `kubelet` is what
    stands for its kubelet: called with the kubeconfig that lets it in, with "" when it has to go. `real_abilities`: its
    agent has only the checks that a real node's agent has, and no drives that it may erase.
    """

    def __init__(
        self, node: str, hardware: Hardware, settings: AgentSettings, clock: Callable[[], datetime], scale: float
    ) -> None:
        self.node = node
        self.machine = Machine(node, hardware, Delays(scale=1.0 / min(scale, 60.0)))
        self.machine.on_power = self._on_power
        self.machine.on_boot = self._on_boot
        self.trouble: list[Trouble] = []
        self.up = False
        self.boot_id = ""
        self.crowd: AgentCrowd | None = None
        self.kubelet: Callable[[str], None] | None = None
        self.real_abilities = False
        self._settings = replace(settings, kernel_log="")
        self._clock = clock
        self._scale = scale
        self._body: EmulatedServer | None = None
        self._agent: asyncio.Task[None] | None = None
        self._kernel = EmulatedKernelLog()

    def suffer(self, trouble: Trouble) -> None:
        """Break a part, and the kernel says so (unless the machine is gone with it)."""
        self.trouble.append(trouble)
        if trouble.crashes:
            self._crash()
        elif self.up:
            self.say(trouble.line)

    def say(self, line: str, facility: int = 0) -> None:
        """A record in the emulated kernel log; facility 0 is the kernel's, 1 that of user space."""
        self._kernel.say(line, facility)

    def cure(self, act: str) -> None:
        """An act ends every trouble that it cures."""
        also = {
            "repair": ("repair", "power_cycle", "reboot", "gpu_reset"),
            "power_cycle": ("power_cycle", "reboot", "gpu_reset"),
            "reboot": ("reboot", "gpu_reset"),
        }
        acts = also.get(act, (act,))
        self.trouble = [t for t in self.trouble if not any(a in t.cures for a in acts)]

    def wake(self) -> None:
        """Be on and booted, as a machine that nobody switched off while Hostler was away."""
        self.machine.start_powered()
        self._boot(in_turn=True)

    def go_silent(self) -> None:
        """End its agent, which is gone without a word; the machine goes on."""
        if self._agent is not None:
            self._agent.cancel()

    async def stop(self) -> None:
        """The fleet is taken down."""
        self._crash()
        if self._agent is not None:
            await asyncio.gather(self._agent, return_exceptions=True)

    def reboot(self) -> None:
        """Do as `systemctl reboot` does: the machine goes down and comes up again."""
        self.machine.reset("ForceRestart", self._clock())

    def reset_bmc(self) -> None:
        """The BMC restarts, the machine goes on."""
        self.machine.restart_manager(self._clock())

    def check_s(self, profile: str) -> float:
        """Length of a check in real seconds."""
        return max(0.2, CHECK_S.get(profile, 60.0) / self._scale)

    def _on_power(self, _system: str, state: str, _moment: datetime) -> None:
        if state == "Off":
            self.cure("power_cycle")
            self._crash()

    def _on_boot(self, _system: str, _source: str, _moment: datetime) -> None:
        self._boot(in_turn=False)

    def _boot(self, *, in_turn: bool) -> None:
        """A new boot, and its agent, which waits for its turn where nobody waits for it."""
        self.cure("reboot")
        self.up = True
        self._kernel = EmulatedKernelLog()
        self.boot_id = str(uuid.uuid4())
        body = self._body = EmulatedServer(self, self.boot_id)
        self._agent = asyncio.create_task(self._run(body, self._agent, in_turn=in_turn))

    async def _run(self, body: "EmulatedServer", before: asyncio.Task[None] | None, *, in_turn: bool) -> None:
        kernel = self._kernel
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        if self.crowd is not None:
            await self.crowd.live(self._settings, body, kernel, in_turn=in_turn)
            return
        async with AgentCrowd() as alone:
            await alone.live(self._settings, body, kernel)

    def _crash(self) -> None:
        """Power or kernel is gone: the agent is, too, without a word."""
        self.up = False
        if self._body is not None:
            self._body.call_off()  # whatever ran there runs no more
        if self._agent is not None:
            self._agent.cancel()


class EmulatedServer(NoSensors):
    """The machine as the agent of one boot sees it (`agent.machine.HostMachine`). Calls block, as on a real one."""

    def __init__(self, host: EmulatedHost, boot_id: str) -> None:
        self._host = host
        self._boot_id = boot_id
        self._loop = asyncio.get_running_loop()
        self._called_off = threading.Event()

    def boot_id(self) -> str:
        """Identity of the boot that this agent belongs to."""
        return self._boot_id

    def reboot(self) -> None:
        """Restart the emulated server."""
        self._loop.call_soon_threadsafe(self._host.reboot)

    def reset_gpus(self, wanted: ResetRequest) -> str:
        """Clear what a GPU reset clears. Raises ActFailedError where a GPU does not answer on PCIe."""
        del wanted  # the emulated reset takes all of them
        time.sleep(0.2)
        if any(t.name == "gpu.fallen_off_bus" for t in self._host.trouble):
            raise ActFailedError("a GPU does not answer on PCIe: it cannot be reset")
        self._host.cure("gpu_reset")
        return "reset"

    def reset_bmc(self) -> None:
        """Restart the emulated BMC."""
        self._loop.call_soon_threadsafe(self._host.reset_bmc)

    def evidence(self) -> Facts:
        """Number of troubles, and that they are emulated."""
        return {"troubles": len(self._host.trouble), "emulated": True}

    def write_kernel_log(self, line: str) -> None:
        """A record of user space."""
        self._loop.call_soon_threadsafe(self._host.say, line, 1)

    def inventory(self) -> NodeInventory:
        """The parts that the emulated machine has now."""
        return NodeInventory(parts=self._host.machine.parts)

    def profiles(self) -> tuple[str, ...]:
        """Names of the check profiles that it answers."""
        return tuple(sorted(ANSWERED)) if self._host.real_abilities else super().profiles()

    def check(
        self,
        profile: str,
        expects: Expected,
        run: str = "",  # noqa: ARG002 - the port's name
        rules: PassRules | None = None,
    ) -> StressResult:
        """Wait as long as the check takes, then judge the emulated readings; inconclusive where called off."""
        if profile not in self.profiles():
            return StressResult(Verdict.inconclusive, f"{profile}: a real node's agent has no such check")
        if self._called_off.wait(self._host.check_s(profile)):
            return StressResult(Verdict.inconclusive, "called off")
        if profile in ANSWERED:
            return emulated_gate.answer(expects, self._readings())
        standing = [t for t in self._host.trouble if t.cures]
        if standing:
            return StressResult(Verdict.failed, f"{standing[0].name} is still there")
        return StressResult(Verdict.passed, "emulated", pass_rules.named(profile, rules))

    def _readings(self) -> GateReadings:
        """Read the machine: the kernel repeats what is still wrong, and holds the clocks of a GPU that it names."""
        lines = [one for t in self._host.trouble if t.cures for one in decode(t.line)]
        lost: dict[str, Facts] = {f"pci:{one.pci}": {"clock_event_reasons": HW_SLOWDOWN} for one in lines if one.pci}
        again = [KernelLine(one.condition, one.pci, one.line) for one in lines]
        return emulated_gate.readings(self._host.machine.parts, changes=lost, kernel=again)

    def begin_checks(self) -> None:
        """Forget what was called off before."""
        self._called_off.clear()

    def call_off(self) -> None:
        """End the check that is running."""
        self._called_off.set()

    def invite_kubelet(self, offer: KubeletJoinOffer) -> None:
        """Start the emulated kubelet."""
        if self._host.kubelet is None:
            super().invite_kubelet(offer)
        else:
            kubeconfig = bootstrap_kubeconfig(offer.cluster, offer.server, offer.ca, offer.token)
            self._loop.call_soon_threadsafe(self._host.kubelet, kubeconfig)

    def dismiss_kubelet(self) -> None:
        """Stop the emulated kubelet."""
        if self._host.kubelet is None:
            super().dismiss_kubelet()
        else:
            self._loop.call_soon_threadsafe(self._host.kubelet, "")

    def sanitise(self, order: Sanitise) -> ErasureReport:
        """Pretend to erase. Raises NotPossibleError where abilities are those of real nodes."""
        if self._host.real_abilities:
            raise NotPossibleError("no scratch devices are configured (--scratch), so nothing may be erased")
        time.sleep(0.1)
        return emulated_erasure(order)


def h100(serial: str) -> Hardware:
    """An 8-GPU H100 server."""
    return _server(serial, "HGX H100 8-GPU", "NVIDIA H100 80GB HBM3", gpus=8, nics=8)


def gb200(serial: str) -> Hardware:
    """A compute tray of an NVL72 rack: 4 GPUs."""
    return _server(serial, "GB200 NVL compute tray", "NVIDIA GB200", gpus=4, nics=4)


def gpu_address(number: int) -> str:
    """The PCI address of a server's n-th GPU, as its kernel log writes it."""
    return f"0000:{0x1B + 0x10 * number:02x}:00"


def _server(serial: str, model: str, gpu: str, gpus: int, nics: int) -> Hardware:
    parts = [
        *(Part(f"{serial}-GPU{n}", "gpu", gpu, f"pci:{gpu_address(n)}", "96.00.89") for n in range(gpus)),
        *(Part(f"{serial}-CPU{n}", "cpu", "host CPU", f"cpu{n}") for n in range(2)),
        *(Part(f"{serial}-NIC{n}", "nic", "ConnectX-7", f"nic{n}", "28.39.2048") for n in range(nics)),
    ]
    sensors = {f"gpu{n}_temp_c": 38.0 + n for n in range(gpus)} | {"inlet_temp_c": 24.0}
    limits = {f"gpu{n}_temp_c": 92.0 for n in range(gpus)}
    return Hardware(serial, model=model, parts=tuple(parts), sensors=sensors, limits_c=limits)
