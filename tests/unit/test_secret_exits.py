"""Every place where text leaves Hostler, or is written down, goes through the one redactor; and they are counted."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import hostler
from hostler.agent.check_plugins import _clean as of_plugin
from hostler.agent.checks.check_suite import _clean as of_suite
from hostler.agent.local_observation import LocalObservation
from hostler.agent.spool import Spool
from hostler.controller.inputs import IntentAsked, NodeSeen, Observed, Replied
from hostler.controller.recorded_texts import without_secrets
from hostler.core.notify.messages import Message
from hostler.core.report.evidence_bundle import Brought, Known, evidence_bundle
from hostler.core.state.model import Observation, Outcome, Severity
from hostler.drivers.check_message import read_verdict
from hostler.drivers.notify import wire
from hostler.drivers.ticket_wording import description, headline
from hostler.logs import plain, structured, traces
from tests.kit import Drive, a_node, configuration, intent_of, pool_document
from tests.secret_examples import FORBIDDEN, HARMLESS, SECRETS

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIELDS = {"key": "whsec_" + "A" * 32, "routing_key": "r", "api_key": "a", "token": "t"}


def of_log(formatter: logging.Formatter) -> Callable[[str], str]:
    def write(line: str) -> str:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        record = logging.LogRecord("hostler", logging.INFO, "f", 1, line, None, None)
        record.facts = {"reason": line, "detail": {"said": line}}
        handler.emit(record)
        return stream.getvalue()

    return write


def of_trace(line: str) -> str:
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    end = traces.begin(provider.get_tracer("t"))
    try:
        with traces.root(line, {}, {"hostler.target": line}) as span:
            traces.tell(span, "hostler.outcome", line)
            traces.failed(span, line)
    finally:
        end()
    return "\n".join(span.to_json() for span in kept.get_finished_spans())


CELL = Drive(configuration({"train": pool_document(target=1)}), [a_node("a", pool="train")])


def of_evidence(line: str) -> str:
    seen = [Observation("a", "kernel_log", "agent", "s", 1, text=line, received=NOW, facts={"said": line})]
    known = Known(CELL.fleet, CELL.node("a"), [], seen, NOW)
    return "\n".join(evidence_bundle(known, Brought({"nvidia-bug-report.log": f"one\n{line}"}, (line,))).files.values())


def a_message(line: str) -> Message:
    return Message(
        id="c1/ticket/7/1", route="r", key="c1/ticket/7", action="open", topic="ticket", severity=Severity.critical,
        page=True, summary=line, seq=7, since=NOW, at=NOW, nodes=("a",), details={"action": line, "fault": line},
        lines=(line,),
    )  # fmt: skip


def of_message(line: str) -> str:
    """Bodies of every kind of target, and a message that an outbox kept for a restart."""
    told, url = a_message(line), "https://target.example"
    letters = [
        wire.webhook(told, "c1", url, FIELDS, 1),
        wire.slack(told, "c1", url),
        wire.teams(told, "c1", url),
        wire.pagerduty(told, "c1", url, FIELDS),
        wire.opsgenie(told, "c1", url, FIELDS),
        wire.alertmanager(told, "c1", url, FIELDS),
    ]
    kept = msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(told), type=Message)).decode()
    return "\n".join([*(letter.body.decode() for letter in letters), *wire.mail_text(told, "c1"), kept])


def of_ticket(line: str) -> str:
    """The words of a ticket in Jira, ServiceNow and NetBox."""
    return f"{headline(a_message(line))}\n{description(a_message(line), 'c1')}"


def of_record(line: str) -> str:
    """Records, which exports, archives, the API and its stream read, as a controller's step makes it."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a", pool="train")])
    told: list[object] = []
    drive.checks.append(lambda _drive, ready: told.append(ready.batch))
    drive.observe("a", "kernel_log", line, facility=0)
    drive.ask("cordon", "a")
    seen = Observation("a", "kernel_log", "agent", "s", 1, text=line, facts={"said": line})
    others = (
        Observed(1, "a", (seen,)),
        Replied(Outcome("o", "a", "failed", line, {"said": line})),
        IntentAsked(1, intent_of("i", "cordon", "a", "ann", line, NOW)),
        NodeSeen("a", bmc_refuses=line, bmc_says=line),
    )
    return msgspec.json.encode([told, [without_secrets(one) for one in others]], enc_hook=str).decode()


def of_job(line: str) -> str:
    """The last words of a check that a scheduler or an agent ran, and its answer in JSON."""
    answer = json.dumps({"verdict": "failed", "detail": line, "part": "gpu"})
    said = [read_verdict(code, text).detail for code in (1, 7) for text in (line, answer)]
    return "\n".join([*said, of_plugin(line), of_suite(line)])


def of_agent(line: str, folder: Path) -> str:
    """Observations on a node's disk, as they leave it."""
    spool = Spool(folder, "b", lambda: 1.0, lambda: "id")
    spool.append([LocalObservation("kernel_log", 1.0, text=line, facts={"said": line})])
    told = msgspec.json.encode(spool.pending(10, 2**20)).decode()
    return told + "".join(path.read_bytes().decode(errors="replace") for path in folder.rglob("*") if path.is_file())


EXITS: dict[str, Callable[[str], str]] = {
    "log line": of_log(structured.formatter(json=False)),
    "log line in JSON": of_log(structured.formatter(json=True)),
    "agent's log line": of_log(plain.Lines(json=False)),
    "trace": of_trace,
    "evidence": of_evidence,
    "message": of_message,
    "ticket": of_ticket,
    "record": of_record,
    "job": of_job,
}


def leaked(shown: str) -> list[str]:
    return [one for one in FORBIDDEN if one in shown]


@pytest.mark.parametrize("leave", EXITS.values(), ids=EXITS)
def test_no_secret_leaves_by_this_exit(leave: Callable[[str], str]) -> None:
    """Mutants: the exit shows its text as it came; a name of a fact is not looked at."""
    told = {line: leaked(leave(line)) for line in SECRETS}
    assert not {line: found for line, found in told.items() if found}


def test_no_secret_lies_on_a_nodes_disk_or_leaves_it(tmp_path: Path) -> None:
    """Mutant: the spool keeps a kernel's line as it came."""
    for number, line in enumerate(SECRETS[::5]):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert not leaked(of_agent(line, folder))


@pytest.mark.parametrize("leave", [of_ticket, of_message, of_evidence], ids=["ticket", "message", "evidence"])
def test_harmless_lines_stand_in_it(leave: Callable[[str], str]) -> None:
    """Mutant: whole lines are dropped."""
    for line in HARMLESS[::7]:
        words = re.findall(r"[A-Za-z]{5,}", line)
        assert all(word in leave(line) for word in words if word != "python")


# --- counted ----------------------------------------------------------------------------------------------------------

SOURCE = Path(hostler.__file__).parent
BY_EXIT = {
    "a log line or a record of one": ("logging.Formatter", {"logs/plain.py", "logs/structured.py"}),
    "a span's attribute": (".set_attribute(", {"logs/traces.py"}),
    "a span that begins": (".start_as_current_span(", {"logs/traces.py"}),
    "a bundle of evidence": (" EvidenceBundle(", {"core/report/evidence_bundle.py"}),
    "a message": (
        " Message(",
        {
            "core/notify/message_grouping.py",
            "core/notify/outside_tickets.py",
            "core/notify/messages.py",
            "server/routes/notifications.py",
        },
    ),
    "a mail": ("EmailMessage()", {"drivers/notify/mail.py"}),
    "words of a check that a scheduler ran": (
        "CheckOutcome(",
        {"drivers/check_message.py", "drivers/kubernetes/jobs.py", "drivers/slurm/check_jobs.py"},
    ),
    "an input of the loop": ("inputs.Input", {"controller/loop.py"}),
    "a command that exports": (
        "def export",
        {"cli/commands/audit.py", "cli/commands/journal.py", "journal/exporting.py"},
    ),
}
"""Exit → how it looks in the source, and the modules that have it. A new one gets a row here and a test above."""


def modules_with(text: str) -> set[str]:
    return {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if text in path.read_text()}


@pytest.mark.parametrize("what", BY_EXIT)
def test_the_exits_are_counted(what: str) -> None:
    """Mutant: a driver sets an attribute of a span itself."""
    text, known = BY_EXIT[what]
    found = modules_with(text) - {"app/trace_export.py"}
    assert found - known == set(), f"{what}: send the table of secrets through it, and name it here"


def test_there_is_one_list() -> None:
    """No other module has patterns of secrets. Mutant: the bundle of evidence has its own again."""
    named = re.compile(r"re\.compile\((?:[^)]|\n){0,200}(?:passw|secret|bearer|token|BEGIN )", re.IGNORECASE)
    allowed = {"logs/secret_patterns.py", *_OTHER_USES}
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if named.search(path.read_text())}
    assert found <= allowed


_OTHER_USES: Iterable[str] = ("server/boot/signed_list.py", "server/audit_requests.py", "agent/cluster_pins.py")
