"""A condition that is unknown is shown as that wherever conditions are shown."""

import msgspec
import pytest

from hostler.cli.node_page import node_page
from hostler.cli.status_screen import screen
from hostler.cli.table_columns import CONDITIONS, NODE_CONDITIONS
from hostler.core.report.sentences import sentence
from hostler.core.state.scopes import text_hook
from hostler.server.api_resources import node_row
from tests.kit import NOW, Drive, after
from tests.scenario.test_silence import HOT, changes, watched
from tests.unit.test_cli_output import STATUS


@pytest.fixture
def doubted() -> Drive:
    """Node a runs hot, is not heard, and nobody knows whether it still does."""
    drive = watched()
    drive.observe("a", "gpu_state", facts=HOT)
    drive.silence("a")
    drive.wait(hours=1)
    return drive


def test_a_list_of_nodes_names_what_is_unknown(doubted: Drive) -> None:
    row = node_row(doubted.node("a"))
    assert "gpu.thermal" in row.conditions
    assert "gpu.thermal" in row.unknown
    assert "agent.lost" not in row.unknown
    assert node_row(doubted.node("b")).unknown == ()


@pytest.mark.parametrize("view", [NODE_CONDITIONS, CONDITIONS])
def test_a_list_of_conditions_says_since_when(doubted: Drive, view: object) -> None:
    found = next(c for c in doubted.node("a").conditions if c.type == "gpu.thermal")
    item = msgspec.to_builtins(found, enc_hook=text_hook)
    item = item if view is NODE_CONDITIONS else {"condition": item}
    columns = (NODE_CONDITIONS if view is NODE_CONDITIONS else CONDITIONS).columns
    (column,) = [one for one in columns if one.title == "UNKNOWN FOR"]
    assert column.read(item, after(hours=1)) == "30m"


def test_the_screen_counts_what_is_unknown() -> None:
    status = {**STATUS, "now": NOW.isoformat(), "conditions": {"gpu.thermal": 3}, "unknown": {"gpu.thermal": 2}}
    assert "      3 × gpu.thermal (2 unknown: who saw them is silent)" in screen(status)


def test_the_page_of_a_node_says_it(doubted: Drive) -> None:
    page = {"node": msgspec.to_builtins(doubted.node("a"), enc_hook=text_hook), "now": after(hours=1).isoformat()}
    told = "\n".join(node_page(page, wide=False))
    (line,) = [one for one in told.splitlines() if "gpu.thermal on a-G0" in one]
    assert "unknown for" in line
    assert "who saw it is silent" in line
    assert "unknown for" not in next(one for one in told.splitlines() if "agent.lost" in one)


def test_a_history_says_it_in_words(doubted: Drive) -> None:
    changed, *_ = changes(doubted)
    assert "gpu.thermal" in sentence(changed)
    assert "unknown, its sources are silent" in sentence(changed)
    told = doubted.transcript("a")
    assert "sources silent for a: agent" in told
    assert "nobody can say" not in doubted.transcript("b")
