"""Answers of backtests, each a file of two lines: what is listed of it, and its differences. The newest are kept."""

import os
import re
from pathlib import Path

from hostler.journal.whole_files import publish, unfinished
from hostler.ports import JournalError

KEPT = 20
"""Answers that are kept; where one more comes, the oldest goes."""
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of one answer; `server.backtests` keeps so few differences of it that it has far less."""

_NAME = re.compile(r"b-\d{8}T\d{9}-[0-9a-f]{12}")
_SUFFIX = ".jsonl"


class BacktestFiles:
    """A folder of answers, by name. Reading and writing block; both raise JournalError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, summary: bytes, rows: bytes) -> None:
        """Keep an answer under this name; neither part has a line break in it."""
        data = summary + b"\n" + rows + b"\n"
        if len(data) > MOST_BYTES:
            raise JournalError(f"the answer {name} has {len(data):,} bytes, {MOST_BYTES:,} at most are kept")
        path = self._folder / f"{name}{_SUFFIX}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(unfinished(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            publish(path)
            for old in self._paths()[KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be written: {error.strerror}") from error

    def summaries(self) -> list[bytes]:
        """Summary of each answer, the newest first."""
        try:
            return [line for path in self._paths() if (line := _first_line(path))]
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be read: {error.strerror}") from error

    def get(self, name: str) -> tuple[bytes, bytes] | None:
        """Both parts of an answer, None where there is none of that name."""
        if not _NAME.fullmatch(name):
            return None
        try:
            parts = (self._folder / f"{name}{_SUFFIX}").read_bytes().split(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be read: {error.strerror}") from error
        if len(parts) != 3:
            raise JournalError(f"{self._folder / name}{_SUFFIX} is damaged: move it away, and run the backtest anew")
        return parts[0], parts[1]

    def _paths(self) -> list[Path]:
        """The files, the newest first: a name begins with the moment at which it was asked for."""
        found = [path for path in self._folder.glob(f"*{_SUFFIX}") if _NAME.fullmatch(path.stem)]
        return sorted(found, reverse=True)


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(MOST_BYTES).rstrip(b"\n")
    except FileNotFoundError:  # another has made room meanwhile
        return b""
