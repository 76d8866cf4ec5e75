"""The dispatcher's requests to each driver, behind the fence, and the meaning of a driver's answers and errors."""

import asyncio
import logging
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.step_output import Send
from hostler.core.state.model import LASTING, Node, Operation, Outcome
from hostler.logs.structured import formatter
from hostler.ports import (
    CertificateChangedError,
    ConflictError,
    LoginRefusedError,
    PortError,
    RefusedError,
    UnreachableError,
)
from hostler.runtime.dispatcher import GRACE_S, Sender, fate
from hostler.runtime.performers import Wiring, performers
from tests.acts import an_act
from tests.kit import NOW, a_node, after

NODE = a_node("a")


def an_operation(kind: str = "reboot", deadline_s: float = 60.0) -> Operation:
    deadline = after(seconds=deadline_s)
    return Operation(
        id="a-o1", act=an_act(kind), node="a", plan="a-p1", step=0, started=NOW, deadline=deadline, attempt=2
    )


class ScriptedHand:
    """A hand that notes what it is asked, and answers, raises or never ends as told."""

    def __init__(self, *kinds: str, raises: Exception | None = None, endless: bool = False) -> None:
        self.kinds = frozenset(kinds)
        self.raises = raises
        self.endless = endless
        self.asked: list[str] = []

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        return await self._said("perform", operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return await self._said("observe", operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        await self._said("revoke", operation, node)

    async def _said(self, how: str, operation: Operation, node: Node) -> Outcome:
        self.asked.append(f"{how} {operation.kind} on {node.id}")
        if self.endless:
            await asyncio.Event().wait()
        if self.raises is not None:
            raise self.raises
        return Outcome(operation.id, node.id, "done", how, attempt=operation.attempt)


class DispatcherBench:
    """A sender with its hands, and what it was told."""

    def __init__(self, *operations: ScriptedHand, passes: bool = True) -> None:
        self.open = passes
        self.asked: list[str] = []
        self.replies: list[Outcome] = []
        self.sender = Sender(
            performers(Wiring(operations)), self, lambda _, outcome: self.replies.append(outcome), lambda: NOW
        )

    async def passes(self, send: Send) -> bool:
        self.asked.append(send.how)
        return self.open

    async def send(self, how: str, operation: Operation) -> list[Outcome]:
        self.sender.send(Send(how, operation, NODE))
        await asyncio.sleep(0.01)
        return self.replies


@pytest.mark.parametrize(
    ("how", "asked", "detail"),
    [("perform", ["perform reboot on a"], "perform"), ("observe", ["observe reboot on a"], "observe")],
)
async def test_the_hand_of_the_kind_is_asked_for_what_was_recorded(how: str, asked: list[str], detail: str) -> None:
    """Mutants: what is to be observed is performed once more; any hand is asked; the fence is not."""
    other, driver = ScriptedHand("gpu_reset"), ScriptedHand("reboot", "power_on")
    bench = DispatcherBench(other, driver)
    (outcome,) = await bench.send(how, an_operation())
    assert (driver.asked, other.asked, bench.asked) == (asked, [], [how])
    assert outcome == Outcome("a-o1", "a", "done", detail, attempt=2)


async def test_what_is_out_is_kept_until_it_is_answered_and_no_longer() -> None:
    """Mutant: every operation that was ever sent is remembered."""
    bench, endless = DispatcherBench(ScriptedHand("reboot")), DispatcherBench(ScriptedHand("reboot", endless=True))
    for one in (bench, endless):
        await one.send("perform", an_operation())
    assert (len(bench.replies), len(endless.replies)) == (1, 0)
    assert (len(bench.sender._tasks), len(endless.sender._tasks)) == (0, 1)  # noqa: SLF001
    await endless.sender.stop()


async def test_what_no_driver_performs_is_refused_and_said() -> None:
    bench = DispatcherBench(ScriptedHand("gpu_reset"))
    (outcome,) = await bench.send("perform", an_operation())
    assert outcome == Outcome("a-o1", "a", "refused", "no driver performs reboot", attempt=2)
    assert bench.asked == []


@pytest.mark.parametrize("how", ["perform", "observe"])
async def test_what_is_out_of_date_behind_the_fence_is_not_sent(how: str) -> None:
    """Mutant: the fence's answer is not looked at."""
    driver = ScriptedHand("reboot")
    bench = DispatcherBench(driver, passes=False)
    assert await bench.send(how, an_operation()) == []
    assert (driver.asked, bench.asked) == ([], [how])


@pytest.mark.parametrize("raises", [None, UnreachableError("gone"), RefusedError("no"), ConflictError("changed")])
async def test_a_revocation_waits_for_no_fence_and_is_no_outcome(
    raises: PortError | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: it is performed; its failing is told as the operation's, or not logged."""
    caplog.set_level(logging.INFO, "hostler")
    driver = ScriptedHand("reboot", raises=raises)
    bench = DispatcherBench(driver, passes=False)
    assert await bench.send("revoke", an_operation()) == []
    assert (driver.asked, bench.asked) == (["revoke reboot on a"], [])
    assert [record.getMessage() for record in caplog.records] == (["revoke_failed"] if raises else [])


@pytest.mark.parametrize(
    ("error", "how", "result"),
    [
        (RefusedError("no"), "perform", "refused"),
        (RefusedError("no"), "observe", "unknown"),
        (UnreachableError("no"), "perform", "unknown"),
        (ConflictError("no"), "perform", "unknown"),
        (TimeoutError("no"), "perform", "unknown"),
    ],
)
async def test_only_what_was_to_be_done_and_would_not_be_is_refused(error: Exception, how: str, result: str) -> None:
    """Of all else nobody knows what came. Mutants: either half of the rule alone."""
    (outcome,) = await DispatcherBench(ScriptedHand("reboot", raises=error)).send(how, an_operation())
    assert outcome == Outcome("a-o1", "a", result, "no", attempt=2)
    assert fate(Send(how, an_operation(), NODE), type(error)()).detail == type(error).__name__


async def test_a_drivers_bug_is_an_unknown_outcome_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Mutants: it counts as refused; it stops the sender; its text has no end."""
    driver = ScriptedHand("reboot", raises=KeyError("x" * 900))
    bench = DispatcherBench(driver)
    (outcome,) = await bench.send("perform", an_operation())
    assert (outcome.result, outcome.attempt, len(outcome.detail)) == ("unknown", 2, 500)
    assert outcome.detail.startswith("driver error: KeyError: 'xxx")
    assert [record.getMessage() for record in caplog.records] == ["driver_failed"]
    driver.raises = None
    assert [one.result for one in await bench.send("perform", an_operation())] == ["unknown", "done"]


async def test_each_line_of_an_operation_names_it_and_its_node(caplog: pytest.LogCaptureFixture) -> None:
    """The driver's own lines too. Mutant: nothing is bound before the driver is asked."""
    caplog.set_level(logging.INFO, "hostler")
    caplog.handler.setFormatter(formatter(json=False))
    await DispatcherBench(ScriptedHand("reboot", raises=KeyError("x"))).send("perform", an_operation())
    assert "event=driver_failed node=a operation=a-o1 kind=reboot\n" in caplog.text


@pytest.mark.parametrize(("deadline_s", "limit_s"), [(60.0, 65.0), (0.0, 5.0), (-3.0, 5.0), (-900.0, 5.0)])
async def test_a_hand_has_until_the_deadline_and_a_moment_of_grace(
    deadline_s: float, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the grace is taken off; what is overdue already has no time at all, or less."""
    limits: list[float | None] = []
    timeout = asyncio.timeout

    def noting(delay: float | None) -> asyncio.Timeout:
        limits.append(delay)
        return timeout(0.0)

    monkeypatch.setattr(asyncio, "timeout", noting)
    (outcome,) = await DispatcherBench(ScriptedHand("reboot", endless=True)).send(
        "perform", an_operation(deadline_s=deadline_s)
    )
    assert limits == [limit_s]
    assert (outcome.result, outcome.detail) == ("unknown", "TimeoutError")
    assert GRACE_S == 5.0


async def test_a_revocation_has_a_moment_of_grace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutant: a hand that never answers is waited for."""
    caplog.set_level(logging.INFO, "hostler")
    timeout = asyncio.timeout
    monkeypatch.setattr(asyncio, "timeout", lambda delay: timeout(delay and 0.0))
    await DispatcherBench(ScriptedHand("reboot", endless=True)).send("revoke", an_operation())
    assert [record.getMessage() for record in caplog.records] == ["revoke_failed"]


async def test_stopping_lets_go_of_what_is_out_and_says_nothing_of_it() -> None:
    """The next active controller observes those operations. Mutants: it is waited for; it is told as an outcome."""
    driver = ScriptedHand("reboot", endless=True)
    bench = DispatcherBench(driver)
    assert await bench.send("perform", an_operation()) == []
    async with asyncio.timeout(10):
        await bench.sender.stop()
    assert bench.replies == []
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


def test_an_outcome_is_of_its_operations_attempt() -> None:
    send = Send("perform", replace(an_operation(), deadline=NOW + timedelta(seconds=1)), NODE)
    assert fate(send, UnreachableError("away")) == Outcome("a-o1", "a", "unknown", "away", attempt=2)


@pytest.mark.parametrize(("error", "lasts"), [(LoginRefusedError("401"), False), (CertificateChangedError("x"), True)])
def test_a_login_that_is_turned_away_may_be_let_in_later(error: RefusedError, lasts: bool) -> None:
    """A BMC locks accounts for a while; that it refuses for good, its looks say. Mutant: it is for good."""
    assert bool(fate(Send("perform", an_operation(), NODE), error).facts.get(LASTING)) is lasts
