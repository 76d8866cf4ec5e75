"""A node that shows another's parts gets none: a part leaves a node that misses it, or whose BMC does not show it."""

from hostler.core.conditions.part_claims import CLAIMS_MAX
from hostler.core.state import events as e
from hostler.core.state.health import CLAIMED
from hostler.core.state.index_keys import is_spare
from hostler.core.state.model import Part
from tests.kit import Drive, a_node, configuration, gpu_part, pool_document


def own(node: str) -> tuple[Part, ...]:
    return tuple(gpu_part(node, gpu) for gpu in range(8))


def two() -> Drive:
    fresh = [a_node(name, slots=(), addresses=(), inventory_at=None) for name in "ab"]
    drive = Drive(configuration({"train": pool_document(target=2)}), fresh)
    for name in "ab":
        drive.observe(name, "inventory", parts=own(name))
    return drive


def claim(drive: Drive, source: str = "agent", gpu: int = 3) -> None:
    """Node b shows a GPU of node a in its slot 7."""
    stolen = Part(f"a-G{gpu}", "gpu", gpu_part("a", gpu).model, "gpu7")
    drive.observe("b", "inventory", source=source, parts=(*own("b")[:7], stolen))


def claims(drive: Drive, node: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(c.part, c.paths) for c in drive.node(node).conditions if c.type == CLAIMED]


def test_a_claim_alone_moves_no_part_and_is_a_condition_on_both_nodes() -> None:
    """Mutants: a claim moves the part; the holder has no condition; the claimant has none; somebody is convicted."""
    drive = two()
    claim(drive)
    assert drive.fleet.parts["a-G3"].node == "a"
    assert claims(drive, "a") == [("a-G3", ("node:b",))]
    assert claims(drive, "b") == [("a-G3", ("inventory", "node:a"))]
    assert {part.slot: part.serial for part in drive.fleet.parts.of("b")}["gpu7"].startswith("gpu7@")
    drive.wait(days=2)
    assert drive.plans() == []
    assert [(one.ticket.fault, one.ticket.owner) for one in drive.events(e.TicketOpened)] == [
        ("inventory.claimed_twice", "operator")
    ], "one for the part, and nobody is convicted"


def test_the_holder_s_own_inventory_does_not_lose_the_part_and_repeats_are_no_news() -> None:
    """Mutant: every repeat of a claim is recorded."""
    drive = two()
    claim(drive)
    drive.observe("a", "inventory", parts=own("a"))
    before = len(drive.events(e.ConditionUpdated)) + len(drive.events(e.ConditionRaised))
    for _ in range(3):
        claim(drive)
        drive.observe("a", "inventory", parts=own("a"))
    assert len(drive.events(e.ConditionUpdated)) + len(drive.events(e.ConditionRaised)) == before
    assert drive.fleet.parts["a-G3"].node == "a"


def test_verdicts_on_a_part_stay_with_the_node_that_has_it() -> None:
    """Mutant: what fell off the bus on one node is the claimant's."""
    drive = two()
    claim(drive)
    drive.fault("a", "off_bus", gpu=3)
    drive.run()
    assert drive.plans("a") == ["power_cycle"]
    assert drive.plans("b") == []
    assert drive.fleet.parts["a-G3"].node == "a"


def test_a_claim_that_is_made_no_more_ends_on_both_an_hour_after_it_was_told() -> None:
    """Mutants: the holder's condition stands for good; the claimant's goes alone, and its agent tells no more of it."""
    drive = two()
    claim(drive)
    drive.observe("b", "inventory", parts=own("b"))
    assert claims(drive, "a")
    assert claims(drive, "b")
    drive.wait(hours=1)
    drive.observe("b", "inventory", parts=own("b"))
    assert claims(drive, "a") == claims(drive, "b") == []


def about(drive: Drive, node: str, since: int) -> list[e.Record]:
    return [record for record in drive.journal[since:] if node in e.subjects_of(record.event)]


def test_a_node_that_claims_and_does_not_in_turns_is_one_record_an_hour_on_the_holder() -> None:
    """For eight hours, every minute, of changing parts. Mutants: pairs are not damped; by part; the end is free."""
    drive = two()
    since, hours = len(drive.journal), 8
    for minute in range(60 * hours):
        shown = tuple(Part(f"a-G{gpu}", "gpu", "H100", f"gpu{gpu}") for gpu in range(minute % 8))
        drive.observe("b", "inventory", source=("agent", "bmc")[minute % 3 == 2], parts=shown or own("b"))
        drive.wait(minutes=1)
    told = [
        r
        for r in about(drive, "a", since)
        if isinstance(r.event, (e.ConditionRaised, e.ConditionUpdated, e.ConditionCleared))
    ]
    assert 1 <= len(told) <= hours + 1, [r.event for r in told]
    assert not drive.plans("a")


def test_many_parts_of_one_holder_are_one_record_on_it_and_move_together() -> None:
    """Mutants: each part has its record; what is in the list alone is not known to be told and never moves."""
    drive = two()
    since = len(drive.journal)
    moved = tuple(Part(f"a-G{gpu}", "gpu", gpu_part("a", gpu).model, f"gpu{gpu}") for gpu in range(8))
    drive.observe("b", "inventory", parts=moved)
    assert len(about(drive, "a", since)) <= 2, "the condition, and its ticket"
    assert len(claims(drive, "a")) == 1
    assert len(claims(drive, "b")) == 8
    for source in ("bmc", "agent"):
        drive.observe("b", "inventory", source=source, parts=moved)
    assert {drive.fleet.parts[part.serial].node for part in moved} == {"b"}


def test_the_holder_s_bmc_speaks_for_every_part_of_the_list() -> None:
    """Mutant: only the part that names the condition is the holder's to keep."""
    drive = two()
    moved = tuple(Part(f"a-G{gpu}", "gpu", gpu_part("a", gpu).model, f"gpu{gpu}") for gpu in range(8))
    drive.observe("b", "inventory", parts=moved)
    drive.observe("a", "inventory", source="bmc", parts=own("a"))
    for source in ("bmc", "agent"):
        drive.observe("b", "inventory", source=source, parts=moved)
    assert {drive.fleet.parts[part.serial].node for part in moved} == {"a"}


def test_a_part_that_its_holder_misses_goes_to_who_shows_it() -> None:
    """Mutant: a part that was once contested never moves."""
    drive = two()
    claim(drive)
    drive.observe("a", "inventory", parts=tuple(part for part in own("a") if part.serial != "a-G3"))
    claim(drive)
    assert drive.fleet.parts["a-G3"].node == "b"
    assert claims(drive, "a") == claims(drive, "b") == []


def test_agent_and_bmc_together_move_a_part_from_a_node_that_says_nothing() -> None:
    """Mutants: the BMC's word alone is enough; both together are not."""
    for first, second in (("agent", "bmc"), ("bmc", "agent")):
        drive = two()
        claim(drive, first)
        assert drive.fleet.parts["a-G3"].node == "a"
        claim(drive, second)
        claim(drive, "agent")
        assert drive.fleet.parts["a-G3"].node == "b", (first, second)
        for source in ("agent", "bmc", "agent"):
            drive.observe("a", "inventory", source=source, parts=own("a"))
        assert drive.fleet.parts["a-G3"].node == "b", "two nodes whose BMCs both show it do not pass it to and fro"


def test_the_holder_s_bmc_outweighs_the_claimant_s() -> None:
    """Mutant: the holder's BMC is not asked."""
    drive = two()
    claim(drive)
    drive.observe("a", "inventory", source="bmc", parts=own("a"))
    claim(drive, "bmc")
    claim(drive)
    assert drive.fleet.parts["a-G3"].node == "a"


def test_another_s_claim_keeps_nobody_from_being_a_spare() -> None:
    """Mutant: whoever is named in a claim is a spare no more; one node empties the shelf of spares."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("b"), a_node("s", pool="")])
    drive.observe("s", "inventory", parts=own("s"))
    spare = is_spare(drive.node("s"))
    drive.observe("b", "inventory", parts=own("s"))
    assert claims(drive, "s")
    assert is_spare(drive.node("s")) is spare is True


def test_a_node_that_claims_everything_raises_so_many_conditions_and_moves_nothing() -> None:
    """Mutant: CLAIMS_MAX is not asked."""
    others = [f"n{number:02}" for number in range(12)]
    nodes = [a_node(name, slots=(), addresses=(), inventory_at=None) for name in ("b", *others)]
    drive = Drive(configuration({"train": pool_document(target=13)}), nodes)
    for name in ("b", *others):
        drive.observe(name, "inventory", parts=own(name))
    stolen = [
        Part(part.serial, "gpu", part.model, f"x{n}-{part.slot}") for n, o in enumerate(others) for part in own(o)
    ]
    drive.observe("b", "inventory", parts=tuple(stolen))
    assert len(claims(drive, "b")) == CLAIMS_MAX
    assert all(drive.fleet.parts[part.serial].node != "b" for part in stolen)
