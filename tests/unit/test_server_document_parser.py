"""Documents are parsed beside the event loop, within a time: what a process finds is what a thread finds."""

import asyncio
import time

import pytest

from hostler.core.policy import documents
from hostler.core.state.input_problems import InvalidInputError
from hostler.runtime.input_queues import BusyError
from hostler.server.document_parser import THREAD_MAX, WAITING_MAX, DocumentParser
from tests.kit import POLICY

PADDING = "# " + "x" * THREAD_MAX + "\n"
POOLS = "skus: {a: {gpus: 8}}\npools: {train: {sku: a, target: 1}}\n"


async def test_a_process_reads_what_a_thread_reads() -> None:
    """Mutant: the process answers with a configuration that lost its digest or its enums on the way."""
    small, large = {"p.yaml": POLICY, "q.yaml": POOLS}, {"p.yaml": POLICY, "q.yaml": PADDING + POOLS}
    parser = DocumentParser()
    assert await parser.parse(small) == documents.parse(small)
    assert await parser.parse(large) == documents.parse(large)


async def test_what_a_process_finds_wrong_is_told_by_file_and_line() -> None:
    with pytest.raises(InvalidInputError, match=r"q.yaml:3: pool 'train' names the unknown SKU 'b'"):
        await DocumentParser().parse({"p.yaml": POLICY, "q.yaml": PADDING + POOLS.replace("sku: a", "sku: b")})


async def test_who_takes_too_long_is_killed_and_the_loop_goes_on_meanwhile() -> None:
    """Mutant: the time is not limited."""
    slow = {"p.yaml": POLICY, "q.yaml": "pools: [" + "[],[],{},\n" * 6_000 + "]\n" + PADDING}
    with pytest.raises(InvalidInputError, match=r"not parsed within"):
        await DocumentParser(time_s=0.01).parse(slow)


async def test_documents_larger_than_a_mib_together_are_refused_unread() -> None:
    began = time.process_time()
    with pytest.raises(InvalidInputError, match="bytes in all"):
        await DocumentParser().parse({f"{n}.yaml": "#" * 300_000 for n in range(4)})
    assert time.process_time() - began < 0.5


async def test_one_at_a_time_and_few_wait() -> None:
    """Mutant: nobody counts who waits, and each waiting request keeps its documents in memory."""
    parser = DocumentParser()
    asked = [asyncio.ensure_future(parser.parse({"p.yaml": POLICY})) for _ in range(WAITING_MAX + 4)]
    came = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(one, BusyError) for one in came) == 3
    assert sum(isinstance(one, BaseException) for one in came) == 3
