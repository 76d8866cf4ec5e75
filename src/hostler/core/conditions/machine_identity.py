"""Identity of machines: whether a cluster's node of this name is the machine that the node's agent runs on.

Kubernetes knows a node by its name alone. What tells machines apart is the boot id, which the kernel draws anew at each
start: two machines never share one, while names, addresses and machine ids are copied with images.
"""

from datetime import datetime

from hostler.core.state.live_state import LiveNode
from hostler.core.state.model import Blocker, Node
from hostler.core.state.verbs.command_line import TO_SAY
from hostler.core.state.verbs.nodes import Rebind
from hostler.core.state.ways_out import WayOut, by_act

MISMATCH = "binding.mismatch"
MISBOUND_S = 300.0
"""After a start the agent and the kubelet tell the new boot id minutes apart; for longer than this both do not err."""


def compare(here: LiveNode, node: Node, now: datetime) -> bool:
    """Note since when the scheduler and the agent, both heard, tell of different boots; whether they do from now on."""
    agreed = here.boots_differ_since is None
    told = (here.scheduler_boot, node.boot_id)
    if not here.heard or here.ready is False or not all(told) or here.scheduler_boot == node.boot_id:
        here.boots_differ_since = None
    elif here.boots_differ_since is None:
        here.boots_differ_since = now
    return agreed and here.boots_differ_since is not None


def is_listed_from_an_earlier_boot(here: LiveNode, node: Node) -> bool:
    """Whether what the scheduler lists there ran before the node's present boot.

    Its daemon on the node is not ready, and the last boot that it told of is one that this machine has left: it has not
    spoken since, and begins nothing before it does. No clock is asked.
    """
    return here.ready is False and here.scheduler_boot != node.boot_id and here.scheduler_boot in node.boots


def misbound(node: Node) -> Blocker | None:
    """Blocker of acts on the node under its names, None where nothing does."""
    standing = next((c for c in node.conditions if c.type == MISMATCH), None)
    if standing is None:
        return None
    text = standing.evidence[-1].text if standing.evidence else "one of its names answers for another machine"
    return Blocker("binding", node.id, text, rebinding(node))


def rebinding(node: Node) -> WayOut:
    """The act by which a person corrects the name that answers for another machine."""
    return by_act(Rebind("kubernetes", TO_SAY), node.id, "a person corrects the binding")
