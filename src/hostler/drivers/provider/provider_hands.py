"""Power, reboots and replacement of nodes that a provider owns, asked of its service and proved by what it shows.

A reply counts as done only where the provider shows the effect: the power that was asked for, the new instance. What a
lost reply came to is asked for by the operation's id, which the service carries out once.
"""

from collections.abc import Callable
from typing import Literal

from hostler.core.state.assets import PROVIDER
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.provider import Instance, has_provider_alone, instance_of
from hostler.drivers.provider import wire
from hostler.drivers.provider.provider_client import Providers
from hostler.drivers.provider.wire import Action, ContractAnswer, ProviderRequest
from hostler.ports import OperationDriver, RefusedError

_POWER: dict[str, tuple[Action, str]] = {"power_on": ("power_on", "on"), "power_off": ("power_off", "off")}
_SET_BOOT = "set_boot_network"
REPLACE = "replace_machine"
REBOOT: Literal["reboot"] = "reboot"


class ProviderHands:
    """The BMC driver's place, which asks the provider for power of nodes that have no BMC, and for new instances."""

    def __init__(self, bmc: OperationDriver, providers: Providers) -> None:
        self.kinds = bmc.kinds | {REPLACE}
        self._bmc = bmc
        self._providers = providers

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Ask the provider once, or hand it on to the BMC. Raises PortError."""
        if not _is_providers(operation, node):
            return await self._bmc.perform(operation, node)
        if operation.kind == _SET_BOOT:
            return _outcome(operation, "done", "its provider decides what the instance boots from")
        action = _POWER[operation.kind][0] if operation.kind in _POWER else "replace"
        return _shown(operation, await self._providers.ask(_asked(operation, node, action)))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Read from the provider what became of it. Raises PortError."""
        if not _is_providers(operation, node):
            return await self._bmc.observe(operation, node)
        if operation.kind == _SET_BOOT:
            return _outcome(operation, "done", "its provider decides what the instance boots from")
        return _shown(operation, await self._providers.ask(_asked(operation, node, "status")))

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the BMC driver call it off; the contract has no way to take a request back."""
        if not _is_providers(operation, node):
            await self._bmc.revoke(operation, node)


class ProviderReboot:
    """Reboots through the provider where the node's agent is not heard; else by the driver behind it.

    `heard` tells whether the node's agent is heard now.
    """

    kinds: frozenset[str] = frozenset({REBOOT})

    def __init__(self, behind: OperationDriver, providers: Providers, heard: Callable[[str], bool]) -> None:
        self._behind = behind
        self._providers = providers
        self._heard = heard

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Ask for one reboot. Raises PortError."""
        if instance_of(node) is None or self._heard(node.id):
            return await self._behind.perform(operation, node)
        return _rebooted(operation, await self._providers.ask(_asked(operation, node, REBOOT)))

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Read what became of it: from the provider where it knows the request, else from the driver behind."""
        if instance_of(node) is None:
            return await self._behind.observe(operation, node)
        told = await self._providers.ask(_asked(operation, node, "status"))
        if told.state == "unknown" and self._heard(node.id):  # it was the agent that was asked
            return await self._behind.observe(operation, node)
        return _rebooted(operation, told)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the driver behind call it off; the provider cannot."""
        await self._behind.revoke(operation, node)


def _is_providers(operation: Operation, node: Node) -> bool:
    return operation.kind == REPLACE or (has_provider_alone(node) and operation.kind in (*_POWER, _SET_BOOT))


def _asked(operation: Operation, node: Node, action: Action) -> ProviderRequest:
    """The question about this operation. Raises RefusedError for a node that no provider owns."""
    instance = _demand_instance(node)
    return ProviderRequest(
        wire.CONTRACT,
        action,
        instance.provider,
        request=operation.id,
        instance=instance.id,
        node=node.id,
        serial=node.binding("serial"),
        deadline=operation.deadline,
    )


def _demand_instance(node: Node) -> Instance:
    instance = instance_of(node)
    if instance is None:
        raise RefusedError(
            f"{node.id} names no provider; bind it: hostler node rebind {node.id} --kind {PROVIDER} --value "
            "PROVIDER/INSTANCE --reason …"
        )
    return instance


def _shown(operation: Operation, told: ContractAnswer) -> Outcome:
    """The outcome for power or a replacement: done where the provider shows the effect."""
    if operation.kind == REPLACE:
        new = told.replacement
        if told.state == "done" and (new is None or not new.instance):
            return _outcome(operation, "failed", "the provider says done, and names no new instance")
        facts: Facts = (
            {"instance": new.instance, "hostname": new.hostname, "serial": new.serial, "macs": " ".join(new.macs)}
            if new is not None
            else {}
        )
        return _outcome(operation, _RESULTS[told.state], told.detail, facts if told.state == "done" else {})
    want = _POWER[operation.kind][1]
    if told.power == want and told.state != "running":
        return _outcome(operation, "done", f"the provider shows the instance {want}")
    if told.state == "done":
        seen = f"it shows it {told.power}" if told.power else "it does not show its power"
        return _outcome(operation, "unknown", f"the provider says that the instance is {want}, and {seen}")
    return _outcome(operation, _RESULTS[told.state], told.detail)


def _rebooted(operation: Operation, told: ContractAnswer) -> Outcome:
    """A reboot that the provider says is done has been asked for: the wait for another boot proves it."""
    return _outcome(operation, _RESULTS[told.state], told.detail)


_RESULTS = {"done": "done", "running": "unknown", "refused": "refused", "failed": "failed", "unknown": "not_done"}
"""State of a request → result of its operation. A service that never heard of the request has not carried it out."""


def _outcome(operation: Operation, result: str, detail: str, facts: Facts | None = None) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail[:500], facts=facts or {}, attempt=operation.attempt)
