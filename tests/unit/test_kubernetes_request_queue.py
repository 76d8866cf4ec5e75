"""Order of requests to the API server: cordons first, the gravest first, and no class fills the places of others."""

import asyncio

from hostler.drivers.kubernetes.request_queue import ACT, MARK, PLACES, RequestQueue, RequestRank, Urgency


class Asked:
    """Requests that stay out until they are ended; `begun` names them in the order in which they had their turn."""

    def __init__(self) -> None:
        self.turns = RequestQueue()
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str, turn: RequestRank) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._one(name, turn))
        await settle()

    async def _one(self, name: str, turn: RequestRank) -> None:
        async with self.turns.taken(turn):
            self.begun.append(name)
            await self._ends[name].wait()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await settle()

    async def over(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def settle() -> None:
    """Lets every task go on that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def cordon(severity: int) -> RequestRank:
    return RequestRank(Urgency.cordon, severity)


async def test_the_gravest_cordon_is_next_then_acts_then_node_status_each_in_the_order_in_which_they_came() -> None:
    """Mutants: first come, first served; the least grave first; acts before cordons; marks with the acts."""
    asked = Asked()
    for number in range(PLACES[Urgency.cordon]):
        await asked.ask(f"out{number}", cordon(0))
    await asked.ask("mark", MARK)
    await asked.ask("act", ACT)
    await asked.ask("another act", ACT)
    for name, severity in (("warning", 1), ("critical", 3), ("degraded", 2), ("also critical", 3)):
        await asked.ask(name, cordon(severity))
    del asked.begun[:]
    for number in range(PLACES[Urgency.cordon]):
        await asked.end(f"out{number}")
    assert asked.begun == ["critical", "also critical", "degraded", "warning", "act", "another act", "mark"]
    await asked.over()


async def test_what_is_less_urgent_leaves_places_for_what_is_more() -> None:
    """Sixty marks and sixty acts hang: acts still have places beside the marks, and cordons beside both.

    Mutants: one limit for all; the limit counts only its own urgency, so that acts and marks together fill all places.
    """
    asked = Asked()
    for number in range(60):
        await asked.ask(f"mark{number}", MARK)
    assert len(asked.begun) == PLACES[Urgency.mark]
    for number in range(60):
        await asked.ask(f"act{number}", ACT)
    assert len(asked.begun) == PLACES[Urgency.act]
    for number in range(60):
        await asked.ask(f"cordon{number}", cordon(3))
    assert len(asked.begun) == PLACES[Urgency.cordon]
    assert asked.begun[-1] == f"cordon{PLACES[Urgency.cordon] - PLACES[Urgency.act] - 1}"
    await asked.over()


async def test_who_gives_up_leaves_no_place_taken() -> None:
    """Mutants: a cancelled waiter is granted its turn for ever; a request that failed keeps its place."""
    asked = Asked()
    for number in range(PLACES[Urgency.act]):
        await asked.ask(f"out{number}", ACT)
    await asked.ask("gives up", ACT)
    await asked.ask("waits", ACT)
    await asked.cancel("gives up")
    await asked.cancel("out0")
    assert asked.begun[-1] == "waits"
    await asked.over()
    del asked.begun[:]
    for number in range(PLACES[Urgency.act] + 1):
        await asked.ask(f"again{number}", ACT)
    assert len(asked.begun) == PLACES[Urgency.act]
    await asked.over()


async def test_a_turn_that_is_granted_to_who_is_being_cancelled_goes_to_the_next() -> None:
    """Mutant: the place of one that is cancelled between its grant and its start is lost."""
    turns = RequestQueue()
    entered: list[int] = []

    async def one(number: int) -> None:
        async with turns.taken(ACT):
            entered.append(number)
            await asyncio.sleep(0)

    async def holder(release: asyncio.Event) -> None:
        async with turns.taken(ACT):
            await release.wait()

    release = asyncio.Event()
    holders = [asyncio.create_task(holder(release)) for _ in range(PLACES[Urgency.act])]
    await settle()
    waiting = [asyncio.create_task(one(number)) for number in range(PLACES[Urgency.act] + 1)]
    await settle()
    release.set()
    await asyncio.sleep(0)  # the holders have left, and the first who wait are granted their turns
    for task in waiting[:-1]:
        task.cancel()
    await asyncio.wait_for(waiting[-1], 5.0)
    assert entered[-1] == PLACES[Urgency.act]
    await asyncio.gather(*holders, *waiting, return_exceptions=True)
