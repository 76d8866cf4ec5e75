"""A SKU's pass rules in the configuration: what is refused at activation, and that the core's table is the suite's."""

from typing import Any

import pytest
import yaml

from hostler.core.policy.documents import parse
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.pass_rules import PassRules, ReadingRule, StageRule, document
from hostler.core.tables import suite_checks
from hostler_checks import pass_rules
from hostler_checks.catalogue import CHECKS
from hostler_checks.limits import limit_of
from hostler_checks.profiles import NAMES, load

POLICY = "policy: {rules: {}, rungs: {}}\n"


def documents(checks: Any, **sku: Any) -> dict[str, str]:
    skus = {"h100": {"gpus": 8, "checks": checks, **sku}}
    return {"policy.yaml": POLICY, "skus.yaml": yaml.safe_dump({"skus": skus})}


GOOD: dict[str, Any] = {
    "hours": 36,
    "required": ["allreduce", "nvme_fio"],
    "optional": ["clock_sync", "host_memory"],
    "without": ["pcie_bandwidth"],
    "limits": {
        "gemm_perf": {"bf16_tflops": {"floor": 650}, "fp16_tflops": {"floor": 600, "bound": 900}},
        "alloc_cycle": {"cycle_us": {"floor": 40}},
        "launch_latency": {"launch_us": {"floor": 0}},
    },
    "stages": {"heat": {"share": 0.3, "failed": 1}, "first_look": {"repeats": 3, "inconclusive_percent": 10}},
}


def test_rules_are_read_and_the_suite_understands_each_of_them() -> None:
    """Rules that pass activation are refused by no node. Mutant: a field has another name there."""
    (rules,) = parse(documents({"burn_in": GOOD}, gpu_model="H100")).skus["h100"].checks.values()
    assert rules == PassRules(
        36.0,
        ("allreduce", "nvme_fio"),
        ("clock_sync", "host_memory"),
        ("pcie_bandwidth",),
        {
            "gemm_perf": {"bf16_tflops": ReadingRule(650.0), "fp16_tflops": ReadingRule(600.0, 900.0)},
            "alloc_cycle": {"cycle_us": ReadingRule(40.0)},
            "launch_latency": {"launch_us": ReadingRule(0.0)},
        },
        {"heat": StageRule(0.3, failed=1), "first_look": StageRule(repeats=3, inconclusive_percent=10.0)},
    )
    read = pass_rules.parsed(document("burn_in", rules), "rules.json", load("burn_in"))
    assert (read.for_s, sorted(read.required), sorted(read.without)) == (
        129_600.0, ["allreduce", "nvme_fio"], ["pcie_bandwidth"],
    )  # fmt: skip
    limits = {name: {key: (row.floor, row.bound) for key, row in rows.items()} for name, rows in read.limits.items()}
    assert limits == {
        "gemm_perf": {"bf16_tflops": (650.0, None), "fp16_tflops": (600.0, 900.0)},
        "alloc_cycle": {"cycle_us": (40.0, None)},
        "launch_latency": {"launch_us": (0.0, None)},
    }
    assert (read.stages["heat"].share, read.stages["heat"].failed, read.stages["first_look"].repeats) == (0.3, 1, 3)


ALL = list(suite_checks.PROFILES["burn_in"].checks)
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("gate", {}, "no profile 'gate' takes pass rules", "write one of burn_in, suspect"),
    ("burn_in", {"hours": 0}, "burn_in: 0 hours under load", "at most 40"),
    ("burn_in", {"hours": 41}, "burn_in: 41 hours under load", "at most 40"),
    ("suspect", {"hours": 4}, "suspect: 4 hours under load", "at most 3"),
    ("burn_in", {"hours": -1}, "is out of range", "write 0 to"),
    ("burn_in", {"required": ["gem_perf"]}, "it runs no check 'gem_perf'", "gemm_perf"),
    ("suspect", {"without": ["clock_sync"]}, "it runs no check 'clock_sync'", "write some of"),
    ("burn_in", {"limits": {"gem": {"x": {"floor": 1}}}}, "it runs no check 'gem'", "gemm_perf"),
    ("burn_in", {"required": ["gemm_perf"], "without": ["gemm_perf"]}, "in without and in required", "one of them"),
    (
        "burn_in",
        {"without": ["gemm_perf"], "limits": {"gemm_perf": {"bf16_tflops": {"floor": 1}}}},
        "gemm_perf is left out, and has limits",
        "keep one of the two",
    ),
    ("burn_in", {"limits": {"gemm_perf": {"bf8": {"floor": 1}}}}, "judges no reading 'bf8'", "bf16_tflops"),
    ("burn_in", {"limits": {"gemm_abft": {"x": {"floor": 1}}}}, "judges no reading 'x'", "judges bits"),
    ("burn_in", {"limits": {"gemm_perf": {"bf16_tflops": {}}}}, "has neither floor nor bound", "write one"),
    (
        "burn_in",
        {"limits": {"gemm_perf": {"bf16_tflops": {"floor": 1_000}}}},
        "no reading can reach the floor 1000, its bound of H100 is 990",
        "write less than 990",
    ),
    (
        "burn_in",
        {"limits": {"gemm_perf": {"bf16_tflops": {"floor": 700, "bound": 600}}}},
        "no reading can reach the floor 700",
        "write less than 600",
    ),
    (
        "burn_in",
        {"limits": {"launch_latency": {"launch_us": {"floor": 0.001}}}},
        "no reading can reach the floor 0.001",
        "write more than 0.005",
    ),
    ("burn_in", {"stages": {"warmth": {"repeats": 2}}}, "there is no stage 'warmth'", "heat"),
    ("burn_in", {"stages": {"heat": {"repeats": 2, "share": 0.1}}}, "a share of the hours and a number", "keep one"),
    ("burn_in", {"stages": {"heat": {"repeats": 0}}}, "heat is repeated 0 times", "write 1 to"),
    ("burn_in", {"stages": {"heat": {"share": 0}}}, "its share is 0", "more than 0"),
    ("burn_in", {"stages": {"heat": {"share": 0.9}}}, "the shares of all stages are 1.5", "at most 1 together"),
    ("burn_in", {"stages": {"heat": {"failed": 1_001}}}, "1001 runs may fail", "write 0 to 1000"),
    ("burn_in", {"stages": {"heat": {"inconclusive_percent": 101}}}, "inconclusive_percent is 101", "0 to 100"),
    ("burn_in", {"without": ALL}, "it would require no check, and pass any node", "name one under required"),
    ("burn_in", {"optional": ALL}, "it would require no check, and pass any node", "name one under required"),
    (
        "burn_in",
        {"hours": 3, "stages": {name: {"repeats": 1} for name in suite_checks.PROFILES["burn_in"].stages}},
        "it has hours, and no stage goes by them",
        "give a stage a share",
    ),
    ("burn_in", {"patience": 3}, "patience", ""),
    ("burn_in", {"hours": "36h"}, "Expected", ""),
]


@pytest.mark.parametrize(("profile", "rules", "what", "advice"), BAD)
def test_bad_rules_are_refused_at_their_line_with_what_to_write(
    profile: str, rules: dict[str, Any], what: str, advice: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse(documents({profile: rules}, gpu_model="H100"))
    found = refused.value.problems
    assert [one for one in found if what in one.what and advice in one.instead and one.line > 0], found


@pytest.mark.parametrize("name", suite_checks.PROFILES)
def test_the_profiles_of_the_table_are_the_suites(name: str) -> None:
    """Mutant: a check is renamed in the suite alone, and each SKU that names it is refused there."""
    assert name in NAMES
    stages = {
        stage.name: suite_checks.StageChecks(stage.share, {step.spec.name: step.required for step in stage.steps})
        for stage in load(name).stages
    }
    assert suite_checks.PROFILES[name].stages == stages


def test_the_readings_of_the_table_and_their_bounds_are_the_suites() -> None:
    judged = {
        name: tuple(key for key, row in spec.readings.items() if not row.informative) for name, spec in CHECKS.items()
    }
    assert {name: readings for name, readings in judged.items() if readings} == suite_checks.READINGS
    for name, readings in suite_checks.READINGS.items():
        for reading in readings:
            assert (reading in suite_checks.LOWER) is not CHECKS[name].readings[reading].higher
            for model in ("A100", "H100", "H200", "B200", "MI300X"):
                limit = limit_of(reading, f"NVIDIA {model} 80GB", 1)
                assert limit is not None
                assert suite_checks.bound_of(reading, model) == limit.bound, (reading, model)
