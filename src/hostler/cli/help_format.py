"""Prints `--help` as plain columns that fit the window: the same on a terminal, in a pipe and in the documents."""

import io
import shutil
import textwrap
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

WIDTH_MAX = 110
LABEL_MAX = 28
_UNWRAPPED = 100_000


class Columns:
    """cyclopts' HelpFormatter: what may be given on the left, what it means on the right.

    `width` 0 is the window's; panels with a title in `without` are left out.
    """

    def __init__(self, width: int = 0, without: Collection[str] = ()) -> None:
        self._width = width or min(shutil.get_terminal_size().columns, WIDTH_MAX)
        self._without = without

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:  # noqa: ARG002 - the protocol
        """One panel: its title, then its entries. Each of them is a command or a parameter."""
        rows = [(_label(entry), _meaning(entry)) for entry in panel.entries]
        shown = [row for row in rows if row[0]]
        if not shown or plain(panel.title) in self._without:
            return
        left = min(max(len(label) for label, _ in shown), LABEL_MAX) + 4
        _print(console, f"{plain(panel.title)}:")
        for label, meaning in shown:
            _print(console, self._entry(label, meaning, left))
        _print(console, "")

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:  # noqa: ARG002 - the protocol
        """Print the usage line."""
        if text := plain(usage).strip():
            _print(console, text if text.startswith("Usage:") else f"Usage: {text}")
            _print(console, "")

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:  # noqa: ARG002 - the protocol
        """Print the description, paragraph by paragraph, as wide as the terminal."""
        if text := plain(description).strip():
            paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
            _print(console, "\n\n".join(textwrap.fill(part, self._width) for part in paragraphs))
            _print(console, "")

    def _entry(self, label: str, meaning: str, left: int) -> str:
        margin = " " * left
        wrapped = textwrap.wrap(meaning, max(self._width - left, 20), break_on_hyphens=False) or [""]
        first = f"  {label}".ljust(left)
        if len(first) > left:
            return "\n".join([first, *(margin + line for line in wrapped)])
        return "\n".join([(first + wrapped[0]).rstrip(), *(margin + line for line in wrapped[1:])])


def plain(renderable: Any) -> str:
    """The text of anything that rich can draw."""
    if renderable is None or isinstance(renderable, str):
        return renderable or ""
    if hasattr(renderable, "plain"):
        return str(renderable.plain)
    from rich.console import Console

    drawn = Console(file=io.StringIO(), width=_UNWRAPPED, no_color=True, highlight=False)
    with drawn.capture() as capture:
        drawn.print(renderable, end="")
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _label(entry: "HelpEntry") -> str:
    return ", ".join(entry.display_labels_with_metavar)


def _meaning(entry: "HelpEntry") -> str:
    said = [" ".join(plain(entry.description).split())]
    if entry.choices:
        said.append(f"[{', '.join(entry.choices)}]")
    if entry.env_var:
        said.append(f"[environment: {', '.join(entry.env_var)}]")
    if entry.default not in (None, "", "False", "None"):
        said.append(f"[default: {plain(entry.default)}]")
    if entry.required:
        said.append("[required]")
    return " ".join(filter(None, said))


def _print(console: "Console", text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
