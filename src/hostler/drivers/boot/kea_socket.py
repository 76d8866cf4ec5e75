"""Puts our client classes into a running Kea through its control socket: tested by Kea first, then set."""

import asyncio
from typing import Any

import msgspec

from hostler.core.state.boot import BootConfiguration
from hostler.core.state.durations import duration
from hostler.drivers.boot.kea_config import Document, KeaAnswer, merged, read_answer, running
from hostler.ports import RefusedError, UnreachableError

TIMEOUT_S = 30.0
ANSWER_MAX = 64 * 1024 * 1024
"""A configuration with 100,000 reservations is some 20 MB."""


async def push(path: str, boots: BootConfiguration, *, write: bool = False) -> str:
    """Give Kea our classes; all else of its configuration stays. Returns what was done.

    `write` has Kea write its configuration file too. Raises RefusedError with Kea's reason, and UnreachableError.
    """
    try:
        before = running(await _done(path, "config-get"))
        wanted = {"Dhcp4": merged(before, boots)}
        if before == wanted["Dhcp4"]:
            return "Kea has these classes already"
        await _done(path, "config-test", wanted)
        await _done(path, "config-set", wanted)
        kept = running(await _done(path, "config-get")).get("client-classes")
        missing = _missing(wanted["Dhcp4"]["client-classes"], kept)
        if missing:
            raise RefusedError(
                f"Kea said that it took the classes, and does not show {', '.join(missing)}"
                "; look for another program that sets Kea's configuration"
            )
        if write:
            await _done(path, "config-write")
    except ValueError as error:
        raise RefusedError(f"{path}: {error}") from error
    return "Kea has the classes" + (", and has written its file" if write else "; its file is as it was")


def _missing(wanted: list[Document], shown: Any) -> list[str]:
    """Names of classes that are not shown with the boot file that they were given."""
    rows = shown if isinstance(shown, list) else []
    has = {(one.get("name"), one.get("boot-file-name", "")) for one in rows if isinstance(one, dict)}
    return [one["name"] for one in wanted if (one["name"], one.get("boot-file-name", "")) not in has]


async def _done(path: str, command: str, arguments: Document | None = None) -> KeaAnswer:
    asked = {"command": command, **({"arguments": arguments} if arguments is not None else {})}
    answer = read_answer(await _ask(path, msgspec.json.encode(asked)))
    if answer.result != 0:
        raise RefusedError(
            f"{path}: Kea refuses {command}: {answer.text[:500]}"
            "; see Kea's log, mend its configuration, and it is tried again"
        )
    return answer


async def _ask(path: str, body: bytes) -> bytes:
    """One command and its answer: Kea closes the connection behind it."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(body)
                await writer.drain()
                return await _whole(reader, path)
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        told = str(error) or f"no answer within {duration(TIMEOUT_S)}"
        raise UnreachableError(f"{path}: {told}") from error


async def _whole(reader: asyncio.StreamReader, path: str) -> bytes:
    found = bytearray()
    while part := await reader.read(65_536):
        found += part
        if len(found) > ANSWER_MAX:
            raise RefusedError(f"{path}: an answer of more than {ANSWER_MAX} bytes; is this Kea's control socket?")
    return bytes(found)
