"""Steps of plans on nodes that no BMC serves: every recipe, every way in which a machine is reached."""

import pytest

from hostler.agent.machine import NEED_PERMISSION
from hostler.agent.node_operations import KNOWN_KINDS
from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import AgentVerbs
from hostler.core.state.model import ActClass, Plan
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.recipes import RECIPES
from tests.hint_walk import Kind, a_machine
from tests.kit import Drive, configuration

MANIFEST = {"bios": {"SriovSupport": "Enabled"}, "supplies_needed": 2, "sensors_s": 600, "drives": True}
RICH = configuration(firmware={"BIOS": "2"}, parts={"psu": 6, "drive": 2}, hardware=MANIFEST)
ONLY_OFF = ("power_off", "protective_power_off")
"""Recipes whose whole purpose is what only a BMC can do."""
GOES_ON = ("initializing", "seatrial", "zap", "examine", "return_to_service")


def frozen(name: str, bmc: str, agent: str = "may") -> Plan:
    """The plan of this recipe on a machine whose BMC is sound, none, dead, refusing or unseen."""
    drive = Drive(RICH, [a_machine(Kind.none if bmc == "none" else Kind.sound)], quiet=True)
    verbs = AgentVerbs(KNOWN_KINDS, NEED_PERMISSION if agent == "may not" else ())
    drive.step(drive.view(), AgentHeard("a", "a-b1", ("gate",), verbs))
    if agent == "silent":
        drive.step(AgentSilent("a", drive.now))
    seen = {
        "sound": NodeSeen("a", "on", bmc_unreachable=False, bmc_refuses=""),
        "dead": NodeSeen("a", "unknown", bmc_unreachable=True, bmc_says="no route"),
        "refusing": NodeSeen("a", "unknown", bmc_unreachable=False, bmc_refuses="401"),
    }
    if bmc in seen:
        drive.step(seen[bmc])
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    return freeze(context, drive.node("a"), RECIPES[name], Frame(ActClass.pending))


def kinds(plan: Plan) -> list[str]:
    return [step.operation for step in plan.steps]


@pytest.mark.parametrize("agent", ["may", "may not", "silent"])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_bmc_that_is_sound_or_unseen_keeps_the_whole_proof(name: str, agent: str) -> None:
    """Mutants: a BMC that nobody has looked at is taken for dead; an agent that may act takes the BMC's place."""
    sound, unseen = frozen(name, "sound", agent), frozen(name, "unseen", agent)
    assert kinds(sound) == kinds(unseen)
    assert sound.unproven == unseen.unproven == ()
    assert sound.rules == RECIPES[name].rules
    wanted = [row.act.kind for row in RECIPES[name].steps if not row.each and OPERATIONS[row.act.kind].port == "bmc"]
    assert [kind for kind in kinds(sound) if kind in wanted][: len(wanted)] == wanted


@pytest.mark.parametrize("agent", ["may", "may not", "silent"])
@pytest.mark.parametrize("name", sorted(set(RECIPES) - {*ONLY_OFF, "renew_bmc_login", "renew_bmc_certificate"}))
def test_every_recipe_has_a_way_without_a_bmc(name: str, agent: str) -> None:
    """Mutants: a step that only a BMC carries out stays; a proof that is left out is not named."""
    with_bmc, without = frozen(name, "sound", agent), frozen(name, "none", agent)
    left = [kind for kind in kinds(without) if OPERATIONS[kind].port == "bmc" and kind != "renew_dpu_login"]
    assert left == []
    assert len(without.undo) == len(without.steps)
    if "power_off" in kinds(with_bmc):
        assert any("restart" in one for one in without.unproven)
        restarts = RECIPES[name].disruptive or agent != "may not"
        assert ("reboot" in kinds(without)) is restarts
        assert ("wait_boot" in kinds(without)) is restarts
    lost = {"update_firmware", "verify_firmware", "write_bios_settings", "verify_bios_settings", "collect_inventory"}
    if lost & set(kinds(with_bmc)):
        assert without.unproven
    assert all(one.endswith(": the node has no BMC") for one in without.unproven)


@pytest.mark.parametrize("bmc", ["dead", "refusing"])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_bmc_that_does_not_serve_us_is_not_none(name: str, bmc: str) -> None:
    """Firmware stays to be written; remedies stay as they are. Mutants: either is dropped; its parts are hidden."""
    sound, dead = frozen(name, "sound"), frozen(name, bmc)
    if name not in GOES_ON:
        assert (kinds(dead), dead.unproven) == (kinds(sound), ())
        return
    firmware = {"update_firmware", "verify_firmware", "write_bios_settings", "verify_bios_settings"}
    assert [k for k in kinds(dead) if k in firmware] == [k for k in kinds(sound) if k in firmware]
    assert not {"power_on", "power_off", "collect_inventory", "set_boot_network"} & set(kinds(dead))
    assert all(one.endswith(": its BMC does not serve us") for one in dead.unproven)
    assert not any("psu" in one or "hardware" in one for one in dead.unproven)


@pytest.mark.parametrize("agent", ["may not", "silent"])
@pytest.mark.parametrize("name", GOES_ON)
def test_a_dead_bmc_needs_an_agent_that_is_heard_and_may_act(name: str, agent: str) -> None:
    """Mutants: silence on both ways is taken for a machine that is on; a restart that nobody makes is left out."""
    assert kinds(frozen(name, "dead", agent)) == kinds(frozen(name, "sound", agent))


def test_what_nobody_can_see_is_named() -> None:
    """Mutant: kinds of part and aspects of hardware that a BMC alone shows pass in silence."""
    said = frozen("examine", "none").unproven
    assert "parts of the kinds psu: the node has no BMC" in said
    assert "the hardware's bios, power_supplies, sensors: the node has no BMC" in said
    assert "a power cycle, in place of which its agent restarts it: the node has no BMC" in said


def test_a_restart_that_stands_for_a_power_cycle_is_what_cures() -> None:
    """Mutant: cures that do not last are counted by an operation that never comes."""
    assert frozen("power_cycle", "none").rules.cures == "reboot"
    assert frozen("power_cycle", "sound").rules.cures == "power_on"
