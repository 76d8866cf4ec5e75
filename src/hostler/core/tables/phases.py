"""The lifecycle graph: every edge a node may move along, and how long it may stay. The machine is this table.

Docs, the console's graph and the exhaustive test read it; `next_step` lays down no move that is not here.
"""

from msgspec import Struct

from hostler.core.state.model import Phase

HOUR_S = 3600.0
DAY_S = 86_400.0


class Edge(Struct, frozen=True):
    """One way from phase to phase: what causes it and who takes it (automatic, technician, operator, person)."""

    before: Phase
    after: Phase
    on: str
    who: str = "automatic"


class PhaseRow(Struct, frozen=True):
    """A phase: the recipe that does its work ("" = a person does), its limit, and where the limit leads.

    `usual_s`: where somebody else's work has no limit, how long nobody wonders; beyond it the node is stuck.
    `convicted`: only evidence of a fault of that machine leads here, or a person's word (`verdicts.Conviction`).
    """

    phase: Phase
    title: str
    recipe: str = ""
    limit_s: float | None = None
    on_limit: Phase | None = None
    waits_for: str = ""
    usual_s: float | None = None
    convicted: bool = False


PHASES: dict[Phase, PhaseRow] = {
    row.phase: row
    for row in (
        PhaseRow(Phase.registered, "known from inventory, not yet powered on", usual_s=7 * DAY_S),
        PhaseRow(
            Phase.initializing,
            "Day 0: is set to boot from the network, powered on, and its agent heard",
            recipe="initializing",
            limit_s=0.5 * HOUR_S,
            on_limit=Phase.triage,
        ),
        PhaseRow(
            Phase.onboard,
            "inspected and cabled by hands",
            waits_for="a technician's certification",
            usual_s=7 * DAY_S,
        ),
        PhaseRow(
            Phase.seatrial,
            "Day 1: what it consists of is seen, and held against its SKU",
            recipe="seatrial",
            limit_s=6 * HOUR_S,
            on_limit=Phase.triage,
        ),
        PhaseRow(
            Phase.zap,
            "Day 1: firmware to the fleet's baseline",
            recipe="zap",
            limit_s=6 * HOUR_S,
            on_limit=Phase.zap_fail,
        ),
        PhaseRow(Phase.zap_fail, "firmware failed", waits_for="a person", usual_s=3 * DAY_S),
        PhaseRow(
            Phase.test,
            "Day 1: burn-in and validation",
            recipe="test",
            limit_s=60 * HOUR_S,
            on_limit=Phase.triage,
        ),
        PhaseRow(Phase.production, "in service: delivered to a pool, or a spare"),
        PhaseRow(Phase.triage, "out of service, the cause is being found", recipe="examine", usual_s=3 * DAY_S),
        PhaseRow(Phase.debug, "engineers look", waits_for="an engineer", usual_s=14 * DAY_S),
        PhaseRow(
            Phase.rma,
            "with the vendor",
            waits_for="its return",
            usual_s=45 * DAY_S,
            convicted=True,
        ),
        PhaseRow(Phase.retired, "gone"),
    )
}

TRANSITIONS: tuple[Edge, ...] = (
    Edge(Phase.registered, Phase.initializing, "bring-up begins"),
    Edge(Phase.registered, Phase.production, "adopted, its inventory seen"),
    Edge(Phase.initializing, Phase.onboard, "booted and heard"),
    Edge(Phase.initializing, Phase.triage, "failed or over its limit"),
    Edge(Phase.onboard, Phase.seatrial, "certified", "technician"),
    Edge(Phase.seatrial, Phase.zap, "as its SKU, and its checks passed"),
    Edge(Phase.seatrial, Phase.triage, "failed or over its limit"),
    Edge(Phase.zap, Phase.test, "firmware at the baseline"),
    Edge(Phase.zap, Phase.zap_fail, "failed or over its limit"),
    Edge(Phase.zap_fail, Phase.zap, "try again", "person"),
    Edge(Phase.zap_fail, Phase.triage, "needs triage", "person"),
    Edge(Phase.test, Phase.production, "burn-in passed"),
    Edge(Phase.test, Phase.triage, "failed or over its limit"),
    Edge(Phase.test, Phase.zap, "firmware is not the baseline", "person"),
    Edge(Phase.production, Phase.triage, "needs triage"),
    Edge(Phase.production, Phase.test, "verification asked for", "operator"),
    Edge(Phase.triage, Phase.test, "no part changed: suspect profile passed"),
    Edge(Phase.triage, Phase.onboard, "the same, of a node that had not booted before"),
    Edge(Phase.triage, Phase.seatrial, "the same, of a node that failed its Seatrial"),
    Edge(Phase.triage, Phase.zap, "the same, and its firmware is not the baseline"),
    Edge(Phase.triage, Phase.rma, "found faulty, once or too often; or a person sends it"),
    Edge(Phase.triage, Phase.debug, "engineers are to look", "person"),
    Edge(Phase.debug, Phase.onboard, "repaired", "person"),
    Edge(Phase.rma, Phase.onboard, "returned by the vendor", "technician"),
    *(
        Edge(phase, Phase.retired, "retired", "operator")
        for phase in Phase
        if phase not in (Phase.retired, Phase.production)
    ),
)

_ALLOWED = {(edge.before, edge.after): edge for edge in TRANSITIONS}


def edge(before: Phase, after: Phase) -> Edge | None:
    """The edge from one phase to another, None where the graph has none."""
    return _ALLOWED.get((before, after))
