"""A BMC is given a certificate of the site's authority, whatever the BMC says and wherever the renewal is cut off."""

import contextlib
import traceback
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.planning.rack_bring_up import seat_of
from hostler.core.state.assets import Asset, AssetKind, Position
from hostler.core.state.model import Operation, Outcome
from hostler.drivers.redfish import certificate_driver, certificate_shapes
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.rack_reader import RackReader
from hostler.ports import CertificateChangedError, PortError, RefusedError, UnreachableError
from hostler.sim.bmc.request_faults import RequestFaultRule
from hostler.sim.bmc.vendors import VENDORS
from tests.contract import credential_world as credentials
from tests.contract.certificate_world import AUTHORITY, CertificateWorld, an_authority, certificate_world, swap_board
from tests.contract.credential_world import CERTIFICATES, START, Cut, credential_world
from tests.drawing import first_in_gate


class DeadError(Exception):
    """The process ended here: no driver's handling of errors sees that."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of minutes are waits of moments; an emulated BMC that restarts is away for some handshakes."""
    monkeypatch.setattr(certificate_driver, "POLL_S", 0.005)
    monkeypatch.setattr(certificate_driver, "SERVED_WITHIN_S", 0.2)
    monkeypatch.setattr(certificate_driver, "BACK_WITHIN_S", 5.0)
    monkeypatch.setattr(certificate_shapes, "POLL_S", 0.005)


@pytest.mark.parametrize("way", ["service", "ilo", "upload"])
@pytest.mark.parametrize("applies", ["at once", "restart"])
async def test_a_certificate_is_issued_installed_seen_and_proved(tmp_path: Path, way: str, applies: str) -> None:
    """A BMC that shows it only after a restart is restarted.

    Mutants: what the BMC accepted is proved; the pin moves before the BMC shows it; no restart is asked for.
    """
    async with certificate_world(tmp_path) as world:
        world.bmc.way, world.bmc.applies, world.bmc.slow = way, applies, 3  # type: ignore[assignment]
        old = world.recorded
        outcome = await world.renew()
        assert outcome.result == "done", outcome
        assert world.recorded != old
        ends = datetime.fromisoformat(str(outcome.facts["expires_at"]))
        assert ends == START + timedelta(days=365)
        assert outcome.facts["issuer"] == "CN=site authority"
        await world.proved()
        again = await world.renew()
        assert again.result == "done"
        assert again.facts["certificate"] != outcome.facts["certificate"]
        await world.proved()


@pytest.mark.parametrize("vendor", VENDORS)
async def test_each_vendor_s_bmc_gets_one_in_its_vendor_s_way(tmp_path: Path, vendor: str) -> None:
    """Mutants: the manager that is listed last is the BMC; a URI that is a bare string is not read; an iLO's request
    is looked for once."""
    async with certificate_world(tmp_path, vendor) as world:
        outcome = await world.renew()
        assert outcome.result == "done", outcome
        assert world.bmc.installed == 1
        await world.proved()


@pytest.mark.parametrize(
    ("keys", "takes", "form"),
    [
        (("TPM_ALG_RSA", "TPM_ALG_ECDSA"), ("TPM_ALG_RSA",), "link"),
        (("TPM_ALG_ECDSA",), ("",), "string"),
        ((), ("",), "string"),
        (("EC", "RSA"), ("EC",), "link"),
    ],
)
async def test_a_key_or_a_form_that_is_refused_is_asked_for_otherwise(
    tmp_path: Path, keys: tuple[str, ...], takes: tuple[str, ...], form: str
) -> None:
    """An iDRAC of old takes CertificateUri as a string. Mutants: the first refusal is the last; EC is not preferred."""
    async with certificate_world(tmp_path) as world:
        world.bmc.keys, world.bmc.takes, world.bmc.uri_form = keys, takes, form  # type: ignore[assignment]
        assert (await world.renew()).result == "done"
        await world.proved()
        named = [str(body["KeyPairAlgorithm"]) for body in world.bmc.asked if "KeyPairAlgorithm" in body]
        assert named == sorted(named, key=["TPM_ALG_ECDSA", "EC", "TPM_ALG_RSA", "RSA"].index)


# what it says, and what is so


@pytest.mark.parametrize("lie", ["restarts", "drops"])
async def test_a_web_server_that_restarts_or_loses_its_answer_is_waited_for(tmp_path: Path, lie: str) -> None:
    """Mutant: no answer to the installation is a failure."""
    async with certificate_world(tmp_path) as world:
        world.bmc.lie = lie  # type: ignore[assignment]
        assert (await world.renew()).result == "done"
        await world.proved()


async def test_one_that_is_accepted_and_never_shown_moves_no_pin(tmp_path: Path) -> None:
    """Mutants: the BMC's yes is proof; a later renewal does not begin from the old one."""
    async with certificate_world(tmp_path) as world:
        world.bmc.lie = "never"
        old = world.recorded
        outcome = await world.renew()
        assert (outcome.result, world.bmc.installed) == ("failed", 1)
        assert "shows the old one, after its restart too" in outcome.detail
        assert world.recorded == old == world.bmc.shown.fingerprint
        assert (await RedfishReader(world.inner.clients).look(world.inner.node)).power == "off"
        world.bmc.lie = ""
        assert (await world.renew()).result == "done"
        await world.proved()


async def test_the_old_one_that_comes_back_is_told_and_not_taken(tmp_path: Path) -> None:
    """Mutant: a certificate that was once recorded is trusted for ever."""
    async with certificate_world(tmp_path) as world:
        world.bmc.lie = "reverts"
        assert (await world.renew()).result == "done"
        world.bmc.restarted()
        assert world.bmc.shown is CERTIFICATES[0]
        with pytest.raises(CertificateChangedError):
            await RedfishReader(world.inner.clients).look(world.inner.node)
        with pytest.raises(CertificateChangedError, match="nothing was sent"):
            await world.renew()
        assert world.bmc.installed == 1


@pytest.mark.parametrize(
    ("lie", "says"),
    [("other_name", "asks for a certificate of 'another.example.org'"), ("weak", "weak key"), ("refuses", "installed")],
)
async def test_what_cannot_be_is_refused_with_its_reason(tmp_path: Path, lie: str, says: str) -> None:
    """Mutants: whatever a BMC asks for is signed; a weak key is."""
    async with certificate_world(tmp_path) as world:
        world.bmc.lie = lie  # type: ignore[assignment]
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert says in outcome.detail
        assert world.recorded == CERTIFICATES[0].fingerprint
        world.bmc.lie = ""
        assert (await world.renew()).result == "done"
        await world.proved()


async def test_a_swapped_board_is_not_trusted_until_somebody_records_it(tmp_path: Path) -> None:
    """Mutants: a self-signed certificate is taken in the place of a lost one; a login is shown to it."""
    async with certificate_world(tmp_path) as world:
        await world.renew()
        swap_board(world.bmc, CERTIFICATES[1])
        asked = len(world.bmc.asked)
        with pytest.raises(CertificateChangedError, match=r"is recorded; nothing was sent; find out who answers"):
            await world.renew()
        assert len(world.bmc.asked) == asked
        assert world.inner.accounts.wrong == 0
        world.pin(CERTIFICATES[1].fingerprint)
        assert (await world.renew()).result == "done"
        await world.proved()


async def test_a_bmc_that_offers_no_way_and_one_without_authority_are_refused(tmp_path: Path) -> None:
    async with certificate_world(tmp_path) as world:
        world.inner.faults.add(RequestFaultRule(path="/redfish/v1/CertificateService*", status=404, times=0))
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert world.recorded == CERTIFICATES[0].fingerprint


# the authority


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"certificate": "x", "key": "y"}, "cannot be read"),
        ({"note": "nothing"}, "no fields certificate and key"),
        (an_authority() | {"key": an_authority()["key"]}, "is not its certificate's"),
        (an_authority(ca=False), "may sign no others"),
        (an_authority(timedelta(days=-1)), "has expired"),
    ],
)
async def test_an_authority_that_cannot_sign_is_told_and_nothing_is_installed(
    tmp_path: Path, fields: dict[str, str], says: str
) -> None:
    """Mutants: a certificate is made by a key that is not the authority's; a leaf signs leaves."""
    async with certificate_world(tmp_path, **fields) as world:
        outcome = await world.renew()
        assert outcome.result == "refused"
        assert says in outcome.detail
        assert "PRIVATE" not in outcome.detail
        assert world.bmc.installed == 0


async def test_no_certificate_outlives_its_authoritys(tmp_path: Path) -> None:
    async with certificate_world(tmp_path, **an_authority(timedelta(days=20))) as world:
        outcome = await world.renew()
        assert datetime.fromisoformat(str(outcome.facts["expires_at"])) == START + timedelta(days=20)


# cut off anywhere


@pytest.mark.parametrize("after", first_in_gate([True, False]), ids=["after", "before"])
@pytest.mark.parametrize("way", first_in_gate(["service", "ilo", "upload"]))
async def test_each_cut_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, way: str) -> None:
    """Cuts before and after every step, of the store and of the BMC; a look never meets who is not known.

    Mutants: what was issued is noted after it was installed; what is shown and noted is begun anew.
    """
    monkeypatch.setattr(credentials, "CutError", DeadError)
    at, cuts = 0, 0
    while True:
        at += 1
        async with certificate_world(tmp_path / f"{at}") as world:
            world.bmc.way = way  # type: ignore[assignment]
            world.cut = Cut(at, after)
            operation = world.operation()
            try:
                world.record(await world.driver.perform(operation, world.inner.node))
            except DeadError:
                cuts += 1
            else:
                if world.cut.steps < at:
                    break
            world.cut = world.inner.clients.cut = Cut()
            kept = await world.inner.kept()
            assert world.bmc.shown.fingerprint in (world.recorded, *kept.get("issued", "").split())
            seen = await _looked(world, operation)
            assert seen.result in ("done", "not_done", "unknown"), seen
            world.record(seen)
            if seen.result != "done":
                assert (await world.renew()).result == "done"
            await world.proved()
    assert cuts >= 10


async def _looked(world: CertificateWorld, operation: Operation) -> Outcome:
    """Look at it once a BMC that restarts by itself is back."""
    while True:
        with contextlib.suppress(UnreachableError):
            return await world.driver.observe(operation, world.inner.node)


async def test_an_answer_that_was_lost_is_found_in_what_is_kept(tmp_path: Path) -> None:
    async with certificate_world(tmp_path) as world:
        operation = world.operation()
        assert (await world.driver.observe(operation, world.inner.node)).result == "not_done"
        done = await world.driver.perform(operation, world.inner.node)
        seen = await world.driver.observe(operation, world.inner.node)
        assert (seen.result, seen.facts) == ("done", done.facts)


async def test_a_bmc_that_is_gone_afterwards_is_observed_and_proved_when_it_comes_back(tmp_path: Path) -> None:
    """Mutant: a renewal that nobody saw the end of is lost."""
    async with certificate_world(tmp_path) as world:
        world.bmc.lie, operation = "restarts", world.operation()

        def gone() -> bool:
            return world.bmc.installed == 0

        world.bmc.knocked, knocked = gone, world.bmc.knocked
        with pytest.raises(UnreachableError, match="has shown none since"):
            await world.driver.perform(operation, world.inner.node)
        with pytest.raises(UnreachableError):
            await world.driver.observe(operation, world.inner.node)
        world.bmc.knocked = knocked
        assert "not proved yet" in (await world.driver.observe(operation, world.inner.node)).detail
        world.record(await world.driver.perform(operation, world.inner.node))
        await world.proved()


# secrets stay secret


@pytest.mark.parametrize("way", ["service", "ilo", "upload"])
async def test_no_outcome_and_no_error_tells_a_key_or_a_password(tmp_path: Path, way: str) -> None:
    """The BMC quotes what it refuses, and each request is refused in turn."""
    for skip in range(14):
        async with certificate_world(tmp_path / str(skip)) as world:
            world.bmc.way = way  # type: ignore[assignment]
            world.bmc.lie = "refuses" if skip == 13 else ""
            if skip < 13:
                world.inner.faults.add(
                    RequestFaultRule(path="/redfish/v1/*", status=400 + skip * 9, skip=skip, times=0)
                )
            text = await _told(world)
            fields = (await world.inner.secrets.fetch(AUTHORITY)).fields
            secrets = [*fields["key"].splitlines()[1:-1], world.inner.password, "PRIVATE KEY"]
            assert not [secret for secret in secrets if secret in text], text
            if skip == 13:
                assert ("cannot be installed" in text) is (way != "upload"), text
                assert "with 400" in text


async def _told(world: CertificateWorld) -> str:
    try:
        outcome: Outcome = await world.renew()
    except PortError as error:
        return "".join(traceback.format_exception(error))
    return repr(outcome)


async def test_without_an_authority_in_bmc_json_nothing_is_asked(tmp_path: Path) -> None:
    """Mutant: a BMC that the site gave no authority is given certificates."""
    async with credential_world(tmp_path, pin="first_contact") as inner:
        world = CertificateWorld(inner)
        with pytest.raises(RefusedError, match="no authority: name the secret"):
            await world.renew()
        assert not world.bmc.asked


async def test_the_bmc_of_a_rack_s_asset_is_certified_as_a_node_s_is_and_read_by_its_new_certificate(
    tmp_path: Path,
) -> None:
    """Mutants: the reader does not tell what is shown; the one recorded before still lets its login out."""
    async with certificate_world(tmp_path) as world:
        named = world.inner.node.bindings
        tray = Asset("sw1", AssetKind.switch_tray, Position("c1", rack="r7"), named)
        world.inner.node = seat_of(tray, START)
        old = world.recorded
        outcome = await world.renew()
        assert outcome.result == "done", outcome
        assert world.recorded == world.bmc.shown.fingerprint != old
        seen = replace(tray, bindings=world.inner.node.bindings)
        look = await RackReader(world.inner.clients).look(seen, START)
        assert look.why == ""
        assert look.certificate is not None
        assert (look.certificate.fingerprint, look.certificate.issuer) == (world.recorded, "CN=site authority")
        stale = await RackReader(world.inner.clients).look(tray, START)
        assert "shows the certificate" in stale.why, "by the old one nothing is sent"
