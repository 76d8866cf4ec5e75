"""Asks UFM Enterprise over HTTPS for systems, links, ports, events: bounded, under one deadline, nothing followed."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence

import aiohttp
from msgspec import Struct

from hostler.core.fabric.discovery import Discovery
from hostler.core.state.durations import duration
from hostler.drivers.infiniband import notice_pages, ufm_links
from hostler.runtime.reachable_addresses import connector, site

CONNECT_S = 10.0


class UfmPlace(Struct, frozen=True):
    """Address of UFM, its authority in PEM ("": the system's), who asks, and how long it may take."""

    url: str
    ca: str = ""
    fields: Mapping[str, str] = {}
    timeout_s: float = 300.0


class NoAnswerError(Exception):
    """UFM gave no page that can be read; the text says why."""


async def discover(place: UfmPlace) -> Discovery:
    """One look at what UFM knows. Never raises: what went wrong stands in `partial`."""
    try:
        pages = await _pages(place, tuple(ufm_links.pages()), ufm_links.MOST_BYTES)
    except NoAnswerError as error:
        return Discovery({}, (), str(error))
    return await asyncio.to_thread(ufm_links.read, *pages)


async def events(place: UfmPlace) -> bytes:
    """The page of UFM's events. Raises NoAnswerError."""
    (page,) = await _pages(place, (notice_pages.EVENTS,), notice_pages.MOST_BYTES)
    return page


async def _pages(place: UfmPlace, paths: Sequence[str], most: int) -> list[bytes]:
    """Pages of these paths, one after the other, each of so many bytes at most. Raises NoAnswerError."""
    timeout = aiohttp.ClientTimeout(total=place.timeout_s, sock_connect=CONNECT_S)
    known = place.fields
    proof = (
        aiohttp.encode_basic_auth(known["username"], known["password"])
        if {"username", "password"} <= set(known)
        else ""
    )
    headers = {"Authorization": proof} if proof else {}
    try:
        trust = ssl.create_default_context(cadata=place.ca or None)
        connections = connector(site(place.url), ssl=trust, limit=1)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(
            connector=connections, cookie_jar=jar, timeout=timeout, headers=headers
        ) as session:
            return [await _page(session, place.url.rstrip("/") + path, most) for path in paths]
    except TimeoutError as error:
        raise NoAnswerError(
            f"UFM gave no whole answer within {duration(place.timeout_s)}; check its load and the network between"
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NoAnswerError(
            f"UFM cannot be reached: {type(error).__name__}: {str(error)[:200]}; check the source's address"
        ) from error


async def _page(session: aiohttp.ClientSession, url: str, most: int) -> bytes:
    async with session.get(url, allow_redirects=False) as answer:
        if answer.status != 200:
            raise NoAnswerError(
                f"UFM answered {answer.status} to {answer.url.path}"
                "; check the source's address and that its user may read UFM's REST API"
            )
        page = bytearray()
        async for chunk in answer.content.iter_chunked(1 << 20):
            page += chunk
            if len(page) > most:
                raise NoAnswerError(
                    f"UFM answered {answer.url.path} with more than {most >> 20} MiB; limit UFM's site to this network"
                )
        return bytes(page)
