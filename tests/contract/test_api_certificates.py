"""Certificates of sanitising by the API and the command line: listed, fetched byte for byte, and nobody else's."""

from base64 import b64decode
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.cli.command_errors import CommandError
from hostler.cli.evidence_file import write_certificate
from hostler.core.state.certificates import KeptCertificate
from hostler.journal.certificate_files import CertificateFiles
from hostler.server.app_state import Outside
from tests.contract.api_world import House, house

DOCUMENT = b'{"schema": 1, "node": "n1"}'
DIGEST = sha256(DOCUMENT).hexdigest()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.adopt(2)
        files = CertificateFiles(tmp_path / "certificates")
        files.put("n1", DOCUMENT)
        inside.app_state.outside = Outside(certificates=files)
        yield inside


async def test_a_certificate_is_fetched_as_it_was_kept_by_any_of_its_names(world: House, tmp_path: Path) -> None:
    """Mutants: another node's is handed out; one that the node has forgotten is not found by its whole digest."""
    path = f"/v1/nodes/n1/certificates/{DIGEST}"
    found = await world.operator.get(path)
    assert (b64decode(found["content"]), found["digest"]) == (DOCUMENT, DIGEST)
    for other in ("/v1/nodes/n2/certificates/" + DIGEST, "/v1/nodes/n1/certificates/" + "0" * 64):
        assert (await world.operator.call("GET", other))[0] == 404
    kept = write_certificate(DOCUMENT, "n1", DIGEST, str(tmp_path / "c.json"))
    assert kept.read_bytes() == DOCUMENT
    with pytest.raises(CommandError, match="other bytes"):
        write_certificate(DOCUMENT + b" ", "n1", DIGEST, str(tmp_path / "d.json"))


async def test_the_list_names_the_newest_first_and_a_short_name_is_enough(world: House) -> None:
    """Mutant: the oldest first."""
    at = world.app_state.now()
    node = world.cell.view.nodes["n1"]
    kept = (KeptCertificate(at, "ab" * 32, "acme", 2), KeptCertificate(at, DIGEST, "", 3))
    world.cell.view.put_node("n1", replace(node, certificates=kept))
    listed = (await world.operator.get("/v1/nodes/n1/certificates"))["items"]
    assert [(one["id"], one["drives"], one["tenant"]) for one in listed] == [
        (DIGEST[:12], 3, ""),
        ("ab" * 6, 2, "acme"),
    ]
    assert (await world.operator.get(f"/v1/nodes/n1/certificates/{DIGEST[:12]}"))["digest"] == DIGEST
    assert (await world.operator.call("GET", f"/v1/nodes/n1/certificates/{'ab' * 6}"))[0] == 404
