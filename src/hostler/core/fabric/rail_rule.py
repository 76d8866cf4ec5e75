"""A rail-optimised fat tree from a rule: adapter i of each host goes to the leaf of rail i in the host's unit.

Two tiers: the upper ports of each leaf lead to all spines alike. Three tiers: leaves form groups with spines of their
own, and the spines of one number in all groups share a plane of core switches. As in NVIDIA's reference architecture of
the DGX SuperPOD: 32 hosts a scalable unit, switches of 64 ports, half of them upwards.
"""

from collections.abc import Iterator

from msgspec import Struct

from hostler.core.fabric.design import Cable, Design, Device, DeviceKind, Port, ends
from hostler.core.fabric.rates import Rate, rate_of
from hostler.core.state.fabrics import Model
from hostler.core.state.input_problems import InvalidInputError, Problem

MOST_HOSTS = 65_536


class RailRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How large the tree is. `unit`: hosts that share their leaves. `radix`: ports of a switch, half of them upwards.

    `spines`: of a tree of two tiers; 0 makes three tiers. `rack`: hosts in one rack, lowest first, `height` units each.
    """

    hosts: int
    adapters: tuple[str, ...] = tuple(f"mlx5_{number}" for number in range(8))
    unit: int = 32
    radix: int = 64
    spines: int = 0
    rate: str = "4xNDR"
    host_name: str = "gpu-{:04d}"
    host_model: str = ""
    switch_model: str = ""
    rack: int = 4
    height: int = 8


def generate(rule: RailRule, models: dict[str, Model] | None = None) -> Design:
    """The design that the rule describes. Raises InvalidInputError where it does not fit its switches."""
    if problems := tuple(_problems(rule)):
        raise InvalidInputError(problems)
    rate = rate_of(rule.rate)
    cables = [*_downwards(rule, rate), *(_two_tiers(rule, rate) if rule.spines else _three_tiers(rule, rate))]
    devices: dict[str, Device] = {}
    for number in range(rule.hosts):
        name = rule.host_name.format(number + 1)
        rack, place = divmod(number, rule.rack)
        unit = str(place * rule.height + 1)
        devices[name] = Device(name, DeviceKind.host, f"r{rack + 1:02d}", unit, rule.host_model)
    for name in sorted({p.device for c in cables for p in (c.a, c.z)} - devices.keys()):
        devices[name] = Device(name, DeviceKind.switch, "net", "", rule.switch_model)
    return Design(devices, tuple(cables), models or {})


def _problems(rule: RailRule) -> Iterator[Problem]:
    if not rule.adapters or len(set(rule.adapters)) < len(rule.adapters):
        yield _problem("adapters", ", ".join(rule.adapters), "name each adapter once")
        return
    half = rule.radix // 2
    if not 1 <= rule.hosts <= MOST_HOSTS:
        yield _problem("hosts", f"{rule.hosts}", f"take 1 to {MOST_HOSTS:,}")
    if rule.radix < 2 or rule.radix % 2:
        yield _problem("radix", f"{rule.radix}", "take an even number of ports")
    elif not 1 <= rule.unit <= half:
        yield _problem("unit", f"{rule.unit} hosts", f"a switch of {rule.radix} ports takes 1 to {half} downwards")
    elif rule.spines and (half % rule.spines or _leaves(rule) * (half // rule.spines) > rule.radix):
        what = f"{rule.spines} spines for {_leaves(rule)} leaves of {half} upper ports"
        yield _problem("spines", what, "take a divisor of those ports that leaves no spine with more links than ports")
    elif not rule.spines and -(-_leaves(rule) // half) > half:
        yield _problem(
            "hosts", f"{rule.hosts} in three tiers", f"at most {half * half * rule.unit} with these switches"
        )
    if rate_of(rule.rate) is None:
        yield _problem("rate", repr(rule.rate), 'write "4xNDR"')
    if rule.rack < 1 or rule.height < 1:
        yield _problem("rack", f"{rule.rack} hosts of {rule.height} units", "take at least 1 of each")
    if "{" not in rule.host_name:
        yield _problem("host_name", repr(rule.host_name), 'write where the number goes: "gpu-{:04d}"')


def _problem(where: str, what: str, instead: str) -> Problem:
    return Problem(where, 0, what, instead)


def _leaves(rule: RailRule) -> int:
    return -(-rule.hosts // rule.unit) * len(rule.adapters)


def _leaf(rule: RailRule, number: int) -> str:
    unit, rail = divmod(number, len(rule.adapters))
    return f"leaf-{unit + 1:03d}-{rail + 1}"


def _downwards(rule: RailRule, rate: Rate | None) -> Iterator[Cable]:
    for number in range(rule.hosts):
        unit, place = divmod(number, rule.unit)
        for rail, adapter in enumerate(rule.adapters):
            leaf = _leaf(rule, unit * len(rule.adapters) + rail)
            host = Port(rule.host_name.format(number + 1), adapter)
            yield Cable(*ends(host, Port(leaf, str(place + 1))), rate)


def _two_tiers(rule: RailRule, rate: Rate | None) -> Iterator[Cable]:
    half = rule.radix // 2
    each = half // rule.spines
    for leaf in range(_leaves(rule)):
        for up in range(half):
            turn, spine = divmod(up, rule.spines)
            upper = Port(f"spine-{spine + 1:03d}", str(leaf * each + turn + 1))
            yield Cable(*ends(Port(_leaf(rule, leaf), str(half + up + 1)), upper), rate)


def _three_tiers(rule: RailRule, rate: Rate | None) -> Iterator[Cable]:
    half = rule.radix // 2
    groups = -(-_leaves(rule) // half)
    each = max(1, rule.radix // groups)
    for leaf in range(_leaves(rule)):
        group, place = divmod(leaf, half)
        for up in range(half):
            spine = Port(f"spine-{group + 1:02d}-{up + 1:02d}", str(place + 1))
            yield Cable(*ends(Port(_leaf(rule, leaf), str(half + up + 1)), spine), rate)
    for group in range(groups):
        for plane in range(half):
            for up in range(half):
                core, turn = divmod(up, each)
                upper = Port(f"core-{plane + 1:02d}-{core + 1:02d}", str(group * each + turn + 1))
                lower = Port(f"spine-{group + 1:02d}-{plane + 1:02d}", str(half + up + 1))
                yield Cable(*ends(lower, upper), rate)
