"""Puts a boot medium into a virtual drive of a machine's BMC, and takes ours out again; others' media stay in.

What counts is what the drive shows afterwards, never that the BMC took the request.
"""

from hostler.core.state.model import Outcome
from hostler.core.state.operations import EjectBootMedium
from hostler.drivers.redfish import wire_media
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError
from hostler.drivers.redfish.operation_request import OperationRequest, OperationSteps
from hostler.drivers.redfish.tolerant_json import Document, WireError
from hostler.drivers.redfish.wire_media import VirtualDrive
from hostler.ports import RefusedError

MAX_DRIVES = 16
OFFERED = ("UsbCd", "Cd")
"""Names of a boot from a virtual CD, as the boot override lists them: the first is Supermicro's own (sushy)."""
_EJECTED: Document = {"Image": None, "Inserted": False}


async def inserted(ask: OperationRequest, medium: str) -> str:
    """Have the medium in a drive; returns "" once a drive shows it, else what is still waited for.

    Before the secret and the file's name its address is that of all media of this machine: one of an earlier boot is
    ejected. Raises RefusedError where no drive takes it.
    """
    ours = f"{medium.rsplit('/', 2)[0]}/"
    drives = await _drives(ask)
    if _holding(drives, medium):
        return ""
    for stale in [one for one in drives if one.holds and wire_media.is_of(one, ours)]:
        await _eject(ask, stale)
    free = [one for one in await _drives(ask) if one.fillable]
    if not free:
        raise RefusedError(_full(ask, drives))
    await _insert(ask, free, medium)
    if _holding(drives := await _drives(ask), medium):
        return ""
    busy = next((one for one in drives if one.path in {drive.path for drive in free} and one.holds), None)
    if busy is not None:
        raise RefusedError(
            f"its virtual drive took the boot medium, and holds {busy.shown} instead; see who else uses it"
        )
    return "its virtual drive took the boot medium, and shows none yet"


async def holds(ask: OperationRequest, medium: str) -> bool:
    """Whether a drive shows this medium, in it."""
    return _holding(await _drives(ask), medium) is not None


def boots_from(targets: tuple[str, ...]) -> str:
    """The name of a boot from the virtual drive among those that the BMC offers."""
    return next((one for one in OFFERED if one in targets), "Cd")


async def _drives(ask: OperationRequest) -> list[VirtualDrive]:
    """The drives that the system has, else those of its BMC."""
    client, where = ask.client, ask.system.collections.get("VirtualMedia", "")
    paths = await client.member_paths(where) if where else []
    if not paths:
        manager = await client.manager(ask.system)
        if not manager.media:
            raise NotOfferedError(
                f"{client.origin} shows no virtual drive for system {ask.system.id}; update the BMC's firmware"
            )
        paths = await client.member_paths(manager.media)
    found = []
    for path in paths[:MAX_DRIVES]:
        try:
            found.append(wire_media.drive(await client.get(path), path))
        except (BmcFailureError, NotOfferedError, WireError):
            continue  # of one that cannot be read nothing is known: it is neither used nor emptied
    if not found:
        raise NotOfferedError(f"{client.origin} shows no virtual drive that can be read; reset the BMC")
    return found


def _holding(drives: list[VirtualDrive], medium: str) -> VirtualDrive | None:
    return next((one for one in drives if one.holds and wire_media.is_of(one, medium)), None)


async def _insert(ask: OperationRequest, free: list[VirtualDrive], medium: str) -> None:
    """Ask the first free drive that takes it. Raises the last refusal where none does."""
    refusal: RefusedError | None = None
    for drive in free:
        try:
            return await _ask_one(ask, drive, medium)
        except RefusedError as refused:
            refusal = refused
    assert refusal is not None, "there is a free drive"
    said = str(refusal).replace(medium, "the medium's address")  # it holds the secret of the boot
    if wire_media.wants_licence(said):
        raise RefusedError(f"{said}; add the licence for virtual media to its BMC")
    if wire_media.wants_https(medium, said):
        raise RefusedError(
            f"{said}; it fetches media by HTTPS alone: give boot.media.url an https address (--boot-media-listen)"
        )
    raise RefusedError(said)


async def _ask_one(ask: OperationRequest, drive: VirtualDrive, medium: str) -> None:
    body: Document | None = wire_media.first_body(drive, medium)
    for left in reversed(range(wire_media.TRIES_MOST)):
        assert body is not None, "the first one, or one that the refusal asked for"
        try:
            if drive.insert:
                await ask.client.send("POST", drive.insert, body)
            else:
                await ask.client.patch(drive.path, body, drive.etag)
        except RefusedError as refused:
            body = wire_media.next_body(body, medium, str(refused))
            if body is None or not left:
                raise
        else:
            return


async def _eject(ask: OperationRequest, drive: VirtualDrive) -> None:
    if drive.eject:
        await ask.client.send("POST", drive.eject, {})
    else:
        await ask.client.patch(drive.path, _EJECTED, drive.etag)


def _full(ask: OperationRequest, drives: list[VirtualDrive]) -> str:
    held = [one.shown for one in drives if one.optical and one.holds]
    if not held:
        return f"{ask.client.origin} has no virtual drive for a CD; update the BMC's firmware"
    return (
        f"its virtual drive holds {', '.join(held)}, which is not Hostler's; clear it in the BMC if nobody needs that"
    )


# taking it out


async def _take_out(ask: OperationRequest) -> Outcome:
    """Eject every medium of ours; a drive that holds another's is left alone."""
    try:
        ours = await _ours(ask)
        for drive in ours:
            ask.sending()
            await _eject(ask, drive)
        return await _looked(ask) if ours else ask.outcome("done", "no virtual drive holds a medium of ours")
    except NotOfferedError as missing:
        return ask.outcome("done", f"{missing}: there is nothing to eject")


async def _looked(ask: OperationRequest) -> Outcome:
    left = await _ours(ask)
    if not left:
        return ask.outcome("done", "the boot medium is out")
    return ask.not_seen(f"virtual drive {left[0].path.rpartition('/')[2]} still holds {left[0].shown}")


async def _look(ask: OperationRequest) -> Outcome:
    try:
        return await _looked(ask)
    except NotOfferedError as missing:
        return ask.outcome("done", f"{missing}: there is nothing to eject")


async def _ours(ask: OperationRequest) -> list[VirtualDrive]:
    act = ask.operation.act
    images = act.images if isinstance(act, EjectBootMedium) else ""
    assert images.endswith("/"), "the beginning of all addresses of this machine's media"
    return [one for one in await _drives(ask) if one.holds and wire_media.is_of(one, images)]


EJECT = OperationSteps(_take_out, _look)
