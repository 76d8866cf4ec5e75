"""Lemons from a journal to a report: planted ones are found by node and by serial number, few healthy ones are."""

import asyncio
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from hostler.core.report.trend_sentences import lemon_sentence
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Node, Part, Phase, Severity
from hostler.core.state.trends import LemonFinding, TrendReport
from hostler.journal.opening import existing_database
from hostler.journal.readings import Reading, ReadingStore
from hostler.journal.sqlite import SqliteJournal
from hostler.journal.trend_files import last_report
from hostler.ports import Batch
from hostler.runtime import lemon_judging
from hostler.runtime.lemon_judging import FALSE_MOST, judge_lemons
from tests.kit import a_node

pytestmark = pytest.mark.nightly("trends are judged over months")

NOW = datetime.now(UTC).replace(microsecond=0)
DAYS, NODES, SEEDS = 120, 150, range(7, 12)
LEMON_NODES, LEMON_PART = frozenset({"n003", "n077"}), "n010-G0"
"""The part moves from node n010 to n020 in the middle, and fails in both."""

WRONG_MOST = 0.005
"""Share of the healthy nodes and parts that may be taken for lemons."""

Told = tuple[datetime, e.Event]


def day(number: float) -> datetime:
    return NOW - timedelta(days=DAYS - number)


def known(name: str, since: datetime, phase: Phase = Phase.production) -> Iterator[Told]:
    node = replace(a_node(name), registered_at=since, phase=phase, phase_since=since, inventory_at=since, slots=())
    yield since, e.NodeRegistered(replace(node, addresses=(), most_seen=()))
    yield since, inventory(node, since, tuple(f"{name}-G{gpu}" for gpu in range(2)))


def inventory(node: Node, at: datetime, serials: tuple[str, ...]) -> e.InventorySeen:
    parts = tuple(Part(serial, "gpu", "H100", f"gpu{slot}") for slot, serial in enumerate(serials))
    return e.InventorySeen(node.id, at, parts, (), (), "b", ("gpu",))


def failures(name: str, part: str, days: list[float]) -> Iterator[Told]:
    kind = "gpu.fallen_off_bus" if part else "memory.uncorrectable"
    for one in days:
        raised = Condition(
            f"{name}/{kind}/{part}", kind, name, Severity.critical, day(one), day(one), "remedy", "h", part
        )
        yield day(one), e.ConditionRaised(raised)
        yield day(one + 0.1), e.ConditionCleared(name, raised.id, "remedy", "")


def a_world(seed: int = SEEDS[0]) -> list[Told]:
    """A fleet whose nodes fail once in 2 years each; planted lemons fail each 20 days, a new part once on its third."""
    drawn = np.random.default_rng(seed)
    told: list[Told] = []
    for number in range(NODES):
        name = f"n{number:03}"
        told += known(name, day(0))
        if name not in LEMON_NODES | {"n010", "n020", "n099"}:
            told += failures(name, "", sorted(drawn.uniform(1, DAYS, drawn.poisson(DAYS / 730))))
            told += failures(name, f"{name}-G1", sorted(drawn.uniform(1, DAYS, drawn.poisson(DAYS / 1460))))
    for name in LEMON_NODES:
        told += failures(name, "", [10, 30, 50, 70, 90, 110])
    told += failures("n010", LEMON_PART, [10, 30, 50])
    told += [(day(60), e.PartMoved(LEMON_PART, "n010", "n020", "gpu0"))]
    told += [(day(60), inventory(a_node("n020"), day(60), (LEMON_PART, "n020-G1")))]
    told += failures("n020", LEMON_PART, [70, 90, 110])
    told += [(day(100), e.PartMoved("n099-G0", "n099", "", ""))]
    told += [(day(100), inventory(a_node("n099"), day(100), ("fresh", "n099-G1")))]
    told += failures("n099", "fresh", [103])
    told += known("idle", day(0), Phase.registered)
    return told


def kept(folder: Path, told: list[Told]) -> Path:
    place = folder / "journal.db"
    journal = SqliteJournal(place)
    ordered = sorted(told, key=lambda one: one[0])
    records = tuple(e.Record(seq, at, 1, "clock", event) for seq, (at, event) in enumerate(ordered, 1))
    journal.append(Batch(records=records), journal.acquire("a"))
    journal.close()
    return place


def judged(place: Path) -> TrendReport:
    with existing_database(place) as database:
        return judge_lemons(database, TrendReport(NOW, 60))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> TrendReport:
    return judged(kept(tmp_path_factory.mktemp("journal"), a_world()))


def named(report: TrendReport) -> dict[str, LemonFinding]:
    return {one.name: one for one in report.lemons}


def test_planted_lemons_are_found_and_few_others(tmp_path: Path) -> None:
    """Mutants: a part's time and faults in its second node are another part's; the false share is not kept."""
    wrong = 0
    for seed in SEEDS:
        (folder := tmp_path / str(seed)).mkdir()
        found = {one.name for one in judged(kept(folder, a_world(seed))).lemons if one.lemon}
        planted = LEMON_NODES | {LEMON_PART}
        assert planted <= found
        assert not {"n010", "n099", "fresh"} & found
        wrong += len(found - planted - {"n020"})
    assert wrong <= WRONG_MOST * len(SEEDS) * 3 * NODES


def test_a_moved_part_carries_its_score(report: TrendReport) -> None:
    """By value. Mutant: exposure since it was fitted last (60 days)."""
    part = named(report)[LEMON_PART]
    assert report.lemons_since == day(0)
    assert (part.count, part.nodes, part.node, part.kind) == (6, ("n010", "n020"), "n020", "gpu")
    assert part.days == pytest.approx(DAYS)
    assert part.low < part.rate < part.high
    assert part.usual * 2 < part.low
    assert part.rate < 6 / (DAYS / 365.25)
    assert lemon_sentence(part).startswith("6 troubles (gpu.fallen_off_bus 6x) in 120.0 days in service of 2 nodes: ")


def test_a_new_part_with_one_trouble_is_no_lemon(report: TrendReport) -> None:
    """Mutant: one fault in its first twenty days is the highest rate of all."""
    fresh = named(report)["fresh"]
    assert (fresh.count, fresh.lemon) == (1, False)
    assert fresh.days == pytest.approx(20)
    assert lemon_sentence(fresh).endswith("one trouble convicts nobody")


def test_false_findings_are_expected_as_rarely_as_is_said(report: TrendReport) -> None:
    for unit in ("node", "part"):
        ordered = [one for one in report.lemons if one.unit == unit]
        shares = [one.q_value for one in ordered]
        assert shares == sorted(shares)
        assert all(one.q_value <= FALSE_MOST for one in ordered if one.lemon)


def test_who_has_no_time_in_service_or_no_trouble_is_not_listed(report: TrendReport) -> None:
    assert not {"idle", "idle-G0"} & set(named(report))
    assert all(one.count for one in report.lemons)


def test_among_few_nobody_knows_what_is_usual(tmp_path: Path) -> None:
    """Mutant: the only node with a fault of three is a lemon."""
    told = [one for name in ("a", "b", "c") for one in known(name, day(0))]
    found = judged(kept(tmp_path, [*told, *failures("a", "a-G0", [5, 10, 15, 20])]))
    assert found.lemons == ()


def test_an_empty_journal_has_no_lemons(tmp_path: Path) -> None:
    assert judged(kept(tmp_path, [])).lemons == ()


def test_only_the_latest_records_count_where_there_are_too_many(
    tmp_path: Path, report: TrendReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: a page boundary loses or repeats records; faults before what was read count with no time."""
    place = kept(tmp_path, a_world())
    monkeypatch.setattr(lemon_judging, "LIMIT_MAX", 7)
    assert judged(place) == report
    monkeypatch.setattr(lemon_judging, "READ_MOST", 35)
    found = judged(place)
    assert found.lemons_since is not None
    assert day(50) < found.lemons_since
    assert max(one.days for one in found.lemons) <= (NOW - found.lemons_since) / timedelta(days=1)


async def test_the_controllers_judgement_has_them(tmp_path: Path) -> None:
    """As a process of its own judges. Mutants: the report on readings is kept and told without them."""
    store = ReadingStore(tmp_path / "readings")
    store.add([Reading(NOW, "n001", "op", "gemm_perf.bf16_tflops", "cuda:0", 700.0, "h100")])
    store.flush()
    env = {**os.environ, "HOSTLER_JOURNAL": str(kept(tmp_path, a_world()))}
    words = (sys.executable, "-m", "hostler.cli.main", "trend", "judge", str(store.folder), "-o", "json")
    child = await asyncio.create_subprocess_exec(*words, env=env, stdout=asyncio.subprocess.PIPE)
    said, _ = await child.communicate()
    told = msgspec.json.decode(said, type=TrendReport)
    assert LEMON_NODES | {LEMON_PART} <= {one.name for one in told.lemons if one.lemon}
    assert last_report(store.folder) == told
