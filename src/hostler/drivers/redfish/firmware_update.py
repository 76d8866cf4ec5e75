"""Writes firmware to a component and tells by its version, never by its task, whether it runs."""

from msgspec.structs import replace

from hostler.core.state.firmware_versions import OR, downgrade, is_older, same_component
from hostler.core.state.model import Facts, Operation, Outcome
from hostler.core.state.operations import VerifyFirmware, WriteFirmware
from hostler.drivers.redfish import firmware_inventory, wire_firmware
from hostler.drivers.redfish.firmware_images import FirmwareImages, checked, checked_file
from hostler.drivers.redfish.operation_request import OperationRequest, OperationSteps
from hostler.drivers.redfish.repeated_reading import weighed
from hostler.ports import RefusedError, UnreachableError

Components = tuple[wire_firmware.FirmwareComponent, ...]


def _wanted(operation: Operation) -> WriteFirmware:
    if not isinstance(operation.act, WriteFirmware) or not operation.act.component or not operation.act.version:
        raise RefusedError("update_firmware needs component and version; name both in the SKU's firmware")
    return operation.act


async def with_image(ask: OperationRequest, images: FirmwareImages) -> OperationRequest | Outcome:
    """The request with its image verified, and at hand where it is pushed; the outcome where none is needed.

    Nothing is held while an image is fetched: a machine that has to be powered off is not kept waiting for it.
    """
    wanted = _wanted(ask.operation)
    components = await firmware_inventory.components(ask.client, ask.system)
    seen = _seen(ask, wanted, components)
    if seen.result == "done":
        return seen
    if writing := await _writing(ask, components):
        return ask.outcome("busy", f"the BMC is writing already ({writing}); nothing was sent", seen.facts)
    _admit(ask, wanted, components)
    try:
        if await _is_pushed(ask, wanted):
            return replace(ask, image=await checked_file(images, wanted.image, wanted.sha256))
        await checked(images, wanted.image, wanted.sha256)
    except UnreachableError as error:
        raise RefusedError(f"nothing was sent to the BMC: {error}") from error
    return ask


async def _update(ask: OperationRequest) -> Outcome:
    """Send the update, unless the BMC has changed since its image was verified."""
    wanted = _wanted(ask.operation)
    components = await firmware_inventory.components(ask.client, ask.system)
    seen = _seen(ask, wanted, components)
    if seen.result == "done":
        return seen
    if writing := await _writing(ask, components):
        return ask.outcome("busy", f"the BMC is writing already ({writing}); nothing was sent", seen.facts)
    component = _admit(ask, wanted, components)
    targets = list(wanted.targets) or [component.path]
    ask.sending()
    if ask.image is not None:
        task = await ask.client.push_update(targets, ask.image, wanted.image.rpartition("/")[2])
    else:
        task = await ask.client.simple_update(component, wanted.image, targets)
    ask.memory.task = task
    return ask.outcome("unknown", f"update accepted, {task or 'without a task'}; observe the version", seen.facts)


def _admit(ask: OperationRequest, wanted: WriteFirmware, components: Components) -> wire_firmware.FirmwareComponent:
    """The component to be written. Raises RefusedError where it is not there, or may not be written now."""
    target = running(components, wanted.component)
    if target is None:
        raise RefusedError(
            f"{ask.client.origin} lists no firmware component {wanted.component!r} with a version; "
            f"it lists {', '.join(wire_firmware.versions(components)) or 'none'}"
            "; name one of these in the SKU's firmware"
        )
    if not wanted.image:
        raise RefusedError(
            f"update_firmware of {wanted.component} needs an image: write its URL, which the BMC fetches, into the SKU"
        )
    if wanted.good and (why := downgrade(target.version, wanted.version, allowed=wanted.downgrade)):
        raise RefusedError(f"{wanted.component}: {why}; nothing was sent")
    for name, least in wanted.needs.items():
        found = running(components, name)
        if found is None or is_older(found.version, least) is not False:
            runs = found.version if found else "an unknown version"
            raise RefusedError(
                f"{wanted.component} {wanted.version} needs {name} {least}; {name} runs {runs}; update {name} first"
            )
    return target


async def _is_pushed(ask: OperationRequest, wanted: WriteFirmware) -> bool:
    """Whether the image is pushed: where that is asked for, or the BMC fetches none of this scheme."""
    service = await ask.client.update_service()
    scheme = wanted.image.partition("://")[0].upper()
    fetches = bool(service.simple_update) and (not service.protocols or scheme in service.protocols)
    if not fetches and service.simple_update and not service.push:
        offered = ", ".join(service.protocols)
        raise RefusedError(
            f"{ask.client.origin} fetches images by {offered}, not by {scheme}: {wanted.image}"
            "; give the image a URL of that kind, or set `push: true`"
        )
    return bool(service.push) and (wanted.push or not fetches)


async def _look_at_update(ask: OperationRequest) -> Outcome:
    """By version, not by task: tasks vanish after success and report success after failure.

    What runs only after a reset, and is not listed as staged, is left to the verification behind that reset.
    """
    wanted = _wanted(ask.operation)
    components = await firmware_inventory.components(ask.client, ask.system)
    seen = _seen(ask, wanted, components)
    if seen.result == "done":
        return seen
    if writing := await _writing(ask, components):
        return ask.outcome("unknown", f"still writing: {writing}", seen.facts)
    task = await ask.client.task(ask.memory.task) if ask.memory.task else None
    if task and task.state == "failed":
        return ask.outcome("failed", f"{seen.detail}; its task failed: {task.detail}", seen.facts)
    is_done = task is not None and task.state == "done"
    if wanted.activates not in ("", "none") and (is_done or not ask.may_land):
        said = "its task says done" if is_done else "nothing is being written any more"
        return ask.outcome("done", f"{seen.detail}; {said}, and a {wanted.activates} comes next", seen.facts)
    if is_done:
        detail = f"{seen.detail}; its task says done, which the version contradicts"
        return ask.outcome("not_done", detail, seen.facts)
    return ask.not_seen(seen.detail, seen.facts)


def _seen(ask: OperationRequest, wanted: WriteFirmware, components: Components) -> Outcome:
    """Done where the version runs, or is written and waits for the next power cycle; else not_done."""
    found = running(components, wanted.component)
    written = [c for c in components if c.staged and not c.updating and c.version == wanted.version]
    staged = any(same_component(c.name, wanted.component) for c in written)
    version = found.version if found else ""
    facts: Facts = {wanted.component: version, "staged": staged}
    if version in (wanted.version, *wanted.good):
        return ask.outcome("done", f"{wanted.component} runs {version}", facts)
    if staged:
        detail = f"{wanted.component} {wanted.version} is written; {version} runs until the next power cycle"
        return ask.outcome("done", detail, facts)
    least = wanted.at_least
    if least and version and is_older(version, least) is False:
        return ask.outcome("done", f"{wanted.component} runs {version}, which is behind {least} already", facts)
    return ask.outcome("not_done", f"{wanted.component} runs {version or 'an unknown version'}", facts)


def running(components: Components, name: str) -> wire_firmware.FirmwareComponent | None:
    """The component of this name as it runs; None where no running version is listed."""
    return next((c for c in components if c.runs and same_component(c.name, name)), None)


async def _writing(ask: OperationRequest, components: Components) -> str:
    """Name the component being written on this system, "" for none.

    A task that does not say what it writes is ours too.
    """
    ours = {component.path for component in components}
    tasks = [task for task in await ask.client.tasks() if task.state == "running"]
    updating = [c.name for c in components if c.updating]
    updating += [task.path for task in tasks if not task.targets or ours.intersection(task.targets)]
    return ", ".join(updating[:5])


async def _verify(ask: OperationRequest) -> Outcome:
    """Verify what runs: facts are component → running version and nothing else, in the spelling that was asked for.

    Right counts once it has repeated itself, wrong once it has had PATIENCE_S to become right.
    """
    wanted = ask.operation.act.wanted if isinstance(ask.operation.act, VerifyFirmware) else {}
    components = await firmware_inventory.components(ask.client, ask.system)
    if not wanted:
        read: Facts = dict(wire_firmware.versions(components))
        return replace(ask.outcome("done", "no versions were asked for; these were read"), facts=read)
    found = {name: running(components, name) for name in wanted}
    facts: Facts = {name: component.version if component else "" for name, component in found.items()}
    wrong = [
        f"{name} is {facts[name] or 'not listed'}, wanted {OR.join(good)}"
        for name, good in wanted.items()
        if facts[name] not in good
    ]
    result, detail = weighed(ask, "versions", "; ".join(wrong))
    return replace(ask.outcome(result, detail), facts=facts)


async def lists(ask: OperationRequest, names: list[str]) -> bool:
    """Whether the BMC lists a running version for each of these components."""
    components = await firmware_inventory.components(ask.client, ask.system)
    return all(running(components, name) is not None for name in names)


UPDATE = OperationSteps(_update, _look_at_update)
VERIFY = OperationSteps(_verify, _verify)
