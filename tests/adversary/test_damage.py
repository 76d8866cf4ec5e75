"""Numbers without bounds from an agent, and a journal that is gone while its tokens are there, on a real `serve`."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from hostler.journal.opening import open_journal
from tests.adversary.attacked import attacked
from tests.adversary.test_one_token import a_post, documents, two_nodes
from tests.end_to_end.processes import HOSTLER, free_port, run

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

HUGE = 10**30


async def test_a_number_without_bounds_is_refused_by_name_and_a_lost_journal_begins_no_new_cell(tmp_path: Path) -> None:
    """Mutants: it is stored, and no snapshot is written ever after; an empty journal beside tokens is a new cell."""
    given = documents(tmp_path)
    async with attacked(tmp_path, *given) as served:
        _, agent, _ = await two_nodes(served)
        bad, good = a_post("n1", 1), a_post("n1", 1)
        bad["observations"][0]["count"] = HUGE
        status, answer = await asyncio.to_thread(served.ask, "POST", "/v1/agent/observations", agent, bad)
        assert status == 400, answer
        assert "observations[0].count" in str(answer)
        status, answer = await asyncio.to_thread(served.ask, "POST", "/v1/agent/observations", agent, good)
        assert (status, answer["acknowledged"]) == (200, 1), "the sender goes on"
    data = tmp_path / "data"
    with closing(open_journal(data / "journal.db")) as journal:
        held = journal.latest_seq()
    for kept in sorted(data.glob("journal.db*")):
        kept.unlink()
    (data / "journal.db").touch(mode=0o600)
    serve = ("serve", "--data", str(data), "--listen", f"127.0.0.1:{free_port()}", *given)
    status, said = await run(HOSTLER, *serve)
    assert status != 0
    assert "put the journal back" in said
    assert held > 0, "there was something to lose"
    assert (data / "journal.db").stat().st_size == 0, "and nothing was written over it"
