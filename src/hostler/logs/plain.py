"""The agent's log: the controller's lines, made by the standard library alone.

structlog would be 4.6 MB in a process of 39 (the way `bench/agent.py` runs it).
"""

import logging
from datetime import UTC, datetime

from hostler.logs.clean import Form, as_json, as_text, cleaned, wants_json


def facts(**named: object) -> dict[str, object]:
    """Make the `extra` of a logging call: `log.info("heartbeat_missed", extra=facts(reason=…))`."""
    return {"facts": named}


class Lines(logging.Formatter):
    """One line for each record: moment, level, event, and the facts of `extra`."""

    def __init__(self, *, json: bool) -> None:
        super().__init__()
        self._render = as_json if json else as_text

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; below it the traceback, if there is one."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"timestamp": when, "level": record.levelname.lower(), "event": record.getMessage()}
        traceback = self.formatException(record.exc_info) if record.exc_info else ""
        return self._render(cleaned({**head, **getattr(record, "facts", {})}), traceback)


def begin(form: Form = "auto") -> None:
    """Log to stderr from now on, unless this process logs already."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(json=wants_json(form)))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
