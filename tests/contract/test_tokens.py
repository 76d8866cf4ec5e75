"""Tokens, in a file and in a database: who is recognised, which grants make sense, and who makes the first one."""

import asyncio
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.app.retired_agents import revoking
from hostler.core.state.model import Phase
from hostler.ports import JournalError
from hostler.server import tokens
from hostler.server.sign_in_record import KNOWN_DAYS
from hostler.server.tokens import Grant, InvalidGrantError, Role
from tests.kit import Drive, a_node, configuration
from tests.postgres import PostgresServer

ADA = Grant("ada", Role.operator)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


Open = Callable[..., tokens.TokenStore]


@pytest.fixture(params=["file", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same place again and again."""
    place = tmp_path / "tokens.db" if request.param == "file" else request.getfixturevalue("postgres_url")
    opened: list[tokens.TokenStore] = []

    def another(clock: Clock | None = None) -> tokens.TokenStore:
        opened.append(tokens.TokenStore(place, clock or Clock()))
        return opened[-1]

    yield another
    for one in opened:
        one.close()


def test_a_token_is_recognised_as_its_grant(store: Open) -> None:
    kept = store()
    grant = Grant("rita", Role.technician, site="ams", pool="alpha")
    who = kept.verify(kept.create(grant))
    assert who is not None
    assert (who.grant, who.name, who.role, who.whole) == (grant, "rita", Role.technician, False)


def test_names_of_a_sign_in_are_kept_with_it_and_its_subjects_former_names_are_added(store: Open) -> None:
    """Mutants: the names are the sign-in's own alone; another subject that begins alike has them too."""
    clock, kept = Clock(), store()
    ada = Grant("ada@example.org", Role.operator, known_as=("https://login.example.org#1_", "ada.l@example.org"))
    others = ("https://login.example.org#1x", "https://login.example.org#1_2", "https://login.example.org#1")
    for number, subject in enumerate(others):
        kept.begin_session(Grant(f"other{number}", Role.operator, known_as=(subject, "x@example.org")))
    kept.begin_session(ada)
    again = store(clock)
    who = again.verify(again.begin_session(replace(ada, name="l@example.org", known_as=ada.known_as[:1])))
    assert who is not None
    assert who.grant.known_as == ("https://login.example.org#1_", "ada@example.org")
    clock.now += timedelta(days=KNOWN_DAYS + 1)
    much_later = again.verify(again.begin_session(replace(ada, name="x@example.org")))
    assert much_later is not None
    assert much_later.grant.known_as == ada.known_as


def test_a_place_of_an_older_version_gets_the_columns_that_it_lacks(store: Open) -> None:
    """Mutant: they are in new places alone, and the controller does not start after an upgrade."""
    old = store()
    known = old.create(ADA)
    with old._place.alone() as db:  # noqa: SLF001 - as the version before laid it out
        for table in ("tokens", "sign_ins"):
            db.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN known_as")
    new = store()
    who = new.verify(known)
    assert who is not None
    assert who.grant == ADA
    new.begin_session(replace(ADA, known_as=("https://login.example.org#1",)))
    assert [one.known_as for one in new.people()] == [(), ("https://login.example.org#1",)]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"),
        lambda t: t.replace("hst_", "hst-"),
        lambda t: t + "x",
        lambda t: t[:17],
        lambda t: "hst_" + "0" * 12 + t[16:],
        lambda t: t + "\n",
        lambda t: "",
        lambda t: t.encode().decode("utf-16-le", "ignore"),
    ],
)
def test_anything_else_is_nobody(store: Open, change: Callable[[str], str]) -> None:
    kept = store()
    assert kept.verify(change(kept.create(ADA))) is None


def test_a_revoked_token_is_nobody_at_once_also_for_another_process(store: Open) -> None:
    serving, other = store(), store()
    token = serving.create(ADA)
    who = other.verify(token)
    assert who is not None
    stays = serving.create(Grant("bob", Role.viewer))
    assert serving.verify(token)
    assert other.revoke(who.token)
    assert serving.verify(stays)
    assert serving.verify(token) is None, "another's token was read in between; this one was not"
    assert not other.revoke(who.token)


def test_an_expired_token_is_nobody(store: Open) -> None:
    clock = Clock()
    kept = store(clock)
    token = kept.create(Grant("ci", Role.viewer, expires=clock.now + timedelta(hours=1)))
    assert kept.verify(token)
    clock.now += timedelta(hours=1)
    assert kept.verify(token) is None


def test_the_first_start_writes_one_operator_token(store: Open, tmp_path: Path) -> None:
    kept = store()
    file = kept.bootstrap(tmp_path / "operator.token")
    assert file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    who = kept.verify(file.read_text().strip())
    assert who is not None
    assert who.role is Role.operator
    assert kept.bootstrap(tmp_path / "operator.token") is None
    assert [i.name for i in kept.list()] == ["bootstrap"]


@pytest.mark.parametrize(
    "grant",
    [
        Grant("", Role.viewer),
        Grant("a b", Role.viewer),
        Grant("a\x00b", Role.viewer),
        Grant("x" * 65, Role.viewer),
        Grant("t", Role.tenant),
        Grant("o", Role.operator, tenant="acme"),
        Grant("a", Role.agent),
        Grant("v", Role.viewer, node="n1"),
        Grant("v", Role.viewer, pool="a\x00b"),
    ],
)
def test_a_grant_that_contradicts_itself_gets_no_token(store: Open, grant: Grant) -> None:
    kept = store()
    with pytest.raises(InvalidGrantError):
        kept.create(grant)
    assert kept.list() == []


def test_of_controllers_that_start_together_one_makes_the_first_token(store: Open, tmp_path: Path) -> None:
    """Mutant: look whether there is a token in one transaction, and make it in the next."""
    stores = [store() for _ in range(6)]
    files = [tmp_path / f"operator-{number}" for number in range(len(stores))]
    with ThreadPoolExecutor(len(stores)) as threads:
        made = list(threads.map(lambda one, file: one.bootstrap(file), stores, files))
    assert len([file for file in made if file is not None]) == 1
    assert len(stores[0].list()) == 1


async def test_a_token_is_recognised_while_the_loop_goes_on(store: Open) -> None:
    kept = store()
    token = kept.create(ADA)
    found = await asyncio.gather(*(kept.recognise(token) for _ in range(20)), kept.recognise("hst_x"))
    assert {who.name if who else "" for who in found} == {"ada", ""}


async def test_a_database_that_is_gone_for_a_minute_keeps_nobody_out_who_was_let_in(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: a failed look at the database forgets what is known, or lets anybody in."""
    with postgres.database() as url:
        kept = tokens.TokenStore(url)
        known, fresh = kept.create(ADA), kept.create(Grant("bob", Role.viewer))
        assert await kept.recognise(known)
        postgres.stop()
        monkeypatch.setattr(tokens, "FRESH_S", -1.0)
        try:
            assert await kept.recognise(known)
            with pytest.raises(JournalError):
                await kept.recognise(fresh)
            assert await kept.recognise(known[:-1] + ("A" if known[-1] != "A" else "B")) is None
        finally:
            postgres.start()
            kept.close()


def test_where_there_are_no_tokens_yet_none_are_looked_for(postgres_url: str) -> None:
    with pytest.raises(JournalError):
        tokens.TokenStore(postgres_url, make=False)


def test_the_revision_is_another_after_every_change(store: Open) -> None:
    """Mutant: only the number of tokens counts, and one that is revoked while another is made goes unnoticed."""
    clock = Clock()
    one = store(clock)
    seen = [one.revision()]
    first = one.create(Grant("a", Role.viewer)).split("_")[1]
    seen.append(one.revision())
    clock.now += timedelta(seconds=1)
    assert one.revoke(first)
    second = one.create(Grant("b", Role.viewer)).split("_")[1]
    seen.append(one.revision())
    assert len(set(seen)) == 3
    assert one.ids() == {second}


def test_who_signed_in_is_known_after_the_session_and_after_signing_out(store: Open) -> None:
    """Mutants: people are their living tokens alone; the first grant stands for ever; nobody is ever forgotten."""
    clock = Clock()
    kept = store(clock)
    tina = Grant("tina", Role.technician, site="ams1", expires=clock.now + timedelta(hours=8))
    session = kept.begin_session(tina)
    assert [one.name for one in kept.people()] == ["tina"]
    assert kept.revoke(session.split("_")[1])
    kept.create(Grant("agent-m0", Role.agent, node="m0"))
    kept.create(Grant("old", Role.technician, expires=clock.now + timedelta(minutes=1)))
    clock.now += timedelta(days=1)
    assert [(one.name, one.site) for one in store(clock).people()] == [("tina", "ams1")]
    kept.begin_session(replace(tina, site="ams2", expires=clock.now + timedelta(hours=8)))
    assert [(one.name, one.site) for one in kept.people()] == [("tina", "ams2")]
    clock.now += timedelta(days=KNOWN_DAYS + 1)
    kept.begin_session(Grant("bob", Role.operator, expires=clock.now + timedelta(hours=8)))
    assert [one.name for one in kept.people()] == ["bob"]


def test_sessions_that_are_over_are_no_longer_kept(store: Open) -> None:
    """Mutants: ended sessions pile up; a token that a person made is deleted with them."""
    clock = Clock()
    kept = store(clock)
    made = kept.create(Grant("tina", Role.technician, expires=clock.now + timedelta(hours=1)))
    for _ in range(3):
        kept.begin_session(Grant("tina", Role.technician, expires=clock.now + timedelta(hours=1)))
        clock.now += timedelta(hours=2)
    assert len(kept.list()) == 2
    assert made.split("_")[1] in kept.ids()


def test_agents_of_named_nodes_lose_their_tokens_and_nobody_else_does(store: Open) -> None:
    """Mutants: a person of that name loses theirs; of many nodes only the first few; what is remembered stays good."""
    kept = store()
    named = [f"n{number}" for number in range(1_200)]
    agents = kept.create_all([Grant(f"agent-{node}", Role.agent, node=node) for node in (*named, "stays")])
    person = kept.create(Grant("n1", Role.operator))
    assert kept.verify(agents[1]) is not None
    assert kept.revoke_agents(named) == 1_200
    assert [kept.verify(token) for token in (agents[0], agents[1], agents[1_199])] == [None] * 3
    assert kept.verify(agents[-1]) is not None
    assert kept.verify(person) is not None
    assert kept.revoke_agents(named) == 0


async def test_agents_of_retired_nodes_lose_their_tokens(store: Open) -> None:
    """Mutants: the node's neighbour loses its own; only nodes that are retired later are looked at."""
    kept = store()
    drive = Drive(configuration(), [a_node(name, pool="", phase=Phase.onboard) for name in ("a", "b", "c")], quiet=True)
    held = {name: kept.create(Grant(f"agent-{name}", Role.agent, node=name)) for name in ("a", "b", "c")}
    assert drive.ask("retire", "a").granted
    task = asyncio.create_task(revoking(lambda: drive.fleet, kept, 0.01))
    try:
        await _nobody(kept, held["a"])
        assert drive.ask("retire", "b").granted
        await _nobody(kept, held["b"])
    finally:
        task.cancel()
    assert kept.verify(held["c"]) is not None


async def _nobody(kept: tokens.TokenStore, token: str) -> None:
    async with asyncio.timeout(20):
        while kept.verify(token) is not None:  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0.01)


def test_no_grants_are_no_tokens(store: Open) -> None:
    """Mutant: a row without an id is written for them, which the database refuses."""
    kept = store()
    assert kept.create_all([]) == []
    assert kept.people() == []
