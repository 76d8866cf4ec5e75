"""Approvals that one request led to are told apart from those that only look alike."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.report.approval_requests import TOGETHER, requests_of
from hostler.core.state.change_control import Approval
from tests.kit import NOW, configuration, intent_of, pool_document

MINUTE = timedelta(minutes=1)


def waits(number: int, at: datetime = NOW, **intent: Any) -> Approval:
    given = {"verb": "reboot", "person": "ann", "reason": "new kernel", "args": {}, **intent}
    asked = intent_of(f"i{number}", given["verb"], f"n{number}", given["person"], given["reason"], at, given["args"])
    return Approval(f"a-{number}", asked, at, at + timedelta(days=1), "it would disturb many", (f"n{number}",))


def test_a_command_over_many_nodes_is_one_request_however_long_it_takes() -> None:
    """Mutants: the first approval's moment counts for all; the order in which they are listed counts."""
    many = [waits(number, NOW + number * TOGETHER) for number in range(5)]
    assert requests_of(reversed(many)) == {approval.id: "a-0" for approval in many}


@pytest.mark.parametrize(
    "other",
    [
        {"verb": "power-cycle"},
        {"person": "bob"},
        {"reason": "another kernel"},
        {"args": {"now": "true"}},
        {"at": NOW + TOGETHER + MINUTE},
    ],
)
def test_what_differs_in_anything_that_is_decided_is_a_request_of_its_own(other: dict[str, Any]) -> None:
    """Mutant for each: one yes answers what nobody has looked at."""
    at = other.pop("at", NOW)
    assert requests_of([waits(1), waits(2, at, **other)]) == {"a-1": "a-1", "a-2": "a-2"}


def test_a_request_goes_by_its_first_approval_that_still_waits() -> None:
    three = [waits(number, NOW + number * MINUTE) for number in range(3)]
    assert set(requests_of(three[1:]).values()) == {"a-1"}


def test_one_person_under_two_spellings_is_one_and_other_documents_are_not() -> None:
    """Mutants: `Ann` and `ann` are two people; two configurations are approved as one."""
    one, other = waits(1), waits(2, person="Ann")
    assert requests_of([one, other])["a-2"] == "a-1"
    known = configuration({"train": pool_document()})
    configured = [replace(waits(n, verb="activate"), configuration=replace(known, sha256=str(n))) for n in (1, 2)]
    assert requests_of(configured) == {"a-1": "a-1", "a-2": "a-2"}
