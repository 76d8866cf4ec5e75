"""Racks as one: whether each stage stands, how far the bring-up has come and what it waits for, the certificate."""

from collections.abc import Iterator
from datetime import datetime

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct

from hostler.core.conditions import rack_match
from hostler.core.policy.budgets import domain_limit, taken
from hostler.core.report.rack_story import STEP_EVENTS, RackStepRow, steps_of
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, Operation, Verdict
from hostler.core.state.rack_runs import Rack, RackCertificate, RackEnd, RackRun
from hostler.core.state.scopes import RACK, Scope
from hostler.server.api_resources import HistoryRow
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import Before
from hostler.server.paging import Limit, Page, listed
from hostler.server.problems import unknown
from hostler.server.subject_histories import subject_history


class RackRow(Struct, frozen=True):
    """A rack in one line. `state`: bringing_up, failed, called_off, certified, void or open.

    `step` is the one that the bring-up is at, or ended at; `waits_for` what it waits for, `certified_by` and `at` whose
    the certificate is and when it was made.
    """

    rack: str
    state: str
    sku: str
    bundle: str
    step: str
    done: int
    steps: int
    since: datetime | None
    waits_for: tuple[str, ...]
    certified_by: str
    certified_at: datetime | None
    digest: str
    why: str


class RackStage(Struct, frozen=True):
    """Verdict on one stage of a rack, and all that keeps it from standing."""

    stage: str
    verdict: Verdict
    gaps: tuple[str, ...]


class RackBudget(Struct, frozen=True):
    """Budget of one of the rack's failure domains, as its NVLink domain: how many of its nodes may be away, and are.

    `limit` None: none are counted. `at_once`: so many domains of this kind may be taken whole (0: any number), `taken`
    are those that are.
    """

    domain: str
    nodes: int
    disturbed: int
    limit: int | None
    at_once: int
    taken: tuple[str, ...]


class RackView(Struct, frozen=True):
    """A rack with its stages as they stand now, its bring-up, its certificate, its domains' budgets, its history.

    `steps` are of the bring-up that is under way, else of the last one, else as the recipe has them. `cursor` goes on
    with the history (`before`), "" where it is whole; `archived` says where what came before is.
    """

    row: RackRow
    stages: tuple[RackStage, ...]
    run: RackRun | None
    ended: RackEnd | None
    certificate: RackCertificate | None
    operations: tuple[Operation, ...]
    blockers: tuple[Blocker, ...]
    steps: tuple[RackStepRow, ...]
    budgets: tuple[RackBudget, ...]
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""


@get("/racks", guards=SEE_CELL)
async def list_racks(app_state: TheAppState, wanted: Wanted) -> Page[RackRow]:
    """Racks that are or were brought up as one, or certified."""
    fleet = app_state.fleet
    return listed(((name, row_of(fleet.racks[name])) for name in sorted(fleet.racks)), wanted)


@get("/racks/{rack:str}", guards=SEE_CELL)
async def get_rack(
    app_state: TheAppState, who: Who, rack: FromPath[str], before: Before = None, limit: Limit = 200
) -> RackView:
    """One rack, by its name, whether it has been brought up as one or not."""
    fleet = app_state.fleet
    known = fleet.racks.get(rack)
    if known is None and not fleet.assets_of(rack) and not rack_match.nodes_of(fleet, rack):
        raise unknown("rack", rack)
    known = known or Rack(rack)
    run = known.run
    blockers = run.waiting.blockers if run is not None and run.waiting is not None else ()
    stages = tuple(_stages(fleet, known, app_state.now()))
    subject = Scope(RACK, rack).text
    told = await subject_history(app_state, who, [subject], before, limit)
    return RackView(
        row_of(known),
        stages,
        run,
        known.ended,
        known.certificate,
        known.operations,
        blockers,
        steps_of(known, await app_state.named(subject, *STEP_EVENTS)),
        tuple(_budgets(app_state.context(), rack)),
        told.rows,
        told.cursor,
        told.archived,
    )


def _budgets(context: DecisionContext, rack: str) -> Iterator[RackBudget]:
    fleet = context.fleet
    domains = {domain for node in rack_match.nodes_of(fleet, rack) for domain in node.domains}
    domains |= {domain for asset in fleet.assets_of(rack) for domain in asset.domains}
    for domain in sorted(domains):
        budget = fleet.policy.domains.get(domain.kind)
        yield RackBudget(
            domain.text,
            fleet.index.count(domain.shared),
            fleet.index.count(f"disturbed:{domain}"),
            domain_limit(context, domain),
            budget.at_once if budget is not None else 0,
            tuple(sorted(one.text for one in taken(context, domain.kind))) if budget and budget.at_once else (),
        )


def _stages(fleet: Fleet, rack: Rack, now: datetime) -> list[RackStage]:
    skus = rack_match.skus_of(fleet, rack.name)
    last = rack.run or rack.certificate or rack.ended
    name = last.sku if last is not None else next(iter(skus), "")
    place = rack_match.place_of(fleet, rack.name, fleet.configuration.skus.get(name))
    if place is None:
        return []
    found = (rack_match.judged(place, stage, now) for stage in rack_match.STAGES)
    return [RackStage(one.stage, one.verdict, one.gaps) for one in found]


def row_of(rack: Rack) -> RackRow:
    """The rack in one line."""
    run, ended, paper = rack.run, rack.ended, rack.certificate
    waits = tuple(b.text for b in run.waiting.blockers) if run is not None and run.waiting is not None else ()
    here = run.steps[run.index].name if run is not None and run.index < len(run.steps) else ""
    return RackRow(
        rack.name,
        _state(rack),
        run.sku if run else paper.sku if paper else "",
        run.bundle if run else paper.bundle if paper else "",
        here or (ended.step if ended is not None and run is None else ""),
        run.index if run else 0,
        len(run.steps) if run else 0,
        run.since if run else ended.at if ended else None,
        waits,
        paper.person if paper else "",
        paper.at if paper else None,
        paper.digest if paper else "",
        paper.void_why if paper is not None and not paper.holds else ended.why if ended is not None else "",
    )


def _state(rack: Rack) -> str:
    if rack.run is not None:
        return "bringing_up"
    if rack.certificate is not None:
        return "certified" if rack.certificate.holds else "void"
    if rack.ended is not None and rack.ended.result != "done":
        return rack.ended.result
    return "open"


router = Router(path="/", route_handlers=[list_racks, get_rack], tags=["racks"])
