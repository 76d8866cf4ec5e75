"""A tenant answers a maintenance window: whose it may answer, which answer counts, and who is told."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, IntentAsked
from hostler.core.intents.bounds import concerns, within
from hostler.core.notify.notices import notices
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.intent import Bounds
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Assignment
from hostler.core.state.notify_routes import PageRules
from hostler.core.state.scopes import Scope
from hostler.core.state.windows import WindowAnswer
from tests.kit import NOW, Drive, a_node, after, configuration, intent_of, pool_document

POOLS = configuration({
    "train": pool_document(),
    "other": pool_document(tenant="orca", cluster="k2"),
})  # fmt: skip


def fleet() -> Drive:
    """Two customers: acme has a1 in rack r1, orca has b1 in r1 and b2 in r2."""
    orca = Assignment("other", "orca", "k2", NOW)
    own = a_node("a1", domains=("rack:r1",))
    shared = a_node("b1", domains=("rack:r1",), assignment=orca)
    apart = a_node("b2", domains=("rack:r2",), assignment=orca)
    apart = replace(apart, position=replace(apart.position, rack="r2"))
    drive = Drive(POOLS, [own, shared, apart])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    return drive


def scheduled(drive: Drive, scope: str) -> str:
    before = set(drive.fleet.windows)
    args = {"starts": str(after(hours=1)), "ends": str(after(hours=2))}
    assert drive.ask("schedule-maintenance", scope, **args).granted
    (window,) = set(drive.fleet.windows) - before
    return str(window)


def answered(drive: Drive, window: str, tenant: str, rather: datetime | None = None, reason: str = "fine") -> str:
    """Why the answer was refused, "" where it is kept."""
    args = {"rather": str(rather)} if rather else {}
    intent = intent_of(
        "i-answer", "answer-maintenance", window, "alice", reason, drive.now, args, bounds=Bounds(tenant=tenant)
    )
    (reply,) = drive.step(IntentAsked(77, intent)).replies
    return "" if reply.granted else reply.text


def test_the_last_answer_of_each_tenant_counts_and_stands_in_the_journal() -> None:
    """Mutants: a second answer stands beside the first; one tenant's answer takes the place of another's."""
    drive = fleet()
    window = scheduled(drive, "rack:r1")
    assert answered(drive, window, "acme") == ""
    assert answered(drive, window, "orca") == ""
    assert answered(drive, window, "acme", after(days=1), "a run ends tomorrow") == ""
    kept = {answer.tenant: answer.rather for answer in drive.fleet.windows[window].answers}
    assert kept == {"orca": None, "acme": after(days=1)}
    told = [sentence(r.event) for r in drive.journal if isinstance(r.event, e.WindowAnswered)]
    assert told[0] == f"acme acknowledged maintenance window {window}: fine"
    assert told[2].endswith("begin at 2026-01-02 00:00 UTC instead: a run ends tomorrow")


def test_a_window_of_others_is_refused_as_one_that_is_not_there() -> None:
    """Mutants: the refusal names the window's scope; a window of a pool is answered by every tenant."""
    drive = fleet()
    foreign = scheduled(drive, "pool:other"), scheduled(drive, "b2"), scheduled(drive, "rack:r2"), "w0"
    refused = {answered(drive, window, "acme") for window in foreign}
    assert refused == {"no maintenance window of that name concerns your nodes; see `hostler maintenance list`"}
    assert not any(isinstance(r.event, e.WindowAnswered) for r in drive.journal)


def test_an_answer_is_a_tenants_and_asks_for_a_time_to_come() -> None:
    drive = fleet()
    window = scheduled(drive, "fleet")
    assert "ask with a tenant's token" in answered(drive, window, "")
    assert "has to lie in the future" in answered(drive, window, "acme", after(hours=-1))
    assert drive.fleet.windows[window].answers == ()


def test_operators_are_told_when_another_time_is_asked_for_and_no_tenant_is() -> None:
    """Mutants: an acknowledgement is told as well; the text is one that the window's other tenants may read."""
    answer = WindowAnswer("acme", "alice", NOW, "a run", after(days=1))
    other_time = e.WindowAnswered("w1", Scope.of("rack:r1"), answer)
    (notice,) = notices(other_time, {}, PageRules())
    assert (notice.subject, notice.action, notice.told_tenant, notice.page) == ("window/w1", "more", "", False)
    assert "acme asks that maintenance window w1 begin at" in notice.summary
    assert not list(notices(replace(other_time, answer=replace(answer, rather=None)), {}, PageRules()))


SCOPES = ("fleet", "pool:train", "pool:other", "pool:gone", "cluster:k1", "cluster:k2", "rack:r1", "rack:r2", "a1",
          "b1", "b2", "switch:s1", "gone")  # fmt: skip


@given(st.sampled_from(SCOPES), st.sampled_from(("acme", "orca", "nobody")), st.sampled_from(("", "train", "other")))
def test_a_window_concerns_whom_the_list_of_windows_shows_it(scope: str, tenant: str, pool: str) -> None:
    """A window that may be answered is one that is listed: the scopes of the caller's own nodes.

    Mutant: a cluster is left out.
    """
    drive = fleet()
    bounds, context = Bounds(tenant=tenant, pool=pool), DecisionContext(drive.fleet, drive.controller.live, drive.now)
    own = {one for node in drive.fleet.nodes.values() if within(bounds, node) for one in scopes(context.fleet, node)}
    assert concerns(drive.fleet, Scope.of(scope), bounds) is (Scope.of(scope) in own)
