"""Abilities: each means in each state, and what follows for each recipe; unknown is neither can nor cannot."""

from itertools import product

import pytest
from msgspec.structs import replace

from hostler.agent.machine import NEED_PERMISSION
from hostler.agent.node_operations import KNOWN_KINDS
from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen
from hostler.core.policy.abilities import Ability, Answer, ability, excluded_remedies, remedy_ability, waits_for
from hostler.core.state.assets import Binding
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import AgentVerbs
from hostler.core.tables.recipes import RECIPES
from tests.kit import NOW, Drive, a_node

BMCS = ("answers", "none", "dead", "refuses", "unseen")
AGENTS = ("may", "may not", "silent", "old", "lacks")
_VERBS = {
    "may": AgentVerbs(KNOWN_KINDS),
    "may not": AgentVerbs(KNOWN_KINDS, NEED_PERMISSION),
    "silent": None,
    "old": None,
    "lacks": AgentVerbs(("collect_evidence", "run_checks")),
}
OF_BMC = {"answers": "can", "none": "cannot", "dead": "unknown", "refuses": "cannot", "unseen": "unknown"}
OF_AGENT = {"may": "can", "may not": "cannot", "silent": "unknown", "old": "unknown", "lacks": "cannot"}


def a_drive(bmc: str, agent: str) -> Drive:
    """One node in production, whose BMC and agent are so."""
    node = a_node("n")
    if bmc == "none":
        node = replace(node, bindings=tuple(b for b in node.bindings if b.kind != "bmc"))
    drive = Drive(nodes=[node], quiet=True)
    drive.step(drive.view(), AgentHeard("n", "n-b1", ("gate",), _VERBS[agent]))
    if agent == "silent":
        drive.step(AgentSilent("n", drive.now))
    seen = {
        "answers": NodeSeen("n", "on", bmc_unreachable=False, bmc_refuses=""),
        "dead": NodeSeen("n", "unknown", bmc_unreachable=True, bmc_says="no route"),
        "refuses": NodeSeen("n", "unknown", bmc_unreachable=False, bmc_refuses="401"),
    }
    if bmc in seen:
        drive.step(seen[bmc])
    return drive


def told(drive: Drive, name: str) -> Ability:
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    return remedy_ability(context, drive.fleet.nodes["n"], name)


@pytest.mark.parametrize(("bmc", "agent"), list(product(BMCS, AGENTS)))
def test_each_means_in_each_state(bmc: str, agent: str) -> None:
    """Mutants: an unknown BMC counts as one that can; a silent agent as one that cannot; an old one as barred."""
    drive = a_drive(bmc, agent)
    power_cycle = OF_AGENT[agent] if bmc == "none" else OF_BMC[bmc]  # its restart stands for off and on
    assert told(drive, "power_cycle").answer == power_cycle
    assert told(drive, "power_off").answer == OF_BMC[bmc]
    assert told(drive, "reboot").answer == OF_AGENT[agent]
    assert told(drive, "bmc_reset").answer == OF_AGENT[agent]
    assert told(drive, "triage").answer is Answer.can
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    excluded = excluded_remedies(context, drive.fleet.nodes["n"])
    assert ("power_cycle" in excluded, "reboot" in excluded) == (
        power_cycle == "cannot",
        OF_AGENT[agent] == "cannot",
    )
    for name, one in excluded.items():
        assert one.why, name
        assert one.mend, f"{name} is excluded without a way out"
        assert "{" not in one.text
    waits = waits_for(context, drive.fleet.nodes["n"], "power_cycle")
    assert (waits is not None) == (bmc == "dead" or (bmc, agent) == ("none", "silent")), (
        "a BMC that nobody has looked at is found out by trying"
    )


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_has_an_answer(name: str) -> None:
    """Mutant: a port of the table without a row."""
    assert told(a_drive("answers", "may"), name).answer in Answer


def test_what_a_person_has_to_do_names_the_node_and_the_command() -> None:
    no_bmc, barred = told(a_drive("none", "may"), "power_off"), told(a_drive("none", "may not"), "reboot")
    assert no_bmc.text == (
        "power_off: no BMC of n is recorded; record its address: "
        "hostler node rebind n --kind bmc --value https://… --reason …"
    )
    assert barred.text == (
        "reboot: the agent of n was started without --allow-actions; start the agent of n with --allow-actions"
    )


def test_a_bmc_whose_refusal_was_recorded_refuses_until_it_is_looked_at() -> None:
    """A controller has begun and nobody has looked yet. Mutant: the condition is not asked, and all may be tried."""
    drive = a_drive("refuses", "may")
    drive.restart()
    drive.controller.live.nodes.clear()
    assert told(drive, "power_cycle").answer is Answer.cannot
    drive.step(NodeSeen("n", "on", bmc_unreachable=False, bmc_refuses=""))
    assert told(drive, "power_cycle").answer is Answer.can


def test_a_node_without_a_cluster_has_nothing_to_be_cordoned_in() -> None:
    drive = Drive(nodes=[a_node("s", pool="")], quiet=True)
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    assert ability(context, drive.fleet.nodes["s"], "cordon").answer is Answer.can


def test_a_cluster_that_has_not_told_is_unknown() -> None:
    """Mutant: a scheduler nobody has heard counts as one that can."""
    drive = Drive(nodes=[a_node("n")], quiet=True)
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    assert ability(context, drive.fleet.nodes["n"], "cordon").answer is Answer.unknown


def test_a_provider_stands_for_a_bmc_that_is_not_there_and_for_an_agent_that_is_silent() -> None:
    """Mutants: a rented node's power is excluded for want of a BMC; a provider is promised before it was asked; a
    provider's power is asked for a node that has a BMC of its own.
    """
    rented = (Binding("provider", "cloud/i-1", NOW), Binding("serial", "SN1", NOW))
    nodes = [
        replace(a_node("r", pool=""), bindings=rented),
        replace(a_node("o", pool=""), bindings=(*rented, Binding("bmc", "https://10.0.0.1", NOW))),
        a_node("n", pool=""),
    ]
    drive = Drive(nodes=nodes, quiet=True)
    drive.step(NodeSeen("o", "on", bmc_unreachable=False, bmc_refuses="no login"))
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)

    def of(node: str, kind: str) -> tuple[Answer, bool]:
        found = ability(context, drive.fleet.nodes[node], kind)
        return found.answer, found.silent

    assert of("r", "power_off") == of("r", "replace_machine") == of("r", "reboot") == (Answer.unknown, False)
    assert of("o", "power_off") == (Answer.cannot, False)
    assert of("n", "replace_machine") == (Answer.cannot, False)
    assert of("n", "reboot") == (Answer.unknown, True)
