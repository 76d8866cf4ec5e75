"""Domain acts: what is asked of a whole rack or NVLink domain, how far each member has come, and whom it waits for."""

from datetime import datetime

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct

from hostler.core.planning.domain_plans import DomainAct, DomainMember, DomainStage, acts
from hostler.core.policy.blast_radius import resolve
from hostler.core.state.model import Blocker, Phase
from hostler.server.app_state import AppState
from hostler.server.auth import SEE
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.paging import Page, listed
from hostler.server.problems import unknown
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity


class MemberRow(Struct, frozen=True):
    """One node of an act. `stage`: cordon, drain, act, open or done, what it does next; "" before all may begin."""

    node: str
    stage: str
    state: str
    since: datetime | None
    blockers: tuple[Blocker, ...]


class DomainActRow(Struct, frozen=True):
    """An act on a domain. `state`: waiting, proposed, running or undoing; `stages` counts its members by stage.

    `person` and `reason` are empty where it answers a fault. `waits_for` is whom it waits for, each named once.
    """

    id: str
    scope: str
    remedy: str
    state: str
    person: str
    reason: str
    since: datetime | None
    nodes: int
    stages: dict[str, int]
    waits_for: tuple[str, ...]


class DomainView(Struct, frozen=True):
    """A domain: its nodes in production, and every act on it with all members."""

    scope: str
    nodes: tuple[str, ...]
    acts: tuple[DomainActRow, ...]
    members: dict[str, tuple[MemberRow, ...]]


@get("/domains", guards=SEE)
async def list_domain_acts(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[DomainActRow]:
    """Acts that wait or are under way, of which the caller sees every member."""
    return listed(((act.group.text, _row(act)) for act in _seen(app_state, who)), wanted)


@get("/domains/{name:str}", guards=SEE)
async def get_domain(app_state: TheAppState, who: Who, name: FromPath[str]) -> DomainView:
    """A rack, NVLink domain or other failure domain by name ("rack:r7", "r7") or by its asset."""
    fleet = app_state.fleet
    scope = next(iter(resolve(fleet, name)), None)
    nodes = [fleet.nodes[i] for i in fleet.index.members(scope.shared)] if scope else []
    serving = tuple(node.id for node in nodes if node.phase is Phase.production and sees(who, node))
    if scope is None or not any(sees(who, node) for node in nodes):
        raise unknown("domain", name)
    found = [act for act in _seen(app_state, who) if act.scope == scope]
    rows = {act.group.text: tuple(_member(member) for member in act.members) for act in found}
    return DomainView(scope.text, serving, tuple(_row(act) for act in found), rows)


def _seen(app_state: AppState, who: Identity) -> list[DomainAct]:
    own = [act for act in acts(app_state.fleet) if act.members and all(sees(who, m.node) for m in act.members)]
    return app_state.shown(who, own)


def _row(act: DomainAct) -> DomainActRow:
    staged = [member.stage for member in act.members if member.stage is not None]
    waits = (b.text for m in act.members for b in m.blockers if act.state == "waiting" or b.kind != "domain")
    return DomainActRow(
        id=act.group.text,
        scope=act.scope.text,
        remedy=act.remedy,
        state=act.state,
        person=act.request.owner if act.request else "",
        reason=act.request.evidence[0].text if act.request else "",
        since=act.request.since if act.request else None,
        nodes=len(act.members),
        stages={stage.name: count for stage in DomainStage if (count := staged.count(stage))},
        waits_for=tuple(dict.fromkeys(waits))[:20],
    )


def _member(member: DomainMember) -> MemberRow:
    since = member.node.waiting.since if member.node.waiting else None
    stage = member.stage.name if member.stage is not None else ""
    return MemberRow(member.node.id, stage, member.state, since, member.blockers)


router = Router(path="/", route_handlers=[list_domain_acts, get_domain], tags=["domains"])
