"""Notices of a subnet: of opensm before ibsim, of a twin that writes the same log, of UFM; each as bad as it may be."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace

from hostler.agent import fabric_discovery
from hostler.core.fabric.subnet_notices import HintedLook, asked_by
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.subnets import NoticeOrigin, SubnetNotice
from hostler.drivers.infiniband.agent_pages import AgentPages
from hostler.drivers.infiniband.fabric_source import InfinibandSource, LookPlaces, RegisteredSource
from hostler.logs import log_tail
from hostler.ports import HeardNotices
from tests.contract.test_fabric_source import NOW, Hand, NoSecrets, ufm_server
from tests.contract.test_subnet_source import HERE, manager
from tests.fabrics import a_fabric
from tests.ibsim import manager_required, simulated, told
from tests.kit import Drive, a_node

PATIENCE_S = 60.0
CABLES = a_fabric()
AT = CABLES.found(next(z for a, z in CABLES.links.items() if str(a) == "gpu-0001:mlx5_0"))
TRAP = (
    "Nov 23 18:13:41 {:06d} [7CBCC6C0] 0x01 -> log_trap_info: Received Generic Notice type:{} num:{} ({}) "
    "Producer:2 (Switch) from LID:2{} TID:0x0000000000000000\n"
)
BESIDE = (
    "Nov 23 18:13:41 071841 [7CBCC6C0] 0x02 -> SM class trap 128: Directed Path Dump of 1 hop path: Path = 0,1\n"
    'Nov 23 18:13:41 071849 [7CBCC6C0] 0x02 -> log_notice: Reporting Urgent Notice "Link state change" from switch LID '
    "2, GUID 0x02c9000000003100\n"
)
SERVICE = (
    "Nov 23 18:13:47 {:06d} [7A3C76C0] 0x02 -> log_notice: Reporting Informational Notice "
    '"GID {} service", GID:fe80::2c9:0:0:101\n'
)


class Log:
    """A subnet manager's log, and what changes a link so that its manager is told."""

    def __init__(self, path: Path, change: Callable[[], object]) -> None:
        self.path = path
        self.change = change


@asynccontextmanager
async def real(folder: Path) -> AsyncIterator[Log]:
    """A real opensm's, of a network whose host's cable is pulled out."""
    manager_required()
    async with AsyncExitStack() as running:
        environment = await running.enter_async_context(simulated(CABLES))
        await running.enter_async_context(manager(environment, CABLES, "gpu-0003", 5, folder))
        path = folder / "gpu-0003" / "log"
        async with asyncio.timeout(PATIENCE_S):
            while not path.exists() or "SUBNET UP" not in path.read_text():  # noqa: ASYNC110 - another's log
                await asyncio.sleep(0.1)
        yield Log(path, lambda: told(environment, f'Unlink "S-{AT.guid}"[{AT.number}]'))


@asynccontextmanager
async def twin(folder: Path) -> AsyncIterator[Log]:
    """A log that is written as opensm does: the trap at once, what it did about it later."""
    path = folder / "log"
    path.write_text("Nov 23 18:13:35 139605 [7A3C76C0] 0x02 -> SUBNET UP\n")

    async def change() -> None:
        append(path, TRAP.format(71801, 1, 128, "Link state change", "") + BESIDE)

    yield Log(path, change)


def written(path: Path, text: str) -> None:
    path.write_text(text)


def append(path: Path, text: str) -> None:
    with path.open("a") as stream:
        stream.write(text)


def source(folder: Path, log: Path, hand: Hand | None = None) -> RegisteredSource:
    fleet = Drive(nodes=(a_node("gpu-0001"),)).fleet
    places = LookPlaces(AgentPages(lambda: hand, lambda: NOW), lambda: fleet, NoSecrets(), folder)
    return RegisteredSource(InfinibandSource(log=str(log)), places)


async def heard(asked: RegisteredSource, **how: object) -> HeardNotices:
    return await asked.notices(replace(HERE, source=DiscoverySource(timeout_s=20.0, **how)))  # type: ignore[arg-type]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("by", ["here", "agent"])
@pytest.mark.parametrize("way", [real, twin], ids=["opensm", "twin"])
async def test_a_link_that_changes_is_told_once_as_a_hint_at_the_cables(
    way: Callable[..., object], by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: what stood there before is new; a notice is new at each look; the agent reads another's log."""
    (tmp_path / "agent").mkdir()
    hand = Hand(tmp_path / "agent")
    async with way(tmp_path) as log:  # type: ignore[attr-defined]
        monkeypatch.setattr(fabric_discovery, "LOG", log.path)
        elsewhere = log.path if by == "here" else tmp_path / "none"
        asked, how = source(tmp_path, elsewhere, hand), {} if by == "here" else {"nodes": ("gpu-9999", "gpu-0001")}
        assert await heard(asked, **how) == HeardNotices()
        await log.change()
        found: list[SubnetNotice] = []
        async with asyncio.timeout(PATIENCE_S):
            while not any(one.number == 128 for one in found):
                found += (told := await heard(asked, **how)).notices
                assert told.why == ""
        assert [one.number for one in found].count(128) == 1
        assert (found[0].origin, found[0].said, found[0].about) == (
            NoticeOrigin.manager,
            "Link state change",
            "Switch, LID 2",
        )
        assert asked_by(found) == {HintedLook.cables}
    hand.operation_log.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "opensm.log"


NUMBERS = {
    (1, 128, "Link state change", ""): ("Switch, LID 2", {HintedLook.cables}),
    (1, 131, "Flow Control Update watchdog timer expired", " Port 7"): ("Switch, LID 2 port 7", {HintedLook.counters}),
    (1, 129, "Local Link integrity threshold reached", " Port 36"): ("Switch, LID 2 port 36", {HintedLook.counters}),
    (
        4,
        144,
        "CapabilityMask, NodeDescription, Link [Width|Speed] Enabled, SM priority changed",
        "",
    ): ("Switch, LID 2", {HintedLook.cables}),
    (2, 257, "Bad P_Key", ""): ("Switch, LID 2", {HintedLook.partitions}),
    (2, 4711, "Unknown", ""): ("Switch, LID 2", set()),
}


@pytest.mark.parametrize("wrote", NUMBERS, ids=lambda wrote: str(wrote[1]))
async def test_each_trap_is_told_with_its_sender_and_asks_for_its_look(
    wrote: tuple[int, int, str, str], tmp_path: Path, log: Path
) -> None:
    about, looks = NUMBERS[wrote]
    written(log, "")
    asked = source(tmp_path, log)
    await heard(asked)
    append(log, TRAP.format(1, *wrote))
    (notice,) = (await heard(asked)).notices
    assert (notice.number, notice.said, notice.about) == (wrote[1], wrote[2], about)
    assert notice.at == "Nov 23 18:13:41 000001"
    assert asked_by([notice]) == looks


async def test_a_gid_that_comes_and_goes_is_traps_64_and_65(tmp_path: Path, log: Path) -> None:
    written(log, "")
    asked = source(tmp_path, log)
    await heard(asked)
    append(log, SERVICE.format(1, "out of") + SERVICE.format(2, "in"))
    told = (await heard(asked)).notices
    assert [(one.number, one.about) for one in told] == [(65, "fe80::2c9:0:0:101"), (64, "fe80::2c9:0:0:101")]


async def test_a_log_that_is_rotated_cut_off_or_missing_is_read_on(tmp_path: Path, log: Path) -> None:
    """Mutants: a place in the old file is looked for in the new one; a log that comes later says nothing."""
    asked = source(tmp_path, log)
    assert await heard(asked) == HeardNotices()
    one, two, three = (TRAP.format(n, 1, 128, "Link state change", "") for n in (1, 2, 3))
    written(log, one)
    assert len((await heard(asked)).notices) == 1
    (tmp_path / "opensm.log").rename(tmp_path / "opensm.log.1")
    assert await heard(asked) == HeardNotices()
    written(log, two)
    assert len((await heard(asked)).notices) == 1
    written(log, two + three[:60])
    assert (await heard(asked)).notices == ()
    written(log, two + three)
    assert len((await heard(asked)).notices) == 1
    written(log, "")
    assert (await heard(asked)).notices == ()


async def test_a_log_full_of_anything_else_costs_its_last_mebibyte_and_is_no_notice(tmp_path: Path, log: Path) -> None:
    """Garbage, escape codes, a trap in another's words, a line of a gigabyte. Mutant: the file is read whole."""
    written(log, "")
    asked = source(tmp_path, log)
    await heard(asked)
    good = TRAP.format(9, 1, 128, "Link state change", "")
    evil = TRAP.format(8, 1, 128, "\x1b[2J\x1b]0;owned\x07" + "x" * 150, "")
    with log.open("wb") as stream:
        stream.write(bytes(range(256)) * 40 + b"\n")
        stream.write(f"\x1b[31m{good}".encode() + good.replace("num:128", "num:999999").encode())
        stream.write(good.replace("Generic", "Vendor").encode() + evil.encode() + good.encode())
    told = (await heard(asked)).notices
    assert [one.number for one in told] == [128, 128]
    assert told[0].said.isprintable()
    assert len(told[0].said) == 128
    with log.open("ab") as stream:
        stream.seek(2**30, 1)
        stream.truncate()
    assert (await heard(asked)).notices == ()
    append(log, "\n" + TRAP.format(10, 1, 128, "Link state change", ""))
    assert len((await heard(asked)).notices) == 1
    assert log_tail.MOST_BYTES == 2**20


async def test_a_storm_of_traps_is_told_by_its_end(tmp_path: Path, log: Path) -> None:
    written(log, "")
    asked = source(tmp_path, log)
    await heard(asked)
    written(log, "".join(TRAP.format(n, 1, 128, "Link state change", "") for n in range(50_000)))
    told = (await heard(asked)).notices
    assert (len(told), told[-1].at) == (1_000, "Nov 23 18:13:41 049999")


async def test_a_log_that_may_not_be_read_or_a_silent_agent_is_said(tmp_path: Path, log: Path) -> None:
    (tmp_path / "opensm.log").mkdir()
    assert (await heard(source(tmp_path, log))).why.startswith("notices: ")
    said = (await heard(source(tmp_path, log), nodes=("gpu-0001",))).why
    assert "the controller has not started" in said
    assert "none of the nodes" in (await heard(source(tmp_path, log), nodes=("gpu-9999",))).why
    assert await heard(source(tmp_path, log), tool="lldp") == HeardNotices()


OLD = {
    "category": "Fabric Notification",
    "severity": "Info",
    "timestamp": "2017-09-19 10:49:11.520",
    "counter": None,
    "object_name": "Grid",
    "object_path": "Grid",
    "name": "Fabric Configuration Started",
    "write_to_syslog": False,
    "type": "901",
    "id": 228,
    "description": "Fabric Configuration started.",
}
"""As the REST API's documents up to 6.19 have it; NEW as later ones do, with a link's number."""
NEW = {
    **OLD,
    "id": 97213,
    "name": "Link is Down",
    "type": "Link",
    "event_type": "329",
    "timestamp": "2024-05-28 08:03:05",
    "counter": "N/A",
    "object_name": "b8599f0300fc6de4_1",
}


@asynccontextmanager
async def ufm(pages: list[object]) -> AsyncIterator[tuple[RegisteredSource, dict[str, object]]]:
    """A UFM that answers these in turn: a document, a page, a status, or never."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        page = pages.pop(0) if len(pages) > 1 else pages[0]
        if page == "never":
            await asyncio.sleep(3600)
        if isinstance(page, int):
            return web.Response(status=page)
        text = page if isinstance(page, str) else json.dumps(page)
        return web.Response(text=text, content_type="application/json")

    async with ufm_server(answer) as (url, ca):
        yield (
            source(Path("/nonexistent"), Path("/nonexistent")),
            {"tool": "ufm", "url": url, "ca": ca, "secret": "folder:ufm"},
        )
    assert set(asked) == {"/ufmRest/app/events"}


async def test_ufm_s_events_are_told_once_by_their_ids_late_twice_or_in_any_order() -> None:
    """Mutants: the highest id is all that is remembered; a list that was purged and comes back is new."""
    late = {**NEW, "id": 97000, "event_type": "110", "name": "Symbol Error"}
    async with ufm([[OLD], [OLD, NEW, NEW], [NEW, OLD], [], [NEW, OLD, late], [late]]) as (asked, how):
        assert await heard(asked, **how) == HeardNotices()
        (down,) = (await heard(asked, **how)).notices
        assert (down.origin, down.number, down.said) == (NoticeOrigin.ufm, 329, "Link is Down")
        assert (down.about, down.at) == ("b8599f0300fc6de4_1", "2024-05-28 08:03:05")
        assert asked_by([down]) == {HintedLook.cables}
        assert [len((await heard(asked, **how)).notices) for _ in range(4)] == [0, 0, 1, 0]


UFM_SAYS: dict[str, tuple[object, str]] = {
    "an error page with status 200": ("<html>log in</html>", "is no list of events"),
    "an object": ({"error": "no license"}, "is no list of events"),
    "an event without an id": ([{"type": "329", "name": "x"}], "is no list of events"),
    "a type that is no number": ([{**OLD, "type": "Link"}], "has no number as its type"),
    "a type of many digits": ([{**OLD, "type": "9" * 5000}], "has no number as its type"),
    "half of it": (json.dumps([OLD, NEW])[:300], "is no list of events"),
    "that it is somebody else": (401, "UFM answered 401"),
    "an error": (503, "UFM answered 503"),
}


@pytest.mark.parametrize("name", UFM_SAYS)
async def test_a_ufm_that_answers_badly_tells_nothing_and_what_it_told_before_stays_known(name: str) -> None:
    bad, said = UFM_SAYS[name]
    async with ufm([[OLD], bad, [OLD, NEW]]) as (asked, how):
        await heard(asked, **how)
        told = await heard(asked, **how)
        assert (told.notices, said in told.why, told.why.isprintable()) == ((), True, True)
        assert [one.number for one in (await heard(asked, **how)).notices] == [329]


async def test_a_ufm_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.drivers.infiniband.fabric_source.NOTICES_S", 0.5)
    async with ufm(["never"]) as (asked, how):
        assert "no whole answer within 0.5 s" in (await heard(asked, **how)).why
