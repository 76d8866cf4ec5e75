"""The journal as a source of records: a real journald in a namespace of its own, and what that cannot say."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.agent.collectors import kmsg
from hostler.agent.collectors.kernel_log import KernelLogReader
from hostler.agent.collectors.systemd_journal import SystemdJournal
from hostler.agent.local_observation import LocalObservation

JOURNALD = Path("/usr/lib/systemd/systemd-journald")
SERIES = "0123456789abcdef" * 2
DEADLINE_S = 20.0


def entry(number: int, message: Any, transport: str = "kernel", **fields: str) -> bytes:
    cursor = f"s={SERIES};i={number:x};b=ab;m=1;t=1;x=1"
    plain = {"__CURSOR": cursor, "__MONOTONIC_TIMESTAMP": "5000000", "_TRANSPORT": transport, "MESSAGE": message}
    return json.dumps({**plain, "PRIORITY": "3", **fields}).encode() + b"\n"


def records(raw: bytes) -> list[kmsg.KmsgRecord | None]:
    return [kmsg.parse(record) for record in SystemdJournal().split(raw)[0]]


def test_an_entry_is_a_record_with_its_number_and_age() -> None:
    (record,) = records(entry(26, "NVRM: Xid (PCI:0000:4c:00): 79, a\\b", SYSLOG_FACILITY="0"))
    assert record == kmsg.KmsgRecord(3, 26, 5_000_000, "NVRM: Xid (PCI:0000:4c:00): 79, a\\b", "-")


@pytest.mark.parametrize("transport", ["syslog", "journal", "stdout", ""])
@pytest.mark.parametrize("identifier", ["kernel", "nv-fabricmanager"])
def test_only_what_journald_took_from_the_kernel_is_the_kernels(transport: str, identifier: str) -> None:
    """Mutant: believe SYSLOG_FACILITY=0 of any client."""
    fields = {"SYSLOG_FACILITY": "0", "SYSLOG_IDENTIFIER": identifier}
    (record,) = records(entry(1, "NVRM: Xid (PCI:0000:4c:00): 79", transport, **fields))
    assert record is not None
    assert record.facility != 0
    (record,) = records(entry(1, "written to /dev/kmsg by a process", "kernel", SYSLOG_FACILITY="1"))
    assert record is not None
    assert record.facility == 1


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ([78, 86, 82, 77, 255, 10], "NVRM\\xff\\x0a"),
        (None, ""),
        ("two\nlines", "two\\x0alines"),
        ("NVRM: one\nNVRM: two", "NVRM: one\nNVRM: two"),
        ("\x1b[2J", "\\x1b[2J"),
    ],
)
def test_whatever_the_message_is_it_forges_no_line(message: Any, text: str) -> None:
    (record,) = records(entry(1, message))
    assert record is not None
    assert record.text == text


@given(st.binary(max_size=200) | st.builds(lambda m: entry(1, m), st.text(max_size=40)))
def test_hostile_output_never_raises(raw: bytes) -> None:
    for piece in (raw + b"\n", b'{"__CURSOR":' + raw + b"\n"):
        for record in SystemdJournal().split(piece)[0]:
            parsed = kmsg.parse(record)
            assert parsed is None or parsed.text is not None


class Kept:
    """A spool in memory that counts what it was given."""

    def __init__(self) -> None:
        self.cursors: dict[str, bytes] = {}
        self.seen: list[LocalObservation] = []

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        self.seen += observations
        if cursor:
            self.cursors[cursor[0]] = cursor[1]

    def cursor(self, name: str) -> bytes | None:
        return self.cursors.get(name)

    def lines(self, mark: str) -> list[LocalObservation]:
        return [one for one in self.seen if mark in one.text]


class Reading:
    """A reader in a thread, until the block ends."""

    def __init__(self, kept: Kept, namespace: str, boot_id: str) -> None:
        self._reader = KernelLogReader(SystemdJournal(namespace), kept, boot_id, time.monotonic)
        self._told, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._reader.run, args=(self._told, lambda: None))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        os.close(self._tell)
        self._thread.join(DEADLINE_S)
        os.close(self._told)
        assert not self._thread.is_alive()


@pytest.fixture
def namespace() -> Iterator[str]:
    """A journald of our own."""
    if not JOURNALD.exists() or os.geteuid() != 0 or shutil.which("journalctl") is None:
        pytest.skip("systemd-journald is not installed or not ours to run: apt-get install systemd, as root")
    name = f"hostler{secrets.token_hex(4)}"
    journald = subprocess.Popen([JOURNALD, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: Path(f"/run/systemd/journal.{name}/socket").exists())
        yield name
    finally:
        journald.terminate()
        journald.wait(DEADLINE_S)
        shutil.rmtree(f"/run/systemd/journal.{name}", ignore_errors=True)
        for root in ("/var/log/journal", "/run/log/journal"):
            for place in Path(root).glob(f"*.{name}"):
                shutil.rmtree(place, ignore_errors=True)


def until(holds: Any) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end_s, "it did not happen in time"
        time.sleep(0.02)


def say(namespace: str, message: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald:
        journald.connect(f"/run/systemd/journal.{namespace}/socket")
        journald.send(
            f"MESSAGE={message}\nPRIORITY=3\nSYSLOG_FACILITY=0\nSYSLOG_IDENTIFIER=nv-fabricmanager\n".encode()
        )


def test_a_real_journal_is_read_on_from_where_it_was(namespace: str) -> None:
    """Mutant: save no position with the sightings; every line before the restart is then told twice."""
    kept, boot_id = Kept(), Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    say(namespace, "failed to find the GPU handle 111 first")
    with Reading(kept, namespace, boot_id):
        until(lambda: kept.lines("first"))
    say(namespace, "failed to find the GPU handle 222 between")
    with Reading(kept, namespace, boot_id):
        until(lambda: kept.lines("between"))
        say(namespace, "failed to find the GPU handle 333 last")
        until(lambda: kept.lines("last"))
    for word in ("first", "between", "last"):
        (one,) = kept.lines(word)
        assert one.facility == 3
        assert one.finding == "fabric_manager fm_gpu_handle_not_found"
        assert one.count == 1
