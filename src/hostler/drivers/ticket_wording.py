"""Text of a ticket as people read it in another system."""

from hostler.core.notify.messages import Message

SUMMARY_MAX = 160
TEXT_MAX = 8_000
_ORDER = ("node", "site", "rack", "component", "hardware", "fault", "action", "owner", "due", "ticket")
_TITLES = {"hardware": "serial at the machine", "action": "what to do", "owner": "for", "ticket": "ticket in Hostler"}


def headline(message: Message) -> str:
    """One line."""
    line = " ".join(printable(message.summary).split())
    return line if len(line) <= SUMMARY_MAX else f"{line[: SUMMARY_MAX - 1]}…"


def description(message: Message, cell: str) -> str:
    """The text of a ticket: the fault, the place and the work, a line for each fact."""
    ends = "Hostler closes this when it sees that it is done. Closed here, Hostler looks, and asks again if it is not."
    return printable("\n".join((message.summary, "", *facts(message, cell), "", ends)))


def facts(message: Message, cell: str) -> list[str]:
    """A line for each fact that is known."""
    known = message.details
    return [*(f"{_TITLES.get(name, name)}: {known[name]}" for name in _ORDER if known.get(name)), f"cell: {cell}"]


def printable(text: str) -> str:
    """The text with nothing in it but printable characters and line ends."""
    return "".join(c for c in text if c == "\n" or c.isprintable())[:TEXT_MAX]
