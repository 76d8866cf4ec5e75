"""The one door of every disruption: the guard table, and each guard's answer with its reason.

Rows and columns are those of the reference: a cell says whether an act of that class passes a guard or waits.
"""

from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.conditions.machine_identity import misbound
from hostler.core.policy.corroboration import doubted
from hostler.core.policy.incidents import holding
from hostler.core.state import remediators
from hostler.core.state.configuration import Budget, Pool
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import OFF, LiveState
from hostler.core.state.model import FLEET, OWNER, ActClass, Blocker, Hold, HoldKind, Mode, Node, Phase
from hostler.core.tables.recipes import RECIPES

_CLASSES = (ActClass.protective, ActClass.easing, ActClass.immediate, ActClass.pending, ActClass.bring_up)

GUARDS: dict[str, dict[ActClass, bool]] = {
    guard: dict(zip(_CLASSES, asked, strict=True))
    for guard, *asked in (
        # guard, then whether it is asked: protective, easing, immediate, pending, bring-up
        ("restored", False, False, True, True, True),
        ("pause", False, False, True, True, True),
        ("brake", False, False, True, True, True),
        ("hold", False, False, True, True, True),
        ("remediator", False, False, True, True, False),
        ("binding", False, False, True, True, True),
        ("incident", False, False, True, True, False),
        ("physical_work", False, False, True, True, True),
        ("budget", False, False, True, True, True),
        ("domain", False, False, True, True, False),
        ("window", False, False, False, True, False),
        ("mode", False, False, True, True, False),
        ("confirmation", False, False, True, True, False),
    )
}
"""Guard → class → whether the guard is asked. Consent of workloads is `disturb.may_disturb`, asked at the drain;
for a physical-work hold, easing passes but its power stays off (`operations.OperationRow.needs` "power")."""


class DisruptionRequest(Struct, frozen=True):
    """A disruption that asks to pass: what, under which class, for which conditions, on which nodes.

    `scope`: the failure domain that is taken whole.
    """

    remedy: str
    act_class: ActClass
    nodes: tuple[Node, ...]
    causes: tuple[str, ...] = ()
    confirm: bool = False
    approved: bool = False
    scope: str = ""


DAY = timedelta(days=1)
"""The window of the budget of removals."""


def blockers(scene: DecisionContext, request: DisruptionRequest) -> tuple[Blocker, ...]:
    """Everything that makes the request wait, in the table's order; empty means that it may go on."""
    found: list[Blocker] = []
    harmless = is_harmless(request.remedy)
    for guard, asked in GUARDS.items():
        if asked[request.act_class] and not (harmless and guard in _OF_DISTURBANCE):
            found.extend(_ANSWERS[guard](scene, request))
    return tuple(found)


_OF_DISTURBANCE = frozenset({"brake", "budget", "domain", "window"})
"""Guards that count or time disturbance; what disturbs nobody need not ask them."""


def is_harmless(remedy: str) -> bool:
    """Whether the remedy disturbs nobody: a BMC restarts and the node goes on."""
    recipe = RECIPES.get(remedy)
    return recipe is not None and not recipe.disruptive and recipe.act_class is None


def _removes(remedy: str) -> bool:
    """Whether its nodes leave their pool until they have been triaged."""
    recipe = RECIPES.get(remedy)
    return recipe is not None and recipe.to_phase is Phase.triage


def scopes(scene: DecisionContext, node: Node) -> tuple[str, ...]:
    """Every scope that a hold, pause or window on the node may be placed on."""
    pool = scene.fleet.pool_of(node)
    names = [FLEET, node.id, *node.domains, f"rack:{node.position.rack}"]
    if pool is not None:
        names += [f"pool:{pool.name}", f"cluster:{pool.cluster}"]
    return tuple(names)


def _restored(scene: DecisionContext, _request: DisruptionRequest) -> list[Blocker]:
    since = scene.fleet.cell.restored
    return [] if since is None else [restored_at(since)]


def restored_at(since: datetime) -> Blocker:
    """Blocker of all disruption until a person has looked at how reality differs from a copied journal."""
    text = f"the journal was restored at {since:%Y-%m-%d %H:%M} UTC: nothing is disturbed until a person releases it"
    return Blocker("restored", "journal", text, "a person releases it (hostler restore release)")


def _pause(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    if not scene.fleet.cell.paused:
        return []
    paused = sorted({s for node in request.nodes for s in scopes(scene, node)} & set(scene.fleet.cell.paused))
    return [Blocker("pause", s, f"disruption is paused for {s}", "somebody resumes it") for s in paused]


def _brake(scene: DecisionContext, _request: DisruptionRequest) -> list[Blocker]:
    if not scene.fleet.cell.brake:
        return []
    return [Blocker("brake", "storm", f"the storm brake is latched: {scene.fleet.cell.brake}", "a person releases it")]


def _holds(scene: DecisionContext, request: DisruptionRequest, kinds: tuple[HoldKind, ...]) -> list[Blocker]:
    if not len(scene.fleet.holds):
        return []
    wanted = {scope for node in request.nodes for scope in scopes(scene, node)}
    found = [h for h in scene.fleet.holds.values() if h.scope in wanted and h.kind in kinds]
    return [held(h) for h in sorted(found, key=lambda h: h.id) if h.until is None or h.until > scene.sure]


def held(hold: Hold) -> Blocker:
    """A hold as the blocker it is."""
    if hold.kind is HoldKind.power and hold.owner != OWNER:
        ends = f"hostler node start-work {hold.scope}, or hostler hold release {hold.id}"
        return Blocker("hold", hold.id, f"{hold.owner} keeps {hold.scope} powered off: {hold.reason}", ends)
    return Blocker("hold", hold.id, f"{hold.owner} holds {hold.scope}: {hold.reason}", "the hold is released")


def _hold(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """What is kept powered off may be powered off again: somebody may have pressed its button."""
    kinds = (HoldKind.operator, HoldKind.override, HoldKind.power)
    return _holds(scene, request, kinds[:2] if request.remedy == "power_off" else kinds)


def _remediator(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Beside a second remediator of the cluster nothing is disturbed until a person has accepted it."""
    if not scene.fleet.cell.remediators:
        return []
    return remediators.blockers(scene.fleet, {node.pool for node in request.nodes})


def _binding(_scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Where another machine answers to a node's name, nothing is done under it."""
    return [found for node in request.nodes if (found := misbound(node)) is not None]


def _physical_work(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    return _holds(scene, request, (HoldKind.physical_work,))


def incident_holds(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """The shared part is dealt with first: remedies of single nodes for what an incident explains wait."""
    if scene.fleet.incidents.bare:
        return []
    found = [b for node in request.nodes for b in holding(scene.fleet, node, request.causes)]
    return list(dict.fromkeys(found))


def allowance(budget: Budget, target: int, act_class: ActClass) -> int:
    """How many members may be unavailable: the stricter of count and percent of the *target*.

    Immediate acts may use the reserve on top. Where the percentage allows any at all, it allows one.
    """
    by_percent = int(target * budget.percent / 100)
    if budget.percent > 0 and target > 0:
        by_percent = max(by_percent, 1)
    limit = min(budget.count, by_percent)
    return limit + budget.reserve if act_class is ActClass.immediate else limit


def unavailable(scene: DecisionContext, pool: Pool) -> int:
    """The pool's target less its members in service: a node moved away counts, one that merely ails does not yet."""
    return max(0, pool.target - scene.fleet.index.count(f"serving:{pool.name}"))


def _budget(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    if request.act_class is ActClass.bring_up:
        return _bring_up_budget(scene, request)
    found: list[Blocker] = []
    for name in sorted({node.pool for node in request.nodes if node.pool}):
        pool = scene.fleet.pools.get(name)
        if pool is None:
            text = f"pool {name} is in no active configuration, so its budget is unknown"
            found.append(Blocker("budget", f"pool:{name}", text, "the pool is configured again"))
            continue
        members = [node for node in request.nodes if node.pool == name]
        found.extend(_pool_budget(scene, pool, members, request))
        found.extend(_removal_budget(scene, pool, members, request))
        found.extend(_spares_floor(scene, pool, request))
    return found


def _pool_budget(scene: DecisionContext, pool: Pool, members: list[Node], request: DisruptionRequest) -> list[Blocker]:
    serving = frozenset(scene.fleet.index.members(f"serving:{pool.name}")) if len(members) > 1 else None
    cost = sum(1 for node in members if _is_serving(node, serving))
    if cost == 0:
        return []
    now_out, limit = unavailable(scene, pool), allowance(pool.budget, pool.target, request.act_class)
    if now_out + cost <= limit:
        return []
    text = f"pool {pool.name}: {now_out} of {pool.target} unavailable, {cost} more would pass the budget of {limit}"
    return [Blocker("budget", f"pool:{pool.name}", text, "another node of the pool is back in service")]


def _is_serving(node: Node, serving: frozenset[str] | None) -> bool:
    if serving is not None:
        return node.id in serving
    return (node.plan is None or node.plan.state == "proposed") and not node.cordons


def _removal_budget(
    scene: DecisionContext, pool: Pool, members: list[Node], request: DisruptionRequest
) -> list[Blocker]:
    if not _removes(request.remedy):
        return []
    day = scene.sure - DAY
    done = sum(1 for r in scene.fleet.cell.recent if r.pool == pool.name and _removes(r.name) and r.at > day)
    if done + len(members) <= pool.budget.removals_per_day:
        return []
    text = f"pool {pool.name}: {done} nodes left it in 24 h, the limit is {pool.budget.removals_per_day}"
    return [Blocker("budget", f"removals:{pool.name}", text, "a day has passed since the first of them")]


def _spares_floor(scene: DecisionContext, pool: Pool, request: DisruptionRequest) -> list[Blocker]:
    """A merely degraded node leaves its pool only where a spare may take its place; what is broken is out anyway."""
    floor = pool.budget.spares_floor
    if not _removes(request.remedy) or request.act_class is not ActClass.pending or not floor:
        return []
    ready = scene.fleet.index.count(f"spare:{pool.sku}")
    if ready > floor:
        return []
    left = f"{ready} spares of {pool.sku} are left, {floor} are kept back"
    text = f"pool {pool.name}: {left}, so nothing would replace the node"
    return [Blocker("budget", f"spares:{pool.sku}", text, "another spare is ready")]


def reopens(scene: DecisionContext, found: tuple[Blocker, ...]) -> datetime | None:
    """When the clock alone changes a blocker: a removal budget has room again; None where it never does."""
    if not any(b.kind == "budget" and b.name.startswith("removals:") for b in found):
        return None
    return leaves(scene, DAY)


def leaves(scene: DecisionContext, window: timedelta) -> datetime | None:
    """When the next of what was done to nodes leaves a window that counts it: there is room again.

    They stand in the order in which they were done, so that a storm's thousands are not walked through.
    """
    recent = scene.fleet.cell.recent
    first = bisect_right(recent, scene.now - window, key=lambda done: done.at)
    return recent[first].at + window if first < len(recent) else None


def _bring_up_budget(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    if request.remedy != "initializing":
        return []
    limit = scene.fleet.policy.bring_up_at_once
    busy = scene.fleet.index.count("phase:initializing")
    if busy + len(request.nodes) <= limit:
        return []
    text = f"{busy} nodes are being brought up, the limit is {limit} at once"
    return [Blocker("budget", "bring_up", text, "one of them has finished")]


def _domain(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    found: list[Blocker] = []
    ids = frozenset(node.id for node in request.nodes)
    for domain in sorted({domain for node in request.nodes for domain in node.domains}):
        budget = scene.fleet.policy.domains.get(domain.partition(":")[0])
        if budget is None:
            continue
        size = scene.fleet.index.count(f"member:{domain}")
        members = [node for node in request.nodes if domain in node.domains]
        asking = sum(1 for n in members if n.plan is None or not n.plan.disruptive or n.plan.state == "proposed")
        if not asking or domain == request.scope or (len(ids) > 1 and _is_whole(scene, domain, ids)):
            continue
        busy = scene.fleet.index.count(f"disturbed:{domain}")
        limit = min(budget.count, max(1, int(size * budget.percent / 100)))
        if busy + asking > limit:
            text = f"{domain}: {busy} of {size} nodes disturbed, {asking} more would pass the budget of {limit}"
            found.append(Blocker("budget", domain, text, "another node of the domain is back"))
    return found


def _is_whole(scene: DecisionContext, domain: str, asking: frozenset[str]) -> bool:
    """Whether all of the domain that is in production is asked for at once: nothing of it is left to be spared."""
    others = [i for i in scene.fleet.index.members(f"member:{domain}") if i not in asking]
    return all(scene.fleet.nodes[i].phase is not Phase.production for i in others)


def _window(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    if not len(scene.fleet.windows):
        return []
    wanted = {scope for node in request.nodes for scope in scopes(scene, node)}
    windows = [w for w in scene.fleet.windows.values() if w.scope in wanted and w.ends > scene.sure]
    if windows and (doubt := scene.fleet.cell.doubt):
        text = f"no maintenance window of {min(w.scope for w in windows)} can be told open: {doubt.text}"
        return [Blocker("window", "clock", text, "the clock is confirmed (hostler clock confirm)")]
    if not windows or any(w.starts <= scene.now for w in windows):
        return []
    opens = min(w.starts for w in windows)
    text = f"outside the maintenance window of {min(w.scope for w in windows)}"
    return [Blocker("window", windows[0].scope, text, f"the window opens at {opens:%Y-%m-%d %H:%M} UTC")]


def mode_of(scene: DecisionContext, node: Node, remedy: str) -> Mode:
    """The mode of the node's pool × remedy: what was set by intent, else the pool's document, else observe.

    Nodes outside every pool (spares, bring-up) act: there is no customer to ask. An adopted spare is only observed:
    nobody has said yet that it may be touched.
    """
    pool = node.pool
    if not pool:
        return Mode.observe if node.adopted and node.phase is Phase.production else Mode.act
    recorded = {(p, r): m for p, r, m in scene.fleet.cell.modes}
    configured = scene.fleet.pool_of(node)
    documents = configured.modes if configured else {}
    for found in (
        recorded.get((pool, remedy)),
        recorded.get((pool, "*")),
        documents.get(remedy),
        documents.get("*"),
    ):
        if found is not None:
            return Mode(found)
    return Mode.observe


def _mode(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Observe blocks here; propose lets the plan be recorded, and it waits as proposed for a person's yes."""
    if request.approved:
        return []
    observed = {node.pool for node in request.nodes if mode_of(scene, node, request.remedy) is Mode.observe}
    return [
        Blocker(
            "mode",
            f"{pool}:{request.remedy}",
            f"{f'pool {pool}' if pool else 'an adopted spare'} stands at observe for {request.remedy}: "
            "this would be done, and is not",
            f"its mode is set to propose or act (hostler pool mode {pool} act)" if pool else "a pool at act takes it",
        )
        for pool in sorted(observed)
    ]


def _confirmation(scene: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Absence alone convicts nobody, nor does a kernel log that a tenant can write: somebody else must say so too."""
    doubts = [b for node in request.nodes for b in doubted(scene.fleet, node, request.causes)]
    if not request.confirm or doubts:
        return doubts
    silent = [node for node in request.nodes if not has_second_witness(scene.present, node)]
    return [
        Blocker(
            "confirmation",
            node.id,
            "only one path to the node is silent; neither its scheduler nor its BMC says that it is down",
            "a second independent path fails too, or the node is heard again",
        )
        for node in silent
    ]


def has_second_witness(present: LiveState, node: Node) -> bool:
    """The scheduler calls the node not ready, or its BMC says that it is off."""
    seen = present.of(node.id)
    return seen.ready is False or seen.power == OFF


Answer = Callable[[DecisionContext, DisruptionRequest], list[Blocker]]

_ANSWERS: dict[str, Answer] = {
    "restored": _restored,
    "pause": _pause,
    "brake": _brake,
    "hold": _hold,
    "remediator": _remediator,
    "binding": _binding,
    "physical_work": _physical_work,
    "incident": incident_holds,
    "budget": _budget,
    "domain": _domain,
    "window": _window,
    "mode": _mode,
    "confirmation": _confirmation,
}


def storm(scene: DecisionContext, asking: int) -> str:
    """Why the storm brake must latch before `asking` more nodes are disturbed, "" where it need not."""
    brake = scene.fleet.policy.brake
    since = scene.sure - timedelta(seconds=brake.window_s)
    if scene.fleet.cell.calm_since is not None:
        since = max(since, scene.fleet.cell.calm_since)
    recent = sum(1 for r in scene.fleet.cell.recent if r.at > since and r.name != "release")
    limit = max(brake.disruptions, int(len(scene.fleet.nodes) * brake.percent / 100))
    if recent + asking <= limit:
        return ""
    return f"{recent + asking} disruptions within {brake.window_s / 60:.0f} min, the limit is {limit}"
