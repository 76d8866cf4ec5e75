"""Which kernel-log lines are worth sending: a cheap first sieve, deliberately wider than what diagnosis knows."""

import re

from hostler.agent.collectors.kmsg import Record
from hostler.agent.sighting import Rank

KERNEL = 0
"""The facility that user space cannot write."""

_WORDS = (
    # GPU, NVSwitch, NVLink, other accelerators
    rb"NVRM|Xid|nvidia|nvlink|nvswitch|fabric.?manager|peermem|neuron|amdgpu|fallen off the bus",
    # network and PCIe
    rb"mlx[45]|infiniband|ib_\w|port module|netdev watchdog|lost carrier|link(?: is)? down|nccl|bnxt|conntrack",
    rb"\bAER\b|pcieport|pciehp|PCIe (?:bandwidth|bus error)|insufficient power|DPC:",
    # memory, processors, firmware
    rb"EDAC|\bmce\b|machine check|hardware error|GHES|CPER|uncorrect|corrected error|thermal|throttl|DMAR|AMD-Vi",
    # the kernel itself
    rb"oom|out of memory|killed process|lockup|hung.task|blocked for more than|rcu.{0,40}stall|watchdog:",
    rb"\bBUG\b|Oops|panic|general protection|segfault|file-max|call trace",
    # disks and file systems
    rb"nvme|I/O error|EXT4-fs|XFS|btrfs|read-only|beyond end of device|md/raid|\bmd\d|\bata\d|\bsd |nfs",
    rb"mpt3sas|megaraid",
)
_SIEVE = re.compile(rb"|".join(_WORDS), re.IGNORECASE)
_URGENT = re.compile(r"\bS?Xid\b|fallen off the bus|panic|uncorrect|read-only|not responding", re.IGNORECASE)
_CRITICAL_LEVEL = 2


def interesting(raw: bytes) -> bool:
    """Whether a raw record is worth parsing and sending."""
    return _SIEVE.search(raw) is not None


def rank(record: Record) -> Rank:
    """How dearly a line is kept when the spool fills up; user space can never crowd out the kernel."""
    if record.facility != KERNEL:
        return Rank.routine
    if record.level <= _CRITICAL_LEVEL or _URGENT.search(record.text):
        return Rank.urgent
    return Rank.notable
