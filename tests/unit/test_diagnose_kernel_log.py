"""From kernel-log lines of every family to conditions: which part bears them, and what never costs a node its place."""

import json
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from hostler.core.diagnose import Finding
from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.kernel_log import FAMILIES, decode
from hostler.core.diagnose.sxid_catalog import SXIDS
from hostler.core.policy.documents import parse
from hostler.core.state.assets import Position
from hostler.core.state.configuration import Policy
from hostler.core.state.model import Node, Observation, Phase, Severity
from hostler.core.state.packed_strings import pairs
from hostler.core.tables.conditions import CONDITIONS

NOW = datetime(2025, 3, 4, tzinfo=UTC)
NODE = Node(
    id="n1",
    position=Position("c1"),
    sku="h100",
    phase=Phase.production,
    phase_since=NOW,
    registered_at=NOW,
    boot_id="b",
    boots=("b",),
    slots=pairs([("nic0", "N0")]),
    addresses=pairs([("pci:0000:1a:00", "N0")]),
)
CORPUS: list[dict[str, Any]] = [
    json.loads(line)
    for path in sorted((Path(__file__).parents[1] / "wire" / "cases").glob("*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
]


def judged(text: str, facility: int | None = 0, node: Node = NODE) -> tuple[Finding, ...]:
    return judge(
        Observation("n1", "kernel_log", "agent", "s", 1, boot_id="b", text=text, facility=facility), node, None
    )


@pytest.fixture(scope="module")
def policy() -> Policy:
    text = resources.files("hostler.core.policy").joinpath("default_policy.yaml").read_text("utf-8")
    return parse({"default_policy.yaml": text}).policy


@pytest.mark.parametrize(
    ("line", "condition", "part"),
    [
        ("mlx5_core 0000:1a:00.0: health recovery failed", "network.nic_down", "N0"),
        ("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 23006, Fatal", "nvswitch.fabric_fatal", "pci:0000:c3:00"),
        ("nvme nvme3: Disabling device after reset failure: -19", "storage.failed", "dev:nvme3"),
        ("EXT4-fs (sda1): Remounting filesystem read-only", "storage.read_only", "dev:sda1"),
        ("nfs: server s1 not responding, still trying", "storage.remote", "server:s1"),
        ("EDAC MC0: 1 UE memory read error on CPU#0_DIMM#0 (x)", "memory.uncorrectable", "dev:CPU#0_DIMM#0"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a:1]", "host.lockup", ""),
        ("Kernel panic - not syncing: Fatal exception", "host.kernel_panic", ""),
        ("Out of memory: Killed process 1 (a)", "host.out_of_memory", ""),
        ("pcieport 0000:5d:01.0: AER: Uncorrected (Fatal) error received: 0000:1a:00.0", "pcie.uncorrectable", "N0"),
    ],
)  # fmt: skip
def test_a_line_convicts_the_part_it_names(line: str, condition: str, part: str) -> None:
    (finding,) = judged(line)
    assert (finding.type, finding.part, finding.standing) == (condition, part, True)
    assert finding.facts["line"] == line


@pytest.mark.parametrize("facility", [1, 3, 23, None])
def test_user_space_convicts_nobody_whatever_it_writes(facility: int | None) -> None:
    """Mutant: pass on what is only informational; a container could then fill a node's page with conditions."""
    for case in CORPUS:
        findings = judged(case["line"], facility)
        assert [finding.type for finding in findings] == ["kernel_log.userspace_origin"], case["line"]


def test_no_line_shows_a_condition_to_be_over() -> None:
    for case in CORPUS:
        assert all(finding.standing for finding in judged(case["line"])), case["line"]


def test_ambiguous_lines_disturb_nobody(policy: Policy) -> None:
    """Mutant: give gpu.fallen_off_bus to a line that names no GPU."""
    shown = [one for case in CORPUS for one in decode(case["line"]) if one.ambiguous]
    assert shown
    nameless = decode("NVRM: fallen off the bus and is not responding to commands.")
    for one in (*shown, *nameless):
        assert policy.rules[one.condition].remedy == "", one.line
    for family in FAMILIES:
        for row in family.rows:
            assert not row.ambiguous or policy.rules[row.condition].remedy == "", row.event


def test_programs_cost_no_node_its_place(policy: Policy) -> None:
    for name in ("gpu.application_error", "host.application_crash", "host.out_of_memory"):
        assert policy.rules[name].remedy == ""
        assert CONDITIONS[name].severity <= Severity.warning


def test_a_row_that_waits_for_a_reset_gets_one_at_the_jobs_end(policy: Policy) -> None:
    for line in ("NVRM: Xid (PCI:0000:4c:00): 94, Contained", "NVRM: Xid (PCI:0000:4c:00): 63, Row Remapper: pending"):
        (finding,) = judged(line)
        rule = policy.rules[finding.type]
        assert (rule.remedy, rule.timing, rule.dooms) == ("gpu_reset", "pending", "none")


def test_only_the_whole_fabrics_end_dooms_every_gpu(policy: Policy) -> None:
    """Mutant: map a code that may be fatal to fabric_fatal; one port then costs all tenants of the node their work."""
    for entry in SXIDS.values():
        assert entry.condition in CONDITIONS
        rule = policy.rules[entry.condition]
        if rule.dooms == "node":
            assert entry.group == "always_fatal" or entry.code == 19084, entry.code


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:4c:00): abc, pid=1",
        "NVRM: Xid (PCI:0000:4c:0",
        "nvidia-nvswitch0: SXid (invalid): some error",
        "[ 12.1] NVRM: Xid (",
    ],
)
def test_a_report_that_cannot_be_read_is_visible(line: str) -> None:
    """Unknown is never healthy; mutant: nothing is said, as for any ordinary line."""
    assert [(f.type, f.part) for f in judged(line)] == [("observation.unreadable", "kernel_log")]
    assert judged(line, facility=1) == ()
    assert judged("usb 1-4: Product: NVRM: Xid (PCI") == ()


def test_a_loggers_count_is_counted() -> None:
    text = "h kernel: message repeated 7 times: [ NVRM: Xid (PCI:0000:4c:00): 94, x]\nNVRM: Xid (PCI:0000:4c:00): 94, x"
    (finding,) = judged(text)
    assert finding.facts["count"] == 8


def test_what_a_line_says_besides_is_kept_as_plain_facts() -> None:
    (finding,) = judged("Out of memory: Killed process 11 (a b)\nOut of memory: Killed process 12 (c)")
    assert finding.facts["victims"] == "a b (11) c (12)"
    (finding,) = judged(
        "NVRM: Xid (PCI:0000:4c:00): 74, NVLink: fatal error detected on link 3(0x11, 0x0, 0x4, 0x0, 0x0)"
    )
    assert finding.facts["register_bits"] == "0:0,4 2:2"
