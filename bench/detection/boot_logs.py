"""Healthy boot logs of several kinds of servers, drawn from a seed: what a sound machine says from its first line on.

Modelled on boot logs that are public and on the sources that print them. They hold what careless readers trip over:
"error", "fatal" and "failed" in lines that report no fault, firmware bugs that every such server has, links that are
down because nothing is plugged in, and initialisations of everything whose job is to report errors.
"""

from collections.abc import Callable, Iterator
from random import Random

from msgspec import Struct

from bench.detection.plants import gpu_address


class Server(Struct, frozen=True):
    """A kind of server. `gpu` is the model as the driver's start names it, "" for none."""

    name: str
    cpus: int
    gpus: int = 0
    gpu: str = ""
    switches: int = 0
    nics: int = 8
    drives: int = 8
    vendor: str = "intel"
    driver: str = "570.124.06"
    kernel: str = "6.8.0-1021-nvidia"


SERVERS = (
    Server("DGX H100", 224, 8, "H100", 4, 10, 10, "intel", "550.90.07", "5.15.0-1053-nvidia"),
    Server("HGX H200", 192, 8, "H200", 4, 9, 4, "amd", "560.35.03", "6.5.0-1019-nvidia"),
    Server("HGX B200", 224, 8, "B200", 2, 10, 8, "intel", "570.124.06", "6.8.0-1021-nvidia"),
    Server("GB200 compute tray", 144, 4, "GB200", 0, 6, 4, "arm", "570.133.20", "6.8.0-1020-nvidia-64k"),
    Server("A100 server", 256, 8, "A100", 6, 9, 4, "amd", "535.183.06", "5.14.0-427.el9.x86_64"),
    Server("L40S server", 128, 4, "L40S", 0, 2, 2, "amd", "550.127.05", "6.1.0-26-amd64"),
    Server("CPU-only node", 128, 0, "", 0, 2, 2, "intel", "", "4.18.0-553.el8_10.x86_64"),
    Server("CPU-only node of AMD's", 384, 0, "", 0, 2, 4, "amd", "", "6.12.8-cloud-amd64"),
)

Lines = Iterator[str]


def boot_log(server: Server, seed: int) -> list[str]:
    """The messages of one boot, in order, without their times."""
    chance = Random(f"{server.name}/{seed}")
    return [line for part in _PARTS for line in part(server, chance)]


def boot_logs(each: int) -> Iterator[tuple[Server, list[str]]]:
    """So many boots of each kind of server."""
    for server in SERVERS:
        for seed in range(each):
            yield server, boot_log(server, seed)


def _some(chance: Random, *lines: str) -> Lines:
    """Lines, each on some machines and not on others."""
    for line in lines:
        if chance.random() < 0.8:
            yield line


def _firmware(server: Server, chance: Random) -> Lines:
    flavour = "aarch64-linux-gnu-gcc-13" if server.vendor == "arm" else "x86_64-linux-gnu-gcc-13"
    yield f"Linux version {server.kernel} (buildd@lcy02-amd64-080) ({flavour} (Ubuntu 13.2.0) 13.2.0) #1 SMP"
    yield (
        f"Command line: BOOT_IMAGE=/vmlinuz-{server.kernel} root=UUID=3f ro iommu=pt pci=realloc=off panic=60 "
        "oops=panic hung_task_panic=0 softlockup_panic=1 nmi_watchdog=1 crashkernel=512M mce=bootlog"
    )
    yield "BIOS-provided physical RAM map:"
    for start in range(chance.randrange(3, 9)):
        yield f"BIOS-e820: [mem 0x{start << 32:016x}-0x{(start << 32) + 0x9FFFF:016x}] usable"
    yield "efi: EFI v2.8 by American Megatrends"
    yield from _some(
        chance,
        "[Firmware Bug]: TSC ADJUST: CPU0: -5321212 force to 0",
        "[Firmware Bug]: the BIOS has corrupted hw-PMU resources (MSR 38d is 330)",
        "[Firmware Warn]: GHES: Poll interval is 0 for generic hardware error source: 1, disabled.",
        "[Firmware Bug]: HEST: Table contents overflow for hardware error source: 2.",
        "DMAR: [Firmware Bug]: RMRR entry for device 1a:00.0 is broken - applying workaround",
        "ACPI BIOS Error (bug): Could not resolve symbol [\\_SB.PC00.RP01._HPX], AE_NOT_FOUND (20230628/psargs-330)",
        "ACPI Error: Aborting method \\_SB.PMI0._PMM due to previous error (AE_NOT_EXIST) (20230628/psparse-529)",
        "ACPI Error: AE_NOT_EXIST, Evaluating _PMM (20230628/power_meter-325)",
        "ACPI: \\_SB_.PCI0: ACPI: Failed to evaluate _DSM",
        "ACPI: SPCR: console: pl011,mmio32,0x2600000,115200",
    )


def _processors(server: Server, chance: Random) -> Lines:
    yield f"smpboot: Allowing {server.cpus} CPUs, 0 hotplug CPUs"
    yield f"rcu: \tRCU restricting CPUs from NR_CPUS=8192 to nr_cpu_ids={server.cpus}."
    yield "rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies."
    yield "rcu: srcu_init: Setting srcu_struct sizes based on contention."
    yield "MCE: In-kernel MCE decoding enabled."
    yield f"mce: [Hardware Error]: Machine check polling timer started on {server.cpus} processors, no events pending."
    if server.vendor == "intel":
        yield "mce: CPU0: Thermal monitoring enabled (TM1)"
        yield "CPU0: Thermal monitoring handled by SMI"
        yield "intel_rapl_msr: PL4 support detected."
        yield "EDAC MC: Ver: 3.0.0"
        yield "EDAC i10nm: v0.0.6"
        for number in range(8):
            yield (
                f"EDAC MC{number}: Giving out device to module i10nm_edac controller Intel_10nm Socket#{number // 4} "
                f"IMC#{number % 4}: DEV 0000:7e:0c.0 (INTERRUPT)"
            )
        yield "Intel(R) speed select: no memory error injection"
    elif server.vendor == "amd":
        yield "EDAC amd64: F19h_M10h detected (node 0)."
        for number in range(2):
            yield f"EDAC MC{number}: Giving out device to module amd64_edac controller F19h_M10h: DEV 0000:00:18.3"
            yield f"EDAC amd64: MC: {number}: {chance.choice((16384, 32768))}MB 1: 0MB"
        yield "EDAC amd64: using x16 syndromes."
        yield "AMD-Vi: Interrupt remapping enabled"
        yield "AMD-Vi: AMD IOMMUv2 loaded and initialized"
    else:
        yield "GHES: APEI firmware first mode is enabled by APEI bit."
        yield "EDAC MC0: Giving out device to module ghes_edac.c controller ghes_edac: DEV ghes (INTERRUPT)"
        yield "arm-smmu-v3 arm-smmu-v3.5.auto: failed to claim unused error interrupt, using event queue"
        yield "SDEI NMI watchdog: SDEI Watchdog registered successfully"
    yield "HEST: Enabling Firmware First mode for corrected errors."
    yield "GHES: APEI firmware first mode is enabled by APEI bit and WHEA _OSC."
    yield "ERST: Error Record Serialization Table (ERST) support is initialized."
    yield "pstore: Registered erst as persistent store backend"
    yield "BERT: Error records from previous boot: none"
    yield "hest: machine check error recovery enabled"
    yield "RAS: Correctable Errors collector initialized."
    yield from _some(
        chance,
        "microcode: Microcode Update Driver: v2.2.",
        "Spectre V2 : Mitigation: Enhanced / Automatic IBRS",
        "L1TF: Kernel not compiled for PAE. No mitigation for L1TF",
        "MMIO Stale Data: Vulnerable: Clear CPU buffers attempted, no microcode",
        "x86/split lock detection: #AC: crashing the kernel on kernel split_locks and warning on user-space ones",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        "watchdog: Delayed init of the lockup detector failed: -19",
        "perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
        "clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x1ccc, max_idle_ns: 440795313305 ns",
        "clocksource: timekeeping watchdog on CPU12: hpet wd-wd read-back delay of 100641ns",
        "Kernel panic timeout is set to 60 seconds by the command line",
    )


def _bus(_server: Server, chance: Random) -> Lines:
    yield "acpi PNP0A08:00: _OSC: OS supports [ExtendedConfig ASPM ClockPM Segments MSI EDR HPX-Type3]"
    yield "acpi PNP0A08:00: _OSC: platform does not support [AER LTR]"
    yield "acpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug SHPCHotplug PME AER PCIeCapability LTR DPC]"
    for port in range(chance.randrange(4, 12)):
        where = f"0000:{port:02x}:01.0"
        yield f"pcieport {where}: PME: Signaling with IRQ {24 + port}"
        yield f"pcieport {where}: AER: enabled with IRQ {24 + port}"
        yield f"pcieport {where}: DPC: enabled with IRQ {24 + port}"
        yield (
            f"pcieport {where}: DPC: error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+ SwTrigger+ "
            "RP PIO Log 4, DL_ActiveErr+"
        )
        yield (
            f"pcieport {where}: pciehp: Slot #{port} AttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug+ Surprise+ "
            "Interlock- NoCompl+ IbPresDis- LLActRep+"
        )
    yield from _some(
        chance,
        "pci 0000:00:14.0: BAR 13: failed to assign [io  size 0x1000]",
        "pci 0000:4c:00.0: BAR 6: no space for [mem size 0x00080000 pref]",
        "pci 0000:4c:00.0: BAR 6: failed to assign [mem size 0x00080000 pref]",
        "pci 0000:03:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)",
        (
            "pci 0000:03:00.0: 2.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x1 link at 0000:00:1c.4 "
            "(capable of 4.000 Gb/s with 5.0 GT/s PCIe x1 link)"
        ),
        (
            "xhci_hcd 0000:06:00.0: 7.876 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x1 link at "
            "0000:00:1c.5 (capable of 31.504 Gb/s with 8.0 GT/s PCIe x4 link)"
        ),
        "pcieport 0000:00:07.0: pciehp: Slot(7): Card not present",
        "pci_bus 0000:05: resource 0 [io  0x2000-0x2fff]",
        "iommu: Default domain type: Passthrough (set via kernel command line)",
        "DMAR: Intel(R) Virtualization Technology for Directed I/O",
        "DMAR-IR: Enabled IRQ remapping in x2apic mode",
        "shpchp: Standard Hot Plug PCI Controller Driver version: 0.4",
        "pcieport 0000:02:01.0: bwctrl: enabled with IRQ 31",
    )


def _drives(server: Server, chance: Random) -> Lines:
    for number in range(server.drives):
        yield f"nvme nvme{number}: pci function 0000:{0x81 + number:02x}:00.0"
        yield f"nvme nvme{number}: Shutdown timeout set to {chance.choice((8, 10, 16))} seconds"
        yield f"nvme nvme{number}: {min(server.cpus, 128)}/0/0 default/read/poll queues"
        yield f" nvme{number}n1: p1 p2"
    yield from _some(
        chance,
        "nvme nvme0: missing or invalid SUBNQN field.",
        "nvme nvme1: Ignoring bogus Namespace Identifiers",
        "nvme nvme0: allocated 64 MiB host memory buffer.",
        "nvme nvme2: D3 entry latency set to 8 seconds",
        "nvme nvme0: Abort status: 0x0",
        "ata1: SATA link down (SStatus 0 SControl 300)",
        "ata2: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "ata2.00: configured for UDMA/133",
        "sd 0:0:0:0: [sda] Write Protect is off",
        "sd 0:0:0:0: [sda] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA",
        "sd 1:0:0:0: [sdb] Attached SCSI removable disk",
        "sr 2:0:0:0: [sr0] scsi3-mmc drive: 24x/24x writer cd/rw xa/form2 cdda tray",
        "I/O error, dev sr0, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
        "Buffer I/O error on dev sr0, logical block 0, async page read",
        "megaraid_sas 0000:c1:00.0: FW now in Ready state",
        "megaraid_sas 0000:c1:00.0: fw state:c0000000",
        "md/raid1:md0: active with 2 out of 2 mirrors",
        "md0: detected capacity change from 0 to 1873887232",
        "md: raid6 personality registered for level 6",
        "EXT4-fs (md0): mounted filesystem 3a4b ro with ordered data mode. Quota mode: none.",
        "EXT4-fs (md0): INFO: recovery required on readonly filesystem",
        "EXT4-fs (md0): write access will be enabled during recovery",
        "EXT4-fs (md0): recovery complete",
        "EXT4-fs (md0): orphan cleanup on readonly fs",
        "EXT4-fs (md0): re-mounted 3a4b r/w. Quota mode: none.",
        "EXT4-fs (md0): mounted filesystem with ordered data mode. Opts: errors=remount-ro. Quota mode: none.",
        "XFS (md1): Mounting V5 Filesystem 7a11",
        "XFS (md1): Starting recovery (logdev: internal)",
        "XFS (md1): Ending recovery (logdev: internal)",
        "XFS (nvme1n1p1): Ending clean mount",
        "FAT-fs (nvme0n1p1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
        "FAT-fs (sdb1): utf8 is not a recommended IO charset for FAT filesystems, filesystem will be case sensitive!",
        "BTRFS info (device nvme0n1p3): using crc32c (crc32c-intel) checksum algorithm",
        "BTRFS info (device nvme0n1p3): bdev /dev/nvme0n1p3 errs: wr 0, rd 0, flush 0, corrupt 0, gen 0",
        "VFS: Mounted root (ext4 filesystem) readonly on device 259:2.",
        "loop0: detected capacity change from 0 to 8",
        "squashfs: version 4.0 (2009/01/31) Phillip Lougher",
        "device-mapper: multipath: Failing path 8:16 is not configured here",
    )


def _network(server: Server, chance: Random) -> Lines:
    for number in range(server.nics):
        where = f"0000:{0x18 + 9 * number:02x}:00.0"
        port = f"ens{number}f0np0"
        yield f"mlx5_core {where}: firmware version: 28.39.{chance.choice((1002, 2048, 3004))}"
        yield f"mlx5_core {where}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)"
        yield f"mlx5_core {where}: Rate limit: 127 rates are supported, range: 0Mbps to 195312Mbps"
        yield f"mlx5_core {where}: E-Switch: Total vports 2, per vport: max uc(128) max mc(2048)"
        yield f"mlx5_core {where}: mlx5_pcie_event:301:(pid 301): PCIe slot advertised sufficient power (75W)."
        yield f"mlx5_core {where}: Port module event: module 0, Cable plugged"
        yield f"mlx5_core {where}: MLX5E: StrdRq(1) RqSz(8) StrdSz(2048) RxCqeCmprss(0 enhanced)"
        yield f"mlx5_core {where} {port}: renamed from eth{number}"
        yield f"mlx5_core {where} {port}: Link up"
        yield f"IPv6: ADDRCONF(NETDEV_CHANGE): {port}: link becomes ready"
    yield from _some(
        chance,
        "mlx5_core 0000:18:00.0: mlx5_fw_tracer_start:821:(pid 7): FWTracer: Ownership granted and active",
        "mlx5_core 0000:18:00.0: Supported tc offload range - chains: 4294967294, prios: 4294967295",
        "mlx5_core 0000:18:00.0: cmd0: CREATE_MKEY(0x200) recovered after timeout",
        "mlx5_core 0000:18:00.0: health recovery succeeded",
        "mlx5_ib: Mellanox Connect-IB Infiniband driver v5.0-0",
        "infiniband mlx5_0: Couldn't open port 1",
        "IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready",
        "ib0: enabling connected mode will cause multicast packet drops",
        "mlx5_core 0000:21:00.1: Port module event: module 1, Cable unplugged",
        "mlx5_core 0000:21:00.1 ens9f1np1: Link down",
        "mlx5_core 0000:18:00.0: mlx5_cmd_out_err:838:(pid 2682): ACCESS_REG(0x805) op_mod(0x1) failed, status bad "
        "operation(0x2), syndrome (0x305684), err(-22)",
        "igb 0000:02:00.0: added PHC on eth0",
        "igb 0000:02:00.0 eno1: igb: eno1 NIC Link is Down",
        "ixgbe 0000:03:00.1: Multiqueue Enabled: Rx Queue count = 63, Tx Queue count = 63 XDP Queue count = 0",
        "bnxt_en 0000:21:00.0 eth2: NIC Link is Up, 25000 Mbps (NRZ) full duplex, Flow control: none",
        "bond0: (slave ens1f0np0): Enslaving as a backup interface with an up link",
        "bond0: Warning: No 802.3ad response from the link partner for any adapters in the bond",
        "8021q: adding VLAN 0 to HW filter on device bond0",
        "cfg80211: failed to load regulatory.db",
        "platform regulatory.0: Direct firmware load for regulatory.db failed with error -2",
        "nf_conntrack: default automatic helper assignment has been turned off for security reasons",
        "TCP: request_sock_TCP: Possible SYN flooding on port 8443. Sending cookies.",
        "RPC: Registered rdma transport module.",
        "RPC: Registered named UNIX socket transport module.",
        "NFS: Registering the id_resolver key type",
        "Lustre: Lustre: Build Version: 2.15.5",
        "FS-Cache: Loaded",
    )


def _accelerators(server: Server, chance: Random) -> Lines:
    if not server.gpus:
        return
    kind = "Open Kernel Module for" if server.gpu in ("B200", "GB200") else "Kernel Module for"
    yield "nvidia: loading out-of-tree module taints kernel."
    yield "nvidia: module license 'NVIDIA' taints kernel."
    yield "nvidia: module verification failed: signature and/or required key missing - tainting kernel"
    yield "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"
    yield f"NVRM: loading NVIDIA UNIX {kind} x86_64  {server.driver}  Release Build  (dvs-builder@U16-I3-B03-1-1)"
    for switch in range(server.switches):
        where = f"0000:{0xC4 + switch:02x}:00.0"
        yield f"nvidia-nvswitch{switch}: Probing device {where}"
        yield f"nvidia-nvswitch {where}: enabling device (0140 -> 0142)"
        yield f"nvidia-nvswitch{switch}: using MSI"
        yield f"nvidia-nvswitch{switch}: open (major=235)"
    for gpu in range(server.gpus):
        where = gpu_address(gpu)
        yield f"nvidia {where}.0: enabling device (0140 -> 0142)"
        yield f"nvidia {where}.0: vgaarb: VGA decodes changed: olddecodes=none,decodes=none:owns=none"
        yield f"NVRM: GPU at PCI:{where}: GPU-{chance.getrandbits(32):08x}-1234-5678-9abc-def012345678"
        yield f"[drm] Initialized nvidia-drm 0.0.0 20160202 for {where}.0 on minor {gpu}"
    yield f"nvidia-modeset: Loading NVIDIA UNIX {kind} Mode Setting Driver for UNIX platforms  {server.driver}"
    yield from _some(
        chance,
        "[drm] [nvidia-drm] [GPU ID 0x00001b00] Loading driver",
        "[drm:drm_new_set_master] *ERROR* [nvidia-drm] [GPU ID 0x00001b00] Failed to grab modeset ownership",
        "nvidia_uvm: module uses symbols nvUvmInterfaceDisableAccessCntr from proprietary module nvidia, inheriting",
        "nvidia-uvm: Loaded the UVM driver, major device number 510.",
        "nvidia-gpu 0000:1b:00.3: i2c timeout error e0000000",
        "NVRM: Persistence mode is deprecated and will be removed in a future release. Please use nvidia-persistenced",
        "NVRM: This can occur when a driver such as nouveau, rivafb was loaded",
        "nvidia_peermem: module license 'NVIDIA' taints kernel.",
        "nvidia-peermem: nv_get_p2p: mapped 12 pages",
        "nvidia 0000:1b:00.0: Direct firmware load for nvidia/570.124.06/gsp_ga10x.bin succeeded",
        "ast 0000:05:00.0: [drm] Using P2A bridge for configuration",
        "fbcon: astdrmfb (fb0) is primary device",
        "gdrdrv:loading gdrdrv version 2.4 built for NVIDIA driver",
    )


def _user_space(server: Server, chance: Random) -> Lines:
    """Yields the kernel log's lines about programs that start, also the driver's helpers."""
    yield "systemd[1]: Inserted module 'autofs4'"
    yield "systemd[1]: Started Journal Service."
    if server.gpus:
        yield "systemd[1]: Starting NVIDIA fabric manager service..."
        yield "nv-fabricmanager[2214]: Connected to 1 node."
        yield "nv-fabricmanager[2214]: Successfully configured all the available NVSwitches to route traffic."
        yield "nvidia-persistenced: Started (1811)"
    yield from _some(
        chance,
        'audit: type=1400 audit(1753325017.308:6): apparmor="STATUS" operation="profile_load" name="nvidia_modprobe"',
        "audit: error in audit_log_task_context",
        "systemd[1]: Failed to find module 'nf_tables'",
        "systemd-fstab-generator[812]: Failed to create unit file, as it already exists",
        "kauditd_printk_skb: 14 callbacks suppressed",
        "cgroup: fork: process 4711 (kubelet) added to cgroup kubepods-burstable-pod1",
        "device veth1a2b entered promiscuous mode",
        "cni0: port 3(veth1a2b) entered disabled state",
        "cni0: port 3(veth1a2b) entered forwarding state",
        "overlayfs: upperdir is in-use as upperdir/workdir of another mount, accessing files from both mounts",
        "workqueue: output_poll_execute hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
        "hrtimer: interrupt took 12845 ns",
        "process '/usr/bin/runc' started with executable stack",
        "IPMI message handler: version 39.2",
        "ipmi_si IPI0001:00: The BMC does not support clearing the recv irq bit, compensating",
        "ipmi_si: Unable to find any System Interface(s)",
        "ACPI: Enabled 3 GPEs in block 00 to 7F",
        "thermal thermal_zone0: failed to read out thermal zone (-61)",
        "kvm: VM_EXIT_LOAD_IA32_PERF_GLOBAL_CTRL does not work properly. Using workaround",
        "kdump: Starting kdump: [OK]",
        "usb 1-14.1: device descriptor read/64, error -32",
        "hid-generic 0003:046B:FF10.0001: input,hidraw0: USB HID v1.10 Keyboard [American Megatrends Inc. Keyboard]",
        "sysrq: This sysrq operation is disabled.",
        "Bluetooth: Core ver 2.22",
        "EXT4-fs (nvme0n1p2): unmounting filesystem 3a4b.",
        "Process accounting resumed",
        "oom_reaper: started",
        "BUG_ON checks are compiled in",
    )


_PARTS: tuple[Callable[[Server, Random], Lines], ...] = (
    _firmware,
    _processors,
    _bus,
    _drives,
    _network,
    _accelerators,
    _user_space,
)
