"""Drives to be erased are named by serial number when the plan is frozen, and by nothing else."""

from msgspec.structs import replace

from hostler.core.planning.sanitise_order import sanitise_order
from hostler.core.state import events as e
from hostler.core.state.configuration import Sanitising
from hostler.core.state.model import Part
from hostler.core.state.operations import DriveToErase, Sanitise
from tests.kit import Drive, a_node, configuration, pool_document

PLAIN = configuration({"train": pool_document(target=1)}, gpus=0)
DRIVES = (Part("S1", "drive", "M", "nvme1n1"), Part("S0", "drive", "M", "nvme0n1"), Part("G0", "gpu", "H100", "gpu0"))


def drive(rules: Sanitising) -> Drive:
    skus = {name: replace(sku, sanitise=rules) for name, sku in PLAIN.skus.items()}
    made = Drive(replace(PLAIN, skus=skus), [a_node("a", slots=(), addresses=())])
    made.observe(
        "a", "inventory", parts=tuple(replace(part, node="a") for part in DRIVES), facts={"covers": "drive,gpu"}
    )
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
