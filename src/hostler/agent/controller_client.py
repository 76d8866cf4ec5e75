"""The agent's side of its conversation with the controller: HTTP and JSON, one method per question."""

import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, TypeVar

import aiohttp
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.private_files import require_private
from hostler.core.state import version_2
from hostler.core.state.growing_pause import growing_s
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.meetings import TAKES_MOST, MeetingReply
from hostler.core.state.model import Observation, Operation, Outcome
from hostler.core.state.passive_series import PassiveReading

TIMEOUT_S = 30.0
CONNECT_S = 5.0
HEARTBEAT_S = 8.0
"""A heartbeat that hangs at a controller which stands still must not cost its node the silence that is allowed."""
TELL_FIRST_S = 5.0
"""So long after an order to be silent its outcome is still told."""
PROTOCOL = 3
"""Protocol version of this agent. It understands the answers of the version before, too, and passes over fields it does
not know."""
PROTOCOL_HEADER = "Hostler-Agent-Protocol"
POLL_S = 25
"""Time for which the controller may hold a poll for operations open."""
MAX_RETRY_AFTER_S = 300.0
MAX_BACKOFF_S = 60.0
URGENT = "u=0"
"""The Priority (RFC 9218) of a post that holds what may doom a job."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
OrderMode = Literal["perform", "observe", "revoke"]
MAX_ORDER_BYTES = 131_072
_Answer = TypeVar("_Answer")
_NOT_NOW = frozenset({408, 425, 429})


class UnavailableError(Exception):
    """No answer, or "not now": send the same again after a while, `retry_after_s` if the controller said so.

    `active`: the active controller said it, so that no other knows better.
    """

    def __init__(self, why: str, retry_after_s: float | None = None, *, active: bool = False) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s
        self.active = active


class NoTokenError(UnavailableError):
    """The token's file is not there, is readable for others, or holds something else."""


class RejectedError(Exception):
    """The controller will not take this as it is; `status` is the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"{status}: {why}")
        self.status = status


class _Problem(Struct):
    """A refusal in the API's words."""

    detail: str
    instead: str = ""


class SpoolReceipt(Struct, frozen=True):
    """Progress of the controller in the spool of this id; `resend_from` asks for an earlier number again."""

    spool: str
    acknowledged: int
    resend_from: int | None = None

    @property
    def cursor(self) -> int:
        """The last number that needs no sending."""
        return self.acknowledged if self.resend_from is None else self.resend_from - 1


NOTHING_READ = SpoolReceipt("", 0)


class About(Struct, frozen=True):
    """Facts about the agent that go with each heartbeat.

    `profiles` are the checks that it answers, `doing` where a long check stands that runs now. `verbs` are the kinds of
    operation that it knows, `barred` those of them that it was started without permission for.
    """

    version: str
    rss_kib: int = 0
    profiles: tuple[str, ...] = ()
    doing: str = ""
    verbs: tuple[str, ...] | None = None
    barred: tuple[str, ...] = ()


class OperationOrder(Struct, frozen=True):
    """An operation for this node: to be performed, only observed, or called off.

    `left_s`: how long it may wait to be begun, from when it was asked for; None where the controller does not say.
    """

    operation: Operation
    epoch: int
    mode: OrderMode = "perform"
    left_s: float | None = None


class _Meant(Struct, frozen=True):
    id: str
    node: str = ""
    attempt: int = 1


class UnreadableOrder(Struct, frozen=True):
    """An order whose operation is of a kind, or has arguments, that this agent does not know; `why` says which."""

    operation: _Meant
    mode: OrderMode = "perform"
    why: str = ""


class MeetingAsk(Struct, frozen=True):
    """How this node is reached by one port, and what its last meeting came to. `gbps` None: nothing was measured.

    `takes`: how many nodes it can meet at once, itself included.
    """

    operation: str
    via: str
    address: str
    port: int
    interface: str = ""
    meeting: str = ""
    gbps: float | None = None
    takes: int = TAKES_MOST


class _Call(Struct, frozen=True):
    """One question: its body or parameters, how long its answer may take, and how urgent it is."""

    method: str
    what: str
    body: dict[str, Any] | None = None
    params: dict[str, str] | None = None
    timeout_s: float = TIMEOUT_S
    priority: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", **({"Priority": self.priority} if self.priority else {})}


class _Orders(Struct, frozen=True):
    operations: tuple[msgspec.Raw, ...] = ()
    held_s: float = 0.0


def addresses(servers: str) -> tuple[str, ...]:
    """The controllers' addresses of "https://a:8440,https://b:8440". Raises ValueError where there is none."""
    found = tuple(dict.fromkeys(one.strip().rstrip("/") for one in servers.split(",") if one.strip()))
    if not found:
        raise ValueError("no server is named")
    return found


class HeartbeatReply(Struct, frozen=True):
    """A heartbeat's answer, empty from a controller that does not tell yet.

    How far the spool has been read, and the digest of the inventory that need not be told again, "" for none.
    """

    spool: str = ""
    acknowledged: int | None = None
    inventory: str = ""

    @property
    def read(self) -> SpoolReceipt | None:
        """How far the spool has been read, None where that is not told."""
        return None if self.acknowledged is None else SpoolReceipt(self.spool, self.acknowledged)


class ControllerClient:
    """The far end, which is any of the cell's controllers: whichever answers has the active one decide.

    Every call raises UnavailableError or RejectedError. Where a controller cannot be reached, the next is asked at
    once: everything that is sent here may be sent twice. One that says "not now" is left for the next call.
    """

    def __init__(self, session: aiohttp.ClientSession, servers: str, token_file: Path, node: str) -> None:
        self._session = session
        self._servers = addresses(servers)
        self._at = 0
        self._token_file = token_file
        self._node = node
        self._silent = (0.0, 0.0)

    def fall_silent(self, for_s: float) -> None:
        """Send nothing for so long, once what was done until now has been told."""
        begins = time.monotonic() + TELL_FIRST_S
        self._silent = (begins, begins + for_s)

    async def observations(
        self, spool: str, boot_id: str, observations: list[Observation], *, urgent: bool = False
    ) -> SpoolReceipt:
        """Hand over observations (or none, to ask how far the controller is); urgent ones pass a full house."""
        body = {"node": self._node, "spool": spool, "boot_id": boot_id, "observations": observations}
        call = _Call("POST", "observations", body, priority=URGENT if urgent else "")
        return _decode(await self._ask(call), SpoolReceipt)

    async def heartbeat(self, boot_id: str, about: About, had: SpoolReceipt = NOTHING_READ) -> HeartbeatReply:
        """Say that we live, what we are, and how far we were told that the spool has been read."""
        said = {"version": about.version, "rss_kib": about.rss_kib, "profiles": about.profiles, "doing": about.doing}
        can = {} if about.verbs is None else {"verbs": about.verbs, "barred": about.barred}
        read = {"spool": had.spool, "acknowledged": had.acknowledged}
        body = {"node": self._node, "boot_id": boot_id, **said, **can, **read}
        raw = await self._ask(_Call("POST", "heartbeat", body, timeout_s=HEARTBEAT_S))
        return _decode(raw, HeartbeatReply) if raw else HeartbeatReply()

    async def operations(self) -> tuple[OperationOrder | UnreadableOrder, ...]:
        """Fetch operations; waits up to POLL_S for one.

        `left_s` counts from when it was asked: the time for which the controller held the question is not lost.
        """
        params = {"node": self._node, "wait_s": str(POLL_S)}
        call = _Call("GET", "operations", params=params, timeout_s=TIMEOUT_S + POLL_S)
        given = _decode(await self._ask(call), _Orders)
        held_s = min(max(given.held_s, 0.0), POLL_S)
        return tuple(read_order(raw, held_s) for raw in given.operations)

    async def joining(self) -> KubeletJoinOffer:
        """Fetch the join offer for this node's kubelet. Raises RejectedError (404) where nothing does."""
        return _decode(await self._ask(_Call("GET", "joining", params={"node": self._node})), KubeletJoinOffer)

    async def meeting(self, asked: MeetingAsk) -> MeetingReply:
        """Ask whom this node is to meet, and tell what the last meeting came to."""
        body = {"node": self._node, **msgspec.structs.asdict(asked)}
        return _decode(await self._ask(_Call("POST", "meetings", body)), MeetingReply)

    async def outcomes(self, outcomes: list[Outcome]) -> None:
        """Report the outcomes of operations. Raises PortError where they were not taken."""
        await self._ask(_Call("POST", "outcomes", {"node": self._node, "outcomes": outcomes}))

    async def readings(self, boot_id: str, window: int, age_s: float, readings: Sequence[PassiveReading]) -> None:
        """Hand over one window of passive series; `age_s` ago it ended."""
        body = {"node": self._node, "boot_id": boot_id, "window": window, "age_s": age_s, "readings": readings}
        await self._ask(_Call("POST", "readings", body))

    async def _ask(self, call: _Call) -> bytes:
        """Ask one controller after the other until one answers."""
        begins, ends = self._silent
        if begins <= time.monotonic() < ends:
            raise UnavailableError("a drill keeps this agent silent")
        error: Exception | None = None
        for _ in self._servers:
            at = self._at
            request = self._session.request(
                call.method,
                f"{self._servers[at]}/v1/agent/{call.what}",
                data=None if call.body is None else msgspec.json.encode(call.body),
                params=call.params,
                headers={"Authorization": f"Bearer {self._token()}", PROTOCOL_HEADER: str(PROTOCOL), **call.headers},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=call.timeout_s, connect=CONNECT_S),
            )
            try:
                return await _answer(request)
            except UnavailableError as not_now:
                if not not_now.active:
                    self._go_on(at)
                raise
            except (aiohttp.ClientError, TimeoutError, OSError) as away:
                self._go_on(at)
                error = away
        raise UnavailableError(f"{type(error).__name__}: {error}") from error

    def _go_on(self, at: int) -> None:
        """The next one from now on, unless another call has gone on already."""
        if self._at == at:
            self._at = (at + 1) % len(self._servers)

    def _token(self) -> str:
        """Read anew for every call: tokens are rotated under a running agent."""
        try:
            require_private(self._token_file)
            token = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise NoTokenError(f"no token: {error}") from error
        if not token or not token.isprintable() or " " in token:
            raise NoTokenError(f"no token: {self._token_file} holds another text; write the token alone into it")
        return token


async def _answer(request: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> bytes:
    """The body of a success. Raises UnavailableError, RejectedError, and what aiohttp raises."""
    async with request as answer:
        raw = await answer.content.read(MAX_ANSWER_BYTES)
        while len(raw) < MAX_ANSWER_BYTES and (more := await answer.content.read(65_536)):
            raw += more
        _check(answer.status, answer.headers, raw)
        return raw


def session(servers: str, ca_file: str) -> aiohttp.ClientSession:
    """A session that verifies TLS against the system's authorities, or against `ca_file` alone if given."""
    tls = ssl.create_default_context(cafile=ca_file or None) if "https:" in servers else True
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=4))


def backoff_s(attempt: int, retry_after_s: float | None, draw: float) -> float:
    """Seconds to wait before try number `attempt` + 1. `draw` is uniform in [0, 1): a fleet must not march in step."""
    if retry_after_s is not None:
        return min(retry_after_s, MAX_RETRY_AFTER_S) * (1 + draw / 2)
    return growing_s(1.0, attempt, MAX_BACKOFF_S) * (0.5 + draw / 2)


def _told(raw: bytes) -> str:
    """Words of the controller's refusal and what would help; of an answer that is none of ours its beginning."""
    try:
        problem = msgspec.json.decode(raw, type=_Problem)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return raw[:300].decode("utf-8", "replace")
    return "; ".join(filter(None, (problem.detail, problem.instead)))[:300]


def _check(status: int, headers: Mapping[str, str], raw: bytes) -> None:
    if 200 <= status < 300:
        return
    why = _told(raw)
    if status >= 500 or status in _NOT_NOW:
        active = headers.get("Hostler-Role") == "active"
        raise UnavailableError(f"{status}: {why}", _seconds(headers.get("Retry-After")), active=active)
    raise RejectedError(status, why)


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds; the date form would need a wall clock, so it counts as not said."""
    return float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None


def _check_size(raw: bytes) -> None:
    if len(raw) > MAX_ORDER_BYTES:
        raise ValueError(f"it has {len(raw)} bytes, at most {MAX_ORDER_BYTES} are read")


def read_order(raw: msgspec.Raw, held_s: float) -> OperationOrder | UnreadableOrder:
    """The order, or why it cannot be read. Raises UnavailableError where it does not even say what it is about."""
    try:
        _check_size(bytes(raw))
        told = msgspec.json.decode(raw)
        if "kind" in told["operation"]:  # a controller of the version before
            told["operation"] = version_2.operation_up(told["operation"])
        order = msgspec.convert(told, OperationOrder)
    except (KeyError, TypeError, ValueError, *UNREADABLE) as error:
        why = f"this agent cannot read the order, and did nothing: {str(error)[:200]}; upgrade the agent"
        return replace(_decode(bytes(raw), UnreadableOrder), why=why)
    return order if order.left_s is None else replace(order, left_s=order.left_s + held_s)


def _decode(raw: bytes, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE as error:
        raise UnavailableError(f"the controller's answer makes no sense: {error}") from error
