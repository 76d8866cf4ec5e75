"""The command line against a real cell: controller, journal on disk, tokens and HTTP server. No drivers, no agents."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hostler.agent.controller_client import About, ControllerClient
from hostler.agent.machine import ANSWERED, NEED_PERMISSION
from hostler.agent.node_operations import KNOWN_KINDS, PROFILES
from hostler.cli import server_contexts
from hostler.cli.exit_codes import ExitCode
from hostler.core.state.live_state import AgentVerbs
from hostler.journal.sqlite import SqliteJournal
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.app import create_app
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.server.uvicorn_server import serving
from tests.cli_api import hostler

PATIENCE_S = 60.0
FLEET = """
skus:
  h100: {gpus: 8}
pools:
  train: {sku: h100, target: 2, tenant: t, cluster: k1, modes: {"*": act}}
"""
NODES = """
- {id: n1, sku: h100, serial: S1, hostname: gpu-1, rack: r1}
- {id: n2, sku: h100, serial: S2, hostname: gpu-2, rack: r1}
"""


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[str]:
    """A cell with its server; its address."""
    journal, tokens = SqliteJournal(data / "journal.db"), TokenStore(data / "tokens.db")
    tokens.bootstrap(data / "operator.token")
    cell = Cell(journal, {})
    mailboxes = AgentMailboxes(lambda: cell.epoch)
    config = Settings(port=0)
    try:
        await cell.start()
        async with serving(create_app(cell, tokens, mailboxes, config), config) as address:
            yield address
    finally:
        await cell.stop()
        tokens.close()
        journal.close()


@pytest.fixture
async def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    """The data directory of a running cell with a policy and two nodes, which commands find by the context file."""
    for name in ("HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.chdir(tmp_path)
    policy = files("hostler.core.policy").joinpath("default_policy.yaml").read_text()
    for name, text in (("policy.yaml", policy), ("fleet.yaml", FLEET), ("nodes.yaml", NODES)):
        (tmp_path / name).write_text(text)
    async with running(tmp_path) as address:
        server_contexts.use("up", server_contexts.Context(address, str(tmp_path / "operator.token")))
        assert await call("policy", "activate", "policy.yaml", "fleet.yaml", "--reason", "first") == ExitCode.ok
        assert await call("node", "register", "nodes.yaml", "--reason", "row 1") == ExitCode.ok
        yield tmp_path


async def call(*arguments: str) -> ExitCode:
    """The command line in a thread: the server needs this one."""
    return await asyncio.to_thread(hostler, *arguments)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command that must succeed, and give its JSON."""

    async def of(*arguments: str) -> Any:
        capsys.readouterr()
        code = await call(*arguments, "-o", "json")
        said = capsys.readouterr()
        assert code == ExitCode.ok, said.err
        return json.loads(said.out)

    return of


async def test_every_look_shows_what_the_cell_knows(data: Path, say: Callable[..., Any]) -> None:
    assert [node["id"] for node in (await say("node", "list"))["items"]] == ["n1", "n2"]
    assert (await say("node", "get", "S1"))["node"]["id"] == "n1"
    history = (await say("node", "history", "gpu-2"))["items"]
    assert history[0]["name"] == "node_registered"
    assert (await say("node", "explain", "n1"))["node"] == "n1"
    assert (await say("status"))["nodes"] == 2
    (pool,) = (await say("pool", "list"))["items"]
    assert (pool["pool"]["name"], pool["reserved"], pool["delivered"]) == ("train", 2, 0)
    assert (await say("policy", "show"))["skus"].keys() == {"h100"}
    for words in ("plan list", "hold list", "ticket list", "part list", "asset list", "maintenance list"):
        await say(*words.split())
    for words in (
        "node conditions n1",
        "node conditions",
        "node waiting",
        "node agents",
        "node observations n1",
        "pool get train",
    ):
        await say(*words.split())


async def test_every_look_is_also_for_people(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("status", "status --handover", "node list -o wide", "node get n1 -o wide", "node explain n1"):
        capsys.readouterr()
        assert await call(*words.split()) == ExitCode.ok
        said = capsys.readouterr()
        assert said.err == ""
        assert len(said.out.splitlines()) >= 1


async def test_a_hold_is_placed_seen_explained_and_released(
    data: Path, say: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert await call("hold", "place", "gpu-1", "--hours", "2", "--reason", "recabling") == ExitCode.ok
    (hold,) = (await say("hold", "list"))["items"]
    assert (hold["scope"], hold["owner"], hold["reason"]) == ("n1", "bootstrap", "recabling")
    assert await call("node", "get", "n1") == ExitCode.ok
    assert "recabling" in capsys.readouterr().out
    assert await call("hold", "release", hold["id"], "--reason", "done") == ExitCode.ok
    assert (await say("hold", "list"))["items"] == []


async def test_a_dry_run_records_nothing_and_a_key_makes_it_once(data: Path, say: Callable[..., Any]) -> None:
    seq = (await say("status"))["seq"]
    assert await call("pause", "fleet", "--reason", "drill", "--dry-run") == ExitCode.ok
    assert (await say("status"))["paused"] == []
    assert await call("hold", "place", "n1", "--reason", "once", "--key", "k1") == ExitCode.ok
    assert await call("hold", "place", "n1", "--reason", "once", "--key", "k1") == ExitCode.ok
    assert len((await say("hold", "list"))["items"]) == 1
    assert (await say("status"))["seq"] >= seq


async def test_refusals_say_why_and_have_their_exit_status(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await call("node", "reboot", "n1", "--reason", "r") == ExitCode.refused
    assert "for nodes in production" in capsys.readouterr().err
    assert await call("node", "get", "n9") == ExitCode.not_found
    assert await call("brake", "release", "--reason", "r") == ExitCode.refused
    (data / "bad.yaml").write_text("policy: {rules: {x: {remedy: dance}}, rungs: {}}")
    assert await call("policy", "activate", "bad.yaml", "--reason", "r") == ExitCode.usage
    assert "bad.yaml:1" in capsys.readouterr().err
    (data / "again.yaml").write_text("- {sku: h100, serial: S1}")
    assert await call("node", "register", "again.yaml", "--reason", "r") == ExitCode.usage
    assert "nodes[0]: serial:S1 is bound to n" in capsys.readouterr().err
    (data / "typo.yaml").write_text("- {sku: h100, seriall: S9}")
    assert await call("node", "register", "typo.yaml", "--reason", "r") == ExitCode.usage
    said = capsys.readouterr().err
    assert "typo.yaml: no such field: `seriall` - at `nodes[0]`" in said
    assert "`hostler node register --help` names the fields" in said


async def test_a_token_made_here_opens_as_much_as_its_role(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--data", str(data))
    assert await call("token", "create", "--role", "viewer", "--name", "vera", *at) == ExitCode.ok
    token = capsys.readouterr().out.strip()
    monkeypatch.setenv("HOSTLER_TOKEN", token)
    assert await call("node", "list") == ExitCode.ok
    assert await call("node", "cordon", "n1", "--reason", "r") == ExitCode.unauthorised
    assert await call("token", "revoke", token.split("_")[1], *at) == ExitCode.ok
    assert await call("node", "list") == ExitCode.unauthorised


@pytest.mark.parametrize(
    ("interrupts", "ends_with", "code"),
    [("--default-signal=INT", signal.SIGINT, ExitCode.interrupted), ("--ignore-signal=INT", signal.SIGTERM, -15)],
)
async def test_watching_shows_a_change_and_ends_with_control_c(
    data: Path, interrupts: str, ends_with: signal.Signals, code: int
) -> None:
    """The event stream of the real server, in a process of its own; what is placed once the list is there is shown.

    A shell starts its background jobs with Ctrl-C ignored: whoever started it that way ends it with SIGTERM.
    """
    store = TokenStore(data / "tokens.db")
    token = store.create(Grant("vera", Role.viewer))
    store.close()
    await call("hold", "place", "n1", "--reason", "there before")
    watching = await asyncio.create_subprocess_exec(
        *("env", interrupts, sys.executable, "-m", "hostler.cli.main", "hold", "list", "-w", "-o", "json"),
        env={**os.environ, "HOSTLER_TOKEN": token, "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert watching.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert json.loads(await watching.stdout.readline())["reason"] == "there before"
            await call("hold", "place", "n1", "--reason", "seen by who watches")
            assert json.loads(await watching.stdout.readline())["reason"] == "seen by who watches"
        if ends_with is signal.SIGTERM:
            watching.send_signal(signal.SIGINT)
        watching.send_signal(ends_with)
        _, errors = await watching.communicate()
        assert (watching.returncode, errors) == (code, b"")
    finally:
        if watching.returncode is None:
            watching.kill()
            await watching.wait()


async def test_a_journal_is_sound_until_somebody_changes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path):
        pass
    path = str(tmp_path / "journal.db")
    assert await call("journal", "check", path) == ExitCode.ok
    with sqlite3.connect(path) as database:
        database.execute("UPDATE records SET body = zeroblob(length(body)) WHERE seq = 1")
    database.close()
    capsys.readouterr()
    assert await call("journal", "check", path) == ExitCode.unsound
    assert "NOT SOUND" in capsys.readouterr().out
    assert await call("journal", "check", path, "-o", "json") == ExitCode.unsound
    assert json.loads(capsys.readouterr().out)["sound"] is False


async def test_doctor_nodes_names_what_cannot_be_done_and_the_explanation_says_it(
    data: Path, say: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nodes without a BMC, one of them with an agent that may not act. Mutants: unknown is listed; a node is not."""
    await hears(data, "n1", ("gate",), AgentVerbs(KNOWN_KINDS, NEED_PERMISSION))
    capsys.readouterr()
    assert await call("doctor", "nodes", "-o", "json") == ExitCode.unsound
    rows = json.loads(capsys.readouterr().out)["items"]
    said = {(row["name"], row["text"].partition(":")[0]) for row in rows}
    assert ("n1", "the agent of n1 was started without --allow-actions") in said
    assert {row["name"] for row in rows if "reboot" in row["text"]} == {"n1"}, "nobody knows of n2's agent yet"
    assert all(row["instead"] for row in rows)
    told = await say("node", "explain", "n1")
    assert any("--allow-actions" in one for one in told["cannot"])


async def hears(data: Path, node: str, profiles: tuple[str, ...], verbs: AgentVerbs | None = None) -> None:
    """The node's agent says by its own client which checks it has."""
    store = TokenStore(data / "tokens.db")
    token = data / f"{node}.token"
    token.write_text(store.create(Grant(f"agent-{node}", Role.agent, node=node)))
    token.chmod(0o600)
    store.close()
    async with aiohttp.ClientSession() as session:
        await ControllerClient(session, server_contexts.read().of().server, token, node).heartbeat(
            "b1",
            About(
                "1.0",
                profiles=profiles,
                verbs=verbs.known if verbs is not None else None,
                barred=verbs.barred if verbs is not None else (),
            ),
        )


async def test_doctor_pool_names_the_checks_that_real_agents_lack(
    data: Path, say: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside one that has all and one that has said nothing. Mutants: spares are left out; unsaid counts as had; an
    unknown pool has nothing wrong."""
    await hears(data, "n1", tuple(sorted(ANSWERED)))
    capsys.readouterr()
    assert await call("doctor", "pool", "train", "-o", "json") == ExitCode.unsound
    said = json.loads(capsys.readouterr().out)["items"]
    rows = {(row["name"], row["text"].partition(";")[0]) for row in said}
    for profile in ("suspect", "burn_in"):
        assert (profile, "1 of 2 agents do not have it (n1)") in rows
    assert ("gate", "1 of 2 agents have not said whether they have it (n2)") in rows
    for node in ("n1", "n2"):
        await hears(data, node, tuple(sorted(PROFILES)))
    assert not [row for row in (await say("doctor", "pool", "train"))["items"] if row["bad"]]
    assert await call("doctor", "pool", "nowhere") == ExitCode.usage
