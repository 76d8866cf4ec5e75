"""The world in which each planted bug was last caught, so that the suite looks there first."""

from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("caught_at.json")
REWRITE = "python -m tests.simulation.soak --only mutants"


def caught_at(file: Path = FILE) -> dict[str, int]:
    """The seed by each mutant's name. Raises msgspec.ValidationError where the file holds anything else."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, int]) if file.exists() else {}


def write(seeds: dict[str, int], file: Path = FILE) -> None:
    """Replace the file, one mutant a line."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(seeds), indent=2) + b"\n")
