"""Customers' jobs on nodes, as Kubernetes and Slurm tell them now."""

import asyncio
from typing import Annotated

from litestar import Router, get
from litestar.params import QueryParameter
from msgspec import Struct

from hostler.client.answers import JobRow, UntoldJobs
from hostler.server.app_state import AppState
from hostler.server.auth import SEE
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_reach import ids_for, reached
from hostler.server.paging import Selection, paged
from hostler.server.running_jobs import RunningJobs, job_row
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity

SLICE = 1_000
"""Nodes looked at before other requests have their turn."""
JobName = Annotated[str, QueryParameter(max_length=400, description="the one job of this id")]


class JobPage(Struct, frozen=True):
    """One page of jobs, read on as any other with `cursor`. `untold`: what runs on these clusters' nodes is unknown."""

    items: tuple[JobRow, ...]
    cursor: str
    seq: int
    untold: tuple[UntoldJobs, ...]


@get("/jobs", guards=SEE)
async def list_jobs(app_state: TheAppState, who: Who, wanted: Wanted, job: JobName = "") -> JobPage:
    """Customers' running jobs that have a selected node, by cluster and name; each with all of its nodes in reach.

    A tenant reads its own: those that their scheduler (namespace, account) calls by the tenant's name.
    """
    found, selected = await _running(app_state, who, wanted)
    skus = app_state.fleet.configuration.skus
    ids = sorted(selected if not job else selected & {job})
    page = paged(ids, wanted, lambda name: (job_row(name, found.jobs[name], skus),))
    return JobPage(page.items, page.cursor, page.seq, found.untold(with_reasons=who.whole))


async def _running(app_state: AppState, who: Identity, wanted: Selection) -> tuple[RunningJobs, set[str]]:
    """Jobs within the caller's reach, and the ids of those with a node that is selected."""
    found, selected = RunningJobs(app_state.cell.live, who.grant.tenant), set[str]()
    ids = ids_for(app_state, who, Selection())
    for start in range(0, len(ids), SLICE):
        for node_id in ids[start : start + SLICE]:
            node = app_state.fleet.nodes.get(node_id)
            if node is None or not sees(who, node):
                continue
            names = found.take(node)
            if names and reached(app_state, who, wanted, node_id):
                selected.update(names)
        await asyncio.sleep(0)
    return found, selected


router = Router(path="/", route_handlers=[list_jobs], tags=["lists"])
