"""The index entries of a node: spare, idle, waiting, ailing, and what it shares with others."""

from collections.abc import Iterable, Iterator

from hostler.core.state.assets import DPU_BMC, MAC, OUTLET, Binding, normal_mac
from hostler.core.state.drills import running
from hostler.core.state.health import CLAIMED, is_doubted, is_healthy, is_serving
from hostler.core.state.model import ActClass, Node, Phase, Plan, Waiting
from hostler.core.state.plan_rules import Releases
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.scopes import FIRMWARE, Scope
from hostler.core.state.syndromes import SYNDROME_OF
from hostler.core.state.trends import DRIFT


def is_spare(node: Node) -> bool:
    """Healthy, serving nobody, and with nothing known of it or under way.

    What others say of its parts bars nothing; of a reading that drifts the policy says in which order it is delivered.
    """
    known = any(c.type not in (CLAIMED, DRIFT) for c in node.conditions)
    return node.assignment is None and node.plan is None and not known and is_healthy(node)


def is_in_hands(node: Node) -> bool:
    """Whether a person acts next in its phase, or for its tickets: nothing that ends elsewhere lets it go on."""
    waiting = node.waiting
    if waiting is None or waiting.in_hands:
        return waiting is not None
    return waiting.what == node.phase.value and all(blocker.kind == "person" for blocker in waiting.blockers)


def is_idle(node: Node) -> bool:
    """In production, nothing stands on it, runs or waits, and checks have passed since anything was done to it."""
    return (
        node.phase is Phase.production
        and not node.conditions
        and (not node.attempts or (node.assignment is not None and has_proven_itself(node)))
        and not node.repairs
        and (node.assignment is not None or node.inventory_boot == node.boot_id)
        and not node.cordons
        and not node.settling
        and node.plan is None
        and not node.under_way
        and node.waiting is None
        and node.deadline is None
        and node.compared is None
        and node.light is None
        and node.medium is None
        and running(node.drill) is None
    )


def awaited_places(node: Node) -> tuple[str, ...]:
    """Scopes of the budgets that an immediate remedy of the node waits for, () where it waits for anything else."""
    waiting = node.waiting
    if waiting is None or not waiting.urgent:
        return ()
    names = tuple(blocker.name for blocker in waiting.blockers)
    every = all(b.kind == "budget" and ":" in b.name and not b.name.startswith(_NO_PLACE) for b in waiting.blockers)
    return names if every else ()


_NO_PLACE = ("removals:", "spares:")
"""Budgets of which no plan that is taken back gives anything free."""


def places_of(node: Node) -> tuple[str, ...]:
    """Scopes whose budgets a plan on the node uses."""
    pool = (f"pool:{node.pool}",) if node.pool else ()
    return (*pool, *(domain.text for domain in node.domains))


def yields_place(node: Node) -> bool:
    """Whether its plan may give up its place of a budget: it can wait and has disturbed nobody.

    A drain or a release that a person asks for keeps new work away meanwhile, so that it is not taken back.
    """
    plan = node.plan
    return (
        plan is not None
        and plan.state == "running"
        and plan.act_class is ActClass.pending
        and plan.disruptive
        and not (plan.disturbed or plan.touched or plan.group or plan.rules.keeps)
        and plan.rules.releases is Releases.never
    )


def index_keys(node: Node) -> tuple[str, ...]:
    """The index entries of a node that come and go: phase:, pool:, serving:, spare:, disturbed: domain, waiting.

    "serving:POOL" are its members of which nothing is taken away, by which budgets count; "healthy:POOL" those of them
    that are healthy, "doubted:POOL" those of which nobody can say.
    "out:POOL" are its members that are not in service. By scope of a budget: "short:" who waits for room, "urgent:"
    immediate remedies that wait for a place there and in other budgets, "next:" there alone; "yields:" plans that may
    give theirs up, "yielding:" plans that do.
    "asked:TICKET" lists who is at rest and waits for the people whom the ticket asks.
    "shows:SYNDROME:SCOPE" lists who shows what a shared part can cause, for all that the node shares with others;
    "group:" who is, or is to be, part of one act on many; "blocked" who waits and may go on because of others.
    """
    keys = [f"phase:{node.phase.value}"]
    if node.assignment:
        keys.append(f"pool:{node.assignment.pool}")
        if is_serving(node):
            keys.append(f"serving:{node.assignment.pool}")
            if is_healthy(node):
                keys.append(f"healthy:{node.assignment.pool}")
            elif is_doubted(node):
                keys.append(f"doubted:{node.assignment.pool}")
        else:
            keys.append(f"out:{node.assignment.pool}")
    elif is_spare(node):
        keys.append(f"spare:{node.sku}")
    if not is_idle(node):
        keys.extend(_unrest(node))
    if node.shadows:
        keys.append("shadowed")
    return tuple(keys)


def lasting_keys(node: Node) -> tuple[str, ...]:
    """The index entries of a node that mostly stay as they are: member: of a domain or firmware, bmc, and its names."""
    members = [domain.shared for domain in node.domains]
    members.extend(Scope(FIRMWARE, version).shared for version in node.changed)
    if node.binding("bmc"):
        members.append("bmc")
    held = (b for b in node.bindings if b.until is None)
    return (*members, *(f"{b.kind}:{one}" for b in held for one in _values(b)))


def _values(binding: Binding) -> Iterable[str]:
    """The names that a binding holds. A MAC address that is kept as somebody wrote it is found as all are."""
    if binding.kind in (OUTLET, DPU_BMC):
        return binding.value.split()
    return (normal_mac(binding.value),) if binding.kind == MAC else (binding.value,)


def keeps_lasting_keys(before: Node, node: Node) -> bool:
    """Whether nothing has changed that `lasting_keys` looks at; told without making them."""
    return before.domains == node.domains and before.changed == node.changed and before.bindings == node.bindings


def _unrest(node: Node) -> Iterator[str]:
    yield "restless"
    if node.plan is not None:
        yield "planned"
        yield from _plan_keys(node, node.plan)
    if node.waiting is not None:
        yield from _waiting_keys(node, node.waiting)
    if node.under_way or node.settling:
        yield "operating"
    beside = {"lit": node.light is not None, "drilled": running(node.drill) is not None}
    yield from (key for key, stands in beside.items() if stands)
    if node.compared is not None:
        yield "compared"
    if node.differences:
        yield "differing"
    if node.conditions:
        yield from _ailing_keys(node)


def _plan_keys(node: Node, plan: Plan) -> Iterator[str]:
    if plan.group:
        yield from ("together", f"group:{plan.group}")
    if plan.disruptive and plan.state != "proposed":
        yield from (f"disturbed:{domain.text}" for domain in node.domains)
    if yields_place(node):
        yield from (f"yields:{place}" for place in places_of(node))
    if plan.state == "undoing" and plan.disruptive and not plan.disturbed:
        yield from (f"yielding:{place}" for place in places_of(node))


def _waiting_keys(node: Node, waiting: Waiting) -> Iterator[str]:
    yield "waiting"
    if not is_in_hands(node):
        yield "blocked"
    if any(blocker.kind == "domain" for blocker in waiting.blockers):
        yield "grouped"
    if waiting.in_hands:
        yield from (f"asked:{blocker.name}" for blocker in waiting.blockers)
    yield from (f"short:{blocker.name}" for blocker in waiting.blockers if blocker.kind == "budget")
    places = awaited_places(node)
    yield from (f"urgent:{place}" for place in places)
    if len(places) == 1:
        yield f"next:{places[0]}"


def _ailing_keys(node: Node) -> Iterator[str]:
    yield "ailing"
    if any(c.group for c in node.conditions):
        yield "grouped"
        yield from (f"group:{c.group}" for c in node.conditions if c.group)
    for syndrome in syndromes_of(node):
        yield from (f"shows:{syndrome}:{scope.text}" for scope in node.shares)


def syndromes_of(node: Node) -> tuple[str, ...]:
    """The syndromes that the node shows now; what an earlier boot showed is history, and a drill is no fault."""
    shown = (c for c in node.conditions if c.clears != "age" and not c.drill)
    found = [syndrome.name for c in shown if (syndrome := SYNDROME_OF.get(c.type))]
    return tuple(dict.fromkeys(found)) if found else ()
