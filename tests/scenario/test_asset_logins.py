"""BMCs of racks' assets get passwords of their own: at first contact, by age, after a swap, one act at a time."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import Replied, Tick
from hostler.core.planning.asset_logins import renewal
from hostler.core.policy.asset_login_cases import CASE
from hostler.core.state import events as e
from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import CERTIFY, ShownCertificate
from hostler.core.state.bmc_login import RENEW, BmcLogin
from hostler.core.state.cases import Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Wait
from hostler.core.state.model import Facts, Operation, Outcome
from hostler.core.state.operations import RenewBmcLogin
from hostler.core.state.racks import AssetLook
from tests.kit import NOW, digest, fold
from tests.scenario.test_rack_recipe import LOOKS, RACK, RackDrive, trays

DAY = timedelta(days=1)
PIN = "ab" * 32
REFUSED = AssetLook(NOW, why="refused the password that is kept", login_refused=True)


def every_90_days(policy: dict[str, Any]) -> None:
    policy["bmc_credentials"] = {"renew_every_s": 90 * 86_400.0}


def both(policy: dict[str, Any]) -> None:
    every_90_days(policy)
    policy["bmc_certificates"] = {"renew_every_s": 180 * 86_400.0}


def a_rack(*, every: bool = True) -> RackDrive:
    return RackDrive(policy=every_90_days if every else None)


def begun(drive: RackDrive) -> list[tuple[str, str]]:
    return [(one.operation.node, one.operation.kind) for one in drive.events(e.AssetOperationStarted)]


def whys(drive: RackDrive) -> list[str]:
    return [event.why for event in drive.events(e.AssetLoginDue)]


def answered(drive: RackDrive, result: str = "done", detail: str = "as told", **facts: Any) -> Operation:
    """The driver's answer about the renewal that is under way."""
    drive.pending.clear()
    (operation,) = drive.rack.operations
    assert operation.kind == RENEW
    told: Facts = {"username": "root", "pending": False, "tried": 0, "tries": 2, **facts}
    drive.step(Replied(Outcome(operation.id, operation.node, result, detail, told, attempt=operation.attempt)))
    return operation


def proved(drive: RackDrive, asset: str = "sw1") -> None:
    drive.look(asset)
    answered(drive)


def login_of(drive: RackDrive, asset: str = "sw1") -> BmcLogin:
    login = drive.fleet.assets[asset].bmc_login
    assert login is not None
    return login


def cases(drive: RackDrive) -> list[Ticket]:
    return [ticket for ticket in drive.fleet.tickets.values() if ticket.kind == CASE]


@pytest.mark.parametrize("asset", ["sw1", "ps1", "cdu1"])
def test_the_factory_login_goes_at_first_contact_and_the_next_by_age(asset: str) -> None:
    """A BMC whose password nobody has yet cannot be read: that look begins it.

    Mutants: it waits for a look that reads; it is renewed with every look; age is nobody's matter.
    """
    drive = a_rack()
    drive.looks[asset] = AssetLook(NOW, why="secret file:bmc: no such secret")
    drive.look(asset)
    assert (begun(drive), whys(drive)) == ([(asset, RENEW)], ["first contact"])
    answered(drive)
    drive.looks[asset] = LOOKS[asset]
    assert (login_of(drive, asset).renewed_at, login_of(drive, asset).asked_at) == (drive.now, None)
    drive.wait(days=89)
    drive.look(asset)
    assert len(begun(drive)) == 1
    drive.wait(days=2)
    drive.look(asset)
    assert whys(drive)[1:] == ["the password is older than 90 d"]
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_a_board_that_refuses_what_is_kept_and_one_that_was_recorded_anew_are_renewed() -> None:
    """Mutants: a swapped board keeps its factory login; a new serial number renews nothing."""
    drive = a_rack()
    proved(drive)
    drive.looks["sw1"] = REFUSED
    drive.look("sw1")
    assert "its board may be another" in whys(drive)[-1]
    answered(drive, "refused", "binding mismatch: sw1 is bound to serial 'TR-1', but it shows 'TR-9'")
    drive.wait(days=9)
    drive.look("sw1")
    assert len(begun(drive)) == 2, "what was refused waits for a person"
    assert drive.ask("rebind-asset", "sw1", kind="serial", value="TR-9").granted
    drive.look("sw1")
    assert (len(begun(drive)), "recorded anew" in whys(drive)[-1]) == (2, True), "the look is not new yet"
    drive.wait(minutes=31)
    drive.look("sw1")
    assert len(begun(drive)) == 3
    answered(drive)
    assert login_of(drive).renewed_at == drive.now


def test_without_a_policy_a_person_alone_has_it_renewed_and_says_that_tries_count_anew() -> None:
    """Mutants: an upgrade begins to change passwords; `--anew` is forgotten on the way."""
    drive = a_rack(every=False)
    drive.look("sw1")
    assert begun(drive) == []
    reply = drive.ask("renew-asset-login", "sw1", "ann", anew="true")
    assert "it begins (hostler bmc credentials status)" in reply.text
    operation = answered(drive)
    assert operation.act == RenewBmcLogin(anew=True)
    (due,) = drive.events(e.AssetLoginDue)
    assert (due.by, due.anew) == ("ann", True)
    assert not login_of(drive).anew
    assert "no BMC's address" in _bare(drive)


def _bare(drive: RackDrive) -> str:
    assert drive.ask("register-assets", "fleet", assets='[{"id": "pdu1", "kind": "pdu", "rack": "r7"}]').granted
    return drive.ask("renew-asset-login", "pdu1").text


def test_a_hold_and_what_is_under_way_keep_it_waiting_and_the_wait_names_its_blocker() -> None:
    """Mutants: a password changes under a hold; a person asks twice and two are under way."""
    drive = a_rack()
    assert drive.ask("hold", f"rack:{RACK}").granted
    drive.look("sw1")
    assert begun(drive) == []
    answer = renewal(DecisionContext(drive.fleet, drive.controller.live, drive.now), drive.fleet.assets["sw1"])
    assert isinstance(answer, Wait)
    assert "ann holds rack:r7" in answer.blockers[0].text
    assert "ann holds rack:r7" in drive.ask("renew-asset-login", "sw1", "bob").text
    assert drive.ask("release", next(iter(drive.fleet.holds))).granted
    drive.wait(minutes=31)
    drive.look("sw1")
    assert begun(drive) == [("sw1", RENEW)]
    drive.pending.clear()
    drive.wait(minutes=1)
    assert "is being renewed" in drive.ask("renew-asset-login", "sw1").text


def test_one_act_at_a_time_on_a_bmc_and_the_first_renewal_records_its_certificate() -> None:
    """Mutants: password and certificate are renewed in one batch, and the second record hides the first; the
    certificate that the proof was made by is not recorded; a certificate is issued while the password changes.
    """
    drive = RackDrive(policy=both)
    drive.looks["sw1"] = replace(LOOKS["sw1"], certificate=ShownCertificate(PIN, NOW + 300 * DAY, "CN=self"))
    drive.look("sw1")
    assert begun(drive) == [("sw1", RENEW)]
    answered(drive, certificate=PIN)
    assert drive.fleet.assets["sw1"].binding(BMC_CERTIFICATE) == PIN
    drive.wait(minutes=31)
    drive.look("sw1")
    assert begun(drive) == [("sw1", RENEW), ("sw1", CERTIFY)]
    drive.pending.clear()
    drive.wait(minutes=1)
    drive.pending.clear()
    assert "renew_bmc_certificate of sw1 is under way" in drive.ask("renew-asset-login", "sw1").text
    assert [one.kind for one in drive.rack.operations] == [CERTIFY]
    drive.run()
    drive.wait(days=200)
    drive.look("sw1")
    assert [one.kind for one in drive.rack.operations] == [RENEW], "both are due, and the password comes first"


def test_a_tray_that_leaks_is_switched_off_and_no_renewal_takes_the_place_of_that() -> None:
    """Mutant: the renewal of the same look overwrites the record of the protective power-off."""
    drive = RackDrive(trays(), policy=every_90_days)
    drive.looks["sw1"] = replace(LOOKS["sw1"], leaks=(("tray", "critical"),))
    drive.look("sw1")
    assert begun(drive) == [("sw1", "power_off")]
    assert [one.kind for one in drive.rack.operations] == ["power_off"]


def test_a_tray_that_leaks_while_its_password_is_renewed_is_switched_off_and_both_end() -> None:
    """Mutants: protection waits a quarter of an hour for a password; the record of the power-off hides the renewal."""
    drive = RackDrive(trays(), policy=every_90_days)
    drive.look("sw1")
    drive.looks["sw1"] = replace(LOOKS["sw1"], leaks=(("tray", "critical"),))
    drive.look("sw1")
    assert [one.kind for one in drive.rack.operations] == [RENEW, "power_off"]
    drive.run()
    assert not drive.rack.operations
    assert sorted((one.kind, one.result) for one in drive.events(e.AssetOperationFinished)) == [
        ("power_off", "done"), (RENEW, "done"),
    ]  # fmt: skip
    assert login_of(drive).renewed_at is not None


def test_a_look_that_meets_the_renewal_is_no_fault() -> None:
    """Mutant: the look that the renewal itself keeps from succeeding is recorded, and opens a ticket."""
    drive = a_rack()
    proved(drive)
    before = drive.fleet.assets["sw1"].look
    assert drive.ask("renew-asset-login", "sw1").granted
    truth, drive.looks["sw1"] = drive.looks["sw1"], REFUSED
    drive.look("sw1")
    assert drive.fleet.assets["sw1"].look == before
    answered(drive)
    drive.looks["sw1"] = truth


def test_an_answer_that_never_comes_or_comes_late_is_looked_for_and_no_second_one_is_begun() -> None:
    """Mutants: unknown is repeated blindly; one that was given up and answers late is told as nothing."""
    drive = a_rack()
    drive.look("sw1")
    drive.pending.clear()
    (operation,) = drive.rack.operations
    drive.step(Replied(Outcome(operation.id, "sw1", "unknown", "no answer", attempt=1)))
    drive.look("sw1")
    assert len(begun(drive)) == 1
    for _ in range(40):  # nothing that is asked is answered
        drive.pending.clear()
        drive.now += timedelta(minutes=1)
        drive.step(Tick())
    finished = drive.events(e.AssetOperationFinished)
    assert [one.result for one in finished] == ["timed_out"]
    assert login_of(drive).failures == 1
    drive.step(Replied(Outcome(operation.id, "sw1", "done", "late", attempt=1)))
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_three_that_came_to_nothing_and_one_that_was_refused_are_a_ticket_until_a_person_asks() -> None:
    """Mutants: it is tried for ever, and locks the account; the ticket stays when it has been put right."""
    drive = a_rack()
    for failed in range(1, 4):
        drive.look("sw1")
        assert len(begun(drive)) == failed
        answered(drive, "failed", "the BMC took the new password and refuses it", tried=1, pending=True)
        assert (login_of(drive).tried, login_of(drive).tries, login_of(drive).pending) == (1, 2, True)
        drive.wait(minutes=91)
    drive.look("sw1")
    drive.wait(days=99)
    drive.look("sw1")
    assert len(begun(drive)) == 3
    (ticket,) = cases(drive)
    assert "could not be renewed (failed): the BMC took the new password" in ticket.fault
    assert "hostler asset renew-login sw1" in ticket.action
    assert not drive.fleet.holds
    assert drive.ask("renew-asset-login", "sw1").granted
    answered(drive)
    drive.wait(minutes=31)
    drive.look("sw1")
    assert not cases(drive)
    assert login_of(drive).failures == 0
