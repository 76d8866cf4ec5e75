"""A rack of 18 trays with 4 GPUs each in one NVLink domain behind 9 switch trays, with jobs across trays."""

import pytest

from hostler.core.policy.blast_radius import blast_radius
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import ActClass, Phase
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

GPUS = 4
TRAYS = [f"t{number:02}" for number in range(18)]
DOMAINS = ("rack:r1", "nvlink:d1", "power:p1", "leaf:l1")
XID_149 = "NVRM: Xid (PCI:0000:{gpu:02x}:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 05 (0x025001c6 0x0 0x0 0x0 0x0 0x0)"
XID_154 = (
    "NVRM: Xid (PCI:0000:{gpu:02x}:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
)
BROAD = {"job-a": TRAYS[:6], "job-b": TRAYS[6:16], "solo": TRAYS[16:17]}
"""Two jobs that run across trays, one on a tray of its own, and a tray without work."""


def rack() -> Drive:
    """The rack in production with its switch trays known, and its jobs."""
    slots = tuple(f"gpu{gpu}" for gpu in range(GPUS))
    nodes = [
        a_node(
            name,
            domains=DOMAINS,
            position=Position("c1", rack="r1", u=number),
            slots=tuple((slot, f"{name}-G{slot[-1]}") for slot in slots),
            addresses=tuple((f"pci:0000:{gpu:02x}:00", f"{name}-G{gpu}") for gpu in range(GPUS)),
        )
        for number, name in enumerate(TRAYS)
    ]
    pools = {"train": pool_document(target=18, budget={"count": 18, "percent": 100, "removals_per_day": 100})}
    drive = Drive(configuration(pools, gpus=GPUS), nodes)
    switches = ",".join(f'{{"id":"sw{n}","kind":"switch_tray","rack":"r1","domains":["nvlink:d1"]}}' for n in range(9))
    domain = '{"id":"d1","kind":"nvlink_domain","rack":"r1"}'
    bmc = '{"id":"bmc-sw0","kind":"bmc","rack":"r1","domains":["nvlink:d1"]}'
    assert drive.ask("register-assets", "fleet", assets=f"[{switches},{domain},{bmc}]").granted
    for job, trays in BROAD.items():
        for tray in trays:
            drive.see_work(tray, a_workload(job, range(GPUS)))
    return drive


def asked(drive: Drive, target: str) -> list[str]:
    """Lists the owners whom a pending reset of this asset would wait for, by kind and name."""
    nodes = tuple(drive.node(name) for name in blast_radius(drive.fleet, target).nodes)
    context = DecisionContext(drive.fleet, drive.controller.live, drive.now)
    return [b.kind for b in blockers(context, DisruptionRequest("power_cycle", ActClass.pending, nodes))]


@pytest.mark.parametrize(
    ("asset", "trays", "gpus"),
    [("sw0", 18, 72), ("sw8", 18, 72), ("d1", 18, 72), ("rack:r1", 18, 72), ("t07", 1, 4), ("bmc-sw0", 0, 0)],
)
def test_a_switch_tray_disturbs_its_domain_a_tray_itself_and_a_bmc_nobody(asset: str, trays: int, gpus: int) -> None:
    """Mutants: a switch tray is taken for a part of its rack alone; a BMC for the trays beside it."""
    radius = blast_radius(rack().fleet, asset)
    assert (len(radius.nodes), radius.gpus) == (trays, gpus)
    assert list(radius.nodes) == sorted(radius.nodes)


def test_a_domain_is_reserved_whole_or_not_at_all() -> None:
    """One tray may not be disturbed: the switch tray's reset waits, and no other tray is cordoned for it meanwhile."""
    drive = rack()
    assert asked(drive, "sw3") == [], "all of the domain is free"
    drive.ask("hold", "t11", person="tina")
    assert "hold" in asked(drive, "sw3")
    reply = drive.ask_two("power-cycle", "sw3")
    assert reply.granted
    drive.run()
    assert drive.plans() == [], "a part of a domain is never taken while the rest may not be"
    assert drive.sent == []
    assert drive.ask_two("release", next(iter(drive.fleet.holds))).granted
    drive.run()
    assert sorted({p.plan.node for p in drive.events(e.PlanRecorded)}) == TRAYS
    assert drive.evicted == [], "jobs that run across trays are waited for on every one of them"


def test_one_switch_fault_is_one_incident_and_no_job_is_ended() -> None:
    """Mutants: each tray is treated by itself; the first tray's GPU is reset before the pattern is seen."""
    drive = rack()
    for name in TRAYS:
        drive.observe(name, "kernel_log", f"{XID_149.format(gpu=1)}\n{XID_154.format(gpu=1)}")
    drive.run()
    (incident,) = drive.fleet.incidents.values()
    assert (incident.scope.text, incident.syndrome, len(incident.members)) == ("nvlink:d1", "nvlink", 18)
    drive.wait(hours=12)
    assert "gpu_reset" not in drive.operations()
    assert len([t for t in drive.fleet.tickets.values() if t.kind == "incident"]) == 1
    assert all(drive.node(name).phase is Phase.production for name in TRAYS)
    assert drive.evicted == []
    assert drive.sweep() == 0


def test_149_and_154_on_one_tray_cost_that_tray_and_the_job_on_its_gpu_only() -> None:
    """Mutant: 154 on one tray is taken for the domain's fault, and the other job is ended too."""
    drive = rack()
    drive.observe("t03", "kernel_log", f"{XID_149.format(gpu=2)}\n{XID_154.format(gpu=2)}")
    drive.run()
    assert not len(drive.fleet.incidents)
    assert drive.evicted == ["job-a"], "doomed: it uses the GPU"
    assert {send.operation.node for send in drive.sent} == {"t03"}
    assert set(drive.plans()) == {"gpu_reset"}
    drive.wait(minutes=30)
    assert not drive.node("t03").conditions
    assert drive.boots["t03"] == 1
    assert all(drive.work[name] for name in BROAD["job-b"] + BROAD["solo"])


def test_trays_of_one_domain_are_treated_one_after_another() -> None:
    """Two trays with faults of their own. Mutant: domains have no budget, and two trays of a job's domain are away."""
    drive = rack()
    for name in TRAYS:
        drive.see_work(name)
    together: list[int] = []
    drive.checks.append(lambda d, _: together.append(len(d.fleet.index.members("disturbed:nvlink:d1"))))
    drive.fault("t02", "off_bus", gpu=0)
    drive.fault("t09", "ecc", gpu=3)
    drive.wait(hours=2)
    assert drive.plans("t02") == ["power_cycle"]
    assert drive.plans("t09") == ["gpu_reset"]
    assert max(together) == 1
