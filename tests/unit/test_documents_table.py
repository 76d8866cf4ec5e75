"""Every refusal of a configuration document as it is written: the file, the line, what is wrong and what to write."""

from typing import Any

import pytest
import yaml

from hostler.core.diagnose.gate.gpus import GPU_READINGS
from hostler.core.policy.documents import ACTIONS, digest, parse, schema
from hostler.core.state.configuration import Rung
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.model import RESET_CLIENTS
from hostler.core.state.syndromes import CAUSES

SMALL = """\
policy:
  rules:
    gpu.suspect: {remedy: reboot, timing: pending, dooms: part}
  rungs:
    reboot: {attempts: 2, window_s: 3600}
  incidents:
    domains:
      leaf: {}
  slots:
    period_s: 600
    limit_s: 60
    percent: 5
  time_scale: 1
"""
SKUS = """\
skus:
  h100:
    gpus: 8
    reset:
      domain: gpu
      clients: [nvsm.service]
    without: []
"""
POOLS = """\
pools:
  train:
    sku: h100
    target: 4
    budget: {count: 2, percent: 10}
    modes: {"*": act}
"""
FILES = {"a-policy.yaml": SMALL, "b-skus.yaml": SKUS, "c-pools.yaml": POOLS}


def refusal(**changed: str) -> list[tuple[str, int, str, str]]:
    """The problems of the three files with some of them changed: file, line, what, instead."""
    names = {"policy": "a-policy.yaml", "skus": "b-skus.yaml", "pools": "c-pools.yaml"}
    with pytest.raises(InvalidInputError) as refused:
        parse({**FILES, **{names[section]: text for section, text in changed.items()}})
    return [(p.where, p.line, p.what, p.instead) for p in refused.value.problems]


MISTAKES: list[tuple[str, str, str, tuple[str, int, str, str]]] = [
    (
        "policy",
        "remedy: reboot",
        "remedy: sing",
        ("a-policy.yaml", 3, "no remedy 'sing'", f"write one of {', '.join(ACTIONS)}, or ''"),
    ),
    (
        "policy",
        "timing: pending",
        "timing: soon",
        ("a-policy.yaml", 3, "no timing 'soon'", "write immediate or pending"),
    ),
    ("policy", "dooms: part", "dooms: all", ("a-policy.yaml", 3, "dooms is 'all'", "write part, node or none")),
    (
        "policy",
        "dooms: part",
        "domain: row",
        ("a-policy.yaml", 3, "no domain 'row' is taken whole", "write one of nvlink, rack"),
    ),
    (
        "policy",
        "    reboot: {",
        "    sing: {",
        ("a-policy.yaml", 5, "no rung 'sing'", "write one of gpu_reset, reboot, power_cycle, triage"),
    ),
    (
        "policy",
        "window_s: 3600",
        "window_s: 8640000",
        (
            "a-policy.yaml",
            5,
            "rung 'reboot' has window_s 8640000, and attempts are forgotten after 90 d",
            "write a window_s of at most 7776000",
        ),
    ),
    (
        "policy",
        "attempts: 2",
        "attempts: -1",
        ("a-policy.yaml", 5, "policy.rungs.reboot.attempts: -1 is out of range", "write 0 to 1e+09"),
    ),
    (
        "policy",
        "      leaf: {}",
        "      moon: {}",
        ("a-policy.yaml", 8, "no kind of shared part 'moon'", f"write one of {', '.join(CAUSES)}"),
    ),
    (
        "policy",
        "limit_s: 60",
        "limit_s: 600",
        (
            "a-policy.yaml",
            9,
            "slots: limit_s is 10 min, period_s is 10 min",
            "write a limit_s above 0 and below period_s",
        ),
    ),
    (
        "policy",
        "limit_s: 60",
        "limit_s: 0",
        (
            "a-policy.yaml",
            9,
            "slots: limit_s is 0 s, period_s is 10 min",
            "write a limit_s above 0 and below period_s",
        ),
    ),
    (
        "policy",
        "percent: 5",
        "percent: 100.5",
        ("a-policy.yaml", 9, "slots: percent is 100.5", "write 0 to 100"),
    ),
    (
        "policy",
        "time_scale: 1",
        "time_scale: 0",
        ("a-policy.yaml", 13, "time_scale must be above 0", "write 1 for real time"),
    ),
    (
        "policy",
        "time_scale: 1",
        "time_scales: 1",
        (
            "a-policy.yaml",
            1,
            "policy: Object contains unknown field `time_scales`",
            "remove it, or see the schema with `hostler policy schema`",
        ),
    ),
    (
        "policy",
        "policy:",
        "polizy:",
        ("a-policy.yaml", 1, "unknown section 'polizy'", "write one of policy, skus, pools, routes, boot, admission"),
    ),
    (
        "skus",
        "domain: gpu",
        "domain: planet",
        ("b-skus.yaml", 4, "SKU h100: no reset domain 'planet'", "write one of gpu, baseboard"),
    ),
    (
        "skus",
        "clients: [nvsm.service]",
        "clients: [sshd]",
        (
            "b-skus.yaml",
            4,
            "SKU h100: 'sshd' may not be stopped for a reset",
            f"write some of {', '.join(RESET_CLIENTS)}",
        ),
    ),
    (
        "skus",
        "clients: [nvsm.service]",
        "fabric: sshd",
        (
            "b-skus.yaml",
            4,
            "SKU h100: 'sshd' may not be stopped for a reset",
            f"write some of {', '.join(RESET_CLIENTS)}",
        ),
    ),
    (
        "skus",
        "without: []",
        "parts: {nic: 8, gpu: 4}",
        (
            "b-skus.yaml",
            7,
            "SKU h100: gpus is 8, parts.gpu is 4",
            "keep gpus, set to what the node has, and remove gpu from parts",
        ),
    ),
    (
        "skus",
        "gpus: 8",
        "gpus: 0\n    parts: {gpu: 8}",
        (
            "b-skus.yaml",
            4,
            "SKU h100: gpus is 0, parts.gpu is 8",
            "keep gpus, set to what the node has, and remove gpu from parts",
        ),
    ),
    (
        "skus",
        "without: []",
        "without: [taste]",
        (
            "b-skus.yaml",
            7,
            "SKU h100: a gate knows no reading 'taste'",
            f"write some of {', '.join(GPU_READINGS)}",
        ),
    ),
    (
        "skus",
        "gpus: 8",
        "gpus: eight",
        ("b-skus.yaml", 3, "skus.h100.gpus: Expected `int`, got `str`", "write a value of that type"),
    ),
    (
        "pools",
        "sku: h100",
        "sku: b200",
        ("c-pools.yaml", 2, "pool 'train' names the unknown SKU 'b200'", "add it under skus"),
    ),
    (
        "pools",
        "percent: 10",
        "percent: 101",
        ("c-pools.yaml", 2, "pool 'train': its budget is 101.0 percent", "write 0 to 100"),
    ),
    (
        "pools",
        '"*": act',
        "sing: act",
        (
            "c-pools.yaml",
            2,
            "pool 'train': mode for the unknown remedy 'sing'",
            f"write one of {', '.join(ACTIONS)}, or '*'",
        ),
    ),
    (
        "pools",
        "    target: 4\n",
        "",
        ("c-pools.yaml", 2, "pools.train: Object missing required field `target`", "add it"),
    ),
    (
        "pools",
        "target: 4",
        "target: four",
        ("c-pools.yaml", 4, "pools.train.target: Expected `int`, got `str`", "write a value of that type"),
    ),
    (
        "pools",
        "target: 4",
        "target: 2000000000",
        ("c-pools.yaml", 4, "pools.train.target: 2000000000 is out of range", "write 0 to 1e+09"),
    ),
]


@pytest.mark.parametrize(("section", "old", "new", "said"), MISTAKES, ids=[m[2].strip() for m in MISTAKES])
def test_each_mistake_is_named_with_its_line_and_nothing_else_is(
    section: str, old: str, new: str, said: tuple[str, int, str, str]
) -> None:
    """Mutants: a check is dropped, taken as given or moved by one; a line is another row's; what follows is told."""
    text = {"policy": SMALL, "skus": SKUS, "pools": POOLS}[section]
    assert text.count(old) == 1
    assert refusal(**{section: text.replace(old, new)}) == [said]


@pytest.mark.parametrize(
    ("section", "old", "new"),
    [
        ("policy", "remedy: reboot", "remedy: ''"),
        ("policy", "remedy: reboot", "remedy: release"),
        ("policy", "timing: pending", "timing: immediate"),
        ("policy", "dooms: part", "dooms: node"),
        ("policy", "dooms: part", "dooms: none"),
        ("policy", "dooms: part", "domain: rack"),
        ("policy", "dooms: part", "domain: ''"),
        ("policy", "window_s: 3600", "window_s: 7776000"),
        ("policy", "attempts: 2", "attempts: 1000000000"),
        ("policy", "attempts: 2", "attempts: 0"),
        ("policy", "limit_s: 60", "limit_s: 599"),
        ("policy", "percent: 5", "percent: 100"),
        ("policy", "percent: 5", "percent: 0"),
        ("policy", "time_scale: 1", "time_scale: 0.5"),
        ("skus", "domain: gpu", "domain: baseboard"),
        ("skus", "clients: [nvsm.service]", "clients: []"),
        ("skus", "clients: [nvsm.service]", "fabric: ''"),
        ("skus", "without: []", f"without: [{next(iter(GPU_READINGS))}]"),
        ("pools", "percent: 10", "percent: 100"),
        ("pools", "percent: 10", "percent: 0"),
        ("pools", '"*": act', "reboot: observe"),
        ("pools", '"*": act', "idle_check: propose"),
        ("pools", '"*": act', "examine: observe"),
    ],
)
def test_what_stands_at_its_limit_is_taken(section: str, old: str, new: str) -> None:
    """Mutants: a comparison is moved by one; a word that may be written is not known."""
    names = {"policy": "a-policy.yaml", "skus": "b-skus.yaml", "pools": "c-pools.yaml"}
    text = FILES[names[section]]
    assert text.count(old) == 1
    assert parse({**FILES, names[section]: text.replace(old, new)}).pools.keys() == {"train"}


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Mutants: the first problem ends the look; sections that nobody knows are told with what follows from them."""
    found = refusal(pools=POOLS.replace("h100", "b200"), policy=SMALL.replace("pending", "soon"))
    assert [(where, line) for where, line, *_ in found] == [("a-policy.yaml", 3), ("c-pools.yaml", 2)]
    found = refusal(policy=SMALL.replace("policy:", "polizy:"), pools=POOLS.replace("target: 4", "target: four"))
    assert [what for _, _, what, _ in found] == ["unknown section 'polizy'"]
    found = refusal(policy=SMALL.replace("attempts: 2", "attempts: x"), pools=POOLS.replace("target: 4", "target: x"))
    assert [(where, line) for where, line, *_ in found] == [("a-policy.yaml", 4), ("c-pools.yaml", 4)]


def test_a_section_of_a_wrong_type_hides_no_policy_and_makes_up_no_second_problem() -> None:
    """Mutant: a policy that cannot be read is also told as missing."""
    found = refusal(policy="policy: [1]\n")
    assert found == [("a-policy.yaml", 1, "policy: Expected `object`, got `array`", "write a value of that type")]
    assert refusal(policy="policy: {rules: 1, rungs: {}}\n") == [
        ("a-policy.yaml", 1, "policy: Expected `object`, got `int`", "write a value of that type")
    ]
    assert refusal(policy="policy: {rules: {x: 1}, rungs: {}}\n")[0][2:] == (
        "policy: Expected `object`, got `int`",
        "write a value of that type",
    )


def test_a_section_in_two_documents_is_refused_with_both_names() -> None:
    """Mutant: which of them counts is left to chance."""
    with pytest.raises(InvalidInputError) as refused:
        parse({**FILES, "d.yaml": SKUS})
    assert refused.value.problems == (
        Problem("b-skus.yaml and d.yaml", 0, "section 'skus' is in both", "keep it in one document"),
    )


def test_what_no_document_holds_is_told_of_the_configuration() -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse({"p.yaml": POOLS, "s.yaml": SKUS})
    assert refused.value.problems == (Problem("configuration", 0, "no section 'policy' in any document", "add one"),)


def test_a_long_unknown_section_is_cut() -> None:
    ((_, _, what, _),) = refusal(pools=f"{'x' * 300}: 1\n")
    assert what == f"unknown section '{'x' * 100}'"


def test_a_row_that_is_named_otherwise_than_its_key_is_refused_at_its_line() -> None:
    """A search for one of the two names would find the other, or none. Mutant: the row's own name is taken."""
    only = {"a.yaml": SMALL.replace("{remedy: reboot", "{condition: gone, remedy: sing")}
    with pytest.raises(InvalidInputError) as refused:
        parse(only)
    assert [(p.where, p.line, p.what) for p in refused.value.problems] == [
        ("a.yaml", 3, "policy.rules: the row 'gpu.suspect' has the condition 'gone'")
    ]


def test_the_line_of_a_wrong_type_is_the_deepest_that_can_be_followed() -> None:
    """Mutants: the search stops at once, or never."""
    found = refusal(policy=SMALL.replace("percent: 5", "percent: x"))
    assert found == [("a-policy.yaml", 12, "policy: Expected `float`, got `str`", "write a value of that type")]


def test_a_wrong_type_in_a_row_is_told_with_the_row_and_its_line() -> None:
    """Mutant: the section's first line is told, and nobody knows which of forty SKUs is meant."""
    found = refusal(skus="skus:\n  a: {gpus: 8}\n  b:\n    gpus: eight\n")
    assert ("b-skus.yaml", 4, "skus.b.gpus: Expected `int`, got `str`", "write a value of that type") in found


def test_rows_have_the_names_of_their_keys_and_sections_may_be_left_out() -> None:
    """Mutants: names are not written into the rows; a name that stands there is overwritten."""
    found = parse(FILES)
    assert found.policy.rules["gpu.suspect"].condition == "gpu.suspect"
    assert (found.skus["h100"].name, found.pools["train"].name) == ("h100", "train")
    assert found.policy.rungs == {"reboot": Rung(attempts=2, window_s=3600.0)}
    assert found.sha256 == digest(FILES)
    alone = parse({"a.yaml": SMALL})
    assert (alone.skus, alone.pools) == ({}, {})
    assert alone.sha256 == digest({"a.yaml": SMALL})
    bare = parse({"a.yaml": "policy: {rules: {}, rungs: {}}\n", "b.yaml": "skus: {}\npools: {}\n"})
    assert (bare.skus, bare.pools) == ({}, {})


def test_the_digest_is_one_that_anybody_can_compute() -> None:
    """Mutants: a length is left out; the order is that of writing."""
    known = "721c24a1d711fb34"
    assert digest({"b": "y", "a": "x"})[:16] == known


def test_the_schema_is_that_of_the_sections() -> None:
    shown: dict[str, Any] = schema()
    assert shown["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (shown["title"], shown["type"], shown["additionalProperties"]) == ("Hostler configuration", "object", False)
    assert shown["properties"] == {
        "policy": {"$ref": "#/$defs/Policy"},
        "skus": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Sku"}},
        "pools": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Pool"}},
        "routes": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Route"}},
        "boot": {"$ref": "#/$defs/BootConfiguration"},
    }
    assert {"Policy", "Sku", "Pool", "Route", "Rule", "Rung"} <= shown["$defs"].keys()
    assert yaml.safe_load(SMALL)["policy"].keys() <= shown["$defs"]["Policy"]["properties"].keys()
