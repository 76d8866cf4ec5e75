"""The agent of a booted node enrols: with a key of its own, in its boot's window, and with the machine's TPM."""

import base64
import hashlib
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from hostler.agent.enrolment import Enrolment, EnrolmentRefusedError
from hostler.core.policy.documents import parse
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Phase
from hostler.core.state.verbs.nodes import Rebind
from hostler.server.boot.tpm_credential import TpmError, attestation_name
from hostler.server.tokens import Role
from tests.contract.api_world import POLICY
from tests.contract.boot_world import BootWorld, boot_world
from tests.drawing import first_in_gate
from tests.software_tpm import SoftwareTpm, missing_for_tpm

PACKAGE = b"a Debian package"
CA = "-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n"
with_a_tpm = pytest.mark.skipif(bool(missing_for_tpm()), reason=missing_for_tpm() or "it is played")


def agent_section(authorities: str = "") -> str:
    told = {
        "package": "agent.deb",
        "sha256": hashlib.sha256(PACKAGE).hexdigest(),
        "server": "https://10.0.0.1:8443",
        "ca": CA.replace("\\n", "\n"),
        "tpm_authorities": authorities,
    }
    return msgspec.json.encode(told).decode()


@asynccontextmanager
async def enrolling(folder: Path, authorities: str = "", sku: str = "gpus: 2") -> AsyncIterator[tuple[BootWorld, str]]:
    """A cell whose node is booting, and the address of its boot's own requests."""
    async with boot_world(folder, sku=sku, agent=agent_section(authorities)) as world:
        (world.images / "agent.deb").write_bytes(PACKAGE)
        await world.register()
        seed = await world.seed()
        yield world, world.url + seed.removesuffix("/ci/")


def enrolment(folder: Path, own: str, tpm: Path | None = None) -> Enrolment:
    """A node's enrolment, as cloud-init has left it."""
    folder.mkdir(exist_ok=True)
    file = folder / "enrol.json"
    file.write_bytes(msgspec.json.encode({"url": f"{own}/enrol"}))
    file.chmod(0o600)
    return Enrolment(file, folder / "state", tpm or folder / "no-tpm")


class Forging(Enrolment):
    """Claims a TPM, and proves what it likes."""

    def _proved(self, credential: bytes) -> str:
        return credential[:32].hex()


async def seeded(world: BootWorld, own: str) -> str:
    """user-data, as the image fetches them."""
    status, text = await world.get(own.removeprefix(world.url) + "/ci/user-data")
    assert status == 200
    return text


async def test_an_agent_enrols_with_a_key_of_its_own(tmp_path: Path) -> None:
    """Mutants: the token crosses the boot network in the clear; a second key enrols in the same boot; the former token
    of the node stays good; nothing is recorded."""
    async with enrolling(tmp_path) as (world, own):
        user = await seeded(world, own)
        assert "dpkg --install" in user
        assert f"{own}/enrol" in user
        one = enrolment(tmp_path / "node", own)
        assert await one.run()
        token = one.token.read_text()
        who = world.tokens.verify(token)
        assert who is not None
        assert (who.role, who.grant.node) == (Role.agent, "n1")
        assert one.token.stat().st_mode & 0o77 == 0
        (event,) = world.told("agent_enrolled")
        assert (event.node, event.tpm, len(event.key)) == ("n1", "", 64)
        assert world.booted.agent == event.key
        assert not await one.run()  # it has its token
        (tmp_path / "node/state/enrolled-at").unlink()
        assert await one.run()  # the answer was lost: the same key is given another
        assert world.tokens.verify(token) is None
        with pytest.raises(EnrolmentRefusedError, match="another key has enrolled in this boot already"):
            await enrolment(tmp_path / "thief", own).run()
        assert [(r.what, r.node) for r in world.told("boot_refused")] == [("enrol", "n1")]
        assert token.encode() not in repr(list(world.cell.journal.records())).encode()


async def test_a_database_that_does_not_answer_is_asked_again_later(tmp_path: Path) -> None:
    """Mutant: 500, by which cloud-init gives the boot up."""
    async with enrolling(tmp_path) as (world, own):
        await seeded(world, own)
        key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048).public_key()
        shown = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        body = msgspec.json.encode({"key": shown.decode()})
        with sqlite3.connect(tmp_path / "tokens.db") as database:
            (table,) = [n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE name = 'tokens'")]
            database.execute(f"ALTER TABLE {table} RENAME TO away")
        async with world.session.post(f"{own}/enrol", data=body) as answer:
            assert (answer.status, int(answer.headers["Retry-After"])) == (503, 5)
        with sqlite3.connect(tmp_path / "tokens.db") as database:
            database.execute(f"ALTER TABLE away RENAME TO {table}")
        database.close()
        async with world.session.post(f"{own}/enrol", data=body) as answer:
            assert answer.status == 200


async def test_outside_the_window_nobody_enrols(tmp_path: Path) -> None:
    """Mutants: before its data were given; after it phoned home; with a secret of another boot or node."""
    async with enrolling(tmp_path) as (world, own):
        with pytest.raises(EnrolmentRefusedError, match="before its boot was given cloud-init's data"):
            await enrolment(tmp_path / "early", own).run()
        await seeded(world, own)
        wrong = f"{own[:-4]}0000"
        with pytest.raises(EnrolmentRefusedError, match="its agent enrols outside its boot window"):
            await enrolment(tmp_path / "wrong", wrong).run()
        assert await world.post(own.removeprefix(world.url) + "/home") == 200
        await world.until(lambda node: node.phase is Phase.onboard)
        with pytest.raises(EnrolmentRefusedError, match="its agent enrols outside its boot window"):
            await enrolment(tmp_path / "late", own).run()
        assert not world.told("agent_enrolled")
        assert not world.tokens.list()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "the body is no enrolment"),
        (b'{"key": "x"}', "no public key in PEM"),
        (b'{"key": 1}', "the body is no enrolment"),
        (b"\xff" * 200, "the body is no enrolment"),
    ],
)
async def test_what_is_no_enrolment_is_refused_with_the_reason(tmp_path: Path, body: bytes, why: str) -> None:
    async with enrolling(tmp_path) as (world, own):
        await seeded(world, own)
        async with world.session.post(f"{own}/enrol", data=body) as answer:
            assert (answer.status, why in await answer.text()) == (400, True)


@pytest.fixture
def short_key() -> str:
    """The public part of an RSA key of 1,024 bits."""
    words = ("openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024")
    key = subprocess.run(words, check=True, capture_output=True).stdout
    return subprocess.run(("openssl", "pkey", "-pubout"), input=key, check=True, capture_output=True).stdout.decode()


async def test_a_short_key_is_refused(tmp_path: Path, short_key: str) -> None:
    """A key of 1,024 bits can be factored. Mutant: any RSA key will do."""
    async with enrolling(tmp_path) as (world, own):
        await seeded(world, own)
        async with world.session.post(f"{own}/enrol", json={"key": short_key}) as answer:
            assert (answer.status, "no RSA key of 2048 to 4096 bits" in await answer.text()) == (400, True)


async def test_an_agent_s_package_that_changed_boots_nothing(tmp_path: Path) -> None:
    """Mutant: the image boots, and its agent is never heard."""
    async with boot_world(tmp_path, agent=agent_section()) as world:
        (world.images / "agent.deb").write_bytes(b"another")
        await world.register()
        _, script = await world.script()
        assert "agent.deb: is not what its sha256 says" in script
        assert "kernel " not in script


# TPM


@pytest.fixture
async def tpm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SoftwareTpm]:
    one = SoftwareTpm(tmp_path / "tpm")
    await one.start()
    monkeypatch.setenv("TPM2TOOLS_TCTI", one.tcti)
    yield one
    await one.end()


@with_a_tpm
async def test_a_tpm_proves_itself_and_is_expected_from_then_on(tmp_path: Path, tpm: SoftwareTpm) -> None:
    """Mutants: a claimed TPM is believed; its certificate is of anybody; another TPM is taken at the next boot."""
    async with enrolling(tmp_path, tpm.authorities()) as (world, own):
        await seeded(world, own)
        with pytest.raises(EnrolmentRefusedError, match="shows no TPM"):
            await enrolment(tmp_path / "bare", own).run()
        assert await enrolment(tmp_path / "node", own, tpm.folder).run()
        (event,) = world.told("agent_enrolled")
        assert len(event.tpm) == 64
        assert world.cell.view.nodes["n1"].binding("tpm") == event.tpm == world.booted.tpm


@with_a_tpm
async def test_another_tpm_than_the_known_one_is_refused_until_a_person_rebinds_the_node(
    tmp_path: Path, tpm: SoftwareTpm
) -> None:
    """Mutants: a swapped board enrols; nobody can ever let one in; a TPM is that of two nodes."""
    async with enrolling(tmp_path) as (world, own):
        await world.ask(Rebind("tpm", "0" * 64), "n1")
        await seeded(world, own)
        with pytest.raises(EnrolmentRefusedError, match="no TPM, the TPM 0000"):
            await enrolment(tmp_path / "bare", own).run()
        with pytest.raises(
            EnrolmentRefusedError, match=r"its agent proves the TPM [0-9a-f]{64}, the TPM 0{64}"
        ) as said:
            await enrolment(tmp_path / "node", own, tpm.folder).run()
        await world.ask(Rebind("tpm", str(said.value).split("the TPM ")[1][:64]), "n1")
        assert await enrolment(tmp_path / "node", own, tpm.folder).run()


@with_a_tpm
async def test_a_tpm_of_another_maker_is_refused(tmp_path: Path, tpm: SoftwareTpm) -> None:
    """Mutant: any certificate that names the key will do."""
    other = SoftwareTpm(tmp_path / "other")
    await other.start()
    await other.end()
    async with enrolling(tmp_path, other.authorities()) as (world, own):
        await seeded(world, own)
        with pytest.raises(EnrolmentRefusedError, match="of none of the authorities"):
            await enrolment(tmp_path / "node", own, tpm.folder).run()
        assert not world.told("agent_enrolled")


@with_a_tpm
async def test_a_proof_that_the_tpm_did_not_give_is_refused(tmp_path: Path, tpm: SoftwareTpm) -> None:
    """Mutant: the second request is believed whatever it proves."""
    async with enrolling(tmp_path) as (world, own):
        await seeded(world, own)
        enrolment(tmp_path / "node", own)
        with pytest.raises(EnrolmentRefusedError, match="did not open what was sealed to it"):
            await Forging(tmp_path / "node/enrol.json", tmp_path / "node/state", tpm.folder).run()
        assert not world.told("agent_enrolled")


def tool(*words: str, stdin: bytes = b"") -> str:
    """Runs one of tpm2-tools beside the test's TPM."""
    return subprocess.run(words, input=stdin, check=True, capture_output=True).stdout.decode()


def registers(folder: Path) -> tuple[str, ...]:
    """Values of PCRs 0 to 7 as the TPM says without a quote."""
    tool("tpm2_pcrread", "sha256:0,1,2,3,4,5,6,7", "-o", str(folder / "pcrs"))
    read = (folder / "pcrs").read_bytes()
    return tuple(read[n : n + 32].hex() for n in range(0, len(read), 32))


@with_a_tpm
async def test_what_a_machine_booted_is_quoted_recorded_and_held_against_its_sku(
    tmp_path: Path, tpm: SoftwareTpm
) -> None:
    """Mutants: values that nobody signed are recorded; a SKU that names a register is passed by another value of it."""
    tool("tpm2_pcrextend", f"7:sha256={'ab' * 32}")
    found = registers(tmp_path)
    assert found[7] != "00" * 32
    sku = f"gpus: 2, tpm_pcrs: {{'7': [{found[7]}]}}"
    async with enrolling(tmp_path, sku=sku) as (world, own):
        await seeded(world, own)
        tool("tpm2_pcrextend", f"7:sha256={'cd' * 32}")
        with pytest.raises(EnrolmentRefusedError, match=f"quotes PCR 7 as {registers(tmp_path)[7]}, SKU h100 expects"):
            await enrolment(tmp_path / "node", own, tpm.folder).run()
        assert not world.told("agent_enrolled")
        with pytest.raises(EnrolmentRefusedError, match="sends no quote of a TPM, and SKU h100 names tpm_pcrs"):
            await enrolment(tmp_path / "bare", own).run()
    (tmp_path / "second").mkdir()
    sku = f"gpus: 2, tpm_pcrs: {{'7': ['{'00' * 32}', {registers(tmp_path)[7]}]}}"
    async with enrolling(tmp_path / "second", sku=sku) as (world, own):
        await seeded(world, own)
        assert await enrolment(tmp_path / "second/node", own, tpm.folder).run()
        (event,) = world.told("agent_enrolled")
        assert event.pcrs == registers(tmp_path) == world.booted.pcrs


class Quoting(Enrolment):
    """Sends another quote than the one that is asked for."""

    lie = ""
    other: Any = None

    def _quoted(self, secret: str) -> dict[str, Any]:
        if self.lie == "absent":
            return {}
        if self.lie == "nonce":
            return super()._quoted("00" * 32)
        quote = super()._quoted(secret)["quote"]
        assert isinstance(quote, dict)
        match self.lie:
            case "replayed":
                return {"quote": self.other}
            case "values":
                return {"quote": quote | {"values": base64.b64encode(bytes(256)).decode()}}
            case "cut":
                return {"quote": quote | {"message": quote["message"][:40]}}
            case "foreign":
                tool("tpm2_flushcontext", "--transient-object")
                tool("tpm2_createprimary", "-C", "o", "-G", "rsa2048:rsassa-sha256:null", "-c", f"{self.ak}.other",
                     "-a", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign")  # fmt: skip
                self.ak.rename(f"{self.ak}.own")
                Path(f"{self.ak}.other").rename(self.ak)
                return super()._quoted(secret)
        return {"quote": quote}

    @property
    def ak(self) -> Path:
        return self.token.parent / "ak.ctx"


@with_a_tpm
@pytest.mark.parametrize(
    ("lie", "why"),
    first_in_gate(
        [
            ("nonce", "it carries another nonce"),
            ("replayed", "is not signed by its attestation key"),  # that was made anew in this boot
            ("values", "are not those that its TPM quoted"),
            ("cut", "is not signed by its attestation key"),
            ("foreign", "is not signed by its attestation key"),
            ("absent", "sends no quote"),
        ],
        3,
    ),
)
async def test_a_quote_that_is_not_this_tpm_s_for_this_boot_is_refused(
    tmp_path: Path, tpm: SoftwareTpm, lie: str, why: str
) -> None:
    """By a real TPM's own signatures. Mutants: nonce, signature, key or values are not looked at."""
    tool("tpm2_pcrextend", f"0:sha256={'ab' * 32}")
    sku = f"gpus: 2, tpm_pcrs: {{'0': [{registers(tmp_path)[0]}]}}"
    async with enrolling(tmp_path, sku=sku) as (world, own):
        await seeded(world, own)
        enrolment(tmp_path / "node", own)
        one = Quoting(tmp_path / "node/enrol.json", tmp_path / "node/state", tpm.folder)
        one.lie = lie
        if lie == "replayed":
            before = enrolment(tmp_path / "before", own, tpm.folder)
            (tmp_path / "before/state").mkdir()
            before._shown_by_tpm()  # noqa: SLF001 - a quote of an earlier boot
            quote = before._quoted("11" * 32)["quote"]  # noqa: SLF001
            assert isinstance(quote, dict)
            one.other = quote
        with pytest.raises(EnrolmentRefusedError, match=why):
            await one.run()
        assert not world.told("agent_enrolled")
        assert world.told("boot_refused")


def issued(name: str, key: Any, by: tuple[str, Any], *, ca: bool) -> bytes:
    """A certificate, DER, of this public key by an authority (its name and private key)."""
    now = datetime.now(UTC)
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)]) for one in (name, by[0])]
    made = x509.CertificateBuilder().subject_name(names[0]).issuer_name(names[1]).public_key(key)
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
    made = made.not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    return made.sign(by[1], hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def stored(folder: Path, index: str, content: bytes) -> None:
    """Puts it into the TPM as its maker does."""
    (folder / "stored").write_bytes(content)
    attributes = "ownerread|authread|ppread|ppwrite|platformcreate"
    tool("tpm2_nvdefine", index, "-C", "p", "-s", str(len(content)), "-a", attributes)
    tool("tpm2_nvwrite", index, "-C", "p", "-i", str(folder / "stored"))


@with_a_tpm
@pytest.mark.parametrize(("between", "enrols"), [(True, True), (False, False)])
async def test_an_ecc_key_behind_an_authority_that_the_tpm_holds_itself_is_taken(
    tmp_path: Path, tpm: SoftwareTpm, between: bool, enrols: bool
) -> None:
    """A P-256 endorsement key; its certificate is of an authority that only the TPM's chain shows.

    Mutants: whoever issued it may have been no authority; the chain is believed though nobody known has signed it.
    """
    tool("tpm2_nvundefine", "0x01c00002", "-C", "p")
    tool("tpm2_createek", "-G", "ecc", "-c", str(tmp_path / "e"), "-f", "pem", "-u", str(tmp_path / "ek.pem"))
    key = serialization.load_pem_public_key((tmp_path / "ek.pem").read_bytes())
    root, middle = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    stored(tmp_path, "0x01c0000a", issued("ek", key, ("middle", middle), ca=False))
    stored(tmp_path, "0x01c00100", issued("middle", middle.public_key(), ("root", root), ca=between))
    known = x509.load_der_x509_certificate(issued("root", root.public_key(), ("root", root), ca=True))
    authorities = known.public_bytes(serialization.Encoding.PEM).decode()
    async with enrolling(tmp_path, authorities) as (world, own):
        await seeded(world, own)
        node = enrolment(tmp_path / "node", own, tpm.folder)
        if enrols:
            assert await node.run()
            (event,) = world.told("agent_enrolled")
            spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
            assert event.tpm == hashlib.sha256(spki).hexdigest()
            assert len(event.pcrs) == 8
        else:
            with pytest.raises(EnrolmentRefusedError, match="of none of the authorities"):
                await node.run()


@pytest.mark.parametrize("pcrs", ["'8': ['" + "00" * 32 + "']", "'7': []", "'7': [AB]"])
def test_registers_that_no_quote_could_show_are_refused(pcrs: str) -> None:
    text = f"skus:\n  h100:\n    gpus: 2\n    tpm_pcrs: {{{pcrs}}}\n"
    with pytest.raises(InvalidInputError, match=r"sku.yaml:4: .*(no register|no value of SHA-256)"):
        parse({"policy.yaml": POLICY, "sku.yaml": text})


def test_a_key_that_may_leave_its_tpm_attests_nothing() -> None:
    """Mutants: attributes are not read; a key that decrypts is taken."""
    restricted = 0x00050072
    for attributes in (restricted & ~2, restricted | 1 << 17, 0):
        body = b"\x00\x01\x00\x0b" + attributes.to_bytes(4, "big") + bytes(40)
        with pytest.raises(TpmError, match="restricted"):
            attestation_name(len(body).to_bytes(2, "big") + body)
    body = b"\x00\x01\x00\x0b" + restricted.to_bytes(4, "big") + bytes(40)
    assert attestation_name(len(body).to_bytes(2, "big") + body)[:2] == b"\x00\x0b"
