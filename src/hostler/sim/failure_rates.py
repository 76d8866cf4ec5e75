"""How often nodes fail, and with what: published rates as presets, or an operator's own table."""

from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem

COLUMNS = ("component", "category", "interruptions")
MAX_BYTES = 1_048_576
_LLAMA3 = "llama3"

PER_1000_NODE_DAYS: dict[str, float | None] = {_LLAMA3: None, "rsc1": 6.50, "rsc2": 2.34}
"""Preset → failures per 1,000 node-days; None: as its own table counts them.

Sources: Meta, "The Llama 3 Herd of Models" (2024); Kokolis et al., "Revisiting Reliability in Large-Scale Machine
Learning Research Clusters" (2024) for RSC-1 and RSC-2, which publish no table by component: Llama 3's shares are used.
"""


class Share(Struct, frozen=True):
    """One component's part of all failures, 0 to 1."""

    component: str
    category: str
    share: float


class Rates(Struct, frozen=True):
    """Failures per 1,000 node-days, and what fails when one does."""

    name: str
    per_1000_node_days: float
    shares: tuple[Share, ...]

    def per_second(self, nodes: int) -> float:
        """Failures a second among so many nodes."""
        return self.per_1000_node_days * nodes / 1000 / 86_400


def load(name: str) -> Rates:
    """A preset's rates, or those of the file of that name. Raises InvalidInputError naming file and line."""
    if name in PER_1000_NODE_DAYS:
        found = parse(files("hostler.sim").joinpath("data", f"{_LLAMA3}.tsv").read_text(encoding="utf-8"), _LLAMA3)
        rate = PER_1000_NODE_DAYS[name]
        return Rates(name, found.per_1000_node_days if rate is None else rate, found.shares)
    path = Path(name)
    try:
        text = path.read_bytes()[: MAX_BYTES + 1].decode()
    except (OSError, UnicodeDecodeError) as error:
        presets = ", ".join(PER_1000_NODE_DAYS)
        raise _refused(name, 0, f"cannot be read: {error}", f"name a TSV file, or one of {presets}") from error
    if len(text) > MAX_BYTES:
        raise _refused(name, 0, f"larger than {MAX_BYTES} bytes", "give counts by component")
    return parse(text, name)


def parse(text: str, name: str) -> Rates:
    """A table of tab-separated columns under comments "# nodes: N" and "# days: N" that say what was counted."""
    header: dict[str, float] = {}
    counts: list[tuple[str, str, float]] = []
    titled = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            header |= _comment(line, name, number)
        elif line.strip() and not titled:
            titled = _title(line, name, number)
        elif line.strip():
            counts.append(_row(line, name, number))
    return _rates(header, counts, name)


def _comment(line: str, name: str, number: int) -> dict[str, float]:
    key, colon, value = line.lstrip("# ").partition(":")
    if not colon or key not in ("nodes", "days"):
        return {}
    return {key: _positive(value.strip(), name, number)}


def _title(line: str, name: str, number: int) -> bool:
    if tuple(line.strip().split("\t")) != COLUMNS:
        raise _refused(name, number, "the first row names other columns", f"write {', '.join(COLUMNS)}, tab-separated")
    return True


def _row(line: str, name: str, number: int) -> tuple[str, str, float]:
    cells = line.rstrip().split("\t")
    if len(cells) != len(COLUMNS):
        raise _refused(name, number, f"{len(cells)} columns, not {len(COLUMNS)}", "separate them by one tab each")
    return cells[0], cells[1], _positive(cells[2], name, number)


def _positive(text: str, name: str, number: int) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise _refused(name, number, f"'{text[:40]}' is no number", "write a number above 0") from error
    if not 0 < value < 1e9:
        raise _refused(name, number, f"{text[:40]} is out of range", "write a number above 0")
    return value


def _rates(header: dict[str, float], counts: list[tuple[str, str, float]], name: str) -> Rates:
    for key in ("nodes", "days"):
        if key not in header:
            raise _refused(
                name, 1, f"no comment '# {key}: NUMBER'", "say how many nodes were counted, and for how long"
            )
    if not counts:
        raise _refused(name, 1, "no row", f"give at least one row of {', '.join(COLUMNS)}")
    total = sum(count for _, _, count in counts)
    shares = tuple(Share(component, category, count / total) for component, category, count in counts)
    return Rates(name, 1000 * total / (header["nodes"] * header["days"]), shares)


def _refused(name: str, line: int, what: str, fix: str) -> InvalidInputError:
    return InvalidInputError((Problem(name, line, what, fix),))
