"""A rack is brought up by recorded steps: shelves, coolant, detectors, trays with their firmware, compute trays."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, RackSeen
from hostler.core.conditions.rack_certificate import digest_of
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Node, Operation, Phase
from hostler.core.state.operations import WriteFirmware
from hostler.core.state.rack_runs import RACK_FAILED, Rack
from hostler.core.state.racks import AssetLook
from tests.kit import NOW, Drive, LostCommitError, a_node, configuration, digest, fold, pool_document
from tests.scenario.test_restored import restore

IMAGE = {"image": "https://images.example/tray.bin", "sha256": "ab" * 32, "activate": "bmc_reset"}
MANIFEST: dict[str, Any] = {
    "bundle": "nvl72-1.3",
    "power_shelves": 2,
    "supplies_needed": 4,
    "leak_detectors": 2,
    "coolant_units": 1,
    "switch_trays": 2,
    "control_planes": 1,
    "compute_trays": 2,
    "shelf_firmware": {"PMC": "2.1"},
    "switch_firmware": {"MGX_FW_BMC_0": "1.3"},
    "updates": {"MGX_FW_BMC_0": IMAGE, "PMC": {**IMAGE, "activate": "none"}},
}
RACK = "r7"
SUPPLIES = tuple((f"psu{n}", "ok") for n in range(6))
LOOKS = {
    "ps1": AssetLook(NOW, serial="SH-1", health="ok", supplies=SUPPLIES, firmware=(("PMC", "2.1"),)),
    "ps2": AssetLook(NOW, serial="SH-2", health="ok", supplies=SUPPLIES, firmware=(("PMC", "2.0"),)),
    "cdu1": AssetLook(NOW, serial="CDU-1", health="ok", leaks=(("floor", "ok"), ("manifold", "ok"))),
    "sw1": AssetLook(NOW, serial="TR-1", health="ok", firmware=(("MGX_FW_BMC_0", "1.2"),), control_plane="configured"),
    "sw2": AssetLook(NOW, serial="TR-2", health="ok", firmware=(("MGX_FW_BMC_0", "1.3"),)),
}
KINDS = {"ps": "power_shelf", "cd": "coolant_unit", "sw": "switch_tray"}


class RackDrive(Drive):
    """A drive whose assets are seen as `looks` says, and run what was written to them unless a look is `stuck`."""

    def __init__(
        self, nodes: tuple[Node, ...] = (), policy: Callable[[dict[str, Any]], None] | None = None, **manifest: Any
    ) -> None:
        self.looks = dict(LOOKS)
        self.stuck: set[str] = set()
        pools = {"train": pool_document()} if any(node.pool for node in nodes) else {}
        super().__init__(configuration(pools, policy, rack={**MANIFEST, **manifest}), nodes)
        self.step(FellowsSeen((Fellow("this", Release().reads),)))
        assets = [
            {"id": name, "kind": KINDS[name[:2]], "rack": RACK, "serial": look.serial, "bmc": f"https://{name}"}
            for name, look in LOOKS.items()
        ]
        assert self.ask("register-assets", "fleet", assets=json.dumps(assets)).granted

    def look(self, *names: str) -> None:
        for name in names or tuple(self.looks):
            self.step(RackSeen(name, replace(self.looks[name], at=self.now)))

    def _happen(self, operation: Operation) -> None:
        if isinstance(operation.act, WriteFirmware) and operation.node not in self.stuck:
            look = self.looks[operation.node]
            firmware = {**dict(look.firmware), operation.act.component: operation.act.version}
            self.looks[operation.node] = replace(look, firmware=tuple(firmware.items()))
        super()._happen(operation)

    @property
    def rack(self) -> Rack:
        return self.fleet.racks[RACK]

    @property
    def at(self) -> str:
        run = self.rack.run
        return run.steps[run.index].name if run is not None else ""

    def begin_run(self, sku: str = "h100") -> None:
        reply = self.ask("rack-bring-up", f"rack:{RACK}", sku=sku)
        assert reply.granted, reply.text

    def waits(self) -> list[str]:
        run = self.rack.run
        return [b.text for b in run.waiting.blockers] if run is not None and run.waiting is not None else []


def trays(phase: Phase = Phase.production) -> tuple[Node, ...]:
    place = Position("c1", rack=RACK)
    return tuple(a_node(name, pool="", phase=phase, position=place, domains=(f"rack:{RACK}",)) for name in ("a", "b"))


def up(drive: RackDrive) -> RackDrive:
    drive.begin_run()
    return seen(drive)


def seen(drive: RackDrive) -> RackDrive:
    """All assets are looked at until nothing follows from that any more."""
    for _ in range(5):
        drive.look()
        drive.run()
    return drive


def test_a_rack_comes_up_in_the_order_of_power_and_water_and_writes_what_differs() -> None:
    """Mutants: a tray is written before the detectors say dry; what runs the bundle already is written too."""
    drive = up(RackDrive(trays()))
    done = [event.step for event in drive.events(e.RackStepDone)]
    assert done == [
        "power_shelves_seen",
        "power_shelf_firmware",
        "power_shelves",
        "coolant_units_seen",
        "coolant_unit_firmware",
        "coolant_units",
        "leak_detectors",
        "switch_trays_seen",
        "switch_tray_firmware",
        "switch_trays",
        "fabric_managers",
        "compute_trays",
    ]
    asked = [(one.operation.node, one.operation.kind) for one in drive.events(e.AssetOperationStarted)]
    assert asked == [
        ("ps2", "update_firmware"),
        ("ps2", "verify_firmware"),
        ("sw1", "update_firmware"),
        ("sw1", "reset_bmc"),
        ("sw1", "verify_firmware"),
    ]
    assert drive.rack.run is None
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "done"


LIES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a shelf says OK with a failed supply": (
        "ps1", {"supplies": (*SUPPLIES[:5], ("psu5", "critical"))}, "power_shelves_seen", "ps1: psu5 critical",
    ),
    "a supply says nothing": ("ps1", {"supplies": (*SUPPLIES[:5], ("psu5", ""))}, "power_shelves_seen", "says nothing"),
    "a shelf lists no supplies": ("ps1", {"supplies": ()}, "power_shelves_seen", "lists no supplies"),
    "another shelf answers": ("ps1", {"serial": "SH-9"}, "power_shelves_seen", "shows serial SH-9"),
    "a shelf never answers": ("ps1", {"why": "no answer"}, "power_shelves_seen", "could not be read: no answer"),
    "a coolant unit is ill": ("cdu1", {"health": "warning"}, "coolant_units_seen", "says warning of its health"),
    "a leak": ("cdu1", {"leaks": (("floor", "warning"), ("manifold", "ok"))}, "leak_detectors", "floor says warning"),
    "a detector is silent": ("cdu1", {"leaks": (("floor", ""), ("manifold", "ok"))}, "leak_detectors", "silent: cdu1"),
    "a detector is gone": ("cdu1", {"leaks": (("floor", "ok"),)}, "leak_detectors", "1 of 2 leak detectors"),
    "a tray is ill": ("sw2", {"health": "critical"}, "switch_trays_seen", "says critical of its health"),
    "a tray shows no serial": ("sw2", {"serial": ""}, "switch_trays_seen", "shows serial none"),
    "a fabric manager is not configured": (
        "sw1", {"control_plane": "unconfigured"}, "fabric_managers", "0 of 1 fabric managers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
def test_a_lie_stops_the_bring_up_at_its_step_until_it_is_put_right_or_a_ticket_names_the_next_command(
    case: str,
) -> None:
    """Mutants: the step behind begins; the wait names no part; the limit ends nothing."""
    name, lie, step, says = LIES[case]
    drive = RackDrive(trays())
    truth = drive.looks[name]
    drive.looks[name] = replace(truth, **lie)
    up(drive)
    assert (drive.at, [says in text for text in drive.waits()].count(True)) == (step, 1)
    drive.looks[name] = replace(drive.looks[name], **{field: getattr(truth, field) for field in lie})
    seen(drive)
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "done"

    never = RackDrive(trays())
    never.looks[name] = replace(truth, **lie)
    up(never)
    for _ in range(16):
        never.wait(minutes=30)
        never.look()
    assert never.rack.ended is not None
    assert (never.rack.ended.result, never.rack.ended.step) == ("failed", step)
    (ticket,) = never.fleet.tickets_about(f"rack:{RACK}")
    assert ticket.kind == RACK_FAILED
    assert says in ticket.fault
    assert "hostler rack bring-up r7 --sku h100" in ticket.action


def test_a_tray_that_reports_success_and_did_not_change_fails_its_step() -> None:
    """The version is the truth. Mutant: an operation's word is the version."""
    drive = RackDrive(trays())
    drive.stuck.add("sw1")
    up(drive)
    assert drive.at == "switch_trays"
    assert drive.waits() == ["sw1 MGX_FW_BMC_0: expected 1.3, found 1.2"]


@pytest.mark.parametrize("answer", ["failed", "refused"])
def test_a_write_that_fails_leaves_a_ticket_about_the_tray_and_the_command_that_goes_on(answer: str) -> None:
    """Mutant: the next tray is written all the same."""
    drive = RackDrive(trays())
    drive.script("update_firmware", "done", answer)
    up(drive)
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "failed"
    (ticket,) = drive.fleet.tickets_about(f"rack:{RACK}")
    assert (ticket.component, ticket.hardware) == ("sw1", "TR-1")
    up(drive)
    assert drive.rack.ended.result == "done"
    assert not drive.fleet.tickets_about(f"rack:{RACK}"), "the next bring-up closes it"


def test_a_write_that_never_answers_is_given_up_and_may_land_late() -> None:
    """Mutants: it is sent again; what may still land is acted upon."""
    drive = RackDrive(trays())
    drive.stuck.add("ps2")
    drive.script("update_firmware", "mute")
    up(drive)
    drive.wait(minutes=91)
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "failed"
    assert sum(1 for one in drive.sent if one.how == "perform") == 1
    assert [one.node for one in drive.rack.settling] == ["ps2"]
    drive.begin_run()
    drive.look()
    assert drive.waits() == ["update_firmware of ps2 may still take effect"]
    drive.wait(minutes=11)
    assert not drive.rack.settling


def _crashed_at(commit: int) -> RackDrive:
    drive = RackDrive(trays())
    drive.failing_commit = drive.commits + commit
    for _ in range(4):
        try:
            if RACK not in drive.fleet.racks:
                drive.begin_run()
            drive.look()
            drive.run()
        except LostCommitError:
            drive.failing_commit = 0
            drive.restart(out_happens=commit % 2 == 0)
    drive.failing_commit = 0
    return drive


def test_whoever_takes_over_at_any_moment_goes_on_where_the_journal_ends() -> None:
    """Mutants: an operation under way is sent again by the next; a step that stood is asked for anew."""
    whole = up(RackDrive(trays()))
    steps = [event.step for event in whole.events(e.RackStepDone)]
    for commit in range(1, 28):
        drive = _crashed_at(commit)
        drive.wait(minutes=1)
        seen(drive)
        assert drive.rack.ended is not None, commit
        assert drive.rack.ended.result == "done", (commit, drive.rack.ended)
        assert [event.step for event in drive.events(e.RackStepDone)] == steps, commit
        writes = Counter(
            one.operation.node
            for one in drive.events(e.AssetOperationStarted)
            if one.operation.kind == "update_firmware" and one.operation.attempt == 1
        )
        assert writes == {"ps2": 1, "sw1": 1}, commit
        assert digest(fold(drive.journal)) == digest(drive.fleet), commit


def test_nothing_is_written_while_a_node_behind_it_serves_or_a_hold_or_pause_stands() -> None:
    """Mutants: only the nodes' own holds count; a serving node does not; an empty rack has no guards."""
    drive = RackDrive()
    drive.step()
    drive.ask("hold", f"rack:{RACK}")
    drive.begin_run()
    drive.look()
    assert drive.at == "power_shelf_firmware"
    assert ["holds rack:r7" in text for text in drive.waits()] == [True]
    assert drive.ask("release", next(iter(drive.fleet.holds))).granted
    assert drive.rack.operations
    drive.run()

    place = Position("c1", rack=RACK)
    nodes = (a_node("a", position=place, domains=(f"rack:{RACK}",)), *trays()[1:])
    serving = RackDrive(nodes)
    serving.begin_run()
    serving.look()
    assert "a serves pool train, and depends on ps2" in serving.waits()
    serving.ask("pause", "fleet")
    assert "disruption is paused for fleet" in serving.waits()


def test_a_bring_up_on_a_restored_copy_goes_on_once_a_person_releases_it() -> None:
    """Mutant: whoever starts from a copy of the journal writes the firmware of the original's rack."""
    drive = RackDrive()
    drive.begin_run()
    restore(drive, len(drive.journal))
    seen(drive)
    assert drive.at == "power_shelves_seen"
    assert any("restore" in text for text in drive.waits()), drive.waits()
    assert drive.ask("release-restore", "fleet").granted
    seen(drive)
    assert drive.at != "power_shelves_seen"


def test_a_bring_up_whose_manifest_is_gone_goes_on_once_there_is_one() -> None:
    drive = RackDrive()
    drive.begin_run()
    whole = drive.fleet.configuration
    drive.activate(configuration({}))
    drive.step()
    assert drive.waits() == ["SKU h100 has no rack manifest any more"]
    drive.activate(whole)
    drive.step()
    assert drive.waits() != ["SKU h100 has no rack manifest any more"]


def test_a_bring_up_is_called_off_between_two_acts_and_not_within_one() -> None:
    drive = RackDrive(trays())
    drive.begin_run()
    drive.look()
    assert drive.rack.operations
    reply = drive.ask("rack-call-off", f"rack:{RACK}")
    assert not reply.granted
    assert "update_firmware of ps2 is under way" in reply.text
    drive.looks["sw2"] = replace(drive.looks["sw2"], health="")
    seen(drive)
    assert drive.at == "switch_trays_seen"
    assert drive.ask("rack-call-off", f"rack:{RACK}").granted
    assert drive.rack.run is None


def test_the_compute_trays_are_the_last_step_and_each_wait_names_its_node() -> None:
    drive = up(RackDrive(trays(Phase.debug)))
    assert drive.at == "compute_trays"
    assert drive.waits() == [f"{name} is in debug: an engineer" for name in ("a", "b")]


# the certificate


def certified() -> RackDrive:
    drive = up(RackDrive(trays()))
    reply = drive.ask("rack-certify", f"rack:{RACK}", "tess")
    assert reply.granted, reply.text
    return drive


def test_a_rack_is_certified_as_a_whole_with_its_evidence() -> None:
    """Mutants: the digest leaves out who signed; a rack whose bring-up goes on is certified."""
    drive = certified()
    paper = drive.rack.certificate
    assert paper is not None
    assert (paper.person, paper.bundle, paper.holds) == ("tess", "nvl72-1.3", True)
    assert {one.name: one.serial for one in paper.evidence} == {
        **{name: look.serial for name, look in LOOKS.items()},
        "a": "S-a",
        "b": "S-b",
    }
    assert paper.digest == digest_of(paper)
    assert digest_of(replace(paper, person="eve")) != paper.digest
    begun = RackDrive(trays())
    begun.begin_run()
    assert "brought up still" in begun.ask("rack-certify", f"rack:{RACK}", "tess").text


def test_a_rack_that_does_not_stand_is_not_certified() -> None:
    drive = RackDrive(trays())
    drive.look()
    reply = drive.ask("rack-certify", f"rack:{RACK}", "tess")
    assert "ps2 PMC: expected 2.1, found 2.0" in reply.text


VOIDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a tray was swapped": ("sw2", {"serial": "TR-9"}, "sw2 was swapped: it shows serial TR-9, TR-2 was certified"),
    "a shelf was swapped": ("ps1", {"serial": "SH-9"}, "ps1 was swapped"),
    "a tray's firmware drifted": (
        "sw1", {"firmware": (("MGX_FW_BMC_0", "1.1"),)}, "sw1 MGX_FW_BMC_0 runs 1.1, 1.3 was certified",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VOIDS)
def test_a_certificate_is_void_once_the_rack_is_another(case: str) -> None:
    """Mutants: only the registered serial counts; a look that failed voids it."""
    name, changed, why = VOIDS[case]
    drive = certified()
    drive.looks["sw1"] = replace(drive.looks["sw1"], why="no answer")
    drive.look()
    assert drive.rack.certificate is not None
    assert drive.rack.certificate.holds, "who does not answer has not changed"
    drive.looks["sw1"] = replace(drive.looks["sw1"], why="")
    drive.looks[name] = replace(drive.looks[name], **changed)
    drive.look()
    assert drive.rack.certificate is not None
    assert why in drive.rack.certificate.void_why
    assert len(drive.events(e.RackCertificateVoided)) == 1


def test_a_swap_is_taken_over_by_its_new_serial_and_the_rack_certified_anew() -> None:
    drive = certified()
    drive.looks["sw2"] = replace(drive.looks["sw2"], serial="TR-9")
    drive.look()
    assert "shows serial TR-9, registered is TR-2" in drive.ask("rack-certify", f"rack:{RACK}", "tess").text
    assert drive.ask("rebind-asset", "sw2", kind="serial", value="TR-9").granted
    assert drive.ask("rack-certify", f"rack:{RACK}", "tess").granted
    paper = drive.rack.certificate
    assert paper is not None
    assert paper.holds
