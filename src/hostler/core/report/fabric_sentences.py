"""One sentence for each event of a network."""

from datetime import datetime
from typing import assert_never

from hostler.core.state import events as e
from hostler.core.state.counting import counted
from hostler.core.state.durations import duration
from hostler.core.state.fabrics import FabricCase, FabricLook, RecablingStage, WorkDone
from hostler.core.state.links import LinkCase
from hostler.core.state.subnets import SubnetFacts

DAY_S = 86_400


def of_fabric(event: e.FabricEvent) -> str:
    """The event in one line."""
    match event:
        case e.FabricRegistered(fabric=fabric):
            size = (
                counted(fabric.cables, "cable"),
                counted(len(fabric.hosts), "host"),
                counted(fabric.switches, "switch"),
            )
            return f"network {fabric.name} has design {fabric.digest[:12]} by {event.person}: {', '.join(size)}"
        case e.FabricRemoved():
            return f"network {event.fabric} removed by {event.person}: {event.reason}"
        case e.FabricValidationAsked():
            return f"network {event.fabric} will be validated at once, asked by {event.person}: {event.reason}"
        case e.FabricValidated(look=look):
            return f"network {event.fabric} {looked(look)}"
        case e.FabricFindingOpened(case=case):
            return f"{_named(case)} found: {case.finding.headline}{_asked(case)}"
        case e.FabricFindingChanged(case=case):
            return f"{_named(case)} {_now(case)}"
        case e.FabricFindingClosed(case=case):
            return f"{_named(case)} is closed: {event.reason}"
        case e.SubnetChanged():
            return _subnet(event)
        case _:
            assert_never(event)


def of_recabling(event: e.RecablingEvent) -> str:
    """The event of a planned re-cabling in one line."""
    match event:
        case e.RecablingPlanned(recabling=work):
            by = f"{work.version.person}: {work.version.reason}"
            when = window(work.starts, work.ends)
            return (
                f"network {event.fabric} is to be cabled by design {work.version.digest[:12]} {when}, planned by {by}"
            )
        case e.RecablingMoved():
            when = window(event.starts, event.ends)
            return f"the re-cabling of network {event.fabric} is moved by {event.person}: {when}; {event.reason}"
        case e.DesignTakenOver():
            return f"design {event.design[:12]} holds for network {event.fabric}: the window of its re-cabling is over"
        case e.RecablingEnded():
            return f"the re-cabling of network {event.fabric} is over, by {event.person}: {event.reason}"
        case _:
            assert_never(event)


def of_walk_stop(event: e.WalkStopChanged) -> str:
    """The change of a stop of a walk in one line."""
    stop = event.stop
    named = f"stop {event.number} of ticket {event.ticket} ({stop.what})"
    if stop.proved is not None:
        return f"{named} is proved: validations find it no more"
    if stop.done_by:
        return f"{stop.done_by} ticked {named}; the next validation shows whether it is repaired"
    return f"{named} is still found: it was ticked, and is not repaired"


def of_link(event: e.LinkEvent) -> str:
    """The event of a link in one line."""
    match event:
        case e.LinkFaultOpened(case=link):
            return f"{_link(link)} has a fault: {link.fault.text}{_asked(link)}"
        case e.LinkFaultChanged(case=link) if link.clean:
            return f"{_link(link)} was read without a fault by {counted(link.clean, 'round')}"
        case e.LinkFaultChanged(case=link):
            return f"{_link(link)} now has the fault: {link.fault.text}{_asked(link)}"
        case e.LinkFaultClosed(case=link):
            return f"{_link(link)} has no fault any more: {event.reason}"
        case _:
            assert_never(event)


def of_manual_test(event: e.ManualTestEvent) -> str:
    """The event of a test by hand in one line."""
    match event:
        case e.ManualTestScheduled(test=test):
            every = duration(test.every_days * DAY_S)
            return f"network {test.fabric} is tested by hand every {every}; {test.owner} sees to it"
        case e.ManualTestEntered(fabric=fabric, run=run):
            told = "; ".join(run.irregular[:3]) or "nothing is irregular"
            return f"{run.person} entered {counted(len(run.results), 'metric')} of network {fabric}: {told}"
        case e.ManualTestTicked(fabric=fabric, tick=tick):
            note = f": {tick.note}" if tick.note else ""
            return f"{tick.person} ticked step {tick.step} of the test by hand of network {fabric}{note}"
        case e.ManualTestFileAdded(fabric=fabric, file=file):
            return f"{file.person} added {file.told} to the test by hand of network {fabric}"
        case e.ManualTestOverdue():
            since = f"has been overdue since {event.due:%Y-%m-%d %H:%M} UTC"
            return f"the test by hand of network {event.fabric} {since}; {event.owner} sees to it"
        case e.ManualTestSigned():
            return f"{event.person} signed off the test by hand of network {event.fabric}: {event.reason}"
        case _:
            assert_never(event)


def _link(case: LinkCase) -> str:
    return f"{case.fault.bearer} ({case.fault.check}, {case.fault.grade})"


def looked(look: FabricLook) -> str:
    """Result of a validation in words."""
    seen = f"{look.found:,} links for {look.designed:,} cables"
    if not look.verdict.concludes:
        return f"was only seen in part ({look.verdict}), so nothing is concluded: {look.why} ({seen})"
    seen = f"{seen}{_worked(look.work)}"
    if not look.findings:
        return f"is as designed: {seen}"
    return f"differs from its design in {counted(look.findings, 'place')}: {seen}"


def window(starts: datetime, ends: datetime) -> str:
    """A span of time in words."""
    return f"from {starts:%Y-%m-%d %H:%M} to {ends:%Y-%m-%d %H:%M} UTC"


def _worked(work: WorkDone | None) -> str:
    if work is None or (work.stage is RecablingStage.planned and not work.done + work.begun):
        return ""
    early = " before its window" if work.stage is RecablingStage.planned else ""
    return f"; of the re-cabling {work.done} of {counted(work.parts, 'part')} are done and {work.begun} begun{early}"


def _subnet(event: e.SubnetChanged) -> str:
    master, before = event.facts.master, event.before
    was = f" (before: {before.guid})" if before is not None and (master is None or before.guid != master.guid) else ""
    return f"network {event.fabric}: {subnet_told(event.facts)}{was}"


def subnet_told(facts: SubnetFacts) -> str:
    """The known facts of a subnet in words."""
    if facts.managers is None:
        return "no subnet manager has been told of yet"
    master = facts.master
    said = f"subnet manager {master.guid} is master" if master is not None else "no subnet manager is master"
    told = [said, f"{', '.join(one.guid for one in facts.standby) or 'none'} in standby"]
    told += [f"partitions {', '.join(facts.partitions[:8])}"] if facts.partitions else []
    told += [f"routed by {facts.routing}"] if facts.routing else []
    return ", ".join(told)


def _named(case: FabricCase) -> str:
    return f"network {case.fabric}, finding {case.finding.key} ({case.finding.kind})"


def _asked(case: FabricCase | LinkCase) -> str:
    if case.ticket:
        return f" (ticket {case.ticket})"
    return f" (no ticket: {case.waits})" if case.waits else ""


def _now(case: FabricCase) -> str:
    if case.clean:
        return f"was not found by {counted(case.clean, 'validation')}"
    return f"is now: {case.finding.headline}{_asked(case)}"
