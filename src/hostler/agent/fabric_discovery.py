"""A look at the network by a tool of this node: read only, under a deadline, packed as it is written.

The controller that asks reads the page; nothing of it is understood here.
"""

import base64
import lzma
import os
import re
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hostler.agent.child_process import end_group
from hostler.agent.collectors import port_counters
from hostler.agent.host_commands import ActFailedError, NotPossibleError
from hostler.core.state.model import Facts
from hostler.core.state.operations import DiscoverFabric
from hostler.logs.log_tail import tail

MOST_BYTES = 256 * 2**20
"""Bytes of a page that are packed."""
MOST_PACKED = 600 * 1024
"""Bytes of a packed page: 98,304 links are 210 KB."""
TIMEOUTS_S = (1.0, 3600.0)
READ = 1 << 18
TOOLS: Mapping[str, tuple[str, ...]] = {
    "ibnetdiscover": ("ibnetdiscover",),
    "iblinkinfo": ("iblinkinfo", "--line"),
    "ibqueryerrors": ("ibqueryerrors", "--skip-sl", "--details"),
    "dump_fts": ("dump_fts", "--no_dests"),
    "sminfo": ("sminfo",),
    "subnet_managers": ("saquery", "SMIR"),
    "partition_keys": ("saquery", "--smkey", "1", "PKTR"),
    "own_port": ("smpquery", "-D", "portinfo", "0", "1"),
    "lldp": ("lldpcli", "-f", "json", "show", "neighbors"),
}
"""Tool → its words; adapter and port go behind those of infiniband-diags."""

PORTS = "ports"
"""The tool that is none: the ports of this node itself, by `collectors.port_counters`."""

SM_LOG = "sm_log"
"""Another one: the lines about traps at the end of a subnet manager's log, where one runs on this node."""
LOG = Path("/var/log/opensm.log")
TRAP_LINES = (" -> log_trap_info: ", " -> log_notice: ")
MOST_LINES = 4_000

ENDS_WELL = {"ibqueryerrors": (0, 1)}
"""Exit codes of a tool that has done its work; `ibqueryerrors` ends with 1 where it found errors."""

_ADAPTER = re.compile(r"[A-Za-z0-9_]{1,32}")
_hanging: list[subprocess.Popen[bytes]] = []


def words_of(asked: DiscoverFabric) -> tuple[str, ...]:
    """The command of an order. Raises NotPossibleError for a tool, adapter or port that is none."""
    tool, adapter, port = asked.tool, asked.adapter, asked.port
    if tool not in TOOLS:
        raise NotPossibleError(f"tool is one of {', '.join(sorted(TOOLS))}, not {tool[:60]!r}")
    if adapter and not _ADAPTER.fullmatch(adapter):
        raise NotPossibleError(f"adapter {adapter[:40]!r} is no name of an adapter")
    if not 0 <= port < 256:
        raise NotPossibleError(f"port {port} is not 0 to 255")
    place = (*(("-C", adapter) if adapter else ()), *(("-P", str(port)) if port else ()))
    return (*TOOLS[tool], *(place if tool != "lldp" else ()))


def look(asked: DiscoverFabric) -> Facts:
    """Facts of the page: `page` (base64 of xz) and its `bytes`. Raises ActFailedError, NotPossibleError."""
    if asked.tool == PORTS:
        return _page(port_counters.read(Path("/")))
    if asked.tool == SM_LOG:
        return _page(_trap_lines())
    words, limit_s = words_of(asked), asked.timeout_s
    if not TIMEOUTS_S[0] <= limit_s <= TIMEOUTS_S[1]:
        raise NotPossibleError(f"timeout_s is {TIMEOUTS_S[0]:g} to {TIMEOUTS_S[1]:g}, not {limit_s:g}")
    packed, size = _run(words, limit_s, ENDS_WELL.get(asked.tool, (0,)))
    return {"page": base64.b64encode(packed).decode("ascii"), "bytes": size}


def _page(data: bytes) -> Facts:
    return {"page": base64.b64encode(lzma.compress(data, preset=1)).decode("ascii"), "bytes": len(data)}


def _trap_lines() -> bytes:
    """The last lines about traps; none where no log is. Raises ActFailedError for one that cannot be read."""
    try:
        lines = [line for line in tail(LOG) if any(words in line for words in TRAP_LINES)]
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ActFailedError(f"{LOG} cannot be read: {error.strerror}") from error
    return "".join(f"{line}\n" for line in lines[-MOST_LINES:]).encode(errors="replace")


def _run(words: Sequence[str], limit_s: float, good: tuple[int, ...]) -> tuple[bytes, int]:
    environment = {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "LC_ALL": "C"}
    environment |= {name: value for name, value in os.environ.items() if name in _SIMULATED}
    try:
        child = subprocess.Popen(  # noqa: S603 - no shell: words of the table above
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        raise NotPossibleError(f"`{words[0]}` cannot be run: {error.strerror}") from error
    try:
        packed, size = _packed(child, words[0], time.monotonic() + limit_s, limit_s)
        code = child.wait(max(1.0, limit_s))
    except subprocess.TimeoutExpired:
        raise ActFailedError(f"`{words[0]}` did not end within {limit_s:g} s") from None
    finally:
        if child.returncode is None:
            end_group(child, _hanging)
        elif child.stdout:
            child.stdout.close()
    if code not in good:
        raise ActFailedError(f"`{words[0]}` ended with {code}")
    return packed, size


_SIMULATED = frozenset({"IBSIM_SOCKNAME", "SIM_HOST", "LD_PRELOAD"})
"""Variables of the agent's own environment that a simulated network needs."""


def _packed(child: "subprocess.Popen[bytes]", name: str, until_s: float, limit_s: float) -> tuple[bytes, int]:
    """The child's output, packed while it comes, so that a page never lies in memory as a whole."""
    assert child.stdout is not None
    wire, packer = child.stdout.fileno(), lzma.LZMACompressor(preset=1)
    waiting = select.poll()
    waiting.register(wire, select.POLLIN)
    packed, size = bytearray(), 0
    while True:
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not waiting.poll(left_s * 1000):
            raise ActFailedError(f"`{name}` did not end within {limit_s:g} s")
        chunk = os.read(wire, READ)
        if not chunk:
            break
        size += len(chunk)
        packed += packer.compress(chunk)
        if size > MOST_BYTES or len(packed) > MOST_PACKED:
            raise ActFailedError(f"`{name}` wrote more than {MOST_BYTES >> 20} MiB, or {MOST_PACKED >> 10} KiB packed")
    packed += packer.flush()
    if len(packed) > MOST_PACKED:
        raise ActFailedError(f"`{name}` wrote more than {MOST_PACKED >> 10} KiB packed")
    return bytes(packed), size
