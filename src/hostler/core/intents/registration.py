"""Making nodes known: what an inventory says of a node, checked, and turned into a node with its own id."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hostler.core.intents.entered_addresses import KINDS, EnteredAddresses, names_of
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, OUTLET, PROVIDER, Asset, AssetKind, Binding, Position, normal_mac
from hostler.core.state.configuration import Sku
from hostler.core.state.dpus import DPUS_MAX
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.model import Assignment, Node, Phase, Profile
from hostler.core.state.provider import provider_problem
from hostler.core.state.scopes import FLEET, NODES, RACK, Scope

T = TypeVar("T")

MAX_NODES = 20_000
"""Nodes in one registration; register more in several."""
TAGS_MAX = 16
TAG_LENGTH = 128


class NodeSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A node as an inventory has it. `id` may be left out and is then issued; an id is never used again.

    `bmc` is the Redfish URL of the node's BMC, with "#system" where it serves several machines, `outlets` those of the
    PDUs' outlets that feed it ("https://pdu#/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A1"), `dpu_bmcs` the Redfish
    URLs of its DPUs' own BMCs, `domains` the failure domains beside its rack, `pool` the pool that an adopted node
    serves already. `provider` is the instance of a machine that somebody else owns ("PROVIDER/INSTANCE"). `tags` are
    names of your own, to select nodes by.
    """

    sku: str
    id: str = ""
    hostname: str = ""
    serial: str = ""
    bmc: str = ""
    macs: tuple[str, ...] = ()
    outlets: tuple[str, ...] = ()
    dpu_bmcs: tuple[str, ...] = ()
    kubernetes: str = ""
    slurm: str = ""
    provider: str = ""
    cell: str = "c1"
    site: str = ""
    row: str = ""
    rack: str = ""
    u: int = 0
    domains: tuple[str, ...] = ()
    profile: Profile = Profile.managed
    provisioner: str = "direct"
    pool: str = ""
    tags: dict[str, str] = field(default_factory=dict)


class AssetSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """An asset that is not a node.

    A rack's, NVLink domain's, power shelf's or switch's id is the name that its nodes give as failure domain ("nvl1"
    for "nvlink:nvl1"); a switch tray names the domains it serves. `bmc` is the Redfish URL of its own BMC, `nvos`
    the https address of a switch tray's own system.
    """

    id: str
    kind: AssetKind
    cell: str = "c1"
    site: str = ""
    rack: str = ""
    u: int = 0
    domains: tuple[str, ...] = ()
    serial: str = ""
    bmc: str = ""
    nvos: str = ""


def read_assets(document: str) -> tuple[AssetSpec, ...]:
    """The asset specs of a JSON document (a list). Raises InvalidInputError naming the entry."""
    return _decode(document, tuple[AssetSpec, ...], "assets")


def register_assets(fleet: Fleet, specs: tuple[AssetSpec, ...], now: datetime) -> tuple[e.Event, ...]:
    """The events that make these assets known. Raises InvalidInputError; then none of them is."""
    problems = [Problem("assets", 0, f"{len(specs)} assets", f"give 1 to {MAX_NODES}")] if not specs else []
    problems.extend(
        Problem(f"assets[{number}]", 0, f"id '{spec.id[:80]}' is taken or no name", "choose another")
        for number, spec in enumerate(specs)
        if spec.id in fleet.assets or spec.id in fleet.nodes or not _is_name(spec.id)
    )
    problems.extend(
        Problem(f"assets[{number}]", 0, problem, "write it so")
        for number, spec in enumerate(specs)
        for kind, name in (("site", spec.site), ("rack", spec.rack), ("serial", spec.serial))
        if (problem := outside_problem(kind, name))
    )
    problems.extend(p for number, spec in enumerate(specs) for p in _domain_problems(spec.domains, f"assets[{number}]"))
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    return tuple(e.AssetRegistered(_asset(spec, now)) for spec in specs)


def _asset(spec: AssetSpec, now: datetime) -> Asset:
    place = Position(spec.cell, spec.site, "", spec.rack, spec.u)
    named = (("serial", spec.serial), ("bmc", spec.bmc), ("nvos", spec.nvos))
    bindings = tuple(Binding(kind, value, now) for kind, value in named if value)
    return Asset(spec.id, spec.kind, place, bindings, _domains(spec.domains))


def read(document: str) -> tuple[NodeSpec, ...]:
    """The specs of a JSON document (a list). Raises InvalidInputError naming the entry."""
    specs = _decode(document, tuple[NodeSpec, ...], "nodes")
    return tuple(replace(one, macs=tuple(dict.fromkeys(map(normal_mac, one.macs)))) for one in specs)


def _decode(document: str, wanted: type[T], where: str) -> T:
    try:
        return msgspec.json.decode(document, type=wanted)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError) as error:
        problem = Problem(where, 0, str(error), "see `hostler node register --help` for the fields")
        raise InvalidInputError((problem,)) from error


def register(
    fleet: Fleet, specs: tuple[NodeSpec, ...], adopt: bool, now: datetime, leaving: str = ""
) -> tuple[e.Event, ...]:
    """The events that make these nodes known. Raises InvalidInputError; then none of them is.

    `leaving` is the node whose names are free once these are known: it is retired with them.
    """
    problems = list(_problems(fleet, specs, adopt, leaving))
    if problems:
        raise InvalidInputError(tuple(problems[:50]))
    skus = fleet.configuration.skus
    named = (replace(spec, id=identity, bmc=bmc_of(spec, skus)) for spec, identity in _issued(fleet, specs))
    return tuple(e.NodeRegistered(_node(fleet, spec, adopt, now), adopted=adopt) for spec in named)


def bmc_of(spec: NodeSpec, skus: Mapping[str, Sku]) -> str:
    """The node's BMC with the system that its SKU names, where the spec names none."""
    sku = skus.get(spec.sku)
    if not spec.bmc or is_named(spec.bmc) or sku is None or not sku.bmc_system:
        return spec.bmc
    return f"{spec.bmc.rstrip('/')}#{sku.bmc_system}"


def is_named(bmc: str) -> bool:
    """Whether a BMC's address names one of its systems."""
    return "#" in bmc or "/Systems/" in bmc


def _issued(fleet: Fleet, specs: tuple[NodeSpec, ...]) -> Iterator[tuple[NodeSpec, str]]:
    """Each spec with its id; an issued one never is, was, or is about to be another node's."""
    asked_for = frozenset(spec.id for spec in specs)
    number = fleet.cell.seq
    for spec in specs:
        number += 1
        while (issued := f"{spec.cell}-n{number:06d}") in asked_for or fleet.has_known(issued):
            number += 1
        yield spec, spec.id or issued


def _problems(fleet: Fleet, specs: tuple[NodeSpec, ...], adopt: bool, leaving: str) -> list[Problem]:
    found: list[Problem] = []
    if not specs or len(specs) > MAX_NODES:
        found.append(Problem("nodes", 0, f"{len(specs)} nodes", f"give 1 to {MAX_NODES}"))
    seen: dict[str, int] = {}
    for number, spec in enumerate(specs):
        where = f"nodes[{number}]"
        found.extend(spec_problems(fleet, spec, where, adopt))
        for name in _unique_names(replace(spec, bmc=bmc_of(spec, fleet.configuration.skus))):
            if name in seen:
                found.append(Problem(where, 0, f"{name} is also given in nodes[{seen[name]}]", "give it once"))
            elif holders := [one for one in fleet.index.members(name) if one != leaving]:
                found.append(Problem(where, 0, f"{name} is bound to {holders[0]}", f"retire or rebind {holders[0]}"))
            seen[name] = number
    return found or list(_entered_problems(fleet, specs))


def _entered_problems(fleet: Fleet, specs: tuple[NodeSpec, ...]) -> Iterator[Problem]:
    """DPUs' BMCs and PDUs that are known for something else: a password would go there."""
    if not any(spec.outlets or spec.dpu_bmcs for spec in specs):
        return
    given = [{kind: names_of(spec, field_name) for field_name, kind in KINDS.items()} for spec in specs]
    addresses = EnteredAddresses.of(fleet, (name for one in given for names in one.values() for name in names))
    for number, one in enumerate(given):
        where = f"nodes[{number}]"
        for kind, names in one.items():
            for name in names:
                if held := addresses.clash(where, kind, name):
                    yield Problem(where, 0, f"{name} is {held.text} already", "correct one of the two")
            addresses.add(where, kind, names)


def spec_problems(fleet: Fleet, spec: NodeSpec, where: str, adopt: bool = False) -> Iterator[Problem]:
    """Problems of one entry by itself, whatever the others are."""
    if spec.sku not in fleet.configuration.skus:
        yield Problem(where, 0, f"unknown SKU '{spec.sku[:80]}'", "add it to the configuration first")
    if spec.id and fleet.has_known(spec.id):
        yield Problem(where, 0, f"id '{spec.id}' is or was another node's", "leave it out")
    for kind, name in (("id", spec.id or spec.cell), ("cell", spec.cell)):
        if not _is_name(name):
            yield Problem(where, 0, f"{kind} '{name[:80]}'", "use letters, digits, '-' and '.', 1 to 63")
    named = [(kind, getattr(spec, kind)) for kind in _NAMED]
    named += [("mac", mac) for mac in spec.macs]
    for kind, name in named:
        if problem := outside_problem(kind, name):
            yield Problem(where, 0, problem, "write it so")
    yield from _address_problems(spec, where)
    yield from _domain_problems(spec.domains, where)
    if spec.id in (FLEET, NODES):
        yield Problem(where, 0, f"id '{spec.id}' means more than one node", "choose another")
    if len(spec.tags) > TAGS_MAX or not all(_is_name(k) and len(v) <= TAG_LENGTH for k, v in spec.tags.items()):
        what = f"{TAGS_MAX} tags at most, each a name of letters, digits, '-' and '.' with {TAG_LENGTH} characters"
        yield Problem(where, 0, "its tags are too many, too long or no names", f"give {what}")
    if adopt and spec.pool:
        yield from _pool_problems(fleet, spec, where)


def _pool_problems(fleet: Fleet, spec: NodeSpec, where: str) -> Iterator[Problem]:
    """A pool takes nodes of its own profile alone: one of another would never come back once it left."""
    pool = fleet.configuration.pools.get(spec.pool)
    if pool is None:
        yield Problem(where, 0, f"unknown pool '{spec.pool[:80]}'", "add it to the configuration first")
    elif pool.profile is not spec.profile:
        what = f"pool '{pool.name}' is {pool.profile.value} and the node {spec.profile.value}"
        yield Problem(where, 0, what, f"give profile: {pool.profile.value}, or a pool whose profile is the node's")


def outside_problem(kind: str, name: str) -> str:
    """Why this is no name that the outside gives a node, "" where it is one or is not given.

    Names are printed on terminals, put into paths and commands of schedulers, and compared character by character.
    """
    if not name or _OUTSIDE.fullmatch(name):
        return ""
    return f"{kind} {name[:80]!a} is not a valid name: {OUTSIDE_RULE}"


OUTLETS_MAX = 16
"""Outlets that feed one machine: trays of a rack's shelf have none, and no server has more supplies."""
_OUTLET = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,80}#/redfish/v1/[A-Za-z0-9._/-]{1,120}")


def outlet_problem(outlets: Sequence[str]) -> str:
    """Why these are no outlets of one machine, "" where they are."""
    if not 0 < len(outlets) <= OUTLETS_MAX or len(set(outlets)) != len(outlets):
        return f"{len(outlets)} outlets, or one twice: give 1 to {OUTLETS_MAX}, all that feed the machine"
    wrong = next((one for one in outlets if not _OUTLET.fullmatch(one)), "")
    example = "https://pdu#/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/A1"
    return f"outlet {wrong[:120]!a} is not an outlet's address, such as {example}" if wrong else ""


_DPU_BMC = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,80}")


def dpu_problem(addresses: Sequence[str]) -> str:
    """Why these are no BMCs of one machine's DPUs, "" where they are."""
    if not 0 < len(addresses) <= DPUS_MAX or len(set(addresses)) != len(addresses):
        return f"{len(addresses)} BMCs of DPUs, or one twice: give 1 to {DPUS_MAX}, one for each DPU"
    wrong = next((one for one in addresses if not _DPU_BMC.fullmatch(one)), "")
    return f"dpu_bmc {wrong[:120]!a} is not a BMC's address, such as https://dpu-a1:443" if wrong else ""


OUTSIDE_MAX = 128
OUTSIDE_RULE = f"1 to {OUTSIDE_MAX} letters, digits and '-._:/+' of ASCII, a letter or digit first"
_OUTSIDE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:/+-]{{0,{OUTSIDE_MAX - 1}}}")
_NAMED = ("hostname", "serial", "kubernetes", "slurm", "site", "row", "rack")


def _is_name(name: str) -> bool:
    return 0 < len(name) <= 63 and name[0].isalnum() and all(c.isalnum() or c in "-." for c in name) and name.isascii()


def _unique_names(spec: NodeSpec) -> list[str]:
    named = [(kind, getattr(spec, kind)) for kind in ("id", *_BOUND)]
    named.extend(("mac", mac) for mac in spec.macs)
    named.extend((OUTLET, outlet) for outlet in spec.outlets)
    named.extend((DPU_BMC, address) for address in spec.dpu_bmcs)
    return [f"{kind}:{value}" for kind, value in named if value]


def _address_problems(spec: NodeSpec, where: str) -> Iterator[Problem]:
    if spec.provider and (problem := provider_problem(spec.provider)):
        yield Problem(where, 0, problem, "write it so")
    for given, problem_of in ((spec.outlets, outlet_problem), (spec.dpu_bmcs, dpu_problem)):
        if given and (problem := problem_of(given)):
            yield Problem(where, 0, problem, "write it so")


def _domain_problems(names: tuple[str, ...], where: str) -> Iterator[Problem]:
    for name in names:
        if problem := outside_problem("domain", name):
            yield Problem(where, 0, problem, "write it so")
        elif not ((scope := Scope.of(name)).is_domain and scope.name):
            yield Problem(where, 0, f"'{name}' is no failure domain", "write KIND:NAME, such as nvlink:nvl1")


def _domains(names: tuple[str, ...]) -> tuple[Scope, ...]:
    return tuple(Scope.of(name) for name in names)


def _node(fleet: Fleet, spec: NodeSpec, adopt: bool, now: datetime) -> Node:
    bindings = [Binding(kind, getattr(spec, kind), now) for kind in _BOUND if getattr(spec, kind)]
    bindings.extend(Binding("mac", mac, now) for mac in spec.macs)
    bindings.extend([Binding(OUTLET, " ".join(spec.outlets), now)] if spec.outlets else [])
    bindings.extend([Binding(DPU_BMC, " ".join(spec.dpu_bmcs), now)] if spec.dpu_bmcs else [])
    pool = fleet.configuration.pools.get(spec.pool)
    rack = (Scope(RACK, spec.rack),) if spec.rack else ()
    return Node(
        id=spec.id,
        position=Position(spec.cell, spec.site, spec.row, spec.rack, spec.u),
        sku=spec.sku,
        phase=Phase.registered,
        phase_since=now,
        registered_at=now,
        bindings=tuple(bindings),
        domains=tuple(dict.fromkeys((*rack, *_domains(spec.domains)))),
        profile=spec.profile,
        provisioner=spec.provisioner,
        adopted=adopt,
        assignment=Assignment(pool.name, pool.tenant, pool.cluster, now) if adopt and pool else None,
        tags=tuple(sorted(spec.tags.items())),
    )


_BOUND = ("hostname", "serial", "bmc", "kubernetes", "slurm", PROVIDER)
