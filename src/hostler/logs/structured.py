"""The controller's log: structlog over the standard library, with the ids of the running work bound to each line.

`log = logger()` in a module, `log.info("operation_failed", node=…, reason=…)` in it, `bound(request=…)` where work
begins; `begin` once, in the composition root. Without `begin` the standard library's rules hold: warnings on stderr.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.contextvars import bind_contextvars, get_contextvars
from structlog.stdlib import BoundLogger, ProcessorFormatter, add_log_level
from structlog.typing import Processor

from hostler.logs.clean import Form, as_json, as_text, cleaned, wants_json

_Event = MutableMapping[str, Any]
_CHATTY = ("alembic",)
"""Libraries with a line for each step: only what goes wrong there is news."""
_forms: list[Form] = []


def logger() -> BoundLogger:
    """The house's logger: an event, and its facts by name."""
    log: BoundLogger = structlog.wrap_logger(
        logging.getLogger("hostler"),
        processors=[_as_record],
        wrapper_class=BoundLogger,
        cache_logger_on_first_use=True,
    )
    return log


def bound(**ids: str) -> None:
    """Add these facts to every line of the running task, its threads, and the tasks that it starts from now on."""
    bind_contextvars(**ids)


def begin(form: Form = "auto") -> None:
    """Log to stderr from now on, unless this process logs already."""
    _forms.append(form)
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(json=wants_json(form)))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def begun_form() -> Form:
    """The form in which this process logs, so that its children log in the same."""
    return _forms[-1] if _forms else "auto"


def formatter(*, json: bool) -> logging.Formatter:
    """Renders every record of this process, those of libraries too."""
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    render = as_json if json else as_text

    def line(_: object, __: str, event: _Event) -> str:
        traceback = str(event.pop("exception", ""))
        head = {name: event.pop(name) for name in ("timestamp", "level", "event")}
        return render(cleaned({**head, **event}), traceback)

    made = structlog.processors.format_exc_info
    bare = ProcessorFormatter.remove_processors_meta
    chain: list[Processor] = [_facts, _bound, stamp, add_log_level, made, bare, line]
    return ProcessorFormatter(processors=chain)


def _as_record(_: object, __: str, event: _Event) -> tuple[tuple[str], dict[str, Any]]:
    """The standard library's call: the facts travel in one attribute, whatever they are called."""
    name = str(event.pop("event"))
    told = {word: event.pop(word) for word in ("exc_info", "stack_info") if word in event}
    return (name,), {**told, "extra": {"facts": dict(event)}}


def _facts(_: object, __: str, event: _Event) -> _Event:
    """The facts of the record; a library's own record has none but its message."""
    return {**event, **getattr(event["_record"], "facts", {})}


def _bound(_: object, __: str, event: _Event) -> _Event:
    """The ids of the running work, in one order whatever the hash seed is."""
    return {**dict(sorted(get_contextvars().items())), **event}
