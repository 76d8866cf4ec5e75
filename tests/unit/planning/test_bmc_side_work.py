"""Work at a node's BMC beside its plan: one thing at a time, the login before everything else."""

from datetime import timedelta

from msgspec.structs import replace

from hostler.core.planning.bmc_side_work import beside
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.configuration import BmcCredentialPolicy
from hostler.core.state.decisions import Act, Answer, Rest
from hostler.core.state.light import Light
from hostler.core.state.model import Node
from tests.kit import NOW, a_node
from tests.unit.planning.values import TWO, a_context, an_operation, idle

RENEWED = replace(TWO, policy=replace(TWO.policy, bmc_credentials=BmcCredentialPolicy(90 * 86_400.0)))
FRESH = BmcLogin(renewed_at=NOW - timedelta(days=1), username="root")
DARK = replace(
    a_node("a", pool=""),
    bindings=(Binding("bmc", "https://10.0.0.1", NOW), Binding("serial", "SN1", NOW)),
    light=Light("tess", NOW, NOW + timedelta(hours=1)),
)


def answered(node: Node, answer: Answer) -> Answer:
    return beside(idle(a_context(node, config=RENEWED), "a"), node, answer)


def begun(answer: Answer) -> list[str]:
    assert isinstance(answer, Act), answer
    return [one.operation.kind for one in answer.events if isinstance(one, e.OperationStarted)]


def test_the_login_comes_before_the_light_and_one_is_begun_at_a_time() -> None:
    """Mutants: the light is sent with a login that is about to change; both are begun in one answer."""
    assert begun(answered(DARK, Rest(None))) == ["renew_bmc_login"]
    assert begun(answered(replace(DARK, bmc_login=FRESH), Rest(None))) == ["locate_on"]


def test_while_something_is_under_way_there_or_the_plan_acts_nothing_is_begun() -> None:
    aside = replace(an_operation("locate_on", "a"), aside=True)
    assert isinstance(answered(replace(DARK, aside=aside), Rest(None)), Rest)
    acts = Act((e.OperationStarted(an_operation("power_on", "a")),))
    assert answered(DARK, acts) == acts
