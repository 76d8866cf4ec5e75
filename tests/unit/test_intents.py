"""Intents are answered, recorded with who asked, and never raise."""

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.controller.inputs import FellowsSeen, IntentAsked
from hostler.controller.step_output import Reply
from hostler.core.intents.ask import REASON_MAX
from hostler.core.intents.idempotency import OTHER_CONTENT
from hostler.core.state import events as e
from hostler.core.state.intent import Bounds, Intent
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Hold, HoldKind, Phase, Profile
from hostler.core.state.scopes import Scope
from hostler.core.state.upcast import downcast, upcast
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.remedies import RemedyVerb
from tests.kit import Drive, a_node, a_workload, configuration, digest, fold, intent_of, pool_document

CONFIG = configuration({"train": pool_document(target=2)})

REMEDIES = [verb for verb, kind in VERBS.items() if issubclass(kind, RemedyVerb) and verb != "power-off"]


def two() -> Drive:
    return Drive(CONFIG, [a_node("a"), a_node("b")])


def asked(drive: Drive, intent: Intent) -> IntentAsked:
    return IntentAsked(1, intent)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"verb": "sing"}, "no verb 'sing'; there are"),
        ({"person": ""}, "does not say who asks"),
        ({"reason": "  "}, "give a reason of 1 to 500 characters"),
        ({"reason": "x" * (REASON_MAX + 1)}, "give a reason"),
        ({"key": "k" * 129}, "at most 128 characters"),
        ({"target": "nobody"}, "node nobody is not known; see `hostler node list`"),
        ({"target": "rack:none"}, "rack:none has 0 nodes in production"),
        ({"target": "pool:"}, "has 0 nodes"),
        ({"verb": "hold", "target": "rack:"}, "rack: names no rack; write rack:NAME"),
        ({"verb": "pause", "target": "fleet:c1"}, "node fleet:c1 is not known"),
    ],
)
def test_a_refusal_says_why_and_what_to_do_and_is_recorded(change: dict[str, str], said: str) -> None:
    drive = two()
    fields = {"id": "i", "verb": "reboot", "target": "a", "person": "ann", "reason": "x", **change}
    ready = drive.step(asked(drive, intent_of(at=drive.now, **fields)))
    assert not ready.replies[0].granted
    assert said in ready.replies[0].text
    recorded = drive.events(e.IntentRecorded)
    assert [(r.granted, r.answer) for r in recorded] == [(False, ready.replies[0].text)]
    assert drive.plans() == []


def test_a_dry_run_shows_the_plan_the_people_it_disturbs_and_records_nothing() -> None:
    drive = two()
    drive.see_work("a", a_workload("w"))
    drive.ask("hold", "a")
    before = len(drive.journal)
    intent = intent_of("i", "reboot", "a", "ann", "why", drive.now, dry_run=True)
    reply = drive.step(asked(drive, intent)).replies[0]
    assert reply.granted
    assert reply.detail["plan"].startswith("cordon → drain")
    assert reply.detail["nodes"] == "a"
    assert reply.detail["gpus"] == "8"
    assert "ann holds a" in reply.detail["waits_for"]
    assert "w of acme runs here" in reply.detail["waits_for"]
    assert len(drive.journal) == before


def test_the_same_key_gets_the_same_answer_and_acts_once() -> None:
    """Mutant: a repeated request is a second one."""
    drive = two()
    intent = intent_of("i1", "hold", "a", "ann", "why", drive.now, key="k")
    first = drive.step(asked(drive, intent)).replies[0]
    drive.restart()
    again = intent_of("i2", "hold", "a", "ann", "why", drive.now, key="k")
    second = drive.step(asked(drive, again)).replies[0]
    assert (second.granted, second.text) == (first.granted, first.text)
    assert second.detail == {"intent": "i1", "repeated": "yes"}
    assert len(drive.fleet.holds) == 1


def test_a_key_of_another_request_does_nothing_also_after_a_restart() -> None:
    """Mutants: the key alone is compared; what was asked is not in the journal."""
    drive = two()
    first = intent_of("i1", "hold", "a", "ann", "why", drive.now, key="k")
    assert drive.step(asked(drive, first)).replies[0].granted
    drive.restart()
    for number, (verb, target, reason) in enumerate(
        (("hold", "b", "why"), ("cordon", "a", "why"), ("hold", "a", "because"))
    ):
        other = intent_of(f"j{number}", verb, target, "ann", reason, drive.now, key="k")
        reply = drive.step(asked(drive, other)).replies[0]
        assert (reply.granted, OTHER_CONTENT in reply.detail) == (False, True)
    assert [h.scope.text for h in drive.fleet.holds.values()] == ["a"]


def test_a_cell_of_format_1_keeps_in_memory_what_its_journal_reads_back() -> None:
    """Mutant: memory keeps the digest of what was asked, and the record of that format does not."""
    drive = two()
    assert drive.step(asked(drive, intent_of("i1", "hold", "a", "ann", "why", drive.now, key="k"))).replies[0].granted
    (recorded,) = drive.events(e.IntentRecorded)
    body = downcast(msgspec.json.decode(msgspec.json.encode(recorded)), 2, 1)
    assert recorded.content
    assert msgspec.convert(upcast(body, 1), e.IntentRecorded) == recorded


def test_a_refusal_is_kept_under_its_key_though_it_would_be_granted_now() -> None:
    """A sender may send the same intent again, and asked once. Mutant: only what was granted is kept."""
    drive = two()

    def release(number: int, key: str) -> Reply:
        intent = intent_of(f"i{number}", "release-brake", "fleet", "ann", "why", drive.now, key=key)
        return drive.step(asked(drive, intent)).replies[0]

    first = release(1, "k")
    assert not first.granted
    drive.restart()
    drive.controller._record_all((e.BrakeLatched("storm"),), "test")  # noqa: SLF001 - latched, by whatever
    drive.fleet.merge()
    second = release(2, "k")
    assert (second.granted, second.text) == (False, first.text)
    assert second.detail == {"intent": "i1", "repeated": "yes"}
    assert drive.fleet.cell.brake
    assert release(3, "l").text != first.text, "another key is another request"
    keyless = drive.step(asked(drive, intent_of("i4", "hold", "a", "ann", "why", drive.now))).replies[0]
    assert (keyless.granted, "repeated" in keyless.detail) == (True, False)


@pytest.mark.parametrize(
    "verb", sorted(verb for verb, kind in VERBS.items() if issubclass(kind, RemedyVerb) and verb != "power-off")
)
@pytest.mark.parametrize("phase", [Phase.triage, Phase.rma, Phase.registered])
def test_remedies_are_for_nodes_in_production(verb: str, phase: Phase) -> None:
    drive = Drive(CONFIG, [a_node("a", pool="", phase=phase)], quiet=True)
    assert not drive.ask(verb, "a").granted


def test_power_is_not_taken_from_a_node_that_serves() -> None:
    assert not two().ask("power-off", "a").granted


def test_a_remedy_request_counts_on_an_unmanaged_node_too() -> None:
    pools = {"bare": pool_document(target=1, profile="unmanaged", modes={})}
    drive = Drive(configuration(pools), [a_node("u", pool="bare", profile=Profile.unmanaged)])
    drive.fault("u", "off_bus")
    drive.run()
    assert drive.plans() == []
    assert drive.ask("reboot", "u").granted
    drive.run()
    assert drive.plans() == ["reboot"]


def test_a_pool_with_members_cannot_be_configured_away() -> None:
    drive = two()
    drive.activate(configuration({"other": pool_document()}))
    assert set(drive.fleet.configuration.pools) == {"train"}
    assert "pools train have members" in drive.replies[-1].text


def test_who_is_retired_takes_its_holds_and_tickets_along() -> None:
    drive = Drive(CONFIG, [a_node("a", pool="", phase=Phase.rma)])
    drive.ask("hold", "a")
    assert drive.ask("retire", "a").granted
    assert not len(drive.fleet.holds)
    assert "is retired; its history remains" in drive.ask("reboot", "a").text


text = st.text(max_size=12) | st.sampled_from(["a", "fleet", "pool:train", "rack:r1", "1e999", "-1", "nan", "true"])
names = [
    "hours",
    "serial",
    "ticket",
    "mode",
    "remedy",
    "condition",
    "starts",
    "ends",
    "nodes",
    "assets",
    "kind",
    "value",
]


@given(
    verb=st.sampled_from(sorted(VERBS)),
    target=text,
    args=st.dictionaries(st.sampled_from(names), text, max_size=4),
    dry_run=st.booleans(),
)
@settings(max_examples=250)
def test_nothing_that_is_asked_raises(verb: str, target: str, args: dict[str, str], dry_run: bool) -> None:
    """Mutant: a number that is none is let through."""
    drive = two()
    intent = intent_of("i", verb, target, "ann", "why", drive.now, args, dry_run=dry_run)
    reply = drive.step(asked(drive, intent)).replies[0]
    assert reply.text
    drive.run()
    assert digest(drive.fleet) == digest(fold(drive.journal))


def test_a_cordon_of_the_customer_before_is_told_without_a_name() -> None:
    """Mutant: who laid a cordon is named, whosever they are."""
    drive = two()
    for number, (tenant, person) in enumerate((("globex", "gus"), ("", "ann"))):
        hold = Hold(f"h{number}", Scope.of("a"), HoldKind.cordon, person, "ours", drive.now, tenant=tenant)
        drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.HoldPlaced(hold)))
    drive.begin(2)
    intent = intent_of("i1", "uncordon", "a", "alice", "mine", drive.now, bounds=Bounds(tenant="acme"))
    (reply,) = drive.step(asked(drive, intent)).replies
    assert not reply.granted
    assert "another customer's on a, an operator's on a" in reply.text
    assert not {"gus", "ann"} & set(re.findall(r"\w+", reply.text))


def upgraded() -> Drive:
    """Two nodes of a cell whose controllers all read what this one does."""
    drive = two()
    drive.step(FellowsSeen((Fellow("test", Release().reads),)))
    return drive


def macs(drive: Drive, node: str) -> list[str]:
    return [b.value for b in drive.fleet.nodes[node].bindings if b.kind == "mac" and b.until is None]


def test_a_machine_keeps_the_addresses_that_a_rebinding_names_and_no_others() -> None:
    """Mutants: one new address ends all others; the letters' case makes another address of it."""
    drive = upgraded()
    assert drive.ask("rebind", "a", kind="mac", value="AA:00:00:00:00:01, aa:00:00:00:00:02").granted
    assert macs(drive, "a") == ["aa:00:00:00:00:01", "aa:00:00:00:00:02"]
    assert drive.ask("rebind", "a", kind="mac", value="aa:00:00:00:00:02,aa:00:00:00:00:03").granted
    assert macs(drive, "a") == ["aa:00:00:00:00:02", "aa:00:00:00:00:03"]
    taken = drive.ask("rebind", "b", kind="mac", value="aa:00:00:00:00:09,aa:00:00:00:00:03")
    assert (taken.granted, taken.text) == (
        False,
        "mac aa:00:00:00:00:03 is bound to a: rebind or retire that one first",
    )
    assert drive.ask("rebind", "b", kind="mac", value="aa:00:00:00:00:01").granted


@pytest.mark.parametrize(
    ("value", "said"),
    [("aa:00:00:00:00:01,", "separate them by commas"), ("aa:00:00:00:00:01,a b", "is not a valid name")],
)
def test_addresses_that_are_none_are_refused(value: str, said: str) -> None:
    drive = upgraded()
    reply = drive.ask("rebind", "a", kind="mac", value=value)
    assert (reply.granted, macs(drive, "a")) == (False, [])
    assert said in reply.text
