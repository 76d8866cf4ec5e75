"""Slurm by slurmrestd, from v0.0.40 on: before that it could not change nodes, or named their states otherwise."""

import re
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct, json
from yarl import URL

from hostler.core.state.durations import duration
from hostler.drivers.at_most_once import send_once
from hostler.drivers.bounded_body import read_body
from hostler.drivers.slurm import wire
from hostler.drivers.slurm.hostlist import checked_name
from hostler.drivers.slurm.transport import Change, CheckSubmission, failure
from hostler.drivers.slurm.wire import CheckJob, SlurmJob, SlurmNode
from hostler.ports import RefusedError, UnreachableError
from hostler.runtime.reachable_addresses import connector, site

MAX_ANSWER = 256 * 1024 * 1024
AT_ONCE = 8
FIRST_API = 40
_API = re.compile(r"v0\.0\.(\d{2,3})")
_TOKEN = re.compile(r"[A-Za-z0-9._=-]{16,8192}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

COMMANDS = "let Slurm be reached by its commands, which idle checks need"


class RestEndpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """Address of slurmrestd ("https://host:port"), the version of its API, and the user of requests.

    `token_file` holds a JWT (`scontrol token`), read for each request, so that it may be renewed in its place.
    `plain`: send it over plain HTTP to another machine, readable on the way. `ca`: trust these authorities, not the
    system's.
    """

    url: str
    user: str
    token_file: str
    api: str = f"v0.0.{FIRST_API}"
    timeout_s: float = 15.0
    plain: bool = False
    ca: str = ""

    def session(self) -> aiohttp.ClientSession:
        """A session that trusts whom it should. Raises RefusedError for authorities that cannot be read."""
        try:
            trust = ssl.create_default_context(cafile=self.ca or None)
        except (OSError, ssl.SSLError) as error:
            raise RefusedError(
                f"{self.ca} cannot be read as certificates: {error}; write PEM certificates there"
            ) from error
        connections = connector(site(self.url), limit=AT_ONCE, ssl=trust)
        return aiohttp.ClientSession(connector=connections, cookie_jar=aiohttp.DummyCookieJar())


class RestTransport:
    """A Transport over an aiohttp session (`RestEndpoint.session`)."""

    def __init__(self, session: aiohttp.ClientSession, rest: RestEndpoint) -> None:
        _check(rest)
        self._session = session
        self._rest = rest
        self._base = f"{rest.url.rstrip('/')}/slurm/{rest.api}"
        self._timeout = aiohttp.ClientTimeout(total=rest.timeout_s)

    async def nodes(self) -> dict[str, SlurmNode]:
        """All nodes, by name."""
        return wire.nodes(await self._ask("GET", "nodes/"))

    async def jobs(self) -> tuple[SlurmJob, ...]:
        """All jobs that are not over."""
        return wire.jobs(await self._ask("GET", "jobs/"))

    async def check_jobs(self, name: str) -> tuple[CheckJob, ...]:
        """Raises RefusedError: idle checks need Slurm's commands."""
        raise RefusedError(f"slurmrestd is not asked for job {name}; {COMMANDS}")

    async def submit_check(self, job: CheckSubmission) -> None:
        """Raises RefusedError: idle checks need Slurm's commands."""
        raise RefusedError(f"slurmrestd is not asked to submit {job.name}; {COMMANDS}")

    async def settings(self) -> dict[str, str]:
        """Raises RefusedError: slurmrestd does not show slurm.conf."""
        raise RefusedError("slurmrestd does not show slurm.conf; look at it where slurmctld runs")

    async def update(self, node: str, change: Change) -> None:
        """Change a node's state, reason or comment."""
        body: dict[str, object] = {"state": [change.state]} if change.state else {}
        body |= {"reason": change.reason} if change.reason is not None else {}
        body |= {"comment": change.comment} if change.comment is not None else {}
        await self._ask("POST", f"node/{checked_name(node)}", body)

    async def signal(self, job: int) -> None:
        """Send TERM to all steps of the job."""
        await self._ask("DELETE", f"job/{job}?signal=SIGTERM&flags=FULL_JOB")

    async def cancel(self, job: int) -> None:
        """Cancel the job."""
        await self._ask("DELETE", f"job/{job}")

    async def requeue(self, job: int) -> None:
        """Raises RefusedError: slurmrestd has no such call."""
        raise RefusedError(
            f"slurmrestd cannot requeue job {job}; set `requeue: false` to have such jobs cancelled, "
            "or let Slurm be reached by its commands"
        )

    async def reboot(self, node: str, reason: str) -> None:
        """Raises RefusedError: reboots are asked for by command only."""
        raise RefusedError(f"slurmrestd is not asked to reboot {node} ({reason}): let Slurm be reached by its commands")

    async def _ask(self, method: str, path: str, body: dict[str, object] | None = None) -> bytes:
        """The whole answer to a request that succeeded. Sends once. Raises PortError."""
        what = f"{method} {self._base}/{path}"
        try:
            async with self._session.request(
                method,
                URL(f"{self._base}/{path}", encoded=True),
                data=json.encode(body) if body is not None else None,
                headers=self._headers(),
                allow_redirects=False,
                timeout=self._timeout,
                middlewares=() if method == "GET" else (send_once,),
            ) as response:
                content = await read_body(response, MAX_ANSWER, f"the answer to {what}")
        except TimeoutError as late:
            raise UnreachableError(
                f"no answer to {what} within {duration(self._rest.timeout_s)}"
                "; is slurmrestd up, and is its address right?"
            ) from late
        except aiohttp.ClientConnectorCertificateError as error:
            raise RefusedError(
                f"the certificate of {self._rest.url} is not trusted ({error}); nothing was sent"
                "; name its authority as `ca`"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            told = f"{type(error).__name__} {error}".rstrip()
            raise UnreachableError(
                f"no answer to {what}: {told}; is slurmrestd up, and is its address right?"
            ) from error
        self._check_answer(response.status, content, what)
        return content

    def _check_answer(self, status: int, content: bytes, what: str) -> None:
        if status in (401, 403):
            raise RefusedError(
                f"slurmrestd does not accept the token of {self._rest.user} for {what} ({status})"
                "; renew it (scontrol token), or correct its user"
            )
        if status == 404 and b'"errors"' not in content:
            raise RefusedError(f"slurmrestd serves no {what}: is {self._rest.api} among its versions (-d list)?")
        if status != 200:
            raise failure(what, f"{status} {' '.join(content[:2000].decode(errors='replace').split())[:500]}")
        wire.check_done(content, what)

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "X-SLURM-USER-NAME": self._rest.user,
            "X-SLURM-USER-TOKEN": _token(Path(self._rest.token_file)),
        }


def _check(rest: RestEndpoint) -> None:
    """Raise RefusedError for what could never work, or would show the token to the network."""
    try:
        parts = urlsplit(rest.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.username)
        _ = parts.port
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable:
        raise RefusedError(f"{rest.url[:200]!r} is not an address of slurmrestd; write https://host:port")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not rest.plain:
        raise RefusedError(f"{rest.url} would carry the token readably: write https://…, or set `plain: true`")
    found = _API.fullmatch(rest.api)
    if found is None or int(found[1]) < FIRST_API:
        raise RefusedError(
            f"slurmrestd's {rest.api} cannot be used: it takes v0.0.{FIRST_API} (Slurm 23.11) or later; "
            "let an older Slurm be reached by its commands"
        )
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", rest.user):
        raise RefusedError(f"{rest.user[:80]!r} is not the name of a Slurm user; write the user that the token is for")


def _token(path: Path) -> str:
    """The token. Raises RefusedError where it is none, or others can read it."""
    try:
        if path.stat().st_mode & 0o077:
            raise RefusedError(f"others can read {path}: chmod 600 {path}")
        token = path.read_text(encoding="ascii").strip().removeprefix("SLURM_JWT=")
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{path} cannot be read ({error}); write the output of `scontrol token` to it") from error
    if not _TOKEN.fullmatch(token):
        raise RefusedError(f"{path} holds no token; write the output of `scontrol token` to it")
    return token
