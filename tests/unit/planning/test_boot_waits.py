"""Steps that wait until a node or its BMC is heard again."""

from msgspec.structs import replace

from hostler.core.boot.boot_target import IMAGE
from hostler.core.planning.boot_waits import wait_agent, wait_bmc, wait_boot
from hostler.core.state import events as e
from hostler.core.state.boot import BootAgent, BootConfiguration, BootRecord
from hostler.core.state.decisions import Act, Wait
from tests.kit import NOW, after
from tests.unit.planning.values import a_context, idle, with_plan


def test_a_boot_is_over_when_another_one_is_heard_than_the_one_that_ended() -> None:
    """Mutants: the agent of the old boot will do; silence will do."""
    node, plan = with_plan("reboot", at="wait_boot", left_boot="a-b1")
    later = replace(node, boot_id="a-b2")
    passed = Act((e.PlanAdvanced("a", plan.id, plan.index + 1),))
    assert isinstance(wait_boot(idle(a_context(node), "a"), node, plan), Wait)
    assert isinstance(wait_boot(idle(a_context(later), "a", heard=False), later, plan), Wait)
    assert wait_boot(idle(a_context(later), "a"), later, plan) == passed
    assert wait_agent(idle(a_context(node), "a"), node, plan) == passed, "any boot will do"


def test_the_wait_says_for_whom_and_until_when_and_fails_at_its_end() -> None:
    node, plan = with_plan("reboot", at="wait_boot", left_boot="a-b1")
    answer = wait_boot(a_context(node), node, plan)
    assert isinstance(answer, Wait)
    assert (answer.what, answer.blockers[0].kind, answer.until) == ("reboot", "boot", after(seconds=1200))
    late = wait_boot(a_context(node, now=after(seconds=1200)), node, plan)
    assert isinstance(late, Act)
    assert not any(isinstance(event, e.PlanAdvanced) for event in late.events)


def test_a_boot_whose_cloud_init_started_the_agent_ends_when_it_phones_home() -> None:
    """Mutants: the agent's first word closes the boot window, and the phone-home is refused; one that never comes
    holds the node."""
    seeded = BootRecord("", NOW, IMAGE, "production", "bmc", seeded=NOW)
    node, plan = with_plan("reboot", at="wait_boot", left_boot="a-b1")
    node = replace(node, boot_id="a-b2", boot=replace(seeded, plan=plan.id))
    boots = BootConfiguration("http://h:1", agent=BootAgent("a.deb", "0" * 64, "https://h", "PEM"))
    for one, now, waits in (
        (node, NOW, True),
        (node, after(minutes=5), False),
        (replace(node, boot=replace(node.boot or seeded, home=NOW)), NOW, False),
        (replace(node, boot=replace(seeded, plan="another")), NOW, False),
    ):
        context = idle(a_context(one, now=now), "a")
        context.fleet.configurations.put("active", replace(context.fleet.configuration, boot=boots))
        answer = wait_boot(context, one, plan)
        assert isinstance(answer, Wait) == waits
        assert not waits or (isinstance(answer, Wait) and answer.blockers[0].ends_when == "the node phones home")
    context = idle(a_context(node), "a")
    assert isinstance(wait_boot(context, node, plan), Act), "an image with an agent of its own is not waited for"


def test_a_bmc_is_back_once_it_was_read_and_answers() -> None:
    node, plan = with_plan("bmc_reset", at="wait_bmc")
    silent = wait_bmc(idle(a_context(node), "a", bmc_unreachable=True), node, plan)
    unread = wait_bmc(idle(a_context(node), "a", power_at=None), node, plan)
    assert isinstance(silent, Wait)
    assert isinstance(unread, Wait)
    assert silent.blockers[0].kind == unread.blockers[0].kind == "bmc"
    back = wait_bmc(idle(a_context(node), "a", power_at=NOW), node, plan)
    assert back == Act((e.PlanAdvanced("a", plan.id, plan.index + 1),))
