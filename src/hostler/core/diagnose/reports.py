"""Lines that belong together become one report: memory that ran out, an oops, a lockup with its stack."""

import re

from msgspec.structs import replace

from hostler.core.diagnose.decoded import Decoded, Fact, Victim

Found = list[tuple[int, Decoded]]

STACK_LIMIT_CHARS = 8_192
"""How far behind a report's first line its stack is looked for."""

_NIC_FRAME = re.compile(
    r"(?<!\? )\bmlx5e?_\w{0,40}(?:napi|poll)\w{0,40}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[mlx5_core\]", re.ASCII
)
_DEVICE_LINE = re.compile(r"\n[^\n]{0,80}?(?P<device>[a-z][\w.-]{1,31}): rw=", re.ASCII)
_NUMBERED = re.compile(r"\[#\d{1,4}\]", re.ASCII)
_SHORTAGES = ("kernel_log.informational", "host.application_crash", "host.out_of_memory")
"""Conditions that lines about memory which ran out can mean, the one that says most last."""
_STACKED = frozenset({"soft_lockup"})
"""Events whose stacks tell what they are."""

_OOPSES = frozenset({"kernel_oops", "kernel_bug"})


def join(text: str, found: Found) -> tuple[Decoded, ...]:
    """The reports of a text, given what was found at which offset, in order. A report stands where it began."""
    reports: list[Decoded] = []
    out_of_memory = -1
    switch_errors: set[tuple[int | None, str]] = set()
    for index, (at, one) in enumerate(found):
        before = reports[-1] if reports else None
        if one.event == "oom_kill":
            if out_of_memory >= 0:
                reports[out_of_memory] = _same_shortage(reports[out_of_memory], one)
                continue
            out_of_memory = len(reports)
        elif before is not None and _continues(before, one):
            reports[-1] = replace(before, count=max(before.count, one.count))
            continue
        elif one.kind == "sxid":
            if "continuation" in one.facts and (one.code, one.pci) in switch_errors:
                continue
            switch_errors.add((one.code, one.pci))
        reports.append(_with_what_follows(one, text[at : min(_end(text, found, index), at + STACK_LIMIT_CHARS)]))
    return tuple(reports)


def _end(text: str, found: Found, index: int) -> int:
    """Finds where the report that begins at `index` ends at the latest: other lines may stand between its own."""
    if found[index][1].event not in _STACKED:
        return found[index + 1][0] if index + 1 < len(found) else len(text)
    own = found[index][1].event
    return next((at for at, one in found[index + 1 :] if one.event == own), len(text))


def _continues(before: Decoded, one: Decoded) -> bool:
    """Whether `one` is a later line of the report that `before` began."""
    if one.event == "kernel_oops" and before.event in _OOPSES:
        return _NUMBERED.search(one.line) is not None and _NUMBERED.search(before.line) is None
    return one.event == before.event == "nfs_writeback_hang"


def _same_shortage(report: Decoded, line: Decoded) -> Decoded:
    """One shortage of memory: everybody whom it killed, each once."""
    victims = [*_victims(report)]
    victims += [victim for victim in _victims(line) if not any(_same(victim, known) for known in victims)]
    facts: dict[str, Fact] = {**line.facts, **report.facts}
    if victims:
        facts["victims"] = tuple(victims)
    wide = [one.facts["system_wide"] for one in (report, line) if "system_wide" in one.facts]
    if wide:
        facts["system_wide"] = any(wide)
    condition = max(report.condition, line.condition, key=_SHORTAGES.index)
    return replace(report, condition=condition, facts=facts, ambiguous="" if victims else report.ambiguous)


def _same(one: Victim, other: Victim) -> bool:
    return one.process == other.process if None in (one.pid, other.pid) else one.pid == other.pid


def _victims(one: Decoded) -> tuple[Victim, ...]:
    victims = one.facts.get("victims", ())
    return tuple(v for v in victims if isinstance(v, Victim)) if isinstance(victims, tuple) else ()


def _with_what_follows(one: Decoded, report: str) -> Decoded:
    """Add what the lines after a report's first say: the stack of a lockup, the device of a stray request."""
    if one.event == "soft_lockup" and (frame := _NIC_FRAME.search(report)):
        return replace(
            one,
            kind="nic_driver",
            event="mlx5_napi_soft_lockup",
            category="nic",
            severity="fatal",
            action="REPLACE_VM",
            condition="network.nic_down",
            text="the adapter's receive loop never ends",
            facts={**one.facts, "fatal": True, "frame": frame[0]},
        )
    if one.event == "beyond_end_of_device" and (device := _DEVICE_LINE.search(report)):
        return replace(one, facts={**one.facts, "device": device["device"]})
    return one
