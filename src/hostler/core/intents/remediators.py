"""Other programs that treat a cluster's nodes: which there are, and which Hostler may act beside."""

from collections.abc import Callable

from hostler.core.intents.affected_nodes import freed
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, Nodes, RefusalError
from hostler.core.state import events as e
from hostler.core.state.remediators import unaccepted
from hostler.core.state.scopes import CLUSTER
from hostler.core.state.verbs.remediators import AcceptRemediator, ReportRemediators, WithdrawRemediator

NAMES_MAX = 32


def report(ask: Ask[ReportRemediators]) -> Granted:
    """Record all remediators that a cluster shows now; one that is gone loses its acceptance."""
    cluster = _cluster(ask)
    names = tuple(sorted({name.strip() for name in ask.act.remediators.split(",")} - {""}))
    if len(names) > NAMES_MAX or any(len(name) > 64 for name in names):
        raise RefusalError(f"name at most {NAMES_MAX} remediators, each with at most 64 characters")
    if names == tuple(sorted(one.name for one in ask.context.fleet.cell.remediators if one.cluster == cluster)):
        return f"cluster {cluster}: no change", ()
    text = f"other remediators in cluster {cluster}: {', '.join(names) or 'none'}"
    return text, (e.RemediatorsFound(cluster, names, ask.intent.person),)


def accept(accepted: bool) -> Callable[[AnyAsk], Granted]:
    """Hostler may act beside this program of the cluster, or no longer."""

    def grant(ask: AnyAsk) -> Granted:
        cluster, name = _cluster(ask), ask.act.remediator
        here = {one.name for one in ask.context.fleet.cell.remediators if one.cluster == cluster}
        if name not in here:
            raise RefusalError(f"no remediator '{name}' was found in cluster {cluster}: {', '.join(sorted(here))}")
        if (name in {one.name for one in unaccepted(ask.context.fleet, cluster)}) is not accepted:
            raise RefusalError(
                f"remediator {name} of cluster {cluster} is {'accepted already' if accepted else 'not accepted'}"
            )
        text = f"remediator {name} of cluster {cluster} is {'accepted' if accepted else 'no longer accepted'}"
        return text, (e.RemediatorAccepted(cluster, name, accepted, ask.intent.person, ask.intent.reason),)

    return grant


def _cluster(ask: AnyAsk) -> str:
    scope = ask.intent.scope
    if scope.kind != CLUSTER or not scope.name:
        raise RefusalError("the target is a cluster: write cluster:NAME")
    return scope.name


def _accepted(ask: Ask[AcceptRemediator]) -> Nodes:
    return freed(ask, "remediator", f"{ask.intent.scope.name}/{ask.act.remediator}")


HANDLERS: Handlers = {
    ReportRemediators: Handler(report),
    AcceptRemediator: Handler(accept(accepted=True), _accepted),
    WithdrawRemediator: Handler(accept(accepted=False)),
}
