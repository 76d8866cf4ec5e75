"""Kernel-log lines of the other families to plant: memory, processors, PCI Express, disks, network, and the kernel.

Written after the sources that print them (kernel 4.18 to 6.11, mlx5, NVIDIA's driver), one or more forms of each.
"""

from bench.detection.plants import Plant

Says = tuple[tuple[str, str, str], ...]
"""Label of a line, the line, and the part that the condition must name."""

_MEMORY: dict[str, Says] = {
    "memory.uncorrectable": (
        (
            "EDAC UE, Intel",
            (
                "EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#{n} (channel:1 slot:0 page:0x5f "
                "offset:0x0 grain:32 - err_code:0x0101:0x0091)"
            ),
            "dev:CPU_SrcID#1_MC#0_Chan#1_DIMM#{n}",
        ),
        (
            "EDAC UE, AMD",
            "EDAC MC0: 1 UE on mc#0csrow#3channel#{n} (csrow:3 channel:1 page:0x7f offset:0x0 grain:64)",
            "dev:mc#0csrow#3channel#{n}",
        ),
        ("a page taken out of use", "Memory failure: 0x3f1a7c4: recovery action for dirty LRU page: Recovered", ""),
        ("a program that met wrong memory", "mce: Uncorrected hardware memory error in user-access at 3f1a7c4080", ""),
        ("a machine check of memory", "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: bd00000000010090", ""),
    ),
    "memory.correctable": (
        (
            "EDAC CE, Intel",
            (
                "EDAC MC0: 1 CE memory scrubbing error on CPU_SrcID#0_MC#0_Chan#2_DIMM#{n} (channel:2 slot:1 page:0x1a "
                "offset:0x0 grain:32 syndrome:0x0)"
            ),
            "dev:CPU_SrcID#0_MC#0_Chan#2_DIMM#{n}",
        ),
        (
            "EDAC CE, AMD",
            "EDAC MC0: 2 CE on mc#0csrow#2channel#{n} (csrow:2 channel:1 page:0x7f offset:0x0 grain:64 syndrome:0x1)",
            "dev:mc#0csrow#2channel#{n}",
        ),
        ("a corrected machine check", "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 8: 8c00004000010091", ""),
        (
            "EDAC CE, older words",
            "sbridge: HANDLING MCE MEMORY ERROR: CE memory read error on CPU_SrcID#0_Channel#2_DIMM#0",
            "",
        ),
    ),
    "cpu.machine_check": (
        (
            "a machine check of a processor",
            "mce: [Hardware Error]: CPU 40: Machine Check Exception: 5 Bank 1: be00000000800400",
            "",
        ),
        ("a fatal error in the firmware's words", "{3}[Hardware Error]: event severity: fatal", ""),
        ("a fatal error of AMD's", "[Hardware Error]: System Fatal error.", ""),
    ),
    "host.kernel_warning": (
        ("an uncorrected error in the firmware's words", "{1}[Hardware Error]: event severity: recoverable", ""),
        ("a contained error of AMD's", "[Hardware Error]: Uncorrected, software containable error.", ""),
        ("a bad page state", "BUG: Bad page state in process trainer  pfn:1a2b3c", ""),
        ("sleep while atomic", "BUG: scheduling while atomic: swapper/3/0/0x00000002", ""),
        ("a workqueue that stands still", "BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck", ""),
        (
            "a network device that somebody holds",
            "unregister_netdevice: waiting for veth1a2b to become free. Usage count = 1",
            "",
        ),
    ),
    "kernel_log.informational": (
        ("the OOM killer called", "trainer invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER), order=0", ""),
        ("machine checks logged", "mce: [Hardware Error]: Machine check events logged", ""),
        ("a corrected error of AMD's", "[Hardware Error]: Corrected error, no action required.", ""),
        (
            "a corrected error of a processor",
            "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 0: 9c00000000000134",
            "",
        ),
    ),
    "host.thermal": (
        (
            "a hot core",
            "mce: CPU12: Core temperature above threshold, cpu clock throttled (total events = 1)",
            "",
        ),
        ("a hot package", "CPU4: Package temperature above threshold, cpu clock is throttled (total events = 7)", ""),
    ),
}

_PCIE: dict[str, Says] = {
    "pcie.uncorrectable": (
        (
            "AER fatal, told by the port",
            "pcieport 0001:00:01.0: AER: Uncorrected (Fatal) error received: {pci}.0",
            "pci:{pci}",
        ),
        (
            "AER fatal, newer words",
            "pcieport 0001:00:01.0: AER: Uncorrectable (Fatal) error message received from {pci}.0",
            "pci:{pci}",
        ),
        (
            "AER fatal, told of the device",
            "nvidia {pci}.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
            "pci:{pci}",
        ),
        ("AER fatal, and the machine died", "pcieport {pci}.0: AER: Uncorrected (Fatal) error received:", "pci:{pci}"),
        ("AER fatal, cut off", "nvidia {pci}.0: PCIe Bus Error: severity=Uncorrected (Fatal)", "pci:{pci}"),
        ("no recovery after AER", "pcieport {pci}.0: AER: device recovery failed", "pci:{pci}"),
        ("no way to recover", "nvidia {pci}.0: AER: can't recover (no error_detected callback)", "pci:{pci}"),
        ("DPC containment", "pcieport {pci}.0: DPC: containment event, status:0x1f01 source:0x0000", "pci:{pci}"),
    ),
    "pcie.error": (
        (
            "AER non-fatal, told by the port",
            "pcieport 0001:00:01.0: AER: Uncorrected (Non-Fatal) error received: {pci}.0",
            "pci:{pci}",
        ),
        (
            "AER non-fatal, told of the device",
            "mlx5_core {pci}.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester)",
            "pci:{pci}",
        ),
        ("a slot's link down", "pcieport {pci}.0: pciehp: Slot(17): Link Down", "pci:{pci}"),
        (
            "a slot's link not trained",
            "pcieport {pci}.0: pciehp: Slot(17): Cannot train link: status 0x5081",
            "pci:{pci}",
        ),
    ),
    "pcie.correctable": (
        (
            "AER corrected, told by the port",
            "pcieport 0001:00:01.0: AER: Corrected error received: {pci}.0",
            "pci:{pci}",
        ),
        (
            "AER corrected, told of the device",
            "nvme {pci}.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
            "pci:{pci}",
        ),
        (
            "AER corrected, newer words",
            "pcieport 0001:00:01.0: AER: Multiple Correctable error message received from {pci}.0",
            "pci:{pci}",
        ),
    ),
    "pcie.degraded_link": (
        (
            "a link trained down",
            "pcieport {pci}.0: broken device, retraining non-functional downstream link at 2.5GT/s",
            "pci:{pci}",
        ),
        (
            "a narrow link of an adapter",
            (
                "mlx5_core {pci}.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at "
                "0001:16:02.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
            ),
            "pci:{pci}",
        ),
        (
            "a slow link, older words",
            (
                "pci {pci}.0: 8.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s x4 link at 0001:5d:01.0 "
                "(capable of 63.008 Gb/s with 16 GT/s x4 link)"
            ),
            "pci:{pci}",
        ),
    ),
}

_DISKS: dict[str, Says] = {
    "storage.read_only": (
        ("ext4 read-only", "EXT4-fs (nvme{n}n1p2): Remounting filesystem read-only", "dev:nvme{n}n1p2"),
        ("FAT read-only", "FAT-fs (sd{n}): Filesystem has been set read-only", "dev:sd{n}"),
        ("btrfs read-only", "BTRFS info (device nvme{n}n1p4: state E): forced readonly", "dev:nvme{n}n1p4"),
        (
            "XFS shut down",
            (
                "XFS (dm-{n}): Log I/O Error (0x2) detected at xlog_ioend_work+0x6a/0x90 [xfs] "
                "(fs/xfs/xfs_log.c:1378).  Shutting down filesystem."
            ),
            "dev:dm-{n}",
        ),
        ("XFS shut down, newer", "XFS (md{n}): Filesystem has been shut down due to log error (0x2).", "dev:md{n}"),
    ),
    "storage.failed": (
        ("a superblock lost", "EXT4-fs (dm-{n}): previous I/O error to superblock detected", "dev:dm-{n}"),
        ("NVMe out of use", "nvme nvme{n}: Disabling device after reset failure: -19", "dev:nvme{n}"),
        ("NVMe not started", "nvme nvme{n}: Removing after probe failure status: -19", "dev:nvme{n}"),
        ("NVMe without a path", "block nvme{n}n1: no available path - failing I/O", "dev:nvme{n}n1"),
        ("a disk out of an array", "md/raid1:md127: Disk failure on sd{n}, disabling device.", "dev:sd{n}"),
        ("an array that ends", "md/raid:md5: Cannot continue operation (2/4 failed).", ""),
    ),
    "storage.io_error": (
        ("an ext4 error", "EXT4-fs error (device dm-{n}): ext4_find_entry:1663: inode #262145: comm sh", "dev:dm-{n}"),
        (
            "an ext4 write that failed",
            "EXT4-fs warning (device sd{n}): ext4_end_bio:347: I/O error 10 writing to inode 2145 starting block 819)",
            "dev:sd{n}",
        ),
        ("an XFS error", "XFS (sd{n}): Metadata corruption detected at xfs_agf_verify+0x12/0x40 [xfs]", "dev:sd{n}"),
        ("a btrfs error", "BTRFS error (device sd{n}): bdev /dev/sdb errs: wr 1, rd 0, flush 0", "dev:sd{n}"),
        ("a journal given up", "Aborting journal on device nvme{n}n1p1-8.", "dev:nvme{n}n1p1-8"),
        (
            "a buffer that could not be written",
            "Buffer I/O error on dev dm-{n}, logical block 262144, lost async page write",
            "dev:dm-{n}",
        ),
        (
            "a block that could not be read",
            "blk_update_request: I/O error, dev sd{n}, sector 195035136 op 0x0:(READ) flags 0x80700 phys_seg 1",
            "dev:sd{n}",
        ),
        ("a medium error", "critical medium error, dev nvme{n}n1, sector 2048 op 0x0:(READ)", "dev:nvme{n}n1"),
        (
            "an NVMe command that failed",
            "nvme{n}n1: I/O Cmd(0x2) @ LBA 2048, 8 blocks, I/O Error (sct 0x2 / sc 0x81) ",
            "dev:nvme{n}n1",
        ),
        ("a disk offline", "sd 0:0:{n}:0: rejecting I/O to offline device", ""),
        ("beyond the device's end", "attempt to access beyond end of device", ""),
        ("an NVMe timeout", "nvme nvme{n}: I/O 712 QID 9 timeout, aborting", "dev:nvme{n}"),
        (
            "an NVMe timeout, newer words",
            "nvme nvme{n}: I/O tag 320 (2140) opcode 0x2 (I/O Cmd) QID 31 timeout, aborting req_op:READ(0) size:4096",
            "dev:nvme{n}",
        ),
        (
            "an NVMe controller down",
            "nvme nvme{n}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
            "dev:nvme{n}",
        ),
        ("an NVMe not ready", "nvme nvme{n}: Device not ready; aborting reset, CSTS=0x1", "dev:nvme{n}"),
        ("an NVMe path lost", "block nvme{n}n1: no usable path - requeuing I/O", "dev:nvme{n}n1"),
        ("an NVMe's own warning", "nvme nvme{n}: controller reports critical warning 0x04", "dev:nvme{n}"),
    ),
    "storage.remote": (
        ("a file server away", "nfs: server 10.9.8.{n} not responding, still trying", "server:10.9.8.{n}"),
        ("a lock lost", "NFS: nfs4_reclaim_open_state: Lock reclaim failed!", ""),
        ("a stack that waits for a file server", " ? nfs_wait_on_request+0x29/0x40 [nfs]", ""),
    ),
}

_NETWORK: dict[str, Says] = {
    "network.nic_down": (
        (
            "a command without an answer",
            (
                "mlx5_core {pci}.0: wait_func:1114:(pid 5519): QUERY_VPORT_COUNTER(0x770) timeout. Will cause a leak "
                "of a command resource"
            ),
            "pci:{pci}",
        ),
        (
            "firmware without a heartbeat",
            "mlx5_core {pci}.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
            "pci:{pci}",
        ),
        ("an adapter's fatal error", "mlx5_core {pci}.0: poll_health:739:(pid 0): Fatal error 3 detected", "pci:{pci}"),
        (
            "an adapter's hardware error",
            "mlx5_core {pci}.0: print_health_info:491:(pid 0): synd 0x8: unrecoverable hardware error",
            "pci:{pci}",
        ),
        ("an adapter that does not recover", "mlx5_core {pci}.0: health recovery failed", "pci:{pci}"),
    ),
    "network.nic_warning": (
        ("a firmware error", "mlx5_core {pci}.0: synd 0x1: firmware internal error", "pci:{pci}"),
        (
            "a queue that stands still",
            "mlx5_core {pci}.0 ens3f0np0: NETDEV WATCHDOG: CPU: 12: transmit queue 14 timed out 15380 ms",
            "pci:{pci}",
        ),
        (
            "a queue that stands still, older words",
            "NETDEV WATCHDOG: ens{n}f0np0 (mlx5_core): transmit queue 14 timed out",
            "dev:ens{n}f0np0",
        ),
        ("a transmit timeout", "mlx5_core {pci}.0 ens3f0np0: TX timeout detected", "pci:{pci}"),
        (
            "a receive timeout",
            "mlx5_core {pci}.0 ens3f0np0: RX timeout on channel: 3, ICOSQ: 0x11a RQ: 0x9f, CQ: 0x451",
            "pci:{pci}",
        ),
        (
            "a slot with little power",
            "mlx5_core {pci}.0: mlx5_pcie_event:301:(pid 0): Detected insufficient power on the PCIe slot (25W).",
            "pci:{pci}",
        ),
        (
            "a hot transceiver",
            "mlx5_core {pci}.0: Port module event[error]: module 1, Cable error, High Temperature",
            "pci:{pci}",
        ),
        (
            "a cable that is no use",
            "mlx5_core {pci}.0: Port module event[error]: module 1, Cable error, Bad or shorted cable/module",
            "pci:{pci}",
        ),
    ),
    "network.link_event": (
        ("a cable pulled out", "mlx5_core {pci}.0: Port module event: module 0, Cable unplugged", "pci:{pci}"),
        ("a link down, mlx5", "mlx5_core {pci}.0 ens3f0np0: Link down", "pci:{pci}"),
        ("a link down, bnxt", "bnxt_en {pci}.0 eth2: NIC Link is Down", "pci:{pci}"),
        ("a link down, an interface alone", "ib{n}: Link is Down", "dev:ib{n}"),
    ),
    "network.peermem": (
        (
            "peer memory released under a transfer",
            "nvidia_peermem: nv_get_p2p_free_callback:130 ERROR detected invalid context, skipping further processing",
            "",
        ),
        ("peer memory that cannot be mapped", "nvidia-peermem nv_dma_map:411 ERROR failed to map pages", ""),
    ),
    "kernel_log.informational": (
        (
            "a register refused",
            (
                "mlx5_core {pci}.0: mlx5_cmd_out_err:838:(pid 2682): ACCESS_REG(0x805) op_mod(0x1) failed, status bad "
                "operation(0x2), syndrome (0x305684), err(-22)"
            ),
            "pci:{pci}",
        ),
        ("a file server back", "nfs: server 10.9.7.{n} OK", "server:10.9.7.{n}"),
    ),
}

_KERNEL: dict[str, Says] = {
    "host.lockup": (
        ("a soft lockup", "watchdog: BUG: soft lockup - CPU#71 stuck for 26s! [python3:88123]", ""),
        ("a hard lockup", "NMI watchdog: Watchdog detected hard LOCKUP on cpu 17", ""),
        ("an RCU stall", "rcu: INFO: rcu_sched self-detected stall on CPU", ""),
        ("RCU stalls elsewhere", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", ""),
    ),
    "host.hung_task": (
        ("a hung task", "INFO: task kworker/u98:3:40121 blocked for more than 241 seconds.", ""),
        ("a task hung on a file server", "task python3:912 blocked for more than 600 seconds.", ""),
    ),
    "host.kernel_oops": (
        ("an oops", "BUG: kernel NULL pointer dereference, address: 0000000000000008", ""),
        ("an oops of another kind", "BUG: unable to handle page fault for address: ffffa3c2c0e4d000", ""),
        ("an oops of Arm's", "Unable to handle kernel paging request at virtual address dead000000000108", ""),
        ("a general protection fault", "general protection fault: 0000 [#3] SMP PTI", ""),
        ("a kernel bug", "kernel BUG at mm/slub.c:4023!", ""),
    ),
    "host.kernel_panic": (
        ("a panic", "Kernel panic - not syncing: Fatal exception in interrupt", ""),
        ("a panic at the start", "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)", ""),
    ),
    "host.out_of_memory": (
        (
            "out of memory",
            "Out of memory: Killed process 902 (java) total-vm:1kB, anon-rss:1kB, file-rss:0kB, UID:1000 pgtables:8kB",
            "",
        ),
        (
            "the OOM killer's reasons",
            (
                "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,"
                "task=stress,pid=31,uid=1000"
            ),
            "",
        ),
    ),
    "host.application_crash": (
        (
            "out of a container's memory",
            "Memory cgroup out of memory: Killed process 70011 (train.py) total-vm:91234kB",
            "",
        ),
        (
            "the OOM killer's reasons in a container",
            (
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a.scope,mems_allowed=0-1,oom_memcg=/k/a,"
                "task_memcg=/k/a/b,task=python3,pid=4100,uid=0"
            ),
            "",
        ),
        ("a container at its limit", "Task in /kubepods/pod1 killed as a result of limit of /kubepods/pod1", ""),
        ("a process killed", "Killed process 8123 (rank 3: train) total-vm:1000kB, anon-rss:900kB", ""),
        (
            "a segfault",
            "python3[4100]: segfault at 0 ip 0000558a1 sp 00007ffd1 error 6 in python3.10[558a0000+2b2000]",
            "",
        ),
        (
            "a segfault in NCCL",
            "pt_main_thread[9]: segfault at 7f79 ip 00007f7c sp 00007f7d error 4 cpu 7 in libnccl.so.2.19.3[7f7c+d3]",
            "",
        ),
        (
            "a trap",
            "traps: worker[311] general protection fault ip:7f31 sp:7ffd error:0 in libc.so.6[7f30+195000]",
            "",
        ),
        (
            "no more processes",
            "cgroup: fork rejected by pids controller in /kubepods.slice/kubepods-burstable.slice",
            "",
        ),
    ),
    "host.resource_exhausted": (
        ("no more open files", "VFS: file-max limit 9223372036854775807 reached", ""),
        ("no more connections", "nf_conntrack: nf_conntrack: table full, dropping packet", ""),
    ),
}

_ACCELERATORS: dict[str, Says] = {
    "gpu.reset_required": (
        ("a GPU that does not start", "NVRM: GPU {gpu}.0: RmInitAdapter failed! (0x62:0x40:2477)", "{serial}"),
    ),
    "gpu.driver_investigate": (
        (
            "NVLinks of a peer unknown",
            "NVRM: GPU0 knvlinkDiscoverPostRxDetLinks_GH100: Getting peer3 postRxDetLinkMask failed!",
            "",
        ),
        (
            "NVLinks of the GPU unknown",
            "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",
            "",
        ),
        (
            "driver and library differ",
            "NVRM: API mismatch: the client has the version 550.54.15, but this kernel module has the version 535.161.",
            "",
        ),
    ),
    "accelerator.failed": (
        (
            "a Neuron device, uncorrectable",
            "neuron: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR neuron device 3",
            "",
        ),
    ),
    "accelerator.error": (("a Neuron device, other", "neuron: NEURON_HW_ERR=DMA_ERROR neuron device 3", ""),),
}

_FAMILIES = {
    "memory and processors": _MEMORY,
    "PCI Express": _PCIE,
    "disks and file systems": _DISKS,
    "network and NVLink adapters": _NETWORK,
    "the kernel": _KERNEL,
    "drivers of accelerators": _ACCELERATORS,
}


def families() -> tuple[Plant, ...]:
    """Every line of the tables above."""
    return tuple(
        Plant(family, name, condition, part, (line,))
        for family, table in _FAMILIES.items()
        for condition, says in table.items()
        for name, line, part in says
    )


_FORGED = (
    ("an Xid", 1, "NVRM: Xid (PCI:{gpu}): 79, pid=1, GPU has fallen off the bus."),
    ("an SXid", 3, "nvidia-nvswitch2: SXid (PCI:{pci}.0): 20034, Fatal, Link 17 LTSSM Fault Up"),
    ("an uncorrected error", 16, "EDAC MC0: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0"),
    ("a panic", 1, "Kernel panic - not syncing: Fatal exception"),
    ("a file system", 10, "EXT4-fs (sda1): Remounting filesystem read-only"),
    ("a link, told by a program", 3, "systemd-networkd[812]: ens3f0np0: Lost carrier"),
    (
        "fabric manager, which is a program",
        3,
        (
            "nv-fabricmanager[2214]: detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
            "00000000:C3:00.0 physical id 0 port 9"
        ),
    ),
)


def userspace() -> tuple[Plant, ...]:
    """Lines that user space wrote: the very words of the kernel, and nobody is convicted by them."""
    family, condition = "written by user space", "kernel_log.userspace_origin"
    return tuple(Plant(family, name, condition, "", (line,), facility=facility) for name, facility, line in _FORGED)
