"""Presuppositions of acts on nodes and assets, and whether they stand now: asked of every act before it is sent.

Why here: a plan is frozen, and what it rests on is not. Between the plan and its step a tray begins to leak, a person
takes the node in hand, a look fails. A planner that asks in its own way forgets one of these, so all of them come
through `sendable` when an act is recorded, and through `missing` once more behind the fence, just before it is sent.
Only recorded facts are asked: whoever sends needs no live state.
"""

from collections.abc import Iterator
from datetime import datetime

from hostler.core.conditions import rack_match
from hostler.core.policy.holds_and_pauses import held, scopes
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, AssetKind
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, Blocker, Condition, HoldKind, Node, Operation
from hostler.core.state.scopes import Scope
from hostler.core.state.verbs.nodes import ClearCondition
from hostler.core.state.verbs.racks import AssetSound
from hostler.core.state.ways_out import by_act, by_time, observed
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.recipes import RECIPES

SAFE = "safe"
"""The need of acts that give power or write hardware: nothing there leaks, or is too hot."""
_NAMED = 8


def sendable(context: DecisionContext, doing: str, answer: Answer) -> Answer:
    """The answer, or the wait in its place where an act of it presupposes what does not stand."""
    for event in answer.events if isinstance(answer, Act) else ():
        begun = event.operation if isinstance(event, e.OperationStarted | e.AssetOperationStarted) else None
        if begun is not None and (found := missing(context.fleet, begun, context.now)):
            return Wait(doing, found, until=None)
    return answer


def missing(fleet: Fleet, operation: Operation, now: datetime) -> tuple[Blocker, ...]:
    """Blockers of the act by what it presupposes of its node or asset, from recorded facts; empty where it may be sent.

    Protection from a leak or from heat removes power, and presupposes nothing.
    """
    row, node = OPERATIONS[operation.kind], fleet.nodes.get(operation.node)
    if node is not None:
        plan = node.plan
        protects = plan is not None and plan.id == operation.plan and plan.act_class is ActClass.protective
        found = () if protects and row.removes_power else _of_node(fleet, node, operation)
        return tuple(found)[:_NAMED]
    asset = fleet.assets.get(operation.node)
    if asset is None or (row.removes_power and not operation.plan):
        return ()
    return tuple(_of_asset(fleet, asset, operation, now))[:_NAMED]


def dangers(node: Node) -> list[Condition]:
    """Conditions of the node under which no power is given, whether they are known to stand or unknown by now."""
    return [c for c in node.conditions if (kind := CONDITIONS.get(c.type)) is not None and kind.keeps_dark]


def endangered(node: Node, remedy: str) -> list[Blocker]:
    """Blockers of a remedy or of a phase's work that gives power: it would leave the node dark half-way."""
    recipe = RECIPES.get(remedy)
    powers = recipe is not None and any(SAFE in OPERATIONS[step.act.kind].needs for step in recipe.steps)
    return [_danger(node, condition) for condition in dangers(node)] if powers else []


def _of_node(fleet: Fleet, node: Node, operation: Operation) -> Iterator[Blocker]:
    row = OPERATIONS[operation.kind]
    if "power" in row.needs or "power_off" in row.needs:
        yield from _hands(fleet, scopes(fleet, node), powers="power" in row.needs)
    if SAFE in row.needs:
        yield from (_danger(node, condition) for condition in dangers(node))
    if row.port == "bmc" and not operation.aside:
        yield from _landing(node.settling, "", operation)


def _danger(node: Node, condition: Condition) -> Blocker:
    known = "" if condition.unknown_since is None else ", unknown since its detector fell silent"
    text = f"{node.id} has {condition.type}{f' ({condition.part})' if condition.part else ''}{known}: no power is given"
    cleared = by_act(ClearCondition(condition.id), node.id, "a person clears it")
    return Blocker("danger", condition.id, text, (observed("it is over", "agent"), cleared))


def _of_asset(fleet: Fleet, asset: Asset, operation: Operation, now: datetime) -> Iterator[Blocker]:
    row = OPERATIONS[operation.kind]
    if "power" in row.needs or "power_off" in row.needs:
        yield from _hands(fleet, asset.scopes, powers="power" in row.needs)
    if SAFE in row.needs:
        yield from wet(fleet, asset, now, bring_up=bool(operation.plan))
    if row.port == "bmc" and not row.aside:
        rack = fleet.racks.get(asset.position.rack)
        yield from _landing(rack.settling if rack is not None else (), asset.id, operation)


def wet(fleet: Fleet, asset: Asset, now: datetime, *, bring_up: bool) -> Iterator[Blocker]:
    """Why the asset does not count as dry: it leaked, a detector of its rack is wet, or nobody has looked lately.

    `bring_up`: for its trays every detector counts that the rack's manifest asks for; one that has vanished is missed.
    """
    shown = observed(f"a look shows it (hostler asset list --rack {asset.position.rack} -o wide)", "bmc")
    if told := rack_match.not_yet_sound(asset):
        yield Blocker("danger", asset.id, told, by_act(AssetSound(), asset.id, "a person says so"))
    for gap in rack_match.unread(asset, now):
        yield Blocker("rack", asset.id, f"nobody knows whether {asset.id} is dry: {gap.text}", shown)
    yield from (Blocker("danger", asset.id, told, shown) for told in vanished(asset))
    for one in fleet.assets_of(asset.position.rack):
        for name, word in one.look.leaks if one.look is not None else ():
            if word not in ("", "ok") or (not word and one.id == asset.id):
                yield Blocker(
                    "danger",
                    one.id,
                    f"{one.id} {name} says {word or 'nothing'}",
                    observed(f"it is dry: {shown.text}", "bmc"),
                )
    if bring_up and asset.kind is AssetKind.switch_tray:
        yield from (Blocker("rack", gap.about or asset.id, gap.text, shown) for gap in _undetected(fleet, asset, now))


def vanished(asset: Asset) -> Iterator[str]:
    """Sentences about detectors that were wet, and are listed no more by what answers for the asset now."""
    listed = {name for name, _ in asset.look.leaks} if asset.look is not None else set[str]()
    swapped = f"where it was swapped: hostler asset rebind {asset.id} --kind serial --value … --reason …"
    yield from (
        f"{asset.id} {name} was wet and is not listed any more; {swapped}" for name in asset.wet if name not in listed
    )


def _undetected(fleet: Fleet, asset: Asset, now: datetime) -> Iterator[rack_match.RackGap]:
    """Gaps of the stage of leak detectors, by the manifest for which the rack is brought up."""
    rack = fleet.racks.get(asset.position.rack)
    if rack is None or rack.run is None:
        return
    place = rack_match.place_of(fleet, rack.name, fleet.configuration.skus.get(rack.run.sku))
    if place is not None:
        yield from rack_match.gaps(place, rack_match.LEAK_DETECTORS, now)


def _hands(fleet: Fleet, concerned: tuple[Scope, ...], *, powers: bool) -> Iterator[Blocker]:
    """Holds of people who have the hands in it, and those that keep it dark."""
    kinds = (HoldKind.physical_work, HoldKind.power) if powers else (HoldKind.physical_work,)
    yield from (held(hold) for hold in fleet.holds_on(concerned) if hold.kind in kinds)


def _landing(settling: tuple[Operation, ...], asset: str, operation: Operation) -> Iterator[Blocker]:
    """Blockers by acts that were given up at the same BMC and may still land; of this asset alone, "" for a node's."""
    for late in settling:
        if OPERATIONS[late.kind].port == "bmc" and late.node == (asset or operation.node) and late.id != operation.id:
            whose = f" of {asset}" if asset else ""
            yield Blocker(
                "operation",
                late.id,
                f"{late.kind}{whose} may still take effect",
                by_time("its settle time is over", late.deadline),
            )
