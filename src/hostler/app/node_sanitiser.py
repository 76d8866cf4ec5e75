"""Sanitises a node: its agent erases, its BMCs lose tenants' accounts, firmware and UEFI are compared; it certifies.

It takes the agents' operation and hands it on. What the agent says is done counts once everything besides is as the SKU
says and the certificate is on the disk: whatever is not leaves the step open, and says what to do next.
"""

import asyncio
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec.structs import replace

from hostler.app.account_clearing import BMC_S, AccountClearing, AccountsTurn
from hostler.app.controller_process import Gate
from hostler.core.planning.firmware_plan import to_verify
from hostler.core.planning.sanitise_order import CERTIFICATE, DRIVES_ERASED, TENANT_BEFORE
from hostler.core.state.certificate_document import SCHEMA, BmcCompared, SanitiseCertificate
from hostler.core.state.erasure import REPORT, ErasureReport, worst
from hostler.core.state.hardware import BIOS
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts, Node, Operation, Outcome, Verdict
from hostler.core.state.operations import AnyAct, CollectInventory, Sanitise, VerifyFirmware
from hostler.drivers.redfish.account_removal import remove_accounts, strange_accounts
from hostler.drivers.redfish.client import Clients
from hostler.ports import JournalError, OperationDriver, PortError, RefusedError, UnreachableError

_NOT_ASKED = Verdict.never_verified


class NodeSanitiser:
    """The Hand for sanitising, before the agents'. `redfish` reads versions and settings."""

    kinds = frozenset({"sanitise"})

    def __init__(self, gate: Gate, clients: Clients, redfish: OperationDriver) -> None:
        self._gate = gate
        self._accounts = AccountClearing(clients)
        self._redfish = redfish

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Have the agent erase, unless an earlier attempt of this operation has; then do the rest. Raises PortError."""
        said = await self._erased_before(operation, node) or await self._agents().perform(operation, node)
        return await self._finished(operation, node, said, remove_accounts)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Ask the agent what came of it. What was erased and read back is certified; an account left is `not_done`."""
        said = await self._agents().observe(operation, node)
        try:
            seen = await self._finished(operation, node, said, strange_accounts)
        except RefusedError as error:
            return replace(said, result="not_done", detail=f"erased, not certified: {error}"[:900])
        return replace(seen, result="not_done") if (said.result, seen.result) == ("done", "refused") else seen

    async def _erased_before(self, operation: Operation, node: Node) -> Outcome | None:
        """Outcome of the attempt before this one, where it erased and read back: nobody was let in within a step."""
        if operation.attempt < 2:
            return None
        with suppress(UnreachableError):
            said = await self._agents().observe(replace(operation, attempt=operation.attempt - 1), node)
            if said.result == "done" and REPORT in said.facts:
                return replace(said, attempt=operation.attempt)
        return None

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Hand it on to the agent."""
        await self._agents().revoke(operation, node)

    def _agents(self) -> OperationDriver:
        if self._gate.agents is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        return self._gate.agents

    async def _finished(self, operation: Operation, node: Node, said: Outcome, clear: AccountsTurn) -> Outcome:
        """The agent's outcome where it has not erased; else that of accounts, versions, settings and certificate."""
        act = operation.act
        if said.result != "done" or not isinstance(act, Sanitise):
            return said
        try:
            report = msgspec.json.decode(str(said.facts.get(REPORT, "")), type=ErasureReport)
        except UNREADABLE as error:
            raise RefusedError(f"the agent of {node.id} sent no report of what it erased; update that agent") from error
        if missing := {one.serial for one in act.drives} - {one.serial for one in report.drives}:
            raise RefusedError(f"the agent's report leaves out {', '.join(sorted(missing))}; update that agent")
        compared = (
            await self._accounts.of_node(act, node, clear),
            await self._firmware(operation, node),
            await self._settings(operation, node),
            *await self._accounts.of_dpus(act, node, clear),
        )
        asked = tuple(one.verdict for one in compared if one.verdict is not _NOT_ASKED)
        if worst(asked) is not Verdict.passed:
            wrong = [one.detail for one in compared if one.verdict not in (_NOT_ASKED, Verdict.passed)]
            return replace(said, result="refused", detail=f"its drives are erased; {'; '.join(wrong)}"[:900])
        return await self._certified(operation, node, said, report, compared)

    # its BMC

    async def _firmware(self, operation: Operation, node: Node) -> BmcCompared:
        sku = self._gate.fleet().configuration_of(node).skus.get(node.sku)
        wanted = to_verify(node, sku) if sku is not None else {}
        if not wanted:
            return BmcCompared("firmware", _NOT_ASKED, "the SKU names no firmware baseline")
        said = await self._asked(operation, node, VerifyFirmware(wanted), "firmware")
        if isinstance(said, str):
            return BmcCompared("firmware", Verdict.inconclusive, said)
        runs = {name: str(said.facts.get(name) or "") for name in wanted}
        if unread := sorted(name for name, version in runs.items() if not version):
            return BmcCompared("firmware", Verdict.inconclusive, f"its BMC lists no {', '.join(unread)}"[:300])
        wrong = [f"{name} runs {runs[name]}" for name, good in sorted(wanted.items()) if runs[name] not in good]
        if wrong:
            return BmcCompared("firmware", Verdict.failed, f"firmware is not the baseline: {'; '.join(wrong)}"[:300])
        return BmcCompared("firmware", Verdict.passed, f"{len(wanted)} components as the SKU says")

    async def _settings(self, operation: Operation, node: Node) -> BmcCompared:
        sku = self._gate.fleet().configuration_of(node).skus.get(node.sku)
        wanted = sku.hardware.bios if sku is not None and sku.hardware is not None else {}
        if not wanted:
            return BmcCompared("uefi", _NOT_ASKED, "the SKU's manifest names no BIOS attributes")
        said = await self._asked(operation, node, CollectInventory(), "uefi")
        if isinstance(said, str) or said.result != "done":
            why = said if isinstance(said, str) else said.detail
            return BmcCompared("uefi", Verdict.inconclusive, f"BIOS attributes were not read: {why}"[:300])
        found = {name: said.facts.get(f"{BIOS}{name}") for name in wanted}
        if unread := sorted(name for name, value in found.items() if value is None):
            return BmcCompared("uefi", Verdict.inconclusive, f"its BMC shows no {', '.join(unread)}"[:300])
        wrong = [f"{name} is {found[name]}, not {value}" for name, value in wanted.items() if str(found[name]) != value]
        if wrong:
            return BmcCompared("uefi", Verdict.failed, f"BIOS: {'; '.join(wrong)}; set it, and restart the node"[:300])
        return BmcCompared("uefi", Verdict.passed, f"{len(wanted)} attributes as the SKU says")

    async def _asked(self, operation: Operation, node: Node, act: AnyAct, name: str) -> Outcome | str:
        """The BMC's answer to a question that changes nothing, or why there is none."""
        question = replace(operation, id=f"{operation.id}-{name}", act=act, plan="")
        try:
            async with asyncio.timeout(BMC_S):
                return await self._redfish.perform(question, node)
        except TimeoutError:
            return f"{name}: its BMC did not answer in {BMC_S:.0f} s"
        except PortError as error:
            return f"{name}: {error}"[:300]

    # the certificate

    async def _certified(
        self,
        operation: Operation,
        node: Node,
        said: Outcome,
        report: ErasureReport,
        compared: tuple[BmcCompared, ...],
    ) -> Outcome:
        """Write the certificate down before anybody hears that the node is free. Raises RefusedError."""
        tenant = node.assignment.tenant if node.assignment is not None else ""
        made = certificate(operation, node, report, compared, self._gate.now())
        if self._gate.certificates is None:
            raise RefusedError("this controller keeps no certificates; start it with --data")
        try:
            data = msgspec.json.format(msgspec.json.encode(made))
            digest = await asyncio.to_thread(self._gate.certificates.put, node.id, data)
        except JournalError as error:
            raise RefusedError(f"the certificate was not kept: {error}; make room there") from error
        facts: Facts = {CERTIFICATE: digest, DRIVES_ERASED: len(report.drives), TENANT_BEFORE: tenant}
        return replace(said, detail=f"erased {len(report.drives)} drives, certificate {digest[:12]}", facts=facts)


def certificate(
    operation: Operation, node: Node, report: ErasureReport, compared: tuple[BmcCompared, ...], now: datetime
) -> SanitiseCertificate:
    """The document itself."""
    return SanitiseCertificate(
        schema=SCHEMA,
        node=node.id,
        serial=node.binding("serial"),
        sku=node.sku,
        tenant=node.assignment.tenant if node.assignment is not None else "",
        operation=operation.id,
        began=operation.started,
        ended=now,
        boot_id=node.boot_id,
        drives=report.drives,
        tpm=report.tpm,
        compared=compared,
    )
