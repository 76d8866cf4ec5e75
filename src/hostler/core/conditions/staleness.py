"""Silence of sources, and what nobody can say any more: conditions become unknown, and known again.

An observer tells what changes; as long as it is heard, what it said last still holds. When it falls silent, nobody
confirms and nobody revokes what it has shown: after its row's time such a condition is *unknown*. It stands, counts as
no health, begins no remedy by itself, and is not cleared by the clock. What is told is told for many nodes at once.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.diagnose.rules import GPU_SHOWN, HOST_SHOWN, aspects_of
from hostler.core.state import events as e
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Blocker, Condition, Node
from hostler.core.state.verbs.nodes import ClearCondition
from hostler.core.state.ways_out import by_act, observed
from hostler.core.tables.conditions import CONDITIONS

AGENT, BMC = "agent", "bmc"
NODES_AT_ONCE = 500
"""So many nodes are told of in one record."""
SETTLE_S = 900.0
"""How long an agent must have been back before what it leaves uncontradicted is believed again: its slowest collector
has then looked and told what is otherwise."""

COLLECTORS = {
    "kernel_log": "collector:kernel_log",
    "gpu_state": "collector:nvml",
    "dcgm_state": "collector:dcgm",
    "host_state": "collector:host",
    "ports": "collector:ports",
    "inventory": "collector:inventory",
}
"""Way of seeing (`Evidence.path`) → the part of the agent that looks."""
BMC_TOO_LARGE = "bmc.response_too_large"
_ALL_READINGS = ("system", "sensors")
"""Readings of a BMC without which it has no others; no reading depends on its log, say."""
CHECKED = frozenset({"verdict", "external"})
TELLS_AGAIN = frozenset({"bmc", "verdict", "external", "inventory"})
"""Ways of seeing that tell what stands again within the hour: what they do not tell is not affirmed by their return."""


def sources_of(condition: Condition) -> tuple[tuple[str, ...], ...]:
    """For every way by which it was seen, the chain of those who must be heard for it to be confirmed or revoked.

    () where Hostler itself or a person says so: neither falls silent while anything is decided.
    """
    row = CONDITIONS.get(condition.type)
    if row is not None and row.source != "observer":
        return ()
    return tuple(_chain(path, condition) for path in condition.paths or ("",))


def _chain(path: str, condition: Condition) -> tuple[str, ...]:
    if path == BMC:
        return (BMC,)
    if (row := CONDITIONS.get(condition.type)) is not None and row.names_silent:
        return (AGENT,)
    if path in COLLECTORS:
        return (AGENT, COLLECTORS[path], *_readings(path, condition))
    if path in CHECKED and (check := _check_of(condition)):
        return (AGENT, check)
    return (AGENT,)


def _readings(path: str, condition: Condition) -> tuple[str, ...]:
    """The aspect that shows the condition: once it cannot be read any more, nobody says how that is."""
    place = "host" if path == "host_state" else condition.part
    return tuple(f"reading:{aspect}/{place}" for aspect in _ASPECTS.get(path, {}).get(condition.type, ())[:1])


_ASPECTS = {"gpu_state": aspects_of(GPU_SHOWN), "host_state": aspects_of(HOST_SHOWN)}


def _check_of(condition: Condition) -> str:
    """The check that would say otherwise: "check:NAME" or "check:NAME/PART"."""
    if condition.part.startswith("check:"):
        return condition.part
    named = next((f for seen in reversed(condition.evidence) if (f := seen.facts.get("check"))), "")
    return f"check:{named}" if named else ""


class SilentSources(Struct, frozen=True):
    """Sources silent now among those asked about, and those is certainly heard; of others nothing is known."""

    silent: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()


def _now(context: DecisionContext, node: Node, unheard_agents: Iterable[str]) -> SilentSources:
    asked = dict.fromkeys(s for c in node.conditions for chain in sources_of(c) for s in chain)
    asked.update(dict.fromkeys(source for source, _ in node.unheard))
    states = {source: _is_silent(context, node, source, unheard_agents) for source in asked}
    return SilentSources(tuple(s for s in states if states[s]), tuple(s for s in states if states[s] is False))


def _is_silent(context: DecisionContext, node: Node, source: str, unheard_agents: Iterable[str]) -> bool | None:
    """The answer, None where it is not known yet, as for a while after a start."""
    if source == AGENT:
        if node.id in unheard_agents or _stands(node, "agent.outdated") or _stands(node, "agent.refused"):
            return True
        return False if context.live.of(node.id).heard else None
    if source == BMC:
        too_large = any(c.type == BMC_TOO_LARGE and c.part in _ALL_READINGS for c in node.conditions)
        return too_large or _stands(node, "bmc.unreachable") or _stands(node, "bmc.refused")
    if source.startswith("check:"):
        return any(
            c.type == "check.inconclusive" and c.part in (source, source.partition("/")[0]) for c in node.conditions
        )
    if source.startswith("reading:"):
        aspect, _, place = source.removeprefix("reading:").partition("/")
        return any(aspect in _aspects_missing(c) for c in node.conditions if c.part == place)
    gone = source == COLLECTORS["gpu_state"] and any(
        c.type == "reading.missing" and c.part == "nvml" for c in node.conditions
    )
    return gone or any(c.type == "agent.collector_failed" and c.part == source for c in node.conditions)


def _aspects_missing(condition: Condition) -> list[str]:
    """The reading that a reading.missing is about."""
    if condition.type != "reading.missing" or not condition.evidence:
        return []
    return str(condition.evidence[-1].facts.get("aspects", "")).split(", ")


def _stands(node: Node, kind: str) -> bool:
    return any(c.type == kind for c in node.conditions)


def silent_since(node: Node, condition: Condition) -> datetime | None:
    """Since when nobody is heard who could confirm or revoke the condition; None while somebody is."""
    unheard = dict(node.unheard)
    if not unheard:
        return None
    ways = [min((unheard[s] for s in chain if s in unheard), default=None) for chain in sources_of(condition)]
    known = [since for since in ways if since is not None]
    return max(known) if known and len(known) == len(ways) else None


def unknown_at(context: DecisionContext, node: Node, condition: Condition) -> datetime | None:
    """When the condition becomes unknown if nobody is heard until then; None where somebody is, or it is so already."""
    since = silent_since(node, condition) if condition.unknown_since is None else None
    row = CONDITIONS.get(condition.type)
    if since is None or row is None:
        return None
    return since + timedelta(seconds=scaled(context.fleet.policy_of(node), row.unknown_after_s))


def known_at(context: DecisionContext, node: Node, condition: Condition) -> datetime | None:
    """When an unknown condition is believed again because who could say otherwise is back and does not."""
    if condition.unknown_since is None or node.heard_again is None or silent_since(node, condition) is not None:
        return None
    ways = zip(condition.paths or ("",), sources_of(condition), strict=False)
    unheard = dict(node.unheard)
    if not any(path not in TELLS_AGAIN and unheard.keys().isdisjoint(chain) for path, chain in ways):
        return None
    return node.heard_again + timedelta(seconds=scaled(context.fleet.policy_of(node), SETTLE_S))


def next_moment(context: DecisionContext, node: Node) -> datetime | None:
    """When the clock alone makes a condition of the node unknown, or known again."""
    if not node.unheard and node.heard_again is None:
        return None
    found = (at for c in node.conditions for at in (unknown_at(context, node, c), known_at(context, node, c)))
    return min((at for at in found if at is not None), default=None)


def review(context: DecisionContext, node_ids: Iterable[str], unheard_agents: Iterable[str]) -> Iterator[e.Event]:
    """Events of silence and its end for these nodes, in records about many nodes each. Nothing where all is as it was.

    `unheard_agents` are the nodes whose agents have passed the policy's silence by now.
    """
    silent: dict[str, tuple[str, ...]] = {}
    heard: dict[str, tuple[str, ...]] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for node_id in node_ids:
        node = context.fleet.nodes.get(node_id)
        if node is None or not node.conditions:
            continue
        now, before = _now(context, node, unheard_agents), dict(node.unheard)
        if fresh := tuple(s for s in now.silent if s not in before):
            silent[node_id] = fresh
        if back := tuple(s for s in now.heard if s in before):
            heard[node_id] = back
        if back or fresh:
            continue
        if due := tuple(c.id for c in node.conditions if _is_due(context, unknown_at(context, node, c))):
            unknown[node_id] = due
        if sure := tuple(c.id for c in node.conditions if _is_due(context, known_at(context, node, c))):
            known[node_id] = sure
    for part in _parts(silent, heard):
        yield e.SourcesChanged(*part)
    for part in _parts(unknown, known):
        yield e.KnowledgeChanged(*part)


def _is_due(context: DecisionContext, at: datetime | None) -> bool:
    return at is not None and at <= context.now


Named = dict[str, tuple[str, ...]]


def _parts(one: Named, other: Named) -> Iterator[tuple[Named, Named]]:
    """The two, in parts of so many nodes as one record tells of."""
    ids = list(dict.fromkeys((*one, *other)))
    for begin in range(0, len(ids), NODES_AT_ONCE):
        some = ids[begin : begin + NODES_AT_ONCE]
        yield {i: one[i] for i in some if i in one}, {i: other[i] for i in some if i in other}


def is_unanswered(node: Node, condition: Condition) -> bool:
    """Whether its time does not count now: nobody is heard who could have seen it again."""
    return condition.unknown_since is not None or silent_since(node, condition) is not None


def doubts(node: Node, causes: tuple[str, ...]) -> list[Blocker]:
    """The blocker of a remedy of which every cause is unknown: silence alone disturbs nobody."""
    standing = [c for c in node.conditions if c.id in causes]
    if not standing or any(c.unknown_since is None for c in standing):
        return []
    first = min(standing, key=lambda c: (c.unknown_since or c.since, c.id))
    silent = ", ".join(dict.fromkeys(source for source, _ in node.unheard))
    text = (
        f"{first.type} has been unknown since {first.unknown_since:%Y-%m-%d %H:%M:%S} UTC, "
        f"its sources are silent{f': {silent}' if silent else ''}"
    )
    clears = by_act(ClearCondition(first.id), node.id, "a person clears the condition")
    return [Blocker("observation", first.id, text, (observed("they report again", "agent"), clears))]
