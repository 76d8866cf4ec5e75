"""The Redfish driver's acts when a BMC, its network or its cabling misbehaves."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from hostler.drivers.redfish import bmc_event_logs, firmware_update
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import Clients, RedfishClient
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import (
    MAX_ANSWER_BYTES,
    Access,
    Body,
    HttpExchange,
    HttpResponse,
    parse_address,
)
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.drivers.redfish.wire_firmware import FirmwareComponent
from hostler.ports import ConflictError, RefusedError, UnreachableError
from hostler.sim.bmc.emulated_machine import Machine, Quirks, gpu_server
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.redfish_twin import RedfishTwin, images_by_name, in_memory
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.redfish_world import (
    CERTIFICATE,
    PASSWORD,
    START,
    USER,
    Clock,
    a_farm,
    a_hand,
    a_machine,
    emulated,
    node_at,
    operation,
)

RESET = "*/Actions/ComputerSystem.Reset"
BIOS = {"component": "BIOS", "version": "2.0.0"}


@pytest.fixture(params=["http", "twin"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def running_machine(quirks: Quirks | None = None) -> Machine:
    machine = a_machine(quirks=quirks)
    machine.start_powered()
    return machine


# replies that never come


async def test_a_power_off_whose_reply_is_lost_is_observed_and_not_repeated(backend: str) -> None:
    """Mutant: `perform` sends without looking at the power state first, and the BMC counts two."""
    async with emulated(backend, running_machine(), (RequestFaultRule(RESET, drop="after"),)) as world:
        with pytest.raises(UnreachableError):
            await world.perform("power_off")
        assert (await world.observe_until("done", "power_off", within_s=12)).result == "done"
        assert (await world.perform("power_off")).result == "done"
        assert dict(world.ours.counts) == {"ForceOff": 1}


async def test_a_power_off_that_never_arrived_is_seen_not_done_and_may_be_sent_again(backend: str) -> None:
    async with emulated(backend, running_machine(), (RequestFaultRule(RESET, drop="before"),)) as world:
        with pytest.raises(UnreachableError):
            await world.perform("power_off")
        assert (await world.observe("power_off")).result == "unknown", "it may still take effect"
        assert (await world.observe_until("not_done", "power_off", within_s=31)).result == "not_done"
        await world.perform("power_off")
        assert (await world.observe_until("done", "power_off", within_s=12)).result == "done"
        assert dict(world.ours.counts) == {"ForceOff": 1}


async def test_a_late_answer_is_no_answer(backend: str) -> None:
    async with emulated(backend, running_machine(), (RequestFaultRule(RESET, latency_s=40),), timeout_s=1.5) as world:
        with pytest.raises(UnreachableError, match="gave no answer"):
            await world.perform("power_off")
        assert (await world.observe_until("done", "power_off", within_s=12)).result == "done"
        assert dict(world.ours.counts) == {"ForceOff": 1}


async def test_while_a_power_off_lands_nothing_asks_for_it_again(backend: str) -> None:
    """Mutant: `On` right after sending is not_done; the engine sends again while the first is landing."""
    async with emulated(backend, running_machine()) as world:
        await world.perform("power_off")
        seen = [(await world.observe("power_off")).result]
        while seen[-1] != "done":
            await world.pass_by(0.5)
            seen.append((await world.observe("power_off")).result)
        assert set(seen) == {"unknown", "done"}


async def test_a_restarted_controller_counts_the_landing_time_from_the_record(backend: str) -> None:
    async with emulated(backend, running_machine()) as world:
        fresh = msgspec.structs.replace(operation("power_off", world.node), started=START)
        assert (await world.driver.observe(fresh, world.node)).result == "unknown"
        await world.pass_by(31)
        assert (await world.driver.observe(fresh, world.node)).result == "not_done"


# the wrong machine


async def test_two_bmcs_swapped_in_the_middle_of_a_plan_cost_nobody_power() -> None:
    """Mutant: the identity is checked once per client and then remembered."""
    clock = Clock()
    machines = [a_machine("SN1"), a_machine("SN2")]
    async with a_farm(clock) as farm, a_hand() as driver:
        origins = [await farm.serve(Service([machine])) for machine in machines]
        nodes = [node_at(origin, f"SN{n}", f"n{n}") for n, origin in enumerate(origins, 1)]
        for node in nodes:
            await driver.perform(operation("power_on", node), node)
        clock.pass_by(10)
        for machine in machines:
            machine.advance(clock.now)
            machine.counts.clear()
        farm.swap(*origins)
        for node in nodes:
            for kind in ("power_off", "set_boot_network", "reset_bmc", "locate_on"):
                with pytest.raises(RefusedError, match="binding mismatch"):
                    await driver.perform(operation(kind, node), node)
            with pytest.raises(RefusedError, match="binding mismatch"):
                await driver.observe(operation("power_off", node), node)
        clock.pass_by(60)
        for machine in machines:
            machine.advance(clock.now)
            assert machine.power == "On"
        assert not any(machine.counts for machine in machines)


def test_two_bmcs_swapped_in_virtual_time_cost_nobody_power() -> None:
    machines = [a_machine("SN1"), a_machine("SN2")]
    services = {f"https://b{n}": Service([machine]) for n, machine in enumerate(machines, 1)}
    twin = RedfishTwin(services, images_by_name)
    nodes = [node_at(origin, machine.hardware.serial) for origin, machine in zip(services, machines, strict=True)]
    for machine, node in zip(machines, nodes, strict=True):
        machine.start_powered()
        assert twin.perform(operation("power_on", node), node, START).result == "done"
    services["https://b1"], services["https://b2"] = services["https://b2"], services["https://b1"]
    for node in nodes:
        with pytest.raises(RefusedError, match="binding mismatch"):
            twin.perform(operation("power_off", node), node, START)
    assert not any(machine.counts for machine in machines)


def test_a_binding_without_a_system_is_refused_where_the_bmc_serves_many() -> None:
    machines = [a_machine(f"SN{n}") for n in range(3)]
    twin = RedfishTwin({"https://many": Service(machines)}, images_by_name)
    node = node_at("https://many", "SN1")
    with pytest.raises(RefusedError, match=r"serves 3 systems.*#system-id"):
        twin.perform(operation("power_on", node), node, START)


# answers that say no


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RefusedError),
        (401, RefusedError),
        (403, RefusedError),
        (404, RefusedError),
        (409, ConflictError),
        (412, ConflictError),
        (429, UnreachableError),
        (500, UnreachableError),
        (501, RefusedError),
        (503, UnreachableError),
        (302, RefusedError),
    ],
)
async def test_a_status_becomes_advice_in_the_bmcs_own_words(backend: str, status: int, error: type[Exception]) -> None:
    async with emulated(backend, running_machine(), (RequestFaultRule(RESET, status=status),)) as world:
        with pytest.raises(error, match=f"A fault rule answers {status}"):
            await world.perform("power_off")
        assert not world.ours.counts


async def test_a_refusal_in_the_wrong_state_is_looked_into(backend: str) -> None:
    """The state was read as On, changed meanwhile, and the BMC answers 400: the request is fulfilled."""
    stale = RequestFaultRule("/redfish/v1/Systems/*", "GET", patch={"PowerState": "On"}, times=1)
    async with emulated(backend, None, (stale,)) as world:
        outcome = await world.perform("power_off")
        assert outcome.result == "done"
        assert "refused as power is off already" in outcome.detail


async def test_a_wrong_password_is_refused() -> None:
    async with a_farm(Clock()) as farm, a_hand(Access(USER, "guessed")) as driver:
        node = node_at(await farm.serve(Service([a_machine()])), "SN1")
        with pytest.raises(RefusedError, match=r"with 401; correct its user and password in bmc\.json"):
            await driver.perform(operation("power_on", node), node)


# firmware that is not what the BMC says


async def test_an_update_that_reports_success_and_failed_is_not_done(backend: str) -> None:
    """Mutant: observing trusts the task."""
    async with emulated(backend, running_machine(Quirks(lies_about=frozenset({"BIOS"})))) as world:
        await world.perform("update_firmware", image=world.image, **BIOS)
        await world.pass_by(400)
        await world.pass_by(400)
        seen = await world.observe("update_firmware", image=world.image, **BIOS)
        assert seen.result == "not_done"
        assert "its task says done, which the version contradicts" in seen.detail


@pytest.mark.parametrize(
    ("staged", "result"),
    [({"BIOS": "2.0.0"}, "done"), ({"BIOS": "1.5.0"}, "not_done"), ({"GPU": "2.0.0"}, "not_done"), ({}, "not_done")],
)
async def test_only_the_version_that_was_asked_for_is_written_when_it_is_staged(
    backend: str, staged: dict[str, str], result: str
) -> None:
    """Another tool has left an image there. Mutants: any staged version counts as written; any component's does."""
    machine = running_machine()
    machine.firmware_staged |= staged
    async with emulated(backend, machine) as world:
        await world.pass_by(31)
        seen = await world.observe("update_firmware", image=world.image, **BIOS)
        assert (seen.result, seen.facts["BIOS"]) == (result, "1.0.0"), "what is staged does not run yet"
        verified = await world.verified(BIOS="2.0.0", baseline="sku")
        assert verified.result == "failed"


async def test_an_update_that_fails_says_why(backend: str) -> None:
    async with emulated(backend, running_machine(Quirks(fails_on=frozenset({"BIOS"})))) as world:
        await world.perform("update_firmware", image=world.image, **BIOS)
        await world.pass_by(1)
        await world.pass_by(400)
        seen = await world.observe("update_firmware", image=world.image, **BIOS)
        assert seen.result == "failed"
        assert "failed verification" in seen.detail


async def test_a_task_deleted_after_success_leaves_the_version_to_trust(backend: str) -> None:
    async with emulated(backend, running_machine(Quirks(forgets_tasks=True))) as world:
        await world.perform("update_firmware", image=world.image, **BIOS)
        await world.pass_by(1)
        await world.pass_by(400)
        assert (await world.observe("update_firmware", image=world.image, **BIOS)).result == "done"
        assert not world.ours.tasks


async def test_an_image_that_cannot_be_fetched_fails_its_task(backend: str) -> None:
    async with emulated(backend, running_machine()) as world:
        gone = world.image.replace("/BIOS/2.0.0", "/HMC/2.0.0")
        await world.perform("update_firmware", image=gone, **BIOS)
        await world.pass_by(1)
        seen = await world.observe("update_firmware", image=gone, **BIOS)
        assert (seen.result, "is not for this component" in seen.detail) == ("failed", True)


def test_an_update_of_another_system_behind_one_service_keeps_nobody_waiting() -> None:
    machines = [a_machine("SN1"), a_machine("SN2")]
    twin = RedfishTwin({"https://many": Service(machines)}, images_by_name)
    for serial in ("SN1", "SN2"):
        node = node_at(f"https://many#sys-{serial}", serial)
        update = operation("update_firmware", node, image="http://images/BIOS/2.0.0", **BIOS)
        assert twin.perform(update, node, START).result == "unknown"
        assert "still writing" in twin.observe(update, node, START).detail
    assert [machine.counts["SimpleUpdate"] for machine in machines] == [1, 1]


async def test_a_bmc_that_updates_itself_is_away_then_deaf_then_new(backend: str) -> None:
    args = {"component": "BMC", "version": "2.0.0"}
    async with emulated(backend, running_machine()) as world:
        image = world.image.replace("/BIOS/", "/BMC/")
        await world.perform("update_firmware", image=image, **args)
        words = set()
        for _ in range(700):
            await world.pass_by(1)
            try:
                seen = await world.observe("update_firmware", image=image, **args)
            except UnreachableError as error:
                words.add("starting" if "service is starting" in str(error) else "away")
                continue
            words.add(seen.result)
            if seen.result == "done":
                break
        assert words == {"unknown", "away", "starting", "done"}
        assert world.ours.power == "On"


async def test_keys_missing_until_the_bmc_is_reset(backend: str) -> None:
    quirks = Quirks(missing_keys=frozenset({"SerialNumber", "PowerState"}))
    async with emulated(backend, running_machine(quirks)) as world:
        with pytest.raises(RefusedError, match=r"no serial.*reset the BMC"):
            await world.perform("power_off")
        await world.perform("reset_bmc")
        await world.pass_by(240)
        assert (await world.observe("reset_bmc")).result == "done"
        assert (await world.perform("power_off")).result == "unknown"


async def test_an_unknown_power_state_is_never_off_and_does_not_stop_power_control(backend: str) -> None:
    quirks = Quirks(missing_keys=frozenset({"PowerState"}))
    async with emulated(backend, running_machine(quirks)) as world:
        assert (await world.observe("power_off")).result == "unknown"
        assert (await world.observe("power_on")).result == "unknown"
        await world.perform("power_off")
        assert dict(world.ours.counts) == {"ForceOff": 1}


# readings


def test_readers_show_each_reading_as_it_came() -> None:
    machine = running_machine()
    machine.spike("gpu0_temp_c", 99.0)
    machine.leaks["manifold"] = "Critical"
    machine.supplies["psu5"] = "Critical"
    twin = RedfishTwin({"https://b": Service([machine])}, images_by_name)
    node = node_at("https://b", "SN1")
    power, first = twin.look(node, START)
    _, second = twin.look(node, START)
    assert power == "on"
    assert (first.kind, first.source, first.spool) == ("sensors", "bmc", "bmc")
    assert (first.facts["gpu0_temp_c"], second.facts["gpu0_temp_c"]) == (99.0, 38.0)
    assert (first.facts["gpu0_temp_limit_c"], first.facts["leak_manifold"]) == (92.0, "critical")
    assert (first.facts["psu0_health"], first.facts["psu5_health"]) == ("ok", "critical")


def test_readers_never_show_another_machines_readings() -> None:
    twin = RedfishTwin({"https://b": Service([running_machine()])}, images_by_name)
    with pytest.raises(RefusedError, match="binding mismatch"):
        twin.look(node_at("https://b", "SN9"), START)


def test_sensors_that_fail_are_told_in_the_observation() -> None:
    machine = running_machine()
    service = Service([machine])
    service.faults.add(RequestFaultRule("*/Sensors", status=500, times=0))
    twin = RedfishTwin({"https://b": service}, images_by_name)
    _, sensors = twin.look(node_at("https://b", "SN1"), START)
    assert "500" in sensors.text
    assert sensors.facts["gpu0_temp_c"] == 38.0, "the older Thermal resource stands in"


# what a hostile BMC tries


@asynccontextmanager
async def a_server(answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("how", ["systems", "reset", "redirect", "next page", "userinfo"])
async def test_a_link_to_another_host_is_never_followed(how: str) -> None:
    """Mutant: `local_path` returns what it was given."""
    visited: list[str] = []

    async def trap(request: web.BaseRequest) -> web.Response:
        visited.append(request.path)
        return web.json_response({})

    async with a_server(trap) as evil:
        elsewhere = f"http://x@{evil[7:]}/loot" if how == "userinfo" else f"{evil}/redfish/v1/Systems/loot"
        rules = {
            "systems": RequestFaultRule("/redfish/v1", patch={"Systems": {"@odata.id": elsewhere}}, times=0),
            "userinfo": RequestFaultRule("/redfish/v1", patch={"Systems": {"@odata.id": elsewhere}}, times=0),
            "reset": RequestFaultRule(
                "/redfish/v1/Systems/*",
                "GET",
                patch={"Actions": {"#ComputerSystem.Reset": {"target": elsewhere}}},
                times=0,
            ),
            "next page": RequestFaultRule(
                "/redfish/v1/Systems", patch={"Members": [], "Members@odata.nextLink": elsewhere}, times=0
            ),
        }
        if how == "redirect":

            async def redirect(_: web.BaseRequest) -> web.Response:
                return web.Response(status=307, headers={"Location": elsewhere})

            async with a_server(redirect) as origin, a_hand() as driver:
                node = node_at(origin, "SN1")
                with pytest.raises(UnreachableError, match=r"not followed|no path"):
                    await driver.perform(operation("power_on", node), node)
        else:
            async with emulated("http", None, (rules[how],)) as world:
                with pytest.raises(UnreachableError, match=r"not followed|no path"):
                    await world.perform("power_on")
        assert visited == []


@pytest.mark.parametrize("packed", [False, True])
async def test_an_endless_answer_is_cut(packed: bool) -> None:
    huge = b"[" + b"0," * (MAX_ANSWER_BYTES // 2 + 1000) + b"0]"

    async def flood(_: web.BaseRequest) -> web.Response:
        headers = {"Content-Encoding": "gzip"} if packed else {}
        return web.Response(body=gzip.compress(huge) if packed else huge, headers=headers)

    async with a_server(flood) as origin, a_hand() as driver:
        node = node_at(origin, "SN1")
        with pytest.raises(UnreachableError, match="longer than 8 MiB"):
            await driver.perform(operation("power_on", node), node)


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[]", b"<html>busy</html>", b"[" * 100_000, b'{"Systems": 7}'])
async def test_nonsense_is_unreadable_and_nothing_is_sent(body: bytes) -> None:
    methods: list[str] = []

    async def babble(request: web.BaseRequest) -> web.Response:
        methods.append(request.method)
        return web.Response(body=body)

    async with a_server(babble) as origin, a_hand() as driver:
        node = node_at(origin, "SN1")
        with pytest.raises(UnreachableError, match="the BMC's service root"):
            await driver.perform(operation("power_off", node), node)
    assert set(methods) == {"GET"}


# whom to trust


async def test_a_certificate_nobody_vouches_for_is_refused_before_anything_is_sent() -> None:
    async with a_farm(Clock(), CERTIFICATE) as farm:
        machine = a_machine()
        node = node_at(await farm.serve(Service([machine])), "SN1")
        wrong = "00" * 32
        for access, why in (
            (Access(USER, PASSWORD), r"is not trusted.*fingerprint"),
            (
                Access(USER, PASSWORD, fingerprint=wrong),
                rf"shows the certificate .* and {wrong} is pinned; nothing was",
            ),
        ):
            async with a_hand(access) as driver:
                with pytest.raises(RefusedError, match=why):
                    await driver.perform(operation("locate_on", node), node)
        assert not machine.counts
        for access in (Access(USER, PASSWORD, insecure=True), Access(USER, PASSWORD, fingerprint=_colons())):
            async with a_hand(access) as driver:
                assert (await driver.perform(operation("locate_on", node), node)).result == "done"


async def test_a_trust_store_of_the_session_is_used() -> None:
    async with a_farm(Clock(), CERTIFICATE) as farm:
        node = node_at(await farm.serve(Service([a_machine()])), "SN1")
        context: ssl.SSLContext = CERTIFICATE.client_context()
        async with Connections(trust=context) as connections:
            driver = RedfishDriver(Clients(connections, lambda _: Access(USER, PASSWORD)), Clock())
            assert (await driver.observe(operation("power_off", node), node)).result == "done"


def _colons() -> str:
    found = CERTIFICATE.fingerprint.upper()
    return ":".join(found[n : n + 2] for n in range(0, len(found), 2))


def test_a_malformed_fingerprint_and_a_secret_in_a_binding_are_refused_with_help() -> None:
    with pytest.raises(RefusedError, match="openssl x509"):
        HttpExchange(None, "https://b", Access(fingerprint="abc"))  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="write https://host:port") as refused:
        parse_address("https://root:calvin@10.0.0.1")
    assert "calvin" not in str(refused.value)
    assert "calvin" not in repr(Access("root", "calvin"))


# one thing at a time


async def test_one_bmc_does_one_thing_at_a_time() -> None:
    """Mutant: `perform` does not hold `alone`."""
    machine = running_machine()
    service = Service([machine])
    under_way, most = 0, 0

    async def slow(method: str, path: str, body: Body, _headers: dict[str, str]) -> HttpResponse:
        nonlocal under_way, most
        under_way += method != "GET"
        most = max(most, under_way)
        await asyncio.sleep(0)
        reply = service.handle(ServiceRequest(method, path.partition("?")[0], "", in_memory(body)), START)
        under_way -= method != "GET"
        return HttpResponse(reply.status, msgspec.json.encode(reply.body))

    client = RedfishClient(slow, "https://b")
    driver = RedfishDriver(lambda *_: client, Clock())
    node = node_at("https://b", "SN1")
    kinds = ["locate_on", "set_boot_network", "power_off", "locate_off"] * 5
    await asyncio.gather(*(driver.perform(operation(kind, node), node) for kind in kinds))
    assert most == 1
    assert machine.counts["ForceOff"] >= 1


async def test_readers_poll_through_the_drivers_clients() -> None:
    async with a_farm(Clock()) as farm, Connections() as connections:
        node = node_at(await farm.serve(Service([Machine("s", gpu_server("SN1"))])), "SN1")
        reader = await RedfishReader(Clients(connections, lambda _: Access(USER, PASSWORD))).look(node)
        sensors = await reader.sensors()
        assert (reader.power, sensors.text) == ("off", "")
        assert sensors.facts["gpu7_temp_c"] == 45.0


async def test_the_event_log_is_read_on_from_where_it_was_left() -> None:
    machine = a_machine()
    machine.write_log("Critical", "Fan 3 has failed.", START)
    async with a_farm(Clock()) as farm, Connections() as connections:
        origin = await farm.serve(Service([machine]))
        client = Clients(connections, lambda _: Access(USER, PASSWORD))(origin)
        system = await client.system()
        entries, cursor = await bmc_event_logs.read(client, system)
        assert [(entry.severity, entry.message) for entry in entries] == [("critical", "Fan 3 has failed.")]
        machine.write_log("OK", "Fan 3 was replaced.", START)
        entries, cursor = await bmc_event_logs.read(client, system, cursor)
        assert [entry.message for entry in entries] == ["Fan 3 was replaced."]
        assert await bmc_event_logs.read(client, system, cursor) == ((), cursor)


async def test_a_flooded_log_is_told_of_and_not_copied() -> None:
    """Mutant: all entries are observed; a BMC that logs without end fills the journal."""
    machine = a_machine()
    async with a_farm(Clock()) as farm, Connections() as connections:
        node = node_at(await farm.serve(Service([machine])), "SN1")
        reader = RedfishReader(Clients(connections, lambda _: Access(USER, PASSWORD)))
        machine.write_log("OK", "begin", START)
        _, cursor = await (await reader.look(node)).entries("")
        for number in range(200):
            machine.write_log("Warning", f"Fan {number} is slow.", START)
        entries, cursor = await (await reader.look(node)).entries(cursor)
        assert (len(entries), entries[0].facts["lost"], entries[-1].text) == (64, 136, "Fan 199 is slow.")
        assert await (await reader.look(node)).entries(cursor) == ((), cursor)


async def test_sensors_at_rest_cost_four_requests_and_a_broken_layout_is_learned_anew() -> None:
    """Mutant: layouts are never kept, or never dropped."""
    machine, asked = running_machine(), []
    service = Service([machine])

    async def exchange(method: str, path: str, body: Body, _headers: dict[str, str]) -> HttpResponse:
        asked.append(path)
        bare, _, query = path.partition("?")
        reply = service.handle(ServiceRequest(method, bare, query, in_memory(body)), START)
        return HttpResponse(reply.status, msgspec.json.encode(reply.body))

    client = RedfishClient(exchange, "https://b")
    reader = RedfishReader(lambda *_: client)
    first = await (await reader.look(node_at("https://b", "SN1"))).sensors()
    asked.clear()
    assert (await (await reader.look(node_at("https://b", "SN1"))).sensors()).facts == first.facts
    assert len(asked) == 4, asked
    service.faults.add(RequestFaultRule("*/Sensors", status=503))
    await (await reader.look(node_at("https://b", "SN1"))).sensors()
    asked.clear()
    assert (await (await reader.look(node_at("https://b", "SN1"))).sensors()).facts == first.facts
    assert len(asked) > 4


async def test_a_connection_is_kept_unless_its_bmc_chokes_on_that_or_there_are_too_many() -> None:
    """Mutants: `keep` is not looked at; the limit is not; who was released keeps its place."""
    async with Connections(kept=2) as connections:
        lasting, brief = connections("https://a"), connections("https://b", keep=False)
        assert lasting is not brief
        assert connections("https://c") is lasting
        assert connections("https://d") is brief
        assert connections("https://a") is lasting, "the same one for good"
        connections.release("https://c")
        assert connections("https://d") is lasting


def test_what_is_staged_does_not_run_wherever_the_bmc_lists_it() -> None:
    """Mutant: what is staged counts as running where it is listed first."""
    staged, running = FirmwareComponent("BIOS", "2.0.0", "/s", staged=True), FirmwareComponent("BIOS", "1.0.0", "/r")
    for listed in ((staged, running), (running, staged)):
        assert firmware_update.running(listed, "bios") is running
    assert firmware_update.running((staged,), "bios") is None
