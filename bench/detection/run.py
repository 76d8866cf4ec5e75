"""Runs the laboratory and prints its truth table: `python -m bench.detection`."""

from bench.detection import boot_logs, kinds
from bench.detection.decided import booted, decided, laboratory
from bench.detection.plants import nodes_of
from bench.detection.table import Truth, text, truth

BOOTS_OF_EACH = 25


def pure() -> Truth:
    """The table without processes, and healthy boots."""
    plants = kinds.lines()
    quiet = booted((server.name, lines) for server, lines in boot_logs.boot_logs(BOOTS_OF_EACH))
    found = decided(plants, laboratory(nodes_of(plants)))
    return truth("kernel lines through collector, diagnosis and controller in one process", found, (quiet,))


def main() -> None:
    """Print the table."""
    print(text(pure()))
