"""Writes BIOS attributes through the settings object, and tells by what is read after the reset whether they are so."""

from msgspec.structs import replace

from hostler.core.state.model import Facts, Outcome
from hostler.core.state.operations import VerifyBiosSettings, WriteBiosSettings
from hostler.drivers.redfish import wire_bios
from hostler.drivers.redfish.client import ChangeTarget, NotOfferedError
from hostler.drivers.redfish.operation_request import OperationRequest, OperationSteps
from hostler.drivers.redfish.repeated_reading import weighed
from hostler.drivers.redfish.tolerant_json import document, text
from hostler.drivers.redfish.wire_bios import BiosSettings
from hostler.ports import RefusedError

_CORRECT = "correct `hardware.bios` of its SKU"


def _wanted(ask: OperationRequest) -> dict[str, str]:
    act = ask.operation.act
    return act.wanted if isinstance(act, WriteBiosSettings | VerifyBiosSettings) else {}


async def _read(ask: OperationRequest) -> BiosSettings:
    """The BIOS's attributes, and what waits; a settings object that cannot be read holds nothing."""
    path = ask.system.collections.get("Bios", "")
    if not path:
        return BiosSettings("", "", {})
    found = wire_bios.settings_of(document(await ask.client.get(path), path), path)
    if not found.settings:
        return found
    try:
        waiting = document(await ask.client.get(found.settings), "settings")
    except NotOfferedError:
        return found
    held = waiting.get("Attributes")
    return replace(found, waiting=held if isinstance(held, dict) else {}, settings_etag=text(waiting, "@odata.etag"))


async def _write(ask: OperationRequest) -> Outcome:
    """Send what differs, in one change; then the job that applies it, where the BMC makes none by itself."""
    bios, wanted = await _read(ask), _wanted(ask)
    if not (differs := bios.open(wanted)):
        return ask.outcome("done", f"{len(wanted)} BIOS attributes are as wanted; nothing was sent")
    body, jobs = _body(ask, bios, differs), await _queue(ask, bios)
    has_job = bool(jobs) and await _has_job(ask, jobs)
    makes_job = wire_bios.ON_RESET in bios.apply_times
    ask.sending()
    if not bios.waits_for(differs) or (jobs and makes_job and not has_job):
        await _change(ask, bios, differs, body)
    if jobs and not makes_job and not has_job:
        try:
            await ask.client.apply_settings(jobs, bios.settings)
        except RefusedError as error:
            raise RefusedError(
                f"the BMC made no job that applies {_told(bios, differs)}: {error}; clear its queue of jobs"
            ) from error
    after = await _read(ask)
    left = {name: value for name, value in after.open(differs).items() if not after.waits_for({name: value})}
    if left and len(left) < len(differs):
        raise RefusedError(f"the BMC took some changes, and none of {_told(after, left)}; set it in the BIOS setup")
    shown = "" if not left else "; the BMC does not show what waits"
    return ask.outcome("done", f"accepted for the next start: {_told(bios, differs)}{shown}")


async def _change(ask: OperationRequest, bios: BiosSettings, differs: dict[str, str], body: object) -> None:
    places = (ChangeTarget(bios.settings, etag=bios.settings_etag),) if bios.settings else ()
    try:
        await ask.client.change_bios((*places, ChangeTarget(bios.path, etag=bios.etag)), body)
    except RefusedError as error:
        raise RefusedError(
            f"the BMC took no change of {_told(bios, differs)}: {error}; set it in the BIOS setup, or {_CORRECT}"
        ) from error


async def _look(ask: OperationRequest) -> Outcome:
    """Done where all are as wanted or wait, under a job where the BMC wants one; what is not seen is sent again."""
    bios, wanted = await _read(ask), _wanted(ask)
    if not (differs := bios.open(wanted)):
        return ask.outcome("done", f"{len(wanted)} BIOS attributes are as wanted")
    if not bios.waits_for(differs):
        return ask.not_seen(f"not set, and nothing waits: {_told(bios, differs)}")
    if (jobs := await _queue(ask, bios)) and not await _has_job(ask, jobs):
        return ask.not_seen(f"no job applies {_told(bios, differs)}")
    return ask.outcome("done", f"these wait for the next start: {_told(bios, differs)}")


async def _verify(ask: OperationRequest) -> Outcome:
    """Verify what is set after the reset: facts are attribute → value and nothing else."""
    bios, wanted = await _read(ask), _wanted(ask)
    facts: Facts = {name: bios.shown(name) or "" for name in wanted}
    result, detail = weighed(ask, "BIOS attributes", bios.differences(wanted))
    return replace(ask.outcome(result, detail), facts=facts)


def _body(ask: OperationRequest, bios: BiosSettings, differs: dict[str, str]) -> dict[str, object]:
    """The change that is sent. Raises RefusedError where this BIOS has no such attribute, or not of that type."""
    if not bios.attributes:
        why = "shows no Bios resource with attributes"
        raise RefusedError(f"{ask.client.origin} {why}; start the machine once, or take `writes_bios` out of its SKU")
    if absent := [name for name in differs if bios.shown(name) is None]:
        raise RefusedError(f"{_told(bios, {name: differs[name] for name in absent})}; nothing was sent; {_CORRECT}")
    sent = {name: wire_bios.as_the_bios_has_it(bios.attributes[name], value) for name, value in differs.items()}
    if odd := {name: differs[name] for name, value in sent.items() if value is None}:
        raise RefusedError(f"{_told(bios, odd)}, which is of another type; nothing was sent; {_CORRECT}")
    body: dict[str, object] = {"Attributes": sent}
    if wire_bios.ON_RESET in bios.apply_times:
        body["@Redfish.SettingsApplyTime"] = {"ApplyTime": wire_bios.ON_RESET}
    return body


def _told(bios: BiosSettings, differs: dict[str, str]) -> str:
    """Attribute, expected, found; of one that a waiting change would spoil, that."""
    told = bios.differences(differs)
    right = [name for name, value in differs.items() if bios.shown(name) == value]
    spoilt = [f"{name}: expected {differs[name]}, and another value waits" for name in right]
    return "; ".join(filter(None, (told, *spoilt)))


async def _queue(ask: OperationRequest, bios: BiosSettings) -> str:
    """The queue of jobs by which the BMC applies settings, "" for none."""
    return (await ask.client.manager(ask.system)).jobs if bios.settings else ""


async def _has_job(ask: OperationRequest, jobs: str) -> bool:
    return any(wire_bios.is_open_job(doc) for doc in await ask.client.collection(jobs))


WRITE = OperationSteps(_write, _look)
VERIFY = OperationSteps(_verify, _verify)
