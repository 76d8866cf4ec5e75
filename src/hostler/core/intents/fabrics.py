"""Networks made known with a design that is checked whole, validated on demand, and removed."""

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hostler.core.fabric.design import Design, DeviceKind
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.policy import finding_walks, link_cases
from hostler.core.policy.fabric_cases import ended
from hostler.core.policy.switch_incidents import HOSTLER, incidents_of
from hostler.core.state import events as e
from hostler.core.state.fabrics import CABLING, VERSIONS_KEPT, DesignVersion, DiscoverySource, Fabric, Model
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.scopes import FABRIC, Scope
from hostler.core.state.subnets import ManagerDesign, SubnetDesign
from hostler.core.state.verbs.fabrics import RegisterFabric, RemoveFabric, ValidateFabric, WalkFindings

FABRICS_MAX = 32
PERIOD_S = 4 * 3600.0
"""A network is compared with its design so often, where its registration does not say otherwise."""
PERIODS_S = (300.0, 7 * 86_400.0)
TIMEOUTS_S = (1.0, 3600.0)
TIMEOUT_S = 300.0
A_CABLE_S = 900.0 / 98_304
"""Seconds of the limit for each cable: `iblinkinfo` took up to 317 s for 98,304 of them on a busy machine (bench)."""

TOOLS = ("ibnetdiscover", "iblinkinfo", "ibdiagnet", "ufm", "lldp")
AGENT_TOOLS = ("ibnetdiscover", "iblinkinfo")
DIAGNOSTICS = ("ibnetdiscover", "iblinkinfo", "ibdiagnet")
NODES_MOST = 8
MANAGERS_MOST = 16
PARTITIONS_MOST = 1_000
CA_MOST = 16_384

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,63}")
_URL = re.compile(r"https://[A-Za-z0-9.\-\[\]:]{1,200}/?")
_SECRET = re.compile(r"[a-z]{1,16}:[A-Za-z0-9._/\-]{1,200}")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_GUID = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}")
_KEY = re.compile(r"0x[0-9a-fA-F]{1,4}")
_ENGINE = re.compile(r"[A-Za-z0-9_\-]{1,32}")
_ADAPTER = re.compile(r"[A-Za-z0-9_]{1,32}")


class FabricSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A network as it is registered: its design as CSV, or a rail rule that generates one.

    `models` say how ports are named, `source` where the discovery comes from, `period_s` how often it is validated.
    `subnet_manager`, `partitions` ("0x7fff") and `routing` ("ftree") are what the subnet is to have; what is not given
    is only shown. `replaces`: the design in force, by its digest's beginning, that the plan was made against; another
    one refuses it.
    """

    name: Annotated[str, Meta(max_length=40)]
    design: str = ""
    rule: RailRule | None = None
    models: Annotated[dict[str, Model], Meta(max_length=256)] = {}
    source: DiscoverySource = DiscoverySource()
    period_s: float = PERIOD_S
    subnet_manager: ManagerDesign | None = None
    partitions: tuple[str, ...] = ()
    routing: str = ""
    replaces: Annotated[str, Meta(max_length=64)] = ""

    @property
    def subnet(self) -> SubnetDesign:
        """The statements on the subnet, GUIDs and partitions as they are told."""
        wanted = self.subnet_manager
        if wanted is not None:
            wanted = replace(wanted, guids=tuple(sorted(f"{int(guid, 16):016x}" for guid in wanted.guids)))
        keys = sorted({int(key, 16) & 0x7FFF for key in self.partitions})
        return SubnetDesign(wanted, tuple(f"0x{key:04x}" for key in keys), self.routing)


def read(text: str) -> FabricSpec:
    """The network that an intent carries. Raises InvalidInputError."""
    try:
        return msgspec.json.decode(text, type=FabricSpec)
    except msgspec.DecodeError as error:
        raise InvalidInputError(
            (Problem("fabric", 0, str(error), "give name and design, or name and rule"),)
        ) from error


def designed(spec: FabricSpec) -> Design:
    """The design that was given, checked whole. Raises InvalidInputError with each problem and its line."""
    if problems := tuple(_problems(spec)):
        raise InvalidInputError(problems)
    if spec.rule is not None:
        return generate(spec.rule, dict(spec.models))
    design = parse_csv(spec.design.encode(), "design", spec.models)
    if not design.cables:
        raise InvalidInputError((Problem("design", 0, "the design has no cable", "write one line for each cable"),))
    return design


def _problems(spec: FabricSpec) -> Iterator[Problem]:
    if not _NAME.fullmatch(spec.name):
        yield Problem("name", 0, f"{spec.name!r} is not a name", "use 1 to 40 small letters, digits and dashes")
    if bool(spec.design) == (spec.rule is not None):
        yield Problem("design", 0, "both a design and a rule" if spec.design else "no design", "give one of the two")
    low, high = PERIODS_S
    if not low <= spec.period_s <= high:
        yield Problem("period_s", 0, f"{spec.period_s:g} is out of range", f"write {low:g} to {high:g} seconds")
    low, high = TIMEOUTS_S
    if spec.source.timeout_s and not low <= spec.source.timeout_s <= high:
        instead = f"write {low:g} to {high:g} seconds, or 0 for the design's size"
        yield Problem("source.timeout_s", 0, f"{spec.source.timeout_s:g} is out of range", instead)
    yield from _source_problems(spec.source)
    if spec.source.adapter and not _ADAPTER.fullmatch(spec.source.adapter):
        yield Problem(
            "source.adapter",
            0,
            f"{spec.source.adapter[:40]!r} is not an adapter",
            'write its name as `ibstat` prints it: "mlx5_0"',
        )
    yield from _subnet_problems(spec)
    if not 0 <= spec.source.port <= 255:
        yield Problem(
            "source.port", 0, f"{spec.source.port} is not a port", "write 1 to 255, or 0 for the tool's own choice"
        )


def _subnet_problems(spec: FabricSpec) -> Iterator[Problem]:
    if spec.subnet_manager is not None:
        yield from _manager_problems(spec.subnet_manager.guids, spec.subnet_manager.min_standby)
    if len(spec.partitions) > PARTITIONS_MOST:
        yield Problem("partitions", 0, f"{len(spec.partitions):,} keys", f"write up to {PARTITIONS_MOST:,}")
    for key in spec.partitions[:PARTITIONS_MOST]:
        if not _KEY.fullmatch(key) or not int(key, 16) & 0x7FFF:
            yield Problem(
                "partitions",
                0,
                f"{key[:40]!r} is not a partition key",
                "write it as the tools print it, 4 hexadecimal digits",
            )
    if spec.routing and not _ENGINE.fullmatch(spec.routing):
        yield Problem("routing", 0, f"{spec.routing[:40]!r} is not an engine", 'write it as opensm names it: "ftree"')
    if (spec.subnet_manager or spec.partitions or spec.routing) and spec.source.tool not in DIAGNOSTICS:
        instead = f"write tool: one of {', '.join(DIAGNOSTICS)}, which tell of a subnet"
        yield Problem("subnet_manager", 0, f"tool {spec.source.tool[:40]}", instead)
    if spec.routing and spec.source.nodes:
        yield Problem(
            "routing",
            0,
            "an agent cannot look at it",
            "leave source.nodes out: it is read from opensm's log on the controller's host",
        )


def _manager_problems(guids: tuple[str, ...], least: int) -> Iterator[Problem]:
    if len(guids) > MANAGERS_MOST or not 0 <= least < MANAGERS_MOST:
        most = f"write up to {MANAGERS_MOST} GUIDs, and min_standby from 0"
        yield Problem("subnet_manager", 0, f"{len(guids)} GUIDs, min_standby {least}", most)
    elif guids and least >= (known := len({int(guid, 16) for guid in guids if _GUID.fullmatch(guid)})):
        here = f"min_standby {least} of {known} managers"
        yield Problem("subnet_manager.min_standby", 0, here, "write fewer than there are GUIDs: one of them is master")
    for guid in guids[:MANAGERS_MOST]:
        if not _GUID.fullmatch(guid) or not int(guid, 16):
            yield Problem(
                "subnet_manager.guids", 0, f"{guid[:40]!r} is not a GUID", "write a port's GUID in hexadecimal digits"
            )


def _source_problems(source: DiscoverySource) -> Iterator[Problem]:
    if source.tool not in TOOLS:
        yield Problem("source.tool", 0, f"{source.tool[:40]!r} is not a tool", f"write one of {', '.join(TOOLS)}")
    if source.nodes and source.tool not in AGENT_TOOLS:
        yield Problem(
            "source.nodes",
            0,
            f"agents have no {source.tool}",
            f"write tool: one of {', '.join(AGENT_TOOLS)}, or leave nodes out",
        )
    if len(source.nodes) > NODES_MOST or not all(_NODE.fullmatch(name) for name in source.nodes):
        yield Problem(
            "source.nodes", 0, f"{repr(source.nodes)[:80]} are not names", f"write up to {NODES_MOST} names of nodes"
        )
    if (source.tool == "ufm") is not bool(source.url):
        yield Problem(
            "source.url",
            0,
            f"{source.url[:80]!r} with tool {source.tool[:40]}",
            "give UFM's address with tool ufm, and none with another",
        )
    if source.url and not _URL.fullmatch(source.url):
        yield Problem(
            "source.url", 0, f"{source.url[:80]!r} is not an address", "write https://HOST or https://HOST:PORT"
        )
    if source.secret and not _SECRET.fullmatch(source.secret):
        yield Problem("source.secret", 0, f"{source.secret[:40]!r} is not a secret's name", 'write it as "folder:ufm"')
    if len(source.ca) > CA_MOST:
        yield Problem("source.ca", 0, f"{len(source.ca):,} characters", f"give PEM of up to {CA_MOST:,} characters")


class PreparedDesign(Struct, frozen=True):
    """A registration that was checked whole: the canonical text of its design, that text's digest, what it counts."""

    spec: FabricSpec
    text: str
    digest: str
    hosts: dict[str, int]
    switches: int
    cables: int


@lru_cache(maxsize=1)
def prepared(text: str) -> PreparedDesign:
    """The registration that an intent carries, checked whole. Raises InvalidInputError.

    98,304 cables take seconds: whoever submits the intent asks first, in a thread, and the loop is answered at once.
    """
    spec = read(text)
    design = designed(spec)
    canonical = render_csv(design)
    return PreparedDesign(
        spec,
        canonical,
        sha256(canonical.encode()).hexdigest(),
        _hosts(design),
        sum(device.kind is DeviceKind.switch for device in design.devices.values()),
        len(design.cables),
    )


def register(ask: Ask[RegisterFabric]) -> Granted:
    """The network is validated against this design from now on; what is found already goes on."""
    ready, fleet, intent = prepared(ask.act.fabric), ask.context.fleet, ask.intent
    spec = ready.spec
    known = fleet.fabrics.get(spec.name)
    if known is None and len(fleet.fabrics) >= FABRICS_MAX:
        raise RefusalError(f"{FABRICS_MAX} networks are registered already: remove one first")
    if known is not None and spec.replaces and not known.digest.startswith(spec.replaces):
        now = f"has design {known.digest[:12]} by now, not {spec.replaces[:12]}"
        raise RefusalError(f"network {spec.name} {now}: look at the plan again")
    version = DesignVersion(ready.digest, ask.context.now, intent.person, intent.reason)
    fresh = Fabric(
        name=spec.name,
        design=ready.text,
        digest=version.digest,
        source=replace(spec.source, timeout_s=spec.source.timeout_s or by_size(ready.cables)),
        period_s=spec.period_s,
        hosts=ready.hosts,
        switches=ready.switches,
        cables=ready.cables,
        versions=(version,),
        models=dict(spec.models),
        subnet_design=spec.subnet,
    )
    if known is not None:
        if known.digest != fresh.digest and known.recabling is not None and not known.recabling.before:
            raise RefusalError(f"network {known.name} is to be re-cabled: cancel that first")
        fresh = _renewed(known, fresh)
        if fresh == known:
            return f"network {known.name}: as it is known already", ()
    asked = e.FabricValidationAsked(fresh.name, intent.person, "its design is new")
    told = f"{fresh.cables:,} cables, {len(fresh.hosts):,} hosts, {fresh.switches:,} switches"
    return f"network {fresh.name}: {told}, design {fresh.digest[:12]}", (
        e.FabricRegistered(fresh, intent.person),
        asked,
    )


def by_size(cables: int) -> float:
    """Seconds that a discovery may take where its registration does not say: 300, and in proportion beyond."""
    return float(round(min(max(TIMEOUT_S, cables * A_CABLE_S), TIMEOUTS_S[1])))


def _renewed(known: Fabric, fresh: Fabric) -> Fabric:
    """The network with what was given anew; a design that is the same makes no version."""
    same = known.digest == fresh.digest
    return replace(
        fresh,
        versions=known.versions if same else (*known.versions, *fresh.versions)[-VERSIONS_KEPT:],
        look=known.look,
        asked=known.asked,
        asked_why=known.asked_why,
        subnet=known.subnet,
        recabling=known.recabling if same else None,
    )


def _hosts(design: Design) -> dict[str, int]:
    """Designed ports of each host, by name in order."""
    found: dict[str, int] = {}
    for cable in design.cables:
        for port in (cable.a, cable.z):
            if design.devices[port.device].kind is DeviceKind.host:
                found[port.device] = found.get(port.device, 0) + 1
    return dict(sorted(found.items()))


def fabric_of(ask: AnyAsk) -> Fabric:
    """The network that the intent names. Raises RefusalError where there is none."""
    found = known_fabric(ask.context.fleet, ask.intent.target)
    if found is None:
        raise RefusalError(f"no network {ask.intent.target}; see `hostler fabric list`")
    return found


def known_fabric(fleet: Fleet, target: str) -> Fabric | None:
    """The network of this name, or subject "fabric:NAME"."""
    return fleet.fabrics.get(Scope.of(target).named(FABRIC))


def remove(ask: Ask[RemoveFabric]) -> Granted:
    """The network is validated no more."""
    fabric, intent, fleet = fabric_of(ask), ask.intent, ask.context.fleet
    why = f"network {fabric.name} is removed: {intent.reason}"
    over = [event for case in fleet.cases_of(fabric.name) for event in ended(case, why, intent.person)]
    over += finding_walks.removed(fleet, fabric.name, why, intent.person)
    incidents = [
        e.IncidentClosed(i.id, i.scope, CABLING, tuple(i.members), HOSTLER, why)
        for i in incidents_of(fleet, fabric.name)
    ]
    gone = e.FabricRemoved(fabric.name, intent.person, intent.reason)
    links = link_cases.ended(ask.context, fabric.name, why, intent.person)
    return f"network {fabric.name} is validated no more", (*over, *links, *incidents, gone)


def walk(ask: Ask[WalkFindings]) -> Granted:
    """All open findings of a rack or row are one ticket; what has a ticket keeps it."""
    fabric, act, fleet = fabric_of(ask), ask.act, ask.context.fleet
    if bool(act.rack) == bool(act.row):
        raise RefusalError("name a rack or a row: --rack r07, or --row a")
    where = f"rack {act.rack}" if act.rack else f"row {act.row}"
    racks = {n.position.rack for n in fleet.nodes.values() if n.position.row == act.row} if act.row else {act.rack}
    if (standing := finding_walks.walk_at(fleet, fabric.name, where)) is not None:
        raise RefusalError(f"ticket {standing.id} is a walk of {where} already: close it first")
    found = finding_walks.stops(fleet, fabric.name, racks.__contains__)
    if not found:
        raise RefusalError(f"no open finding of network {fabric.name} is at {where}; see `hostler fabric findings`")
    if len(found) > finding_walks.STOPS_MOST:
        raise RefusalError(f"{len(found)} findings are at {where}, {finding_walks.STOPS_MOST} at most are one walk")
    events = tuple(finding_walks.opened(ask.context, fabric, where, found))
    ticket = events[0]
    assert isinstance(ticket, e.TicketOpened), "a walk begins with its ticket"
    return f"ticket {ticket.ticket.id}: {ticket.ticket.summary}", events


def validate(ask: Ask[ValidateFabric]) -> Granted:
    """The network is compared with its design as soon as nothing else looks at it."""
    fabric, intent = fabric_of(ask), ask.intent
    asked = e.FabricValidationAsked(fabric.name, intent.person, intent.reason)
    return f"network {fabric.name} is validated now; see `hostler fabric show {fabric.name}`", (asked,)


HANDLERS: Handlers = {
    RegisterFabric: Handler(register),
    RemoveFabric: Handler(remove),
    ValidateFabric: Handler(validate),
    WalkFindings: Handler(walk),
}
