"""The evidence of a node in triage: what its vendor needs of it, and nothing of customers, people or secrets."""

import json

from hostler.core.report.evidence_bundle import HIDDEN, MAX_FILE, EvidenceBundle, Known, Redaction, evidence_bundle
from hostler.core.state.events import subjects_of
from hostler.core.state.model import Observation, Phase
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

CONFIG = configuration(
    {
        "lynx-train": pool_document(target=1, tenant="lynx-corp", cluster="lynx-k8s", owner="pat@lynx-corp.example"),
        "orca-serve": pool_document(target=0, tenant="orca-labs", cluster="orca-k8s", owner="kim@orca-labs.example"),
    },
    firmware={"BIOS": "2.0"},
)
NAMES = ("lynx", "orca", "pat@", "kim@", "secret-job", "hunter2", "abcdef.0123456789abcdef", "python3")
XID = "NVRM: Xid (PCI:0000:03:00): 79, pid=1, name=python3, GPU has fallen off the bus."


class Journalled(Drive):
    """A drive that keeps the raw observations as a journal does."""

    def __init__(self) -> None:
        self.kept: list[Observation] = []
        super().__init__(CONFIG, [a_node("a", pool="lynx-train"), a_node("b", pool="")])
        self.checks.append(lambda _drive, ready: self.kept.extend(ready.batch.observations))

    def bundle(self) -> EvidenceBundle:
        told = [r for r in self.journal if "a" in subjects_of(r.event)]
        known = Known(self.fleet, self.node("a"), told[::-1], self.kept[::-1], self.now)
        return evidence_bundle(known)


def in_triage() -> Journalled:
    """A node of a customer that loses a GPU twice and is taken out; its log and its people say what they should not."""
    drive = Journalled()
    drive.see_work("a", a_workload("secret-job"))
    drive.observe("a", "sensors", source="bmc", facts={"gpu3_temp_c": 71.0, "bmc_password": "hunter2"})
    drive.observe("a", "kernel_log", XID)
    drive.observe("a", "kernel_log", "lynx-corp trainer: token=hunter2 on https://kim:hunter2@orca-k8s/", facility=1)
    drive.observe("a", "kernel_log", "usb 1-1: Product: lynx-corp dongle abcdef.0123456789abcdef password: hunter2")
    drive.ask("certify", "a", person="pat@lynx-corp.example")
    drive.wait(hours=1)
    drive.see_work("a")
    drive.wait(hours=2)
    drive.observe("a", "kernel_log", XID)
    drive.wait(hours=2)
    return drive


def test_a_vendor_reads_fault_part_serial_log_and_what_was_tried() -> None:
    """Mutants: the part's serial is left out; the log is empty; attempts are untold."""
    drive = in_triage()
    assert drive.node("a").attempts
    bundle = drive.bundle()
    case = json.loads(bundle.files["case.json"])
    assert (case["hardware_id"], case["system_serial"], case["model"]) == ("a", "S-a", "h100")
    assert [one["action"] for one in case["repairs_tried"]][:1] == ["power_cycle"]
    assert "Xid" in bundle.files["log.txt"]
    assert "gpu.fallen_off_bus" in bundle.files["timeline.txt"]
    assert ",gpu3_temp_c,71.0" in bundle.files["sensors.csv"]
    assert {part["serial"] for part in json.loads(bundle.files["parts.json"])} == {f"a-G{n}" for n in range(8)}
    assert "nvidia-bug-report" in bundle.files["missing.txt"]
    assert set(bundle.sha256) == set(bundle.files)


def test_nothing_of_customers_people_or_secrets_is_in_it() -> None:
    """Mutants: names of one's own customer are left; a line of user space is told; a secret's value stays under its
    name; the program that the kernel names is told."""
    bundle = in_triage().bundle()
    whole = "\n".join(bundle.files.values())
    assert not [name for name in NAMES if name in whole.lower()]
    assert HIDDEN in bundle.files["log.txt"]


def test_a_flood_makes_no_bundle_larger_than_its_bounds() -> None:
    """Mutants: a file is not cut; what was cut is not said; the latest lines of the log are cut."""
    drive = Journalled()
    for number in range(1500):
        drive.kept.append(
            Observation("a", "kernel_log", "agent", "s", number + 1, text=f"{number} " + "x" * 5000, received=drive.now)
        )
    bundle = drive.bundle()
    assert all(len(text) <= MAX_FILE + 100 for text in bundle.files.values())
    assert bundle.files["log.txt"].startswith("[cut before")
    assert "agent: 1499 xxx" in bundle.files["log.txt"]


def test_a_name_is_taken_out_as_a_word_and_hides_no_other() -> None:
    """Mutants: a pool "gpu" takes the word out of every part; the shorter name leaves the rest of the longer."""
    hide = Redaction(["lynx", "lynx-corp", "k1", ""])
    assert hide.text("lynx-corp and LYNX, not lynxes; k1 stays, it is too short") == (
        f"{HIDDEN} and {HIDDEN}, not lynxes; k1 stays, it is too short"
    )
    assert hide.value({"bmc_token": {"a": "b"}, "n": 3}) == {"bmc_token": HIDDEN, "n": 3}


def test_a_node_that_nobody_has_seen_has_a_bundle_that_says_what_is_missing() -> None:
    """Mutant: nothing known raises."""
    drive = Drive(CONFIG, [a_node("c", pool="", phase=Phase.triage, slots=(), addresses=(), inventory_at=None)])
    bundle = evidence_bundle(Known(drive.fleet, drive.node("c"), [], [], drive.now))
    assert "BMC event log: no entry is kept" in bundle.files["missing.txt"]
    assert json.loads(bundle.files["parts.json"]) == []
