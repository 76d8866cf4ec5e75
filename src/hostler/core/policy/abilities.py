"""Abilities of a node: can an operation or remedy be done on it, and if not, why, and what to do.

Asked before anything is granted, cordoned or drained. Three answers. `can`: the means is there and answers. `cannot`:
no waiting changes it, a person has to. `unknown`: the means is not heard, is not known to be there, or does not say
what it can; that is neither of the other two, and who reads it as one of them refuses a sound act or promises an
impossible one. The page: ADR 162.
"""

from enum import StrEnum
from functools import cache

from msgspec import Struct

from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import OFF, ON, LiveNode
from hostler.core.state.machine_work import PROVISIONER
from hostler.core.state.model import Blocker, Node
from hostler.core.state.provider import has_provider_alone, instance_of
from hostler.core.state.ways_out import observed
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.recipes import RECIPES

ALLOW = "start the agent of {node} with --allow-actions"
UPGRADE = "upgrade the agent of {node} to the controller's version"
BIND = "record its address: hostler node rebind {node} --kind bmc --value https://… --reason …"
IDENTIFY = "record it: hostler node rebind {node} --kind serial --value SERIAL --reason …"
LOGIN = "correct the password, certificate or serial number recorded for it; see hostler node explain {node}"
BIND_PROVIDER = "record it: hostler node rebind {node} --kind provider --value PROVIDER/INSTANCE --reason …"
_OF_PROVIDER = ("power_on", "power_off", "set_boot_network")
"""Operations on the BMC's side that a provider performs for a machine without a BMC."""
_OF_IRONIC = ("power_on", "power_off", "set_boot_network")
"""Operations on the BMC's side that an Ironic performs for the machines it has."""


class Answer(StrEnum):
    """Whether something can be done on a node."""

    can = "can"
    cannot = "cannot"
    unknown = "unknown"


class Ability(Struct, frozen=True):
    """The answer for one operation. `why`: what is missing; `mend`: what to do; "" for what can be done.

    `silent`: what would do it is known and does not answer now, so that a request waits for it. An unknown that is not
    silent is found out by trying.
    """

    answer: Answer
    kind: str = ""
    why: str = ""
    mend: str = ""
    silent: bool = False

    @property
    def text(self) -> str:
        """The kind of operation with what is wrong and what to do."""
        return f"{self.kind}: {self.why}; {self.mend}"


CAN = Ability(Answer.can)


def ability(context: DecisionContext, node: Node, kind: str) -> Ability:
    """Whether the operation of this kind can be done on the node now."""
    port = OPERATIONS[kind].port
    found = CAN if port == "present" else _BY_PORT[port](context, node, kind)
    if found.answer is not Answer.cannot and (said := lasting_refusal(context, node, kind)) is not None:
        return Ability(Answer.cannot, kind, said.summary, said.action)
    if found.answer is not Answer.can and not found.kind:
        return Ability(found.answer, kind, found.why, found.mend.format(node=node.id), found.silent)
    return found


def remedy_ability(context: DecisionContext, node: Node, name: str) -> Ability:
    """Whether the recipe of this name can be carried out on the node: the worst answer of its steps.

    Optional steps are passed over, and a check that nobody answers leaves its step open: neither excludes a remedy.
    """
    found = [ability(context, node, kind) for kind in _needed(name, has_no_power(node))]
    return next((one for wanted in _WORST for one in found if one.answer is wanted), CAN)


def excluded_remedies(context: DecisionContext, node: Node) -> dict[str, Ability]:
    """The remedies that cannot be carried out on this node, with the operation that is missing.

    Those that people ask for or a rule of its policy names: nobody misses what is never begun.
    """
    named = {rule.remedy for rule in context.fleet.policy_of(node).rules.values()}
    wanted = (name for name in DISTURBING if name in named or name in _ASKED_FOR)
    found = ((name, remedy_ability(context, node, name)) for name in wanted)
    return {name: one for name, one in found if one.answer is Answer.cannot}


def excluded_by(context: DecisionContext, node: Node) -> tuple[tuple[Ability, tuple[str, ...]], ...]:
    """Missing means of the node, each with the remedies that it excludes."""
    found: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str, str], Ability] = {}
    for name, one in excluded_remedies(context, node).items():
        missing.setdefault((one.why, one.mend), one)
        found.setdefault((one.why, one.mend), []).append(name)
    return tuple((missing[key], tuple(names)) for key, names in found.items())


def waits_for(context: DecisionContext, node: Node, name: str) -> Blocker | None:
    """The wait of a request whose means is known and does not answer now."""
    found = remedy_ability(context, node, name)
    if found.answer is not Answer.unknown or not found.silent:
        return None
    return Blocker("ability", node.id, f"{name} needs {found.kind}: {found.why}", observed(found.mend))


REFUSED = "refused"
"""The kind of ticket of an operation that was refused. `fault` is its kind, `component` what it was refused by."""


def refusal_of(context: DecisionContext, node: Node, kind: str) -> Ticket | None:
    """The open ticket about the refusal of this kind of operation on the node."""
    about = context.fleet.tickets_about(node.id)
    return next((t for t in about if t.kind == REFUSED and t.fault == kind), None)


def lasting_refusal(context: DecisionContext, node: Node, kind: str) -> Ticket | None:
    """The ticket of a refusal that no waiting changes, while what refused is what it was."""
    if context.fleet.index.lacks(f"ticket:{node.id}"):
        return None
    said = refusal_of(context, node, kind)
    return said if said is not None and said.component == basis(context, node, kind) else None


def basis(context: DecisionContext, node: Node, kind: str) -> str:
    """Ground of a refusal of this kind: another BMC, another boot or other permissions make it one of the past."""
    here, port = context.live.of(node.id), OPERATIONS[kind].port
    if port == "bmc":
        return f"bmc {node.binding('bmc')} {'refuses' if here.bmc_refused else 'serves'}"
    if port == "agent":
        verbs = here.verbs
        may = "untold" if verbs is None else f"{kind in verbs.known} {kind in verbs.barred}"
        return f"agent {node.boot_id} {may}"
    return f"{port} {node.assignment.cluster if node.assignment is not None else ''}"


_WORST = (Answer.cannot, Answer.unknown)


def has_no_bmc(node: Node) -> bool:
    """Whether no BMC of the node is recorded, and no Ironic has one."""
    return not node.binding("bmc") and node.provisioner != PROVISIONER


def has_no_power(node: Node) -> bool:
    """Whether nothing that is recorded switches the node off and on: neither a BMC nor a provider."""
    return has_no_bmc(node) and not has_provider_alone(node)


@cache
def _needed(name: str, unpowered: bool) -> tuple[str, ...]:
    """Kinds of operation without which the recipe fails; those that depend on a node's SKU are not among them.

    Of a node that nothing switches its agent's restart stands for off and on (`planning.without_bmc`). The tables do
    not change, and each step of the loop asks: kept once found.
    """
    kinds = [step.act.kind for step in RECIPES[name].steps]
    restarts = unpowered and "power_off" in kinds and "power_on" in kinds
    rows = [
        OPERATIONS[step.act.kind]
        for step in RECIPES[name].steps
        if not step.optional and step.each in ("", "firmware", "link")
    ]
    needed = [row.kind for row in rows if not row.answers and row.port != "present"]
    return tuple(dict.fromkeys("reboot" if restarts and k in ("power_off", "power_on") else k for k in needed))


_ASKED_FOR = ("gpu_reset", "reboot", "power_cycle", "firmware_update", "triage", "release", "drain")
DISTURBING = tuple(name for name, recipe in RECIPES.items() if recipe.act_class is None or recipe.disruptive)
"""Recipes that a condition's rule or a person asks for."""


def _of_bmc(context: DecisionContext, node: Node, kind: str) -> Ability:
    here = context.live.of(node.id)
    if node.provisioner == PROVISIONER and kind in _OF_IRONIC:
        return CAN if here.power in (ON, OFF) else Ability(Answer.unknown, why="Ironic has not told its power yet")
    if has_provider_alone(node) and kind in _OF_PROVIDER:
        return _of_provider(context, node, kind)
    if not node.binding("bmc"):
        return Ability(Answer.cannot, why=f"no BMC of {node.id} is recorded", mend=BIND)
    if not node.binding("serial"):
        why = f"no serial number of {node.id} is recorded, so no BMC can be known to be its own"
        return Ability(Answer.cannot, why=why, mend=IDENTIFY)
    if here.bmc_refused or _stands(node, "bmc.refused", here):
        return Ability(Answer.cannot, why=f"the BMC of {node.id} answers and refuses us", mend=LOGIN)
    if here.bmc_unreachable or _stands(node, "bmc.unreachable", here):
        return Ability(
            Answer.unknown, why=f"the BMC of {node.id} does not answer", mend="it answers a look", silent=True
        )
    if here.power_at is None:
        return Ability(Answer.unknown, why=f"the BMC of {node.id} has not been looked at yet", mend="it answers a look")
    return CAN


def _stands(node: Node, kind: str, here: LiveNode) -> bool:
    """Whether it is recorded of a BMC that nobody has looked at since the controller began."""
    return here.power_at is None and any(c.type == kind and c.unknown_since is None for c in node.conditions)


def _of_agent(context: DecisionContext, node: Node, kind: str) -> Ability:
    here = context.live.of(node.id)
    if not here.heard and kind == "reboot" and instance_of(node) is not None:
        return _of_provider(context, node, kind)
    if not here.heard:
        return Ability(
            Answer.unknown, why=f"the agent of {node.id} is not heard", mend="its agent is heard", silent=True
        )
    if here.verbs is None:
        return Ability(Answer.unknown, why=f"the agent of {node.id} does not tell what it can", mend=UPGRADE)
    if kind not in here.verbs.known:
        return Ability(Answer.cannot, why=f"the agent of {node.id} does not know this operation", mend=UPGRADE)
    if kind in here.verbs.barred:
        return Ability(Answer.cannot, why=f"the agent of {node.id} was started without --allow-actions", mend=ALLOW)
    return CAN


def _of_scheduler(context: DecisionContext, node: Node, kind: str) -> Ability:  # noqa: ARG001 - a row of the table
    """A node in no cluster has nothing to be cordoned in, and nobody to be asked."""
    if node.assignment is None:
        return CAN
    said = context.live.clusters.get(node.assignment.cluster)
    if said is None:
        why = f"the scheduler of cluster {node.assignment.cluster} has not been heard yet"
    elif said:
        why = f"the scheduler of cluster {node.assignment.cluster} does not answer: {said}"
    else:
        return CAN
    return Ability(Answer.unknown, why=why, mend="it is heard again", silent=True)


def _of_fabric(context: DecisionContext, node: Node, kind: str) -> Ability:  # noqa: ARG001 - a row of the table
    """InfiniBand's tools reset ports of networks that are looked at; which port that is, the plan knows."""
    if all(fabric.source.tool == "lldp" for fabric in context.fleet.fabrics.values()):
        why = "no InfiniBand network is recorded, and no tool resets the ports of others"
        return Ability(Answer.cannot, why=why, mend="reset the port by hand")
    if context.live.fabrics:
        return CAN
    return Ability(Answer.unknown, why="no network has been looked at yet", mend="a validation concludes")


def _of_provisioner(context: DecisionContext, node: Node, kind: str) -> Ability:  # noqa: ARG001 - a row of the table
    if node.provisioner == PROVISIONER:
        return Ability(Answer.unknown, why="Ironic says it when it is asked", mend="it is tried")
    return Ability(Answer.cannot, why=f"{node.id} is not a machine of an Ironic", mend="register it with one")


def _of_provider(context: DecisionContext, node: Node, kind: str) -> Ability:  # noqa: ARG001 - a row of the table
    instance = instance_of(node)
    if instance is not None:
        return Ability(Answer.unknown, why=f"provider {instance.provider} says it when it is asked", mend="it is tried")
    return Ability(Answer.cannot, why=f"no provider of {node.id} is recorded", mend=BIND_PROVIDER)


_BY_PORT = {
    "bmc": _of_bmc,
    "agent": _of_agent,
    "scheduler": _of_scheduler,
    "fabric": _of_fabric,
    "provisioner": _of_provisioner,
    "provider": _of_provider,
}
