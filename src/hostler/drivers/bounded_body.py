"""Read the body of an HTTP answer with an end to it: nothing that the outside sends fills the memory."""

import aiohttp

from hostler.ports import ExcessError


async def read_body(response: aiohttp.ClientResponse, most: int, whose: str) -> bytes:
    """The whole body, of at most `most` bytes; `whose` names the answer in the error ("the answer of Vault").

    Raises ExcessError for a longer one, of which no more is read, and what aiohttp raises.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            raise ExcessError(
                f"{whose} is longer than {_size(most)}; none of it is used; check that the address is the right one"
            )
    return bytes(body)


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
