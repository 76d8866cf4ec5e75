"""Hands of a provider against the example service, and against answers that no contract has."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from hostler.app.provider_access import FILE, read_providers
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Outcome
from hostler.core.state.operations import (
    AnyAct,
    LocateOn,
    PowerOn,
    ReplaceMachine,
    RestartNode,
    SetBootNetwork,
    SwitchOff,
)
from hostler.drivers.provider.provider_hands import ProviderReboot
from hostler.ports import LoginRefusedError, RefusedError, UnreachableError
from tests.contract.provider_world import Bmc, Cloud, OneKey, a_rented, an_asking, cloud, hands_at, providers_at


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Cloud]:
    with cloud(tmp_path) as found:
        yield found


async def perform(there: Cloud, act: AnyAct, identity: str = "n1-o1") -> Outcome:
    return await hands_at(there.address).perform(an_asking(act, identity), a_rented())


async def observe(there: Cloud, act: AnyAct, identity: str = "n1-o1") -> Outcome:
    return await hands_at(there.address).observe(an_asking(act, identity), a_rented())


async def test_power_is_done_where_the_provider_shows_it(there: Cloud) -> None:
    """Mutant: the service's word alone counts as done."""
    assert (await perform(there, PowerOn())).result == "done"
    assert (await perform(there, SwitchOff(), "n1-o2")).result == "done"
    there.set(mood="lies")
    lied = await perform(there, PowerOn(), "n1-o3")
    assert (lied.result, "shows it off" in lied.detail) == ("unknown", True)
    assert (await observe(there, PowerOn(), "n1-o3")).result == "unknown"
    there.set(power="on")
    assert (await observe(there, PowerOn(), "n1-o3")).result == "done"


async def test_a_request_that_comes_twice_is_carried_out_once_across_restarts_of_the_service(there: Cloud) -> None:
    """Mutants: each try has an id of its own; the service remembers in memory alone."""
    for _ in range(2):
        await perform(there, SwitchOff())
    there.stop()
    there.start()
    await perform(there, SwitchOff())
    assert there.ran == ["power_off"]


@pytest.mark.parametrize(
    ("mood", "result", "said"), [("refuses", "refused", "quota"), ("fails", "failed", "not found")]
)
async def test_a_refusal_and_a_failure_are_told_apart(there: Cloud, mood: str, result: str, said: str) -> None:
    """Mutant: every command that does not end with 0 is refused."""
    there.set(mood=mood)
    told = await perform(there, PowerOn())
    assert (told.result, said in told.detail) == (result, True)
    assert (await observe(there, PowerOn())).result == result


async def test_what_takes_longer_is_waited_for_and_what_never_came_was_not_done(there: Cloud) -> None:
    """Mutants: running is done; a request that the service never heard of is unknown for ever."""
    assert (await observe(there, PowerOn())).result == "not_done"
    there.set(mood="slow")
    assert (await perform(there, PowerOn())).result == "unknown"
    async with asyncio.timeout(20):
        while (await observe(there, PowerOn())).result != "done":  # noqa: ASYNC110 - it is asked, as the runner does
            await asyncio.sleep(0.2)
    assert there.ran == ["power_on"]


async def test_another_instance_is_named_or_nothing_was_done(there: Cloud) -> None:
    """Mutant: a replacement without an instance is done."""
    assert (await perform(there, ReplaceMachine())).result == "failed"
    there.set(new={"instance": "i-2", "serial": "SN2", "hostname": "w1", "macs": ["52:54:00:00:00:01"]})
    told = await perform(there, ReplaceMachine(), "n1-o2")
    assert (told.result, told.facts) == (
        "done",
        {"instance": "i-2", "hostname": "w1", "serial": "SN2", "macs": "52:54:00:00:00:01"},
    )


async def test_notices_are_read(there: Cloud) -> None:
    told = {"id": "m-1", "instances": ["i-1"], "starts": "2026-12-01T20:00:00Z", "ends": "2026-12-01T22:00:00Z"}
    there.set(notices=[told])
    (notice,) = await providers_at(there.address).notices("cloud")
    assert (notice.id, notice.instances, notice.ends.hour) == ("m-1", ("i-1",), 22)
    there.set(notices=[{**told, "starts": "2026-12-01T20:00:00"}])  # no time zone: nobody knows when
    with pytest.raises(UnreachableError, match="timezone"):
        await providers_at(there.address).notices("cloud")


async def test_a_wrong_key_is_refused_and_carries_nothing_out(there: Cloud) -> None:
    with pytest.raises(LoginRefusedError, match="same key"):
        await hands_at(there.address, key="another key of more than 24 bytes").perform(an_asking(PowerOn()), a_rented())
    with pytest.raises(UnreachableError, match="shorter than 24"):
        await hands_at(there.address, key="short").perform(an_asking(PowerOn()), a_rented())
    assert there.ran == []


async def test_a_node_with_a_bmc_is_its_bmcs_and_everything_else_is_handed_on(there: Cloud) -> None:
    """Mutants: the provider is asked for power of a node whose BMC Hostler reaches; its locate light is refused."""
    hands = hands_at(there.address)
    assert (await hands.perform(an_asking(PowerOn()), a_rented("https://10.0.0.1"))).result == "done"
    assert (await hands.perform(an_asking(LocateOn()), a_rented())).result == "done"
    assert there.ran == []
    assert (await hands.perform(an_asking(SetBootNetwork()), a_rented())).result == "done"


async def test_a_reboot_is_the_agents_where_it_is_heard(there: Cloud) -> None:
    """Mutants: the provider reboots a node whose agent could do it in order; the reboot that an agent was asked for is
    looked for at the provider.
    """
    behind, heard = Bmc(), [True]
    driver = ProviderReboot(behind, providers_at(there.address), lambda _: heard[0])
    await driver.perform(an_asking(RestartNode()), a_rented())
    await driver.observe(an_asking(RestartNode()), a_rented())
    assert (behind.asked, there.ran) == (["reboot n1", "reboot n1"], [])
    heard[0] = False
    assert (await driver.observe(an_asking(RestartNode()), a_rented())).result == "not_done"
    assert (await driver.perform(an_asking(RestartNode()), a_rented())).result == "done"
    assert there.ran == ["reboot"]


ODD = {
    "no JSON": (200, b"<html>", UnreachableError, "not one of the contract"),
    "another version": (200, b'{"version": 2}', UnreachableError, "version 2"),
    "a state that is none": (200, b'{"version": 1, "state": "maybe"}', UnreachableError, "not one of the contract"),
    "nested without end": (200, b"[" * 100_000, UnreachableError, "not one of the contract"),
    "a flood": (200, b"x" * 2_000_000, UnreachableError, "longer than 1 MiB"),
    "an error of its own": (500, b"", UnreachableError, "500"),
    "too much": (429, b"", UnreachableError, "no more now"),
    "another address": (302, b"", RefusedError, "302"),
    "not found": (404, b"", RefusedError, "404"),
}


@pytest.mark.parametrize("case", ODD)
async def test_answers_that_no_contract_has_are_not_done(case: str) -> None:
    """Mutant: a status of 200 is done."""
    status, body, error, said = ODD[case]

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Location": "/"} if status == 302 else {})

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        with pytest.raises(error, match=said):
            await hands_at(url).perform(an_asking(PowerOn()), a_rented())
    finally:
        await runner.cleanup()


async def test_a_service_that_is_away_may_have_been_asked() -> None:
    with pytest.raises(UnreachableError):
        await hands_at("http://127.0.0.1:9").perform(an_asking(PowerOn()), a_rented())


async def test_a_provider_that_is_not_named_is_refused_with_what_to_write() -> None:
    with pytest.raises(RefusedError, match=r"provider\.json"):
        await providers_at("http://127.0.0.1:9").notices("other")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "object"),
        ('{"Cloud": {"url": "https://h", "secret": "s"}}', "small letters"),
        ('{"cloud": {"url": "https://h"}}', "secret"),
        ('{"cloud": {"url": "http://h", "secret": "s"}}', "https"),
        ('{"cloud": {"url": "https://h", "secret": ""}}', "no secret"),
        ('{"cloud": {"url": "https://h", "secret": "s", "networks": ["10.0.0.1/8"]}}', "not a network"),
        ('{"cloud": {"url": "https://h", "secret": "s", "timeout_s": 0}}', "timeout_s"),
        ('{"cloud": {"url": "https://h", "secret": "s", "colour": "red"}}', "colour"),
    ],
)
def test_a_wrong_file_is_refused_whole(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(InvalidInputError, match=said):
        read_providers(tmp_path, OneKey())


def test_a_cell_without_the_file_has_no_provider(tmp_path: Path) -> None:
    assert read_providers(tmp_path, OneKey()).names == ()
