"""Priority of kernel-log lines in the spool; `core.diagnose.sieve` decides which lines are kept at all."""

import re

from hostler.agent.collectors.kmsg import KmsgRecord
from hostler.agent.local_observation import Rank

KERNEL = 0
"""The facility that user space cannot write."""

_URGENT = re.compile(
    r"\bS?Xid\b|fallen off the bus|panic|ncorrect|read-only|not responding|health compromised|unrecoverable|Fatal",
)
_CRITICAL_LEVEL = 2


def rank(record: KmsgRecord) -> Rank:
    """Rank a line for eviction from a full spool; user space can never crowd out the kernel."""
    if record.facility != KERNEL:
        return Rank.routine
    if record.level <= _CRITICAL_LEVEL or _URGENT.search(record.text):
        return Rank.urgent
    return Rank.notable
