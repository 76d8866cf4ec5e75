"""No module acts on the outside beside a recorded operation: read from the source, for every module of the house."""

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests import source

pytestmark = pytest.mark.xdist_group("source")  # parsed once, by one worker
Nodes = list[ast.Call | ast.ClassDef]

PERFORMING = {
    "runtime/dispatcher.py": "the dispatcher itself",
    "runtime/merged_schedulers.py": "hands the dispatcher's operation to the schedulers of one cluster",
    "drivers/kubernetes/gpu_operator_reset.py": "hands the dispatcher's operation to the agent once operands are gone",
    "drivers/boot/boot_secret_handover.py": "hands the dispatcher's power-on to the BMC once the boot is set",
    "drivers/boot/network_reboot.py": "hands the dispatcher's reboot on once the secret of that boot is with the BMC",
    "drivers/infiniband/agent_pages.py": "asks an agent to print pages of the network's tools, which changes nothing",
    "drivers/infiniband/port_resets.py": "hands the dispatcher's reset to the agent where the tools run elsewhere",
    "drivers/provider/provider_hands.py": "hands the dispatcher's operation to the BMC or the agent of other nodes",
    "drivers/standalone/scheduler.py": "its own: observing is performing, where there is nothing to do",
    "app/evidence_keeper.py": "hands the dispatcher's collection to the agent, in the parts that a bundle has",
    "app/check_readings_keeper.py": "hands the dispatcher's operation to the schedulers, keeps what checks measured",
    "app/node_sanitiser.py": "hands the dispatcher's sanitising to the agent, and asks the BMC what it runs",
    "drivers/ironic/ironic_nodes.py": "hands the dispatcher's operation to the BMC of a node that no Ironic has",
    "app/cluster_connections.py": "hands the dispatcher's operation to the agent or to Slurm",
}
"""Callers of a driver's `perform` or `revoke`."""

WRITING = {
    # acts: reached from a driver's `perform` and `revoke` alone
    "drivers/kubernetes/scheduler.py": "cordon, uncordon, evict, join, leave, turn away",
    "drivers/kubernetes/bootstrap_tokens.py": "the token of a join",
    "drivers/kubernetes/gpu_operator.py": "pauses operands for a reset, and gives them back",
    "drivers/kubernetes/idle_check_jobs.py": "the Job of an idle check; the Tidier takes away what no operation wants",
    # upkeep: Hostler's own objects and words (ADR 37)
    "drivers/kubernetes/annotation_requests.py": "the answer to a person's request",
    "drivers/kubernetes/csr_approver.py": "the certificate of a kubelet whose join is under way",
    "drivers/kubernetes/doctor.py": "asks what the account may do (SelfSubjectAccessReview)",
    "drivers/kubernetes/liveness_lease.py": "its own Lease",
    "drivers/kubernetes/node_status_writer.py": "labels, conditions and Events of its own",
    "drivers/kubernetes/secret_objects.py": "Secrets of the namespace that holds credentials of BMCs and nothing else",
}
"""Writers to an API server of Kubernetes."""

ASKED = {
    *("perform", "observe", "revoke"),
    *("views", "watch", "look", "now", "remediators", "reboots"),
    "before_reboot",  # of an operation that the dispatcher has just handed to `network_reboot`
    *("joining", "collect", "answer", "waiting", "send_away", "close"),
}
"""Methods that a driver may offer beside performing: looking, and what belongs to its own transport."""


@cache
def modules() -> tuple[tuple[str, Nodes], ...]:
    """File and nodes of all but sim, which plays the outside, and the agent, which is what is asked."""
    trees = ((f"{name.replace('.', '/')}.py", tree) for name, tree in source.sources().trees.items())
    return tuple((name, nodes_of(tree)) for name, tree in trees if not name.startswith(("sim/", "agent/")))


def nodes_of(tree: ast.AST) -> Nodes:
    """The nodes that the rules ask about; a tree is walked once for all of them."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.ClassDef)]


def calls(nodes: Nodes, *names: str) -> Iterator[ast.Call]:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield node


def performs(nodes: Nodes) -> bool:
    """Whether it asks a driver: an operation and its node are given."""
    return any(len(call.args) == 2 for call in calls(nodes, "perform", "revoke"))


def writes(nodes: Nodes) -> bool:
    return any(call.args for call in calls(nodes, "change"))


def offered(nodes: Nodes) -> Iterator[tuple[str, set[str]]]:
    """Each driver, a class with `kinds` and `perform`, with its public methods."""
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        methods = {one.name for one in node.body if isinstance(one, ast.AsyncFunctionDef | ast.FunctionDef)}
        protocol = any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
        if "perform" in methods and not protocol:
            yield node.name, {name for name in methods if not name.startswith("_")}


def test_only_the_dispatcher_and_who_hands_its_operation_on_ask_a_driver_to_act() -> None:
    assert {name for name, nodes in modules() if performs(nodes)} == set(PERFORMING)


def test_every_module_that_writes_to_kubernetes_is_named_with_its_reason() -> None:
    assert {name for name, nodes in modules() if writes(nodes)} == set(WRITING)


def test_a_driver_offers_nothing_that_acts_beside_perform_and_revoke() -> None:
    found = [(name, driver, methods - ASKED) for name, nodes in modules() for driver, methods in offered(nodes)]
    assert [one for one in found if one[2]] == []
    assert len(found) >= 8


def test_a_loop_of_a_driver_s_own_would_be_seen() -> None:
    loop = nodes_of(
        ast.parse("async def turn(self):\n await self.driver.perform(order, node)\n await self.api.change('PATCH', at)")
    )
    driver = nodes_of(ast.parse("class S:\n async def perform(self): ...\n async def turn_away(self): ..."))
    assert performs(loop)
    assert writes(loop)
    assert list(offered(driver)) == [("S", {"perform", "turn_away"})]
