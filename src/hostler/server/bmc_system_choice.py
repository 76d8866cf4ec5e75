"""Asks, before nodes are made known, which of several machines behind one BMC each of them is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hostler.core.intents.registration import NodeSpec, bmc_of, is_named
from hostler.core.state.configuration import Sku
from hostler.core.state.input_problems import InvalidInputError, Problem

ASK_S = 8.0
"""For how long BMCs are asked, however many there are; one that has not answered by then is taken as it was given."""
AT_ONCE = 128
PROBLEMS_MAX = 50


Machines = Callable[[str], Awaitable[tuple[str, ...]]]
"""Lists the machines behind a BMC's address, as bindings that tell them apart; none where it is silent."""


async def nobody(_bmc: str) -> tuple[str, ...]:
    """The answer where no BMC is reached from here."""
    return ()


async def demand_choice(machines: Machines, specs: Sequence[NodeSpec], skus: Mapping[str, Sku]) -> None:
    """Raises InvalidInputError for each binding without a name behind whose address several machines are."""
    unnamed = {n: spec.bmc for n, spec in enumerate(specs) if spec.bmc and not is_named(bmc_of(spec, skus))}
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(bmc: str) -> tuple[str, ...]:
        async with places:
            return await machines(bmc)

    asked = {bmc: asyncio.ensure_future(ask(bmc)) for bmc in dict.fromkeys(unnamed.values())}
    if not asked:
        return
    done, late = await asyncio.wait(asked.values(), timeout=ASK_S)
    for task in late:
        task.cancel()
    found = [
        Problem(f"nodes[{number}]", 0, _several(bmc, asked[bmc].result()), "write one of them as the node's bmc")
        for number, bmc in unnamed.items()
        if asked[bmc] in done and len(asked[bmc].result()) > 1
    ]
    if found:
        raise InvalidInputError(tuple(found[:PROBLEMS_MAX]))


def _several(bmc: str, choices: tuple[str, ...]) -> str:
    return f"{len(choices)} machines are behind {bmc}: {'; '.join(choices)}"
