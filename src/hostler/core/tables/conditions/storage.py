"""Drives and file systems."""

from hostler.core.state.cases import DUE_OCCASION
from hostler.core.state.model import Severity
from hostler.core.tables.conditions.row import DAY_S, HOUR_S, LOGGED, WEEK_S, ConditionKind, HandWork, Recurrence

KINDS: tuple[ConditionKind, ...] = (
    ConditionKind(
        "storage.read_only",
        Severity.critical,
        "remedy",
        "A file system went read-only or shut itself down after an error.",
        "The drive under it: its health log, and I/O errors before that line.",
        unknown_after_s=DAY_S,
        seen=(LOGGED,),
        gate=("mounts", "kernel_log"),
    ),
    ConditionKind(
        "storage.io_error",
        Severity.warning,
        "age",
        "A drive, its path or its file system reported an error and went on.",
        "The drive's own health log; repeats on the same device.",
        expires_s=7 * DAY_S,
        seen=(LOGGED,),
        recurs=(Recurrence("part", 3, WEEK_S, each=True, apart_s=HOUR_S),),
    ),
    ConditionKind(
        "storage.remote",
        Severity.warning,
        "age",
        "A file server does not answer, or lost what was promised.",
        "The server and the network to it; other nodes that say the same.",
        expires_s=HOUR_S,
        seen=(LOGGED,),
    ),
    ConditionKind(
        "storage.failed",
        Severity.critical,
        "remedy",
        "A drive failed or its file system went read-only.",
        "The drive's own health log, then its slot.",
        unknown_after_s=DAY_S,
        seen=(LOGGED,),
    ),
    ConditionKind(
        "storage.worn",
        Severity.warning,
        "observation",
        "A drive has used up the life that its maker promised.",
        "Its spare blocks; replace it at the next occasion.",
        unknown_after_s=DAY_S,
        hands=HandWork(
            "A drive of the same model and size.",
            "The drive's slot; its data moves or is given up first.",
            "The inventory shows another drive there, or its health log is well.",
            due=DUE_OCCASION,
            proof_s=2 * HOUR_S,
        ),
    ),
    ConditionKind(
        "storage.space_low",
        Severity.warning,
        "observation",
        "A file system is almost full.",
        "What grows there; logs and images first.",
        margin="raised below 5 % free, over above 10 %",
        hands=HandWork(
            "Nothing.",
            "The file system that is named.",
            "A tenth of it is free.",
            due=DUE_OCCASION,
            owner="operator",
            after_s=HOUR_S,
        ),
    ),
    ConditionKind(
        "storage.inodes_low",
        Severity.warning,
        "observation",
        "A file system has almost no inodes left.",
        "Directories with very many small files.",
        margin="raised below 5 % free, over above 10 %",
        hands=HandWork(
            "Nothing.",
            "The file system that is named.",
            "A tenth of its inodes are free.",
            due=DUE_OCCASION,
            owner="operator",
            after_s=HOUR_S,
        ),
    ),
)
