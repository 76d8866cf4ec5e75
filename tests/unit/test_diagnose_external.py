"""Reports of other watchers are shown with their words, joined to the part they mean, and disturb nobody."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.diagnose.judge import judge
from hostler.core.state.model import Observation
from tests.kit import NOW, a_node, configuration

NODE = a_node("n1")
SKU = configuration().skus["h100"]
XID = {
    "version": 1,
    "agent": "syslog-health-monitor",
    "componentClass": "GPU",
    "checkName": "SysLogsXIDError",
    "isFatal": True,
    "isHealthy": False,
    "message": "GPU has fallen off the bus",
    "recommendedAction": "RESTART_BM",
    "errorCode": ["79"],
    "entitiesImpacted": [{"entityType": "GPU", "entityValue": "3"}],
    "nodeName": "n1",
}
DEADLOCK = {"type": "KernelDeadlock", "status": "True", "reason": "DockerHung", "message": "task docker:7 blocked"}
Told = set[tuple[str, str, bool]]


def told(document: object, shape: str) -> Told:
    text = document if isinstance(document, str) else json.dumps(document)
    seen = Observation("n1", "external", "agent", "s", 1, NODE.boot_id, text=text, facts={"shape": shape})
    return {(finding.type, finding.part, finding.standing) for finding in judge(seen, NODE, SKU)}


UNREAD: Told = {("observation.unreadable", "external", True)}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (DEADLOCK, {("external.problem", "node-condition:KernelDeadlock", True)}),
        (DEADLOCK | {"status": "False"}, {("external.problem", "node-condition:KernelDeadlock", False)}),
        (DEADLOCK | {"status": "Unknown"}, UNREAD),
        (DEADLOCK | {"type": "SiteMadeThisUp"}, {("external.problem", "node-condition:SiteMadeThisUp", True)}),
        (
            [DEADLOCK, {"type": "Ready", "status": "False"}],
            {("external.problem", "node-condition:KernelDeadlock", True)},
        ),
        ({"status": "True"}, UNREAD),
        ([DEADLOCK] * 65, UNREAD),
        ("{", UNREAD),
        ([[]], UNREAD),
    ],
)
def test_node_conditions(document: object, expected: Told) -> None:
    """Mutants: Unknown is well; a type that no list of ours has is passed over."""
    assert told(document, "node_conditions") == expected


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (XID, {("external.fault", "SysLogsXIDError/n1-G3", True)}),
        (XID | {"isFatal": False}, {("external.problem", "SysLogsXIDError/n1-G3", True)}),
        (
            XID | {"entitiesImpacted": [{"entityType": "PCI", "entityValue": "0000:05:00.0"}]},
            {("external.fault", "SysLogsXIDError/n1-G5", True)},
        ),
        (XID | {"entitiesImpacted": []}, {("external.fault", "SysLogsXIDError", True)}),
        (
            XID | {"isFatal": False, "isHealthy": True},
            {("external.fault", "SysLogsXIDError/n1-G3", False), ("external.problem", "SysLogsXIDError/n1-G3", False)},
        ),
        (XID | {"isHealthy": True}, UNREAD),
        (XID | {"isHealthy": "true", "isFatal": False}, UNREAD),
        ({"isFatal": True}, UNREAD),
        ([XID], UNREAD),
    ],
)
def test_health_events(document: object, expected: Told) -> None:
    """Mutant: a missing isHealthy is healthy."""
    assert told(document, "health_event") == expected


def test_a_shape_that_nobody_knows_is_shown() -> None:
    assert told(XID, "prometheus") == UNREAD


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*XID, *DEADLOCK, "entityType", "entityValue"]), inner, max_size=8)
    ),
    max_leaves=20,
)


@given(_JSON, st.sampled_from(["node_conditions", "health_event", "x"]))
def test_nothing_that_others_say_breaks_us_or_disturbs_anybody(document: object, shape: str) -> None:
    policy = configuration().policy
    for kind, _, _ in told(document, shape):
        assert policy.rules[kind].remedy == ""


@pytest.mark.parametrize(
    "written",
    ["", "yesterday", 7, None, "2025-03-04T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"],
)
def test_a_moment_that_cannot_be_read_says_nothing_of_the_watchers_age(written: object) -> None:
    seen = Observation(
        "n1",
        "external",
        "agent",
        "s",
        1,
        NODE.boot_id,
        text=json.dumps(DEADLOCK | {"lastHeartbeatTime": written}),
        facts={"shape": "node_conditions", "check": "npd"},
        received=NOW,
    )
    assert [(found.type, found.standing) for found in judge(seen, NODE, SKU)] == [("external.problem", True)]


def test_what_was_left_lying_is_told_as_that_where_no_check_hands_it_on() -> None:
    document = DEADLOCK | {"lastHeartbeatTime": "2020-01-01T00:00:00Z"}
    seen = Observation("n1", "external", "agent", "s", 1, NODE.boot_id, text=json.dumps(document), received=NOW)
    seen = replace(seen, facts={"shape": "node_conditions"})
    assert [found.type for found in judge(seen, NODE, SKU)] == ["observation.unreadable"]
