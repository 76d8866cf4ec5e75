"""Locate lights: what is begun beside a plan, when they go out, and what is tried again."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.lights import beside
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Rest
from hostler.core.state.light import TRIES_MOST, Light
from hostler.core.state.model import Node, Phase
from tests.kit import NOW, a_node
from tests.unit.planning.values import TWO, a_context, an_operation, idle

HOUR = timedelta(hours=1)
ASKED = Light("tess", NOW, NOW + HOUR)


def lit(light: Light | None = ASKED, **fields: Any) -> Node:
    return replace(a_node("a", pool=""), light=light, **fields)


def answered(node: Node) -> Act | datetime | None:
    """The act that is begun, or when the light is looked at again."""
    answer = beside(idle(a_context(node, config=TWO), "a"), node, Rest(None))
    return answer if isinstance(answer, Act) else answer.until


def kinds(answer: object) -> list[str]:
    assert isinstance(answer, Act), answer
    assert all(one.operation.aside for one in answer.events if isinstance(one, e.OperationStarted))
    return [
        one.operation.kind if isinstance(one, e.OperationStarted) else one.why
        for one in answer.events
        if isinstance(one, e.OperationStarted | e.LightAsked)
    ]


def test_a_light_is_lit_once_and_goes_out_at_its_bound_or_with_its_ticket() -> None:
    """Mutants: it is lit again at each look; it burns for ever; a closed ticket's light stays."""
    assert answered(lit(None)) is None
    assert kinds(answered(lit())) == ["locate_on"]
    assert answered(lit(replace(ASKED, lit=True))) == NOW + HOUR
    assert kinds(answered(lit(replace(ASKED, lit=True, until=NOW)))) == ["its time is over"]
    assert kinds(answered(lit(replace(ASKED, ticket="gone")))) == ["ticket gone is closed"]
    assert kinds(answered(lit(replace(ASKED, lit=True, wanted=False)))) == ["locate_off"]


def test_nothing_is_begun_beside_an_act_at_the_bmc_or_of_a_retired_node() -> None:
    power = an_operation("power_on", "a")
    assert answered(lit(operation=power)) == NOW + HOUR
    assert answered(lit(aside=replace(power, aside=True))) is None
    assert answered(lit(phase=Phase.retired)) is None
    assert kinds(answered(lit(phase=Phase.rma))) == ["locate_on"], "it is fetched from its rack"


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 5), (2, 15), (4, 300), (6, 300)])
def test_what_failed_is_tried_ever_later(failures: int, pause_s: int) -> None:
    """Mutants: as fast as it fails; never again."""
    failed = replace(ASKED, failures=failures, failed_at=NOW, result="failed")
    assert answered(lit(failed)) == NOW + timedelta(seconds=pause_s)
    earlier = replace(failed, failed_at=NOW - timedelta(seconds=pause_s))
    assert kinds(answered(lit(earlier))) == ["locate_on"]


@pytest.mark.parametrize("result", [{"result": "refused", "failures": 1}, {"result": "failed", "failures": TRIES_MOST}])
def test_what_is_refused_or_fails_too_often_is_a_persons(result: dict[str, Any]) -> None:
    """Mutant: a BMC without a light is asked for ever."""
    given_up = replace(ASKED, failed_at=NOW - HOUR, **result)
    assert answered(lit(given_up)) == NOW + HOUR
    assert answered(lit(replace(given_up, wanted=False))) is None
