"""A person has the password of a node's BMC renewed, or that of one of its DPUs."""

from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.intents.nodes import fingerprint
from hostler.core.state import events as e
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.dpu_login import RENEW_DPU
from hostler.core.state.dpus import bmcs_of, serials_of
from hostler.core.state.intent import Bounds
from hostler.core.state.model import Node
from hostler.core.state.verbs.bmc_logins import RenewLogin


def renew(ask: Ask[RenewLogin]) -> Granted:
    """The renewal is due; guards are asked before it begins, as of every other act."""
    node = node_of(ask)
    if ask.act.dpu:
        return _of_dpu(ask, node)
    if ask.act.certificate:
        raise RefusalError(
            "give dpu with certificate; of the node's own BMC: "
            f"hostler node rebind {node.id} --kind bmc_certificate --value … --reason …"
        )
    if not node.binding("bmc"):
        raise RefusalError(f"{node.id} has no bmc binding: its BMC's address is not known")
    if node.aside is not None and node.aside.kind == RENEW:
        raise RefusalError(f"{node.id}: its BMC's password is being renewed; wait for it")
    due = e.BmcLoginDue(node.id, ask.intent.person, ask.intent.reason[:500], ask.act.anew)
    return f"the password of {node.id}'s BMC is to be renewed", (due,)


def _of_dpu(ask: Ask[RenewLogin], node: Node) -> Granted:
    bmc, certificate = ask.act.dpu, ask.act.certificate
    if bmc not in bmcs_of(node):
        named = ", ".join(bmcs_of(node)) or "none (hostler node rebind NODE --kind dpu_bmc)"
        raise RefusalError(f"{bmc[:120]!a} is no BMC of a DPU of {node.id}; it has {named}")
    if not serials_of(node):
        raise RefusalError("its agent shows no DPU with a serial number, by which a BMC is known; have it heard first")
    if certificate and ask.intent.bounds != Bounds():
        raise RefusalError("only an operator of the whole cell may say who a DPU's BMC is: its password is sent there")
    if node.aside is not None and node.aside.kind == RENEW_DPU:
        raise RefusalError(f"{node.id}: the password of a DPU's BMC is being renewed; wait for it")
    known = fingerprint(certificate) if certificate else ""
    due = e.DpuLoginDue(node.id, bmc, ask.intent.person, ask.intent.reason[:500], ask.act.anew, known)
    return f"the password of {node.id}'s DPU's BMC {bmc} is to be renewed", (due,)


HANDLERS: Handlers = {RenewLogin: Handler(renew)}
