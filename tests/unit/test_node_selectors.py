"""Selectors of nodes: what each term takes, and what is refused with the words that help."""

import pytest

from hostler.core.state.assets import Binding, Position
from hostler.core.state.model import Condition, Node, Phase, Severity
from hostler.server.node_selectors import SELECTOR_MAX, terms_of
from hostler.server.paging import Selection
from hostler.server.problems import ProblemError
from tests.kit import NOW, a_node

A = a_node("a", pool="train", phase=Phase.production)
FAULT = Condition("b/gpu.ecc_dbe", "gpu.ecc_dbe", "b", Severity.critical, NOW, NOW, "remedy", "policy")
B = a_node("b", pool="", phase=Phase.triage, conditions=(FAULT,))
C = a_node("c", pool="serve", phase=Phase.production, tags=(("lab", "yes"),))


def found(selector: str) -> str:
    wanted = Selection(terms=terms_of(selector))
    return "".join(node.id for node in (A, B, C) if wanted.matches(node))


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        ("", "abc"),
        ("phase=production", "ac"),
        ("phase==production,pool=train", "a"),
        ("phase!=production", "b"),
        ("pool!=train", "bc"),
        ("pool in (train, serve)", "ac"),
        ("pool notin (train,serve)", "b"),
        ("pool", "ac"),
        ("!pool", "b"),
        ("! pool , phase = triage", "b"),
        ("condition=gpu.ecc_dbe", "b"),
        ("!condition", "ac"),
        ("severity in (critical,catastrophic)", "b"),
        ("tag=lab", "c"),
        ("tag=lab=yes", "c"),
        ("tag!=lab", "ab"),
        ("tag=lab=no", ""),
        ("node in (a,c)", "ac"),
        ("phase=production,phase=triage", ""),
    ],
)
def test_a_selector_takes_what_meets_every_term(selector: str, nodes: str) -> None:
    """Mutants: `!=` needs the key; a set takes its negation; one term is enough; an absent key is a value."""
    assert found(selector) == nodes


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("phase", ""),
        ("phase=produktion", "'produktion' is no phase; use "),
        ("severity=high", "'high' is no severity; use info, warning, degraded, critical, catastrophic"),
        ("colour=red", "select by phase, pool, site,"),
        ("pool=", "none of them empty; `!pool` selects nodes without one"),
        ("pool in ()", "none of them empty"),
        ("pool in (a,,b)", "none of them empty"),
        ("!pool=train", "`!pool` selects"),
        ("pool=train,", "write KEY=VALUE, KEY!=VALUE, KEY in (A, B)"),
        (",", "write KEY=VALUE"),
        ("pool in (a", "write KEY=VALUE"),
        ("pool = a b) or 1=1", "write KEY=VALUE"),
        ("poolin(a)", "write KEY=VALUE"),
        ("pool\x1b[31m", "write KEY=VALUE"),
        (",".join(["pool=a"] * 21), "at most 20 terms"),
        (f"pool in ({','.join(map(str, range(101)))})", "give 1 to 100 values"),
        ("pool=" + "x" * SELECTOR_MAX, f"at most {SELECTOR_MAX} characters"),
    ],
)
def test_what_is_not_understood_is_refused_with_what_to_write(selector: str, said: str) -> None:
    if not said:
        assert terms_of(selector)
        return
    with pytest.raises(ProblemError) as refused:
        terms_of(selector)
    assert refused.value.status == 400
    assert said in refused.value.problem.instead


def test_only_terms_that_an_index_holds_are_looked_up_there() -> None:
    """Mutant: a negated term's index entry is used, and the page loses every node that it should hold."""
    wanted = Selection(terms=terms_of("phase=production,pool!=train,rack in (r1,r2),condition,rack=r9"))
    assert list(wanted.index_keys()) == ["phase:production", "ailing", "member:rack:r9"]


def test_of_a_nodes_conditions_those_are_listed_that_were_asked_for() -> None:
    """Mutant: a negated term takes the condition that it leaves out."""
    assert Selection(terms=terms_of("condition in (a,b),pool")).takes_condition("a")
    assert not Selection(terms=terms_of("condition=a")).takes_condition("b")
    assert all(Selection(terms=terms_of(text)).takes_condition("a") for text in ("condition", "condition!=b", ""))


def test_a_node_is_found_by_the_names_it_has_now() -> None:
    old, now = Binding("serial", "S-OLD", NOW, NOW), Binding("serial", "S-NEW", NOW)
    node = Node("n1", Position("c1", rack="r1"), "hgx", Phase.production, NOW, NOW, (old, now))
    assert [Selection(terms=terms_of(f"node={name}")).matches(node) for name in ("n1", "S-NEW", "S-OLD")] == [
        *(True, True, False)
    ]
