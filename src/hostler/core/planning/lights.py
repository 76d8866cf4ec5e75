"""Has locate lights lit and put out, beside the node's plan (`Node.aside`): a light disturbs nobody. Pure.

A light goes out at its bound, when its ticket is closed, or when a person says so. What a BMC refuses is not tried
again; what fails is, ever later, and is given up in the end: the node shows which.
"""

from datetime import datetime, timedelta

from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, asked_again
from hostler.core.state.light import Light
from hostler.core.state.model import Node, Operation, Phase
from hostler.core.state.operations import LocateOff, LocateOn
from hostler.core.tables.operations import OPERATIONS

DEADLINE_S = 60.0


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer, or in its place the light's next event."""
    if isinstance(answer, Act) or node.light is None:
        return answer
    aside = _light(context, node, node.light)
    return aside if isinstance(aside, Act) else asked_again(context.now, answer, aside)


def _light(context: DecisionContext, node: Node, light: Light) -> Act | datetime | None:
    """The light's next event, when there may be one, or None where only a person or another event brings one."""
    if node.aside is not None or node.phase is Phase.retired or _is_of_a_copy(context, light):
        return None
    if light.wanted and (why := _over(context, light)):
        return Act((e.LightAsked(node.id, "hostler", why),))
    ends = light.until if light.wanted else None
    if (light.wanted and light.lit) or light.given_up:
        return ends
    if node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        return ends
    if light.again_at is not None and context.now < light.again_at:
        return light.again_at
    return Act((e.OperationStarted(_operation(context, node, light)),))


def _is_of_a_copy(context: DecisionContext, light: Light) -> bool:
    """Whether it was asked for before the journal was restored, which may be of a machine that serves elsewhere."""
    restored = context.fleet.cell.restored
    return restored is not None and light.asked_at < restored


def _over(context: DecisionContext, light: Light) -> str:
    """Why the light is to go out, "" where it stays."""
    if light.ticket and light.ticket not in context.fleet.tickets:
        return f"ticket {light.ticket} is closed"
    return "its time is over" if light.until <= context.now else ""


def _operation(context: DecisionContext, node: Node, light: Light) -> Operation:
    return Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=LocateOn() if light.wanted else LocateOff(),
        node=node.id,
        plan="",
        step=0,
        started=context.now,
        deadline=context.now + timedelta(seconds=DEADLINE_S),
        aside=True,
    )
