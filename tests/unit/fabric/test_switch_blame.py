"""Faults of many links that one switch explains, and those that it does not."""

from hostler.core.fabric.design import Cable, Port
from hostler.core.fabric.switch_blame import joined
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, PortReading

DOWN, UP = PortReading(state="down"), PortReading(state="active")
CABLES = [
    *(Cable(Port(f"n{n}", "mlx5_0"), Port("leaf", str(n))) for n in range(1, 9)),
    *(Cable(Port("leaf", str(n)), Port("spine", str(n))) for n in range(9, 17)),
]


def _is_switch(name: str) -> bool:
    return name in ("leaf", "spine")


def _fault(number: int, check: LinkCheck = LinkCheck.down, grade: LinkGrade = LinkGrade.act) -> LinkFault:
    cable = CABLES[number - 1]
    return LinkFault(str(cable.a), str(cable.z), check, grade, "down for 16 minutes")


def _read(**states: PortReading) -> dict[Port, PortReading]:
    """Hosts by name; the spines' ends are read by a page that tells counters and no states."""
    hosts = {Port(f"n{n}", "mlx5_0"): states.get(f"n{n}", UP) for n in range(1, 9)}
    return {**hosts, **{cable.z: PortReading(link_downed=0) for cable in CABLES[8:]}}


def test_links_of_a_dead_switch_are_one_fault() -> None:
    """Links that only a page of counters tells of say nothing of being down. Mutant: they count as sound."""
    told = joined([_fault(n) for n in range(1, 9)], CABLES, _read(), _is_switch)
    (fault,) = told
    assert (fault.switch, fault.key, len(fault.links)) == ("leaf", "leaf:|", 8)
    assert fault.bearer == "switch leaf"
    assert "8 of its 8 links" in fault.text


def test_three_of_eight_links_are_three_faults() -> None:
    """Mutant: three links are enough, whatever the others show."""
    told = joined([_fault(n) for n in range(1, 4)], CABLES, _read(), _is_switch)
    assert [fault.switch for fault in told] == ["", "", ""]


def test_a_host_is_blamed_for_nothing() -> None:
    """Mutant: whoever has most links that fail is called a switch."""
    cables = [Cable(Port("n1", f"mlx5_{n}"), Port(f"leaf{n}", "1")) for n in range(8)]
    faults = [LinkFault(str(c.a), str(c.z), LinkCheck.down, LinkGrade.act, "down") for c in cables]
    told = joined(faults, cables, {c.a: DOWN for c in cables}, lambda name: name.startswith("leaf"))
    assert [fault.switch for fault in told] == [""] * 8


def test_what_is_of_each_module_is_no_switchs() -> None:
    """Eight dirty modules are eight to clean; a grade that nobody acts upon blames nobody."""
    for check, grade in ((LinkCheck.dirty_optics, LinkGrade.act), (LinkCheck.flaps, LinkGrade.warning)):
        told = joined([_fault(n, check, grade) for n in range(1, 9)], CABLES, _read(), _is_switch)
        assert [fault.switch for fault in told] == [""] * 8


def test_of_two_switches_the_one_that_explains_more_is_blamed() -> None:
    """All links of the leaf flap: to the spine too, whose other links do not exist here. Mutant: both are blamed."""
    told = joined([_fault(n, LinkCheck.flaps) for n in range(1, 17)], CABLES, _read(), _is_switch)
    assert [fault.switch for fault in told] == ["leaf"]
    assert len(told[0].links) == 16
