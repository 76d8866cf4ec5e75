"""Enrols the agent of a booted node: makes a key, has the TPM prove it where there is one, keeps the token.

The unit runs it before the agent (`python -m hostler.agent.enrolment`). A node that Hostler booted has an address of
its own to enrol at, good for this boot; where none is written, nothing is done. Private keys never leave the node.
"""

import argparse
import asyncio
import base64
import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from hostler.agent.controller_client import backoff_s
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, act
from hostler.agent.private_files import require_private

TPM = Path("/dev/tpmrm0")
EK_CERTIFICATES = {"rsa": 0x01C00002, "ecc": 0x01C0000A}
"""NV index of the certificate of an RSA 2048 and of a P-256 endorsement key (TCG EK Credential Profile 2.5, 2.2.1)."""
CHAIN = range(0x01C00100, 0x01C00200)
"""NV indices of certificates between that one and its maker's authority (the same, 2.2.1.5.2)."""
CHAIN_BYTES = 6_000
QUOTED = "sha256:0,1,2,3,4,5,6,7"
KEY_BITS = 2048
TOOL_S = 60.0
ANSWER_S = 30.0
PATIENCE_S = 75.0
"""systemd waits 90 s for all that comes before the agent; what has not been answered by then is begun anew."""
MAX_BYTES = 16_384
OK, ACCEPTED = 200, 202


class EnrolmentFile(Struct, frozen=True):
    """Content of the file that cloud-init wrote."""

    url: str


class EnrolmentRefusedError(Exception):
    """The controller gives this boot no token; the text is its reason."""


class Enrolment:
    """One enrolment: the file that names the address, and the folder of key and token."""

    def __init__(self, file: Path, folder: Path, tpm: Path = TPM) -> None:
        self._file = file
        self._folder = folder
        self._tpm = tpm

    @property
    def token(self) -> Path:
        """The file of the token."""
        return self._folder / "agent-token"

    async def run(self) -> bool:
        """Enrol, unless there is nothing to do. Returns whether the agent has a new token.

        Raises EnrolmentRefusedError, TimeoutError after PATIENCE_S, OSError, and what `host_commands.act` raises.
        """
        if not self._file.exists():
            return False
        require_private(self._file)
        url = msgspec.json.decode(self._file.read_bytes(), type=EnrolmentFile).url
        done = self._folder / "enrolled-at"
        if self.token.exists() and done.exists() and done.read_text() == url:
            return False
        claim: dict[str, object] = {"key": self._public_key()}
        if shown := self._shown_by_tpm():
            claim["tpm"] = shown
        async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
            status, text = await self._asked(session, url, claim)
            if status == ACCEPTED:
                secret = self._proved(base64.b64decode(text))
                claim |= {"proof": secret, **self._quoted(secret)}
                status, text = await self._asked(session, url, claim)
        if status != OK:
            raise EnrolmentRefusedError(f"{status}: {text[:500]}")
        self._write("agent-token", self._opened(base64.b64decode(text)))
        self._write("enrolled-at", url.encode())
        return True

    async def _asked(self, session: aiohttp.ClientSession, url: str, claim: dict[str, object]) -> tuple[int, str]:
        """Status and text of the answer; asked again while nobody answers, or says "not now"."""
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        attempt = 0
        while True:
            attempt += 1
            try:
                async with session.post(url, data=msgspec.json.encode(claim), timeout=timeout) as answer:
                    text = (await answer.content.read(MAX_BYTES)).decode("utf-8", "replace")
                    if answer.status != 503:
                        return answer.status, text
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(min(backoff_s(attempt, None, 0.5), 10.0))

    def _public_key(self) -> str:
        """The public part of this boot's key, made where there is none."""
        key = self._folder / "enrolment.pem"
        if not key.exists():
            made = self._write("enrolment.pem.new", b"")
            bits = f"rsa_keygen_bits:{KEY_BITS}"
            act(("openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", bits, "-out", str(made)), TOOL_S)
            made.rename(key)
        return act(("openssl", "pkey", "-in", str(key), "-pubout"), TOOL_S)

    def _opened(self, sealed: bytes) -> bytes:
        key, closed = self._folder / "enrolment.pem", self._write("sealed", sealed)
        words = ("pkeyutl", "-decrypt", "-inkey", str(key), "-in", str(closed))
        oaep = ("rsa_padding_mode:oaep", "rsa_oaep_md:sha256", "rsa_mgf1_md:sha256")
        token = act(("openssl", *words, *(word for one in oaep for word in ("-pkeyopt", one))), TOOL_S)
        closed.unlink()
        return token.encode()

    def _shown_by_tpm(self) -> dict[str, object]:
        """Keys that the machine's TPM shows; nothing where there is none, or its tools are not installed."""
        if not self._tpm.exists():
            return {}
        ek, ak = self._folder / "ek.ctx", self._folder / "ak.ctx"
        pem, public = self._folder / "ek.pem", self._folder / "ak.pub"
        try:
            _clear()
            indices = _indices()
            kind = "ecc" if EK_CERTIFICATES["ecc"] in indices and EK_CERTIFICATES["rsa"] not in indices else "rsa"
            act(("tpm2_createek", "-G", kind, "-c", str(ek), "-f", "pem", "-u", str(pem)), TOOL_S)
        except NotPossibleError as error:
            print(f"the TPM is not shown: {error}; install tpm2-tools", file=sys.stderr)  # noqa: T201 - a program's word
            return {}
        made = ("tpm2_createak", "-C", str(ek), "-c", str(ak), "-G", "rsa", "-g", "sha256", "-s", "rsassa")
        act((*made, "-f", "tss", "-u", str(public)), TOOL_S)
        _clear()
        shown = {"endorsement": pem.read_text(), "attestation": base64.b64encode(public.read_bytes()).decode()}
        return shown | self._certificates(EK_CERTIFICATES[kind], indices)

    def _certificates(self, own: int, indices: list[int]) -> dict[str, object]:
        """The certificates that the TPM's maker left in it: the key's own, and of authorities behind it."""
        found = _ders(self._stored(own)) if own in indices else []
        if not found:
            return {}
        behind = b"".join(self._stored(index) for index in indices if index in CHAIN)[:CHAIN_BYTES]
        chain = [base64.b64encode(one).decode() for one in _ders(behind)]
        return {"certificate": base64.b64encode(found[0]).decode(), **({"chain": chain} if chain else {})}

    def _stored(self, index: int) -> bytes:
        """The content of an NV index, b"" where it may not be read."""
        place = self._folder / "nv"
        try:
            act(("tpm2_nvread", hex(index), "-C", "o", "-o", str(place)), TOOL_S)
        except ActFailedError:
            return b""
        return place.read_bytes()

    def _quoted(self, secret: str) -> dict[str, object]:
        """The TPM's quote of its registers, for a nonce made of the secret; nothing without a SHA-256 bank."""
        nonce = sha256(b"quote\0" + bytes.fromhex(secret)).hexdigest()
        parts = {name: self._folder / f"quote.{name}" for name in ("message", "signature", "values")}
        out = ("-m", str(parts["message"]), "-s", str(parts["signature"]), "-o", str(parts["values"]), "-F", "values")
        asked = ("-c", str(self._folder / "ak.ctx"), "-l", QUOTED, "-q", nonce, "-g", "sha256", "-f", "plain")
        try:
            act(("tpm2_quote", *asked, *out), TOOL_S)
        except ActFailedError as error:
            print(f"the TPM gives no quote: {error}", file=sys.stderr)  # noqa: T201 - a program's word
            return {}
        return {"quote": {name: base64.b64encode(file.read_bytes()).decode() for name, file in parts.items()}}

    def _proved(self, credential: bytes) -> str:
        """The secret that the controller sealed to this TPM, in hex."""
        place, found, session = (self._folder / name for name in ("credential", "secret", "session.ctx"))
        place.write_bytes(credential)
        self._write("secret", b"")
        act(("tpm2_startauthsession", "--policy-session", "-S", str(session)), TOOL_S)
        try:
            act(("tpm2_policysecret", "-S", str(session), "-c", "endorsement"), TOOL_S)
            held = ("-c", str(self._folder / "ak.ctx"), "-C", str(self._folder / "ek.ctx"))
            opened = ("-i", str(place), "-o", str(found), "-P", f"session:{session}")
            act(("tpm2_activatecredential", *held, *opened), TOOL_S)
            return found.read_bytes().hex()
        finally:
            act(("tpm2_flushcontext", str(session)), TOOL_S)
            found.unlink()

    def _write(self, name: str, body: bytes) -> Path:
        """A file that its owner alone may read, written whole or not at all."""
        place, beside = self._folder / name, self._folder / f"{name}.part"
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(body)
        beside.rename(place)
        return place


def _clear() -> None:
    """Have the TPM forget what earlier tools loaded: it has room for three objects, and no manager may swap them."""
    act(("tpm2_flushcontext", "--transient-object"), TOOL_S)


def _indices() -> list[int]:
    """NV indices that the TPM has."""
    told = act(("tpm2_getcap", "handles-nv-index"), TOOL_S)
    return [int(line.removeprefix("- "), 16) for line in told.splitlines() if line.startswith("- 0x")]


def _ders(read: bytes) -> list[bytes]:
    """Certificates that stand behind each other; an index may be larger than what is in it."""
    found = []
    while read[:2] == b"\x30\x82" and len(read) >= (end := 4 + int.from_bytes(read[2:4], "big")):
        found.append(read[:end])
        read = read[end:]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="hostler-agent-enrolment", description="Enrols the agent of a booted node.")
    parser.add_argument("--file", type=Path, default=Path("/etc/hostler/enrol.json"), help="what cloud-init wrote")
    parser.add_argument("--state-dir", type=Path, default=Path("/var/lib/hostler-agent"))
    parser.add_argument("--tpm", type=Path, default=TPM, help="its device")
    given = parser.parse_args(arguments)
    os.environ.setdefault("TPM2TOOLS_TCTI", f"device:{given.tpm}")
    try:
        asyncio.run(Enrolment(given.file, given.state_dir, given.tpm).run())
    except TimeoutError:
        sys.exit(f"the agent could not enrol: no answer within {PATIENCE_S:g} s")
    except (EnrolmentRefusedError, OSError, ActFailedError, FateUnknownError, NotPossibleError) as error:
        sys.exit(f"the agent could not enrol: {error}")
    except msgspec.DecodeError as error:
        sys.exit(f"the agent could not enrol: {given.file} is not what cloud-init writes: {error}")


if __name__ == "__main__":
    main()
