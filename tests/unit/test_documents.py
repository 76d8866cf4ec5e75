"""Configuration documents: a malformed one is refused whole, with file, line and what to write instead."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.core.conditions import CONDITIONS
from hostler.core.errors import InvalidInputError, Problem
from hostler.core.policy.documents import MAX_BYTES, digest, parse, schema
from tests.kit import POLICY

GOOD = """\
skus:
  h100:
    gpus: 8
pools:
  train:
    sku: h100
    target: 4
    modes: {"*": act}
    budget:
      count: 2
      percent: 10
"""


def problems(text: str, policy: str = POLICY) -> list[str]:
    with pytest.raises(InvalidInputError) as refused:
        parse({"policy.yaml": policy, "pools.yaml": text})
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gpus: 8", "gpus: [8", "pools.yaml:4: not YAML"),
        ("    target: 4", "\ttarget: 4", "pools.yaml:7: not YAML"),
        ("target: 4", "tarjet: 4", "unknown field `tarjet`; remove it, or see the schema"),
        ("target: 4", "target: four", "Expected `int`, got `str`; write a value of that type"),
        ("    target: 4\n", "", "missing required field `target`; add it"),
        ("act}", "perhaps}", "Invalid enum value 'perhaps'"),
        ("count: 2", "count: -2", "pools.yaml:10: pools.train.budget.count: -2 is out of range; write 0 to 1e+09"),
        ("count: 2", "count: 99999999999", "is out of range"),
        ("percent: 10", "percent: .nan", "pools.yaml:11: pools.train.budget.percent: nan is out of range"),
        ("percent: 10", "percent: .inf", "is out of range"),
        ("percent: 10", "percent: 101", "pools.yaml:5: pool 'train': its budget is 101.0 percent; write 0 to 100"),
        ("percent: 10", "count: 3", "pools.yaml:11: 'count' stands here again (first in line 10); keep one"),
        ("sku: h100", "sku: h200", "pools.yaml:5: pool 'train' names the unknown SKU 'h200'; add it under skus"),
        ('"*": act', '"sing": act', "pools.yaml:5: pool 'train': mode for the unknown remedy 'sing'; or write '*'"),
        ("skus:", "skuz:", "pools.yaml:1: unknown section 'skuz'; write one of policy, skus, pools"),
        ("budget:", "budget: &b", None),
        ("    gpus: 8", "    gpus: *g", "pools.yaml: uses a YAML alias; write the value out"),
        ("gpus: 8", "gpus: !!python/object:os.system 8", "pools.yaml:3: not YAML"),
        ("  h100:\n    gpus: 8", "- h100", "Expected `object`, got `array`"),
    ],
)
def test_a_malformed_document_is_refused_with_file_line_and_a_way_out(old: str, new: str, said: str | None) -> None:
    """Mutants: duplicates are not looked for; numbers are not checked; the line is always 0."""
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    if said is None:
        parse({"policy.yaml": POLICY, "pools.yaml": text})
        return
    found = problems(text)
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("remedy: gpu_reset, timing: immediate", "remedy: hit_it, timing: immediate", "no remedy 'hit_it'"),
        ("timing: immediate", "timing: soon", "no timing 'soon'; write immediate or pending"),
        ("dooms: part", "dooms: all", "dooms 'all'; write part, node or none"),
        ("time_scale: 1", "time_scale: 0", "time_scale must be above 0"),
        ("time_scale: 1", "time_scale: .nan", "policy.time_scale: nan is out of range"),
        ("    triage: {attempts", "    sledge: {attempts", "no rung 'sledge'"),
        ("window_s: 2592000}", "window_s: 7776001}", "rung 'triage' counts 90 days back, and attempts are forgotten"),
    ],
)
def test_the_policy_is_checked_row_by_row_and_the_row_is_named(old: str, new: str, said: str) -> None:
    assert old in POLICY
    found = problems(GOOD, POLICY.replace(old, new, 1))
    assert any(said in problem for problem in found), found
    assert all(problem.startswith("policy.yaml:") for problem in found)


def test_an_alias_bomb_is_refused_unopened() -> None:
    bomb = "skus: &a [x, x]\n" + "".join(f"p{n}: &n{n} [*a, *a]\n" for n in range(9))
    assert problems(bomb) == ["pools.yaml: uses a YAML alias; write the value out"]


@pytest.mark.parametrize("text", ["[" * 30_000, "{a: " * 30_000, "- " * 30_000 + "x"])
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    """Mutant: nothing counts the levels, and the parser runs out of stack, slowly."""
    assert "nested too deeply" in problems(text)[0]


def test_what_is_too_large_empty_or_no_mapping_is_refused() -> None:
    assert "larger than" in problems("#" * (MAX_BYTES + 1))[0]
    assert "not a mapping" in problems("")[0]
    assert "not a mapping" in problems("- a")[0]
    with pytest.raises(InvalidInputError, match="no section 'policy'"):
        parse({"pools.yaml": GOOD})
    with pytest.raises(InvalidInputError, match="stands in both"):
        parse({"a.yaml": POLICY, "b.yaml": POLICY})


def test_every_condition_has_a_rule_and_every_rule_a_condition() -> None:
    rules = yaml.safe_load(POLICY)["policy"]["rules"]
    assert set(rules) == set(CONDITIONS)


def test_the_digest_tells_documents_apart_and_ignores_their_order() -> None:
    """Mutant: names are left out of the digest."""
    assert digest({"a": "x", "b": "y"}) == digest({"b": "y", "a": "x"})
    assert len({digest(d) for d in ({"a": "xb"}, {"ax": "b"}, {"a": "x", "b": ""}, {"a": "", "b": "x"})}) == 4


def test_the_schema_names_every_field_of_the_sections() -> None:
    shown = schema()
    assert set(shown["properties"]) == {"policy", "skus", "pools"}
    assert "evict_after_deadline" in str(shown["$defs"])


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.dates()
trees: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("sku", "target", "budget", "modes", "x", "percent", 7, None)), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(pools=trees, skus=trees)
@settings(max_examples=150)
def test_whatever_a_document_holds_it_is_read_or_refused(pools: Any, skus: Any) -> None:
    """Mutant: a mapping as a key is a crash."""
    text = yaml.safe_dump({"pools": pools, "skus": skus})
    refused: tuple[Problem, ...] = ()
    try:
        parse({"policy.yaml": "policy: {rules: {}, rungs: {}}", "pools.yaml": text})
    except InvalidInputError as error:
        refused = error.problems
    assert all(problem.what and problem.instead for problem in refused)
