"""Ceilings of budgets: requests for more at once are refused when they are asked for, with what would fit."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.policy.budgets import allowance, costs_availability, domain_limit, is_whole
from hostler.core.policy.disruption_request import DisruptionRequest, is_harmless, removes
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Node


class Ceiling(Struct, frozen=True):
    """The most of these nodes that may be taken at once though nothing else were out, and who says so."""

    most: int
    nodes: frozenset[str]
    why: str


def never_fits(context: DecisionContext, request: DisruptionRequest) -> str:
    """Why the request could not begin as one though nothing else were out, "" where it could."""
    found = (one for one in _ceilings(context, request) if len(one.nodes) > one.most)
    return next((f"{one.why}, and this takes {len(one.nodes)}" for one in found), "")


def fitting(context: DecisionContext, request: DisruptionRequest) -> tuple[Node, ...]:
    """The first of the request's nodes that would fit, as many as may be taken at once."""
    ceilings = list(_ceilings(context, replace(request, scope=None), parts=True))
    left = [one.most for one in ceilings]
    found: list[Node] = []
    for node in request.nodes:
        own = [number for number, one in enumerate(ceilings) if node.id in one.nodes]
        if all(left[number] > 0 for number in own):
            found.append(node)
            for number in own:
                left[number] -= 1
    return tuple(found)


def reserve_helps(context: DecisionContext, request: DisruptionRequest) -> bool:
    """Whether it would fit as an immediate act, which may use the pool's reserve."""
    return request.act_class is ActClass.pending and not never_fits(
        context, replace(request, act_class=ActClass.immediate)
    )


def _ceilings(context: DecisionContext, request: DisruptionRequest, *, parts: bool = False) -> Iterator[Ceiling]:
    """The ceilings over the request; `parts`: over parts of it, which are no whole failure domain."""
    if is_harmless(request.remedy):
        return
    yield from _of_pools(context, request)
    yield from _of_domains(context, request, parts=parts)


def _of_pools(context: DecisionContext, request: DisruptionRequest) -> Iterator[Ceiling]:
    for name in sorted({node.pool for node in request.nodes if node.pool}):
        pool = context.fleet.pools.get(name)
        members = [node for node in request.nodes if node.pool == name]
        if pool is None:
            continue
        costing = frozenset(node.id for node in members if costs_availability(context, node))
        if costing:
            limit = allowance(pool.budget, pool.target, request.act_class)
            yield Ceiling(limit, costing, f"pool {name} allows {limit} of {pool.target} to be unavailable at once")
        if removes(request.remedy):
            most = pool.budget.removals_per_day
            ids = frozenset(node.id for node in members)
            yield Ceiling(most, ids, f"pool {name} lets {most} nodes leave it in a day")


def _of_domains(context: DecisionContext, request: DisruptionRequest, *, parts: bool) -> Iterator[Ceiling]:
    ids = frozenset(node.id for node in request.nodes)
    for domain in sorted({domain for node in request.nodes for domain in node.domains}):
        limit = domain_limit(context, domain)
        if limit is None or domain == request.scope or (not parts and len(ids) > 1 and is_whole(context, domain, ids)):
            continue
        members = frozenset(node.id for node in request.nodes if domain in node.domains)
        yield Ceiling(limit, members, f"{domain} allows {limit} of its nodes to be disturbed at once")
