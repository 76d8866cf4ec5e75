"""A Slurm that hangs, lies, says half or says no: what cannot be read whole is not read, and nothing waits for ever."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

from hostler.app.cluster_connections import Rebooter, slurm_clusters
from hostler.app.controller_process import Gate
from hostler.controller.inputs import WorkSeen
from hostler.controller.scheduler_views import of_override
from hostler.core.state.assets import Binding
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import CordonNode
from hostler.drivers.slurm import command_transport, rest_transport
from hostler.drivers.slurm.command_transport import Commands, CommandTransport
from hostler.drivers.slurm.doctor import examine
from hostler.drivers.slurm.rest_transport import RestEndpoint, RestTransport
from hostler.drivers.slurm.scheduler import SlurmMethod, SlurmScheduler
from hostler.drivers.slurm.settings import SlurmSettings, parse
from hostler.drivers.slurm.shared_reads import SharedReads
from hostler.drivers.slurm.transport import Change
from hostler.drivers.slurm.wire import SlurmJob, SlurmNode
from hostler.ports import ConflictError, PortError, RefusedError, UnreachableError, WorkloadView
from tests.acts import an_act
from tests.contract.kubernetes_world import PATIENCE_S, running, until
from tests.kit import NOW, a_node
from tests.slurm import MESSAGE_S, RealSlurm
from tests.slurm_twin import SlurmTwin, by_rest, node_document, served

WHOLE = json.dumps({"errors": [], "nodes": [node_document(SlurmNode("gpu001", "IDLE"))]})
HANGS = "did not end"
OLD, NEW = "slurm-wlm 22.05.8", "slurm 23.11.4"


# a controller that hangs


async def test_a_controller_that_hangs_is_unreachable_and_not_empty(slurm: RealSlurm) -> None:
    """Within our patience, and where Slurm's own ends first: then it prints an empty list, and its commands succeed."""
    scheduler = SlurmScheduler("k1", slurm.transport(timeout_s=1.0), lambda: None, lambda: NOW)
    with slurm.hung():
        hasty = slurm.transport(timeout_s=1.0)
        for asked in (hasty.nodes(), hasty.jobs(), hasty.update("gpu001", Change("DRAIN", "x"))):
            with pytest.raises(UnreachableError, match="did not end within 1 s"):
                await asked
        patient = slurm.transport(timeout_s=MESSAGE_S + 20)
        said = await asyncio.gather(patient.nodes(), patient.jobs(), return_exceptions=True)
        assert [type(one) for one in said] == [UnreachableError] * 2
        await scheduler.look()
        assert "did not end" in scheduler.views().lost
    async with running(scheduler.watch()):
        await until(lambda: not scheduler.views().lost, "it to be heard again")


async def test_a_real_slurm_shows_its_settings_and_treats_no_node_by_itself(slurm: RealSlurm) -> None:
    """Mutant: lines of another shape than Slurm's are expected."""
    settings = await slurm.transport().settings()
    assert (settings["ClusterName"], settings["HealthCheckProgram"]) == ("test", "(null)")
    assert settings["SLURM_VERSION"].startswith("2")
    found = await examine(slurm.transport(), "s1", {"gpu001": "n1", "gpu002": "n2", "box-1": "n3"})
    assert [(one.kind, one.bad) for one in found] == [("version", False)]


async def test_what_was_seen_grows_stale_and_is_fresh_again() -> None:
    twin, now = _Moody(), NOW
    scheduler = SlurmScheduler("k1", twin, lambda: None, lambda: now, SlurmMethod(stale_s=20))
    assert scheduler.views().lost == "not listed yet"
    await scheduler.look()
    assert (scheduler.views().lost, set(scheduler.views().nodes)) == ("", {"gpu001", "gpu002", "box-1"})
    twin.mood = UnreachableError("slurmctld is away")
    now = NOW + timedelta(seconds=19)
    await scheduler.look()
    assert scheduler.views().lost == ""
    now = NOW + timedelta(seconds=21)
    await scheduler.look()
    assert scheduler.views().lost == "silent since 00:00:00 UTC: slurmctld is away"
    twin.mood = None
    await scheduler.look()
    assert scheduler.views().lost == ""


# commands that misbehave


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (f"echo '{WHOLE[:-20]}'", UnreachableError, "cannot be read"),
        (f"echo '{WHOLE}'; exit 1", UnreachableError, "exit status 1"),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", UnreachableError, "Unable to contact"),
        ("echo 'Invalid user id' >&2; exit 1", RefusedError, "Invalid user id"),
        ("echo 'Invalid node state specified' >&2; exit 1", ConflictError, "Invalid node state"),
        ('sh -c "sleep 600; : $0" & wait', UnreachableError, "did not end within 1 s"),
        ("cat /dev/zero | head -c 300000", UnreachableError, "more than 0 MiB"),
        ("head -c 300000 /dev/zero >&2; exit 1", UnreachableError, "failed"),
        ("exec >&-; exec 2>&-; sleep 600", UnreachableError, "did not end within 1 s"),
    ],
)
async def test_a_command_that_fails_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, error: type[PortError], says: str
) -> None:
    """Mutants: the exit status is not looked at; a list that is cut off is read; what a command began lives on."""
    monkeypatch.setattr(command_transport, "MAX_OUTPUT", 200_000)
    _fake(tmp_path, "sinfo", body)
    transport = CommandTransport(Commands(directory=str(tmp_path), timeout_s=1.0 if HANGS in says else PATIENCE_S))
    with pytest.raises(error, match=says):
        await transport.nodes()
    await until(lambda: not _running(tmp_path), "the end of all that it began")


async def test_newer_versions_list_their_nodes_by_another_command(tmp_path: Path) -> None:
    _fake(tmp_path, "sinfo", """echo '{"sinfo": [], "errors": []}'""", NEW)
    _fake(tmp_path, "scontrol", f"[ \"$*\" = 'show nodes --json' ] && echo '{WHOLE}'")
    assert set(await CommandTransport(Commands(directory=str(tmp_path))).nodes()) == {"gpu001"}


async def test_commands_get_words_and_none_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQUEUE_PARTITION would hide jobs; a reason is one word, whatever is in it. Mutant: `shell=True`."""
    monkeypatch.setenv("SQUEUE_PARTITION", "tiny")
    told, environment = tmp_path / "told", tmp_path / "environment"
    _fake(tmp_path, "scontrol", f'env > {environment}; printf "%s\\n" "$@" > {told}')
    transport = CommandTransport(Commands("/etc/x.conf", str(tmp_path)))
    await transport.update("gpu001", Change("DRAIN", "hostler: a $(touch x); b | c", "m"))
    said = ["update", "NodeName=gpu001", "State=DRAIN", "Reason=hostler: a $(touch x); b | c", "Comment=m"]
    assert told.read_text().splitlines() == said
    assert "SLURM_CONF=/etc/x.conf" in environment.read_text()
    assert "SQUEUE" not in environment.read_text()


async def test_a_reason_holds_no_odd_characters() -> None:
    twin = SlurmTwin()
    odd = a_node("n", bindings=(Binding("slurm", "gpu001", NOW),))
    operation = Operation('o"1\n$(x)', CordonNode(), "n", "p", 0, NOW, NOW)
    await _scheduler(twin).perform(operation, odd)
    assert (await twin.state("gpu001")).reason == "hostler: cordon (o_1_(x))"


async def test_missing_commands_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="install Slurm's client commands"):
        await CommandTransport(Commands()).nodes()
    with pytest.raises(RefusedError, match="cannot be run"):
        await CommandTransport(Commands(directory=str(tmp_path))).nodes()


# many at once


async def test_two_hundred_operations_read_the_cluster_a_few_times() -> None:
    """Mutant: each operation reads the cluster itself."""
    twin = _Moody()
    scheduler = _scheduler(twin)
    driver = [scheduler.observe(_operation("cordon"), _node("gpu001")) for _ in range(200)]
    assert {outcome.result for outcome in await asyncio.gather(*driver)} == {"not_done"}
    assert twin.reads <= 2


async def test_a_reading_has_begun_after_it_was_asked_for() -> None:
    """Else an act would be judged by what was so before it. Mutant: who asks meanwhile shares the one under way."""
    twin = _Moody()
    twin.gate.clear()
    reader = SharedReads(twin)
    first = asyncio.ensure_future(reader.read())
    await twin.begun.wait()
    second = asyncio.ensure_future(reader.read())
    await asyncio.sleep(0)
    await twin.admin("gpu001", "DRAIN", "x")
    twin.gate.set()
    assert "DRAIN" in (await second).nodes["gpu001"].flags
    await first
    assert twin.reads == 2


async def test_a_reading_that_fails_fails_for_all_who_asked_and_not_for_the_next() -> None:
    twin = _Moody()
    reader = SharedReads(twin)
    twin.mood = UnreachableError("away")
    said = await asyncio.gather(*(reader.read() for _ in range(3)), return_exceptions=True)
    assert [str(one) for one in said] == ["away"] * 3
    twin.mood = None
    assert set((await reader.read()).nodes) == {"gpu001", "gpu002", "box-1"}


async def test_who_goes_away_takes_nothing_along() -> None:
    twin = _Moody()
    twin.gate.clear()
    reader = SharedReads(twin)
    gone, stays = asyncio.ensure_future(reader.read()), asyncio.ensure_future(reader.read())
    await asyncio.sleep(0)
    gone.cancel()
    twin.gate.set()
    assert len((await stays).nodes) == 3


# slurmrestd that misbehaves

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _says(status: int, body: str) -> Handler:
    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type="application/json")

    return handler


async def _hangs(_request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(1.5)
    return web.Response()


async def _breaks_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": str(len(WHOLE))})
    await response.prepare(request)
    await response.write(WHOLE[:100].encode())
    assert request.transport is not None
    request.transport.close()
    return response


async def _sends_away(_request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/elsewhere")


@pytest.mark.parametrize(
    ("handler", "error", "says"),
    [
        (_says(200, WHOLE), None, ""),
        (_says(401, ""), RefusedError, "does not accept the token"),
        (_says(404, ""), RefusedError, "v0.0.40 among its versions"),
        (_says(500, '{"errors": [{"error": "Invalid node name specified"}]}'), RefusedError, "Invalid node name"),
        (_says(500, '{"errors": [{"error": "Invalid node state specified"}]}'), ConflictError, "Invalid node state"),
        (_says(503, "busy"), UnreachableError, "503 busy"),
        (_says(200, WHOLE[:-9]), UnreachableError, "cannot be read"),
        (_says(200, '{"errors": [{"error": "no controller"}], "nodes": []}'), UnreachableError, "no controller"),
        (_says(200, " " * 300_000), UnreachableError, "longer than"),
        (_hangs, UnreachableError, "no answer to GET .* within 1 s"),
        (_breaks_off, UnreachableError, "no answer"),
        (_sends_away, UnreachableError, "302"),
    ],
)
async def test_an_answer_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handler: Handler, error: type[PortError] | None, says: str
) -> None:
    """Mutant: errors in a body whose status is 200 are not looked at."""
    monkeypatch.setattr(rest_transport, "MAX_ANSWER", 200_000)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with by_rest(app, tmp_path, timeout_s=1.0 if handler is _hangs else PATIENCE_S) as transport:
        if error is None:
            assert set(await transport.nodes()) == {"gpu001"}
            return
        with pytest.raises(error, match=says):
            await transport.nodes()


async def test_a_write_that_was_answered_with_errors_was_none(tmp_path: Path) -> None:
    """Mutant: a status of 200 is enough."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", _says(200, '{"errors": [{"error": "Invalid node state specified"}]}'))
    async with by_rest(app, tmp_path) as transport:
        with pytest.raises(UnreachableError, match="Invalid node state"):
            await transport.update("gpu001", Change("RESUME"))


async def test_a_cancelled_job_is_cancelled_once_even_where_a_kept_connection_breaks(tmp_path: Path) -> None:
    """Mutant: the client sends what it takes for idempotent again by itself."""
    heard: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            heard.append(head.decode().split()[0])
            while (await reader.readline()).strip():
                pass
            if heard[-1] == "DELETE":
                break
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(WHOLE)}\r\n\r\n{WHOLE}".encode())
        writer.close()

    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("x" * 32)
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, RestEndpoint(url, "slurm", str(token)).session() as session:
        transport = rest_transport.RestTransport(session, RestEndpoint(url, "slurm", str(token)))
        await transport.nodes()
        with pytest.raises(UnreachableError):
            await transport.cancel(7)
    assert heard == ["GET", "DELETE"]


async def test_a_real_slurmrestd_reads_our_requests_and_is_too_old(
    slurm: RealSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's speaks v0.0.38, which can only read: it is read here past the check that asks for v0.0.40."""
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(slurm.run("scontrol", "token", "username=slurm", "lifespan=600"))
    number = await slurm.submit("gpu001", gpus=2)
    async with slurm.rest() as url, RestEndpoint(url, "slurm", str(token)).session() as session:
        with pytest.raises(RefusedError, match=r"v0\.0\.40 among its versions"):
            await RestTransport(session, RestEndpoint(url, "slurm", str(token))).nodes()
        monkeypatch.setattr(rest_transport, "FIRST_API", 38)
        transport = RestTransport(session, RestEndpoint(url, "slurm", str(token), "v0.0.38"))
        assert await transport.nodes() == await slurm.transport().nodes()
        assert [(job.id, job.gpus) for job in await transport.jobs()] == [(number, ((0, 1),))]
        token.write_text("a.token.of.somebody.else")
        with pytest.raises(UnreachableError, match="Unspecified error"):  # all that a 22.05 says of it
            await transport.nodes()


async def test_nobody_listens(tmp_path: Path) -> None:
    async with served(web.Application()) as origin:
        pass
    async with aiohttp.ClientSession() as session:
        with pytest.raises(UnreachableError, match="no answer"):
            await RestTransport(session, RestEndpoint(origin, "slurm", _token(tmp_path))).nodes()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "http://slurm.example:6820"}, "would carry the token readably"),
        ({"url": "ftp://x"}, "not an address of slurmrestd"),
        ({"url": "https://u:p@x"}, "not an address of slurmrestd"),
        ({"api": "v0.0.39"}, "v0.0.40"),
        ({"api": "v0.0.40/../x"}, "v0.0.40"),
        ({"user": "a\r\nb"}, "not the name of a Slurm user"),
    ],
)
async def test_what_could_not_work_is_refused_at_once(given: dict[str, str], says: str) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(RefusedError, match=says):
            RestTransport(session, replace(RestEndpoint("https://x", "slurm", "t"), **given))


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [("x" * 20, 0o644, "others can read"), ("", 0o600, "holds no token"), ("a\r\nX-Evil: 1", 0o600, "holds no token")],
)
async def test_a_token_that_is_none_is_not_sent(tmp_path: Path, text: str, mode: int, says: str) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    path.chmod(mode)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(RefusedError, match=says):
            await RestTransport(session, RestEndpoint("https://x.invalid", "slurm", str(path))).nodes()


# the document


def test_a_document() -> None:
    found = parse(
        "train.yaml",
        """
        commands: {slurm_conf: /etc/slurm/slurm.conf, timeout_s: 5}
        classes: {qos: {low: interruptible}, partition: {debug: graceful}}
        grace_s: 120
        """,
    )
    assert found.commands == Commands("/etc/slurm/slurm.conf", timeout_s=5)
    assert found.manner.lens.classes.qos == {"low": WorkClass.interruptible}
    assert (found.manner.grace_s, found.manner.stale_s) == (120, 20)
    assert parse("x", "") == SlurmSettings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "write YAML"),
        ("[]", "Expected `object`"),
        ("comands: {}", "unknown field `comands`"),
        ("commands: {shell: true}", "unknown field `shell`"),
        ("classes: {qos: {low: sometimes}}", "Invalid enum value 'sometimes'"),
        ("commands: {timeout_s: 0}", "take 1 to 60 seconds"),
        ("period_s: .nan", "take 0.5 to 60 seconds"),
        ("grace_s: -1", "take 0 to 86400 seconds"),
        ("commands: {}\nrest: {url: 'https://x', user: u, token_file: t}", "keep one of them"),
        ("rest: {url: 'https://x', user: u, token_file: t}\nreboots: true", "not asked for them"),
        ("x" * 70_000, "at most"),
    ],
)
def test_a_document_is_refused_whole(text: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        parse("train.yaml", text)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["ci=nowhere.yaml"], "nowhere.yaml"),
        (["ci=ci.yaml"], "would carry the token readably"),
        (["=x"], "each cluster needs a name of its own"),
        (["a b"], "each cluster needs a name of its own"),
        (["ci", "ci"], "each cluster needs a name of its own"),
    ],
)
async def test_a_cluster_that_cannot_be_used_keeps_the_cell_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ci.yaml").write_text("rest: {url: 'http://slurm.example:6820', user: u, token_file: t}\n")
    async with AsyncExitStack() as stack:
        with pytest.raises(InvalidInputError, match=says):
            await slurm_clusters(given, Gate(), stack)


async def test_slurm_reboots_where_it_is_told_to_and_agents_do_elsewhere() -> None:
    """Mutant: every reboot goes to Slurm, or none."""
    asked: list[str] = []
    own = SlurmScheduler("k1", SlurmTwin(), lambda: None, lambda: NOW, SlurmMethod(reboots=True))
    for clusters, says in (([own], "not idle and drained by us"), ([_scheduler(SlurmTwin())], ""), ([], "")):
        rebooter = Rebooter(clusters, lambda: _Agents(asked))
        if says:
            with pytest.raises(RefusedError, match=says):
                await rebooter.perform(_operation("reboot"), _node("gpu001"))
        else:
            assert (await rebooter.perform(_operation("reboot"), _node("gpu001"))).result == "done"
    assert asked == ["perform", "perform"]
    with pytest.raises(UnreachableError, match="has not started"):
        await Rebooter([], lambda: None).observe(_operation("reboot"), _node("gpu001"))


async def test_a_lifted_cordon_that_is_being_set_anew_is_no_second_override() -> None:
    """The hold would come back whenever it is released. Mutant: the operation under way is not looked at."""
    fleet = Fleet()
    member = a_node("n", cordons=("hostler",))
    seen = WorkSeen((WorkloadView("n", (), cordoned=False, overridden="ann"),), cluster="k1")
    fleet.nodes.put("n", member)
    assert [event.hold.owner for event in of_override(fleet, seen, NOW)] == ["ann"]
    fleet.nodes.put("n", replace(member, operation=_operation("cordon")))
    assert list(of_override(fleet, seen, NOW)) == []


# builders


class _Agents:
    """The agents' hand."""

    kinds = frozenset({"reboot"})

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self._asked.append("perform")
        return Outcome(operation.id, node.id, "done")

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return Outcome(operation.id, node.id, "done")

    async def revoke(self, operation: Operation, node: Node) -> None:
        self._asked.append("revoke")


class _Moody(SlurmTwin):
    """A model that counts how often it is read, waits where it is told to, and fails in a mood."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.mood: PortError | None = None
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def jobs(self) -> tuple[SlurmJob, ...]:
        self.reads += 1
        if self.mood is not None:
            raise self.mood
        found = await super().jobs()
        self.begun.set()
        await self.gate.wait()
        return found


def _scheduler(twin: SlurmTwin) -> SlurmScheduler:
    return SlurmScheduler("k1", twin, lambda: None, lambda: NOW)


def _operation(kind: str) -> Operation:
    return Operation("o1", an_act(kind), "n", "p", 0, NOW, NOW)


def _node(name: str) -> Node:
    return a_node("n", bindings=(Binding("slurm", name, NOW),))


def _token(folder: Path) -> str:
    path = folder / "token"
    path.write_text("a.token.that.is.long.enough")
    path.chmod(0o600)
    return str(path)


def _fake(folder: Path, command: str, body: str, version: str = OLD) -> None:
    """A command of Slurm's that says its version, and otherwise does this."""
    path = folder / command
    path.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}' && exit\n{body}\n")
    path.chmod(0o755)


def _running(folder: Path) -> list[str]:
    """The processes that a fake command has left."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found += [line] if str(folder) in line else []
    return found
