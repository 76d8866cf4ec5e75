"""Bodies of version 1: what they left to tables is read from what those tables said then."""

import hashlib

import msgspec
import pytest
from msgspec.structs import replace

from hostler.core.intents.ask import Ask
from hostler.core.intents.idempotency import content_of
from hostler.core.state import snapshot, version_1
from hostler.core.state.cell_record import StoredAnswer
from hostler.core.state.change_control import Approval
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.events import IntentRecorded, PlanRecorded
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent, Unreadable
from hostler.core.state.live_state import LiveState
from hostler.core.state.plan_rules import PlanRules
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import NODES, scope_hook, text_hook
from hostler.core.state.upcast import downcast, upcast
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.holds import PlaceHold
from hostler.core.state.verbs.modes import SetMode
from hostler.core.state.verbs.remedies import Drain
from hostler.core.tables.recipes import RECIPES
from tests.contract.journal_samples import sample
from tests.kit import NOW, a_node


@pytest.mark.parametrize("recipe", sorted(RECIPES.keys() - {"port_reset"}))
def test_a_plan_that_was_recorded_without_rules_ends_by_those_of_its_day(recipe: str) -> None:
    """Mutant: a recipe's rules change, and with them those of plans that are under way.

    A recipe whose rules are changed on purpose, or that no such plan had, is left out here.
    """
    recorded: PlanRecorded = sample(PlanRecorded)
    plan = replace(recorded.plan, name=recipe, rules=RECIPES[recipe].rules)
    new = msgspec.json.decode(msgspec.json.encode(replace(recorded, plan=plan), enc_hook=text_hook))
    old = downcast(new, 3, 1)
    assert "rules" not in old["plan"]
    assert msgspec.convert(upcast(old, 1), PlanRecorded, dec_hook=scope_hook).plan == plan


def test_a_plan_in_an_older_snapshot_ends_by_the_rules_of_its_day() -> None:
    """Mutant: it takes the defaults, and a release that is under way releases nobody."""
    fleet = Fleet()
    plan = replace(sample(PlanRecorded).plan, name="release", steps=(), rules=PlanRules())
    fleet.put_node("a", a_node("a", plan=plan))
    fleet.merge()
    body = msgspec.msgpack.decode(snapshot.dump(snapshot.state_of(fleet)))
    read = snapshot.load(msgspec.msgpack.encode(body | {"version": 3})).nodes["a"].plan
    assert read is not None
    assert read.rules == version_1.rules_of("release") == RECIPES["release"].rules


HELD = {
    "id": "i",
    "verb": "hold",
    "target": "a",
    "person": "ann",
    "reason": "why",
    "at": "2026-02-01T00:00:00Z",
    "args": {"hours": "2"},
    "key": "k",
    "dry_run": False,
    "bounds": {"site": "", "pool": "", "tenant": ""},
}
"""An intent as version 1 wrote it."""


NO_BOOL = "Expected `bool`, got `str` - at `$.now`"


@pytest.mark.parametrize(
    ("verb", "target", "args", "act", "nodes"),
    [
        ("hold", "a", {"hours": "2"}, PlaceHold(2.0), ()),
        ("hold", "a", {"hours": "0.25"}, PlaceHold(0.25), ()),
        ("drain", NODES, {NODES: "a,b"}, Drain(), ("a", "b")),
        ("drain", "a", {"now": "true"}, Drain(now=True), ()),
        ("mode", "pool:p", {"mode": "propose"}, SetMode(Mode.propose), ()),
        (
            "drain",
            "a",
            {"now": "later"},
            Unreadable("drain", {"now": "later"}, NO_BOOL),
            (),
        ),
        ("explode", "a", {"x": "y"}, Unreadable("explode", {"x": "y"}, "there is no such verb"), ()),
    ],
)
def test_an_intent_in_words_is_read_and_written_in_words_again(
    verb: str, target: str, args: dict[str, str], act: Verb, nodes: tuple[str, ...]
) -> None:
    """Refused requests that version 1 recorded are read too. Mutant: an unknown verb stops the journal."""
    old = {**HELD, "verb": verb, "target": target, "args": args}
    body = {"type": "intent_recorded", "intent": old, "granted": True, "answer": "", "content": "digest"}
    event = msgspec.convert(upcast(body, 1), IntentRecorded)
    assert (event.intent.act, event.intent.nodes, event.intent.verb) == (act, nodes, verb)
    assert event.content == "digest", "a request under its key is known again"
    written = downcast(msgspec.json.decode(msgspec.json.encode(event)), 2, 1)
    assert (written["intent"], written["content"]) == (old, "digest")


def test_an_approval_in_an_older_snapshot_keeps_its_intent() -> None:
    fleet = Fleet()
    approval: Approval = replace(sample(Approval), id="p", intent=msgspec.convert(version_1.intent_up(HELD), Intent))
    fleet.put_approval("p", approval)
    fleet.answers.put("k", replace(sample(StoredAnswer), content="digest"))
    fleet.merge()
    body = msgspec.msgpack.decode(snapshot.dump(snapshot.state_of(fleet)))
    (written,) = body["others"]["approvals"]
    older = {**body["others"], "approvals": [{**written, "intent": version_1.intent_down(written["intent"])}]}
    read = snapshot.load(msgspec.msgpack.encode(body | {"version": 3, "others": older}))
    assert read.approvals["p"] == approval
    assert read.answers["k"].content == "digest"


def test_the_digest_of_a_request_is_that_of_version_1() -> None:
    """A request that is repeated over an upgrade gets the first answer. Mutant: the digest is of the typed body."""
    old = HELD | {"verb": "drain", "target": NODES, "args": {NODES: "a,b", "now": "true"}}
    intent = msgspec.convert(version_1.intent_up(old), Intent)
    asked: tuple[object, ...] = ("drain", NODES, "why", False, {NODES: "a,b", "now": "true"}, "", {})
    then = hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()
    assert content_of(Ask(DecisionContext(Fleet(), LiveState(), NOW), intent)) == then


def test_a_floats_last_digits_are_written() -> None:
    """Mutant: hours of more than six digits are rounded."""
    assert Intent("i", PlaceHold(1234.5678), "a", "ann", "why", NOW).args == {"hours": "1234.5678"}
