"""A provider's machine in the place of a return to a vendor: another instance, under an identity of its own."""

from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.intents.registration import NodeSpec, register
from hostler.core.planning.outcomes import change_phase, gone
from hostler.core.state import events as e
from hostler.core.state.assets import PROVIDER
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import OWNER, Facts, Node, Phase
from hostler.core.state.operations import ReplaceMachine
from hostler.core.state.provider import Instance, instance_of
from hostler.core.state.rma_cases import CaseResult
from hostler.core.state.verbs.machine_work import ReplaceInstance


def replace_instance(ask: Ask[ReplaceInstance]) -> Granted:
    """The provider is asked once the guards let it; nothing of the node is changed before it names the new instance."""
    node = node_of(ask)
    instance = instance_of(node)
    if instance is None:
        raise RefusalError(
            f"{node.id} names no provider: bind it (hostler node rebind {node.id} --kind {PROVIDER} --value "
            'PROVIDER/INSTANCE --reason "…")'
        )
    if node.phase is not Phase.rma:
        raise RefusalError(
            f"{node.id} is in {node.phase}: an instance is replaced in {Phase.rma}, which it reaches from triage "
            f'(hostler node rma-send {node.id} --reason "…")'
        )
    work = node.machine_work
    if work is not None and work.state in ("asked", "begun"):
        raise RefusalError(f"{node.id}: {work.act.kind} is {work.state}; wait for it")
    asked = e.MachineWorkAsked(node.id, ask.intent.person, ask.intent.reason[:500], ReplaceMachine())
    return f"provider {instance.provider} is asked for another instance in the place of {instance.id}", (asked,)


def take_place(context: DecisionContext, node: Node, facts: Facts) -> tuple[e.Event, ...]:
    """The node retired, and the new instance registered in its place. Raises InvalidInputError: then neither is.

    What the old one was convicted of, its parts and its history stay with the old one.
    """
    before = instance_of(node) or Instance("", "")
    after = Instance(before.provider, str(facts.get("instance", "")))
    (registered,) = register(context.fleet, (_spec(node, after, facts),), False, context.now, leaving=node.id)
    assert isinstance(registered, e.NodeRegistered)
    why = f"replaced by {registered.node.id}: provider {after.provider} gave instance {after.id}"
    closed = (
        e.RmaCaseClosed(case, CaseResult.replaced, OWNER, why[:500]) for case in context.fleet.rma_cases_of(node.id)
    )
    retired = (*gone(context.fleet, node, OWNER), *closed, *change_phase(context, node, Phase.retired, why))
    replaced = e.InstanceReplaced(node.id, registered.node.id, after.provider, before.id, after.id)
    return (*retired, registered, replaced)


def _spec(node: Node, after: Instance, facts: Facts) -> NodeSpec:
    """The new instance as an inventory would have it: where and what the old one was, under its own names."""
    place = node.position
    return NodeSpec(
        sku=node.sku,
        hostname=str(facts.get("hostname", "")),
        serial=str(facts.get("serial", "")),
        macs=tuple(str(facts.get("macs", "")).split()),
        provider=f"{after.provider}/{after.id}",
        cell=place.cell,
        site=place.site,
        row=place.row,
        rack=place.rack,
        u=place.u,
        domains=tuple(scope.text for scope in node.domains if scope.name != place.rack),
        profile=node.profile,
        provisioner=PROVIDER,
        tags=dict(node.tags),
    )


HANDLERS: Handlers = {ReplaceInstance: Handler(replace_instance)}
