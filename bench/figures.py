"""Figures with their units, printed as a table together with the machine they were measured on."""

import os
import platform
from dataclasses import dataclass, field


@dataclass
class Figures:
    """Findings of one benchmark."""

    name: str
    rows: list[tuple[str, float, str, str]] = field(default_factory=list)

    def add(self, what: str, value: float, unit: str, note: str = "") -> None:
        """Note a figure."""
        self.rows.append((what, value, unit, note))

    def __str__(self) -> str:
        head = f"{self.name} ({os.cpu_count()} cores, Python {platform.python_version()})"
        width = max(len(what) for what, *_ in self.rows)
        lines = [f"  {what:<{width}}  {_short(value):>12} {unit:<4} {note}" for what, value, unit, note in self.rows]
        return "\n".join([head, *lines])


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"
