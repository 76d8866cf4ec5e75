"""Designs of a network: versions kept, what each changes, what a new one would change, and going back to one."""

import asyncio
from datetime import datetime
from hashlib import sha256
from typing import Annotated

import msgspec
from litestar import Router, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.client.answers import IntentView
from hostler.core.fabric.design import Design
from hostler.core.fabric.design_changes import DesignChange, changes
from hostler.core.fabric.design_csv import parse_csv
from hostler.core.intents import fabrics
from hostler.core.intents.fabrics import FabricSpec
from hostler.core.state import events as e
from hostler.core.state.fabrics import DesignVersion, Fabric, Model
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.fabrics import PlanRecabling, RegisterFabric
from hostler.core.state.verbs.facts import Permission
from hostler.journal.archived_records import archived_record
from hostler.ports import JournalError
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL, needs
from hostler.server.dependencies import TheAppState, Wanted
from hostler.server.paging import Name, Page, listed
from hostler.server.problems import invalid, refuse, unknown
from hostler.server.routes.fabrics import LARGEST, fabric_named
from hostler.server.routes.intents import Key, Reason, RequestedIntent, TheCaller, submit

CURRENT, PREVIOUS, PLANNED = "current", "previous", "planned"
DIGEST_LEAST = 6
"""Digits of a digest that name a version."""

Moment = Annotated[datetime, Meta(tz=True)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]
DESIGN_EXAMPLE = {
    "name": "ib0",
    "design": "a_node,a_port,z_node,z_port\ngpu-0042,mlx5_0,leaf-1,1\ngpu-0043,mlx5_0,leaf-1,2\n",
}


class FabricBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A network with its design."""

    fabric: FabricSpec
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class DesignVersionRow(Struct, frozen=True):
    """A version of a network's design. `text` is whether its cables can still be read here."""

    digest: str
    at: datetime
    person: str
    reason: str
    in_force: bool
    text: bool


class DesignPlan(Struct, frozen=True):
    """Changes from the design `old` to the design `new`, by their digests, before or after they follow.

    `counts` are changes by kind, `changes` the first of them and `more` how many are not listed. `hosts`, `switches`
    and `racks` count those that are touched, `nodes` names the nodes among the hosts.
    """

    old: str
    new: str
    summary: str
    counts: dict[str, int]
    changes: tuple[DesignChange, ...]
    more: int
    hosts: int
    switches: int
    racks: int
    nodes: tuple[str, ...]


class RollbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The version to go back to, by its digest's beginning, or `previous`."""

    version: Version
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class RecablingBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A design and the window in which the network is cabled by it. Of `fabric` the design, rule and models count."""

    fabric: FabricSpec
    starts: Moment
    ends: Moment
    reason: Reason
    dry_run: bool = False
    key: Key = ""


class ReadDesign(Struct, frozen=True):
    """A version's design as text with the names of its models."""

    digest: str
    text: str
    models: dict[str, Model]

    def parsed(self, name: str) -> Design:
        """The design itself. Its ports bear their own names already, so no model translates them again."""
        return replace(parse_csv(self.text.encode(), name), models=self.models)


@post(
    "/fabrics",
    guards=[needs(Permission.configure)],
    request_max_body_size=LARGEST,
    status_code=200,
    example={"fabric": DESIGN_EXAMPLE, "reason": "the new row"},
)
async def post_fabric(app_state: TheAppState, caller: TheCaller, data: JSONBody[FabricBody]) -> IntentView:
    """Make a network known with its design, or give it a new one. All of the design is checked first.

    A dry run says what it would change, as `design` of `detail`.
    """
    text = msgspec.json.encode(data.fabric).decode()
    ready = await read_text(text)  # the loop asks the same question, and finds it answered
    request = RequestedIntent(RegisterFabric(text), FLEET, data.reason, data.dry_run, data.key)
    view = await submit(app_state, caller, request)
    known = app_state.fleet.fabrics.get(data.fabric.name)
    if not data.dry_run or known is None:
        return view
    fresh = ReadDesign(ready.digest, ready.text, dict(data.fabric.models))
    plan = await _plan(app_state, in_force(known), fresh)
    return replace(view, detail={**view.detail, "design": plan.summary})


@get("/fabrics/{name:str}/versions", guards=SEE_CELL)
async def list_design_versions(app_state: TheAppState, wanted: Wanted, name: FromPath[str]) -> Page[DesignVersionRow]:
    """Versions of a network's design, oldest first: who brought each, when and why."""
    fabric = fabric_named(app_state, name)
    rows = (_row(fabric, number, one) for number, one in enumerate(fabric.versions))
    return listed(((f"{number:06d}", row) for number, row in enumerate(rows)), wanted)


def _row(fabric: Fabric, number: int, one: DesignVersion) -> DesignVersionRow:
    in_force = number == len(fabric.versions) - 1
    return DesignVersionRow(one.digest, one.at, one.person, one.reason, in_force, in_force or one.seq > 0)


@get("/fabrics/{name:str}/diff", guards=SEE_CELL)
async def diff_design_versions(
    app_state: TheAppState, name: FromPath[str], old: Name = PREVIOUS, new: Name = CURRENT
) -> DesignPlan:
    """Changes between two versions of a design: digests' beginnings, `previous` or `current`."""
    fabric = fabric_named(app_state, name)
    before, after = await design_of(app_state, fabric, old), await design_of(app_state, fabric, new)
    return await _plan(app_state, before, after)


@post(
    "/fabrics/{name:str}/plan",
    guards=[needs(Permission.configure)],
    request_max_body_size=LARGEST,
    status_code=200,
    example=DESIGN_EXAMPLE,
)
async def plan_design(app_state: TheAppState, name: FromPath[str], data: JSONBody[FabricSpec]) -> DesignPlan:
    """Changes that a design would bring, before it is registered: checked whole, and nothing follows."""
    fabric = fabric_named(app_state, name)
    spec = replace(data, name=fabric.name)
    ready = await read_text(msgspec.json.encode(spec).decode())
    fresh = ReadDesign(ready.digest, ready.text, dict(spec.models))
    return await _plan(app_state, in_force(fabric), fresh)


@post(
    "/fabrics/{name:str}/rollback",
    guards=[needs(Permission.configure)],
    status_code=200,
    example={"version": "previous", "reason": "the list was of another row"},
)
async def roll_back_design(
    app_state: TheAppState, caller: TheCaller, name: FromPath[str], data: JSONBody[RollbackBody]
) -> IntentView:
    """Bring a version's design and names of models back, as the newest version; other settings stay."""
    fabric = fabric_named(app_state, name)
    old = await design_of(app_state, fabric, data.version)
    design = fabric.subnet_design
    spec = FabricSpec(
        name=fabric.name,
        design=old.text,
        models=old.models,
        source=fabric.source,
        period_s=fabric.period_s,
        subnet_manager=design.subnet_manager,
        partitions=design.partitions,
        routing=design.routing,
        replaces=fabric.digest,
    )
    text = msgspec.json.encode(spec).decode()
    await read_text(text)
    request = RequestedIntent(RegisterFabric(text), FLEET, data.reason, data.dry_run, data.key)
    return await submit(app_state, caller, request)


@post(
    "/fabrics/{name:str}/recabling",
    guards=[needs(Permission.configure)],
    request_max_body_size=LARGEST,
    status_code=200,
    example={
        "fabric": DESIGN_EXAMPLE,
        "starts": "2036-01-01T00:00:00Z",
        "ends": "2036-01-01T08:00:00Z",
        "reason": "the new spine",
    },
)
async def plan_recabling(
    app_state: TheAppState, caller: TheCaller, name: FromPath[str], data: JSONBody[RecablingBody]
) -> IntentView:
    """Have a network cabled by a new design within a window. The answer's `detail` says what changes, as `design`.

    Where no models are given, the network's hold on.
    """
    fabric = fabric_named(app_state, name)
    spec = replace(data.fabric, name=fabric.name, models=data.fabric.models or fabric.models)
    text = msgspec.json.encode(spec).decode()
    ready = await read_text(text)
    act = PlanRecabling(data.starts, data.ends, text)
    request = RequestedIntent(act, fabric.name, data.reason, data.dry_run, data.key)
    view = await submit(app_state, caller, request)
    plan = await _plan(app_state, in_force(fabric), ReadDesign(ready.digest, ready.text, dict(spec.models)))
    return replace(view, detail={**view.detail, "design": plan.summary})


async def read_text(text: str) -> fabrics.PreparedDesign:
    """The registration in this text, checked beside the loop, which finds it ready. Raises ProblemError."""
    try:
        return await asyncio.to_thread(fabrics.prepared, text)
    except InvalidInputError as error:
        raise invalid(error) from error


def in_force(fabric: Fabric) -> ReadDesign:
    """The design in force, with its text."""
    return ReadDesign(fabric.digest, fabric.design, fabric.models)


async def _plan(app_state: AppState, old: ReadDesign, new: ReadDesign) -> DesignPlan:
    def found() -> DesignPlan:
        seen = changes(old.parsed("old"), new.parsed("new"))
        known = (app_state.fleet.resolve(host) for host in seen.hosts)
        nodes = tuple(sorted({node.id for node in known if node is not None}))
        counted = f"{seen.summary}{f' ({len(nodes):,} nodes)' if seen.counts else ''}"
        return DesignPlan(
            old.digest,
            new.digest,
            counted,
            seen.counts,
            seen.changes,
            seen.more,
            len(seen.hosts),
            len(seen.switches),
            len(seen.racks),
            nodes,
        )

    return await asyncio.to_thread(found)


async def design_of(app_state: AppState, fabric: Fabric, wanted: str) -> ReadDesign:
    """The version that is meant, with its text. Raises ProblemError where there is none, or its text is not here."""
    work = fabric.recabling
    if wanted == PLANNED:
        if work is None or work.before:
            raise refuse(404, "unknown", f"no re-cabling of network {fabric.name} is planned", "plan one first")
        return ReadDesign(work.version.digest, work.design, work.models)
    version = _version(fabric, wanted)
    if version.digest == fabric.digest:
        return in_force(fabric)
    try:
        found = await asyncio.to_thread(_recorded, app_state, fabric.name, version)
    except JournalError as error:
        raise refuse(410, "gone", f"the cables of design {version.digest[:12]} are not here", str(error)) from error
    if found is None:
        archived = await asyncio.to_thread(app_state.cell.journal.archived)
        where = archived.text if archived is not None else "an earlier controller recorded it without its place"
        instead = "put that file into the folder that the controller was started with (--archive), or give the design"
        raise refuse(410, "gone", f"the cables of design {version.digest[:12]} are not here: {where}", instead)
    return found


def _version(fabric: Fabric, wanted: str) -> DesignVersion:
    if wanted == CURRENT:
        return fabric.versions[-1]
    if wanted == PREVIOUS:
        if len(fabric.versions) < 2:
            raise refuse(404, "unknown", f"network {fabric.name} has one version of its design", "register another")
        return fabric.versions[-2]
    found = [one for one in fabric.versions if len(wanted) >= DIGEST_LEAST and one.digest.startswith(wanted.lower())]
    if len({one.digest for one in found}) != 1:
        raise unknown("design version", wanted)
    return found[-1]


def _recorded(app_state: AppState, fabric: str, version: DesignVersion) -> ReadDesign | None:
    """The version by its record, in the journal or the archive's file. Raises JournalError for one that is broken."""
    if not version.seq:
        return None
    records = app_state.cell.journal.history(e.fabric_subject(fabric), version.seq + 1, 1)
    record = records[0] if records and records[0].seq == version.seq else _archived(app_state, version.seq)
    read = _design_in(record.event, version.digest) if record is not None else None
    if read is not None and sha256(read.text.encode()).hexdigest() != version.digest:
        raise JournalError(
            f"record {version.seq} of the archive has another design; put the files of this journal there"
        )
    return read


def _archived(app_state: AppState, seq: int) -> e.Record | None:
    folder, archived = app_state.outside.archive, app_state.cell.journal.archived()
    if folder is None or archived is None or seq > archived.seq:
        return None
    return archived_record(folder, archived.files, seq)


def _design_in(event: e.Event, digest: str) -> ReadDesign | None:
    match event:
        case e.RecablingPlanned(recabling=work):
            return ReadDesign(digest, work.design, work.models)
        case e.FabricRegistered(fabric=fabric):
            return ReadDesign(digest, fabric.design, fabric.models)
        case _:
            return None


router = Router(
    path="/",
    route_handlers=[
        plan_recabling,
        post_fabric,
        list_design_versions,
        diff_design_versions,
        plan_design,
        roll_back_design,
    ],
    tags=["networks"],
)
