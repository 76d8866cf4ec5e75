"""A copy of one kind of object that a cluster has, kept true: a whole list, then its watch, anew where need be.

Lists come in pages. A watch that breaks off is taken up again where it stood; where the API server no longer knows that
place (410), or the watch was silent, everything is listed again, and what has vanished meanwhile is told as deleted.
Nothing counts as known before a list was read to its end.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Generic

import msgspec
from msgspec import Struct

from hostler.core.state.growing_pause import growing_s
from hostler.drivers.kubernetes.kube_api import GONE, OK, Api, SilenceError, StatusError
from hostler.drivers.kubernetes.wire import Event, K, ListPage, Malformed, read_event, read_page
from hostler.logs.structured import logger
from hostler.ports import UnreachableError

log = logger()

PAGE = 500
UNPAGED_AFTER = 3
"""So often may a list outlive its own continuation; then it is asked for in one piece."""

ANEW_AFTER = 5
"""After so many failures in a row the place in the watch is doubted too (a store that was restored from a copy)."""


class Patience(Struct, frozen=True):
    """How long is waited for what.

    A stream silent for `silence_s` is dead (bookmarks come once a minute); without a stream for `lost_s` the copy
    counts no more. A stream that ends within `brief_s` counts as a failure. Back-off doubles from `again_s` to
    `again_most_s`, of which up to all is drawn by chance. What the cluster's scheduler had decided before it saw a
    cordon has landed after `landing_s`.
    """

    silence_s: float = 70.0
    lost_s: float = 10.0
    brief_s: float = 1.0
    again_s: float = 0.2
    again_most_s: float = 5.0
    stream_s: tuple[float, float] = (240.0, 480.0)
    landing_s: float = 1.0


class ObjectKind(Struct, Generic[K], frozen=True):
    """Kind of object to copy: the API's path, a field selector, and how an object is read."""

    name: str
    path: str
    read: Callable[[msgspec.Raw], K]
    selector: str = ""


Heard = Callable[[K | None, K | None], None]
"""Told of each change: the object before and after, None where there is none."""


class Reflector(Generic[K]):
    """`items` by key; `lost` says why they may not be so any more, "" while they are kept true.

    `draw` gives chance, uniform in [0, 1).
    """

    def __init__(
        self,
        api: Api,
        kind: ObjectKind[K],
        heard: Heard[K],
        draw: Callable[[], float],
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self.items: dict[str, K] = {}
        self.relists = 0
        self._api = api
        self._kind = kind
        self._heard = heard
        self._draw = draw
        self._patience = patience
        self._synced = False
        self._away: tuple[float, str] | None = None
        self._failures = 0
        self._version = ""

    @property
    def lost(self) -> str:
        """Why the copy does not count; "" where it does."""
        if not self._synced:
            return f"{self._kind.name} have not been listed yet" + (f": {self._away[1]}" if self._away else "")
        if self._away is not None and time.monotonic() - self._away[0] > self._patience.lost_s:
            return f"{self._kind.name} are not watched: {self._away[1]}"
        return ""

    async def run(self) -> None:
        """Keep the copy true until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except StatusError as refused:
                if refused.answer.status == GONE:
                    self._version = ""
                await self._pause(str(refused), refused.answer.retry_after_s)
            except (UnreachableError, Malformed) as broken:
                if isinstance(broken, SilenceError):
                    self._version = ""
                await self._pause(str(broken))

    async def _pause(self, why: str, least_s: float = 0.0) -> None:
        """Log the failure and wait, longer each time."""
        if self._away is None:
            self._away = (time.monotonic(), why)
            log.info("watch_broken", objects=self._kind.name, reason=why)
        self._failures += 1
        if self._failures % ANEW_AFTER == 0:
            self._version = ""
        most = growing_s(self._patience.again_s, self._failures, self._patience.again_most_s)
        await asyncio.sleep(max(least_s, most * self._draw()))

    async def _list(self) -> None:
        """Read everything, and only then take it over; what is missing in it has been deleted."""
        found, version = await self._pages()
        self.relists += self._synced
        before, self.items = self.items, found
        self._version, self._synced, self._away = version, True, None
        for key in before.keys() - found.keys():
            self._heard(before[key], None)
        for key, item in found.items():
            if before.get(key) != item:
                self._heard(before.get(key), item)

    async def _pages(self) -> tuple[dict[str, K], str]:
        """All objects and the version they are of. A continuation that is too old begins the list anew."""
        for attempt in range(UNPAGED_AFTER + 1):
            limit = str(PAGE) if attempt < UNPAGED_AFTER else "0"
            found: dict[str, K] = {}
            token = ""
            while True:
                page = await self._page(limit, token)
                if page is None:
                    break
                found.update((item.key, item) for item in page.items)
                if not page.token:
                    return found, page.version
                token = page.token
        raise UnreachableError("the list expired before it was read to its end; it is read again")

    async def _page(self, limit: str, token: str) -> ListPage[K] | None:
        query = {"limit": limit} | ({"continue": token} if token else {})
        if self._kind.selector:
            query["fieldSelector"] = self._kind.selector
        answer = await self._api.get(self._kind.path, **query)
        if answer.status == GONE and token:
            return None
        if answer.status != OK:
            raise StatusError(answer)
        return read_page(answer.body, self._kind.read)

    async def _follow(self) -> None:
        """Watch from where the copy stands until the server ends the stream."""
        shortest, longest = self._patience.stream_s
        query = {
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(shortest + (longest - shortest) * self._draw())),
        }
        if self._kind.selector:
            query["fieldSelector"] = self._kind.selector
        began = time.monotonic()
        async with self._api.watch(self._kind.path, query, self._patience.silence_s) as lines:
            self._away = None
            async for line in lines:
                event = read_event(line, self._kind.read)
                if event.type == "ERROR":
                    if event.code == GONE:
                        self._version = ""
                    raise UnreachableError(
                        f"the API server ended the watch: {event.code} {event.said}; it is begun again"
                    )
                self._take(event)
                self._failures = 0
        if time.monotonic() - began < self._patience.brief_s:
            raise UnreachableError(
                "the watch ended as soon as it had begun; it is begun again; a proxy between may cut it: check it"
            )

    def _take(self, event: Event[K]) -> None:
        self._version = event.version or self._version
        if event.item is None:
            return
        before = self.items.get(event.item.key)
        if event.type == "DELETED":
            self.items.pop(event.item.key, None)
            self._heard(before or event.item, None)
        else:
            self.items[event.item.key] = event.item
            self._heard(before, event.item)
