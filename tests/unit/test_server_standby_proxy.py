"""Carrying a request to the active controller: what is left behind, and never over plain HTTP to another machine."""

import asyncio
from typing import Any, cast

import pytest
from litestar.types import HTTPScope

from hostler.server import standby_proxy
from hostler.server.problems import ProblemError
from hostler.server.server_settings import Settings
from hostler.server.standby_proxy import Forwarder


def scope(*headers: tuple[bytes, bytes], method: str = "POST") -> HTTPScope:
    given: Any = {
        "type": "http",
        "method": method,
        "raw_path": b"/v1/intents",
        "query_string": b"a=1",
        "headers": list(headers),
        "state": {"request_id": "r-1"},
    }
    return cast("HTTPScope", given)


async def nothing() -> Any:
    raise AssertionError("nobody reads the body")


async def told(_: Any) -> None:
    raise AssertionError("nothing is answered")


@pytest.mark.parametrize("address", ["http://10.0.0.9:8440", "http://controller-a", "ftp://127.0.0.1", "nonsense"])
async def test_a_token_is_never_shown_to_the_network(address: str) -> None:
    """Mutant: carry it wherever the lease says."""
    forwarder = Forwarder(Settings(), "b")
    with pytest.raises(ProblemError) as refused:
        await forwarder.carry(scope((b"authorization", b"Bearer x")), nothing, told, lambda: address)
    assert refused.value.status == 503
    assert forwarder.counts == {"unsafe": 1}


async def test_where_nobody_answers_the_caller_is_told_whom_to_ask() -> None:
    forwarder = Forwarder(Settings(), "b")
    with pytest.raises(ProblemError) as refused:
        await forwarder.carry(scope(), _waits, told, lambda: "http://127.0.0.1:1")
    assert refused.value.status == 503
    assert refused.value.problem.facts == {"active": "http://127.0.0.1:1"}
    assert "http://127.0.0.1:1" in refused.value.problem.instead
    assert int(refused.value.headers["Retry-After"]) >= 1
    await forwarder.close()


def test_what_belongs_to_the_hop_stays_on_the_way() -> None:
    """Mutant: hand on what `Connection` names."""
    kept = standby_proxy._kept(  # noqa: SLF001 - what is sent is what is judged
        scope(
            (b"Host", b"b.example"),
            (b"Connection", b"close, X-Hop"),
            (b"X-Hop", b"1"),
            (b"Transfer-Encoding", b"chunked"),
            (b"Origin", b"https://b.example"),
            (b"Authorization", b"Bearer hst_x"),
            (b"Idempotency-Key", b"k"),
            (b"Hostler-Forwarded-By", b"me"),
        )
    )
    assert kept == [("authorization", "Bearer hst_x"), ("idempotency-key", "k")]


async def _waits() -> Any:
    await asyncio.Event().wait()
