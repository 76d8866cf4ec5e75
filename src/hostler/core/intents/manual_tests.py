"""Tests of networks by hand: scheduled with an owner, ticked, documented, entered with results, signed off."""

from msgspec.structs import replace

from hostler.core.fabric.manual_results import irregular, read
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.intents.attached_files import attach
from hostler.core.intents.fabrics import fabric_of
from hostler.core.state import events as e
from hostler.core.state.durations import duration
from hostler.core.state.manual_tests import ChecklistTick, ManualRun, ManualTest
from hostler.core.state.verbs.fabrics import (
    AddManualTestFile,
    EnterManualTest,
    ScheduleManualTest,
    SignManualTest,
    TickManualTest,
)

CHECKLIST_MOST = 50
EVERY_DAYS = (1.0, 365.0)


def schedule(ask: Ask[ScheduleManualTest]) -> Granted:
    """The network is tested by hand from now on."""
    fabric, act = fabric_of(ask), ask.act
    steps = tuple(step.strip() for step in act.checklist.split(";") if step.strip())
    low, high = EVERY_DAYS
    if not act.owner.strip() or not steps:
        raise RefusalError("a test by hand needs an owner and a checklist: --owner NAME --checklist 'step; step'")
    if len(steps) > CHECKLIST_MOST or not low <= act.every_days <= high:
        raise RefusalError(f"write 1 to {CHECKLIST_MOST} steps and an interval of {low:g} to {high:g} days")
    test = ManualTest(fabric.name, act.owner.strip(), act.every_days, steps, ask.context.now)
    text = f"network {fabric.name} is tested by hand every {duration(act.every_days * 86_400)}; {test.owner} sees to it"
    scheduled = e.ManualTestScheduled(test, ask.intent.person)
    known = ask.context.fleet.manual_tests.get(fabric.name)
    at_once = replace(test, runs=known.runs) if known is not None else test
    if at_once.due <= ask.context.now:
        return text, (scheduled, e.ManualTestOverdue(fabric.name, test.owner, at_once.due))
    return text, (scheduled,)


def enter(ask: Ask[EnterManualTest]) -> Granted:
    """The results are set against those of signed runs before. Raises InvalidInputError, RefusalError."""
    fabric, act = fabric_of(ask), ask.act
    test = _scheduled(ask, fabric.name)
    results = read(act.results)
    told = irregular(results, test.runs)
    run = ManualRun(ask.context.now, ask.intent.person, results, act.notes, told)
    said = "; ".join(told[:3]) if told else "nothing is irregular"
    text = f"{len(results)} metrics of network {fabric.name} are entered: {said}; a person signs them off"
    return text, (e.ManualTestEntered(fabric.name, run),)


def tick(ask: Ask[TickManualTest]) -> Granted:
    """A step of the checklist is done, or a note says why it is not."""
    fabric, act = fabric_of(ask), ask.act
    test = _scheduled(ask, fabric.name)
    if act.step > len(test.checklist):
        raise RefusalError(f"the checklist of network {fabric.name} has {len(test.checklist)} steps, and no {act.step}")
    done = ChecklistTick(act.step, ask.context.now, ask.intent.person, act.note)
    left = len(set(test.unticked) - {act.step})
    said = f"{left} steps are left" if left else "the checklist is done"
    return f"step {act.step} is ticked ({test.checklist[act.step - 1]}); {said}", (
        e.ManualTestTicked(fabric.name, done),
    )


def add_file(ask: Ask[AddManualTestFile]) -> Granted:
    """A photo or file belongs to the run that is under way. The same bytes are added once."""
    fabric = fabric_of(ask)
    test = _scheduled(ask, fabric.name)
    return attach(ask, test.files, lambda file: e.ManualTestFileAdded(fabric.name, file))


def sign(ask: Ask[SignManualTest]) -> Granted:
    """The last run is done. Raises RefusalError where a step of its checklist is not ticked."""
    fabric = fabric_of(ask)
    test = _scheduled(ask, fabric.name)
    if not test.runs or test.runs[-1].signed is not None:
        raise RefusalError(f"no run of network {fabric.name} waits to be signed off: enter its results first")
    if left := test.unticked:
        step = f"step {left[0]} ({test.checklist[left[0] - 1]})"
        how = f"hostler fabric tick-manual-test {fabric.name} --step {left[0]} --reason …"
        raise RefusalError(f"{step} is not ticked: `{how}`")
    signed = e.ManualTestSigned(fabric.name, ask.intent.person, ask.intent.reason)
    return f"the run of {test.runs[-1].entered:%Y-%m-%d %H:%M} UTC is signed off", (signed,)


def _scheduled(ask: AnyAsk, fabric: str) -> ManualTest:
    test = ask.context.fleet.manual_tests.get(fabric)
    if test is None:
        raise RefusalError(f"network {fabric} has no test by hand: schedule it first")
    return test


HANDLERS: Handlers = {
    ScheduleManualTest: Handler(schedule),
    EnterManualTest: Handler(enter),
    SignManualTest: Handler(sign),
    TickManualTest: Handler(tick),
    AddManualTestFile: Handler(add_file),
}
