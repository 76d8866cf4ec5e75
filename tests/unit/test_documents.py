"""Configuration documents: a malformed one is refused whole, with file, line and what to write instead."""

import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.core.policy.documents import digest, parse, schema
from hostler.core.policy.yaml_tree import MAX_BYTES, read
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.tables.conditions import CONDITIONS
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
        ("percent: 10", "count: 3", "pools.yaml:11: 'count' is given again (first in line 10); keep one"),
        ("sku: h100", "sku: h200", "pools.yaml:5: pool 'train' names the unknown SKU 'h200'; add it under skus"),
        ('"*": act', '"sing": act', "pools.yaml:5: pool 'train': mode for the unknown remedy 'sing'; write one of"),
        ("skus:", "skuz:", "pools.yaml:1: unknown section 'skuz'; write one of policy, skus, pools, routes, boot"),
        (
            "    target: 4",
            "    target: 4\n    name: other",
            "pools.yaml:8: pools: the row 'train' has the name 'other'",
        ),
        ("    target: 4", "    target: 4\n    name: train", None),
        ("    gpus: 8", "    gpus: 8\n    name: h200", "pools.yaml:4: skus: the row 'h100' has the name 'h200'; write"),
        ("    gpus: 8", "    gpus: 8\n    name: [h100]", "pools.yaml:4: skus: the row 'h100' has the name '['h100']'"),
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
        ("dooms: part", "dooms: all", "dooms is 'all'; write part, node or none"),
        ("time_scale: 1", "time_scale: 0", "time_scale must be above 0"),
        ("time_scale: 1", "time_scale: .nan", "policy.time_scale: nan is out of range"),
        ("    triage: {attempts", "    sledge: {attempts", "no rung 'sledge'"),
        (
            "window_s: 2592000}",
            "window_s: 7776001}",
            "rung 'triage' has window_s 7776001, and attempts",
        ),
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


@pytest.mark.parametrize("text", ["[" * 15_000, "{a: " * 15_000, "- " * 15_000 + "x"], ids=["lists", "maps", "items"])
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    """Mutant: nothing counts the levels, and the parser runs out of stack, slowly."""
    assert "nested too deeply" in problems(text)[0]


SLOW = {
    "an integer of 5,000 digits": (
        "pools: {train: {target: " + "9" * 5_000 + "}}",
        "a number of more than 64 characters",
    ),
    "a number to base 60": ("pools: " + "1:" * 100_000 + "1", "would be a number to base 60"),
    "a short number to base 60": ("pools: {train: {target: 1:30}}", "'1:30' would be a number to base 60"),
    "30,000 pools": (
        "pools:\n" + "".join(f"  p{n}: {{sku: a, target: 1}}\n" for n in range(30_000)),
        "more than 20000 entries",
    ),
    "a float of 5,000 digits": ("pools: " + "9" * 5_000 + ".0", "a number of more than 64 characters"),
    "a digit string under a tag": ("pools: !!int '" + "9" * 5_000 + "'", "a number of more than 64 characters"),
    "a day that is none": ("pools: 2024-13-45", "not YAML: '2024-13-45' is no timestamp"),
    "an int that is none": ("pools: !!int abc", "not YAML: 'abc' is no int"),
    "a set": ("pools: !!set {a, b}", "the tag tag:yaml.org,2002:set is not known here"),
    "a merge": ("pools: {<<: {a: 1}}", "the tag merge is not known here"),
    "two documents": ("pools: {}\n---\nskus: {}", "a second document begins"),
    "a list as a key": ("pools: {[1]: 2}", "a mapping or list is used as a key"),
}


@pytest.mark.parametrize("text", SLOW)
def test_what_would_be_slow_or_is_beyond_plain_data_is_refused_in_a_moment(text: str) -> None:
    """Mutants: numbers of any length are converted; base 60 is read; entries are not counted before the parse."""
    document, said = SLOW[text]
    began = time.process_time()
    assert said in problems(document)[0]
    assert time.process_time() - began < 1.0, "the policy beside it takes a tenth of that"


def test_the_line_of_what_is_refused_before_the_parse_is_told() -> None:
    assert problems("skus: {}\npools:\n  a: " + "1:" * 40 + "1\n")[0].startswith("pools.yaml:3: '1:1:1:1")


PLAIN = """
a: [1, -2, 0x1f, 0o7, 017, 1_000, 1.5, 1e3, 1.5e+3, .inf, ~, null, yes, no, on, true, '1', "2", 2024-01-02, x:y, '']
b:
  7: seven
  k: |
    block
"c d": !!str 12
e: ! 12
mac: "00:11:22:33:44:55"
f:
"""


def test_plain_data_reads_as_pyyaml_reads_it() -> None:
    assert read("a.yaml", PLAIN).value == yaml.safe_load(PLAIN)
    assert read("a.yaml", POLICY).value == yaml.safe_load(POLICY)


def test_a_large_configuration_is_read_in_time_that_grows_with_its_size() -> None:
    """Mutant: each pool is looked for from the first; the second then takes sixteen times as long as the first."""

    def took_s(pools: int) -> float:
        text = "skus: {a: {gpus: 8}}\npools:\n" + "".join(
            f"  p{n}: {{sku: a, target: 1, tenant: t, cluster: k}}\n" for n in range(pools)
        )
        began = time.process_time()
        parse({"policy.yaml": "policy: {rules: {}, rungs: {}}", "pools.yaml": text})
        return time.process_time() - began

    small = min(took_s(500) for _ in range(3))
    assert min(took_s(2_000) for _ in range(3)) < 9 * small


def test_what_is_too_large_empty_or_no_mapping_is_refused() -> None:
    assert "larger than" in problems("#" * (MAX_BYTES + 1))[0]
    assert "not a mapping" in problems("")[0]
    assert "not a mapping" in problems("- a")[0]
    with pytest.raises(InvalidInputError, match="no section 'policy'"):
        parse({"pools.yaml": GOOD})
    with pytest.raises(InvalidInputError, match="is in both"):
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
    assert set(shown["properties"]) == {"policy", "skus", "pools", "routes", "boot"}
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


POLICY_MISTAKES: list[tuple[tuple[str, ...], Any, str | None]] = [
    (("incidents", "domains", "moon"), {}, "no kind of shared part 'moon'"),
    (("slots", "percent"), 100, None),
    (("slots", "percent"), 101, "slots: percent is 101"),
    (("slots", "limit_s"), 0, "slots: limit_s is 0 s"),
    (("slots", "limit_s"), 10**6, "slots: limit_s is 11 d 13 h, period_s is 1 h"),
    (("time_scale",), 0, "time_scale must be above 0"),
    (("rungs", "sing"), {}, "no rung 'sing'"),
    (("rungs", "reboot", "window_s"), 90 * 86_400, None),
    (("rungs", "reboot", "window_s"), 91 * 86_400, "rung 'reboot' has window_s 7862400"),
    (("rules", "gpu.suspect", "remedy"), "sing", "no remedy 'sing'"),
    (("rules", "gpu.suspect", "remedy"), "", None),
    (("rules", "gpu.suspect", "condition"), "gpu.lost", "policy.rules: the row 'gpu.suspect' has the condition"),
    (("rules", "gpu.suspect", "timing"), "soon", "no timing 'soon'"),
    (("rules", "gpu.suspect", "dooms"), "all", "dooms is 'all'"),
    (("rules", "gpu.suspect", "domain"), "moon", "no domain 'moon' is taken whole"),
    (("rules", "gpu.suspect", "domain"), "nvlink", None),
    (("rules",), [1], "Expected `object`, got `array`"),
]


@pytest.mark.parametrize(("path", "value", "said"), POLICY_MISTAKES)
def test_a_policy_that_contradicts_itself_is_refused(path: tuple[str, ...], value: Any, said: str | None) -> None:
    """Mutants: any of the checks is left out, or is off by one."""
    tree = yaml.safe_load(POLICY)
    place = tree["policy"]
    for step in path[:-1]:
        place = place.setdefault(step, {})
    place[path[-1]] = value
    text = yaml.safe_dump(tree)
    if said is None:
        parse({"policy.yaml": text, "pools.yaml": GOOD})
        return
    found = problems(GOOD, text)
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("reset", "said"),
    [
        ({"domain": "planet"}, "SKU h100: no reset domain 'planet'"),
        ({"clients": ["sshd"]}, "SKU h100: 'sshd' may not be stopped for a reset"),
        ({"fabric": "sshd"}, "SKU h100: 'sshd' may not be stopped for a reset"),
    ],
)
def test_a_reset_that_nobody_knows_is_refused(reset: dict[str, Any], said: str) -> None:
    """Mutants: any of the checks is left out."""
    tree = yaml.safe_load(GOOD)
    tree["skus"]["h100"]["reset"] = reset
    (found,) = problems(yaml.safe_dump(tree))
    assert said in found


def test_a_policy_alone_is_a_configuration_and_pools_alone_are_none() -> None:
    """Mutants: what is not written is None; nobody misses the policy."""
    found = parse({"policy.yaml": POLICY})
    assert (found.skus, found.pools) == ({}, {})
    with pytest.raises(InvalidInputError, match="no section 'policy' in any document"):
        parse({"pools.yaml": GOOD})


def test_a_budget_of_all_of_a_pool_may_be_written() -> None:
    """Mutant: 100 percent are too many."""
    found = parse({"policy.yaml": POLICY, "p.yaml": GOOD.replace("percent: 10", "percent: 100")})
    assert found.pools["train"].budget.percent == 100
