"""Controllers of one cell that are stopped, killed, cut off from PostgreSQL and woken: one acts, nothing is lost.

Real processes over a real PostgreSQL. The emulated BMCs count what was done to them; the journal is read past Hostler.
"""

import asyncio
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hostler.journal.check import check
from hostler.server.standby_proxy import MARK
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.end_to_end.kill_world import DEADLINE_S, Box, Served, Witness, adopt, drive, ended, heard, now, until
from tests.end_to_end.standby_world import LEASE_S, Cluster, Process, cluster, well
from tests.postgres import PostgresServer

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

US = 1_000_000
"""Microseconds in a second; the journal's tables count those."""
HOLD = {"act": {"verb": "hold"}, "target": "rack:far", "reason": "nobody is there"}


async def test_a_controller_stopped_between_its_commit_and_its_send_acts_no_more(
    tmp_path: Path, postgres_url: str
) -> None:
    """The lease runs out, another takes over, it wakes with the BMC's answer in hand: the BMC counts zero actions.

    Mutant: a driver that does not ask the fence just before it sends.
    """
    async with cluster(tmp_path, postgres_url) as cell, machine(cell) as box:
        old, before = await cell.active(), cell.journal.last()
        box.faults.add(RequestFaultRule(path=f"*/Systems/{box.name}", method="GET", latency_s=3 * LEASE_S, times=0))
        body = {"reason": "a test that stops", "act": {"now": True}}
        await cell.ask(f"/v1/nodes/{box.name}/power-cycle", body)
        await until(lambda: started(cell, "power_off", before), "the power-off in the journal")
        old.signal(signal.SIGSTOP)
        assert not box.machine.received, "its BMC was asked already: the test came too late"
        await cell.active(but=old.name)
        await asyncio.sleep(3 * LEASE_S)  # until the answer to what it asked before it was stopped has come
        old.signal(signal.SIGCONT)
        await cell.until(well, "the first stands by, by itself")
        assert not box.machine.received, f"the one that was replaced acted: {box.machine.received}"


async def test_an_append_of_a_controller_that_was_stopped_before_it_is_refused(
    tmp_path: Path, postgres_url: str
) -> None:
    """A stopped controller decides what it was asked when it wakes, and the database refuses its word.

    Mutant: an append that checks neither the epoch nor what its records follow.
    """
    async with cluster(tmp_path, postgres_url) as cell:
        old = await cell.active()
        old.signal(signal.SIGSTOP)
        asked = asyncio.create_task(old.call("POST", "/v1/intents", json=HOLD))
        new = await cell.active(but=old.name)
        status, answer, _ = await new.call("POST", "/v1/intents", json=HOLD | {"target": "rack:near"})
        assert status == 200, answer
        old.signal(signal.SIGCONT)
        status, _, _ = await asked
        assert status in (0, 200, 503), "refused, or by then carried to the one that decides"
        said = await cell.until(well, "the first stands by, by itself")
        assert said[old.name]["role"] == "standby"
        epochs = cell.journal.epochs()
        assert epochs == sorted(epochs), "nothing was written under an epoch that had ended"
        assert len(holds(cell, "rack:far")) == (status == 200)
        assert check(postgres_url).sound


@pytest.mark.parametrize("how", ["stopped", "hung"])
async def test_a_database_that_is_gone_for_longer_than_the_lease_loses_nothing(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str, how: str
) -> None:
    """Controllers say what is the matter meanwhile; afterwards one decides, and nothing was done twice.

    Mutants: an answer before the commit; a lost commit that is decided again without reading the journal first.
    """
    async with cluster(tmp_path, postgres_url) as cell, witnessed(cell):
        await until(lambda: cell.journal.observed(Witness.NODE), "something that was observed")
        with gone(postgres, postgres_url, how):
            said = await cell.until(lambda said: all(not h["ok"] and h["why"] for h in said.values()), "the trouble")
            assert all(h["role"] in ("active", "standby") for h in said.values())
            status, problem, headers = await cell.processes[0].call("POST", "/v1/intents", json=HOLD)
            assert status == 503, problem
            assert int(headers["Retry-After"]) > 0
            await asyncio.sleep(LEASE_S)
        await cell.until(well, "one active, one standing by")
    assert check(postgres_url).sound


async def test_a_full_disk_stops_the_deciding_and_nothing_else(tmp_path: Path) -> None:
    """SQLite in a process that may not make its files longer. Mutant: a failed append that is answered as granted."""
    served = Served(tmp_path)
    await served.start()
    try:
        assert (await served.post("/v1/intents", HOLD))[0] == 200
        child = served.pid
        _, hard = resource.prlimit(child, resource.RLIMIT_FSIZE)
        resource.prlimit(child, resource.RLIMIT_FSIZE, (4096, hard))
        granted = ["rack:far"]
        for number in range(50):
            status, _ = await served.post("/v1/intents", HOLD | {"target": f"rack:{number}"})
            if status != 200:
                break
            granted.append(f"rack:{number}")
        else:
            raise AssertionError("the disk was never full")
        assert status == 503
        _, health = await served.get("/healthz")
        assert not health["ok"]
        assert health["why"]
        status, seen = await served.get("/v1/holds")
        assert {hold["scope"] for hold in seen["items"]} == set(granted)
        resource.prlimit(child, resource.RLIMIT_FSIZE, (hard, hard))
        await served.ask("/v1/intents", HOLD | {"target": "rack:after"})
        _, seen = await served.get("/v1/holds")
        assert {hold["scope"] for hold in seen["items"]} >= {*granted, "rack:after"}
        assert (await served.get("/readyz"))[0] == 200
    finally:
        await served.stop()


@pytest.mark.smoke
async def test_of_two_that_stand_by_one_takes_over(tmp_path: Path, postgres_url: str) -> None:
    """A standby takes over when the lease has run out, however often a slow machine makes both take turns.

    Mutant: both may take what they have seen to be free.
    """
    async with cluster(tmp_path, postgres_url, number=3, lease_s=4.0) as cell:
        first = await cell.active()
        first.signal(signal.SIGKILL)
        await first.ended()
        await cell.until(lambda said: len(said) == 2 and well(said), "one of the two")
        starts = cell.journal.ask("SELECT epoch, at FROM records WHERE name = 'controller_started' ORDER BY seq")
        assert [epoch for epoch, _ in starts] == list(range(1, len(starts) + 1)), "one start for each epoch"
        assert len(starts) >= 2
        for (_, before), (epoch, at) in pairwise(starts):
            assert at - before > 0.9 * cell.lease_s * US, f"epoch {epoch} began while somebody held the lease"
    assert check(postgres_url).sound


async def test_a_damaged_record_is_named_and_keeps_who_stands_by_from_taking_over(
    tmp_path: Path, postgres_url: str
) -> None:
    """Mutant: fold what does not verify."""
    async with cluster(tmp_path, postgres_url) as cell:
        old = await cell.active()
        other = next(process for process in cell.processes if process is not old)
        other.signal(signal.SIGSTOP)
        status, answer, _ = await old.call("POST", "/v1/intents", json=HOLD)
        assert status == 200, answer
        damaged = cell.journal.last()
        cell.journal.change(
            "UPDATE records SET body = replace(convert_from(body, 'UTF8'), 'far', 'fur')::bytea WHERE seq = %s", damaged
        )
        other.signal(signal.SIGCONT)
        said = await cell.until(lambda said: other.name in said and not said[other.name]["ok"], "what is damaged")
        assert f"record {damaged}" in said[other.name]["why"], said
        old.signal(signal.SIGKILL)
        await old.ended()
        await asyncio.sleep(2 * LEASE_S)
        said = await cell.until(lambda said: other.name in said, "what it says of itself")
        assert (said[other.name]["role"], said[other.name]["ok"]) == ("standby", False)


async def test_everything_may_be_asked_of_the_one_that_stands_by(tmp_path: Path, postgres_url: str) -> None:
    """Reads from its own memory, with how far behind it is; what only the active can answer is carried there.

    Mutants: the hop drops the token or the key of a request; a request is carried in a circle.
    """
    async with cluster(tmp_path, postgres_url, lease_s=5.0) as cell:
        old = await cell.active()
        other = next(process for process in cell.processes if process is not old)
        spec = {"id": "n1", "sku": "h100", "serial": "SN-n1", "pool": "lab"}
        status, answer, headers = await other.call("POST", "/v1/adopt", json={"nodes": [spec], "reason": "a test"})
        assert (status, headers["hostler-role"]) == (200, "active"), answer
        await until_read(other, "/v1/nodes/n1", 200)
        status, _, headers = await other.call("GET", "/v1/nodes")
        assert (status, headers["hostler-role"]) == (200, "standby")
        assert headers["hostler-behind"].startswith("records=")
        token = cell.token_for("n1")
        beat = {"node": "n1", "boot_id": "b1"}
        assert (await other.call("POST", "/v1/agent/heartbeat", token, json=beat))[0] == 204
        await until_read(other, "/v1/nodes/n1", 200, lambda seen: seen["node"]["boot_id"] == "b1")
        seen = {"node": "n1", "source": "agent", "spool": "s1", "sequence": 1, "kind": "kernel_log", "text": "hello"}
        batch = {"node": "n1", "spool": "s1", "boot_id": "b1", "observations": [seen]}
        status, receipt, _ = await other.call("POST", "/v1/agent/observations", token, json=batch)
        assert (status, receipt["acknowledged"]) == (200, 1)
        status, orders, headers = await other.call("GET", "/v1/agent/operations?node=n1&wait_s=0.2", token)
        assert (status, orders["operations"], headers["hostler-role"]) == (200, [], "active")
        key = {"Idempotency-Key": "k1"}
        first, again = [await other.call("POST", "/v1/intents", json=HOLD, headers=key) for _ in range(2)]
        assert (first[0], again[0], again[1]["detail"].get("repeated")) == (200, 200, "yes")
        assert first[1]["text"] == again[1]["text"]
        for process in (other, old):
            another = HOLD | {"target": "rack:other"}
            status, problem, _ = await process.call("POST", "/v1/intents", json=another, headers=key)
            assert (status, problem["error"]) == (422, "key_reused"), "what stands by answers as the active one"
        assert [len(holds(cell, rack)) for rack in ("rack:far", "rack:other")] == [1, 0]
        large = HOLD | {"reason": "x" * 400_000}
        assert (await other.call("POST", "/v1/intents", json=large))[0] == 422, "the active's own refusal"
        assert (await other.call("POST", "/v1/intents", "hst_nobody", json=HOLD))[0] == 401
        assert (await other.call("POST", "/v1/intents", token, json=HOLD))[0] == 403, "an agent may not, here as there"
        status, problem, _ = await other.call("POST", "/v1/intents", json=HOLD, headers={MARK: "somebody"})
        assert (status, problem["error"]) == (503, "standby")
        assert old.url in problem["instead"]
        for process in (old, other):
            assert (await process.call("GET", "/readyz"))[0] == 200
        _, metrics, _ = await other.call("GET", "/metrics")
        assert "hostler_controller_active 0.0" in metrics
        assert 'hostler_controllers{state="alive"} 2.0' in metrics
        old.signal(signal.SIGSTOP)
        status, problem, headers = await other.call("POST", "/v1/intents", json=HOLD | {"target": "rack:late"})
        assert status in (200, 503), problem
        assert status == 200 or int(headers["Retry-After"]) > 0, "not held up until somebody wakes"
        old.signal(signal.SIGCONT)


async def test_who_ends_in_order_is_followed_without_waiting_for_the_lease(tmp_path: Path, postgres_url: str) -> None:
    """The lease lasts a minute; nobody waits for it. Mutant: an end without resignation."""
    async with cluster(tmp_path, postgres_url, lease_s=60.0) as cell:
        old = await cell.active()
        old.signal(signal.SIGTERM)
        async with asyncio.timeout(55.0):
            await cell.active(but=old.name)
        assert await old.ended() == 0


async def test_a_differing_file_beside_the_one_that_takes_over_changes_nothing(
    tmp_path: Path, postgres_url: str
) -> None:
    """Configuration is read from the journal only. Mutant: activate `--config` whenever it becomes active."""
    async with cluster(tmp_path, postgres_url) as cell:
        old = await cell.active()
        (tmp_path / "other.yaml").write_text("skus: {b200: {gpus: 4}}\npools: {other: {sku: b200, target: 1}}\n")
        third = cell.add("c", "--config", str(tmp_path / "policy.yaml"), "--config", str(tmp_path / "other.yaml"))
        await third.start()
        second = next(process for process in cell.processes if process not in (old, third))
        before = (await old.call("GET", "/v1/config"))[1]["sha256"]
        for process in (old, second):
            process.signal(signal.SIGKILL)
            await process.ended()
        assert await cell.active() is third
        assert (await third.call("GET", "/v1/config"))[1]["sha256"] == before


@asynccontextmanager
async def machine(cell: Cluster) -> AsyncIterator[Box]:
    """One machine with its BMC and its agent, adopted and heard."""
    async with AsyncExitStack() as stack:
        farm = await stack.enter_async_context(Farm(now))
        box = Box("n1", cell.directory / "n1", cell)
        stack.push_async_callback(box.stop)
        await adopt(cell, farm, [box])
        stack.push_async_callback(ended, asyncio.create_task(drive([box])))
        await box.boot()
        await until(lambda: heard(cell, box.name), "the machine in production and heard")
        yield box


@asynccontextmanager
async def witnessed(cell: Cluster) -> AsyncIterator[None]:
    """Reports and asks the whole time; afterwards everything acknowledged is there, once."""
    witness = Witness(cell, seed=0)
    await witness.begin()
    try:
        yield
        await witness.check()
    finally:
        await witness.end()


@contextmanager
def gone(postgres: PostgresServer, url: str, how: str) -> Iterator[None]:
    """The server is not there, or does not move."""
    if how == "hung":
        with postgres.hung(url):
            yield
        return
    postgres.stop(signal.SIGQUIT)
    try:
        yield
    finally:
        postgres.start()


def started(cell: Cluster, kind: str, after: int) -> bool:
    return any(r.label == f"operation_started {kind}" for r in cell.journal.records(after))


def holds(cell: Cluster, scope: str) -> list[Any]:
    return [r for r in cell.journal.records() if r.name == "hold_placed" and r.body["hold"]["scope"] == scope]


async def until_read(process: Process, path: str, status: int, holds: Any = lambda _: True) -> None:
    """Ask until it is answered so: a standby reads what was recorded a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            got, body, _ = await process.call("GET", path)
            if got == status and holds(body):
                return
            await asyncio.sleep(0.01)
