"""A second remediator of a cluster: no pool begins to act beside it, and none goes on, until a person accepts it."""

from hostler.core.state import events as e
from hostler.core.state.configuration import Configuration
from tests.kit import Drive, a_node, configuration, pool_document


def pools(mode: str) -> Configuration:
    return configuration({"train": pool_document(target=2, modes={"*": mode})})


def beside(mode: str) -> Drive:
    """Two nodes in a cluster in which somebody else treats nodes too."""
    drive = Drive(pools(mode), [a_node("a"), a_node("b")])
    assert drive.ask("report-remediators", "cluster:k1", person="hostler", remediators="draino,NVSentinel").granted
    return drive


def accept(drive: Drive, *names: str) -> None:
    for name in names:
        assert drive.ask("accept-remediator", "cluster:k1", remediator=name).granted


def test_no_pool_begins_to_act_before_each_is_accepted_by_a_named_person() -> None:
    """Mutants: the mode's or the activation's check is left out; one acceptance counts for all."""
    drive = beside("observe")
    refused = drive.ask("mode", "pool:train", mode="act")
    assert not refused.granted
    assert "NVSentinel remediates nodes of cluster k1 too" in refused.text
    assert "hostler doctor accept k1 NVSentinel --reason" in refused.text
    drive.activate(pools("act"))
    assert "act" not in drive.fleet.configuration.pools["train"].modes.values()
    assert drive.ask("mode", "pool:train", mode="propose").granted
    accept(drive, "NVSentinel")
    assert "draino" in drive.ask("mode", "pool:train", mode="act").text
    accept(drive, "draino")
    assert drive.ask("mode", "pool:train", mode="act").granted
    said = drive.events(e.RemediatorAccepted)
    assert [(one.remediator, one.person) for one in said] == [("NVSentinel", "ann"), ("draino", "ann")]


def test_what_acts_already_waits_when_one_is_found_and_goes_on_once_it_is_gone() -> None:
    """Mutants: the guard is not asked; who waits is not asked again when the blocker is gone."""
    drive = beside("act")
    drive.fault("a")
    drive.run()
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert {b.name for b in waiting.blockers if b.kind == "remediator"} == {"k1/NVSentinel", "k1/draino"}
    assert "power_off" not in drive.operations("a")
    accept(drive, "draino")
    drive.run()
    assert "power_off" not in drive.operations("a")
    drive.ask("report-remediators", "cluster:k1", person="hostler", remediators="draino")
    drive.run()
    assert "power_off" in drive.operations("a")


def test_an_acceptance_ends_by_a_word_and_with_what_was_accepted() -> None:
    """Mutant: who comes back is taken for accepted."""
    drive = beside("observe")
    accept(drive, "draino", "NVSentinel")
    assert not drive.ask("accept-remediator", "cluster:k1", remediator="draino").granted
    assert not drive.ask("accept-remediator", "cluster:k1", remediator="kured").granted
    assert drive.ask("withdraw-remediator", "cluster:k1", remediator="draino").granted
    assert not drive.ask("mode", "pool:train", mode="act").granted
    accept(drive, "draino")
    for there in ("NVSentinel", "NVSentinel,draino"):
        drive.ask("report-remediators", "cluster:k1", person="hostler", remediators=there)
    assert "draino" in drive.ask("mode", "pool:train", mode="act").text


def test_other_clusters_are_not_concerned_and_the_same_report_records_nothing_twice() -> None:
    drive = Drive(pools("observe"), [a_node("a")])
    for _ in range(2):
        assert drive.ask("report-remediators", "cluster:other", person="hostler", remediators="draino").granted
    assert len(drive.events(e.RemediatorsFound)) == 1
    assert drive.ask("mode", "pool:train", mode="act").granted
    drive.fault("a")
    drive.run()
    assert "power_off" in drive.operations("a")
