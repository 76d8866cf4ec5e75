"""Decides what a machine on the boot network is told: events and the answer, or why it is refused. Pure.

A machine is known by its MAC address, then held against its serial number and the secret that its BMC was given for
this one boot. Refusals are recorded, so many of them as somebody can read.
"""

from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.boot.boot_target import IMAGE, BootTarget, boot_target_of
from hostler.core.boot.measured_boot import pcr_mismatch
from hostler.core.planning.boot_window import medium_window_of, window_of
from hostler.core.policy.fitted_adapters import awaited_at, bound
from hostler.core.state import events as e
from hostler.core.state.assets import Binding, normal_mac
from hostler.core.state.boot import HOLD, LOADER, BootConfiguration, BootRecord, Stranger
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.events.boot import STRANGERS_KEPT
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation
from hostler.core.state.operations import IssueJoinToken
from hostler.core.state.rma_cases import RmaCase

SCRIPT, SEED, HOME, FIRMWARE, ENROL, MEDIUM = "script", "seed", "home", "loader", "enrol", "medium"
"""Kinds of request: the script, cloud-init's data, to be told that the node is up, the loader that UEFI fetches, the
token of the agent, and the boot medium that a BMC reads."""

BMC, MAC, WRONG = "bmc", "mac", "wrong"
"""Proof of identity: the secret of this boot, a MAC address alone, or a secret that is not this boot's."""

DEFAULT_ARCH = "x86_64"
"""Of a boot loader for a node that has no image to boot."""

REFUSALS_RECORDED = 8
AGAIN = timedelta(hours=1)
"""Refusals of one boot beyond the first few, and a stranger seen before, are recorded again after so long."""

PROVEN = timedelta(minutes=15)
"""So long a machine whose UEFI showed the secret of this boot is known by its address: its boot loader comes next."""

MINT_S = 60.0
REFUSED = 400
"""Statuses from here on are refusals."""


class BootRequest(Struct, frozen=True):
    """One request from the boot network. `plan` is the plan that the shown secret was made for.

    `offered`: what lets the node into its cluster is at hand, or none is wanted. `arch` is the architecture that its
    boot loader starts, "" where it does not say; `unusable` are images that cannot be served, each with why.
    `key` is the SHA-256 of the key with which an agent enrols, `tpm` that of the endorsement key of the TPM that it
    proved, "" for none, `pcrs` its registers 0 to 7 as it quoted them; `fault` says why what the agent shows is not
    believed.
    """

    what: str
    address: str
    mac: str = ""
    serial: str = ""
    node: str = ""
    plan: str = ""
    identity: str = MAC
    offered: bool = True
    arch: str = ""
    unusable: dict[str, str] = {}
    key: str = ""
    tpm: str = ""
    pcrs: tuple[str, ...] = ()
    fault: str = ""


class BootDecision(Struct, frozen=True):
    """The answer, and its records. `status` is an HTTP status: 200, 202 (ask again soon), 403, 404."""

    status: int
    answer: BootTarget = BootTarget(HOLD)
    node: str = ""
    plan: str = ""
    events: tuple[e.Event, ...] = ()


def decide_boot(context: DecisionContext, asked: BootRequest) -> BootDecision:
    """The answer to a request."""
    node = node_of(context.fleet, asked)
    case = awaited_at(context.fleet, asked.mac)
    if case is not None and (node is None or node.id == case.node) and case.node in context.fleet.nodes:
        return _with_adapter(context, context.fleet.nodes[case.node], case, asked)
    if node is None:
        return _stranger(context, asked)
    return _decide(context, node, asked)


def _with_adapter(context: DecisionContext, node: Node, case: RmaCase, asked: BootRequest) -> BootDecision:
    """The answer to a machine that boots by an adapter which a return lists; the address is its own if it is let in."""
    told = bound(context.fleet, node, case, f"the machine boots by {asked.mac}")
    same = replace(node, bindings=(*node.bindings, Binding(MAC, asked.mac, context.now)))
    decided = _decide(context, same, asked)
    return decided if decided.status >= REFUSED else replace(decided, events=(*told, *decided.events))


def _decide(context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    if why := _machine_mismatch(node, asked):
        return _refused(context, node, asked, why)
    if asked.what == SCRIPT:
        return _script(context, node, _recognised(context, node, asked))
    window = medium_window_of(node) if asked.what == MEDIUM else window_of(node)
    if asked.identity == WRONG or not asked.plan or asked.plan != window:
        return _refused(context, node, asked, f"{_named(asked)} outside its boot window")
    return _ANSWERS[asked.what](context, node, asked)


def node_of(fleet: Fleet, asked: BootRequest) -> Node | None:
    """The node that the request names, else the one that has its MAC address."""
    if asked.node:
        return fleet.nodes.get(asked.node)
    members = fleet.index.members(f"mac:{asked.mac}") if asked.mac else ()
    return fleet.nodes.get(members[0]) if len(members) == 1 else None


def _machine_mismatch(node: Node, asked: BootRequest) -> str:
    """Why the machine is not the one that is expected under this name, "" where nothing speaks against it."""
    macs = {normal_mac(b.value) for b in node.bindings if b.kind == "mac" and b.until is None}
    if asked.mac and asked.mac not in macs:
        return f"MAC address {asked.mac} is not of this node"
    expected = node.binding("serial")
    if expected and asked.serial and asked.serial.casefold() != expected.casefold():
        return f"serial number '{asked.serial}' is shown, '{expected}' is expected"
    return ""


def _loader(context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    """The boot loader for UEFI, which shows the secret and nothing else of the machine: its loader says who it is.

    That it showed the secret is recorded with its address: a boot loader that does not know by which address it was
    loaded asks from there for its script.
    """
    last = node.boot
    if last is not None and last.plan == asked.plan and last.kind == IMAGE:
        return _refused(context, node, asked, "this boot has been answered already: its secret opens once")
    arch = loader_arch(context.fleet, node)
    told = BootTarget(LOADER, arch)
    if _has_shown(node, asked) and last is not None and context.now - last.at < PROVEN / 2:
        return BootDecision(200, told, node.id, asked.plan)
    given = BootRecord(asked.plan, context.now, LOADER, arch, BMC, "", asked.address)
    return BootDecision(200, told, node.id, asked.plan, (e.BootAnswered(node.id, given),))


def _medium(context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    """The boot medium, for the BMC that reads it first: in ranges, and as often as it wants until the boot is over."""
    medium = node.medium
    if medium is None or medium.plan != asked.plan:
        return _refused(context, node, asked, "no medium of this boot is to be in a drive")
    told = BootTarget(MEDIUM, loader_arch(context.fleet, node))
    if not medium.address:
        read = e.BootMediumRead(node.id, asked.plan, asked.address)
        return BootDecision(200, told, node.id, asked.plan, (read,))
    if medium.address != asked.address:
        return _refused(context, node, asked, f"this boot's medium is read from {medium.address}")
    return BootDecision(200, told, node.id, asked.plan)


def may_read_on(node: Node, asked: BootRequest) -> bool:
    """Whether a BMC that has begun to read the medium may go on: nothing new would be recorded of it."""
    medium = node.medium
    if medium is None or asked.identity != BMC or asked.plan != medium_window_of(node):
        return False
    return (medium.plan, medium.address) == (asked.plan, asked.address)


def loader_arch(fleet: Fleet, node: Node) -> str:
    """The architecture of the boot loader for the node: that of what it boots into."""
    answer, boots = boot_target_of(fleet, node), fleet.configuration_of(node).boot
    return boots.images[answer.image].arch if boots is not None and answer.kind == IMAGE else DEFAULT_ARCH


def _recognised(context: DecisionContext, node: Node, asked: BootRequest) -> BootRequest:
    """The request of a boot loader whose machine has shown the secret of this boot from the same address."""
    last, window = node.boot, window_of(node)
    if asked.identity != MAC or not window or last is None or last.plan != window or not _has_shown(node, asked):
        return asked
    return replace(asked, identity=BMC, plan=window) if context.now - last.at < PROVEN else asked


def _has_shown(node: Node, asked: BootRequest) -> bool:
    last = node.boot
    return _is_shown(node) and last is not None and last.address == asked.address and asked.plan in ("", last.plan)


def _is_shown(node: Node) -> bool:
    """Whether a machine has shown the secret of the boot under way, and has been given no image yet."""
    last = node.boot
    if last is None or last.kind not in (LOADER, HOLD) or last.identity != BMC:
        return False
    return bool(last.plan) and last.plan == window_of(node)


def _script(context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    boots = context.fleet.configuration_of(node).boot
    window, answer = window_of(node), boot_target_of(context.fleet, node)
    if asked.identity == WRONG:
        return _refused(context, node, asked, "the secret is not that of this boot")
    if answer.kind == IMAGE and (why := _unfit(boots, answer.image, asked)):
        answer = BootTarget(HOLD, reason=why)
    if answer.kind == HOLD:
        return _held(context, node, asked, answer)
    if asked.identity == MAC and (boots is None or not boots.mac_only):
        why = "it shows its MAC address alone, and the configuration does not allow that (boot.mac_only)"
        return _held(context, node, asked, BootTarget(HOLD, reason=why))
    if asked.identity == BMC and asked.plan != window:
        return _refused(context, node, asked, "the secret is of an earlier boot, or the boot window is closed")
    if window and node.boot is not None and node.boot.plan == window and node.boot.kind == IMAGE:
        return _refused(context, node, asked, "this boot has been answered already: its secret opens once")
    if not window and _is_repeated(context, node, answer):
        return BootDecision(200, answer, node.id)
    given = BootRecord(window, context.now, answer.kind, answer.image, asked.identity, "", asked.address)
    return BootDecision(200, answer, node.id, window, (e.BootAnswered(node.id, given),))


def _unfit(boots: BootConfiguration | None, image: str, asked: BootRequest) -> str:
    """Why this image cannot be given to this machine, "" where it can."""
    arch = boots.images[image].arch if boots is not None else ""
    if asked.arch and arch != asked.arch:
        return f"image {image} is for {arch}, and this machine starts {asked.arch}"
    return f"image {image} cannot be served: {asked.unusable[image]}" if image in asked.unusable else ""


def _is_repeated(context: DecisionContext, node: Node, answer: BootTarget) -> bool:
    """Whether a boot outside a window was answered alike a moment ago: a machine that restarts again and again."""
    last = node.boot
    same = last is not None and (last.plan, last.kind, last.image) == ("", answer.kind, answer.image)
    return same and last is not None and context.now - last.at < AGAIN


def _held(context: DecisionContext, node: Node, asked: BootRequest, answer: BootTarget) -> BootDecision:
    """Hold, recorded when its reason is new."""
    last = node.boot
    if last is not None and last.kind == HOLD and last.reason == answer.reason:
        return BootDecision(200, answer, node.id)
    if _is_shown(node) and not _has_shown(node, asked):
        return _refused(context, node, asked, answer.reason)  # another asks: what the machine has shown stands
    held = BootRecord("", context.now, HOLD, "", asked.identity, answer.reason, asked.address)
    if last is not None and asked.identity == BMC and _has_shown(node, asked):
        held = replace(held, plan=last.plan, at=last.at)  # what its UEFI has shown still counts when it asks again
    if last is not None and last.plan and last.plan == window_of(node) and last.kind == IMAGE:
        return BootDecision(200, answer, node.id)  # a boot under way keeps its record
    return BootDecision(200, answer, node.id, "", (e.BootAnswered(node.id, held),))


def _seed(context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    """cloud-init's data, once for each boot; the token that goes with them is minted first."""
    given = node.boot
    if given is None or given.plan != asked.plan or given.kind != IMAGE:
        return _refused(context, node, asked, "cloud-init data was asked for before a boot was answered")
    if given.seeded is not None:
        return _refused(context, node, asked, "cloud-init data was given already; each boot is given it once")
    if asked.offered:
        answer = BootTarget(given.kind, given.image)
        return BootDecision(200, answer, node.id, asked.plan, (e.BootSeeded(node.id, asked.plan, asked.address),))
    if node.aside is not None:
        return BootDecision(202, node=node.id, plan=asked.plan)
    return BootDecision(202, node=node.id, plan=asked.plan, events=(e.OperationStarted(_mint(context, node)),))


def _mint(context: DecisionContext, node: Node) -> Operation:
    configuration = context.fleet.configuration_of(node)
    assert configuration.boot is not None, "a boot was answered under a boot configuration"
    assert node.plan is not None, "an open window has a plan"
    return Operation(
        id=f"{node.id}-o{context.fleet.cell.seq}",
        act=IssueJoinToken(configuration.boot.cluster, configuration.policy.join_token_ttl_s),
        node=node.id,
        plan=node.plan.id,
        step=node.plan.index,
        started=context.now,
        deadline=context.now + timedelta(seconds=MINT_S),
        aside=True,
    )


def _enrol(context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    """A token for the agent of this boot. With the same key it may ask again: an answer may have been lost."""
    given = node.boot
    if given is None or given.plan != asked.plan or given.seeded is None:
        return _refused(context, node, asked, "an agent enrols before its boot was given cloud-init's data")
    if asked.fault:
        return _refused(context, node, asked, asked.fault)
    if given.agent and (given.agent, given.tpm) != (asked.key, asked.tpm):
        return _refused(context, node, asked, "an agent with another key has enrolled in this boot already")
    if (known := node.binding("tpm")) and known != asked.tpm:
        shown = f"the TPM {asked.tpm}" if asked.tpm else "no TPM"
        return _refused(context, node, asked, f"its agent proves {shown}, the TPM {known} is expected")
    others = [name for name in context.fleet.index.members(f"tpm:{asked.tpm}") if name != node.id] if asked.tpm else []
    if others:
        return _refused(context, node, asked, f"its agent proves the TPM {asked.tpm}, which is that of {others[0]}")
    if why := pcr_mismatch(context.fleet.configuration_of(node).skus.get(node.sku), asked.pcrs):
        return _refused(context, node, asked, why)
    if given.agent:
        return BootDecision(200, node=node.id, plan=asked.plan)
    enrolled = e.AgentEnrolled(node.id, asked.plan, asked.key, asked.address, asked.tpm, asked.pcrs)
    events: tuple[e.Event, ...] = (enrolled,)
    if asked.tpm and not known:
        events += (e.BindingChanged(node.id, Binding("tpm", asked.tpm, context.now)),)
    return BootDecision(200, node=node.id, plan=asked.plan, events=events)


def _home(_context: DecisionContext, node: Node, asked: BootRequest) -> BootDecision:
    if node.boot is None or node.boot.plan != asked.plan:
        return _refused(_context, node, asked, "it phones home before its boot was answered")
    home = e.BootPhonedHome(node.id, asked.plan, asked.address)
    return BootDecision(200, node=node.id, plan=asked.plan, events=(home,))


def _refused(context: DecisionContext, node: Node, asked: BootRequest, why: str) -> BootDecision:
    """403, recorded unless so many are that nobody learns more from another."""
    last = node.boot
    known = last is not None and last.refused >= REFUSALS_RECORDED and last.refused_at is not None
    told = BootTarget(HOLD, reason=why)
    if known and last is not None and last.refused_at is not None and context.now - last.refused_at < AGAIN:
        return BootDecision(403, told, node.id)
    return BootDecision(403, told, node.id, "", (e.BootRefused(node.id, asked.what, why, asked.address),))


def _stranger(context: DecisionContext, asked: BootRequest) -> BootDecision:
    """404, recorded when the machine is new, or is seen again after a while."""
    answer = BootTarget(HOLD, reason="this machine is not expected here: no node has its MAC address")
    known = context.fleet.cell.strangers
    fresh = [one for one in known if context.now - one.at < AGAIN]
    if not asked.mac or any(one.mac == asked.mac for one in fresh) or len(fresh) >= STRANGERS_KEPT:
        return BootDecision(404, answer)
    seen = Stranger(asked.mac, asked.serial, asked.address, context.now)
    return BootDecision(404, answer, events=(e.StrangerSeen(seen),))


_ANSWERS = {SEED: _seed, FIRMWARE: _loader, MEDIUM: _medium, ENROL: _enrol, HOME: _home}
_NAMES = {
    SEED: "cloud-init data is asked for",
    HOME: "it phones home",
    FIRMWARE: "its UEFI asks for a boot loader",
    ENROL: "its agent enrols",
    MEDIUM: "its boot medium is asked for",
}


def _named(asked: BootRequest) -> str:
    return _NAMES[asked.what]
