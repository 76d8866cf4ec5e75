"""The machine underneath the agent: what it can be made to do. A real one, and an emulated one for tests and fleets.

Every command is a fixed argument vector; nothing from an operation reaches a shell or becomes an option.
"""

import socket
import sys
import threading
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from hostler.agent import (
    bug_report,
    check_plugins,
    child_process,
    device_firmware,
    drive_erasure,
    fabric_discovery,
    kubelet,
    port_reset,
    tpm_clear,
)
from hostler.agent.checks import emulated_gate
from hostler.agent.checks.check_suite import CheckSuite, SuiteSettings
from hostler.agent.checks.gate_runner import GatePlace, GateRunner
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.child_process import Companion, DiedError, HungError
from hostler.agent.cluster_pins import ClusterPins
from hostler.agent.collectors import (
    gpu_state,
    hardware,
    host_state,
    inventory,
    kubelet_devices,
    network_ports,
    smart_health,
)
from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.device_firmware import DeviceFirmwareRules, DevicesRead
from hostler.agent.drive_erasure import ErasureRules
from hostler.agent.gpu_reset import ResetRequest, reset
from hostler.agent.host_commands import ActFailedError, NeverPossibleError, NotPossibleError, act, say
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.core.diagnose.gate.readings import GateReadings
from hostler.core.state import pass_rules
from hostler.core.state.bootstrap_kubeconfig import bootstrap_kubeconfig
from hostler.core.state.device_firmware import written_parts
from hostler.core.state.erasure import DriveErased, ErasureReport, TpmCleared
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts, Part, Verdict
from hostler.core.state.operations import (
    BugReport,
    DiscoverFabric,
    ResetPort,
    Sanitise,
    VerifyDeviceFirmware,
    WriteDeviceFirmware,
)
from hostler.core.state.pass_rules import PassRules

KMSG = "/dev/kmsg"
BMC_RESET_S, KUBELET_S = 60.0, 60.0
GPUS_S, HOST_S, DCGM_S = 20.0, 20.0, 10.0
"""Time limits for reading the GPUs' driver and the host's sysfs; a poll of a sound node takes a tenth of a second, the
first one of a driver without persistence some seconds."""
_COLLECTORS = "hostler.agent.collectors"
REBOOT_S, EVIDENCE_S = 30.0, 4.0
"""Time limits of operations, after which their outcome counts as unknown; evidence is all tools together."""
NVML_FREE_S = 5.0
"""So long a gate waits for a poll of the GPUs to end."""
ANSWERED = frozenset({"gate", "seatrial"})
"""Profiles of checks that a real node's agent can answer by itself; the suite, where it is installed, answers more."""

NEED_PERMISSION = (
    "bmc_cold_reset",
    "bug_report",
    "gpu_reset",
    "reboot",
    "reset_port",
    "sanitise",
    "start_kubelet",
    "stop_kubelet",
    "write_device_firmware",
)
"""Kinds of operation that an agent performs only where it was started with --allow-actions."""
ALLOW = "start the node's agent with --allow-actions"


class HostMachine(Protocol):
    """A machine. All calls block; all but `boot_id` raise the errors of `host_commands`."""

    def boot_id(self) -> str:
        """Identity of the running boot, another one after each start."""

    def reboot(self) -> None:
        """Ask for a reboot; returns while the machine is still up."""
        ...

    def reset_gpus(self, wanted: ResetRequest) -> str:
        """Reset GPUs as their model is reset (`gpu_reset.reset`); one sentence on what was done."""
        ...

    def reset_port(self, wanted: ResetPort, plan: str) -> str:
        """Reset the node's own port that this plan names (`port_reset.reset`); one sentence on it."""
        ...

    def reset_bmc(self) -> None:
        """Have the BMC restart, over the node's own interface to it; the node goes on."""
        ...

    def evidence(self) -> Facts:
        """Collect evidence before the power goes off, within EVIDENCE_S."""
        ...

    def bug_report(self, asked: BugReport) -> Facts:
        """A piece of NVIDIA's own report, made anew where it is the first; changes nothing."""
        ...

    def discover_fabric(self, asked: DiscoverFabric) -> Facts:
        """Look at the network by one of the tools of `fabric_discovery`; changes nothing."""
        ...

    def write_kernel_log(self, line: str) -> None:
        """Add a line to the kernel log, as a program of user space does."""
        ...

    def inventory(self) -> NodeInventory:
        """The parts that the machine shows now."""

    def ports(self) -> dict[str, str]:
        """The network ports with their states (`collectors.ports.read`)."""
        ...

    def devices(self) -> dict[str, tuple[str, ...]] | None:
        """Read the allocation of GPUs to pods (`collectors.kubelet_devices.read`); None where nothing tells it."""
        ...

    def gpus(self) -> gpu_state.GpuPoll:
        """The GPUs' state. Never raises: a hang or crash is a report."""
        ...

    def dcgm(self) -> gpu_state.GpuPoll:
        """Read DCGM's exporter, "absent" where none answers. Never raises."""
        ...

    def host(self) -> Facts | None:
        """The host's readings; None where there is nothing to read. Raises what `child_process` raises."""
        ...

    def drives(self) -> Facts:
        """Read the drives' own health; slow."""
        ...

    def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
        """Run this profile's checks, or the site's own check of this name.

        `expects` is what a gate is to see (`core.state.gate_expectation`). `run` names the operation: a burn-in that
        was cut off goes on where it stood when the same one is asked again. `rules` are the SKU's for a profile of the
        suite; a report that does not name them by `core.state.pass_rules.RULES_NAMED` has not passed.
        """
        ...

    def progress(self) -> str:
        """Tells where a long check stands that runs now, in one sentence; "" for none."""
        ...

    def profiles(self) -> tuple[str, ...]:
        """The profiles of checks that it answers; what is asked for beside them is inconclusive."""
        ...

    def barred(self) -> tuple[str, ...]:
        """Kinds of operation for which it was started without permission, sorted."""
        ...

    def begin_checks(self) -> None:
        """Forget what was called off before, when an operation begins: what is called off from now on is this one."""
        ...

    def call_off(self) -> None:
        """End a check early, from another thread: it is inconclusive then, also where it is only about to begin."""
        ...

    def sanitise(self, order: Sanitise) -> ErasureReport:
        """Erase what a tenant may have left, and read it back."""
        ...

    def write_device_firmware(self, order: WriteDeviceFirmware) -> str:
        """Write firmware to the parts that the order names (`device_firmware.write`); one sentence on it."""
        ...

    def verify_device_firmware(self, order: VerifyDeviceFirmware) -> DevicesRead:
        """Read the inventory's versions of the components that the order names."""
        ...

    def invite_kubelet(self, offer: KubeletJoinOffer) -> None:
        """Have the kubelet join the cluster that is offered. Repeating it changes nothing."""
        ...

    def dismiss_kubelet(self) -> None:
        """Stop the kubelet and take its kubeconfigs away, so that it registers this node nowhere."""
        ...


class SensorSources(Struct, frozen=True):
    """Sources that a machine reads.

    `units`: services that must run; `nvml_twin`: recorded GPUs in place of the driver's; `dcgm`: the page of DCGM's
    exporter, on a loopback address, "" for none. `kernel_log` is what a gate reads again, `root` where it finds sysfs.
    `checks` holds the site's own checks; `suite` is the program of active checks.
    """

    units: tuple[str, ...] = ()
    nvml_twin: str = ""
    dcgm: str = ""
    kernel_log: str = "/dev/kmsg"
    root: str = "/"
    checks: str = str(check_plugins.DIRECTORY)
    suite: SuiteSettings = SuiteSettings()


class Powers(Struct, frozen=True):
    """Permissions: operations that disturb the machine need `actions`; only `scratch` devices are ever erased.

    `clusters` are those that its kubelet may join.
    """

    actions: bool = False
    scratch: tuple[str, ...] = ()
    clusters: ClusterPins = ClusterPins()


class RealHostMachine:
    """The machine on which the agent runs."""

    def __init__(self, node: str, state_dir: Path, powers: Powers, reader: SensorSources | None = None) -> None:
        reader = reader or SensorSources()
        self._node = node
        self._sources = reader
        self._state_dir = state_dir
        self._powers = powers
        self._nvml = Companion((sys.executable, "-m", f"{_COLLECTORS}.nvml_state_reader", reader.nvml_twin))
        self._nvml_free = threading.Lock()
        self._dcgm_url = reader.dcgm
        self._dcgm = Companion((sys.executable, "-m", f"{_COLLECTORS}.dcgm_reader", reader.dcgm))
        self._host = Companion((sys.executable, "-m", f"{_COLLECTORS}.host_reader", "/", ",".join(reader.units)))
        place = GatePlace(node, state_dir, Path(reader.root), reader.kernel_log)
        self._gate = GateRunner(place, self._gpus_anew, self.boot_id)
        self._drives: Facts | None = None
        self._suite = CheckSuite(node, state_dir / "checks", reader.suite)

    def boot_id(self) -> str:
        """The kernel's boot id."""
        return this_boot()

    def reboot(self) -> None:
        """Ask systemd to reboot; returns before the machine goes down."""
        self._need_permission("reboot")
        act(("systemctl", "reboot"), REBOOT_S)

    def reset_gpus(self, wanted: ResetRequest) -> str:
        """Reset the named GPUs, or all, while no gate check and no poll uses NVML; a sentence on what was done."""
        self._need_permission("gpu_reset")
        with self._gate.around_reset(), self._nvml_free:
            self._nvml.close()  # a GPU that somebody holds open cannot be reset, and our own reader is somebody
            return reset(wanted, Path("/"))

    def reset_port(self, wanted: ResetPort, plan: str) -> str:
        """Reset the node's own port of a plan; a sentence on it."""
        self._need_permission("reset_port")
        return port_reset.reset(wanted, plan)

    def reset_bmc(self) -> None:
        """Restart the BMC through IPMI; the machine itself keeps running."""
        self._need_permission("bmc_cold_reset")
        act(("ipmitool", "mc", "reset", "cold"), BMC_RESET_S)

    def evidence(self) -> Facts:
        """Uptime in s, load, and what nvidia-smi says of temperatures and ECC errors."""
        facts: Facts = {"uptime_s": float(Path("/proc/uptime").read_text().split(maxsplit=1)[0])}
        facts["load"] = Path("/proc/loadavg").read_text().strip()
        query = "--query-gpu=index,pci.bus_id,serial,temperature.gpu,ecc.errors.uncorrected.volatile.total,pstate"
        facts["nvidia_smi"] = say(("nvidia-smi", query, "--format=csv,noheader"), EVIDENCE_S)
        return facts

    def bug_report(self, asked: BugReport) -> Facts:
        """A piece of what nvidia-bug-report.sh wrote. Raises ActFailedError, NotPossibleError."""
        self._need_permission("bug_report")
        return bug_report.report(asked, self._state_dir / "bug-report")

    def discover_fabric(self, asked: DiscoverFabric) -> Facts:
        """The page that a tool of this node prints of the network. Raises ActFailedError, NotPossibleError."""
        return fabric_discovery.look(asked)

    def inventory(self) -> NodeInventory:
        """The parts that sysfs, NVML and the file systems show. Raises ActFailedError where they cannot be read."""
        try:
            found = inventory.report(self._node, root=self._sources.root, twin=self._sources.nvml_twin)
            health = self.drives() if self._drives is None else self._drives
            drives = [part.slot for part in found.parts if part.kind == "drive"]
            return replace(found, facts=found.facts | hardware.drive_words(drives, health) | self._erasable())
        except (child_process.HungError, OSError, *UNREADABLE) as error:
            raise ActFailedError(f"inventory could not be read: {error}") from error

    def _erasable(self) -> Facts:
        """How each drive and the TPM would be sanitised, or why they would not."""
        root = Path(self._sources.root)
        if not self._powers.actions:
            return {"unread.erase": "this agent was started without --allow-actions"}
        said = drive_erasure.words(root, self._powers.scratch) | {"tpm": tpm_clear.words(root)}
        return {f"erase.{name}": text for name, text in said.items()}

    def ports(self) -> dict[str, str]:
        """State of the network ports in sysfs, by fact name."""
        return network_ports.read(Path("/"))

    def devices(self) -> dict[str, tuple[str, ...]] | None:
        """GPUs of each pod as the kubelet's pod-resources socket lists them; None where there is no kubelet."""
        return kubelet_devices.read(Path("/"))

    def gpus(self) -> gpu_state.GpuPoll:
        """State of the GPUs by NVML; busy while a reset has NVML to itself."""
        if not self._nvml_free.acquire(blocking=False):
            return gpu_state.nothing("busy", "a GPU is being reset")
        try:
            return self._ask_nvml()
        finally:
            self._nvml_free.release()

    def _gpus_anew(self) -> gpu_state.GpuPoll:
        """The GPUs as they are now, nothing remembered."""
        if not self._nvml_free.acquire(timeout=NVML_FREE_S):
            return gpu_state.nothing("busy", "somebody else asks NVML")
        try:
            self._nvml.close()
            return self._ask_nvml()
        finally:
            self._nvml_free.release()

    def _ask_nvml(self) -> gpu_state.GpuPoll:
        try:
            return gpu_state.decoded(self._nvml.ask("read", GPUS_S))
        except HungError as error:
            return gpu_state.nothing("hung", error, self._nvml.doing)
        except (DiedError, OSError) as error:
            return gpu_state.nothing("crashed", error)
        except UNREADABLE as error:
            self._nvml.close()
            return gpu_state.nothing("crashed", f"its answer cannot be read: {error}")

    def dcgm(self) -> gpu_state.GpuPoll:
        """State of the GPUs by DCGM's exporter; "absent" where none listens or its answer cannot be read."""
        if not self._dcgm_url or (self._dcgm.pid is None and not _listens(self._dcgm_url)):
            return gpu_state.nothing("absent", "no exporter of DCGM listens")
        try:
            return gpu_state.decoded(self._dcgm.ask("read", DCGM_S))
        except (HungError, DiedError, OSError) as error:
            return gpu_state.nothing("absent", error)
        except UNREADABLE as error:
            self._dcgm.close()
            return gpu_state.nothing("absent", f"its answer cannot be read: {error}")

    def host(self) -> Facts | None:
        """State of mounts, clocks, memory and systemd units as facts. Raises what `child_process` raises."""
        try:
            return host_state.decoded(self._host.ask("read", HOST_S))
        finally:
            self._host.close()  # asked twice a minute, it would take its memory all the time

    def drives(self) -> Facts:
        """SMART health of the drives as facts."""
        self._drives = smart_health.read(Path(self._sources.root))
        return self._drives

    def close(self) -> None:
        """End the children that read for us."""
        self._nvml.close()
        self._dcgm.close()
        self._host.close()

    def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
        """Run the gate check, the suite's, or the site's plug-in of this name; an unknown profile is inconclusive."""
        if profile in self._suite.profiles():
            return self._suite.check(profile, run, rules)
        if rules is not None:
            return StressResult(Verdict.inconclusive, f"nothing that answers {profile} here takes pass rules")
        if profile in ANSWERED:
            return self._gate.check(expects)
        if (said := check_plugins.answer_of(Path(self._sources.checks), profile)) is not None:
            return StressResult(said.verdict, said.detail)
        answers = ", ".join(self.profiles())
        text = f"this agent has no checks of profile {profile}, only {answers}; a plug-in of the site may have it"
        return StressResult(Verdict.inconclusive, text)

    def profiles(self) -> tuple[str, ...]:
        """Names of the check profiles that the agent and the suite answer, sorted."""
        return tuple(sorted({*ANSWERED, *self._suite.profiles()}))

    def barred(self) -> tuple[str, ...]:
        """The kinds that need --allow-actions, where it was started without."""
        return () if self._powers.actions else NEED_PERMISSION

    def progress(self) -> str:
        """Tells where the suite's present run stands."""
        return self._suite.progress()

    def begin_checks(self) -> None:
        """Let the gate and the suite forget what was called off before."""
        self._gate.begin_checks()
        self._suite.begin_checks()

    def call_off(self) -> None:
        """Stop the check that is running, if any."""
        self._gate.call_off()
        self._suite.call_off()

    def sanitise(self, order: Sanitise) -> ErasureReport:
        """Erase the drives that the order names, and clear the TPM where it says so. Raises NotPossibleError."""
        self._need_permission("sanitise")
        if pods := self.devices():
            raise NotPossibleError(f"nothing was erased: pod {next(iter(pods))} has GPUs of this node")
        root, kept = Path(self._sources.root), self._state_dir / "erasure"
        drives = drive_erasure.erase(order, ErasureRules(kept, self._powers.scratch, root))
        return ErasureReport(drives, tpm_clear.clear(root, kept / "tpm") if order.tpm else None)

    def write_device_firmware(self, order: WriteDeviceFirmware) -> str:
        """Write firmware to the parts that the order names. Raises the errors of `host_commands`."""
        self._need_permission("write_device_firmware")
        if pods := self.devices():
            raise NotPossibleError(f"nothing was written: pod {next(iter(pods))} has GPUs of this node")
        rules = DeviceFirmwareRules(self._state_dir / "firmware", Path(self._sources.root))
        return device_firmware.write(order, device_firmware.shown((order.tool,), self._shown()), rules)

    def verify_device_firmware(self, order: VerifyDeviceFirmware) -> DevicesRead:
        """Versions of the parts as the inventory reads them now. Raises ActFailedError, NotPossibleError."""
        tools = {wanted.tool for wanted in order.wanted.values()}
        return device_firmware.read(order, device_firmware.shown(tools, self._shown()))

    def _shown(self) -> tuple[Part, ...]:
        """The inventory's parts. Raises NotPossibleError where they cannot be read."""
        try:
            return inventory.report(self._node, root=self._sources.root, twin=self._sources.nvml_twin).parts
        except (child_process.HungError, OSError, *UNREADABLE) as error:
            raise NotPossibleError(f"inventory could not be read: {error}; nothing was done") from error

    def invite_kubelet(self, offer: KubeletJoinOffer) -> None:
        """Write the bootstrap kubeconfig and start the kubelet.

        Raises NotPossibleError for a cluster not allowed here.
        """
        self._need_permission("start_kubelet")
        kept = self._powers.clusters.checked(offer)
        kubeconfig = bootstrap_kubeconfig(kept.cluster, kept.server, kept.ca, kept.token)
        try:
            fresh = kubelet.invite(kubelet.FOLDER, kubeconfig)
        except OSError as error:
            raise ActFailedError(f"{error.filename}: {error.strerror}") from error
        if fresh:
            act(("systemctl", "restart", "kubelet"), KUBELET_S)

    def dismiss_kubelet(self) -> None:
        """Stop the kubelet and remove its credentials."""
        self._need_permission("stop_kubelet")
        act(("systemctl", "stop", "kubelet"), KUBELET_S)
        try:
            kubelet.forget(kubelet.FOLDER)
        except OSError as error:
            raise ActFailedError(f"{error.filename}: {error.strerror}") from error

    def write_kernel_log(self, line: str) -> None:
        """Write the line to /dev/kmsg, whose reader sees that no kernel wrote it."""
        source = self._sources.kernel_log
        if source != KMSG and source.partition(":")[0] != "journal":
            raise NotPossibleError(
                f"this agent reads its kernel log from {source or 'nowhere'}, which is not written to"
            )
        try:
            with Path(KMSG).open("wb", buffering=0) as log:
                log.write(f"<3>{line}\n".encode())
        except OSError as error:
            raise NotPossibleError(f"{KMSG}: {error.strerror}") from error

    def _need_permission(self, act: str) -> None:
        if not self._powers.actions:
            raise NeverPossibleError(f"{act}: this agent was started without --allow-actions", ALLOW)


class NoSensors:
    """A machine of which nothing can be looked at: no ports, kubelet, NVML, host state or drives."""

    def ports(self) -> dict[str, str]:
        """No ports."""
        return {}

    def devices(self) -> dict[str, tuple[str, ...]] | None:
        """No kubelet."""
        return None

    def gpus(self) -> gpu_state.GpuPoll:
        """No NVML."""
        return gpu_state.nothing("busy", "an emulated machine has no NVML")

    def dcgm(self) -> gpu_state.GpuPoll:
        """No DCGM exporter."""
        return gpu_state.nothing("absent", "an emulated machine has no DCGM")

    def host(self) -> Facts | None:
        """No host state."""
        return None

    def drives(self) -> Facts:
        """No drives."""
        return {}

    def bug_report(self, asked: BugReport) -> Facts:  # noqa: ARG002 - the port's name
        """Raises NotPossibleError: there is no driver of NVIDIA's."""
        raise NotPossibleError("an emulated machine has no driver of NVIDIA's")

    def discover_fabric(self, asked: DiscoverFabric) -> Facts:
        """Raises NotPossibleError: the machine is in no network."""
        raise NotPossibleError(f"{asked.tool}: an emulated machine is in no network")

    def write_kernel_log(self, line: str) -> None:  # noqa: ARG002 - the port's name
        """Raises NotPossibleError: there is no kernel."""
        raise NotPossibleError("an emulated machine has no kernel log")

    def reset_port(self, wanted: ResetPort, plan: str) -> str:  # noqa: ARG002 - the port's names
        """Raises NotPossibleError: the machine is in no network."""
        raise NotPossibleError(f"{wanted.a}: an emulated machine is in no network")

    def write_device_firmware(self, order: WriteDeviceFirmware) -> str:
        """Raises NotPossibleError: there is no part to write to."""
        raise NotPossibleError(f"{order.component}: an emulated machine has no {order.tool}")

    def verify_device_firmware(self, order: VerifyDeviceFirmware) -> DevicesRead:
        """Raises NotPossibleError: there is no part to read."""
        raise NotPossibleError(f"{', '.join(order.wanted)}: an emulated machine has no such parts")

    def progress(self) -> str:
        """Tell nothing: an emulated check tells no progress."""
        return ""

    def profiles(self) -> tuple[str, ...]:
        """Name all profiles: what an emulated machine answers says of itself that it is emulated."""
        return ("burn_in", "gate", "idle", "seatrial", "suspect")

    def barred(self) -> tuple[str, ...]:
        """An emulated machine harms nobody, so no kind is barred."""
        return ()

    def invite_kubelet(self, offer: KubeletJoinOffer) -> None:  # noqa: ARG002 - the port's name
        """Raises NotPossibleError: there is no kubelet."""
        raise NotPossibleError("an emulated machine has no kubelet")

    def dismiss_kubelet(self) -> None:
        """Raises NotPossibleError: there is no kubelet."""
        raise NotPossibleError("an emulated machine has no kubelet")


class EmulatedHostMachine(NoSensors):
    """A machine that is not there: it counts what is asked of it, and a reboot gives it its next boot id.

    `verdict` and `parts` are what it answers, and a gate looks at the parts, or at the readings `gate` where there are
    any; `gone_wrong` is raised by the next act of that name.
    """

    def __init__(self, node: str, parts: tuple[Part, ...] = ()) -> None:
        self.node = node
        self.parts = parts
        self.boots = 1
        self.asked: list[str] = []
        self.kernel_lines: list[str] = []
        self.invited: KubeletJoinOffer | None = None
        self.verdict = Verdict.passed
        self.gate: GateReadings | None = None
        self.gone_wrong: dict[str, Exception] = {}

    def boot_id(self) -> str:
        """A boot id that counts the reboots."""
        return f"{self.node}-boot-{self.boots}"

    def reboot(self) -> None:
        """Count one more boot."""
        self._ask("reboot")
        self.boots += 1

    def reset_gpus(self, wanted: ResetRequest) -> str:
        """Note the reset."""
        self._ask(f"gpu_reset {','.join(wanted.gpus) or 'all'}")
        return "emulated"

    def reset_port(self, wanted: ResetPort, plan: str) -> str:
        """Note the reset."""
        self._ask(f"reset_port {wanted.a} of {plan}")
        return "emulated"

    def reset_bmc(self) -> None:
        """Note the BMC reset."""
        self._ask("bmc_cold_reset")

    def evidence(self) -> Facts:
        """Note the call; facts that say that the machine is emulated."""
        self._ask("evidence")
        return {"emulated": True}

    def write_kernel_log(self, line: str) -> None:
        """Note and keep the line."""
        self._ask("write_kernel_log")
        self.kernel_lines.append(line)

    def discover_fabric(self, asked: DiscoverFabric) -> Facts:
        """Note the call; an empty page."""
        self._ask(f"discover_fabric {asked.tool}")
        return {"page": "", "bytes": 0}

    def inventory(self) -> NodeInventory:
        """Note the call; the parts that the machine was made with."""
        self._ask("inventory")
        return NodeInventory(self.parts)

    def check(
        self,
        profile: str,
        expects: Expected,
        run: str = "",  # noqa: ARG002 - the port's name
        rules: PassRules | None = None,
    ) -> StressResult:
        """Note the check; the verdict that was set, or a gate's answer to `expects`."""
        self._ask(f"check {profile}")
        if profile not in ANSWERED or self.verdict is not Verdict.passed:
            return StressResult(self.verdict, "emulated", pass_rules.named(profile, rules))
        return emulated_gate.answer(expects, self.gate or emulated_gate.readings(self.parts))

    def begin_checks(self) -> None:
        """Forget what was called off before."""

    def call_off(self) -> None:
        """Note the call."""
        self.asked.append("call_off")

    def sanitise(self, order: Sanitise) -> ErasureReport:
        """Note the erasure; every drive that is named is erased, in its own words by emulation."""
        self._ask("sanitise")
        return emulated_erasure(order)

    def write_device_firmware(self, order: WriteDeviceFirmware) -> str:
        """Note the order; the parts that it names run the version at once."""
        self._ask(f"write_device_firmware {order.component}")
        named = {part.serial for part in written_parts(self.parts, order.tool, order.models, order.slots)}
        self.parts = tuple(replace(p, firmware=order.version) if p.serial in named else p for p in self.parts)
        return "emulated"

    def verify_device_firmware(self, order: VerifyDeviceFirmware) -> DevicesRead:
        """Note the look; the versions of the parts."""
        self._ask(f"verify_device_firmware {','.join(order.wanted)}")
        return device_firmware.read(order, self.parts)

    def invite_kubelet(self, offer: KubeletJoinOffer) -> None:
        """Note and keep the offer."""
        self._ask("invite_kubelet")
        self.invited = offer

    def dismiss_kubelet(self) -> None:
        """Note the call."""
        self._ask("dismiss_kubelet")

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if error := self.gone_wrong.pop(what.split(maxsplit=1)[0], None):
            raise error


def emulated_erasure(order: Sanitise) -> ErasureReport:
    """The report of an emulated machine: it erases what the order names, and says that it is emulated."""
    drives = [
        DriveErased(one.slot, one.serial, one.model, 0, "emulated", "", Verdict.passed, detail="emulated")
        for one in order.drives
    ]
    return ErasureReport(tuple(drives), TpmCleared(Verdict.passed, "emulated") if order.tpm else None)


def _listens(url: str) -> bool:
    """Tell whether a server listens there, so that no child is started without one."""
    try:
        parts = urlsplit(url)
        socket.create_connection((parts.hostname or "", parts.port or 9400), 1.0).close()
    except (OSError, ValueError):
        return False
    return True


def this_boot() -> str:
    """The kernel's id of the boot that is running."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
