"""Meetings with other nodes after a check that passed: the controller says who, `hostler-check meet` measures.

A partner that never comes makes nobody fail. A node is blamed where sound nodes have failed beside it by each of its
ways, two at least; of one way alone nobody knows whether it is the node or its cable.
"""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.agent import child_process
from hostler.agent.controller_client import MeetingAsk, RejectedError, UnavailableError
from hostler.agent.node_use import NodeUse, UseLimits
from hostler.agent.private_files import make_private
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.meetings import MET, MeetingOrder, MeetingReply, blames_node
from hostler.core.state.model import Facts, Verdict

MET_S = {"burn_in": 3_000.0, "suspect": 3_000.0, "idle": 180.0}
"""Profiles after which a node meets others, and for how long at most: what is left of a step's or slot's time.

The controller says much sooner that nobody is left, but to a node for which others are called from their idle time.
"""
ASK_S, LOOK_S = 1.0, 0.5
"""Intervals between questions for somebody to meet, and between looks at a meeting."""
SLACK_S = 45.0
"""Time that `hostler-check meet` may take beside its own."""
GROUP = "group_gb_s"
"""The suite's name of a group's bandwidth, in GB/s."""
MAX_ANSWER_BYTES = 65_536
SIOCGIFADDR = 0x8915
"""linux/sockios.h."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")

Ask = Callable[[MeetingAsk], MeetingReply]


class WaysError(Exception):
    """The ports by which others are met cannot be told."""


class MeetingSettings(Struct, frozen=True):
    """How a node meets others: port's name in the network's design → interface; none: it meets nobody."""

    ways: Mapping[str, str] = {}
    program: str = ""
    use: UseLimits = UseLimits()


class MeetingResult(Struct, frozen=True):
    """Result of meetings: a fact and a word for each way, and whether the node is blamed."""

    facts: Facts = {}
    detail: str = ""
    is_blamed: bool = False


class _Measured(Struct, frozen=True):
    measured: bool
    detail: str = ""
    pairs: dict[str, float] = {}
    readings: dict[str, float] = {}

    def gbps(self, order: MeetingOrder) -> float | None:
        """Rate of the meeting in Gbit/s, 0 for sums that are wrong; of more than two the bandwidth of the group."""
        rates = list(self.pairs.values())
        if len(order.names) > 2:
            rates = [gb_s * 8 for name, gb_s in self.readings.items() if name == GROUP]
        return rates[0] if self.measured and len(rates) == 1 and 0 <= rates[0] < float("inf") else None


class Meetings:
    """Meets others, one way after the other. `hold` blocks; `call_off` may come from another thread. Never raises."""

    def __init__(self, settings: MeetingSettings, folder: Path, ask: Ask) -> None:
        self._settings = settings
        self._folder = folder
        self._ask = ask
        self._called_off = threading.Event()
        self._is_closed = False

    def close(self) -> None:
        """End the meeting that goes on, and begin none any more: the agent ends."""
        self._is_closed = True
        self._called_off.set()

    def begin_checks(self) -> None:
        """Forget what was called off before: an operation is about to begin."""
        self._called_off.clear()

    def call_off(self) -> None:
        """End the meeting that goes on; the node meets nobody more during this operation."""
        self._called_off.set()

    def hold(self, operation: str, profile: str) -> MeetingResult:
        """Meet whom the controller names until nobody is left, or the profile's time is over."""
        program = shutil.which(self._settings.program) if self._settings.program else None
        limit_s = MET_S.get(profile, 0.0)
        if not program or not limit_s or not self._settings.ways or self._is_closed:
            return MeetingResult()
        stop = _Stop(time.monotonic() + limit_s, self._called_off, profile, self._settings.use)
        told = {
            via: _ByWay(self._ask, program, self._folder, stop).met(operation, via, interface)
            for via, interface in sorted(self._settings.ways.items())
        }
        return result_of(told)


def result_of(told: Mapping[str, str]) -> MeetingResult:
    """Result of the standings by way. A node is to blame where it is by all of its ways, and these are two or more."""
    blamed = [via for via, standing in told.items() if standing.partition(",")[0] == "blamed"]
    is_blamed = blames_node(told)
    words = [f"{via}: {standing}" for via, standing in told.items()]
    if is_blamed:
        words.append("sound nodes fail beside it by each of its ways")
    elif blamed:
        words.append(f"sound nodes fail beside it by {', '.join(blamed)}: its cable, adapter or port")
    words += [f"{via}: {_MEANS[standing]}" for via, standing in told.items() if standing in _MEANS]
    return MeetingResult({f"{MET}{via}": standing for via, standing in told.items()}, "; ".join(words), is_blamed)


_MEANS = {
    "beyond_leaf": "it fails with nodes of other leaves alone: the links between leaves",
    "inconclusive": "tests failed, and what nodes share here may be it as well: see the network's findings",
}


def verdict_of(profile: str, found: MeetingResult) -> Verdict:
    """Verdict of a check that has passed: a blamed node has failed, and in triage, which leads to its vendor, not."""
    if not found.is_blamed:
        return Verdict.passed
    return Verdict.inconclusive if profile == "suspect" else Verdict.failed


class _Stop:
    """Why to stop: the time is over, it was called off, or somebody uses an idle node."""

    def __init__(self, until_s: float, called_off: threading.Event, profile: str, limits: UseLimits) -> None:
        self._until_s = until_s
        self._called_off = called_off
        self._use = NodeUse(Path("/"), os.getpid(), limits) if profile == "idle" else None

    def is_now(self) -> bool:
        if self._called_off.is_set() or time.monotonic() > self._until_s:
            return True
        if self._use is not None and self._use.taken():
            self._called_off.set()
            return True
        return False

    def wait(self, seconds: float) -> None:
        self._called_off.wait(seconds)


class _ByWay:
    """The meetings of one way."""

    def __init__(self, ask: Ask, program: str, folder: Path, stop: _Stop) -> None:
        self._ask = ask
        self._program = program
        self._folder = folder
        self._stop = stop

    def met(self, operation: str, via: str, interface: str) -> str:
        """The node's standing by this way: sound, blamed, acquitted, open; or why there is none."""
        try:
            return self._meet(operation, via, interface)
        except OSError as error:
            return f"not met by {interface}: {error.strerror}"

    def _meet(self, operation: str, via: str, interface: str) -> str:
        address = address_of(interface)
        asked, standing, waits = MeetingAsk(operation, via, address, free_port(address), interface), "open", ""
        while not self._stop.is_now():
            try:
                said = self._ask(asked)
            except UnavailableError:
                self._stop.wait(ASK_S)
                continue
            except RejectedError as error:
                return standing if standing != "open" else f"not met: {str(error)[:100]}"
            waits, told = said.waits, None
            standing = said.standing if said.standing != "open" or not waits else standing
            if said.is_done:
                break
            if said.order is None:
                self._stop.wait(ASK_S)
            else:
                told = said.order.meeting, self._measured(said.order)
            asked = MeetingAsk(operation, via, address, free_port(address), interface, *(told or ()))
        return f"{standing}, as {waits}"[:200] if waits else standing

    def _measured(self, order: MeetingOrder) -> float | None:
        """The rate that was reached in Gbit/s, 0 for sums that are wrong; None where nothing was measured."""
        path = self._folder / "meeting.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.touch(mode=0o600)
            make_private(path)
            path.write_bytes(msgspec.json.encode(order.for_suite()))
            output = self._ended((self._program, "meet", str(path)), order.deadline_s + order.seconds + SLACK_S)
            found = msgspec.convert(json.loads(output), _Measured)
        except (OSError, ValueError, *UNREADABLE):
            return None
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        return found.gbps(order)

    def _ended(self, argv: tuple[str, ...], limit_s: float) -> bytes:
        """Read what the program printed by its end; nothing where it was ended. Raises OSError."""
        environment = {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith(("CUDA_", "NCCL_"))}
        child = subprocess.Popen(  # noqa: S603 - no shell: the operator named the program, every word is ours
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        assert child.stdout is not None
        until_s = time.monotonic() + limit_s
        try:
            while child.poll() is None:
                if self._stop.is_now() or time.monotonic() > until_s:
                    child.terminate()
                    return b""
                self._stop.wait(LOOK_S)
            return child.stdout.read(MAX_ANSWER_BYTES)
        finally:
            child_process.end_group(child, [])


def ways_of(given: Sequence[str]) -> dict[str, str]:
    """Port → interface of "PORT=INTERFACE" each. Raises WaysError for what is none."""
    found: dict[str, str] = {}
    for one in given:
        via, equals, interface = one.partition("=")
        if not via or not equals or not interface or via in found:
            raise WaysError(f"--meet {one[:80]}: write PORT=INTERFACE, each port once")
        found[via] = interface
    return found


def address_of(interface: str) -> str:
    """The interface's IPv4 address. Raises OSError where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        answer = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
    return socket.inet_ntoa(answer[20:24])


def free_port(address: str) -> int:
    """A TCP port that nobody listens at there now; somebody may before the meeting, which then comes to nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as found:
        found.bind((address, 0))
        return int(found.getsockname()[1])
