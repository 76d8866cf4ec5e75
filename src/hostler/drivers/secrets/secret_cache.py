"""Finds a secret where its reference says ("vault:MOUNT/PATH", "file:NAME"), and keeps it for a while.

A place that cannot be reached costs no access: what was read last goes on being used. What is refused is forgotten.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import Struct

from hostler.logs.structured import logger
from hostler.ports import RefusedError, Secret, Secrets, SecretStore, StoredSecret, UnreachableError

KEPT_S = 300.0
"""How long a secret is used before it is read again, where its own lease is not shorter."""
SOONEST_S = 30.0
"""How soon it is read again when it was not taken, or its place could not be reached."""
KEPT_MAX = 4_096

log = logger()


class _Kept(Struct):
    """The last that was read, and when it was asked for last."""

    secret: Secret
    asked: float
    again: float


class KeptSecrets:
    """The secrets of several places, by kind of place. Of one secret one question is under way at a time.

    `fence` raises UnreachableError where nothing may be written now: another controller has taken over.
    """

    def __init__(
        self, places: Mapping[str, Secrets], now: Callable[[], float], fence: Callable[[], None] = lambda: None
    ) -> None:
        self._places = places
        self._fence = fence
        self._now = now
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._asking: dict[str, asyncio.Lock] = {}

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        """The secret of a reference. With `anew` it was not taken: it is read again if it is not quite fresh."""
        async with self._asking.setdefault(name, asyncio.Lock()):
            known = self._kept.get(name)
            if known is not None and self._now() < (min(known.again, known.asked + SOONEST_S) if anew else known.again):
                return known.secret
            return await self._ask(name, known)

    async def fetch(self, name: str) -> StoredSecret:
        """Read what is kept under the reference now, past the cache. RefusedError where its place is only read."""
        place, where = self._writable(name)
        return await place.fetch(where)

    async def store(self, name: str, fields: Mapping[str, str], version: str) -> None:
        """Keep these fields in the place of that version; whoever reads next reads them.

        Raises ConflictError, RefusedError, UnreachableError.
        """
        place, where = self._writable(name)
        self._fence()
        async with self._asking.setdefault(name, asyncio.Lock()):
            self._kept.pop(name, None)
            await place.store(where, fields, version)

    async def erase(self, name: str, version: str) -> None:
        """Keep nothing under the reference any more. Raises ConflictError, RefusedError, UnreachableError."""
        place, where = self._writable(name)
        self._fence()
        async with self._asking.setdefault(name, asyncio.Lock()):
            self._kept.pop(name, None)
            await place.erase(where, version)

    def _writable(self, name: str) -> tuple[SecretStore, str]:
        place, where = self._place_of(name)
        if not isinstance(place, SecretStore):
            raise RefusedError(
                f"secret '{name[:100]}': that place is only read; keep it in file:, kubernetes: or vault:"
            )
        return place, where

    def _place_of(self, name: str) -> tuple[Secrets, str]:
        kind, _, where = name.partition(":")
        place = self._places.get(kind)
        if place is None:
            there_are = ", ".join(sorted(self._places)) or "none; name one in secrets.json"
            raise RefusedError(f"secret '{name[:100]}': no such place of secrets; there are {there_are}")
        return place, where

    async def _ask(self, name: str, known: _Kept | None) -> Secret:
        place, where = self._place_of(name)
        asked = self._now()
        try:
            secret = await place.read(where)
        except RefusedError:
            self._kept.pop(name, None)
            raise
        except UnreachableError as error:
            if known is None:
                raise
            log.warning("secret_not_read", secret_name=name, reason=str(error))
            known.asked, known.again = asked, self._now() + SOONEST_S
            return known.secret
        good_s = min(KEPT_S, secret.lease_s) if secret.lease_s else KEPT_S
        self._kept[name] = _Kept(secret, asked, asked + good_s)
        while len(self._kept) > KEPT_MAX:
            gone, _ = self._kept.popitem(last=False)
            self._asking.pop(gone, None)
        return secret
