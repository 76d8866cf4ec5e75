"""Events of boots over the network: each node keeps its last boot, the cell the strangers that were seen last."""

from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.boot import BootRecord, Stranger
from hostler.core.state.boot_medium import BootMedium
from hostler.core.state.events.row import EventRow, EventRows, of_node
from hostler.core.state.fleet import Fleet

STRANGERS_KEPT = 256


class BootAnswered(Struct, frozen=True, tag="boot_answered"):
    """The node asked for a boot and was answered; an image is given once for each boot window."""

    node: str
    boot: BootRecord


class BootSeeded(Struct, frozen=True, tag="boot_seeded"):
    """The node was given cloud-init's data, and what lets it into its cluster."""

    node: str
    plan: str
    address: str


class BootPhonedHome(Struct, frozen=True, tag="boot_phoned_home"):
    """The node has come up and said so: its boot window is closed."""

    node: str
    plan: str
    address: str


class AgentEnrolled(Struct, frozen=True, tag="agent_enrolled"):
    """The agent of this boot enrolled with a key of its own, and was given a token that only this key opens.

    `key` is the key's SHA-256, `tpm` that of the TPM's endorsement key, "" where none was proved. `pcrs` are its
    registers 0 to 7 as it quoted them, () where it did not.
    """

    node: str
    plan: str
    key: str
    address: str
    tpm: str = ""
    pcrs: tuple[str, ...] = ()


class BootMediumDue(Struct, frozen=True, tag="boot_medium_due"):
    """From here on a virtual drive of the node's BMC may hold a medium with the secret of this plan's boot.

    `images` begins the addresses of all media of the node: by them they are told from others'.
    """

    node: str
    plan: str
    images: str


class BootMediumRead(Struct, frozen=True, tag="boot_medium_read"):
    """The medium of this boot was read for the first time; only from this address it may be read again."""

    node: str
    plan: str
    address: str


class BootRefused(Struct, frozen=True, tag="boot_refused"):
    """A request in the node's name for a script, cloud-init's data or the end of its boot was refused."""

    node: str
    what: str
    reason: str
    address: str


class StrangerSeen(Struct, frozen=True, tag="stranger_seen"):
    """A machine that nobody expects asked for a boot; it was booted into nothing."""

    stranger: Stranger


def _answer(fleet: Fleet, event: BootAnswered, _at: datetime) -> None:
    _put(fleet, event.node, event.boot)


def _seed(fleet: Fleet, event: BootSeeded, at: datetime) -> None:
    _put(fleet, event.node, replace(_last(fleet, event, at), seeded=at))


def _come_home(fleet: Fleet, event: BootPhonedHome, at: datetime) -> None:
    _put(fleet, event.node, replace(_last(fleet, event, at), home=at))


def _enrol(fleet: Fleet, event: AgentEnrolled, at: datetime) -> None:
    _put(fleet, event.node, replace(_last(fleet, event, at), agent=event.key, tpm=event.tpm, pcrs=event.pcrs))


def _expect_medium(fleet: Fleet, event: BootMediumDue, at: datetime) -> None:
    node = fleet.nodes.get(event.node)
    if node is not None:
        fleet.put_node(node.id, replace(node, medium=BootMedium(event.plan, event.images, at)))


def _read_medium(fleet: Fleet, event: BootMediumRead, _at: datetime) -> None:
    node = fleet.nodes.get(event.node)
    if node is not None and node.medium is not None and node.medium.plan == event.plan:
        fleet.put_node(node.id, replace(node, medium=replace(node.medium, address=event.address)))


def _refuse(fleet: Fleet, event: BootRefused, at: datetime) -> None:
    last = _last(fleet, event, at)
    _put(fleet, event.node, replace(last, refused=last.refused + 1, refused_at=at))


def _last(fleet: Fleet, event: Any, at: datetime) -> BootRecord:
    node = fleet.nodes.get(event.node)
    return BootRecord("", at) if node is None or node.boot is None else node.boot


def _put(fleet: Fleet, node_id: str, boot: BootRecord) -> None:
    """Keep the node's boot; nothing of a node that is not known any more."""
    node = fleet.nodes.get(node_id)
    if node is not None:
        fleet.put_node(node.id, replace(node, boot=boot))


def _note_stranger(fleet: Fleet, event: StrangerSeen, _at: datetime) -> None:
    """Keep the strangers seen last, each once."""
    others = tuple(one for one in fleet.cell.strangers if one.mac != event.stranger.mac)
    fleet.singles.put("cell", replace(fleet.cell, strangers=(*others, event.stranger)[-STRANGERS_KEPT:]))


def _of_stranger(event: StrangerSeen) -> tuple[str, ...]:
    return (event.stranger.mac,) if event.stranger.mac else ()


ROWS: EventRows = (
    EventRow(BootAnswered, of_node, _answer),
    EventRow(BootSeeded, of_node, _seed),
    EventRow(BootPhonedHome, of_node, _come_home),
    EventRow(AgentEnrolled, of_node, _enrol),
    EventRow(BootMediumDue, of_node, _expect_medium),
    EventRow(BootMediumRead, of_node, _read_medium),
    EventRow(BootRefused, of_node, _refuse),
    EventRow(StrangerSeen, _of_stranger, _note_stranger),
)
