"""Of a node's series the one nearest to its alarm, whatever the order in which metrics were judged."""

import numpy as np

from hostler.core.state.trends import DriftScores
from hostler.runtime.worst_series import WorstSeries
from tests.kit import NOW

HEAT = [("n1", "gpu0"), ("n1", "gpu1"), ("n2", "gpu0"), ("n3", "gpu0")]
FANS = [("n2", ""), ("n4", "")]


def told(found: DriftScores) -> dict[str, tuple[int, str]]:
    rows = zip(found.nodes, found.score, found.worst, strict=True)
    return {node: (score, found.series[at]) for node, score, at in rows}


def test_the_nearest_series_of_each_node_counts_whichever_comes_first() -> None:
    """Mutants: the last metric's; the first part's; a score below its alarm that is rounded up to it."""
    metrics = {"heat": (HEAT, [0.1, 0.999, 0.4, np.nan]), "fans": (FANS, [0.25, 0.0])}
    for order in (("heat", "fans"), ("fans", "heat")):
        worst = WorstSeries()
        for name in order:
            series, nearness = metrics[name]
            worst.add(name, series, np.array(nearness))
        assert told(worst.scores(NOW)) == {"n1": (99, "heat/gpu1"), "n2": (40, "heat/gpu0"), "n4": (0, "fans")}


def test_who_was_not_judged_has_no_score() -> None:
    """Mutant: NaN counts as 0."""
    worst = WorstSeries()
    worst.add("heat", HEAT, np.full(4, np.nan))
    assert worst.scores(NOW) == DriftScores(NOW)
