"""Photos and files that are attached: kinds that are taken, how many, the same bytes once."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hostler.core.intents.ask import Ask, Granted, RefusalError
from hostler.core.state import events as e
from hostler.core.state.attached_files import FILE_TYPES, FILES_MOST, AttachedFile
from hostler.core.state.verbs.facts import FileVerb

F = TypeVar("F", bound=FileVerb)


def attach(ask: Ask[F], known: Sequence[AttachedFile], added: Callable[[AttachedFile], e.Event]) -> Granted:
    """The event that attaches the file beside those `known`. Raises RefusalError."""
    act = ask.act
    if act.media_type not in FILE_TYPES:
        raise RefusalError(f"a file of type {act.media_type!r}: {', '.join(FILE_TYPES)} are taken")
    if any(file.digest == act.digest for file in known):
        return f"{act.name} is added already", ()
    if len(known) >= FILES_MOST:
        raise RefusalError(f"{FILES_MOST} files are added already: take fewer photos")
    file = AttachedFile(act.digest, act.name, act.media_type, act.size, ask.context.now, ask.intent.person)
    return f"{act.name} is added, {act.size:,} bytes", (added(file),)
