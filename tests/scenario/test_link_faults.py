"""Faults of links in service: one case for both ends, what follows by the profile of the nodes, and when it is over."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import LinksSeen
from hostler.core.fabric.design import Port
from hostler.core.state import events as e
from hostler.core.state.links import LinkCase, LinkCheck, LinkFault, LinkGrade, LinkRound
from hostler.core.state.model import Profile
from hostler.core.state.snapshot import dump, load, state_of
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric
from tests.kit import Drive, a_node, configuration, digest, fold, pool_document

HOST, FAR = "gpu-0001:mlx5_0", "leaf-001-1:1"
SPINES = ("leaf-001-1:9", "spine-001:1")
FAULT = LinkFault(HOST, FAR, LinkCheck.flaps, LinkGrade.act, "5 flaps in 24 h, counted at both ends", ("cable:C7",))


class Links:
    """A network with a node, and rounds of readings a quarter of an hour apart."""

    def __init__(self, profile: Profile = Profile.managed, mode: str = "observe") -> None:
        pools = configuration({"train": pool_document(target=1, profile=profile.value, modes={"*": mode})})
        node = replace(a_node("gpu-0001", pool="train"), profile=profile)
        self.cell = FabricCell(Drive(pools, nodes=(node,)), a_fabric())
        self.drive = self.cell.drive

    def round(self, *faults: LinkFault, clean: tuple[str, ...] = ()) -> int:
        """How many records about links a round of these faults wrote."""
        self.drive.wait(seconds=900)
        before = len(self.drive.journal)
        self.drive.step(LinksSeen(LinkRound(NAME, self.drive.now, 224, faults, clean)))
        kinds = (e.LinkFaultOpened, e.LinkFaultChanged, e.LinkFaultClosed)
        return sum(isinstance(record.event, kinds) for record in self.drive.journal[before:])

    @property
    def cases(self) -> list[LinkCase]:
        return list(self.drive.fleet.link_cases.values())

    @property
    def tickets(self) -> list[str]:
        return [ticket.id for ticket in self.drive.fleet.tickets.values() if ticket.kind == "link"]

    @property
    def conditions(self) -> list[str]:
        return [c.type for c in self.drive.node("gpu-0001").conditions if c.type.startswith("network")]


def test_a_fault_is_one_case_with_one_ticket_and_its_node_is_to_be_drained_after_its_job() -> None:
    links = Links(mode="act")
    links.round(FAULT)
    (case,) = links.cases
    assert (case.nodes, case.ticket in links.tickets) == (("gpu-0001",), True)
    (condition,) = (c for c in links.drive.node("gpu-0001").conditions if c.type == "network.link_flaps")
    assert (condition.part, condition.paths) == ("mlx5_0", ("fabric",))
    ticket = links.drive.fleet.tickets[case.ticket]
    assert (ticket.node, ticket.fault) == ("gpu-0001", "flaps")
    assert "cable:C7" in ticket.action
    rule = links.drive.fleet.policy.rules["network.link_flaps"]
    assert (rule.remedy, rule.timing) == ("triage", "pending")
    plan = links.drive.node("gpu-0001").plan
    assert plan is not None
    assert plan.name == "triage"


def test_a_node_that_is_slow_by_all_its_ports_is_one_case_with_one_ticket_and_no_switch_s() -> None:
    """The node explains its links. Mutants: a ticket for each cable; an incident of a switch; no condition."""
    links, keys = Links(), (f"{HOST}|{FAR}", "gpu-0001:mlx5_1|leaf-001-2:1")
    slow = replace(FAULT, check=LinkCheck.slow, parts=())
    links.round(slow)
    node = LinkFault("all-ports-of-gpu-0001:", "", LinkCheck.slow, LinkGrade.act, "12 pairs reach 190 Gbit/s", (), keys)
    assert links.round(node) == 2
    (case,) = links.cases
    assert (case.nodes, [case.ticket]) == (("gpu-0001",), links.tickets)
    ticket = links.drive.fleet.tickets[case.ticket]
    assert (ticket.node, ticket.component) == ("gpu-0001", "gpu-0001")
    assert ticket.summary == "node gpu-0001 by all its ports: 12 pairs reach 190 Gbit/s"
    assert "Look at the node itself" in ticket.action
    parts = sorted(c.part for c in links.drive.node("gpu-0001").conditions if c.type == "network.link_flaps")
    assert parts == ["mlx5_0", "mlx5_1"]
    assert not list(links.drive.fleet.incidents.values())
    for _ in range(3):
        links.round(clean=(node.key,))
    assert (links.cases, links.tickets, links.conditions) == ([], [], [])


def test_a_finding_that_says_more_of_a_cable_takes_over_what_its_dark_link_asked_for() -> None:
    """Two cables that are exchanged came up again. Mutants: both tickets stand; one for flaps is closed with it."""
    links = Links()
    links.round(replace(FAULT, check=LinkCheck.down))
    (case,) = links.cases
    assert case.ticket in links.tickets
    host, other = Port("gpu-0001", "mlx5_0"), Port("gpu-0001", "mlx5_1")
    near, far = links.cell.cables.pull(host), links.cell.cables.pull(other)
    links.cell.cables.join(host, far)
    links.cell.cables.join(other, near)
    links.cell.look()
    (asked,) = links.cell.tickets
    (told,) = links.cases
    assert (links.tickets, told.ticket, links.conditions) == ([], "", [])
    assert told.waits == f"finding {links.cell.cases[0].finding.key} (swapped) explains it, ticket {asked.id}"


@pytest.mark.parametrize("check", list(LinkCheck))
def test_of_an_unmanaged_node_each_fault_is_tracked_and_shown_and_nothing_follows(check: LinkCheck) -> None:
    """Mutants: a ticket, a condition, a plan for a node that is not ours to act upon."""
    links = Links(Profile.unmanaged, mode="act")
    links.round(replace(FAULT, check=check))
    (case,) = links.cases
    assert (case.fault.check, case.ticket) == (check, "")
    assert "unmanaged: nothing follows" in case.waits
    assert (links.tickets, links.conditions, links.drive.node("gpu-0001").plan) == ([], [], None)


@pytest.mark.parametrize("check", list(LinkCheck))
@pytest.mark.parametrize("grade", list(LinkGrade))
def test_of_a_managed_node_only_what_is_to_be_acted_upon_is_ticketed(check: LinkCheck, grade: LinkGrade) -> None:
    links = Links()
    links.round(replace(FAULT, check=check, grade=grade))
    acts = grade is LinkGrade.act
    assert (len(links.cases), len(links.tickets), bool(links.conditions)) == (1, int(acts), acts)


def test_a_link_between_switches_is_ticketed_and_is_no_nodes() -> None:
    links = Links()
    links.round(replace(FAULT, a=SPINES[0], z=SPINES[1]))
    assert (len(links.tickets), links.conditions) == (1, [])
    assert links.drive.fleet.tickets[links.tickets[0]].node == f"fabric:{NAME}"


def test_of_a_link_at_a_switch_in_maintenance_nothing_follows_before_that_is_over() -> None:
    """Mutant: the nodes of a switch that is worked on are drained one by one."""
    links = Links(mode="act")
    assert links.drive.ask("hold", "switch:leaf-001-1").granted
    links.round(FAULT)
    assert (links.tickets, links.conditions, links.drive.node("gpu-0001").plan) == ([], [], None)
    assert "switch leaf-001-1 is held" in links.cases[0].waits
    (hold,) = (h for h in links.drive.fleet.holds.values() if h.scope.kind == "switch")
    assert links.drive.ask("release", hold.id).granted
    links.round(FAULT)
    assert (len(links.tickets), links.conditions) == (1, ["network.link_flaps"])


def test_the_same_again_writes_nothing_and_what_changes_is_written() -> None:
    """Readings stay out of the journal. Mutant: the text's figures are news."""
    links = Links()
    assert links.round(FAULT) == 1
    assert links.round(replace(FAULT, text="6 flaps in 24 h, counted at both ends")) == 0
    assert links.round(replace(FAULT, check=LinkCheck.bit_errors)) >= 1
    assert links.cases[0].fault.check is LinkCheck.bit_errors


def test_a_fault_is_over_after_three_rounds_that_have_read_the_link() -> None:
    """Mutants: a round that did not read the link counts; two rounds are enough."""
    links = Links()
    links.round(FAULT)
    for _ in range(5):
        links.round()
    assert len(links.cases) == 1, "nobody has read it"
    for left in (1, 1, 0):
        links.round(clean=(FAULT.key,))
        assert len(links.cases) == left
    assert (links.tickets, links.conditions) == ([], [])
    links.round(FAULT)
    links.round(clean=(FAULT.key,))
    links.round(FAULT)
    assert links.cases[0].clean == 0


def test_a_ticket_that_somebody_closed_is_opened_anew_while_the_fault_is_read() -> None:
    links = Links()
    links.round(FAULT)
    (first,) = links.tickets
    assert links.drive.ask("close-ticket", first, person="tess").granted
    links.round(FAULT)
    assert len(links.tickets) == 1
    assert links.tickets != [first]


def test_a_cable_whose_link_s_ticket_somebody_closed_is_asked_for_by_what_a_validation_finds() -> None:
    """The link is read no more, as its agent is silent. Mutant: a ticket that is closed is waited for, for ever."""
    links = Links()
    port = Port("gpu-0001", "mlx5_0")
    far = links.cell.cables.pull(port)
    ends = sorted((str(port), str(far)))
    links.round(LinkFault(ends[0], ends[1], LinkCheck.down, LinkGrade.act, "down for 24 minutes"))
    (link,) = links.tickets
    links.cell.look()
    (case,) = links.cell.cases
    assert (case.finding.kind, case.ticket, case.waits.startswith(f"ticket {link} asks")) == ("missing", "", True)
    assert links.drive.ask("close-ticket", link, person="tess").granted
    links.cell.look()
    (case,) = links.cell.cases
    assert [ticket.id for ticket in links.cell.tickets] == [case.ticket]


def test_work_at_the_node_is_waited_for() -> None:
    links = Links()
    assert links.drive.ask("hold", "gpu-0001").granted
    links.round(FAULT)
    assert links.tickets == []
    assert "is held by" in links.cases[0].waits


def test_so_many_tickets_at_once_are_no_bad_cables() -> None:
    links = Links()
    many = [replace(FAULT, a=f"leaf-{n:03}-9:1", z=f"spine-001:{n}") for n in range(1, 260)]
    links.round(*many)
    assert (len(links.cases), len(links.tickets)) == (259, 200)


def test_the_cable_has_the_fault_in_its_own_history() -> None:
    links = Links()
    links.round(FAULT)
    opened = next(r.event for r in links.drive.journal if isinstance(r.event, e.LinkFaultOpened))
    assert {"cable:C7", f"link:{FAULT.key}", f"fabric:{NAME}"} <= set(e.subjects_of(opened))


def test_a_snapshot_holds_the_cases_and_a_removed_network_has_none() -> None:
    links = Links()
    links.round(FAULT)
    again = load(dump(state_of(links.drive.fleet)))
    assert list(again.link_cases.values()) == links.cases
    assert digest(fold(links.drive.journal)) == digest(links.drive.fleet)
    assert links.drive.ask("remove-fabric", NAME).granted
    assert (links.cases, links.tickets, links.conditions) == ([], [], [])
    links.drive.now += timedelta(hours=1)
    assert links.round(FAULT) == 0, "a round that came late"


SWITCH = LinkFault("leaf-001-1:", "", LinkCheck.down, LinkGrade.act, "6 of its 6 links show the same", (), (FAULT.key,))


def test_a_switchs_own_fault_is_one_ticket_and_one_incident_and_no_nodes() -> None:
    """Mutants: its nodes bear a condition and are drained; the link's own case and ticket stay."""
    links = Links(mode="act")
    links.round(replace(FAULT, check=LinkCheck.down))
    assert len(links.tickets) == 1
    links.round(SWITCH)
    (case,) = links.cases
    assert (case.fault.switch, links.conditions) == ("leaf-001-1", [])
    (ticket,) = [links.drive.fleet.tickets[name] for name in links.tickets]
    assert (ticket.id, ticket.component, ticket.node) == (case.ticket, "leaf-001-1", f"fabric:{NAME}")
    (incident,) = links.drive.fleet.incidents.values()
    assert (incident.scope.text, list(incident.members)) == ("switch:leaf-001-1", ["gpu-0001"])
    for _ in range(3):
        links.round(clean=(SWITCH.key,))
    assert (links.cases, links.tickets, len(links.drive.fleet.incidents)) == ([], [], 0)


def test_a_dark_switch_that_a_validation_found_explains_its_links() -> None:
    """Mutants: each link asks for a technician of its own; its nodes are drained."""
    links = Links(mode="act")
    links.cell.cables.silent.add("leaf-001-1")
    links.cell.look()
    (ticket,) = links.cell.tickets
    (incident,) = links.drive.fleet.incidents.values()
    assert (incident.scope.text, list(incident.members)) == ("switch:leaf-001-1", ["gpu-0001"])
    links.round(replace(FAULT, check=LinkCheck.down))
    assert (links.tickets, links.conditions) == ([], [])
    assert links.cases[0].waits == f"switch leaf-001-1 is dark, ticket {ticket.id}"


@pytest.mark.parametrize("check", [LinkCheck.down, LinkCheck.flaps, LinkCheck.bit_errors])
@pytest.mark.parametrize("asked", [True, False])
def test_a_node_is_not_treated_for_a_link_whose_switch_is_found_dark(check: LinkCheck, asked: bool) -> None:
    """The switch is back before the next round, which reads the link without a fault.

    Mutants: the node's condition stands until three rounds were clean, and its port is reset meanwhile; so it does
    where somebody works at the node and the link had no ticket; what no dark switch explains is over too.
    """
    links = Links()
    if not asked:
        links.drive.ask("hold", "gpu-0001")
    links.round(replace(FAULT, check=check))
    assert bool(links.tickets) is asked
    assert links.conditions == ["network.link_flaps"]
    links.cell.cables.silent.add(FAR.partition(":")[0])
    links.cell.look()
    explained = check is not LinkCheck.bit_errors
    assert links.conditions == ([] if explained else ["network.link_flaps"])
    assert bool(links.tickets) is (asked and not explained)
    links.round(clean=(FAULT.key,))
    assert links.conditions == ([] if explained else ["network.link_flaps"])


def test_a_dark_switch_is_not_asked_for_twice() -> None:
    """The rounds saw it first. Mutant: the validation opens a second ticket for it."""
    links = Links()
    links.round(SWITCH)
    links.cell.cables.silent.add("leaf-001-1")
    links.cell.look()
    assert (len(links.tickets), links.cell.tickets) == (1, [])
    assert links.cell.cases[0].waits == f"ticket {links.tickets[0]} asks for switch leaf-001-1 already"


def test_a_cable_without_a_link_is_asked_for_once_whoever_sees_it_first() -> None:
    """Mutants: rounds and validations each open a ticket for one cable."""
    down = replace(FAULT, check=LinkCheck.down)
    links = Links()
    links.round(down)
    links.cell.cables.pull(Port("gpu-0001", "mlx5_0"))
    links.cell.look()
    assert (len(links.tickets), links.cell.tickets) == (1, [])
    assert links.cell.cases[0].waits.startswith(f"ticket {links.tickets[0]} asks for link {HOST}")
    other = Links()
    other.cell.cables.pull(Port("gpu-0001", "mlx5_0"))
    other.cell.look()
    other.round(down)
    (ticket,) = other.cell.tickets
    assert (other.tickets, other.conditions) == ([], [])
    assert other.cases[0].waits.endswith(f"explains it, ticket {ticket.id}")


def test_a_link_that_is_asked_for_is_asked_for_no_more_when_its_switch_is() -> None:
    """Mutant: tickets of links stay beside the switch's."""
    links = Links()
    links.round(replace(FAULT, check=LinkCheck.down))
    links.cell.cables.silent.add("leaf-001-1")
    links.cell.look()
    links.round(replace(FAULT, check=LinkCheck.down))
    assert (links.tickets, len(links.cell.tickets)) == ([], 1)
    assert links.cases[0].waits == f"switch leaf-001-1 is dark, ticket {links.cell.tickets[0].id}"
