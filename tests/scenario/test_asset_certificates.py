"""BMCs of racks' assets get certificates of the site's authority; what nobody renews is told before it expires."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import Replied
from hostler.core.planning.asset_certificates import renewal
from hostler.core.policy.asset_certificate_cases import CASE
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY, SITES_OWN, ShownCertificate
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Wait
from hostler.core.state.model import Outcome
from hostler.core.state.racks import AssetLook
from tests.kit import NOW, digest, fold
from tests.scenario.test_rack_recipe import LOOKS, RACK, RackDrive

DAY = timedelta(days=1)
OLD, NEW = "ab" * 32, "cd" * 32


def renewed(policy: dict[str, Any]) -> None:
    policy["bmc_certificates"] = {"renew_every_s": 180 * 86_400.0}


def a_rack(*, every: bool = True, ends: timedelta = 300 * DAY, recorded: bool = True) -> RackDrive:
    """A rack of which sw1's BMC shows a certificate that expires so much later."""
    drive = RackDrive(policy=renewed if every else None)
    drive.looks["sw1"] = replace(LOOKS["sw1"], certificate=ShownCertificate(OLD, NOW + ends, "CN=self"))
    if recorded:
        assert drive.ask("rebind-asset", "sw1", kind=BMC_CERTIFICATE, value=OLD).granted
    return drive


def certified(drive: RackDrive, result: str = "done", detail: str = "as told") -> None:
    """The driver's answer about the renewal that is under way."""
    (operation,) = drive.rack.operations
    assert operation.kind == CERTIFY
    proved = {"certificate": NEW, "expires_at": (drive.now + 365 * DAY).isoformat(), "issuer": "CN=site"}
    facts: dict[str, Any] = proved if result == "done" else {}
    drive.step(Replied(Outcome(operation.id, "sw1", result, detail, facts, attempt=operation.attempt)))


def shows_new(drive: RackDrive) -> None:
    fresh = ShownCertificate(NEW, drive.now + 365 * DAY, "CN=site")
    drive.looks["sw1"] = replace(drive.looks["sw1"], certificate=fresh)


def begun(drive: RackDrive) -> list[tuple[str, str]]:
    return [(one.operation.node, one.operation.kind) for one in drive.events(e.AssetOperationStarted)]


def cases(drive: RackDrive) -> list[Ticket]:
    return [ticket for ticket in drive.fleet.tickets.values() if ticket.kind == CASE]


def test_an_asset_s_bmc_is_given_a_certificate_which_is_recorded_once_it_is_proved_and_renewed_by_age() -> None:
    """Mutants: the recorded one moves before the outcome; it is renewed with every look; age is nobody's matter."""
    drive = a_rack()
    drive.pending.clear()
    drive.look("sw1")
    assert begun(drive) == [("sw1", CERTIFY)]
    assert drive.fleet.assets["sw1"].binding(BMC_CERTIFICATE) == OLD
    drive.pending.clear()
    certified(drive)
    asset = drive.fleet.assets["sw1"]
    assert asset.binding(BMC_CERTIFICATE) == NEW
    assert asset.bmc_certificate is not None
    assert (asset.bmc_certificate.issued, asset.bmc_certificate.renewed_at) == (NEW, drive.now)
    drive.looks["sw1"] = replace(
        drive.looks["sw1"], certificate=ShownCertificate(NEW, drive.now + 365 * DAY, "CN=site")
    )
    drive.look("sw1")
    assert len(begun(drive)) == 1
    drive.wait(days=181)
    drive.look("sw1")
    assert len(begun(drive)) == 2
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_an_asset_whose_certificate_nobody_recorded_is_left_and_without_a_policy_a_person_asks() -> None:
    """Mutants: whoever answers first is trusted; an upgrade begins to change certificates."""
    stranger = a_rack(recorded=False)
    stranger.look("sw1")
    assert begun(stranger) == []
    assert SITES_OWN in stranger.ask("renew-asset-certificate", "sw1").text
    idle = a_rack(every=False)
    idle.look("sw1")
    assert begun(idle) == []
    reply = idle.ask("renew-asset-certificate", "sw1", "ann")
    assert "it begins" in reply.text
    assert begun(idle) == [("sw1", CERTIFY)]
    (due,) = idle.events(e.AssetCertificateDue)
    assert (due.by, due.why) == ("ann", "because")


def test_holds_and_what_is_under_way_there_keep_it_waiting_and_the_wait_names_its_blocker() -> None:
    """Mutants: a certificate changes under a hold; two acts are under way on one asset."""
    drive = a_rack()
    assert drive.ask("hold", f"rack:{RACK}").granted
    drive.look("sw1")
    assert begun(drive) == []
    answer = renewal(DecisionContext(drive.fleet, drive.controller.live, drive.now), drive.fleet.assets["sw1"])
    assert isinstance(answer, Wait)
    assert "ann holds rack:r7" in answer.blockers[0].text
    assert "ann holds rack:r7" in drive.ask("renew-asset-certificate", "sw1", "bob").text
    assert drive.ask("release", next(iter(drive.fleet.holds))).granted
    drive.wait(minutes=31)
    drive.look("sw1")
    assert begun(drive) == [("sw1", CERTIFY)]
    drive.pending.clear()
    drive.wait(minutes=1)
    assert "is being renewed" in drive.ask("renew-asset-certificate", "sw1").text


def test_a_bmc_that_restarts_with_its_new_certificate_is_no_fault_meanwhile() -> None:
    """Mutant: the look that the renewal itself keeps from succeeding opens a ticket."""
    drive = a_rack()
    drive.look("sw1")
    truth = drive.looks["sw1"]
    drive.looks["sw1"] = AssetLook(NOW, why="it shows another certificate than is recorded")
    before = drive.fleet.assets["sw1"].look
    drive.look("sw1")
    assert drive.fleet.assets["sw1"].look == before
    drive.looks["sw1"] = truth


def test_three_renewals_that_came_to_nothing_are_a_ticket_and_a_person_begins_anew() -> None:
    """Mutants: it is tried for ever; the ticket stays when it has been put right."""
    drive = a_rack()
    for failed in range(1, 4):
        drive.look("sw1")
        assert len(begun(drive)) == failed
        drive.pending.clear()
        certified(drive, "failed", "the BMC goes on showing the old one")
        drive.wait(minutes=91)
    drive.look("sw1")
    assert len(begun(drive)) == 3
    (ticket,) = cases(drive)
    assert "could not be given a certificate (failed): the BMC goes on showing the old one" in ticket.fault
    assert "hostler asset renew-certificate sw1" in ticket.action
    assert not drive.fleet.holds
    assert drive.ask("renew-asset-certificate", "sw1").granted
    drive.pending.clear()
    certified(drive)
    drive.looks["sw1"] = replace(
        drive.looks["sw1"], certificate=ShownCertificate(NEW, drive.now + 365 * DAY, "CN=site")
    )
    drive.wait(minutes=31)
    drive.look("sw1")
    assert not cases(drive)


@pytest.mark.parametrize(("recorded", "every", "says"), [
    (False, True, SITES_OWN), (False, False, SITES_OWN), (True, False, "nothing renews it by itself"),
])  # fmt: skip
def test_a_certificate_that_nobody_renews_is_told_before_it_expires(recorded: bool, every: bool, says: str) -> None:
    """Mutants: a site's own certificate expires unseen; it is promised a renewal that never comes."""
    drive = a_rack(every=every, recorded=recorded, ends=20 * DAY)
    drive.look("sw1")
    assert not cases(drive)
    drive.wait(days=7)
    drive.look("sw1")
    (ticket,) = cases(drive)
    assert says in ticket.fault
    assert f"expires on {NOW + 20 * DAY:%Y-%m-%d}" in ticket.fault
    drive.look("sw1")
    assert len(drive.events(e.TicketOpened)) == 1
    drive.wait(days=14)
    drive.look("sw1")
    (ticket,) = cases(drive)
    assert "has expired on" in ticket.fault
    shows_new(drive)
    drive.look("sw1")
    assert not cases(drive)
