"""Inspection, deployment and cleaning of a machine by Ironic: one step of its state machine at a time.

Before the last step of a piece of work a mark is left in the node's `extra`: the operation, and when the provision
state had last changed. So whoever looks later knows whether that work was begun, is done, or has to go on.
"""

from typing import assert_never
from urllib.parse import urlsplit

from msgspec.structs import replace

from hostler.core.state.model import Facts, Operation, Outcome
from hostler.core.state.operations import CleanMachine, DeployImage, InspectMachine
from hostler.drivers.ironic import wire
from hostler.drivers.ironic.client import IronicClient
from hostler.drivers.ironic.free_nodes import refuse_unless_free, state_told
from hostler.drivers.ironic.wire import IronicNode
from hostler.drivers.ironic.wire_inventory import InspectedMachine, inspected
from hostler.ports import RefusedError

WORK_KINDS = frozenset({"inspect_machine", "deploy_image", "clean_machine"})
MANAGEABLE, AVAILABLE, ACTIVE = "manageable", "available", "active"
SHA256_HEX = 64
RAW = "raw"
"""Ending of an image that is written as it is. Unless Ironic is told so, its agent has qemu-img convert a disk's image
from the format "gpt", which qemu-img does not have (ironic-python-agent 13)."""


class IronicWork:
    """Work that Ironic does by itself once it is asked."""

    def __init__(self, ironic: IronicClient) -> None:
        self._ironic = ironic

    async def forward(self, operation: Operation, there: IronicNode) -> Outcome:
        """Ask for the next step, or tell how it ended. Raises PortError."""
        if (seen := await self.seen(operation, there)).result != "not_done":
            return seen
        if _is_new(there):
            if there.last_error:
                raise RefusedError(f"Ironic cannot manage it: {there.last_error}; correct its driver_info there")
            return await self._ask(operation, there, "manage")
        refuse_unless_free(there)
        act = operation.act
        match act:
            case DeployImage():
                return await self._deploy(operation, there, act)
            case InspectMachine() | CleanMachine():
                if there.provision == AVAILABLE:
                    return await self._ask(operation, there, "manage")
                if there.provision != MANAGEABLE:
                    raise RefusedError(
                        f"{state_told(there)}, where nothing is inspected or cleaned; {_undeploy(there)}"
                    )
                return await self._begin(operation, there, act)
            case _:
                raise AssertionError(f"{operation.kind} is no work of Ironic's")

    async def seen(self, operation: Operation, there: IronicNode) -> Outcome:
        """How far it is, by Ironic's record alone. Raises PortError.

        Ironic drops a failure's reason from the node's record when its power changes; the node's history keeps it.
        """
        if there.provision in wire.FAILED and there.mark[0] == operation.id and not there.last_error:
            events = await self._ironic.history(there.uuid)
            there = replace(there, last_error=wire.last_fault(events, there.mark[1]))
        outcome = self._judged(operation, there)
        is_read = outcome.result == "done" and operation.kind == "inspect_machine"
        return _with_parts(outcome, await self._ironic.inventory(there.uuid)) if is_read else outcome

    def _judged(self, operation: Operation, there: IronicNode) -> Outcome:
        named, before = there.mark
        begun = named == operation.id and there.changed_at != before
        if there.provision in wire.FAILED and not begun:
            return _outcome(operation, "not_done", state_told(there))
        if there.provision in wire.FAILED and there.reservation and not there.last_error:
            return _outcome(operation, "unknown", state_told(there))  # Ironic writes the state first, then why
        if there.provision in wire.FAILED:
            way = f"openstack baremetal node {wire.FAILED[there.provision]} {there.name or there.uuid}"
            return _outcome(operation, "failed", f"{state_told(there)}; look into it, then run `{way}`")
        at_rest = not there.reservation and (there.provision in wire.FREE or _is_new(there))
        if not at_rest:
            return _outcome(operation, "unknown", state_told(there))
        if not begun:
            return _outcome(operation, "not_done", f"{state_told(there)}; not begun yet")
        if there.provision != (ACTIVE if operation.kind == "deploy_image" else MANAGEABLE):
            return _outcome(operation, "failed", f"it was begun, and {state_told(there)}: somebody turned it back")
        return _outcome(operation, "done", f"Ironic has it in '{there.provision}'", dict(there.properties))

    async def _begin(self, operation: Operation, there: IronicNode, act: InspectMachine | CleanMachine) -> Outcome:
        await self._mark(operation, there)
        match act:
            case InspectMachine():
                return await self._ask(operation, there, "inspect")
            case CleanMachine(steps=steps):
                listed = [dict(zip(("interface", "step"), one.split(".", 1), strict=True)) for one in steps]
                return await self._ask(operation, there, "clean", {"clean_steps": listed})
            case _:
                assert_never(act)

    async def _deploy(self, operation: Operation, there: IronicNode, act: DeployImage) -> Outcome:
        """From manageable by way of available, where Ironic may clean the machine first."""
        if there.provision == ACTIVE:
            raise RefusedError(f"{state_told(there)} with {there.image[0] or 'an image'}; {_undeploy(there)}")
        if there.provision == MANAGEABLE:
            return await self._ask(operation, there, "provide")
        if there.image != (act.image, act.checksum):
            kind = "sha256" if len(act.checksum) == SHA256_HEX else "sha512"
            wanted = {"image_os_hash_algo": kind, "image_os_hash_value": act.checksum}
            wanted |= {"image_disk_format": RAW} if urlsplit(act.image).path.endswith(f".{RAW}") else {}
            await self._ironic.write(
                there.uuid, "/instance_info", {"image_source": act.image, "image_checksum": act.checksum, **wanted}
            )
        await self._mark(operation, there)
        drive: dict[str, object] = {"configdrive": act.configdrive} if act.configdrive else {}
        return await self._ask(operation, there, "active", drive)

    async def _mark(self, operation: Operation, there: IronicNode) -> None:
        await self._ironic.write(
            there.uuid, f"/extra/{wire.MARK}", {"operation": operation.id, "before": there.changed_at}
        )

    async def _ask(
        self, operation: Operation, there: IronicNode, target: str, body: dict[str, object] | None = None
    ) -> Outcome:
        await self._ironic.provision(there.uuid, target, body)
        return _outcome(operation, "unknown", f"Ironic was asked for {target}")


def _with_parts(outcome: Outcome, kept: bytes) -> Outcome:
    """The outcome with what the inspection found, told in its words."""
    found = inspected(kept) if kept else InspectedMachine(gaps=("Ironic keeps no inventory of it",))
    parts = tuple(replace(part, node=outcome.node) for part in found.parts)
    said = "; ".join((outcome.detail, f"{len(parts)} parts are listed", *found.gaps))
    return replace(outcome, detail=said[:500], facts={**outcome.facts, **found.facts}, parts=parts)


def _undeploy(there: IronicNode) -> str:
    return f"run `openstack baremetal node undeploy {there.name or there.uuid}` first"


def _is_new(there: IronicNode) -> bool:
    """Whether Ironic was never asked to manage it, or could not."""
    return there.provision == wire.NEW and not there.target


def _outcome(operation: Operation, result: str, detail: str, facts: Facts | None = None) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail[:500], facts or {}, attempt=operation.attempt)
