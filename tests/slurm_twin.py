"""Slurm as the tests model it: nodes, jobs and their states in memory, and the same behind slurmrestd's v0.0.40.

What it does was read off a real 22.05; the documents follow the shapes that Slurm publishes for its data parser.
"""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from hostler.drivers.slurm.rest_transport import RestEndpoint, RestTransport
from hostler.drivers.slurm.transport import Change, CheckSubmission, Transport, failure
from hostler.drivers.slurm.wire import CheckJob, SlurmJob, SlurmNode
from hostler.ports import PortError, RefusedError

NODES = ("gpu001", "gpu002", "box-1")
TOKEN = "twin.token.of.some.length"


class _Job(Struct):
    at: SlurmJob
    slow: bool = False
    signals: int = 0
    queued: bool = False


class SlurmTwin:
    """A Transport but for idle checks, whose cluster is in memory, and what administrators and users do to it."""

    def __init__(self) -> None:
        self._boot = 1_000
        self._nodes = {name: SlurmNode(name, "IDLE", boot=self._boot, gpus=8) for name in NODES}
        self._jobs: dict[int, _Job] = {}
        self._numbers = itertools.count(1)
        self.sent: list[str] = []

    # --- the Transport

    async def nodes(self) -> dict[str, SlurmNode]:
        return {name: self._shown(node) for name, node in self._nodes.items()}

    async def jobs(self) -> tuple[SlurmJob, ...]:
        return tuple(job.at for job in self._jobs.values() if not job.queued)

    async def check_jobs(self, name: str) -> tuple[CheckJob, ...]:
        raise RefusedError(f"the twin keeps no job {name}: real slurmctld does")

    async def submit_check(self, job: CheckSubmission) -> None:
        raise RefusedError(f"the twin takes no job {job.name}: real slurmctld does")

    async def settings(self) -> dict[str, str]:
        return {"SLURM_VERSION": "22.05.8", "HealthCheckProgram": "(null)", "SuspendProgram": "(null)"}

    async def update(self, node: str, change: Change) -> None:
        self.sent.append(f"update {node} {change.state}".rstrip())
        self._update(node, change, "slurm")

    async def signal(self, job: int) -> None:
        self.sent.append(f"signal {job}")
        self._jobs[job].signals += 1

    async def cancel(self, job: int) -> None:
        self.sent.append(f"cancel {job}")
        self._end(job, queued=False)

    async def requeue(self, job: int) -> None:
        self.sent.append(f"requeue {job}")
        self._end(job, queued=True)

    async def reboot(self, node: str, reason: str) -> None:
        self.sent.append(f"reboot {node}")
        here = self._nodes[node]
        flags = here.flags | {"DRAIN", "REBOOT_ISSUED"}
        self._nodes[node] = replace(here, base="DOWN", flags=flags, reason=f"{reason} : reboot issued", user="slurm")

    # --- what people do

    async def submit(self, *nodes: str, gpus: int = 0, **options: str) -> int:
        number = next(self._numbers)
        indexes = tuple(range(gpus)) or None
        job = SlurmJob(
            number,
            nodes,
            user="root",
            partition=options.get("partition", "main"),
            comment=options.get("comment", ""),
            requeue="no_requeue" not in options,
            began=datetime.now(UTC),
            gpus=(indexes,) * len(nodes),
        )
        self._jobs[number] = _Job(job, slow="script" in options)
        return number

    async def admin(self, node: str, state: str, reason: str = "") -> None:
        self._update(node, Change(state, reason or None), "root")

    async def comment(self, node: str, text: str) -> None:
        self._update(node, Change(comment=text), "root")

    async def stop_answering(self, node: str) -> None:
        here = self._nodes[node]
        self._nodes[node] = replace(here, flags=here.flags | {"NOT_RESPONDING"})

    async def boot(self, node: str) -> None:
        """ReturnToService=1: a node that was not expected to reboot stays down, under what reason it has."""
        self._boot += 10_000_000_000
        here = self._nodes[node]
        asked = "REBOOT_ISSUED" in here.flags
        flags = frozenset() if asked else here.flags - {"NOT_RESPONDING"}
        reason = f"{here.reason} : reboot complete" if asked else here.reason or "Node unexpectedly rebooted"
        user = here.user or "slurm"
        self._nodes[node] = replace(here, base="DOWN", flags=flags, reason=reason, user=user, boot=self._boot)

    async def state(self, node: str) -> SlurmNode:
        return self._shown(self._nodes[node])

    async def until(self, holds: Callable[[], object], within_s: float = 30.0) -> None:
        assert holds()

    def listing(self) -> str:
        return " ".join(str(number) for number, job in self._jobs.items() if not job.queued)

    def signals(self, job: int) -> int:
        return self._jobs[job].signals

    # --- its rules

    def _shown(self, node: SlurmNode) -> SlurmNode:
        holding = [job.at for job in self._jobs.values() if not job.queued and node.name in job.at.nodes]
        flags = node.flags | ({"COMPLETING"} if any(job.ending for job in holding) else frozenset())
        busy = node.base == "IDLE" and any(not job.ending for job in holding)
        return replace(node, base="MIXED" if busy else node.base, flags=flags)

    def _update(self, name: str, change: Change, user: str) -> None:
        here = self._nodes.get(name)
        if here is None:
            raise failure(f"update {name}", "Invalid node name specified")
        if change.state == "DRAIN":
            here = replace(here, flags=here.flags | {"DRAIN"}, reason=change.reason or "", user=user)
        elif change.state == "DOWN":
            here = replace(here, base="DOWN", reason=change.reason or "", user=user)
            for number in [n for n, job in self._jobs.items() if name in job.at.nodes]:
                del self._jobs[number]
        elif change.state == "RESUME":
            if here.base != "DOWN" and not here.flags & {"DRAIN", "FAIL"}:
                raise failure(f"update {name}", "Invalid node state specified")
            here = replace(here, base="IDLE", flags=here.flags - {"DRAIN", "FAIL"}, reason="", user="")
        if change.comment is not None:
            here = replace(here, comment=change.comment)
        self._nodes[name] = here

    def _end(self, number: int, *, queued: bool) -> None:
        job = self._jobs.get(number)
        if job is None:
            raise failure(f"end {number}", "Invalid job id specified")
        if job.slow:
            job.at = replace(job.at, ending=True, restarts=job.at.restarts + queued)
        elif queued:
            job.queued, job.at = True, replace(job.at, restarts=job.at.restarts + 1)
        else:
            del self._jobs[number]


def node_document(node: SlurmNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "architecture": "x86_64",
        "state": [node.base, *sorted(node.flags)],
        "reason": node.reason,
        "reason_set_by_user": node.user,
        "reason_changed_at": {"set": bool(node.reason), "infinite": False, "number": 0},
        "comment": node.comment,
        "boot_time": {"set": True, "infinite": False, "number": node.boot},
        "gres": f"gpu:h100:{node.gpus}",
        "gres_used": "gpu:h100:0(IDX:N/A)",
    }


def job_document(job: SlurmJob) -> dict[str, Any]:
    used = [index for index in job.gpus if index]
    return {
        "job_id": job.id,
        "job_state": ["CANCELLED", "COMPLETING"] if job.ending else ["RUNNING"],
        "nodes": ",".join(job.nodes),
        "user_name": job.user,
        "user_id": 0,
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "comment": job.comment,
        "restart_cnt": job.restarts,
        "start_time": {"set": True, "infinite": False, "number": int(job.began.timestamp()) if job.began else 0},
        "requeue": job.requeue,
        "gres_detail": [f"gpu:h100:{len(one)}(IDX:{one[0]}-{one[-1]})" for one in used],
        "array_task_id": {"set": False, "infinite": False, "number": 0},
    }


def _answer(status: int = 200, error: str = "", **content: Any) -> web.Response:
    meta = {"plugin": {"data_parser": "data_parser/v0.0.40"}, "slurm": {"release": "23.11.4"}}
    errors = [{"error_number": 2004, "error": error, "source": "slurm_update_node"}] if error else []
    return web.json_response({"meta": meta, "errors": errors, "warnings": [], **content}, status=status)


def rest_app(twin: SlurmTwin) -> web.Application:
    """slurmrestd's v0.0.40, as far as the driver asks it."""

    async def nodes(_request: web.Request) -> web.Response:
        return _answer(nodes=[node_document(node) for node in (await twin.nodes()).values()])

    async def jobs(_request: web.Request) -> web.Response:
        return _answer(jobs=[job_document(job) for job in await twin.jobs()])

    async def update(request: web.Request) -> web.Response:
        asked = await request.json()
        state = asked.get("state", [""])
        assert isinstance(state, list)
        change = Change(state[0], asked.get("reason"), asked.get("comment"))
        try:
            await twin.update(request.match_info["name"], change)
        except PortError as no:
            return _answer(500, str(no))
        return _answer()

    async def delete(request: web.Request) -> web.Response:
        number = int(request.match_info["job"])
        try:
            if request.query.get("signal", "") == "SIGTERM":
                assert request.query["flags"] == "FULL_JOB"
                await twin.signal(number)
            else:
                await twin.cancel(number)
        except PortError as no:
            return _answer(500, str(no))
        return _answer()

    @web.middleware
    async def authenticated(request: web.Request, handler: Any) -> web.StreamResponse:
        headers = request.headers
        if (headers.get("X-SLURM-USER-NAME"), headers.get("X-SLURM-USER-TOKEN")) != ("slurm", TOKEN):
            return web.Response(status=401, text="Authentication failure")
        return await handler(request)  # type: ignore[no-any-return]

    app = web.Application(middlewares=[authenticated])
    base = "/slurm/v0.0.40"
    app.router.add_get(f"{base}/nodes/", nodes)
    app.router.add_get(f"{base}/jobs/", jobs)
    app.router.add_post(f"{base}/node/{{name}}", update)
    app.router.add_delete(f"{base}/job/{{job}}", delete)
    return app


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    """The app on a free loopback port; its origin."""
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def by_rest(app: web.Application, folder: Path, **more: Any) -> AsyncIterator[Transport]:
    """A RestTransport to the app."""
    token = folder / "slurm.token"
    token.write_text(f"SLURM_JWT={TOKEN}\n")
    token.chmod(0o600)
    async with served(app) as origin, aiohttp.ClientSession() as session:
        yield RestTransport(session, RestEndpoint(origin, "slurm", str(token), **more))
