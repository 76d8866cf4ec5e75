r"""One record of /dev/kmsg: `prio,seq,usec,flags[,…];text\n KEY=value\n`, from hostile bytes to a value.

The format is Documentation/ABI/testing/dev-kmsg. The kernel writes every byte below 0x20, from 0x7f up, and the
backslash as `\xNN`. Control characters stay escaped here, so that a process name with a newline in it cannot forge a
second line inside a kernel record; only newlines of the NVIDIA driver's own records (it prints some reports in one
go) become newlines again.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

MAX_TEXT = 2048
"""Bytes of message text that are kept; the kernel's own limit is about 1,000."""

MAX_HEAD = 280
"""Bytes in which the header must end; its flags are a few dozen at most."""

_HEADER = re.compile(rb"\s*(\d{1,5}),(\d{1,20}),(\d{1,20}),([^;]{0,200});")
_ESCAPE = re.compile(rb"\\x([89a-fA-F][0-9a-fA-F]|5[cC])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029]")
_DRIVER_NEWLINE = re.compile(rb"\\x0a(?=\s*NVRM:)")
_PAIR = re.compile(rb"^ (SUBSYSTEM|DEVICE)=([^\r\n]{1,200})", re.MULTILINE)
_BOUNDARY = re.compile(rb"\n(?! )")


class KmsgRecord(Struct, frozen=True, gc=False):
    """A parsed record. `usec` counts from boot; `device` and `subsystem` are "" where the kernel gave none."""

    priority: int
    sequence: int
    usec: int
    text: str
    flags: str = ""
    subsystem: str = ""
    device: str = ""
    truncated: bool = False

    @property
    def facility(self) -> int:
        """0 is the kernel; user space cannot write it and gets 1 (user) unless it asks for another."""
        return self.priority >> 3

    @property
    def level(self) -> int:
        """The syslog level, 0 (emergency) to 7 (debug)."""
        return self.priority & 7


class Head(Struct, frozen=True, gc=False):
    """Fields needed of every record, whether its text is wanted or not. `body` is where the text begins."""

    priority: int
    sequence: int
    usec: int
    body: int


def head(raw: bytes) -> Head | None:
    """The numbers before a record's text, or None where they cannot be read. Never raises."""
    end = raw.find(b";", 0, MAX_HEAD)
    fields = raw[:end].split(b",", 3) if end > 0 else ()
    if len(fields) < 4:
        return None
    priority, sequence, usec = fields[0].strip(), fields[1], fields[2]
    if not (priority.isdigit() and sequence.isdigit() and usec.isdigit()):
        return None
    if len(priority) > 5 or len(sequence) > 20 or len(usec) > 20:
        return None
    return Head(int(priority), int(sequence), int(usec), end + 1)


def parse(raw: bytes) -> KmsgRecord | None:
    """The record in `raw`, or None where its header cannot be read. Never raises."""
    header = _HEADER.match(raw)
    if header is None:
        return None
    text, _, rest = raw[header.end() :].partition(b"\n")
    pairs = dict(_PAIR.findall(rest)) if rest else {}
    return KmsgRecord(
        priority=int(header[1]),
        sequence=int(header[2]),
        usec=int(header[3]),
        text=message(text[:MAX_TEXT]),
        flags=readable(header[4]),
        subsystem=readable(pairs.get(b"SUBSYSTEM", b"")),
        device=readable(pairs.get(b"DEVICE", b"")),
        truncated=len(text) > MAX_TEXT,
    )


def plain(body: bytes) -> str:
    """The text of a record's body where nothing in it is escaped, cut or broken, else ""; as `parse` has it."""
    line = body.partition(b"\n")[0].rstrip(b"\r")
    if b"\\" in line or len(line) > MAX_TEXT or not line.isascii():
        return ""
    text = line.decode("ascii")
    return text if text.isprintable() else ""


def message(raw: bytes) -> str:
    """The text of one message: one line, or the lines of one report by the NVIDIA driver."""
    if raw.startswith(b"NVRM:") and b"\\x0a" in raw:
        return "\n".join(readable(line) for line in _DRIVER_NEWLINE.split(raw))
    return readable(raw)


def readable(raw: bytes) -> str:
    """The text in `raw`: escapes above ASCII undone, control characters and bad UTF-8 escaped."""
    if b"\\" in raw:
        raw = _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), raw)
    text = raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return text if text.isprintable() else _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def split(stream: bytes) -> tuple[Iterator[bytes], bytes]:
    """The complete records in a stretch of a byte stream, and the unfinished rest.

    /dev/kmsg gives one record per read; a pipe or file gives any number. A continuation line that arrives in a
    later read than its record is dropped.
    """
    whole, newline, rest = stream.rpartition(b"\n")
    if not newline:
        return iter(()), stream
    return (piece for piece in _BOUNDARY.split(whole) if not piece.startswith(b" ") and piece.strip()), rest
