"""Failures stand at the top: of a node's page and story, of a list's WAITS FOR and of what `--wait` prints."""

from datetime import timedelta

import msgspec

from hostler.cli.intent_progress import lines
from hostler.cli.node_page import node_page
from hostler.client.answers import IntentProgress, NodeProgress
from hostler.core.report.explain import explain, text
from hostler.core.report.last_failures import failure_text, last_failures
from hostler.core.report.next_actor import acts_next
from hostler.core.state import events as e
from hostler.core.state.model import ActFailure, AsideFailure, Node
from hostler.core.state.scopes import text_hook
from hostler.server.api_resources import node_row
from tests.kit import NOW, Drive, a_node, after, configuration, pool_document


def failing() -> Drive:
    """A node whose reboot failed twice, for two reasons."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.script("reboot", "failed", "failed")
    drive.ask("reboot", "a")
    drive.run()
    return drive


def test_what_failed_last_is_kept_on_the_node_the_newest_first_until_something_is_done() -> None:
    """Mutants: the oldest stands first; a success leaves it; an uncordon hides it; they are kept without end."""
    drive = failing()
    (first, *_) = drive.node("a").failed
    assert first.what == "reboot"
    assert "reboot" in first.why
    drive.wait(hours=3)
    ended = [one.result for one in drive.events(e.PlanEnded) if one.node == "a"]
    assert "failed" in ended
    times = [one.at for one in drive.node("a").failed]
    assert times == sorted(times, reverse=True)
    assert len(times) <= 3
    for _ in range(3):
        drive.wait(days=1)
        drive.ask("reboot", "a")
        drive.run()
    if any(one.result == "done" for one in drive.events(e.PlanEnded)[-1:]):
        assert drive.node("a").failed == ()


def test_each_surface_shows_the_failure_before_the_wait() -> None:
    """Mutants: the list shows the wait alone; `--wait` says waiting and not why; the page has it below its facts."""
    drive = failing()
    node = drive.node("a")
    (failure, *_) = last_failures(node, drive.now)
    said = failure_text(failure)
    assert said.startswith("reboot failed at 2026-01-01")
    row = node_row(node)
    assert row.waiting.startswith(said)
    story = msgspec.structs.replace(
        explain([r for r in drive.journal if "a" in e.subjects_of(r.event)], node), failures=(failure,)
    )
    told = text(story).splitlines()
    assert told[1] == f"  failed     {said}"
    found = {
        "node": msgspec.to_builtins(node, enc_hook=text_hook),
        "failures": msgspec.to_builtins((failure,)),
        "acts_next": msgspec.to_builtins(acts_next(drive.fleet, node)),
    }
    page = list(node_page(found, wide=False))
    assert page[1].startswith("  failed: reboot failed")
    assert page[2].startswith("  next: ")


def test_wait_prints_the_failure_and_who_is_next() -> None:
    row = NodeProgress("a", "waiting", failed="reboot failed at 10:00: the BMC refused", next="an operator decides")
    progress = IntentProgress("i1", "reboot", {}, "a", "ann", "because", NOW, "under_way", "", "", (row,))
    assert lines(progress)[1] == (
        "a",
        "  a: waiting, reboot failed at 10:00: the BMC refused, next: an operator decides",
    )


def test_what_failed_beside_a_plan_counts_and_what_is_long_ago_does_not() -> None:
    """Mutants: only plans are looked at; a failure of last month is shown first for ever."""
    plan = ActFailure("power_cycle", NOW, "failed", "no answer")
    beside = AsideFailure("renew_bmc_login", after(hours=1), "refused", "401")
    node: Node = a_node("a", failed=(plan,), aside_failed=beside)
    assert [one.what for one in last_failures(node, after(hours=2))] == ["renew_bmc_login", "power_cycle"]
    assert [one.what for one in last_failures(node, NOW + timedelta(days=7, minutes=30))] == ["renew_bmc_login"]
    assert last_failures(node, NOW + timedelta(days=9)) == ()
