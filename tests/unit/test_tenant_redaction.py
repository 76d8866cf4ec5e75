"""The table of what a tenant is shown: every noun that can reach them stands in it, and its rules do as they say."""

import typing
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.change_control import Approval
from hostler.core.state.configuration import Configuration, Policy, Pool
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Bounds
from hostler.core.state.model import (
    Assignment,
    Blocker,
    Condition,
    Evidence,
    Hold,
    HoldKind,
    Node,
    Observation,
    Part,
    Phase,
    Severity,
)
from hostler.core.state.scopes import Scope, text_hook
from hostler.core.state.ways_out import observed
from hostler.server.tenant_redaction import TenantRedaction
from hostler.server.tenant_redaction_rules import BLOCKED, FIELDS, OTHERS, UNTOLD
from tests.kit import a_node, a_workload, intent_of
from tests.scenario.test_condition_tickets import bmc
from tests.scenario.test_start_work_prepared import serving
from tests.scenario.test_ticket_claims import with_ticket

T0 = datetime(2026, 1, 1, tzinfo=UTC)
UNREACHED = frozenset(
    {
        e.AssetRegistered, e.AssetChanged, e.AssetSeen, e.AssetRebound,
        *get_args(e.RackEvent), e.ModeSet, e.RemediatorsFound, e.RemediatorAccepted,
        e.ConfigActivated,
        e.RolloutStarted, e.SliceStarted, e.RolloutStopped, e.RolloutCompleted, e.ControllerStarted, e.ClockGap,
        e.ClockConfirmed, e.FormatRaised, e.JournalRestored, e.RestoreReleased, e.FabricRegistered, e.FabricRemoved,
        e.FabricValidationAsked, e.FabricValidated, e.FabricFindingOpened, e.FabricFindingChanged,
        e.FabricFindingClosed, e.LinkFaultOpened, e.LinkFaultChanged, e.LinkFaultClosed,
        e.StockChanged, e.ManualTestScheduled, e.ManualTestEntered, e.ManualTestSigned, e.AuditSealed,
        e.DiskRoomChanged,
    }
)  # fmt: skip
"""Events about no node: none is found under a node's history or in a tenant's stream."""


def nouns(kind: Any, found: set[type[Struct]]) -> set[type[Struct]]:
    """The structs that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if kind not in found and kind is not Configuration:
            found.add(kind)
            hints = typing.get_type_hints(kind)
            for field in kind.__struct_fields__:
                nouns(hints[field], found)
        return found
    for one in typing.get_args(kind):
        nouns(one, found)
    return found


def reached() -> list[type[Struct]]:
    found: set[type[Struct]] = {e.Record}
    for kind in typing.get_args(e.Event):
        if kind not in UNREACHED:
            nouns(kind, found)
    for kind in (Node, Workload, Observation, Part, Approval, Pool):
        nouns(kind, found)
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("noun", reached(), ids=lambda noun: noun.__name__)
def test_every_noun_that_a_tenant_can_be_shown_stands_in_the_table(noun: type[Struct]) -> None:
    """Mutant: a noun without a row; it passes with every word in it."""
    assert noun in FIELDS
    assert FIELDS[noun].keys() <= set(noun.__struct_fields__), "a row for a field that is not there"


def test_events_that_are_said_to_be_about_no_node_are() -> None:
    for kind in UNREACHED - {e.AssetChanged}:
        assert "node" not in kind.__struct_fields__, kind


def fleet(word: str = "globex") -> Fleet:
    pools = (Pool("alpha", "h100", 1, "k1", "acme"), Pool(f"p-{word}", "h100", 1, f"k-{word}", word))
    made = Fleet(Configuration(Policy({}, {}), pools={pool.name: pool for pool in pools}))
    for name, pool in (("n1", pools[0]), (f"n-{word}", pools[1])):
        made.put_node(name, a_node(name, assignment=Assignment(pool.name, pool.tenant, pool.cluster, T0)))
    return made


REDACTION = TenantRedaction(fleet(), "acme")


@pytest.mark.parametrize(
    ("scope", "shown"),
    [
        ("fleet", "fleet"), ("n1", "n1"), ("n-globex", OTHERS), ("pool:alpha", "pool:alpha"), ("pool:p-globex", OTHERS),
        ("cluster:k1", "cluster:k1"), ("cluster:k-globex", OTHERS), ("rack:r7", "rack:r7"), ("", ""),
    ],
)  # fmt: skip
def test_a_scope_is_named_where_it_is_the_tenants_or_a_place(scope: str, shown: str) -> None:
    assert REDACTION.over(Hold("h", Scope.of(scope), HoldKind.operator, "ann", "why", T0)).scope.text == shown


def test_a_reason_is_shown_to_who_gave_it() -> None:
    """Mutants: every reason is shown; none is; one customer's person is named to another."""
    for tenant, owner, reason in (("", "ann", UNTOLD), ("acme", "ann", "why"), ("globex", OTHERS, UNTOLD)):
        shown = REDACTION.over(Hold("h", Scope.of("n1"), HoldKind.cordon, "ann", "why", T0, tenant=tenant))
        assert (shown.owner, shown.reason) == (owner, reason)
        intent = REDACTION.over(
            intent_of("i", "cordon", "n1", "ann", "why", T0, {"x": "why"}, bounds=Bounds(tenant=tenant))
        )
        assert (intent.person, intent.reason) == (owner, reason)
        assert ("why" in intent.args.values()) is (tenant == "acme")


@pytest.mark.parametrize("kind", [*BLOCKED, "of-a-later-version"])
def test_a_blocker_says_what_its_kind_says(kind: str) -> None:
    """Mutant: the text of a kind that may name others is shown."""
    shown = REDACTION.over(Blocker(kind, "globex", "globex has it", observed("globex is done")))
    assert "globex" not in str(msgspec.to_builtins(shown, enc_hook=text_hook))
    assert shown.text
    assert shown.ends_when
    assert shown == REDACTION.over(Blocker(kind, "another", "another text", observed("else"))), "whatever it says"


def test_a_nodes_own_words_are_kept_and_those_of_others_are_not() -> None:
    """Mutants: a driver's words are shown; what was seen before the node was theirs is shown; nothing is."""

    def shown(**fields: Any) -> Evidence:
        told = Evidence(T0, "agent", "NVRM: Xid 79", "n1/s/1", {"code": 79}, "kernel_log")
        row = Condition("n1/c", "gpu.fallen_off_bus", "n1", Severity.critical, T0, T0, "remedy", "hostler")
        return REDACTION.over(replace(row, evidence=(replace(told, **fields),))).evidence[0]

    assert shown().text == "NVRM: Xid 79"
    for others in (
        {"at": T0 - timedelta(seconds=1)}, {"source": "bmc"}, {"observation": ""}, {"path": "node:n2"},
    ):  # fmt: skip
        told = shown(**others)
        assert (told.text, told.observation, told.facts) == ("The GPU no longer answers on PCIe.", "", {})
        assert "n2" not in told.path
    assert shown(source="ann", observation="", facts={"tenant": "acme"}).text == "NVRM: Xid 79"
    assert shown(source="ann", observation="", facts={"tenant": "globex"}).source == "operator"
    for kind, kept in (("run_checks", True), ("power_off", False), ("cordon", False), ("of-a-later-version", False)):
        ended = REDACTION.over(e.OperationFinished("n1", "op", kind, "failed", "https://10.0.0.1 failed", {"a": "b"}))
        assert (ended.detail, bool(ended.facts)) == (("https://10.0.0.1 failed", True) if kept else (UNTOLD, False))


def test_a_node_is_shown_without_its_bmc_its_tags_and_its_life_before() -> None:
    bmc, name = Binding("bmc", "https://10.0.0.1", T0), Binding("hostname", "h1", T0)
    node = a_node(
        "n1", bindings=(bmc, name), tags=(("note", "globex"),), left_cluster="k-globex", phase=Phase.production
    )
    shown = REDACTION.over(node)
    assert (shown.bindings, shown.tags, shown.left_cluster) == ((name,), (), OTHERS)
    assert (shown.id, shown.domains, shown.slots) == (node.id, node.domains, node.slots)
    assert REDACTION.over(e.BindingChanged("n1", bmc)).binding.value == ""
    for kind in ("dpu_bmc", "outlet"):
        address = Binding(kind, "https://10.0.0.2", T0)
        assert REDACTION.over(replace(node, bindings=(address, name))).bindings == (name,)
        assert REDACTION.over(e.BindingChanged("n1", address)).binding.value == ""


def test_what_was_theirs_then_is_named_and_what_is_not_is_not() -> None:
    moved = e.PartMoved("S1", "n1", "n-globex", "gpu0")
    assert (REDACTION.over(moved).before, REDACTION.over(moved).after) == ("n1", OTHERS)
    assert TenantRedaction(fleet(), "acme", frozenset({"n-globex"})).over(moved).after == "n-globex"
    record = e.Record(1, T0, 1, "n-globex/s/1", moved)
    assert [REDACTION.over(replace(record, cause=c)).cause for c in ("n-globex/s/1", "n1/s/1", "clock")] == [
        "",
        "n1/s/1",
        "clock",
    ]


def test_to_show_what_was_shown_changes_nothing() -> None:
    for node in fleet().nodes.values():
        once = REDACTION.over(node)
        assert REDACTION.over(once) == once


def test_who_works_at_the_racks_is_not_for_customers_to_read() -> None:
    """Mutants: a claim's person is shown; who closed the ticket; who asked for a technician's act."""
    drive = with_ticket()[0]
    (ticket,) = drive.fleet.tickets.values()
    for verb, args in (("claim-ticket", {}), ("hand-over-ticket", {"to": "tobias"}), ("close-ticket", {})):
        assert drive.ask(verb, ticket.id, "tinka", **args).granted
    bmc(drive, psu1="OK")
    assert not drive.fleet.tickets
    shown = TenantRedaction(drive.fleet, "acme")
    told = [shown.over(record) for record in drive.journal]
    assert any(isinstance(one.event, e.TicketHandedOver) for one in told)
    assert any(isinstance(one.event, e.TicketClosed) and one.event.person == "a technician" for one in told)
    text = msgspec.json.encode(told, enc_hook=text_hook).decode()
    assert "tinka" not in text
    assert "tobias" not in text


def test_who_scans_a_machine_that_serves_is_not_for_customers_to_read() -> None:
    """Mutants: the request for maintenance has its asker's name; so has its end."""
    drive, ticket = serving()
    drive.see_work("a", a_workload("w"))
    assert drive.ask("start-work", "a", "tinka", serial="S-a", ticket=ticket, prepare="true").granted
    drive.run()
    standing = [c for c in drive.node("a").conditions if c.owner == "tinka"]
    assert standing
    shown = TenantRedaction(drive.fleet, "acme")
    node = shown.over(drive.node("a"))
    assert drive.ask("end-work", "a", "tinka").granted
    told = [node, *(shown.over(record) for record in drive.journal)]
    assert shown.over(standing[0]).owner == "a technician"
    assert "tinka" not in msgspec.json.encode(told, enc_hook=text_hook).decode()
