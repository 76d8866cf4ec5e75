"""Discovery by infiniband-diags: `ibnetdiscover` as a child under a deadline, through one adapter of this host."""

import os
import shutil
from pathlib import Path

from msgspec import Struct

from hostler.core.fabric.discovery import Discovery
from hostler.drivers.bounded_process import Ended, run
from hostler.drivers.infiniband import netdiscover


class Diagnostics(Struct, frozen=True, forbid_unknown_fields=True):
    """Place of the tools (`directory`, "": on the PATH), and the adapter and port that asks (as `ibstat` names them).

    `timeout_s`: 49 s were measured for 98,304 links; a fabric that answers badly takes longer, one that hangs for ever.
    """

    directory: str = ""
    adapter: str = ""
    port: int = 0
    timeout_s: float = 300.0


async def discover(tools: Diagnostics, environment: dict[str, str] | None = None) -> Discovery:
    """One look at the fabric. Never raises: what went wrong stands in `partial`, and nothing is concluded then."""
    path = _path(tools, "ibnetdiscover")
    if path is None:
        return _nothing("there is no `ibnetdiscover` on the PATH: install infiniband-diags")
    words = [path]
    words += ["-C", tools.adapter] if tools.adapter else []
    words += ["-P", str(tools.port)] if tools.port else []
    whole = {"LC_ALL": "C", "PATH": os.defpath} | (environment or {})
    try:
        ended = await run(tuple(words), whole, tools.timeout_s, netdiscover.MOST_BYTES)
    except (OSError, ValueError) as error:
        return _nothing(f"`{path}` cannot be run: {error}")
    if why := _failure(ended, tools):
        return _nothing(why)
    return netdiscover.parse(ended.output.decode(errors="replace"))


def _failure(ended: Ended, tools: Diagnostics) -> str:
    if ended.code is None:
        return f"`ibnetdiscover` did not end within {tools.timeout_s:g} s"
    if ended.cut:
        return f"`ibnetdiscover` wrote more than {netdiscover.MOST_BYTES >> 20} MiB; none of it is read"
    if ended.code:
        return f"`ibnetdiscover` ended with {ended.code}: {ended.errors[:300] or 'it says nothing'}"
    return ""


def _nothing(why: str) -> Discovery:
    return Discovery({}, (), why)


def _path(tools: Diagnostics, command: str) -> str | None:
    if tools.directory:
        return str(Path(tools.directory) / command)
    return shutil.which(command, path=os.environ.get("PATH"))
