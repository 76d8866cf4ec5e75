"""The systemd journal as a source of kernel-log records, where /dev/kmsg may not be read or services matter too.

`journalctl` follows the journal in a child process; its entries become records in the form of /dev/kmsg, so that
everything behind (folding, position, provenance) is the same. Only what journald itself vouches for counts as the
kernel's: `_TRANSPORT=kernel` cannot be written by a client, whatever else it claims to be.
"""

import os
import re
import subprocess
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from hostler.agent.collectors.kmsg import MAX_TEXT

LINE_BYTES = 262_144
"""An entry is at most as long; what is longer is passed over."""
SERVICES = ("nv-fabricmanager", "systemd-networkd")
"""Writers whose words are read beside the kernel's; they convict nobody."""

_DAEMON, _NOTICE = 3, 5
_CURSOR = re.compile(r"s=([0-9a-f]{32});i=([0-9a-f]{1,16});", re.ASCII)
_UNSAFE = re.compile(rb"[\x00-\x1f\x7f\\]")


class _JournalEntry(
    Struct, rename={"cursor": "__CURSOR", "monotonic": "__MONOTONIC_TIMESTAMP", "transport": "_TRANSPORT"}
):
    """The fields of an entry that are asked for. Numbers come as text, bytes that are no UTF-8 as a list."""

    cursor: str = ""
    monotonic: str = "0"
    transport: str = ""
    MESSAGE: str | list[int | str] | None = None
    PRIORITY: str | None = None
    SYSLOG_FACILITY: str | None = None
    SYSLOG_IDENTIFIER: str | None = None


class SystemdJournal:
    """The present boot's entries of the kernel and of a few services. `namespace` "" is the machine's own."""

    contiguous = False
    """Entries of others lie between ours, so a gap in the numbers says nothing."""

    def __init__(self, namespace: str = "") -> None:
        self.name = f"journal of {namespace}" if namespace else "journal"
        self.series = ""
        self._namespace = namespace
        self._child: subprocess.Popen[bytes] | None = None

    def open(self, series: str, base: int) -> int:
        """Follow the journal from behind number `base` of `series`, from the boot's beginning where there is none."""
        self.series = series
        command = ["journalctl", "--follow", "--boot", "--quiet", "--no-pager", "--output=json", "--lines=all"]
        command += ["--output-fields=MESSAGE,PRIORITY,SYSLOG_FACILITY,SYSLOG_IDENTIFIER,_TRANSPORT"]
        command += [f"--namespace={self._namespace}"] if self._namespace else []
        command += [f"--after-cursor=s={series};i={base:x}"] if series and base >= 0 else []
        command += ["_TRANSPORT=kernel", *(word for name in SERVICES for word in ("+", f"SYSLOG_IDENTIFIER={name}"))]
        # No shell; the namespace is the operator's setting, series and base are numbers of our own spool.
        self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)  # noqa: S603
        assert self._child.stdout is not None
        descriptor = self._child.stdout.fileno()
        os.set_blocking(descriptor, False)
        return descriptor

    def read(self, most: int) -> bytes:
        """Output that is there. Raises BlockingIOError."""
        assert self._child is not None, "it is open"
        assert self._child.stdout is not None, "it was opened with a pipe"
        return os.read(self._child.stdout.fileno(), most)

    def close(self) -> None:
        """End the child."""
        if self._child is None:
            return
        self._child.kill()
        self._child.communicate()
        self._child = None

    def split(self, stream: bytes) -> tuple[Iterator[bytes], bytes]:
        """The whole entries of a stretch of output as records, and the unfinished rest."""
        whole, newline, rest = stream.rpartition(b"\n")
        if not newline:
            return iter(()), stream[-LINE_BYTES:]
        return self._records(whole.split(b"\n")), rest

    def _records(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            try:
                entry = msgspec.json.decode(line, type=_JournalEntry)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                yield b"?" + line[:MAX_TEXT]  # no header: reported as unparsable
                continue
            if (at := _CURSOR.match(entry.cursor)) is None:
                yield b"?" + line[:MAX_TEXT]
                continue
            if self.series and at[1] != self.series:
                raise EOFError(f"the {self.name} has been numbered anew")
            self.series = at[1]
            yield _record(entry, int(at[2], 16))


def _record(entry: _JournalEntry, number: int) -> bytes:
    """The entry in the form of /dev/kmsg. Facility 0 only for what journald took from the kernel itself."""
    facility = _number(entry.SYSLOG_FACILITY, _DAEMON)
    if entry.transport == "kernel":
        facility = _number(entry.SYSLOG_FACILITY, 0)
    elif facility == 0:
        facility = _DAEMON
    level = _number(entry.PRIORITY, _NOTICE) & 7
    text = _message(entry)
    if entry.transport != "kernel" and entry.SYSLOG_IDENTIFIER:
        text = entry.SYSLOG_IDENTIFIER.encode("utf-8", "replace") + b": " + text
    usec = _number(entry.monotonic, 0)
    return b"%d,%d,%d,-;%s" % (facility << 3 | level, number, usec, _UNSAFE.sub(_escape, text[:MAX_TEXT]))


def _message(entry: _JournalEntry) -> bytes:
    match entry.MESSAGE:
        case str() as text:
            return text.encode("utf-8", "replace")
        case list() as items:
            return b"".join(bytes((item & 255,)) if isinstance(item, int) else item.encode() + b" " for item in items)
        case _:
            return b""


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else otherwise


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % found[0][0]
