"""Bring-up: where each node stands on its way to production, how its cohort fared there, and when it may arrive.

Pure. A cohort is nodes of one SKU on the same way: the first one, or back from triage and repair. Those of it that
stayed as long in the node's stage and did arrive tell when the node may; people's time is in it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.report.burn_ins import BurnInStanding
from hostler.core.report.flow import NodeMove, at_share
from hostler.core.state.assets import Position
from hostler.core.state.model import Node, Phase
from hostler.core.state.verbs.command_line import command_of
from hostler.core.state.verbs.facts import Verb
from hostler.core.state.verbs.nodes import Certify, ZapAgain
from hostler.core.state.ways_out import ByAct
from hostler.core.tables.phases import PHASES

STAGES = (
    Phase.registered,
    Phase.initializing,
    Phase.onboard,
    Phase.seatrial,
    Phase.zap,
    Phase.zap_fail,
    Phase.test,
)
"""Phases between being known and production."""


class Stay(Struct, frozen=True):
    """One stay in a stage, in seconds. `on`: it led to another stage or production.

    `to_service_s`: from its begin until production, None where the node did not arrive, or not yet.
    """

    stay_s: float
    on: bool
    to_service_s: float | None = None


class CohortTimes(Struct, frozen=True):
    """Stays of the cohort in a node's stage: how many, how many went on from there, and how long these took.

    `passed_by` is the share of these that were gone by now, None without any.
    """

    stays: int
    went_on: int
    median_s: float | None
    p90_s: float | None
    passed_by: float | None


class Arrival(Struct, frozen=True):
    """When the node may be in production: at the middle and after 9 of 10 of the `of` nodes that stayed as long."""

    median: datetime
    p90: datetime
    of: int


class BringUpRow(Struct, frozen=True):
    """A node on its way to production.

    `steps_done` of `steps` of the plan are done, `doing` is where its agent stands in a long check. `returns`: it comes
    back from triage or repair. `arrives` is None where nobody arrived who stayed as long here. `next_act` is what a
    person does next, "" where nobody has to. `burn_in` is the burn-in under way beside those of its SKU.
    """

    node: str
    phase: Phase
    phase_since: datetime
    returns: bool
    sku: str
    position: Position
    serial: str
    limit_s: float | None
    step: str
    steps_done: int
    steps: int
    doing: str
    waits_since: datetime | None
    blockers: tuple[str, ...]
    ends_when: tuple[str, ...]
    next_act: str
    cohort: CohortTimes
    arrives: Arrival | None
    burn_in: BurnInStanding | None = None


class StageRow(Struct, frozen=True):
    """Nodes in a stage now, how many of them wait, and how the stays of one SKU's cohort went there."""

    phase: Phase
    title: str
    sku: str
    returns: bool
    nodes: int
    waiting: int
    cohort: CohortTimes


CohortKey = tuple[str, bool, Phase]
"""SKU, whether it comes back, stage."""


class Journeys(Struct, frozen=True):
    """Stays by cohort and stage, and for each node that is on its way whether it comes back."""

    stays: Mapping[CohortKey, Sequence[Stay]]
    returns: Mapping[str, bool]

    def key(self, node: Node) -> CohortKey:
        """The node's cohort in its stage; where its way began is not in the records, who has served comes back."""
        return (node.sku, self.returns.get(node.id, node.handover is not None), node.phase)


class _Run(Struct):
    """One way through the stages: (stage, since, until None: there now). `returns` None: its begin is not known."""

    returns: bool | None
    stages: list[tuple[Phase, datetime, datetime | None]]


def journeys(moves: Iterable[NodeMove], skus: Mapping[str, str]) -> Journeys:
    """The stays of the nodes that `skus` knows, from their moves, the earliest first."""
    runs: dict[str, _Run] = {}
    stays: defaultdict[CohortKey, list[Stay]] = defaultdict(list)
    for move in moves:
        if move.node not in skus:
            continue
        run = runs.get(move.node)
        if run is not None and run.stages:
            stage, since, _ = run.stages[-1]
            run.stages[-1] = (stage, since, move.at)
        after = Phase(move.after)
        if after in STAGES:
            runs[move.node] = _further(run, move)
        elif run is not None:
            _ended(stays, skus[move.node], run, after is Phase.production)
            del runs[move.node]
    for node, run in runs.items():
        _keep(stays, skus[node], run, [(stay, True, None) for stay in run.stages[:-1]])
    return Journeys(stays, {node: run.returns for node, run in runs.items() if run.returns is not None})


def _further(run: _Run | None, move: NodeMove) -> _Run:
    if run is None:
        known = move.before not in STAGES
        run = _Run(move.before != "" if known else None, [])
    run.stages.append((Phase(move.after), move.at, None))
    return run


def _ended(stays: defaultdict[CohortKey, list[Stay]], sku: str, run: _Run, arrived: bool) -> None:
    """Keep the stays of a way that has ended; an adoption leads from registered to production and is none."""
    if arrived and all(stage is Phase.registered for stage, _, _ in run.stages):
        return
    last, end = len(run.stages) - 1, run.stages[-1][2]
    told = [(stay, arrived or at < last, end if arrived else None) for at, stay in enumerate(run.stages)]
    _keep(stays, sku, run, told)


def _keep(
    stays: defaultdict[CohortKey, list[Stay]],
    sku: str,
    run: _Run,
    told: Iterable[tuple[tuple[Phase, datetime, datetime | None], bool, datetime | None]],
) -> None:
    if run.returns is None:
        return
    for (stage, since, until), on, arrived in told:
        assert until is not None, "the node has left the stage"
        to_service = (arrived - since).total_seconds() if arrived else None
        stays[sku, run.returns, stage].append(Stay((until - since).total_seconds(), on, to_service))


def row_of(node: Node, known: Journeys, now: datetime, doing: str) -> BringUpRow:
    """The node's row; `doing` is its agent's word."""
    key, waiting, plan = known.key(node), node.waiting, node.plan
    stays, age_s = known.stays.get(key, ()), (now - node.phase_since).total_seconds()
    row = PHASES[node.phase]
    return BringUpRow(
        node=node.id,
        phase=node.phase,
        phase_since=node.phase_since,
        returns=key[1],
        sku=node.sku,
        position=node.position,
        serial=node.binding("serial"),
        limit_s=row.limit_s or row.usual_s,
        step=plan.steps[plan.index].operation if plan and plan.index < len(plan.steps) else "",
        steps_done=plan.index if plan else 0,
        steps=len(plan.steps) if plan else 0,
        doing=doing,
        waits_since=waiting.since if waiting else None,
        blockers=tuple(b.text for b in waiting.blockers) if waiting else (),
        ends_when=tuple(b.ends_when for b in waiting.blockers) if waiting else (),
        next_act=next_act(node),
        cohort=cohort_of(stays, age_s),
        arrives=arrival(stays, node.phase_since, now),
    )


def stage_rows(nodes: Iterable[Node], known: Journeys) -> tuple[StageRow, ...]:
    """The stages in their order, by SKU and way: nodes that are there now, and cohorts that were."""
    here: defaultdict[CohortKey, list[Node]] = defaultdict(list)
    for node in nodes:
        here[known.key(node)].append(node)
    order = {stage: place for place, stage in enumerate(STAGES)}
    keys = sorted({*here, *known.stays}, key=lambda key: (order[key[2]], key[0], key[1]))
    return tuple(
        StageRow(
            phase,
            PHASES[phase].title,
            sku,
            returns,
            len(here.get((sku, returns, phase), ())),
            sum(node.waiting is not None for node in here.get((sku, returns, phase), ())),
            cohort_of(known.stays.get((sku, returns, phase), ()), None),
        )
        for sku, returns, phase in keys
    )


def cohort_of(stays: Sequence[Stay], age_s: float | None) -> CohortTimes:
    """The stays in numbers, and the share that was gone at this age."""
    went_on = sorted(stay.stay_s for stay in stays if stay.on)
    passed_by = None if age_s is None or not went_on else sum(stay <= age_s for stay in went_on) / len(went_on)
    return CohortTimes(len(stays), len(went_on), at_share(went_on, 0.5), at_share(went_on, 0.9), passed_by)


def arrival(stays: Sequence[Stay], since: datetime, now: datetime) -> Arrival | None:
    """When a node that is in a stage since then may be in production, None where nobody tells."""
    age_s = (now - since).total_seconds()
    took = sorted(stay.to_service_s for stay in stays if stay.to_service_s is not None and stay.stay_s > age_s)
    median, p90 = at_share(took, 0.5), at_share(took, 0.9)
    if median is None or p90 is None:
        return None
    return Arrival(since + timedelta(seconds=median), since + timedelta(seconds=p90), len(took))


_BY_HAND: dict[Phase, Verb] = {Phase.onboard: Certify(), Phase.zap_fail: ZapAgain()}
"""Acts with which a person takes a node out of a stage that has no work of its own."""
_ASKED = frozenset({"check", "inventory", "cabling"})
"""Kinds of blocker that a person has been asked about, though something else may end them too."""


def next_act(node: Node) -> str:
    """The command of the person's act that takes the node further; "" where nobody has to do anything."""
    for blocker in node.waiting.blockers if node.waiting else ():
        if blocker.kind in _ASKED or isinstance(blocker.ways[0], ByAct):
            acts = [way.command for way in blocker.ways if isinstance(way, ByAct) and way.command]
            if acts:
                return acts[0]
    by_hand = _BY_HAND.get(node.phase)
    return command_of(by_hand, node.id) if by_hand is not None else ""
