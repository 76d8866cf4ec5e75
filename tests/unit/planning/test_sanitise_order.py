"""Drives to be erased are named by serial number when the plan is frozen, and by nothing else."""

from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen
from hostler.core.planning.sanitise_order import certified, sanitise_order
from hostler.core.report.explain import explain, text
from hostler.core.state import events as e
from hostler.core.state.certificates import KeptCertificate
from hostler.core.state.configuration import Sanitising
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Facts, Operation, Outcome, Part
from hostler.core.state.operations import DriveToErase, Sanitise
from tests.kit import NOW, Drive, a_node, configuration, fold, pool_document

PLAIN = configuration({"train": pool_document(target=1)}, gpus=0)
DRIVES = (Part("S1", "drive", "M", "nvme1n1"), Part("S0", "drive", "M", "nvme0n1"), Part("G0", "gpu", "H100", "gpu0"))


def drive(rules: Sanitising) -> Drive:
    skus = {name: replace(sku, sanitise=rules) for name, sku in PLAIN.skus.items()}
    made = Drive(replace(PLAIN, skus=skus), [a_node("a", slots=(), addresses=())])
    made.step(FellowsSeen((Fellow("this", Release().reads),)))
    made.run()
    parts = tuple(replace(part, node="a") for part in DRIVES)
    made.observe("a", "inventory", parts=parts, facts={"covers": "drive,gpu"})
    return made


def test_every_drive_but_those_that_are_kept_is_named_by_serial() -> None:
    """Mutants: parts that are no drives; a slot that is kept; the order of the inventory."""
    here = drive(Sanitising(keep=("nvme0n1",), tpm=True, accounts=("admin",)))
    asked = sanitise_order(here.fleet, here.node("a"))
    assert asked == Sanitise((DriveToErase("nvme1n1", "S1", "M"),), ("nvme0n1",), tpm=True, accounts=("admin",))
    all_of_them = sanitise_order((here := drive(Sanitising())).fleet, here.node("a"))
    assert [one.serial for one in all_of_them.drives] == ["S0", "S1"]
    assert (all_of_them.tpm, all_of_them.accounts) == (False, None)


def test_the_plan_of_a_release_names_the_drives_of_its_own_moment() -> None:
    """Mutant: the order is made when it is carried out, so that a drive which was pulled meanwhile is not missed."""
    here = drive(Sanitising())
    assert here.ask_two("release-node", "a").granted
    plan = here.events(e.PlanRecorded)[-1].plan
    frozen = [step.act for step in plan.steps if isinstance(step.act, Sanitise)]
    assert [[one.serial for one in act.drives] for act in frozen] == [["S0", "S1"]]


def test_a_certificate_is_recorded_shown_and_explained() -> None:
    """Mutants: what is no digest is one; the node does not remember; the explanation does not name it."""
    here = drive(Sanitising())
    asked = Operation("o1", Sanitise(), "a", "p", 0, NOW, NOW)
    context = DecisionContext(here.fleet, here.controller.live, here.now)
    facts: Facts = {"certificate": "ab" * 32, "drives_erased": 2, "tenant_before": "acme"}
    (told,) = certified(context, here.node("a"), asked, Outcome("o1", "a", "done", facts=facts))
    assert told.certificate == KeptCertificate(here.now, "ab" * 32, "acme", 2)
    hostile: tuple[Facts, ...] = ({}, {"certificate": "../../etc"}, {"certificate": 7})
    for wrong in hostile:
        assert certified(context, here.node("a"), asked, Outcome("o1", "a", "done", facts=wrong)) == ()
    record = e.Record(here.fleet.cell.seq + 1, NOW, 1, "clock", told)
    fleet = fold([record], here.fleet)
    assert fleet.nodes["a"].certificates == (told.certificate,)
    assert f"certificate {'ab' * 6}" in text(explain([], fleet.nodes["a"]))
