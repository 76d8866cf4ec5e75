"""The agents' desk: orders wait, are fetched, repeated, revoked, and end with their outcome or their deadline."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from hostler.core.state.assets import Position
from hostler.core.state.model import Node, Operation, Outcome, Phase
from hostler.ports import OperationDriver, UnreachableError
from hostler.server import agent_mailbox as desks
from hostler.server.agent_mailbox import ORDERS_MAX, AgentMailboxes
from tests.acts import an_act

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Node("n1", Position("c1"), "h100", Phase.production, NOW, NOW)


def operation(name: str = "o1", kind: str = "reboot", seconds: float = 30.0, attempt: int = 1) -> Operation:
    return Operation(name, an_act(kind), "n1", "p1", 0, NOW, NOW + timedelta(seconds=seconds), attempt=attempt)


def done(name: str = "o1", result: str = "done", attempt: int = 1) -> Outcome:
    return Outcome(name, "n1", result, attempt=attempt)


@pytest.fixture
def mailboxes() -> AgentMailboxes:
    return AgentMailboxes(lambda: 7, lambda: NOW)


async def asked(
    mailboxes: AgentMailboxes, act: Callable[[Operation, Node], object], one: Operation
) -> "asyncio.Task[Outcome]":
    task: asyncio.Task[Outcome] = asyncio.create_task(act(one, NODE))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    return task


async def test_an_order_is_fetched_and_answered(mailboxes: AgentMailboxes) -> None:
    driver: OperationDriver = mailboxes
    task = await asked(mailboxes, driver.perform, operation())
    (order,) = await mailboxes.collect("n1", 0)
    assert (order.operation.id, order.epoch, order.mode, order.left_s) == ("o1", 7, "perform", 30.0)
    assert mailboxes.answer(done())
    assert (await task).result == "done"
    assert await mailboxes.collect("n1", 0) == ()


async def test_a_waiting_agent_has_it_at_once(mailboxes: AgentMailboxes) -> None:
    poll = asyncio.create_task(mailboxes.collect("n1", 20))
    await asyncio.sleep(0)
    task = await asked(mailboxes, mailboxes.perform, operation())
    assert len(await asyncio.wait_for(poll, 30)) == 1
    mailboxes.answer(done())
    await task


async def test_no_order_is_handed_out_while_nothing_may_be_sent() -> None:
    """Mutant: a desk that does not ask; a controller that was replaced still gives orders."""
    may = [False]
    mailboxes = AgentMailboxes(lambda: 7, lambda: NOW, lambda: may[0])
    task = await asked(mailboxes, mailboxes.perform, operation())
    assert await mailboxes.collect("n1", 0) == ()
    may[0] = True
    assert len(await mailboxes.collect("n1", 0)) == 1
    mailboxes.answer(done())
    await task


async def test_who_waits_is_sent_away_when_orders_are_given_elsewhere(mailboxes: AgentMailboxes) -> None:
    poll = asyncio.create_task(mailboxes.collect("n1", 20))
    await asyncio.sleep(0)
    mailboxes.send_away()
    assert await asyncio.wait_for(poll, 30) == ()
    task = await asked(mailboxes, mailboxes.perform, operation())
    assert len(await mailboxes.collect("n1", 0)) == 1, "the desk goes on"
    mailboxes.answer(done())
    await task


async def test_other_nodes_get_nothing(mailboxes: AgentMailboxes) -> None:
    task = await asked(mailboxes, mailboxes.perform, operation())
    assert await mailboxes.collect("n2", 0) == ()
    assert not mailboxes.answer(Outcome("o1", "n2", "done"))
    mailboxes.answer(done())
    await task


async def test_a_lost_order_is_repeated_later_but_not_at_once(
    mailboxes: AgentMailboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: hand it out at every poll; an agent in a two-day burn-in then polls every second."""
    task = await asked(mailboxes, mailboxes.perform, operation())
    assert await mailboxes.collect("n1", 0)
    assert await mailboxes.collect("n1", 0) == ()
    monkeypatch.setattr(desks, "REPEAT_S", 0.05)
    assert await mailboxes.collect("n1", 1)
    mailboxes.answer(done())
    await task


async def test_without_an_outcome_the_deadline_ends_it(
    mailboxes: AgentMailboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "OVERDUE_S", 0.01)
    with pytest.raises(UnreachableError, match="never asked"):
        await mailboxes.perform(operation(seconds=0.01), NODE)
    task = await asked(mailboxes, mailboxes.perform, operation(seconds=0.05))
    await mailboxes.collect("n1", 0)
    with pytest.raises(UnreachableError, match="has not answered"):
        await task


async def test_an_order_that_was_never_fetched_is_taken_back(mailboxes: AgentMailboxes) -> None:
    task = await asked(mailboxes, mailboxes.perform, operation())
    await mailboxes.revoke(operation(), NODE)
    assert (await task).result == "refused"
    assert await mailboxes.collect("n1", 0) == ()


async def test_a_fetched_order_is_called_off_by_its_agent_and_not_repeated(
    mailboxes: AgentMailboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: leave the fetched order in the mailbox; the agent is handed it again after it was revoked."""
    task = await asked(mailboxes, mailboxes.perform, operation())
    await mailboxes.collect("n1", 0)
    revoking = asyncio.create_task(mailboxes.revoke(operation(), NODE))
    await asyncio.sleep(0)
    monkeypatch.setattr(desks, "REPEAT_S", 0.0)
    assert [o.mode for o in await mailboxes.collect("n1", 0)] == ["revoke"]
    assert not task.done()
    assert mailboxes.answer(done(result="revoked"))
    await revoking
    assert not task.done()
    mailboxes.answer(done(result="failed"))
    assert (await task).result == "failed"


async def test_not_done_answers_the_observation_only(mailboxes: AgentMailboxes) -> None:
    performing = await asked(mailboxes, mailboxes.perform, operation())
    observing = await asked(mailboxes, mailboxes.observe, operation())
    assert [o.mode for o in await mailboxes.collect("n1", 0)] == ["perform", "observe"]
    assert mailboxes.answer(done(result="not_done"))
    assert (await observing).result == "not_done"
    assert not performing.done()
    mailboxes.answer(done())
    await performing


async def test_an_outcome_of_another_attempt_is_not_taken(mailboxes: AgentMailboxes) -> None:
    task = await asked(mailboxes, mailboxes.perform, operation(attempt=2))
    assert not mailboxes.answer(done(attempt=1))
    assert mailboxes.answer(done(attempt=2))
    await task


async def test_a_mailbox_has_room_for_so_many(mailboxes: AgentMailboxes) -> None:
    tasks = [await asked(mailboxes, mailboxes.perform, operation(f"o{n}")) for n in range(ORDERS_MAX)]
    with pytest.raises(UnreachableError, match="wait for the agent"):
        await mailboxes.perform(operation("one-more"), NODE)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert mailboxes.waiting == 0


async def test_a_second_poll_ends_the_first(mailboxes: AgentMailboxes) -> None:
    first = asyncio.create_task(mailboxes.collect("n1", 20))
    await asyncio.sleep(0)
    second = asyncio.create_task(mailboxes.collect("n1", 20))
    assert await asyncio.wait_for(first, 30) == ()
    mailboxes.close()
    assert await asyncio.wait_for(second, 30) == ()
    assert mailboxes.waiting == 0
