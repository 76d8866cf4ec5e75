"""Hostile input: every wrong thing is answered with a problem, none with a traceback, and the server goes on."""

import asyncio
import re
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from hostler.logs.structured import formatter
from hostler.server.routes import cell as cell_routes
from tests.contract.api_world import PATIENCE_S, House, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside
        assert (await inside.operator.get("/v1/status"))["ok"]


async def post_raw(world: House, path: str, data: Any, **headers: str) -> tuple[int, Any]:
    sent = {"Authorization": f"Bearer {world.operator.token}", "Content-Type": "application/json", **headers}
    async with world.session.post(world.url + path, data=data, headers=sent) as answer:
        assert answer.headers["Content-Type"] == "application/problem+json"
        return answer.status, await answer.json(content_type=None)


DEEP = b'{"act":' + b"[" * 50_000
DEEP_YAML = "policy: " + "[" * 2_000


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 400),
        (b"\x00", 400),
        (b"{", 400),
        (b'{"act": {"verb": "pause"', 400),
        (b"\xff\xfe{}", 400),
        (b'{"act": {"verb": "\xc3\x28"}, "target": "fleet", "reason": "x"}', 400),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "\\ud800"}', 400),
        (DEEP, 422),
        (b'{"act": {"verb": ' + b'{"a":' * 50_000, 422),
        (b'{"act": {"verb": "pause", "a": ' + b"[" * 50_000, 422),
        (b'{"act": ["pause"], "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {}, "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {"verb": null}, "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {"verb": "hold", "hours": "2"}, "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {"verb": "hold", "hours": 1e400}, "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {"verb": "hold", "hours": NaN}, "target": "fleet", "reason": "x"}', 400),
        (b'{"act": {"verb": "hold", "hours": 1' + b"0" * 5_000 + b'}, "target": "fleet", "reason": "x"}', 422),
        (b"[]", 422),
        (b"null", 422),
        (b'{"act": {"verb": 1}, "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": ""}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x", "dry_run": "false"}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x", "dry_run": 1}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x", "admin": true}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "' + b"x" * 501 + b'"}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x", "args": {"a": 1}}', 422),
        (
            b'{"act": {"verb": "release-restore", "unheard": 1' + b"0" * 30 + b'}, "target": "fleet", "reason": "x"}',
            422,
        ),
        (b'{"act": {"verb": "pause", "a": 1}, "target": "fleet", "reason": "x"}', 422),
        (b'{"verb": "pause", "target": "fleet", "reason": "x"}', 422),
        (b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x", "key": "' + b"k" * 101 + b'"}', 422),
    ],
)
async def test_a_bad_body_is_a_problem(world: House, data: bytes, status: int) -> None:
    got, problem = await post_raw(world, "/v1/intents", data)
    assert got in (status, 400, 422), problem
    assert got == status or len(data) > 10_000, problem
    assert set(problem) >= {"error", "title", "status", "detail", "instead"}
    assert "Traceback" not in str(problem)


async def test_a_huge_body_is_not_read_to_its_end(world: House) -> None:
    status, problem = await post_raw(world, "/v1/intents", BytesIO(b"x" * (1024 * 1024 + 1)))
    assert (status, problem["error"]) == (413, "too_large")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    try:
        async with asyncio.timeout(PATIENCE_S):
            status, _ = await post_raw(world, "/v1/config", endless())
            assert status == 413
    except aiohttp.ClientError:
        pass  # the server hung up on it, which is as good


async def test_an_anonymous_body_is_not_read_at_all(world: House) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": str(10**12)}
    asked = world.session.post(world.url + "/v1/intents", headers=headers, data=b"x")
    async with asyncio.timeout(PATIENCE_S), asked as answer:
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("documents", [{"a.yaml": "a: &x [*x]"}, {"a.yaml": "\x00"}, {"a.yaml": "- 1"}, {}, {"a": 1}])
async def test_bad_documents_are_refused_whole(world: House, documents: Any) -> None:
    status, body = await world.operator.post("/v1/config", {"documents": documents, "reason": "x"})
    assert status == 422, body


async def test_deep_documents_are_refused(world: House) -> None:
    status, body = await world.operator.post("/v1/config", {"documents": {"a.yaml": DEEP_YAML}, "reason": "x"})
    assert status in (400, 422), body


@pytest.mark.parametrize(
    "path",
    [
        "/console/../auth.py", "/console/..%2fauth.py", "/console/%2e%2e/auth.py", "/console//etc/passwd",
        "/console/..%5c..%5cauth.py", "/console/%00", "/console/vendor", "/console/", "/console/vendor/VENDOR.md",
        "/v1/nodes/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/nodes/%00", "/v1/parts/..%2f..", "/v1/nodes/" + "x" * 5000,
        "/v1/nodes/n0'%20OR%201=1--/history", "/v1/tickets/../../healthz/x", "/.env", "/v1/nodes/n/history?before=0",
        f"/v1/nodes/n/history?before={2**63}",
        f"/v1/nodes/n/history?before={2**64}", "/v1/parts/p?before=1" + "0" * 30,
        "/v1/nodes?cursor=" + "x" * 201, "/v1/nodes?limit=1001", "/v1/nodes?limit=-1",
        "/v1/nodes?phase=../", "/v1/map?limit=10001", "/v1/agent/operations?node=n0&wait_s=nan",
    ],
)  # fmt: skip
async def test_path_tricks_and_odd_parameters_are_problems(world: House, path: str) -> None:
    headers = {"Authorization": f"Bearer {world.operator.token}"}
    async with world.session.get(URL(world.url + path, encoded=True), headers=headers) as answer:
        body = await answer.json(content_type=None)
        assert answer.status in (400, 403, 404), (path, body)
        assert set(body) >= {"error", "title", "status", "detail", "instead"}
        assert "root:" not in str(body)


@pytest.mark.parametrize("cursor", ["%00", "zzz", "é", "n0/../"])
async def test_any_cursor_gives_a_page(world: House, cursor: str) -> None:
    assert (await world.operator.get(f"/v1/nodes?cursor={cursor}"))["items"] == []


async def test_a_request_for_another_name_is_refused(world: House) -> None:
    """Mutant: no HostFence; a page that rebinds its DNS name to 127.0.0.1 reaches the server as its own origin."""
    for path in ("/", "/v1/nodes", "/healthz"):
        async with world.session.get(world.url + path, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 421, path
    async with world.session.get(world.url + "/healthz", headers={"Host": "localhost:1"}) as answer:
        assert answer.status == 200


async def test_another_sites_page_may_not_act(world: House) -> None:
    body = b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x"}'
    status, problem = await post_raw(world, "/v1/intents", body, Origin="https://evil.example")
    assert (status, problem["error"]) == (403, "forbidden")
    status, _ = await post_raw(world, "/v1/intents", body, Origin="null")
    assert status == 403
    assert world.cell.view.cell.paused == ()


async def test_every_answer_carries_the_security_headers(world: House) -> None:
    for path in ("/", "/healthz", "/v1/nodes", "/nope", "/console/main.js", "/schema/openapi.json"):
        async with world.session.get(world.url + path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy, path
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert "Server" not in answer.headers
            assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_bug_is_told_without_its_inside(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the secret inside")

    monkeypatch.setattr(cell_routes, "status", broken)
    status, body = await world.operator.call("GET", "/v1/status")
    monkeypatch.undo()
    assert (status, body["error"]) == (500, "internal")
    assert "secret" not in str(body)


async def test_the_tokens_file_is_private_and_no_token_is_in_the_journal(world: House, tmp_path: Path) -> None:
    await world.adopt(1)
    secret = world.operator.token.split("_", 2)[2]
    assert secret not in str(list(world.cell.journal.records()))
    assert (tmp_path / "tokens.sqlite").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("told", "kept"), [("build-7.a", True), ("x" * 65, False), ("a b", False), ("id=evil", False)])
async def test_a_request_has_a_name_that_its_log_lines_carry(
    world: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, told: str, *, kept: bool
) -> None:
    """A plain name is kept, anything else replaced. Mutants: any name is taken; lines do not carry it."""

    async def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(world.cell, "ask", broken)
    caplog.handler.setFormatter(formatter(json=False))
    data = b'{"act": {"verb": "pause"}, "target": "fleet", "reason": "x"}'
    sent = {"Authorization": f"Bearer {world.operator.token}", "X-Request-Id": told}
    async with world.session.post(f"{world.url}/v1/intents", data=data, headers=sent) as answer:
        name = answer.headers["X-Request-Id"]
        assert answer.status == 500
    assert (name == told) is kept
    assert re.fullmatch(r"[A-Za-z0-9.-]{1,64}", name)
    assert f"event=request_failed request={name} path=/v1/intents\n  | Traceback" in caplog.text
