"""Readers of foreign bytes, and what must hold of each: it takes an input or refuses it, and what it took can be kept.

A reader raises nothing but the errors that it names, takes no more than LIMIT_CPU_S, and gives values that a snapshot
and an answer can hold: text that can be encoded, numbers of 64 bits.
"""

import asyncio
import base64
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hostler.agent import check_plugins
from hostler.agent.collectors import dcgm_reader, gpu_state, kubelet_devices, pstore, smart_health
from hostler.agent.limited_command import CommandEnd
from hostler.agent.local_observation import LocalObservation
from hostler.core.diagnose.judge import judge
from hostler.core.intents import registration
from hostler.core.policy import documents
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Observation
from hostler.core.state.number_limits import outside
from hostler.drivers.check_message import read_verdict
from hostler.drivers.infiniband import forwarding, notice_pages, telemetry_csv
from hostler.drivers.kubernetes import bootstrap_token_secret
from hostler.drivers.kubernetes import wire as kubernetes
from hostler.drivers.kubernetes.api_endpoint import read_cluster_info
from hostler.drivers.kubernetes.credentials import read_credential
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.redfish import wire, wire_firmware
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.drivers.slurm import wire as slurm
from hostler.drivers.slurm.hostlist import HostlistError, checked_name, expand
from hostler.ports import PortError, UnreachableError
from hostler.server import acts
from hostler.server.problems import ProblemError
from hostler.server.routes import agent_reports, cell, intents
from hostler.sim.bmc.vendors import VENDORS
from hostler_checks import tool_outputs
from hostler_checks.device import UnableError
from tests.contract.redfish_vendors import Bmc, read_by_the_driver
from tests.fuzz.kernel_log_laws import NODE, hold_for_bytes
from tests.fuzz.mutating import mutated, mutated_json

LIMIT_CPU_S = 3.0
"""Far above what any reader takes; what is over it grows faster than its input."""
SEEDS = Path(__file__).parent / "seeds"
CASES = Path(__file__).parents[1] / "wire" / "cases"


class Target(Struct, frozen=True):
    """A reader by name: how an input is drawn, and what is done with it."""

    name: str
    draw: Callable[[random.Random], bytes]
    hold: Callable[[bytes], None]


def try_one(target: Target, raw: bytes) -> None:
    """Raises what the reader should not, and AssertionError where what holds of all of them does not."""
    begin = time.process_time()
    target.hold(raw)
    took_s = time.process_time() - begin
    assert took_s < LIMIT_CPU_S, f"{target.name} took {took_s:.1f} s for {len(raw)} bytes"


def keepable(value: Any) -> None:
    """Whether a journal, a snapshot and an answer can hold it."""
    plain = msgspec.to_builtins(value, str_keys=True)
    msgspec.msgpack.encode(plain)
    msgspec.json.decode(msgspec.json.encode(plain))


def _of_files(name: str) -> Callable[[random.Random], bytes]:
    found = [path.read_bytes() for path in sorted((SEEDS / name).iterdir())]
    return lambda rng: mutated(rng, found)


def _of_lines() -> Callable[[random.Random], bytes]:
    cases = (path.read_text("utf-8").splitlines() for path in sorted(CASES.glob("*.jsonl")))
    lines: Sequence[bytes] = [json.loads(case)["line"].encode() for file in cases for case in file]
    return lambda rng: mutated(rng, lines)


def slurm_answers(raw: bytes) -> None:
    """`scontrol` and `squeue` as they print, and the small languages within: hostlists, GPUs of a job."""
    for read in (slurm.nodes, slurm.jobs, slurm.settings, lambda body: slurm.check_done(body, "a request")):
        _refusing(PortError, read, raw)
    text = raw.decode("utf-8", "replace")
    for name in _refusing(HostlistError, expand, text) or ():
        _refusing(PortError, checked_name, name)
    keepable(slurm.gpu_indexes(text))


def kubernetes_answers(raw: bytes) -> None:
    """Pages and watched lines of the API, read as each of the kinds that are watched."""
    for read in (kubernetes.read_node, kubernetes.read_pod, kubernetes.read_budget):
        keepable(_refusing(kubernetes.Malformed, kubernetes.read_page, raw, read))
        keepable(_refusing(kubernetes.Malformed, kubernetes.read_event, raw, read))
    keepable(kubernetes.read_status(raw))


def kubeconfigs(raw: bytes) -> None:
    """A kubeconfig, and what a cluster shows of one to who joins; no program in it is run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kubeconfig"
        file.touch(0o600)
        file.write_bytes(raw)
        access = _refusing(InvalidInputError, load_kubeconfig, str(file))
    keepable((access.server, access.ca) if access else None)
    keepable(read_cluster_info(json.dumps({"data": {"kubeconfig": raw.decode("utf-8", "replace")}}).encode()))


def signing_requests(raw: bytes) -> None:
    """A CertificateSigningRequest's own bytes, which whoever may join a cluster writes; and an authority's."""
    named = (f"system:bootstrap:{'a' * 6}", (bootstrap_token_secret.group_of("n1"),))
    usages = tuple(sorted(bootstrap_token_secret.NEEDED))
    pem = _pem("CERTIFICATE REQUEST", raw)
    asked = bootstrap_token_secret.SigningRequest("r", bootstrap_token_secret.SIGNER, *named, usages, pem)
    keepable(bootstrap_token_secret.wrong_with(asked, "a" * 6, "n1"))
    keepable(_refusing(ValueError, bootstrap_token_secret.ca_hash, _pem("CERTIFICATE", raw).decode()))


def _pem(what: str, raw: bytes) -> bytes:
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (what.encode(), base64.encodebytes(raw), what.encode())


def exec_credentials(raw: bytes) -> None:
    """Reads the output of a program that logs in: a token that is one header, and a moment that can be compared."""
    given = _refusing(UnreachableError, read_credential, raw, "login")
    if given is not None:
        assert given.token.isascii()
        assert given.token.isprintable()
        assert given.expiration_timestamp is None or given.expiration_timestamp != datetime.now(UTC)
    keepable(given)


def drive_health(raw: bytes) -> None:
    """Reads the output of `smartctl` or `nvme`, in which a drive's own words are."""
    found = smart_health.told("sda", raw)
    keepable(found)
    told = Observation("n1", "host", "agent", "s", 1, boot_id="b", facts=found)
    assert not outside(told), "the controller would refuse it"


def kubelet_checkpoint(raw: bytes) -> None:
    """The kubelet's file of what its device plugins have given out."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / kubelet_devices.CHECKPOINT
        file.parent.mkdir(parents=True)
        file.write_bytes(raw)
        keepable(kubelet_devices.Devices().news(kubelet_devices.read(Path(folder)), 1.0))


def dcgm_page(raw: bytes) -> None:
    """An exporter's page, as the reader's process hands it to the agent."""
    keepable(gpu_state.decoded(json.dumps(dcgm_reader.report(raw.decode("utf-8", "replace"))).encode()))


def telemetry_document(raw: bytes) -> None:
    """A document of UFM Telemetry that a site put down: its readings count, or it is refused whole."""
    with suppress(ValueError):
        readings = telemetry_csv.parse(raw)
        keepable(list(readings.values()))
        assert all(0 < port.number < 255 and len(port.guid) == 16 for port in readings)
        assert all((reading.link_downed or 0) >= 0 for reading in readings.values())


def manager_log(raw: bytes) -> None:
    """The end of a subnet manager's log: its traps are notices that can be kept and shown, all else is passed over."""
    told = notice_pages.of_log(raw.decode(errors="replace").split("\n"))
    keepable(list(told.values()))
    assert all(one.said.isprintable() and one.about.isprintable() and one.number < 100_000 for one in told.values())


def ufm_events(raw: bytes) -> None:
    """UFM's events: notices that can be kept and shown, or refused whole."""
    with suppress(ValueError):
        told = notice_pages.of_ufm(raw)
        keepable(list(told.values()))
        assert all(0 <= one.number < 1_000_000 for one in told.values())


def forwarding_tables(raw: bytes) -> None:
    """A page of forwarding tables: the same however it is cut into pieces."""
    whole, pieces = forwarding.TableReader(), forwarding.TableReader()
    whole.feed(raw)
    for at in range(0, len(raw), 97):
        pieces.feed(raw[at : at + 97])
    assert (told := whole.read()) == pieces.read()
    assert all(len(table) <= 0xC000 for table in told.tables.values())


class _Spool:
    """Keeps what it is given, as the agent's spool does."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        keepable([(s.text, s.facts) for s in observations])
        self.kept |= dict([cursor]) if cursor else {}

    def cursor(self, name: str) -> bytes | None:
        return self.kept.get(name)


def crash_record(raw: bytes) -> None:
    """A record that firmware kept of a dead kernel; told once."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "dmesg-efi-1").write_bytes(raw)
        spool = _Spool()
        assert [pstore.tell_crashes(spool, at, (Path(folder),)) for at in (1.0, 2.0)] == [1, 0]


def yaml_documents(raw: bytes) -> None:
    """Reads documents that people write: the configuration."""
    found = _refusing(InvalidInputError, documents.parse, {"a.yaml": raw.decode("utf-8", "replace")})
    keepable(found)


def plugin_answers(raw: bytes) -> None:
    """Reads the output of the operator's own program, with every end it may have."""
    for code in (0, 1, 2, 3, 9, -9):
        for answer in check_plugins.read_answers(CommandEnd(code, raw, "some error")):
            keepable(answer)


BODIES = (
    agent_reports.ObservationsBody,
    agent_reports.HeartbeatBody,
    agent_reports.OutcomesBody,
    agent_reports.ReadingsBody,
    intents.IntentBody,
    intents.RegisterBody,
    intents.AssetsBody,
    cell.ConfigBody,
)


def http_bodies(raw: bytes) -> None:
    """Every body that the API takes: decoded strictly, then what is done with it before it is recorded."""
    for body in BODIES:
        try:
            found = msgspec.json.decode(raw, type=body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        _take(found)


def _take(found: Any) -> None:
    now = datetime(2025, 3, 4, tzinfo=UTC)
    match found:
        case agent_reports.ObservationsBody(observations=seen):
            for one in (o for o in seen if not outside(o)):
                keepable(one)
                keepable(judge(one, NODE, None))
        case agent_reports.OutcomesBody(outcomes=outcomes):
            keepable([one for one in outcomes if not outside(one)])
        case intents.IntentBody(act=fields):
            made = _refusing(ProblemError, lambda: acts.act_made(acts.kind_named(acts.verb_in(fields)), fields))
            keepable(msgspec.structs.replace(found, act={}))
            keepable(made)
        case intents.RegisterBody(nodes=nodes):
            keepable(_refusing(InvalidInputError, registration.register, Fleet(), nodes, False, now))
        case intents.AssetsBody(assets=assets):
            keepable(_refusing(InvalidInputError, registration.register_assets, Fleet(), assets, now))
        case _:
            keepable(found)


def redfish_look(raw: bytes) -> None:
    """A whole look at a BMC that answers some requests wrongly; `raw` is the seed of what it does."""
    rng = random.Random(raw)
    wrong = rng.choice((0.02, 0.1, 0.5))

    class Wrong(Bmc):
        async def exchange(self, method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
            right = await super().exchange(method, path, body, headers)
            if rng.random() > wrong:
                return right
            if rng.random() < 0.8 and right.body:
                return HttpResponse(right.status, json.dumps(mutated_json(rng, json.loads(right.body))).encode())
            return HttpResponse(rng.choice((200, 200, 202, 404, 500, 999)), mutated(rng, [right.body or b"{}"]))

    bmc = Wrong(rng.choice(sorted(VENDORS)))
    with suppress(PortError):
        asyncio.run(asyncio.wait_for(read_by_the_driver(bmc), 60))


def redfish_documents(raw: bytes) -> None:
    """Each single document of a BMC, whichever was asked for."""
    for read in (
        wire.service_root,
        lambda body: wire.members(body)[1],  # the members are documents still, and nobody's facts
        lambda body: wire.system(body, "/redfish/v1/Systems/1"),
        lambda body: wire.manager(body, "/redfish/v1/Managers/1"),
        wire.reset_types,
        wire_firmware.update_service,
        lambda body: wire.task(body, "/redfish/v1/TaskService/Tasks/1"),
        wire.error_text,
    ):
        keepable(_refusing(WireError, read, raw))


def _refusing(error: type[Exception], read: Callable[..., Any], *of: Any) -> Any:
    try:
        return read(*of)
    except error:
        return None


def tool_reports(raw: bytes) -> None:
    """An output as each of others' tools' readers takes it."""
    text = raw.decode("utf-8", "replace")
    for tool in tool_outputs.READERS:
        for code in (0, 2):
            told = _refusing(UnableError, tool_outputs.read, tool, text, code)
            keepable(told.faults if told is not None else ())


def check_messages(raw: bytes) -> None:
    """A check's last message."""
    text = raw.decode("utf-8", "replace")
    for code in (0, 2):
        told = read_verdict(code, text)
        keepable((told.detail, told.facts))


def _pages() -> Callable[[random.Random], bytes]:
    shown = [json.dumps(page).encode() for vendor in sorted(VENDORS) for page in Bmc(vendor).documents().values()]
    return lambda rng: mutated(rng, shown)


TARGETS = {
    target.name: target
    for target in (
        Target("kernel_log", _of_lines(), hold_for_bytes),
        Target("redfish_look", lambda rng: rng.randbytes(8), redfish_look),
        Target("redfish_documents", _pages(), redfish_documents),
        Target("slurm", _of_files("slurm"), slurm_answers),
        Target("kubernetes", _of_files("kubernetes"), kubernetes_answers),
        Target("kubeconfig", _of_files("kubeconfig"), kubeconfigs),
        Target("csr", _of_files("csr"), signing_requests),
        Target("exec_credential", _of_files("exec_credential"), exec_credentials),
        Target("drives", _of_files("drives"), drive_health),
        Target("kubelet", _of_files("kubelet"), kubelet_checkpoint),
        Target("dcgm", _of_files("dcgm"), dcgm_page),
        Target("pstore", _of_files("pstore"), crash_record),
        Target("documents", _of_files("documents"), yaml_documents),
        Target("bodies", _of_files("bodies"), http_bodies),
        Target("telemetry", _of_files("telemetry"), telemetry_document),
        Target("manager_log", _of_files("manager_log"), manager_log),
        Target("ufm_events", _of_files("ufm_events"), ufm_events),
        Target("forwarding", _of_files("forwarding"), forwarding_tables),
        Target("plugins", _of_files("plugins"), plugin_answers),
        Target("tool_outputs", _of_files("tool_outputs"), tool_reports),
        Target("check_messages", _of_files("check_messages"), check_messages),
    )
}
