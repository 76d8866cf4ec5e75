"""A node's page: what keeps a node in production from a pool is told, and nothing else does."""

import msgspec
import pytest

from hostler.cli.node_page import node_page
from hostler.core.state.index_keys import is_spare
from hostler.core.state.model import Condition, Phase, Severity
from hostler.core.state.scopes import text_hook
from tests.kit import NOW, a_node


def pool_of(phase: Phase, kinds: tuple[str, ...]) -> tuple[str, bool]:
    """Line of the page about the pool, and whether the node is a spare."""
    found = tuple(
        Condition(f"c{n}", kind, "a", Severity.warning, NOW, NOW, "observation", "hostler")
        for n, kind in enumerate(kinds)
    )
    node = a_node("a", pool="", phase=phase, conditions=found)
    told = node_page({"node": msgspec.to_builtins(node, enc_hook=text_hook)}, wide=False)
    return next((line.split("pool", 1)[1].strip() for line in told if line.startswith("  pool ")), ""), is_spare(node)


@pytest.mark.parametrize(
    ("phase", "kinds", "said"),
    [
        (Phase.production, (), "spare"),
        (Phase.production, ("trend.drift", "inventory.claimed_twice"), "spare"),
        (
            Phase.production,
            ("reading.never_verified", "host.clock_unsynchronised"),
            "none, and no spare while this stands: host.clock_unsynchronised, reading.never_verified",
        ),
        (Phase.test, ("reading.never_verified",), ""),
    ],
)
def test_who_serves_no_pool_says_what_keeps_it_from_one(phase: Phase, kinds: tuple[str, ...], said: str) -> None:
    """As it is decided. Mutants: each node in production is called a spare; a drift bars it."""
    told, spare = pool_of(phase, kinds)
    assert told == said
    if phase is Phase.production:
        assert spare == (said == "spare")
