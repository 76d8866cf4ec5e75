"""A rail-optimised fat tree from a rule: adapter i of each host goes to the leaf of rail i in the host's unit.

Two tiers: the upper ports of each leaf lead to all spines alike. Three tiers: leaves form groups with spines of their
own, and the spines of one number in all groups share a plane of core switches. As in NVIDIA's reference architecture of
the DGX SuperPOD: 32 hosts a scalable unit, switches of 64 ports, half of them upwards. Hosts may be the compute
trays of NVL72 racks.
"""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric import nvl72
from hostler.core.fabric.design import Cable, Design, Device, DeviceKind, Port, ends
from hostler.core.fabric.nvl72 import Nvl72Racks
from hostler.core.fabric.rates import Rate, rate_of
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import InvalidInputError, Problem

MOST_HOSTS = 65_536
RADIX_MOST = 1_024
_NAME = re.compile(r"[A-Za-z0-9._\-]*\{(rack|tray)?(:0?[1-9]d)?\}(?:[A-Za-z0-9._\-]|\{(rack|tray)(:0?[1-9]d)?\})*")


class RailRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How large the tree is. `unit`: hosts that share their leaves. `radix`: ports of a switch, half of them upwards.

    `uplinks`: ports of a leaf that lead upwards where it is not half of them (0). `spines`: of a tree of two tiers; 0
    makes three tiers. `rack`: hosts in one rack, lowest first, `height` units each. `nvl72` in place of `hosts`: racks
    whose compute trays are the hosts; `adapters`, `unit`, `rack` and `height` are theirs then. `host_name` has the
    host's number at `{:04d}`, or rack and tray at `{rack:03d}` and `{tray:02d}`.
    """

    hosts: int = 0
    adapters: tuple[str, ...] = tuple(f"mlx5_{number}" for number in range(8))
    unit: int = 32
    radix: int = 64
    uplinks: int = 0
    spines: int = 0
    rate: str = "4xNDR"
    host_name: str = "gpu-{:04d}"
    host_model: str = ""
    switch_model: str = ""
    rack: int = 4
    height: int = 8
    nvl72: Nvl72Racks | None = None

    @property
    def upwards(self) -> int:
        """Ports of a leaf that lead upwards."""
        return self.uplinks or self.radix // 2


def generate(rule: RailRule, models: dict[str, Model] | None = None) -> Design:
    """The design that the rule describes. Raises InvalidInputError where it does not fit its switches."""
    if problems := tuple(_contradictions(rule)):
        raise InvalidInputError(problems)
    rule = _of_racks(rule, rule.nvl72) if rule.nvl72 is not None else rule
    if problems := tuple(_problems(rule)):
        raise InvalidInputError(problems)
    rate = rate_of(rule.rate)
    cables = [*_downwards(rule, rate), *(_two_tiers(rule, rate) if rule.spines else _three_tiers(rule, rate))]
    devices: dict[str, Device] = {}
    places = nvl72.units(rule.nvl72) if rule.nvl72 else tuple(n * rule.height + 1 for n in range(rule.rack))
    for number in range(rule.hosts):
        name = _host(rule, number)
        rack, place = divmod(number, rule.rack)
        devices[name] = Device(name, DeviceKind.host, f"r{rack + 1:02d}", str(places[place]), rule.host_model)
    for name in sorted({p.device for c in cables for p in (c.a, c.z)} - devices.keys()):
        devices[name] = Device(name, DeviceKind.switch, "net", "", rule.switch_model)
    return Design(devices, tuple(cables), models or {})


def _contradictions(rule: RailRule) -> Iterator[Problem]:
    if rule.nvl72 is None:
        return
    plain = RailRule()
    for field in ("hosts", "adapters", "unit", "rack", "height"):
        if getattr(rule, field) != getattr(plain, field):
            yield _problem(field, f"{getattr(rule, field)} beside nvl72", "leave it out: the racks say it")


def _of_racks(rule: RailRule, racks: Nvl72Racks) -> RailRule:
    """The same rule with the hosts that the racks hold."""
    return replace(
        rule,
        hosts=racks.racks * nvl72.TRAYS,
        adapters=nvl72.ADAPTERS,
        unit=min(racks.per_unit, racks.racks) * nvl72.TRAYS,
        rack=nvl72.TRAYS,
        height=1,
    )


def _problems(rule: RailRule) -> Iterator[Problem]:
    if not rule.adapters or len(set(rule.adapters)) < len(rule.adapters):
        yield _problem("adapters", ", ".join(rule.adapters), "name each adapter once")
        return
    if not 1 <= rule.hosts <= MOST_HOSTS:
        yield _problem("hosts", f"{rule.hosts}", f"take 1 to {MOST_HOSTS:,}")
    yield from _switch_problems(rule)
    if rate_of(rule.rate) is None:
        yield _problem("rate", repr(rule.rate), 'write "4xNDR"')
    if rule.rack < 1 or rule.height < 1:
        yield _problem("rack", f"{rule.rack} hosts of {rule.height} units", "take at least 1 of each")
    if not _is_name(rule.host_name):
        instead = 'write where the number goes: "gpu-{:04d}", or "r{rack:03d}-t{tray:02d}"'
        yield _problem("host_name", repr(rule.host_name)[:80], instead)


def _is_name(text: str) -> bool:
    """Whether each host gets a name of its own."""
    return _NAME.fullmatch(text) is not None and ("{:" in text or "{}" in text or {"{rack", "{tray"} <= _fields(text))


def _fields(text: str) -> set[str]:
    return set(re.findall(r"\{[a-z]*", text))


def _switch_problems(rule: RailRule) -> Iterator[Problem]:
    up, down = rule.upwards, rule.radix - rule.upwards
    if not 2 <= rule.radix <= RADIX_MOST or rule.radix % 2:
        yield _problem("radix", f"{rule.radix}", f"take an even number of ports up to {RADIX_MOST:,}")
    elif not 1 <= up < rule.radix:
        yield _problem("uplinks", f"{rule.uplinks} of {rule.radix} ports", "leave ports for hosts")
    elif not 1 <= rule.unit <= down:
        what = f"{rule.unit} hosts"
        yield _problem("unit", what, f"a switch with {down} of {rule.radix} ports downwards takes 1 to {down}")
    elif rule.spines < 0 or (rule.spines and (up % rule.spines or _leaves(rule) * (up // rule.spines) > rule.radix)):
        what = f"{rule.spines} spines for {_leaves(rule)} leaves of {up} upper ports"
        yield _problem("spines", what, "take a divisor of those ports that leaves no spine with more links than ports")
    elif not rule.spines and _groups(rule) > rule.radix:
        most = rule.radix * (rule.radix // 2) // len(rule.adapters) * rule.unit
        yield _problem("hosts", f"{rule.hosts} in three tiers", f"at most {most:,} with these switches")


def _problem(where: str, what: str, instead: str) -> Problem:
    return Problem(where, 0, what, instead)


def _host(rule: RailRule, number: int) -> str:
    rack, tray = divmod(number, rule.rack)
    return rule.host_name.format(number + 1, rack=rack + 1, tray=tray + 1)


def _leaves(rule: RailRule) -> int:
    return -(-rule.hosts // rule.unit) * len(rule.adapters)


def _groups(rule: RailRule) -> int:
    """Groups of leaves below the same spines, of which each has half its ports downwards."""
    return -(-_leaves(rule) // (rule.radix // 2))


def _leaf(rule: RailRule, number: int) -> str:
    unit, rail = divmod(number, len(rule.adapters))
    return f"leaf-{unit + 1:03d}-{rail + 1}"


def _leaf_up(rule: RailRule, leaf: int, up: int) -> Port:
    return Port(_leaf(rule, leaf), str(rule.radix - rule.upwards + up + 1))


def _downwards(rule: RailRule, rate: Rate | None) -> Iterator[Cable]:
    for number in range(rule.hosts):
        unit, place = divmod(number, rule.unit)
        for rail, adapter in enumerate(rule.adapters):
            leaf = _leaf(rule, unit * len(rule.adapters) + rail)
            yield Cable(*ends(Port(_host(rule, number), adapter), Port(leaf, str(place + 1))), rate)


def _two_tiers(rule: RailRule, rate: Rate | None) -> Iterator[Cable]:
    each = rule.upwards // rule.spines
    for leaf in range(_leaves(rule)):
        for up in range(rule.upwards):
            turn, spine = divmod(up, rule.spines)
            upper = Port(f"spine-{spine + 1:03d}", str(leaf * each + turn + 1))
            yield Cable(*ends(_leaf_up(rule, leaf, up), upper), rate)


def _three_tiers(rule: RailRule, rate: Rate | None) -> Iterator[Cable]:
    half, groups = rule.radix // 2, _groups(rule)
    each = rule.radix // groups
    for leaf in range(_leaves(rule)):
        group, place = divmod(leaf, half)
        for up in range(rule.upwards):
            spine = Port(f"spine-{group + 1:02d}-{up + 1:02d}", str(place + 1))
            yield Cable(*ends(_leaf_up(rule, leaf, up), spine), rate)
    for group in range(groups):
        for plane in range(rule.upwards):
            for up in range(half):
                core, turn = divmod(up, each)
                upper = Port(f"core-{plane + 1:02d}-{core + 1:02d}", str(group * each + turn + 1))
                lower = Port(f"spine-{group + 1:02d}-{plane + 1:02d}", str(half + up + 1))
                yield Cable(*ends(lower, upper), rate)
