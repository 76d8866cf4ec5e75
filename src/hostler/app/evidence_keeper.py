"""Puts a node's evidence together and keeps it: what is recorded, what its agent reads, a dump of its BMC.

It takes the agents' operation and hands it on where nothing is to be kept. What cannot be had in its time is named in
the bundle and in the outcome; the rest is kept all the same.
"""

import asyncio
import base64
import binascii
import hashlib
import io
import time
import zlib
from collections.abc import Awaitable
from gzip import GzipFile

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.app.controller_process import Gate
from hostler.core.report.evidence_bundle import READINGS, Brought, EvidenceBundle, evidence_bundle
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.model import Facts, Node, Operation, Outcome
from hostler.core.state.operations import AnyAct, BugReport, CollectEvidence
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.diagnostic_dump import dump
from hostler.drivers.redfish.http_exchange import bmc_address
from hostler.drivers.redfish.operation_driver import check_identity
from hostler.journal.evidence_zip import zipped
from hostler.ports import JournalError, OperationDriver, PortError, RefusedError, UnreachableError
from hostler.server import evidence_reading

READING_S, REPORT_S, DUMP_S = 30.0, 180.0, 240.0
"""Longest times for the agent's own readings, for one answer about NVIDIA's report, and for the BMC's dump."""
AT_ONCE = 16
"""Bundles that are put together at once: each holds up to 40 MiB until it is kept."""
RESERVE_S = 20.0
"""Rest of the deadline for putting the bundle together."""
AGAIN_S = 2.0
"""Pause before an agent that is at work is asked again what came of an order."""
PIECES = 32
"""Pieces of one report that are asked for."""
TEXT_BYTES = 8 * 1024 * 1024
"""Bytes of an unpacked report or dump that are kept as text."""
MISSING_CHARS = 2_000
REPORT, DUMP = "nvidia-bug-report", "BMC dump"


class Fetched(Struct, frozen=True):
    """Yield of one source: texts and other files by name, what is missing, and facts for the record."""

    texts: dict[str, str] = {}
    binaries: dict[str, bytes] = {}
    missing: tuple[str, ...] = ()
    facts: Facts = {}


class EvidenceKeeper:
    """The Hand for collecting evidence, before the agents'."""

    kinds = frozenset({"collect_evidence"})

    def __init__(self, gate: Gate, clients: Clients) -> None:
        self._gate = gate
        self._clients = clients
        self._places = asyncio.Semaphore(AT_ONCE)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Keep a bundle, or have the agent read where none is to be kept. Raises PortError."""
        act = operation.act
        if not isinstance(act, CollectEvidence) or not act.keep:
            return await self._agents().perform(operation, node)
        async with self._places:
            left_s = max(0.0, (operation.deadline - self._gate.now()).total_seconds() - RESERVE_S)
            of_agent, of_bmc = await asyncio.gather(
                self._of_agent(operation, node, left_s) if act.agent else _left_alone(),
                self._of_bmc(node, min(DUMP_S, left_s)),
            )
            return await self._kept(operation, node, of_agent, of_bmc)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """A bundle whose outcome was not heard is put together again."""
        act = operation.act
        if not isinstance(act, CollectEvidence) or not act.keep:
            return await self._agents().observe(operation, node)
        return Outcome(operation.id, node.id, "not_done", "it was cut off", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Hand it on to the agent, where nothing is kept; else what is under way ends by itself."""
        if isinstance(operation.act, CollectEvidence) and not operation.act.keep:
            await self._agents().revoke(operation, node)

    def _agents(self) -> OperationDriver:
        if self._gate.agents is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        return self._gate.agents

    async def _kept(self, operation: Operation, node: Node, of_agent: Fetched, of_bmc: Fetched) -> Outcome:
        cell, bundles = self._gate.cell, self._gate.bundles
        if cell is None or bundles is None:
            raise RefusedError("this controller keeps no bundles of evidence; start it with --data")
        brought = Brought(of_agent.texts | of_bmc.texts, (*of_agent.missing, *of_bmc.missing))
        try:
            known = await asyncio.to_thread(evidence_reading.known, cell.view, node, cell.journal, self._gate.now())
            made = await asyncio.to_thread(evidence_bundle, known, brought)
            data, names = await asyncio.to_thread(_packed, made, of_agent.binaries | of_bmc.binaries)
            digest = await asyncio.to_thread(bundles.put, data, time.time())
        except JournalError as error:
            raise RefusedError(
                f"the bundle was not kept: {error}; make room, and let Hostler's user write there"
            ) from error
        missing = [line for line in made.files["missing.txt"].splitlines() if line]
        facts: Facts = of_agent.facts | {
            "bundle": digest,
            "bundle_bytes": len(data),
            "bundle_files": names,
            "missing": "\n".join(missing)[:MISSING_CHARS],
        }
        detail = f"{names} files, {len(data):,} bytes are kept as {digest[:12]}"
        return Outcome(operation.id, node.id, "done", detail, facts, attempt=operation.attempt)

    # the node's agent

    async def _of_agent(self, operation: Operation, node: Node, left_s: float) -> Fetched:
        """Readings of the agent at once, then NVIDIA's own report; of an agent that is not there neither."""
        until = time.monotonic() + left_s
        try:
            said = await self._order(operation, node, CollectEvidence(), "readings", min(READING_S, left_s))
        except PortError as away:
            return Fetched(missing=_lines(f"readings, {REPORT}", away))
        facts = dict(said.facts)
        found = {READINGS: msgspec.json.format(msgspec.json.encode(facts)).decode() + "\n"}
        try:
            report = await self._report(operation, node, until)
        except PortError as error:
            return Fetched(found, missing=_lines(REPORT, error), facts=facts)
        text, cut = await asyncio.to_thread(unpacked, report)
        missing = (f"{REPORT}: cut after {TEXT_BYTES:,} bytes",) if cut else ()
        return Fetched(found | {"nvidia-bug-report.log": text}, missing=missing, facts=facts)

    async def _report(self, operation: Operation, node: Node, until: float) -> bytes:
        """The report as it is packed, put together from its pieces. Raises PortError."""
        data, digest = b"", ""
        for number in range(PIECES):
            left_s = min(REPORT_S, until - time.monotonic())
            if left_s < 1.0:
                raise UnreachableError("it was not made in time; it is asked again")
            act = BugReport(left_s, len(data))
            said = await self._order(operation, node, act, f"report-{number}", left_s + 5.0)
            piece, size = _piece(said.facts)
            data += piece
            digest = digest or str(said.facts.get("sha256"))
            if not piece or len(data) > size:
                break
            if len(data) == size:
                if hashlib.sha256(data).hexdigest() != digest:
                    raise RefusedError("its pieces do not belong together; take a new one (hostler node evidence)")
                return data
        raise RefusedError("the agent's pieces do not come to the whole that it names; update that agent")

    async def _order(self, operation: Operation, node: Node, act: AnyAct, name: str, limit_s: float) -> Outcome:
        """Have the agent do a part of the operation, under a name of its own. Raises PortError."""
        deadline = self._gate.now() + (operation.deadline - operation.started)
        order = replace(
            operation, id=f"{operation.id}-{name}", act=act, plan="", deadline=min(deadline, operation.deadline)
        )
        try:
            async with asyncio.timeout(limit_s):
                said = await self._agents().perform(order, node)
                while said.result in ("busy", "not_done"):
                    await asyncio.sleep(AGAIN_S)
                    ask = self._agents().observe if said.result == "busy" else self._agents().perform
                    said = await ask(order, node)
        except TimeoutError as late:
            raise UnreachableError(
                f"the agent of {node.id} is not reachable, or did not answer in time; see that it runs there"
            ) from late
        if said.result != "done":
            raise RefusedError(f"the agent of {node.id}: {said.result}, {said.detail}; see its log on the node")
        return said

    # its BMC

    async def _of_bmc(self, node: Node, limit_s: float) -> Fetched:
        try:
            async with asyncio.timeout(limit_s):
                data = await self._dump(node)
        except PortError as error:
            return Fetched(missing=_lines(DUMP, error))
        except TimeoutError:
            return Fetched(missing=(f"{DUMP}: the BMC did not make one within {limit_s:.0f} s",))
        try:
            return Fetched({"bmc-dump.txt": data.decode()})
        except UnicodeDecodeError:
            return Fetched(
                binaries={"bmc-dump.bin": data},
                missing=("names and secrets in bmc-dump.bin: it is as the BMC made it",),
            )

    async def _dump(self, node: Node) -> bytes:
        address = bmc_address(node)
        client = self._clients(address.origin, node.binding(BMC_CERTIFICATE))
        client.begin()
        system = await client.system(address.system)
        check_identity(client.origin, system, node)
        return await dump(client, system)


def _left_alone() -> Awaitable[Fetched]:
    why = f"readings, {REPORT}: the node is in service, and is not disturbed for them"
    return _given(Fetched(missing=(why,)))


async def _given(found: Fetched) -> Fetched:
    return found


def _lines(what: str, error: PortError) -> tuple[str, ...]:
    return (f"{what}: {' '.join(str(error).split())[:200]}",)


def _piece(facts: Facts) -> tuple[bytes, int]:
    """A piece, and how long the whole is to be. Raises RefusedError for what is no piece."""
    page, size = facts.get("page"), facts.get("bytes")
    if not isinstance(page, str) or not isinstance(size, int):
        raise RefusedError("the agent sent no report; update that agent")
    try:
        return base64.b64decode(page, validate=True), size
    except (binascii.Error, ValueError) as error:
        raise RefusedError(f"the agent's report cannot be read: {error}; update that agent") from error


def unpacked(data: bytes) -> tuple[str, bool]:
    """The report's text, and whether there is more than is kept; one that is not packed is taken as it is."""
    text = data
    if data.startswith(b"\x1f\x8b"):
        try:
            with GzipFile(fileobj=io.BytesIO(data)) as packed:
                text = packed.read(TEXT_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            return f"[the report cannot be unpacked: {error}]\n", False
    return text[:TEXT_BYTES].decode("utf-8", "replace"), len(text) > TEXT_BYTES


def _packed(made: EvidenceBundle, binaries: dict[str, bytes]) -> tuple[bytes, int]:
    """The bundle's bytes, and how many files it has beside its manifest."""
    files: dict[str, str | bytes] = {**made.files, **binaries}
    digests = made.sha256 | {name: hashlib.sha256(data).hexdigest() for name, data in binaries.items()}
    return zipped(files, made.made.isoformat(), digests), len(files)
