"""Attacks with one token: stalled posts, many spellings, many streams. Others are served; a revocation ends them."""

import asyncio
import socket
import threading
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from hostler.server.tokens import Grant, Role
from tests.adversary.attacked import PATIENCE_S, Served, Witness, attacked, beside, said, tolerable_s

STALLED = 400
SPELLINGS = 200
AGAIN_S = 0.02
"""After all were sent once, how soon the next is: what was refused is tried again."""
CELL = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"
POOLS = """
skus:
  this: {gpus: 0}
pools:
  train: {sku: this, target: 2, tenant: acme, cluster: "", budget: {count: 1, percent: 100}}
"""


async def two_nodes(served: Served) -> tuple[str, str, str]:
    """The tokens of an operator and of the agents of n1 and n2, which serve."""
    ann = served.token(Grant("ann", Role.operator))
    nodes = [{"id": name, "sku": "this", "pool": "train"} for name in ("n1", "n2")]
    status, answer = await asyncio.to_thread(served.ask, "POST", "/v1/adopt", ann, {"nodes": nodes, "reason": "test"})
    assert status == 200, answer
    first, second = (served.token(Grant(f"agent-{name}", Role.agent, node=name)) for name in ("n1", "n2"))
    return ann, first, second


def documents(folder: Path) -> list[str]:
    (folder / "pools.yaml").write_text(POOLS)
    return ["--config", str(CELL), "--config", str(folder / "pools.yaml")]


def stalled_post(served: Served, authorization: str, *, urgent: bool) -> socket.socket:
    """A post whose body does not come."""
    one = served.open()
    lines = ["POST /v1/agent/observations HTTP/1.1", "Host: 127.0.0.1", f"Authorization: {authorization}"]
    lines += ["Content-Type: application/json", "Content-Length: 1000", *(["Priority: u=0"] if urgent else [])]
    one.sendall("\r\n".join([*lines, "", "{"]).encode())
    return one


def spelled(token: str, number: int) -> str:
    """The same token in another spelling: cases of the scheme, and spaces."""
    scheme = "".join(c.upper() if number >> place & 1 else c for place, c in enumerate("bearer"))
    return f"{scheme} {' ' * (number // 64)}{token}"


def a_post(node: str, number: int) -> dict[str, Any]:
    seen = {"node": node, "source": "agent", "spool": "s", "sequence": number, "kind": "kernel_log", "text": "systemd"}
    return {"node": node, "spool": "s", "boot_id": "b", "observations": [seen]}


@pytest.mark.nightly("a flood of some seconds")
async def test_one_agents_token_does_not_blind_the_fleet(tmp_path: Path) -> None:
    """400 stalled posts with one token and 200 with spellings of it for the urgent places, renewed as they end.

    Mutants: a place is taken before the body has come; senders are told apart by what their header says.
    """

    def attack(over: threading.Event) -> None:
        held: list[socket.socket] = []
        for number in cycle(range(STALLED + SPELLINGS)):
            with suppress(OSError):
                held.append(stalled_post(served, spelled(bad, number % SPELLINGS), urgent=number >= STALLED))
            if over.wait(0.0 if len(held) <= STALLED + SPELLINGS else AGAIN_S):
                break
        for one in held:
            one.close()

    def post(number: int) -> tuple[int, float]:
        began = time.monotonic()
        status, _ = served.ask("POST", "/v1/agent/observations", good, a_post("n2", number))
        return status, time.monotonic() - began

    async with attacked(tmp_path, *documents(tmp_path)) as served:
        _, bad, good = await two_nodes(served)
        with Witness(served) as witness, beside(attack):
            await asyncio.sleep(1.0)
            answers = [await asyncio.to_thread(post, number) for number in range(1, 41)]
    taken = sum(status == 200 for status, _ in answers)
    witness.told(f"stalled posts of one token: {taken} of {len(answers)} posts of another taken")
    assert taken == len(answers), answers
    assert max(took for _, took in answers) < 2 * tolerable_s(), answers
    assert not witness.refused, witness
    assert witness.longest_s < tolerable_s(), witness


def an_inventory(node: str, number: int, serials: list[str]) -> dict[str, Any]:
    parts = [{"serial": serial, "kind": "gpu", "model": "H100", "slot": f"gpu{n}"} for n, serial in enumerate(serials)]
    return {"node": node, "source": "agent", "spool": "s", "sequence": number, "kind": "inventory", "parts": parts}


def posted(node: str, observations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"node": node, "spool": "s", "boot_id": "b", "observations": observations}


@pytest.mark.parametrize("flood_s", [8.0, pytest.param(60.0, marks=pytest.mark.nightly("a flood of a minute"))])
async def test_one_agents_token_records_its_budget_and_nothing_on_others(tmp_path: Path, flood_s: float) -> None:
    """Claims to another node's parts and lines of faults, in turns, as fast as it goes; its customer then asks.

    Mutants: the budget is not asked; it is kept by the node that is spoken of; each claim has its record on the holder;
    a bill is read from the last records.
    """
    own, theirs = [f"n1-G{n}" for n in range(8)], [f"n2-G{n}" for n in range(8)]
    sent: list[int] = []

    def attack(over: threading.Event) -> None:
        number = 0
        while not over.is_set():
            said = []
            for _ in range(50):
                number += 1
                shown = [*own, *theirs[: number % 9]] if number % 2 else own[: number % 8]
                said.append(an_inventory("n1", number, shown))
            status, _ = served.ask("POST", "/v1/agent/observations", bad, posted("n1", said))
            sent.append(status)

    def history(node: str) -> list[dict[str, Any]]:
        status, page = served.ask("GET", f"/v1/nodes/{node}/history?limit=500", ann)
        assert status == 200, page
        return list(page["items"])

    async with attacked(tmp_path, *documents(tmp_path)) as served:
        ann, bad, good = await two_nodes(served)
        status, answer = await asyncio.to_thread(
            served.ask, "POST", "/v1/agent/observations", good, posted("n2", [an_inventory("n2", 1, theirs)])
        )
        assert status == 200, answer
        before = await asyncio.to_thread(history, "n2")
        seq = (await asyncio.to_thread(served.ask, "GET", "/v1/status", ann))[1]["seq"]
        with Witness(served) as witness, beside(attack):
            await asyncio.sleep(flood_s)
        after = await asyncio.to_thread(history, "n2")
        acme = served.token(Grant("alice", Role.tenant, tenant="acme"))
        theirs_told = await asyncio.to_thread(served.ask, "GET", "/v1/nodes/n2/history", acme)
        bill = (await asyncio.to_thread(served.ask, "GET", "/v1/statement", acme))[1]["items"]
        node = (await asyncio.to_thread(served.ask, "GET", "/v1/nodes/n1", ann))[1]
        now = (await asyncio.to_thread(served.ask, "GET", "/v1/status", ann))[1]["seq"]
    witness.told(
        f"{50 * sent.count(200)} observations of one token: {now - seq} records, {len(after) - len(before)} on n2"
    )
    assert sent.count(200) > 5
    assert now - seq < 3_000
    assert len(after) - len(before) <= 3, "the claim, and a ticket with its message"
    assert theirs_told[0] == 200, theirs_told
    (stay,) = [one for one in bill if one["node"] == "n2"]
    assert stay["had_s"] == sum(one["seconds"] for one in stay["causes"]) >= flood_s
    assert not [one for one in stay["causes"] if one["kind"] == "unrecorded"]
    if now - seq > 2_000:
        assert "agent.says_too_much" in str(node)
    assert not witness.refused, witness
    assert witness.longest_s < 2 * tolerable_s(), witness


async def test_a_revocation_ends_what_is_under_way(tmp_path: Path) -> None:
    """A stalled post, a long poll and a stream of three tokens that are revoked by another process.

    Mutant: tokens are looked at when a request begins, and never again.
    """
    asked = "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n"
    async with attacked(tmp_path, *documents(tmp_path)) as served:
        ann, first, second = await two_nodes(served)
        post = stalled_post(served, f"Bearer {first}", urgent=False)
        poll, stream = served.open(timeout_s=PATIENCE_S), served.open(timeout_s=PATIENCE_S)
        poll.sendall(asked.format("/v1/agent/operations?node=n2&wait_s=25", second).encode())
        stream.sendall(asked.format("/v1/events", ann).encode())
        assert (await asyncio.to_thread(stream.recv, 65_536)).startswith(b"HTTP/1.1 200")
        for token in (first, second, ann):
            served.revoke(token)
        began = time.monotonic()
        for one in (post, poll, stream):
            await asyncio.to_thread(said, one)
            one.close()
        assert time.monotonic() - began < 8.0


@pytest.mark.nightly("a flood of some seconds")
async def test_one_tenant_does_not_take_every_stream(tmp_path: Path) -> None:
    """Three tokens of one tenant, 256 streams asked for; then every tenant together.

    Mutants: streams are counted in all only; by token, of which a tenant has many.
    """

    def streams(tokens: list[str]) -> list[int]:
        statuses = []
        for token in tokens:
            held.append(one := served.open())
            one.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            statuses.append(int(one.recv(65_536).split(b" ", 2)[1]))
        return statuses

    held: list[socket.socket] = []
    async with attacked(tmp_path, files=4_096) as served:
        acme = [served.token(Grant(f"a{n}", Role.tenant, tenant="acme")) for n in range(3)]
        others = [served.token(Grant(f"t{n}", Role.tenant, tenant=f"t{n}")) for n in range(10)]
        ann = served.token(Grant("ann", Role.operator))
        got = await asyncio.to_thread(streams, (acme * 86)[:256])
        assert (got.count(200), got.count(503)) == (16, 240)
        got = await asyncio.to_thread(streams, others * 16)
        assert got.count(200) == 128 - 16, "half are for tenants"
        assert (await asyncio.to_thread(streams, [ann])) == [200]
        for one in held:
            one.close()


CONFIG = "policy: {rules: {}, rungs: {}}\n"
SLOW = {
    "an integer of 5,000 digits": "pools: {a: {target: " + "9" * 5_000 + "}}\n",
    "200 KB of 1:1:1": "pools: " + "1:" * 100_000 + "1\n",
    "30,000 pools": "pools:\n" + "".join(f"  p{n}: {{sku: a, target: 1}}\n" for n in range(30_000)),
    "a MiB of lists": "pools: [" + "[]," * 15_000 + "]\n# " + "x" * 900_000,
    "a MiB in one word": "pools: '" + "x" * 1_000_000 + "'\n",
}


@pytest.mark.nightly("documents of many megabytes")
async def test_documents_and_cursors_that_were_slow_are_refused_in_a_moment(tmp_path: Path) -> None:
    """Mutants: numbers to base 60 are read; entries are not counted; a token of a MiB is parsed in a thread."""
    async with attacked(tmp_path) as served:
        ann = served.token(Grant("ann", Role.operator))
        for name, text in SLOW.items():
            body = {"documents": {"a.yaml": CONFIG, "b.yaml": text}, "reason": "test", "dry_run": True}
            began = time.monotonic()
            with Witness(served) as witness:
                status, answer = await asyncio.to_thread(served.ask, "POST", "/v1/config", ann, body)
                took_s = time.monotonic() - began
            witness.told(f"{name}, refused in {took_s * 1000:.0f} ms with {status}")
            assert status == 422, answer
            assert took_s < (20.0 if "MiB" in name else 2 * tolerable_s()), name
            assert witness.longest_s < tolerable_s(), (name, witness)
        for number in (2**63, 2**64, 10**30):
            status, answer = await asyncio.to_thread(served.ask, "GET", f"/v1/parts/p?before={number}", ann)
            assert status == 400, answer
