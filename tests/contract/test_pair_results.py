"""From a check between nodes to one finding: the suite's report, agent's facts, server, rounds, controller."""

import json
import os
from collections.abc import Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.agent.checks.check_suite import _facts, _read_report
from hostler.controller.inputs import LinksSeen
from hostler.core.fabric.design import Cable
from hostler.core.fabric.path_blame import PairResult, PathVerdict, judge_pairs
from hostler.core.fabric.routes import NO_ROUTES, Routes
from hostler.core.state.links import LinkCase, LinkCheck, LinkRound
from hostler.core.state.model import Facts, Outcome
from hostler.polling import pair_results
from hostler.polling.link_rounds import with_paths
from hostler.polling.pair_results import KEPT_FOR, PairResults
from hostler.server.check_readings import pairs_of, taken_out
from hostler_checks import site_checks, suite
from hostler_checks.profiles import load
from hostler_checks.report import body
from hostler_checks.runner import CheckRunner
from hostler_checks.state_dir import signed
from hostler_checks.suite import SuiteRun
from tests.checks.suite_runs import env, quiet
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.kit import Drive, a_node, configuration, pool_document

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SLOW_LEAF = "leaf-001-1"
PRINTED = {"looked": "3 partners", "pairs": {"mlx5_0>gpu-0002": 188.0, "mlx5_1>gpu-0002": 371.5}}


def _outcome(facts: Facts) -> Outcome:
    return Outcome("op-1", "gpu-0001", "done", facts=facts)


def test_a_sites_check_between_nodes_reaches_the_server_as_pairs_and_judges_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the suite on a quiet node: beside others' work it tells no pair.

    Mutants: pairs are readings of the node; they stay in the journal's outcome.
    """
    site = tmp_path / "suite.d"
    site.mkdir(mode=0o755)
    check = f"check: rails\nscript: |\n  echo '{json.dumps(PRINTED)}'\nprofiles: [gate]\n"
    (site / "rails.yaml").write_text(check)
    own = tmp_path / "own_profile.yaml"
    own.write_text("profile: gate\nstages: [{checks: [{check: gemm_abft, seconds: 0.1s, with: {n: 64}}]}]")
    monkeypatch.setenv("PYTHONPATH", env()["PYTHONPATH"])
    profile = site_checks.added(load(str(own)), site, os.geteuid())
    found = suite.run(SuiteRun(profile, tmp_path / "state", "gpu-0001", 1.0, "cpu"), CheckRunner(watch=quiet))
    facts = _facts(_read_report(json.dumps(signed(body(profile, found))).encode()))
    outcome = _outcome(facts)
    told = pairs_of(a_node("gpu-0001"), outcome, NOW, str)
    assert [(one.a, one.z, one.gbps) for one in told.results] == [
        ("gpu-0001:mlx5_0", "gpu-0002:mlx5_0", 188.0),
        ("gpu-0001:mlx5_1", "gpu-0002:mlx5_1", 371.5),
    ]
    bare, readings = taken_out(a_node("gpu-0001"), outcome, NOW)
    assert not any(name.startswith("pair:") for name in bare.facts)
    assert not any("mlx5" in reading.metric for reading in readings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pair:": 1.0},
        {"pair:mlx5_0": 1.0},
        {"pair:>gpu-0003": 1.0},
        {"pair:m>": 1.0},
        {"pair:m>gpu-0003": "fast"},
        {"pair:m>gpu-0003": -1.0},
        {"pair:m>gpu-0003": float("nan")},
        {"pair:m>gpu-0003": float("inf")},
        {"pair:m>gpu-0003": 1e9},
        {"pair:m>gpu-0003": True},
        {"pair:m\n>gpu-0003": 3.0},
        {"pair:m>nobody": 3.0},
        {"pair:m>gpu-0001": 3.0},
        {"pair:mlx5_0>second": 3.0},
    ],
    ids=str,
)
def test_an_outcome_with_one_pair_that_is_none_tells_no_pair(wrong: Facts) -> None:
    """Mutants: the others count; a node that nobody knows is a partner; two names of a node are two partners."""
    known = {"gpu-0001": "gpu-0001", "gpu-0002": "gpu-0002", "second": "gpu-0002", "gpu-0003": "gpu-0003"}
    good: Facts = {"pair:mlx5_0>gpu-0002": 188.0}
    node = a_node("gpu-0001")
    assert len(pairs_of(node, _outcome(good), NOW, lambda name: known.get(name, "")).results) == 1
    told = pairs_of(node, _outcome({**good, **wrong}), NOW, lambda name: known.get(name, ""))
    assert told.results == ()
    assert told.why
    assert told.why.isprintable()


def _screened(hosts: list[str], slow: str = SLOW_LEAF) -> list[PairResult]:
    """Each host of two units beside three others, over each rail."""
    cables = a_fabric()
    leaf = {str(port): far.device for port, far in cables.links.items()}
    found = []
    for rail in ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"):
        for place, host in enumerate(hosts):
            for step in (1, 4, 5):
                a, z = f"{host}:{rail}", f"{hosts[(place + step) % len(hosts)]}:{rail}"
                reached = 90.0 if slow in (leaf[a], leaf[z]) else 186.0
                found.append(PairResult(a, z, reached, NOW))
    return found


def test_a_slow_leaf_is_one_finding_with_one_ticket_and_one_incident() -> None:
    """Mutants: each of its six nodes bears a condition; each link is ticketed."""
    cables = a_fabric()
    names = sorted(cables.hosts())
    pools = configuration({"train": pool_document(target=12, modes={"*": "act"})})
    cell = FabricCell(Drive(pools, nodes=tuple(a_node(name, pool="train") for name in names)), cables)
    results = PairResults()
    results.add(_screened(names))
    verdict = results.judged(cables.design.cables, lambda name: name, NOW)
    faults, clean = with_paths((), [], [], verdict)
    cell.drive.step(LinksSeen(LinkRound(NAME, cell.drive.now, 0, tuple(faults), tuple(clean))))
    (case,) = cell.drive.fleet.link_cases.values()
    assert (case.fault.switch, case.fault.check, len(case.fault.links)) == (SLOW_LEAF, LinkCheck.slow, 6)
    (ticket,) = [one for one in cell.drive.fleet.tickets.values() if one.kind == "link"]
    assert (ticket.id, ticket.component) == (case.ticket, SLOW_LEAF)
    (incident,) = cell.drive.fleet.incidents.values()
    assert (incident.scope.text, len(incident.members)) == (f"switch:{SLOW_LEAF}", 6)
    assert not any(c.type.startswith("network") for name in names for c in cell.drive.node(name).conditions)


def test_a_case_that_pairs_made_is_over_by_pairs_and_not_by_counters() -> None:
    """Mutants: a round of counters without a fault counts as clean; a link with a fault of its own is told as slow."""
    cables = a_fabric()
    names = sorted(cables.hosts())
    slow = judge_pairs(cables.design.cables, _screened(names))
    (fault,) = slow.faults
    case = LinkCase(NAME, fault, NOW)
    assert with_paths([case], [], [fault.key], PathVerdict()) == ([], [])
    fast = judge_pairs(cables.design.cables, _screened(names, slow="nothing"))
    assert with_paths([case], [], [], fast) == ([], [fault.key])
    dirty = replace(fault, check=LinkCheck.down)
    assert with_paths([], [dirty], [], slow) == ([dirty], [])


def test_results_are_kept_for_a_day_and_the_last_of_a_pair_counts() -> None:
    results = PairResults()
    cables = a_fabric()
    names = sorted(cables.hosts())
    results.add(_screened(names))
    results.add(_screened(names, slow="nothing"))
    assert results.judged(cables.design.cables, lambda name: name, NOW).faults == ()
    later = NOW + KEPT_FOR + timedelta(seconds=1)
    assert results.judged(cables.design.cables, lambda name: name, later) == PathVerdict()


def test_nodes_are_known_by_their_names_in_the_design() -> None:
    results = PairResults()
    results.add([replace(r, a=f"id-{r.a}", z=f"id-{r.z}") for r in _screened(sorted(a_fabric().hosts()))])
    named = results.judged(a_fabric().design.cables, lambda name: name.removeprefix("id-"), NOW)
    assert [fault.switch for fault in named.faults] == [SLOW_LEAF]
    assert results.judged(a_fabric().design.cables, lambda name: name, NOW).faults == ()


def test_a_verdict_is_reached_anew_only_where_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: each round judges; a result, an age, a design, a name or a way that changed is not seen."""
    judged: list[int] = []

    def counted(cables: Sequence[Cable], results: Sequence[PairResult], routes: Routes) -> PathVerdict:
        judged.append(len(results))
        return judge_pairs(cables, results, routes)

    monkeypatch.setattr(pair_results, "judge_pairs", counted)
    cables, other, results = a_fabric().design.cables, a_fabric(3).design.cables, PairResults()
    screened = _screened([f"gpu-{number:04d}" for number in range(1, 5)])
    results.add(screened)
    first = results.judged(cables, str, NOW)
    assert results.judged(cables, str, NOW + timedelta(minutes=12)) is first
    results.add(())
    results.judged(cables, str, NOW)
    assert judged == [32]
    results.judged(other, str, NOW)
    results.judged(cables, str, NOW)  # of two networks neither forgets the other
    results.judged(cables, lambda name: f"x{name}", NOW)
    results.judged(cables, lambda name: f"x{name}", NOW, copy(NO_ROUTES))
    results.add([replace(screened[0], at=NOW + KEPT_FOR)])
    results.judged(cables, str, NOW)
    results.judged(cables, str, NOW + KEPT_FOR * 1.5)
    assert judged == [32, 32, 32, 32, 32, 1]
