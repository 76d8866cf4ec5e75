"""Has a request leave once: what changes something is never sent again by a library."""

import aiohttp

from hostler.ports import UnreachableError


async def send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a change once. Raises UnreachableError where the connection breaks before an answer.

    Of itself aiohttp sends PUT and DELETE again where a kept connection breaks: behind nobody's fence, and to a
    server that may have done the first one.
    """
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as broken:
        raise UnreachableError(f"{type(broken).__name__}: {broken}"[:200]) from broken
