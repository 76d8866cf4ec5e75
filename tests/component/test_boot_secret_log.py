"""A boot's secret is part of the address that its machine asks for, and stands in no log line."""

import io
import logging
from typing import Any

import aiohttp

from hostler.core.boot.secrets import DOOR, secret_of
from hostler.logs import structured
from hostler.ports import JournalError
from hostler.server.boot.boot_answers import BootAnswers
from tests.contract.boot_world import boot_listening


class DownRequests:
    """Boot requests of a controller whose journal does not answer."""

    boots = None

    def __getattr__(self, name: str) -> object:
        async def fail(*_: object, **__: object) -> None:
            raise JournalError("the journal is down")

        return fail


async def test_a_request_that_cannot_be_answered_leaves_its_route_and_not_its_secret() -> None:
    """Mutant: the line tells `path=request.path`, as it did."""
    requests: Any = DownRequests()
    secret, stream = secret_of(b"k" * 32, "n1", "p1", DOOR), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structured.formatter(json=True))
    house = logging.getLogger("hostler")
    house.addHandler(handler)
    try:
        listening = boot_listening(BootAnswers(requests).answer, "127.0.0.1", 0)
        async with listening as url, aiohttp.ClientSession() as client:
            for last in ("script", "ci/user-data"):
                async with client.get(f"{url}/n/n1/{secret}/{last}") as answer:
                    assert answer.status == 503
    finally:
        house.removeHandler(handler)
    assert stream.getvalue().count("boot_request_not_answered") == 2
    assert "/n/{node}/{secret}/script" in stream.getvalue()
    assert secret not in stream.getvalue()
