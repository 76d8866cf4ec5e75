"""Steps of a plan on a node that no BMC serves, chosen once, when the plan is laid down.

A restart by the node's agent stands for off and on: the boot id proves it. An agent that is heard shows that its
machine is on. What only a BMC could do or show is left out, and the plan says which proof was not to be had: what is
not named there was proven as on any other node.

A provider that has the machine's power switches it as a BMC does. Two ways lead here, and a BMC that is sound is on
neither. A node without a BMC's address has none: every recipe goes this way. A BMC that is silent or refuses us is
still the node's: only the phases' own work and a return to service go on without it, only where the agent is heard, and
only for power. What a BMC writes or lists of firmware stays a step of its own, and fails there.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.hardware_match import hidden_aspects
from hostler.core.conditions.sku_match import hidden_kinds
from hostler.core.policy.abilities import Answer, ability, has_no_bmc, has_no_power
from hostler.core.state import operations as op
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.hardware import AGENT, UNREAD
from hostler.core.state.model import Blocker, Node, Step
from hostler.core.state.plan_rules import PlanRules
from hostler.core.state.provider import has_provider_alone
from hostler.core.state.verbs.nodes import NO_BMC, Rebind
from hostler.core.state.ways_out import ByAct, by_act, observed
from hostler.core.tables.recipes import Recipe

Laid = tuple[Step, str]
"""A step, and the easing that takes it back."""

_GOES_ON = frozenset({"initializing", "seatrial", "zap", "examine", "return_to_service"})
"""Recipes that go on where a BMC does not serve us: nobody is disturbed by them who was not already."""
_HEARD_S, _RESTART_S, _BOOT_S = 1500.0, 300.0, 1500.0
_CYCLES = frozenset({"ac_cycle", "outlet_cycle", "unplug"})
_OF_BMC = {
    "set_boot_network": "",
    "collect_inventory": "the BMC's list of parts",
    "update_firmware": "firmware that a BMC writes",
    "verify_firmware": "the versions of firmware that a BMC lists",
    "write_bios_settings": "BIOS settings",
    "verify_bios_settings": "BIOS settings",
    "reset_bmc": "",
    "locate_on": "",
    "locate_off": "",
}
"""Kind of step that only a BMC carries out → the proof that is missing without it, "" for none."""
_OF_POWER = frozenset({"power_off", "power_on", *_CYCLES})


class StepsWithoutBmc(Struct, frozen=True):
    """Steps that the node can take, the proofs that are not to be had on it, and the rules that fit these steps."""

    laid: tuple[Laid, ...]
    unproven: tuple[str, ...]
    rules: PlanRules


def fitted(context: DecisionContext, node: Node, recipe: Recipe, laid: tuple[Laid, ...]) -> StepsWithoutBmc:
    """The steps as the node can take them; as they are where a BMC serves it."""
    why = _why(context, node, recipe)
    if not why:
        return StepsWithoutBmc(laid, (), recipe.rules)
    missing = dict.fromkeys(_hidden(context, node, laid))
    kept = tuple(_without_lists(node, laid, missing))
    if has_provider_alone(node):
        return StepsWithoutBmc(kept, tuple(f"{one}: {why}" for one in missing), recipe.rules)
    steps = tuple(_powered(_Way(context, node, recipe), kept, missing))
    rules = recipe.rules
    if rules.cures == "power_on" and any(step.operation == "reboot" for step, _ in steps):
        rules = replace(rules, cures="reboot")
    return StepsWithoutBmc(steps, tuple(f"{one}: {why}" for one in missing), rules)


def is_cut_off(context: DecisionContext, node: Node) -> bool:
    """Whether the node's BMC is known not to answer, or not to serve us. One that nobody has looked at is neither."""
    power = ability(context, node, "power_off")
    return power.silent or power.answer is Answer.cannot


def goes_without(context: DecisionContext, node: Node) -> tuple[ByAct, ...]:
    """The way of a person who says that its BMC is beyond repair; none where the BMC serves us, or there is none."""
    if has_no_bmc(node) or not is_cut_off(context, node):
        return ()
    return (by_act(Rebind("bmc", NO_BMC), node.id, "its BMC is beyond repair, and it is to go on without"),)


def words_without(context: DecisionContext, node: Node) -> str:
    """The same in words, for the end of a ticket."""
    return "".join(f"; or {way.sentence}" for way in goes_without(context, node))


def unpowered(context: DecisionContext, node: Node) -> tuple[Blocker, ...]:
    """The person who switches the node on, where nothing else can and its agent is not heard."""
    if not has_no_power(node) or context.live.of(node.id).heard:
        return ()
    text = f"{node.id} has no BMC, so nobody but a person can switch it on; its agent is not heard"
    return (Blocker("person", "technician", text, observed("it is on, and its agent is heard", "site")),)


def agent_may_act(context: DecisionContext, node: Node) -> bool:
    """Whether its agent may restart the node, as far as it has told; what it told of itself last is on record."""
    told = dict(node.hardware).get(f"{AGENT}/{UNREAD}erase", "")
    barred = context.live.of(node.id).verbs is None and "--allow-actions" in told
    return not barred and ability(context, node, "reboot").answer is not Answer.cannot


def _why(context: DecisionContext, node: Node, recipe: Recipe) -> str:
    """Why the plan goes without a BMC, "" where it goes with it."""
    if has_no_bmc(node):
        return "the node has no BMC"
    cut_off = (
        recipe.name in _GOES_ON
        and is_cut_off(context, node)
        and context.live.of(node.id).heard
        and agent_may_act(context, node)
    )
    return "its BMC does not serve us" if cut_off else ""


def _without_lists(node: Node, laid: tuple[Laid, ...], missing: dict[str, None]) -> Iterator[Laid]:
    """The steps without those that a BMC alone carries out; where one is away, its firmware stays to be seen to."""
    every, by_provider = has_no_bmc(node), has_provider_alone(node)
    for step, undo in laid:
        lost = _OF_BMC.get(step.operation)
        reads_only = isinstance(step.act, op.VerifyFirmware) and not step.act.wanted
        if step.operation == "set_boot_network" and by_provider:
            lost = None
        spared = lost is None or not (every or reads_only or not lost or step.operation == "collect_inventory")
        if spared:
            yield step, undo
        elif lost and not reads_only:
            missing.setdefault(lost)


def _hidden(context: DecisionContext, node: Node, laid: tuple[Laid, ...]) -> Iterator[str]:
    """Parts and aspects of hardware that the plan's steps would look at, and that nobody can see of this node."""
    sku = context.fleet.configuration_of(node).skus.get(node.sku)
    kinds = {step.operation for step, _ in laid}
    if sku is None:
        return
    if "verify_inventory" in kinds and (parts := sorted(hidden_kinds(node, sku))):
        yield f"parts of the kinds {', '.join(parts)}"
    if "verify_hardware" in kinds and sku.hardware is not None and (aspects := hidden_aspects(node, sku.hardware)):
        yield f"the hardware's {', '.join(aspects)}"


class _Way(Struct, frozen=True):
    """One node, and the recipe whose restarts are laid down for it."""

    context: DecisionContext
    node: Node
    recipe: Recipe

    def step(self, act: op.AnyAct, deadline_s: float) -> Laid:
        """The step under the policy's clock."""
        return Step(act, scaled(self.context.fleet.configuration_of(self.node).policy, deadline_s)), ""


def _powered(way: _Way, laid: tuple[Laid, ...], missing: dict[str, None]) -> Iterator[Laid]:
    """The steps with restarts in the place of off and on; a machine that is only to be off stays a step of its own."""
    kinds = [step.operation for step, _ in laid]
    index, restarted = 0, False
    while index < len(laid):
        kind = kinds[index]
        if kind == "power_off" and "power_on" in kinds[index:]:
            index = kinds.index("power_on", index) + 1
            index += index < len(laid) and kinds[index] == "wait_boot"
            if not restarted:
                yield from _restart(way, missing)
            restarted = True
            continue
        if kind == "power_on":  # the agent that is waited for next shows that it is on
            index += 1
            if index < len(laid) and kinds[index] == "wait_boot":
                yield way.step(op.WaitAgent(), _HEARD_S)
                index += 1
            continue
        restarted = False
        yield laid[index]
        index += 1


def _restart(way: _Way, missing: dict[str, None]) -> Iterator[Laid]:
    """The restart by the agent. A remedy has no other cure, and is not carried out where the agent may not act."""
    if way.recipe.disruptive:
        missing.setdefault("a power cycle, in place of which its agent restarts it")
        yield from (way.step(op.RestartNode(), _RESTART_S), way.step(op.WaitBoot(), _BOOT_S))
        return
    yield way.step(op.WaitAgent(), _HEARD_S)
    if not agent_may_act(way.context, way.node):
        missing.setdefault("a restart, which its agent may not carry out either")
        return
    missing.setdefault("a power cycle, in place of which its agent restarts it")
    yield from (way.step(op.RestartNode(), _RESTART_S), way.step(op.WaitBoot(), _BOOT_S))
