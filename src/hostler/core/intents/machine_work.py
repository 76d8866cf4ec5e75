"""A person has a machine's provisioner inspect it, write an image to it, or clean it: of nodes that serve nobody."""

import re

from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.state import events as e
from hostler.core.state.machine_work import PROVISIONER
from hostler.core.state.model import Node, Phase
from hostler.core.state.operations import CleanMachine, DeployImage, InspectMachine
from hostler.core.state.verbs.machine_work import Clean, Deploy, Inspect

PHASES = (Phase.registered, Phase.onboard, Phase.zap_fail, Phase.triage, Phase.debug)
"""Phases in which a machine serves nobody and no limit of a bring-up counts."""
STEPS_MOST, ADDRESS_MOST = 32, 1000
_CHECKSUM = re.compile(r"[0-9a-f]{64}|[0-9a-f]{128}")
_STEP = re.compile(r"[a-z_]{1,40}\.[A-Za-z0-9_]{1,100}")
_ADDRESS = re.compile(r"(https?://[^\s/@]+/|file:///)\S+")


def inspect(ask: Ask[Inspect]) -> Granted:
    """Parts and addresses are read by the provisioner."""
    return _asked(ask, InspectMachine())


def deploy(ask: Ask[Deploy]) -> Granted:
    """An image is written; it is told by its checksum, which the provisioner verifies."""
    act, checksum = ask.act, ask.act.checksum.strip().lower()
    if not _CHECKSUM.fullmatch(checksum):
        raise RefusalError("give the image's SHA-256 or SHA-512 in hex, as `sha256sum` prints it")
    for what, address in (("image", act.image), ("configdrive", act.configdrive)):
        if address and not (_ADDRESS.fullmatch(address) and len(address) <= ADDRESS_MOST):
            raise RefusalError(f"{what} is no http, https or file address without a login in it")
    return _asked(ask, DeployImage(act.image, checksum, act.configdrive))


def clean(ask: Ask[Clean]) -> Granted:
    """The steps run in the order given."""
    named = [one for one in re.split(r"[\s,]+", ask.act.steps.strip()) if one]
    if not 0 < len(named) <= STEPS_MOST or not all(_STEP.fullmatch(one) for one in named):
        raise RefusalError(f"give 1 to {STEPS_MOST} steps as INTERFACE.STEP, as deploy.erase_devices_metadata")
    return _asked(ask, CleanMachine(tuple(named)))


def _asked(ask: AnyAsk, act: InspectMachine | DeployImage | CleanMachine) -> Granted:
    node = node_of(ask)
    _demand_free(node)
    asked = e.MachineWorkAsked(node.id, ask.intent.person, ask.intent.reason[:500], act)
    return f"{act.kind} is asked for on {node.id}", (asked,)


def _demand_free(node: Node) -> None:
    """Raise RefusalError where the machine is not Ironic's to work on now."""
    if node.provisioner != PROVISIONER:
        raise RefusalError(f"{node.id} has the provisioner {node.provisioner}: it is not an Ironic's machine")
    if node.phase not in PHASES or node.assignment is not None:
        raise RefusalError(
            f"{node.id} is in {node.phase}: an Ironic works on nodes in {', '.join(PHASES)}; move it to triage first"
        )
    if node.plan is not None:
        raise RefusalError(f"{node.id}: {node.plan.name} is under way; wait for it")
    work = node.machine_work
    if work is not None and work.state in ("asked", "begun"):
        raise RefusalError(f"{node.id}: {work.act.kind} is {work.state}; wait for it")


HANDLERS: Handlers = {Inspect: Handler(inspect), Deploy: Handler(deploy), Clean: Handler(clean)}
