"""Judges what a host says of itself: processors, memory, PCIe errors, drives, mounts, clock, units, adapters' counters.

Readings of many subjects are facts "KIND:SUBJECT". Counts since boot latch; counts "per hour" are what the agent saw
grow. A fact that is not there says nothing of its subject.
"""

from collections.abc import Callable

from hostler.core.diagnose import Finding
from hostler.core.diagnose.aspect import AS_IT_WAS, GOOD, NOTHING, Aspect, AspectReading, amount, number, over, stands
from hostler.core.diagnose.line import printable
from hostler.core.state.model import Facts

MEMORY_PERCENT = 94.0
"""Below so much of the SKU's memory a module is missing; kernels keep one to three percent for themselves."""
FULL_PERCENT, ROOM_PERCENT = 5.0, 10.0
"""Free space or inodes: told below the one, over above the other."""
THROTTLES_PER_HOUR = 60
CORRECTED_PER_HOUR = 10
"""Corrected errors of one memory module."""
PCIE_CORRECTED_PER_HOUR = 480
LINK_ERRORS_PER_HOUR, LINK_DOWNS_PER_HOUR = 120, 3
CLOCK_ERROR_US = 1_000_000
WORN_PERCENT = 100
SUBJECTS_MAX = 64
SUBJECT_CHARS = 64

RuleResult = tuple[bool, str] | None
"""Bad or not, and in what words; None: neither."""


def _cpus(facts: Facts) -> AspectReading:
    """Processors that are present and not online; with SMT switched off every second one is meant to be."""
    online, live = number(facts, "cpus_online", 1, 2.0**16), number(facts, "cpus_present", 1, 2.0**16)
    if online is None or live is None:
        return NOTHING
    wanted = live / 2 if facts.get("smt") in ("off", "forceoff") else live
    if online < wanted:
        text = f"{wanted - online:g} of {wanted:g} processors are offline"
        return AspectReading(
            f"bad {online:g}", (stands("host.cpu_offline", text, facts={"online": online, "of": wanted}),)
        )
    return AspectReading(GOOD, (over("host.cpu_offline", "every processor is online"),))


def _cpu_heat(facts: Facts) -> AspectReading:
    throttles = number(facts, "cpu_throttles_per_hour")
    if throttles is None:
        return NOTHING
    if throttles >= THROTTLES_PER_HOUR:
        text = f"processors slowed down {throttles:g} times in an hour because they were hot"
        return AspectReading(
            amount(throttles), (stands("host.thermal", text, facts={"throttles_per_hour": throttles}),)
        )
    return AspectReading(GOOD)


def _memory(facts: Facts) -> AspectReading:
    """`memory_expected_gib` is the SKU's, put in by the controller; without it nothing is judged."""
    seen = number(facts, "memory_gib", 0.01, 2.0**20)
    if seen is None:
        return NOTHING
    expected = number(facts, "memory_expected_gib", 0.01, 2.0**20)
    if expected is None:
        return AspectReading(GOOD)
    if seen < expected * MEMORY_PERCENT / 100:
        text = f"the host has {seen:g} GiB of memory, its SKU {expected:g}"
        return AspectReading(
            "bad", (stands("host.memory_short", text, facts={"seen_gib": seen, "expected_gib": expected}),)
        )
    return AspectReading(GOOD, (over("host.memory_short", f"the host has {seen:g} GiB of memory"),))


def _clock(facts: Facts) -> AspectReading:
    match facts.get("clock_synchronised"):
        case True:
            error = number(facts, "clock_error_us")
            if error is not None and error >= CLOCK_ERROR_US:
                text = f"the clock may be wrong by {error / 1e6:g} s"
                return AspectReading("bad", (stands("host.clock_unsynchronised", text, facts={"error_us": error}),))
            return AspectReading(GOOD, (over("host.clock_unsynchronised", "the clock is synchronised"),))
        case False:
            return AspectReading("bad", (stands("host.clock_unsynchronised", "the clock is not synchronised"),))
        case _:
            return NOTHING


def _each(
    facts: Facts, kind: str, condition: str, rule: Callable[[Facts, str], RuleResult], part: str = "{}"
) -> AspectReading:
    """Apply `rule` to every subject of a kind (fact "KIND:SUBJECT"), each a finding of its own part."""
    prefix = f"{kind}:"
    findings: list[Finding] = []
    known, between = 0, False
    bad: list[str] = []
    for name in sorted(n for n in facts if n.startswith(prefix))[:SUBJECTS_MAX]:
        subject = printable(name.removeprefix(prefix)[:SUBJECT_CHARS])
        ruling = rule(facts, name)
        between |= ruling is None
        if ruling is None:
            continue
        known += 1
        wrong, words = ruling
        text = f"{subject}: {words}"
        place = part.format(subject)
        if wrong:
            bad.append(f"{subject} {words}" if len(words) < SUBJECT_CHARS else subject)
            findings.append(stands(condition, text, place, {"subject": subject, "reading": facts[name]}))
        else:
            findings.append(over(condition, text, place))
    if not findings:
        return AS_IT_WAS if between else NOTHING
    return AspectReading(f"bad {'; '.join(bad)}" if bad else GOOD, tuple(findings))


def _counted(limit: float, what: str) -> Callable[[Facts, str], RuleResult]:
    """Bad from `limit` on, good at half of it or less; the words change when the count has doubled."""

    def rule(facts: Facts, name: str) -> RuleResult:
        count = number(facts, name)
        if count is None or limit / 2 < count < limit:
            return None
        return count >= limit, f"{_about(count)} {what}" if count >= limit else f"few {what}"

    return rule


def _about(count: float) -> str:
    """The count to a power of two, so that growth is news when it has doubled."""
    return f"at least {1 << (int(count).bit_length() - 1)}" if count >= 1 else "no"


def _each_mount(facts: Facts, kind: str, condition: str, rule: Callable[[Facts, str], RuleResult]) -> AspectReading:
    """The rule for each file system; where an agent says that none is mounted there is nothing to judge."""
    said = _each(facts, kind, condition, rule, "mount:{}")
    none = said is NOTHING and number(facts, "local_mounts", 0, 0) is not None
    return AspectReading(GOOD) if none else said


def _room(facts: Facts, name: str) -> RuleResult:
    free = number(facts, name, 0, 100)
    if free is None or FULL_PERCENT <= free <= ROOM_PERCENT:
        return None
    return free < FULL_PERCENT, f"less than {FULL_PERCENT:g} % is free" if free < FULL_PERCENT else "there is room"


def _mount(facts: Facts, name: str) -> RuleResult:
    """Find a mount that was writable earlier in this boot and is not now; "ro" from the start may be meant so."""
    match facts.get(name):
        case "turned_ro":
            return True, "the file system was writable and is read-only now"
        case "rw":
            return False, "the file system is writable"
        case _:
            return None


def _unit(facts: Facts, name: str) -> RuleResult:
    match facts.get(name):
        case "active":
            return False, "the unit is active"
        case "failed" | "inactive" | "missing" | "restarting" as word:
            return True, f"the unit is {word}"
        case _:
            return None


def _drive(facts: Facts, name: str) -> RuleResult:
    """The drive's own verdict (SMART self-assessment, or NVMe critical warnings for spare, reliability, read-only)."""
    match facts.get(name):
        case "ok":
            return False, "the drive says that it is well"
        case str() as said if said.startswith("failing"):
            return True, f"the drive says that it is {printable(said[:SUBJECT_CHARS])}"
        case _:
            return None


def _part_rows() -> dict[str, Callable[[Facts], AspectReading]]:
    downs = _counted(LINK_DOWNS_PER_HOUR, "times down in an hour")
    errors = _counted(LINK_ERRORS_PER_HOUR, "errors in an hour")
    memory, fatal = _counted(1, "uncorrected errors since boot"), _counted(1, "fatal errors since boot")
    corrected = _counted(CORRECTED_PER_HOUR, "corrected errors in an hour")
    replays = _counted(PCIE_CORRECTED_PER_HOUR, "corrected errors in an hour")
    worn = _counted(WORN_PERCENT, "percent of its life used")
    nonfatal = _counted(1, "uncorrected errors since boot")
    return {
        "memory_uncorrected": lambda f: _each(f, "edac_ue", "memory.uncorrectable", memory, "dev:{}"),
        "memory_corrected": lambda f: _each(f, "edac_ce_per_hour", "memory.correctable", corrected, "dev:{}"),
        "pcie_fatal": lambda f: _each(f, "aer_fatal", "pcie.uncorrectable", fatal, "pci:{}"),
        "pcie_nonfatal": lambda f: _each(f, "aer_nonfatal", "pcie.error", nonfatal, "pci:{}"),
        "pcie_corrected": lambda f: _each(f, "aer_corrected_per_hour", "pcie.correctable", replays, "pci:{}"),
        "link_errors": lambda f: _each(f, "link_errors_per_hour", "network.link_errors", errors),
        "link_downs": lambda f: _each(f, "link_downs_per_hour", "network.link_flaps", downs),
        "drives": lambda f: _each(f, "drive", "storage.failed", _drive, "slot:{}"),
        "drive_wear": lambda f: _each(f, "drive_used_percent", "storage.worn", worn, "slot:{}"),
        "mounts": lambda f: _each_mount(f, "mount", "storage.read_only", _mount),
        "space": lambda f: _each_mount(f, "space_free_percent", "storage.space_low", _room),
        "inodes": lambda f: _each_mount(f, "inodes_free_percent", "storage.inodes_low", _room),
        "units": lambda f: _each(f, "unit", "host.unit_failed", _unit, "unit:{}"),
    }


_PARTS = _part_rows()

HOST_ASPECTS: dict[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect("cpus", _cpus, 2, 2, expected=True),
        Aspect("cpu_heat", _cpu_heat, 1, 2),
        Aspect("memory", _memory, 2, 2, expected=True),
        Aspect("clock", _clock, 5, 2, expected=True),
        Aspect("memory_uncorrected", _PARTS["memory_uncorrected"], 1, 2),
        Aspect("memory_corrected", _PARTS["memory_corrected"], 1, 2),
        Aspect("pcie_fatal", _PARTS["pcie_fatal"], 1, 2),
        Aspect("pcie_nonfatal", _PARTS["pcie_nonfatal"], 1, 2),
        Aspect("pcie_corrected", _PARTS["pcie_corrected"], 1, 2),
        Aspect("link_errors", _PARTS["link_errors"], 1, 2),
        Aspect("link_downs", _PARTS["link_downs"], 1, 2),
        Aspect("drives", _PARTS["drives"], 1, 2),
        Aspect("drive_wear", _PARTS["drive_wear"], 1, 2),
        Aspect("mounts", _PARTS["mounts"], 2, 2, expected=True),
        Aspect("space", _PARTS["space"], 2, 2, expected=True),
        Aspect("inodes", _PARTS["inodes"], 2, 2),
        Aspect("units", _PARTS["units"], 2, 2),
    )
}
"""Aspect → row. A poll of the host is thirty seconds."""
