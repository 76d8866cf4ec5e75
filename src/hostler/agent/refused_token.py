"""Heartbeats whose token is refused: said once with what to do, asked ever more rarely, said again when it changes."""

import asyncio
import logging
from pathlib import Path

from hostler.agent.controller_client import NoTokenError, RejectedError
from hostler.core.state.growing_pause import growing_s
from hostler.logs.plain import facts

REFUSED = frozenset({401, 403})
"""Statuses of a token that nobody knows, that is over, or that is of another node."""
REFUSED_MOST_S = 60.0

log = logging.getLogger("hostler.agent")


class RefusedToken:
    """Outcomes of the heartbeats so far. `every_s` is their interval while the token is taken."""

    def __init__(self, token_file: Path, node: str, every_s: float) -> None:
        self._file = token_file
        self._node = node
        self._every_s = every_s
        self._said: tuple[str, object] | None = None
        self._times = 0
        self._missed = 0
        self._sent: object = None

    def sends(self) -> None:
        """Note that the token is about to be read and sent: what is written from now on was not refused yet."""
        self._sent = self._mark()

    def missed(self, error: Exception) -> float:
        """Note a heartbeat that came to nothing, and say why where that is new; seconds until the next."""
        refused = isinstance(error, RejectedError) and error.status in REFUSED
        self._missed += 1
        said = (str(error), self._sent if refused else None)
        if said != self._said:
            self._said, self._times = said, 0
            if refused or isinstance(error, NoTokenError):
                log.warning(
                    "token_refused", extra=facts(reason=str(error), file=str(self._file), instead=self._instead)
                )
            else:
                log.info("heartbeat_missed", extra=facts(reason=str(error)))
        if not refused:
            return self._every_s
        self._times += 1
        return growing_s(self._every_s, self._times - 1, REFUSED_MOST_S)

    @property
    def _instead(self) -> str:
        make = f"hostler token create --role agent --name agent-{self._node} --node {self._node}"
        return f"make a token for this node at a controller ({make}), and write it alone into the file, mode 600"

    def heard(self) -> None:
        """Note a heartbeat that was taken."""
        if self._said is not None:
            log.info("heartbeat_taken_again", extra=facts(missed=self._missed))
        self._said, self._times, self._missed = None, 0, 0

    async def rest(self, seconds: float) -> None:
        """Sleep until the next heartbeat; a token that somebody writes meanwhile is tried at once."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while (left_s := until - clock()) > 0 and self._mark() == self._sent:  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(min(left_s, self._every_s))

    def _mark(self) -> object:
        """A mark of the file that differs once somebody has written another token; None where there is no file."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
