"""The kernel itself: lockups, hung tasks, oopses, panics, memory that ran out, limits that were reached."""

from msgspec.structs import replace

from hostler.core.diagnose.decoded import Decoded, Victim
from hostler.core.diagnose.family import Family, MessageRow

_TASK = r"\[(?P<process>[^\]\n]{1,80})\]"
_SECONDS = r"(?P<duration_s>\d{1,10})"
_OOPS = "host.kernel_oops"
_SHORT, _ANSWER, _BEGINS = "host.out_of_memory", "host.application_crash", "kernel_log.informational"
"""Of memory that ran out: the machine's, one container's, and the report's first line, which says neither."""


_CGROUP = "CONSTRAINT_MEMCG"
_WIDE = {"CONSTRAINT_NONE": True, _CGROUP: False, "CONSTRAINT_CPUSET": False, "CONSTRAINT_MEMORY_POLICY": False}
"""Bound of the memory that ran out → whether it was the whole machine's."""


def _task(one: Decoded) -> Decoded:
    """`comm:pid` as the kernel names a task; comm may hold colons itself."""
    _, _, pid = str(one.facts.get("process", "")).rpartition(":")
    return replace(one, facts={**one.facts, "pid": int(pid)}) if pid.isdecimal() and pid.isascii() else one


def _segfault(one: Decoded) -> Decoded:
    """A fault inside NCCL is told apart: it says that a collective broke, not which program is at fault."""
    library = str(one.facts.get("library", ""))
    if not library.startswith("libnccl.so"):
        return one
    return replace(one, kind="nccl", event="nccl_segfault", text="a program crashed inside NCCL's library")


def _of_cgroup(one: Decoded) -> Decoded:
    """Only CONSTRAINT_NONE means the machine as a whole; of a policy's or a cpuset's nodes it is the machine's too."""
    constraint = str(one.facts.get("constraint", ""))
    wide = _WIDE.get(constraint)
    killed = _killed(replace(one, facts={**one.facts, **({} if wide is None else {"system_wide": wide})}))
    return replace(killed, condition=_ANSWER if constraint == _CGROUP else _SHORT)


def _killed(one: Decoded) -> Decoded:
    """`process` and `pid` of the line are a victim's.

    Containers die of their own limits on sound machines every day. Where it was the machine's memory, a line says so.
    """
    facts = dict(one.facts)
    process, pid = facts.pop("process", None), facts.pop("pid", None)
    victims = (Victim(str(process), pid if isinstance(pid, int) else None),) if process else ()
    ambiguous = "" if victims else "the line does not say which process was killed"
    wide = facts.get("system_wide")
    begins = wide is None and not victims
    condition = _SHORT if wide is True else _BEGINS if begins else _ANSWER
    kept = {**facts, "victims": victims} if victims else facts
    return replace(one, condition=condition, facts=kept, ambiguous=ambiguous)


def _oom(trigger: str, pattern: str, *, system_wide: bool | None = None) -> MessageRow:
    return MessageRow(
        "oom_kill",
        trigger,
        pattern,
        "memory ran out and the kernel killed a process",
        "warning",
        _SHORT,
        "CHECK_APP",
        "memory_host",
        facts={} if system_wide is None else {"system_wide": system_wide},
        detail=_killed,
    )


OOM = (
    MessageRow(
        "oom_kill",
        "oom-kill:constraint=",
        r"oom-kill:constraint=(?P<constraint>[A-Z_]{1,40})"
        r"(?:[^\n]{0,4000}?,task=(?P<process>[^\n,]{1,64}),pid=(?P<pid>\d{1,10}))?",
        "memory ran out and the kernel killed a process",
        "warning",
        _SHORT,
        "CHECK_APP",
        "memory_host",
        detail=_of_cgroup,
    ),
    _oom("invoked oom-killer", r"(?P<invoker>[^\n]{1,64}?) invoked oom-killer: "),
    _oom(
        "killed as a result of limit of",
        r"(?:Task|Tasks) in (?P<cgroup>\S{1,400}) killed as a result of limit of ",
        system_wide=False,
    ),
    *(
        _oom(
            "ill",
            start + r"Kill(?:ed)? process (?P<pid>\d{1,10})"
            r"(?: \((?P<process>[^\n]{1,64}?)\)|,? UID \d{1,10},? \((?P<process2>[^\n]{1,64}?)\))",
            system_wide=wide,
        )
        for start, wide in (
            (r"Out of memory(?: \([^)\n]{1,40}\))?: ", True),
            (r"Memory cgroup out of memory: ", False),
            ("", None),
        )
    ),
)


def _lockup(event: str, trigger: str, pattern: str, text: str, severity: str = "warning") -> MessageRow:
    return MessageRow(event, trigger, pattern, text, severity, "host.lockup", category="cpu", detail=_task)


ROWS = (
    *OOM,
    _lockup(
        "soft_lockup",
        "soft lockup",
        r"(?:NMI )?(?:watchdog: )?BUG: soft lockup(?: detected)?(?: - CPU#(?P<cpu>\d{1,6}) stuck for "
        rf"{_SECONDS}s(?:! {_TASK})?)?",
        "a processor did nothing but kernel code for too long",
    ),
    _lockup(
        "hard_lockup",
        "ard LOCKUP",
        r"(?:NMI )?(?:watchdog: )?(?:BUG: )?Watchdog (?:detected|found) hard LOCKUP on cpu (?P<cpu>\d{1,6})"
        r"|(?:NMI )?watchdog: (?:CPU )?(?P<cpu2>\d{1,6})[^\n]{0,40}[Hh]ard LOCKUP"
        r"|Kernel panic - not syncing: (?:Hard|HARD) LOCKUP",
        "a processor stopped serving interrupts",
        "fatal",
    ),
    _lockup(
        "rcu_stall",
        "tall",
        r"(?:rcu: )?INFO: (?:rcu\w{0,24}|\w{1,24}) (?:self-)?detected (?:expedited )?(?:stalls?|stall on CPU)\b",
        "a processor or task held up the kernel's read-copy-update",
    ),
    MessageRow(
        "hung_task",
        "blocked for more than ",
        r"(?:INFO: )?task (?P<process>[^\n]{1,64}?:\d{1,10}) (?:blocked|is blocked)(?: in I/O wait)? for more than "
        rf"{_SECONDS} ?s",
        "a task waited in the kernel for too long",
        "warning",
        "host.hung_task",
        category="cpu",
        detail=_task,
    ),
    MessageRow(
        "kernel_panic",
        "not syncing",
        r"(?:---\[ end )?Kernel [Pp]anic - not syncing: ?(?P<reason>[^\n]{0,200})",
        "the kernel stopped itself",
        "fatal",
        "host.kernel_panic",
    ),
    MessageRow(
        "kernel_bug",
        "kernel BUG at",
        r"(?:------------\[ cut here \]------------ )?kernel BUG at (?P<place>[^\n]{1,200}?)!",
        "the kernel met a state that its authors ruled out",
        "fatal",
        _OOPS,
    ),
    MessageRow(
        "kernel_oops",
        "BUG: ",
        r"BUG: (?P<reason>unable to handle (?:kernel )?(?:NULL pointer dereference|paging request|page fault)|"
        r"kernel NULL pointer dereference|unable to handle kernel \w{1,24}|stack corrupted|"
        r"Kernel NULL pointer dereference)",
        "the kernel tripped over bad memory and went on as well as it could",
        "fatal",
        _OOPS,
    ),
    MessageRow(
        "kernel_bug",
        "BUG: ",
        r"BUG: (?P<reason>[^\n:]{1,80})",
        "the kernel met a state that its authors ruled out",
        "warning",
        "host.kernel_warning",
    ),
    MessageRow(
        "kernel_oops",
        "nable to handle",
        r"Unable to handle kernel (?P<reason>NULL pointer dereference|paging request|[\w ]{1,40}) at "
        r"(?:virtual )?address",
        "the kernel tripped over bad memory and went on as well as it could",
        "fatal",
        _OOPS,
    ),
    MessageRow(
        "kernel_oops",
        "#",
        r"(?P<reason>Oops|general protection fault(?:, [^\n:]{1,120})?|divide error|invalid opcode|stack segment|"
        r"double fault|int3|bounds|invalid TSS|alignment check|page fault|simd exception|"
        r"Internal error: [^\n:\[]{1,80}|kernel stack overflow[^\n:]{0,40})(?::[^\n\[#]{0,60})? ?\[#\d{1,4}\]",
        "the kernel tripped over bad memory and went on as well as it could",
        "fatal",
        _OOPS,
    ),
    MessageRow(
        "app_segfault",
        "segfault at ",
        r"(?:(?P<process>[^\n\[]{1,64})\[(?P<pid>\d{1,10})\]: )?segfault at [0-9a-f]{1,16} "
        r"ip (?:\(null\)|[0-9a-f:.()]{1,40}) "
        r"sp [0-9a-f]{1,16} error [0-9a-f]{1,8}(?: cpu \d{1,6})?(?: in (?P<library>[^\n\[,]{1,200}))?",
        "a program crashed",
        "app",
        "host.application_crash",
        "CHECK_APP",
        "app_or_channel",
        detail=_segfault,
    ),
    MessageRow(
        "app_trap",
        "traps: ",
        r"traps: (?P<process>[^\n\[]{1,64})\[(?P<pid>\d{1,10})\] (?:general protection fault|trap [\w ]{1,40}) "
        r"ip:[0-9a-f]{1,16} sp:[0-9a-f]{1,16} error:[0-9a-f]{1,8}(?: in (?P<library>[^\n\[,]{1,200}))?",
        "a program crashed",
        "app",
        "host.application_crash",
        "CHECK_APP",
        "app_or_channel",
    ),
    MessageRow(
        "file_max_reached",
        "file-max limit ",
        r"VFS: file-max limit (?P<limit>\d{1,20}) reached",
        "no process can open another file",
        "warning",
        "host.resource_exhausted",
        category="os",
    ),
    MessageRow(
        "conntrack_full",
        "conntrack",
        r"(?:\S{1,40}: )?(?:nf_conntrack|ip_conntrack)(?:: nf_conntrack)?: (?:table full, dropping packet|"
        r"nf_conntrack: table full, dropping packet)",
        "the table of tracked connections is full, so packets are dropped",
        "warning",
        "host.resource_exhausted",
        category="network",
    ),
    MessageRow(
        "process_limit_reached",
        "fork rejected",
        r"cgroup: fork rejected by pids controller in (?P<cgroup>\S{1,400})",
        "a container may start no further process",
        "warning",
        "host.application_crash",
        "CHECK_APP",
        "app_or_channel",
    ),
    MessageRow(
        "netdevice_stuck",
        "unregister_netdevice",
        r"unregister_netdevice: waiting for (?P<device>[\w.-]{1,32}) to become free",
        "a network device cannot be taken down, because something still holds it",
        "warning",
        "host.kernel_warning",
        category="network",
    ),
    MessageRow(
        "thermal_throttle",
        "temperature above threshold",
        r"(?:mce: )?CPU(?P<cpu>\d{1,6}): (?:Core|Package) temperature above threshold, cpu clock (?:is )?throttled",
        "a processor slows itself down because it is hot",
        "warning",
        "host.thermal",
        category="thermal",
    ),
)

HOST = Family("kernel", "os", ROWS)
