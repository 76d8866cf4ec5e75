"""Chooses kernel-log lines that are worth a closer look: a cheap sieve, deliberately wider than what is diagnosed.

A line is cut into its words (runs of letters, in lower case) and passes if it holds one of ours. That costs the same
however many words are ours, which no search for each of them does.
"""

_TO_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isascii() and chr(byte).isalpha() else ord(" ") for byte in range(256)
)

WORDS = frozenset(
    word.encode()
    for word in (  # noqa: SIM905 - groups of words read better than one to a line
        # GPUs, NVSwitches, NVLink, other accelerators
        "nvrm xid sxid nvidia nvlink nvswitch nvswitches fabricmanager fabric peermem peer neuron amdgpu "
        # networks
        "mlx infiniband ib netdev carrier down conntrack nccl libnccl bnxt cable unregister watchdog "
        # PCIe
        "aer pcieport pciehp pcie dpc bandwidth "
        # memory, processors, firmware
        "edac mce ghes cper hardware uncorrected uncorrectable corrected correctable thermal throttled temperature "
        "dmar iommu memory severity "
        # the kernel itself
        "oom killer killed kill lockup blocked hung rcu stall stalls bug oops panic fault segfault traps trap "
        "unable internal opcode rejected vfs "
        # disks, file systems, file servers
        "nvme ext xfs btrfs jbd journal superblock only readonly remounting raid md sd ata nfs lockd nfsd statd "
        "responding rpc beyond buffer mpt megaraid "
        # what anything may say of itself
        "error errors failed failure fails fail fatal critical timeout timed unrecoverable health compromised"
    ).split()
)
"""Words that a line of interest holds; names without their numbers (nvme0n1 holds "nvme")."""


def passes(raw: bytes) -> bool:
    """Whether the bytes of a line, or of several, hold a word of interest."""
    return not WORDS.isdisjoint(raw.translate(_TO_WORDS).split())
