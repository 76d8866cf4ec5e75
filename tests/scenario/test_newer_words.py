"""A newer controller beside an older one: what the older cannot read is not written, kind by kind, until it can.

The older one is today's, limited to the format before: what it reads is told by the shapes recorded for that format.
"""

import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, FellowsSeen, IntentAsked, NodeSeen
from hostler.controller.loop import Controller
from hostler.controller.observation_intake import Caused
from hostler.controller.step_output import StepOutput
from hostler.core.state import events as e
from hostler.core.state import formats
from hostler.core.state.assets import AssetKind
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Unreadable
from hostler.core.state.links import LinkCheck
from hostler.core.state.live_state import Fellow, LiveState, Release
from hostler.core.state.model import Severity
from hostler.core.state.operations import ACTS, RunChecks
from hostler.core.state.pass_rules import PassRules
from hostler.core.state.recorded_bodies import MANY, recorded
from hostler.core.state.verbs.every import VERBS
from hostler.journal.codec import GENESIS, UnwritableError, seal, unseal
from tests.contract.journal_samples import every_event, sample
from tests.kit import Drive, FirstFormatDrive, a_node, configuration, fold, intent_of, pool_document

NEW = recorded().newest
BEFORE = NEW - 1
OLD = Release("old", {k: n for k, n in e.INTRODUCED.items() if n <= BEFORE}, recorded().until(BEFORE))
SHARED = configuration({"train": pool_document(target=1)})


def new_members(name: str, of: dict[str, Any]) -> list[str]:
    """Kinds or verbs that came with a format after the oldest that is recorded."""
    came = {
        fact.text for fact in recorded().facts if fact.subject == f"{MANY}{name}" and fact.since > recorded().formats[0]
    }
    return sorted(word for word, kind in of.items() if f'{{"$ref":"{kind.__name__}"}}' in came)


NEW_KINDS, NEW_VERBS = new_members("OperationAct", ACTS), new_members("Verb", VERBS)


def mixed() -> Drive:
    """A cell at the oldest recorded format: this controller leads, an older one stands by."""
    drive = Drive(SHARED, [a_node("n")])
    drive.controller = Controller(fold(drive.journal, Fleet()), LiveState(), {}, 2)
    drive._complete(drive.controller.resume(drive.now, "new"))  # noqa: SLF001 - a start
    drive.step(fellows(oldest()), AgentHeard("n", drive.boot_of("n")), NodeSeen("n", "on", ready=True), drive.view())
    assert drive.fleet.cell.format == oldest()
    drive.checks.append(read_by_the_oldest)
    return drive


def oldest() -> int:
    return recorded().formats[0]


def fellows(reads: int) -> FellowsSeen:
    return FellowsSeen((Fellow("new", NEW), Fellow("old", reads)))


def read_by_the_oldest(drive: Drive, out: StepOutput) -> None:
    """Check each record against the shapes of the older one, as it is stored; its name too."""
    if drive.fleet.cell.format > oldest():
        return
    for record in out.batch.records:
        row = seal(record, GENESIS, oldest())
        assert OLD.format_of(row.name) <= oldest()
        assert not recorded().read(row.name, msgspec.json.decode(row.body), oldest()).said
        assert unseal(row).event == record.event, "both fold the same"


def context(drive: Drive) -> DecisionContext:
    return DecisionContext(drive.fleet, drive.controller.live, drive.now)


def test_there_is_something_new_to_ask_about() -> None:
    assert {"write_device_firmware", "eject_boot_medium", "inspect_machine", "start_kubelet"} <= set(NEW_KINDS)
    assert {"renew-login", "locate"} & set(NEW_VERBS)


def test_a_pool_is_filled_once_every_controller_reads_how() -> None:
    """Mutants: the controller's step fails at each turn until the format is raised; the pool is never asked again."""
    asks = configuration({"train": pool_document(target=2)}, policy=lambda tree: tree.update(join_token_ttl_s=600))
    drive = FirstFormatDrive(asks, [a_node("n"), a_node("s", pool="")])
    drive.step(AgentHeard("s", drive.boot_of("s")), NodeSeen("s", "on", ready=True), drive.view())
    assert (drive.fleet.nodes["s"].plan, drive.fleet.nodes["s"].pool) == (None, "")
    drive.step(FellowsSeen((Fellow("new", NEW),)))
    assert drive.fleet.cell.format == NEW
    plan = drive.fleet.nodes["s"].plan
    assert plan is not None
    assert {"start_kubelet", "confirm_join"} <= {step.operation for step in plan.steps}


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_each_new_kind_of_operation_waits_with_words_until_the_older_one_is_gone(kind: str) -> None:
    """Mutants: names of events alone are asked about; the kind is not named; the wait outlives the upgrade."""
    drive = mixed()
    plan: e.PlanRecorded = sample(e.PlanRecorded)
    step = replace(plan.plan.steps[0], act=sample(ACTS[kind]))
    started: e.OperationStarted = sample(e.OperationStarted)
    for event in (
        replace(plan, plan=replace(plan.plan, steps=(step,))),
        replace(started, operation=replace(started.operation, act=sample(ACTS[kind]))),
    ):
        waits = formats.writable(context(drive), "firmware", Act((event,)))
        assert isinstance(waits, Wait)
        (blocker,) = waits.blockers
        assert blocker.kind == "format"
        assert f"without {e.name_of(event)}" in blocker.text
        assert re.search(rf"act: {kind}[:;]", blocker.text), "beside other new fields of the plan"
        assert f": old (reads up to {oldest()}) is too old: upgrade it, or stop it" in blocker.text
        with pytest.raises(UnwritableError, match=f"format {oldest()} does not have .*: {kind}"):
            seal(e.Record(1, drive.now, 1, "clock", event), GENESIS, oldest())
    drive.step(fellows(NEW))
    assert formats.writable(context(drive), "firmware", Act((event,))) == Act((event,))


def test_an_operation_of_an_old_kind_with_a_new_argument_waits_too() -> None:
    """Mutant: kinds alone are looked at; the order's rules are left out, and the older one passes what must fail."""
    drive = mixed()
    full: e.OperationStarted = sample(e.OperationStarted)
    started = replace(full, operation=replace(full.operation, flags=()))  # what a refusal takes back is newer as well
    plain = replace(started, operation=replace(started.operation, act=RunChecks("burn_in")))
    ruled = replace(started, operation=replace(started.operation, act=RunChecks("burn_in", rules=sample(PassRules))))
    assert formats.writable(context(drive), "burn_in", Act((plain,))) == Act((plain,))
    waits = formats.writable(context(drive), "burn_in", Act((ruled,)))
    assert isinstance(waits, Wait)
    assert "without operation_started.operation.act.rules: old" in waits.blockers[0].text


@pytest.mark.parametrize("verb", NEW_VERBS)
def test_each_new_verb_is_refused_and_recorded_as_text_which_the_older_one_reads(verb: str) -> None:
    """Mutant: the refusal itself is recorded with the verb that the older one cannot read, and stops the cell."""
    drive = mixed()
    asked = replace(intent_of("i", verb, "n", "ann", "why", drive.now, {}), act=sample(VERBS[verb]))
    drive.step(IntentAsked(7, asked))
    (told,) = drive.events(e.IntentRecorded)
    assert not told.granted
    assert isinstance(told.intent.act, Unreadable)
    assert told.intent.verb == verb


def test_a_granted_request_with_a_new_verb_is_refused_with_the_controller_s_name_and_granted_later() -> None:
    drive = mixed()
    refused = drive.ask("locate", "n", shift_lead="true")
    assert not refused.granted
    came = e.INTRODUCED["light_asked", 1]
    assert f"this needs event format {came}, the cell writes format {oldest()}" in refused.text
    assert "old (reads up to" in refused.text
    drive.step(fellows(NEW))
    assert drive.ask("locate", "n", shift_lead="true").granted


def test_a_policy_without_new_fields_is_activated_in_the_older_words_and_one_with_them_is_refused() -> None:
    """Mutant: defaults of new fields are written, which a reader that takes no unknown field refuses to read."""
    drive = mixed()
    plain = e.ConfigActivated(SHARED, {}, "ann")
    assert formats.needs(context(drive), (plain,)) is None
    row = seal(e.Record(1, drive.now, 1, "clock", plain), GENESIS, oldest())
    assert b"triage_rounds" not in row.body
    assert unseal(row).event == plain
    policy = replace(SHARED.policy, triage_rounds=5)
    need = formats.needs(context(drive), (replace(plain, configuration=replace(SHARED, policy=policy)),))
    assert need is not None
    came = next(fact.since for fact in recorded().facts if fact.subject == "Policy.triage_rounds")
    assert (need.format, need.lacks) == (came, "config_activated.configuration.policy.triage_rounds")


def test_a_report_is_told_without_what_is_new_and_one_that_is_new_is_left_out() -> None:
    """Mutants: the leader folds more than it writes; a word that the older one lacks ends the batch."""
    drive = mixed()
    look: e.FabricValidated = sample(e.FabricValidated)
    told = formats.worded(context(drive), look)
    assert isinstance(told, e.FabricValidated)
    assert (look.look.work is None, told.look.work) == (False, None)
    fault: e.LinkFaultOpened = sample(e.LinkFaultOpened)
    slow = replace(fault, case=replace(fault.case, fault=replace(fault.case.fault, check=LinkCheck.slow)))
    slow = replace(slow, case=replace(slow.case, reset_at=None))
    assert list(formats.tellable(context(drive), (look, slow, e.AuditSealed(())))) == [look]
    with pytest.raises(AssertionError, match=r"not every controller reads link_fault_opened: .*check: slow"):
        formats.worded(context(drive), slow)
    drive.step(fellows(NEW))
    assert list(formats.tellable(context(drive), (look, slow))) == [look, slow]
    assert formats.worded(context(drive), look) is look


SEEN = {
    "judged": "judged",
    "followed": "rma_cases.followed",
    "review": "staleness.review",
    "by_clock": "live_updates.by_clock",
    "caused_by": "source_intake.caused_by",
}
"""Sources that tell the loop of their own accord, record by record, moment by moment or observation by observation."""


@pytest.mark.parametrize("source", SEEN)
def test_what_is_seen_and_is_new_is_left_out_wherever_it_comes_from(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the step fails, at each turn, until the older controller is gone."""
    drive, told = mixed(), list[str]()
    place = f"hostler.controller.{'' if source == 'caused_by' else 'loop.'}{SEEN[source]}"

    def new(*_: object, **__: object) -> tuple[Any, ...]:
        if told:
            return ()
        told.append(source)
        event = e.AuditSealed(())
        return (Caused(event, "a test"),) if source == "caused_by" else (event,)

    monkeypatch.setattr(place, new)
    drive.fault("n", "ecc")
    drive.wait(hours=1)
    assert told
    names = [e.name_of(record.event) for record in drive.journal]
    assert "audit_sealed" not in names
    assert drive.controller.fleet.cell.format == oldest()


def test_an_asset_of_a_new_kind_is_refused() -> None:
    drive = mixed()
    asset: e.AssetRegistered = sample(e.AssetRegistered)
    unit = replace(asset, asset=replace(asset.asset, kind=AssetKind.coolant_unit, look=None, bmc_certificate=None))
    need = formats.needs(context(drive), (unit,))
    assert need is not None
    assert "asset_registered.asset.kind: coolant_unit" in need.lacks


@pytest.mark.parametrize("event", every_event(), ids=e.name_of)
def test_what_is_said_to_be_read_is_read(event: e.Event) -> None:
    """Each event, in the cell's own words or not at all: what the older one is given has the shape it knows."""
    drive = mixed()
    if not list(formats.tellable(context(drive), (event,))):
        need = formats.needs(context(drive), (event,))
        assert need is not None
        assert need.format > oldest()
        return
    told = formats.worded(context(drive), event)
    row = seal(e.Record(1, drive.now, 1, "clock", told), GENESIS, oldest())
    assert not recorded().read(row.name, msgspec.json.decode(row.body), oldest()).said
    assert unseal(row).event == told
    assert formats.worded(context(drive), told) == told


def test_a_cell_at_work_writes_what_the_older_one_reads_and_goes_on_after_the_raise() -> None:
    drive = mixed()
    for what in ("ecc", "off_bus"):
        drive.fault("n", what)
        drive.wait(hours=6)
    drive.ask("hold", "n", hours="1")
    drive.wait(hours=30)
    assert len(drive.journal) > 40
    drive.step(fellows(NEW))
    assert drive.fleet.cell.format == NEW
    drive.wait(hours=30)


def test_a_condition_that_only_a_newer_controller_has_a_row_for_stands_for_the_older_one_too() -> None:
    """Types of conditions are text: no format is raised for them, and nothing in the loop may want their row."""
    drive = Drive(SHARED, [a_node("n")])
    raised: e.ConditionRaised = sample(e.ConditionRaised)
    condition = replace(raised.condition, id="n/of.tomorrow", type="of.tomorrow", node="n", severity=Severity.critical)
    told = e.ConditionRaised(replace(condition, clears="operator", part="", remedy="", timing="", expires_at=None))
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "newer", told))
    drive.begin(2)
    drive.fault("n", "ecc")
    drive.wait(hours=8)
    assert "of.tomorrow" in {c.type for c in drive.node("n").conditions}


def test_the_older_one_refuses_the_journal_after_the_raise() -> None:
    with pytest.raises(formats.UnreadableFormatError, match=f"reads up to format {BEFORE}"):
        formats.check(NEW, OLD.reads)
