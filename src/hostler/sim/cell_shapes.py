"""Small cells to go wrong: how many nodes, which pools they serve, what they share; crowded around every limit."""

from functools import lru_cache
from importlib.resources import files
from random import Random

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.policy.documents import parse
from hostler.core.state.configuration import Configuration
from hostler.sim.bmc.emulated_machine import sku_of_server
from hostler.sim.world.asset_firmware import ACTIVATES, BUNDLE, COMPONENTS
from hostler.sim.world.node_seats import CLUSTER

HOUR_S = 3600.0
SPARE, FRESH = "", "fresh"
"""Roles of nodes that serve no pool: adopted ones, and ones that have never been powered on."""

TRAYS = 18
SHAPES = (("cell", 0.5), ("brink", 0.36), ("rack", 0.14))
ROOTED = 0.2
"""Share of cells whose tenants have root on their nodes."""
WHOLE = 0.75
"""Share of racks that may be taken whole."""
CHECKED = 0.3
"""Share of cells whose idle nodes are checked."""
BRAKED = 0.25
"""Share of cells whose storm brake latches soon: with the default one no cell is large enough for a storm."""
SCARCE = 0.3
"""Share of cells whose nodes may leave one a day, and whose last spare is kept back."""

OUTSIDE = "outside"
"""The pool of an unmanaged node: it has no cluster."""
UNMANAGED = 0.5
"""Share of wired cells in which one node is unmanaged."""


ARRIVALS = (11, 14)
"""Nodes of a cell that meet, least and most: seven are under a leaf, so the second leaf has four to seven."""

RISING = 0.5
"""Share of cells with a rack's assets in which the rack is new and is brought up."""
FITTED = (4, 8)
"""Compute trays of such a rack, least and most."""

RESETS = 0.5
"""Share of wired cells whose policy has the port of a flapping link reset."""


class Shape(Struct, frozen=True):
    """Composition of a cell.

    `nodes` may be fewer than were drawn: roles and domains stay with a node's number.

    kind: `cell` (several pools, an NVLink domain, spares, new nodes), `brink` (pools of one, budgets of one that are
    met exactly), `rack` (an NVL72: 18 trays of 4 GPUs in one NVLink domain, one job across all of them), `arrivals`
    (nearly all nodes are new), `story` (two members, a spare, a new node) or `trio` (three members, a spare).
    `rooted`: tenants have root on their nodes. `whole`: the pool's budget lets all of its rack be out at once.
    `checked`: idle nodes are checked once an hour.
    `braked`: the third disruption of an hour latches the brake. `scarce`: a pool loses one node a day at most, whatever
    else its budget allows, and none that could wait without a spare beyond the last. `wired`: it has a compute network.
    `unmanaged`: the number of a node whose profile is unmanaged, -1 for none. `resets`: a link that flaps has its port
    reset. `meets`: its nodes meet at the end of checks. `racked`: the assets of its NVL72 are looked at.
    `rising`: that rack and all of its nodes are new, and a person has it brought up. `loud`: sources say as much as
    they can, under small budgets.
    """

    kind: str
    nodes: int
    rooted: bool = False
    whole: bool = False
    checked: bool = False
    braked: bool = False
    scarce: bool = False
    wired: bool = False
    unmanaged: int = -1
    resets: bool = False
    meets: bool = False
    racked: bool = False
    rising: bool = False
    loud: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of one node."""
        return 4 if self.kind == "rack" else 8

    @property
    def sku(self) -> str:
        """Name of its SKU."""
        return "gb200" if self.kind == "rack" else "h100"

    @property
    def roles(self) -> list[str]:
        """The pool that each node serves, or its role without one."""
        drawn = _in_new_rack if self.rising else _ROLES[self.kind]
        return [OUTSIDE if number == self.unmanaged else drawn(number) for number in range(self.nodes)]


def shape_of(seed: int) -> Shape:
    """The cell of this seed."""
    chance = Random(f"{seed}/shape")
    kind = chance.choices([name for name, _ in SHAPES], [share for _, share in SHAPES])[0]
    nodes = {"cell": chance.randint(5, 13), "brink": chance.randint(3, 8), "rack": TRAYS}[kind]
    rooted = chance.random() < ROOTED
    whole = kind == "rack" and Random(f"{seed}/whole").random() < WHOLE
    braked, scarce = Random(f"{seed}/braked").random() < BRAKED, Random(f"{seed}/scarce").random() < SCARCE
    checked = Random(f"{seed}/checked").random() < CHECKED
    return Shape(kind, nodes, rooted, whole, checked, braked, scarce=scarce and kind != "rack")


def wired_shape(seed: int) -> Shape:
    """The cell of this seed with a compute network, and perhaps a node that is not Hostler's to act upon."""
    shape, chance = shape_of(seed), Random(f"{seed}/network")
    adopted = [number for number, role in enumerate(shape.roles) if role != FRESH]
    unmanaged = chance.choice(adopted) if chance.random() < UNMANAGED else -1
    return replace(shape, wired=True, unmanaged=unmanaged, resets=Random(f"{seed}/resets").random() < RESETS)


def meeting_shape(seed: int) -> Shape:
    """A cell of this seed whose nodes are new, but for a few, and are burnt in together under two leaves a rail."""
    return Shape("arrivals", Random(f"{seed}/arrivals").randint(*ARRIVALS), wired=True, meets=True)


def loud_shape(seed: int) -> Shape:
    """The cell of this seed, in which sources have small budgets and say all that they can."""
    return replace(shape_of(seed), loud=True)


def racked_shape(seed: int) -> Shape:
    """An NVL72 of this seed whose shelves, coolant unit and switch trays are looked at; a new one with fewer nodes."""
    whole, chance = Random(f"{seed}/whole").random() < WHOLE, Random(f"{seed}/rising")
    rising = chance.random() < RISING
    return Shape("rack", chance.randint(*FITTED) if rising else TRAYS, whole=whole, racked=True, rising=rising)


def _in_cell(number: int) -> str:
    pattern = ("solo", "alpha", "beta", "alpha", SPARE, FRESH, "beta", "alpha", "alpha", SPARE, "beta", "alpha", FRESH)
    return pattern[number % len(pattern)] if number else "solo"


def _on_brink(number: int) -> str:
    return ("solo", "alpha", "alpha", SPARE, "duo", "duo", FRESH, "alpha")[number % 8]


def _in_rack(number: int) -> str:
    return SPARE if number >= TRAYS - 2 else "alpha"


def _in_new_rack(_number: int) -> str:
    return FRESH


def _in_story(number: int) -> str:
    return ("alpha", "alpha", SPARE, FRESH)[number]


def _in_arrivals(number: int) -> str:
    return "alpha" if number % 7 == 0 else FRESH


def _in_trio(number: int) -> str:
    return ("alpha", "alpha", "alpha", SPARE)[number]


_ROLES = {
    "cell": _in_cell,
    "brink": _on_brink,
    "rack": _in_rack,
    "story": _in_story,
    "trio": _in_trio,
    "arrivals": _in_arrivals,
}


def domains_of(shape: Shape, number: int) -> list[str]:
    """Domains that a node shares with others beside its rack."""
    if shape.kind == "rack":
        return ["nvlink:d0", "leaf:l0", f"power:f{number % 2}", "cdu:c0"]
    shared = ["nvlink:d0"] if number < 6 else []
    return [*shared, f"leaf:l{number // 8}", f"power:f{number // 6}", "cdu:c0"]


def rack_of(shape: Shape, number: int) -> str:
    """Racks of four; an NVL72 is one."""
    return "r0" if shape.kind == "rack" else f"r{number // 4}"


def assets_of(shape: Shape) -> list[dict[str, object]]:
    """An NVL72 has nine switch trays, all of one NVLink domain; the other cells name no assets beside their nodes."""
    if shape.kind != "rack":
        return []
    found: list[dict[str, object]] = [{"id": "d0", "kind": "nvlink_domain", "rack": "r0"}]
    tray = {"kind": "switch_tray", "rack": "r0", "domains": ["nvlink:d0"]}
    found.extend({"id": f"nvsw{number}", **tray} for number in range(9))
    if shape.racked:
        found.extend({"id": f"shelf{number}", "kind": "power_shelf", "rack": "r0"} for number in range(2))
        found.append({"id": "unit0", "kind": "coolant_unit", "rack": "r0"})
        read = (one for one in found if one["kind"] != "nvlink_domain")
        for one in read:
            one |= {"serial": f"S-{one['id']}", "bmc": f"https://{one['id']}"}
    return found


RACK = {
    "power_shelves": 2,
    "supplies_needed": 4,
    "leak_detectors": 10,
    "coolant_units": 1,
    "switch_trays": 9,
    "control_planes": 1,
    "bundle": "b2",
    "shelf_firmware": dict.fromkeys(COMPONENTS["power_shelf"], BUNDLE),
    "switch_firmware": dict.fromkeys(COMPONENTS["switch_tray"], BUNDLE),
    "updates": {
        name: {"image": f"https://images.example/{name}-{BUNDLE}.bin", "sha256": "ab" * 32, "activate": how}
        for name, how in ACTIVATES.items()
    },
}
"""The rack manifest of an NVL72 whose assets are looked at."""


def documents(shape: Shape, baseline: str = "1.1.0", image: str = "BIOS") -> dict[str, str]:
    """Policy and pools of the cell. `baseline` is the BIOS that the SKU asks for, `image` what its file holds."""
    skus = {
        shape.sku: {
            **sku_of_server(shape.gpus),
            "firmware": {"BIOS": baseline},
            "images": {"BIOS": f"http://images/{image}/{baseline}"},
            "reset": {"domain": "gpu" if shape.kind in ("cell", "story") else "baseboard"},
        }
    }
    if shape.racked:
        skus[shape.sku] |= {"rack": {**RACK, "compute_trays": shape.nodes if shape.rising else 0}}
    named = [*shape.roles, *(["alpha"] if shape.rising else [])]
    pools = {name: _pool(shape, name) for name in dict.fromkeys(named) if name not in (SPARE, FRESH)}
    return {
        "policy.yaml": _policy(braked=shape.braked, resets=shape.resets, loud=shape.loud),
        "pools.yaml": msgspec.json.encode({"skus": skus, "pools": pools}).decode(),
    }


def _pool(shape: Shape, name: str) -> dict[str, object]:
    """Budgets are met exactly: on the brink one node is just the percentage, elsewhere the count."""
    members = shape.nodes - 1 if shape.rising else shape.roles.count(name)
    budget: dict[str, float] = {"count": 1, "percent": 100, "reserve": 0, "removals_per_day": 4}
    base = {"sku": shape.sku, "cluster": CLUSTER, "tenant": "acme", "modes": {"*": "act"}, "target": members}
    if shape.rooted:
        base["tenant_root"] = True
    if shape.checked:
        base["modes"] = {"*": "act", "idle_check": "act"}
    if name == OUTSIDE:
        base |= {"cluster": "", "profile": "unmanaged"}
    terms: dict[str, object] = {"drain_deadline_s": 4 * HOUR_S}
    if shape.kind == "brink":
        budget |= {"percent": 100 / members, "removals_per_day": 1}
    if name == "alpha":
        budget["reserve"] = 1
        terms = {"owner": "ann"} if shape.kind == "cell" else {"owner": "ann", "drain_deadline_s": HOUR_S}
    if name in ("beta", "duo"):
        terms = {"evict_after_deadline": True, "drain_deadline_s": 2 * HOUR_S}
    if shape.whole:
        budget |= {"count": members, "removals_per_day": members}
    if shape.scarce:
        budget |= {"removals_per_day": 1, "spares_floor": 1}
        budget |= {"count": members} if shape.kind == "cell" else {}
    return {**base, "budget": budget, **terms}


@lru_cache(maxsize=4)
def _policy(*, braked: bool, resets: bool, loud: bool) -> str:
    """The default policy; `braked`: with a brake that a small cell can latch; `resets`: flaps have a port reset.

    `loud`: with small budgets of sources.
    """
    text = files("hostler.core.policy").joinpath("default_policy.yaml").read_text(encoding="utf-8")
    for row, instead in (
        (_BRAKE, braked and "brake: {disruptions: 2,"),
        (_FLAPS, resets and _RESET),
        (_REACH, loud and _SMALL),
    ):
        assert text.count(row) == 1, f"the default policy says no more {row}"
        text = text.replace(row, instead or row)
    return text


_BRAKE = "brake: {disruptions: 20,"
_REACH = "  reach: {nodes: 8,"
_SOURCE = "{records_per_hour: 300, records_per_day: 1200, mib_per_hour: 4, mib_per_day: 16}"
_BOOT = "{records_per_hour: 60, records_per_day: 300, mib_per_hour: 4, mib_per_day: 16}"
_SMALL = f"  sources: {{agent: {_SOURCE}, bmc: {_SOURCE}, boot: {_BOOT}, rows_per_day: 2000}}\n{_REACH}"
_FLAPS = "network.link_flaps: {remedy: triage, timing: pending, dooms: none}"
_RESET = "network.link_flaps: {remedy: port_reset, timing: pending, dooms: none}"


@lru_cache(maxsize=64)
def _parsed(policy: str, pools: str) -> Configuration:
    return parse({"policy.yaml": policy, "pools.yaml": pools})


def configuration(some: dict[str, str]) -> Configuration:
    """The documents as a checked configuration."""
    return _parsed(some["policy.yaml"], some["pools.yaml"])
