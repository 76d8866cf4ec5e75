"""The index entries of a node: spare, idle, waiting, ailing, and what it shares with others."""

from collections.abc import Iterable, Iterator

from hostler.core.state.assets import MAC, OUTLET, Binding, normal_mac
from hostler.core.state.dpus import DPU_BMC
from hostler.core.state.health import CLAIMED, is_doubted, is_healthy, is_serving
from hostler.core.state.model import Node, Phase, Waiting
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
    """Whether a person acts next in its phase: nothing that ends elsewhere lets it go on."""
    waiting = node.waiting
    return (
        waiting is not None
        and waiting.what == node.phase.value
        and all(blocker.kind == "person" for blocker in waiting.blockers)
    )


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
    )


def index_keys(node: Node) -> tuple[str, ...]:
    """The index entries of a node that come and go: phase:, pool:, serving:, spare:, disturbed: domain, waiting.

    "serving:POOL" are its members of which nothing is taken away, by which budgets count; "healthy:POOL" those of them
    that are healthy, "doubted:POOL" those of which nobody can say.
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
        if node.plan.group:
            yield from ("together", f"group:{node.plan.group}")
        if node.plan.disruptive and node.plan.state != "proposed":
            yield from (f"disturbed:{domain.text}" for domain in node.domains)
    if node.waiting is not None:
        yield from _waiting_keys(node, node.waiting)
    if node.under_way or node.settling:
        yield "operating"
    if node.light is not None:
        yield "lit"
    if node.compared is not None:
        yield "compared"
    if node.differences:
        yield "differing"
    if node.conditions:
        yield from _ailing_keys(node)


def _waiting_keys(node: Node, waiting: Waiting) -> Iterator[str]:
    yield "waiting"
    if not is_in_hands(node):
        yield "blocked"
    if any(blocker.kind == "domain" for blocker in waiting.blockers):
        yield "grouped"


def _ailing_keys(node: Node) -> Iterator[str]:
    yield "ailing"
    if any(c.group for c in node.conditions):
        yield "grouped"
        yield from (f"group:{c.group}" for c in node.conditions if c.group)
    for syndrome in syndromes_of(node):
        yield from (f"shows:{syndrome}:{scope.text}" for scope in node.shares)


def syndromes_of(node: Node) -> tuple[str, ...]:
    """The syndromes that the node shows now; what an earlier boot showed is history."""
    found = [syndrome.name for c in node.conditions if c.clears != "age" and (syndrome := SYNDROME_OF.get(c.type))]
    return tuple(dict.fromkeys(found)) if found else ()
