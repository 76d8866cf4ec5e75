"""Reports of runs that are done, kept on disk: a long comparison goes on where it was cut off."""

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from hostler.sim.pool_run import SimSettings
from hostler.sim.run_report import RunReport

DECIDING = ("core", "controller", "runtime", "journal", "polling", "drivers", "agent", "sim")
"""Packages whose code decides what a run gives; `sim/comparison` only tells of it."""
TELLING = "comparison"


class ReportStore:
    """A directory of reports, each under the digest of what was asked and of the code that ran it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def get(self, settings: SimSettings, peer: str) -> RunReport | None:
        """The report of this very run by this very code, None where there is none that can be read."""
        try:
            return msgspec.json.decode(self._path(settings, peer).read_bytes(), type=RunReport)
        except (OSError, msgspec.DecodeError):
            return None

    def put(self, settings: SimSettings, peer: str, report: RunReport) -> None:
        """Write the report, whole or not at all."""
        path = self._path(settings, peer)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(report))
        fresh.replace(path)

    def _path(self, settings: SimSettings, peer: str) -> Path:
        asked = msgspec.json.encode((settings, peer, code_digest()))
        return self._directory / f"{hashlib.sha256(asked).hexdigest()[:32]}.json"


@cache
def code_digest() -> str:
    """sha256 over the code and the data that decide what a run gives."""
    total = hashlib.sha256()
    for package in DECIDING:
        for name, content in _contents(files("hostler").joinpath(package), package):
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def _contents(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        here = f"{path}/{entry.name}"
        if entry.is_dir() and entry.name not in ("__pycache__", TELLING):
            found += _contents(entry, here)
        elif entry.is_file() and entry.name.endswith((".py", ".yaml", ".tsv")):
            found.append((here, entry.read_bytes()))
    return found
