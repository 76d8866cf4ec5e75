"""A GPU reset: nobody holds what is reset, the platform's own clients stand aside meanwhile, and its links come back.

Clients (dcgm, persistenced …) are stopped in the order given and started in the opposite one, whatever comes of the
reset. Who else holds a GPU is never ended here: the reset is then busy, and names them.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from hostler.agent.collectors.kernel_files import text_of
from hostler.agent.gpu_holders import Holder, holders, named
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, ResourceHeldError, act
from hostler.core.state.model import RESET_CLIENTS

TOTAL_S = 270.0
"""Limit of all parts together; of the operation's 420 s its cluster may take 90 to clear the way."""
RESET_S, SERVICE_S, QUERY_S, LINKS_S = 120.0, 30.0, 15.0, 60.0
POLL_S = 1.0
_LINK_UP = re.compile(r"^\s*Link \d+: [\d.]+ GB/s", re.MULTILINE)
_FABRIC = re.compile(r"^\s*Fabric\s*\n\s*State\s*:\s*(.+?)\s*$", re.MULTILINE)
_IN_USE = "in use by"
PERSISTENCE = "nvidia-persiste"
"""NVIDIA's persistence daemon, as the kernel cuts its name. It may run in a driver's container, where no unit stops it:
nvidia-smi has it let go of what is reset, and says that it is in use where it cannot."""


class ResetRequest(Struct, frozen=True):
    """GPUs to reset, and how this model is reset.

    `gpus`: "gpu3" or PCI addresses, () for all of them.

    `fabric` is the service without which NVLinks do not come up, "" for none. `links` is how many links of each GPU
    must be up afterwards; 0: as many as before.
    """

    gpus: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    fabric: str = ""
    links: int = 0


class Card(Struct, frozen=True):
    """A GPU as nvidia-smi and the kernel's driver know it. `minor` is its device file's number."""

    index: str
    address: str
    uuid: str
    minor: str


def reset(wanted: ResetRequest, root: Path) -> str:
    """Reset them; one sentence on what was done. Blocks for up to TOTAL_S.

    Raises BusyError (somebody holds one: nothing was reset), ActFailedError, FateUnknownError and NotPossibleError.
    `root` is the file system that shows /proc.
    """
    if refused := sorted({*wanted.clients, wanted.fabric} - {*RESET_CLIENTS, ""}):
        raise NotPossibleError(
            f"{', '.join(refused)} may not be stopped for a reset; name some of {', '.join(RESET_CLIENTS)}"
        )
    tools = _Tools(time.monotonic() + TOTAL_S)
    cards = _cards(tools, wanted, root)
    before = {card.index: _links(tools, card) for card in cards}
    stopped: list[str] = []
    try:
        for unit in wanted.clients:
            if tools.is_active(unit):
                stopped.append(unit)
                tools.run(("systemctl", "stop", unit), SERVICE_S)
        _nobody_holds(tools, cards, wanted, root)
        _reset(tools, wanted, cards, root)
        if wanted.fabric:
            _restart(tools, wanted.fabric)
    except (ActFailedError, FateUnknownError, NotPossibleError) as error:
        away = tools.start(stopped)
        raise _with(error, away) from error
    if away := tools.start(stopped):
        raise ActFailedError(f"the GPUs were reset, but {'; '.join(away)}")
    _verify(tools, wanted, before)
    did = f"stopped and started {', '.join(stopped)}" if stopped else "no client was running"
    return f"reset {', '.join(wanted.gpus) or 'all GPUs'}; {did}; {sum(before.values())} NVLinks before, no fewer now"


class _Tools:
    """Commands that share one deadline."""

    def __init__(self, until: float) -> None:
        self._until = until

    @property
    def left_s(self) -> float:
        return max(1.0, self._until - time.monotonic())

    def run(self, argv: tuple[str, ...], most_s: float) -> str:
        return act(argv, min(most_s, self.left_s))

    def is_active(self, unit: str) -> bool:
        try:
            self.run(("systemctl", "is-active", "--quiet", unit), QUERY_S)
        except ActFailedError:
            return False
        return True

    def start(self, units: list[str]) -> list[str]:
        """Start them again, the last one first; what did not come back, in words."""
        return [f"{unit} did not come back: {why}" for unit in reversed(units) if (why := self._start(unit))]

    def _start(self, unit: str) -> str:
        try:
            self.run(("systemctl", "start", unit), SERVICE_S)
        except (ActFailedError, FateUnknownError, NotPossibleError) as error:
            return str(error)
        return "" if self.is_active(unit) else "it was started and does not run"


def _restart(tools: _Tools, fabric: str) -> None:
    tools.run(("systemctl", "restart", fabric), SERVICE_S)
    if not tools.is_active(fabric):
        raise ActFailedError(f"{fabric} was restarted and does not run; see journalctl -u {fabric} on the node")


def _with(error: Exception, away: list[str]) -> Exception:
    """The same error, and what was left stopped because of it."""
    if not away:
        return error
    text = f"{error}; {'; '.join(away)}"
    return ResourceHeldError(text, error.holders) if isinstance(error, ResourceHeldError) else type(error)(text)


def _cards(tools: _Tools, wanted: ResetRequest, root: Path) -> list[Card]:
    """The GPUs of the reset domain. Raises ActFailedError where one that is named is not there."""
    told = tools.run(("nvidia-smi", "--query-gpu=index,pci.bus_id,uuid", "--format=csv,noheader"), QUERY_S)
    rows = [[cell.strip() for cell in line.split(",")] for line in told.splitlines() if line.count(",") == 2]
    known = [Card(index, bus.lower(), uuid, _minor(root, bus)) for index, bus, uuid in rows]
    if not wanted.gpus:
        return known
    found = [card for card in known if f"gpu{card.index}" in wanted.gpus or _is_at(card, wanted.gpus)]
    if len(found) < len(wanted.gpus):
        raise ActFailedError(
            f"nvidia-smi lists {len(found)} of {', '.join(wanted.gpus)}: a GPU that fell off the bus cannot be reset"
        )
    return found


def _is_at(card: Card, addresses: tuple[str, ...]) -> bool:
    return any(":" in one and one.rjust(16, "0") == card.address.rjust(16, "0") for one in addresses)


def _minor(root: Path, bus: str) -> str:
    """The number of the device file, from the driver; "" where it does not say."""
    address = bus.lower()[-12:]
    text = text_of(root / "proc/driver/nvidia/gpus" / address / "information")
    found = re.search(r"Device Minor:\s*(\d+)", text)
    return found[1] if found else ""


def _devices(cards: list[Card], wanted: ResetRequest, root: Path) -> Iterator[str]:
    """The device files that nobody may hold: each GPU's own; of a whole baseboard every one of the driver's."""
    yield from (f"/dev/nvidia{card.minor or card.index}" for card in cards)
    if not wanted.gpus:
        yield from ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-nvswitchctl")
        yield from (f"/dev/{entry.name}" for entry in sorted((root / "dev").glob("nvidia-nvswitch[0-9]*")))


def _nobody_holds(tools: _Tools, cards: list[Card], wanted: ResetRequest, root: Path) -> None:
    found = tuple(one for one in _holding(tools, cards, wanted, root) if one.comm != PERSISTENCE)
    if found:
        names = named(found)
        raise ResourceHeldError(f"held open by {'; '.join(names)}", names)


def _holding(tools: _Tools, cards: list[Card], wanted: ResetRequest, root: Path) -> tuple[Holder, ...]:
    uuids = {card.uuid for card in cards}
    told = tools.run(("nvidia-smi", "--query-compute-apps=pid,gpu_uuid", "--format=csv,noheader"), QUERY_S)
    rows = (line.split(",") for line in told.splitlines() if line.count(",") == 1)
    listed = [int(pid) for pid, uuid in rows if uuid.strip() in uuids and pid.strip().isdigit()]
    return holders(root / "proc", _devices(cards, wanted, root), listed)


def _reset(tools: _Tools, wanted: ResetRequest, cards: list[Card], root: Path) -> None:
    which = ("-i", ",".join(card.index for card in cards)) if wanted.gpus else ()
    try:
        tools.run(("nvidia-smi", "--gpu-reset", *which), RESET_S)
    except ActFailedError as error:
        if _IN_USE in str(error):  # somebody came in between, or hides from us
            _nobody_holds(tools, cards, wanted, root)
            names = named(_holding(tools, cards, wanted, root)) or ("a process that nvidia-smi does not name",)
            raise ResourceHeldError(str(error), names) from error
        raise


def _links(tools: _Tools, card: Card) -> int:
    """Count the NVLinks that are up; empty where the GPU cannot be asked."""
    try:
        return len(_LINK_UP.findall(tools.run(("nvidia-smi", "nvlink", "--status", "-i", card.index), QUERY_S)))
    except ActFailedError:
        return 0


def _verify(tools: _Tools, wanted: ResetRequest, before: dict[str, int]) -> None:
    """Every link and the fabric are back within LINKS_S. Raises ActFailedError."""
    until = time.monotonic() + min(LINKS_S, tools.left_s)
    while missing := list(_missing(tools, wanted, before)):
        if time.monotonic() >= until:
            raise ActFailedError(f"the GPUs were reset, but {'; '.join(missing)}")
        time.sleep(POLL_S)


def _missing(tools: _Tools, wanted: ResetRequest, before: dict[str, int]) -> Iterator[str]:
    for index, had in before.items():
        card = Card(index, "", "", "")
        up, due = _links(tools, card), wanted.links or had
        if up < due:
            yield f"gpu{index} has {up} of {due} NVLinks up"
        if wanted.fabric:
            told = _FABRIC.search(tools.run(("nvidia-smi", "-q", "-i", index), QUERY_S))
            state = told[1] if told else "N/A"
            if state not in ("Completed", "N/A"):
                yield f"gpu{index}'s fabric state is {state}"
