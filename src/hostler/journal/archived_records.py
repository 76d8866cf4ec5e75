"""One record out of the files that `hostler journal compact` wrote, without a walk along the chain."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from hostler.core.state.events import Record
from hostler.journal.codec import unseal
from hostler.journal.line_format import LINE_MAX, RecordLine
from hostler.ports import JournalError


def archived_record(folder: Path, files: Iterable[str], seq: int) -> Record | None:
    """Record `seq` of the archive's files in this folder, None where none of them is there or holds it.

    Its digest is not checked against the chain: who asks knows what the record must say. Raises JournalError for a
    line that cannot be read.
    """
    begins = b'{"line":"record","seq":%d,' % seq
    for path in (folder / name for name in files):
        first, _, last = path.stem.removeprefix("records-").partition("-")
        if not (first.isdecimal() and last.isdecimal() and int(first) <= seq <= int(last)) or not path.is_file():
            continue
        with path.open("rb") as lines:
            line = next((line for line in iter(lambda: lines.readline(LINE_MAX), b"") if line.startswith(begins)), b"")
        if line:
            return _record(line, path)
    return None


def _record(line: bytes, path: Path) -> Record:
    try:
        return unseal(msgspec.json.decode(line, type=RecordLine).row())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise JournalError(f"the archive {path} cannot be read: {error}; restore that file from a copy") from error
