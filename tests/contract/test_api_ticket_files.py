"""Photos and files of tickets over HTTP and by command: attached once, kept after closing, never run by a browser."""

import base64
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.attached_files import FILES_MOST
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, bmc_of, house
from tests.contract.test_api_audit import cli
from tests.contract.test_evidence_files import JPEG


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.reads_all()
        inside.driver.verdict = "failed"
        place = {"rack": "r9", "u": 7, "site": "north"}
        nodes = [{"id": "m0", "sku": "h100", "serial": "SN-m0", "bmc": bmc_of("m0")} | place]
        await inside.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
        await inside.until(lambda: inside.cell.view.nodes["m0"].phase == "onboard")
        await inside.operator.post("/v1/nodes/m0/certify", {"reason": "cabled"})
        await inside.until(lambda: len(inside.cell.view.tickets))
        yield inside


def ticket_of(world: House) -> str:
    return next(iter(world.cell.view.tickets.values())).id


def photo(data: bytes = JPEG, name: str = "psu.jpg") -> dict[str, Any]:
    return {"name": name, "content": base64.b64encode(data).decode(), "reason": "as found"}


async def test_a_photo_is_attached_and_stays_readable_once_the_ticket_is_closed(world: House) -> None:
    """Mutants: bytes of a dry run are kept; the same photo twice; a closed ticket's photos are lost."""
    tess = world.client(Grant("tess", Role.technician))
    ticket = ticket_of(world)
    files = f"/v1/tickets/{ticket}/files"
    assert (await tess.post(files, photo() | {"dry_run": True}))[0] == 200
    assert world.cell.view.tickets[ticket].files == ()
    for _ in range(2):
        assert (await tess.post(files, photo(name='../"\r\npsu.jpg')))[0] == 200
    rows = (await tess.get("/v1/tickets"))["items"]
    (file,) = next(row for row in rows if row["id"] == ticket)["files"]
    assert (file["name"], file["person"], file["size"]) == ("____psu.jpg", "tess", len(JPEG))
    history = await world.operator.get("/v1/nodes/m0/history")
    assert any("tess added ____psu.jpg (image/jpeg, 504 bytes" in row["text"] for row in history["items"])
    await world.operator.post("/v1/intents", {"act": {"verb": "close-ticket"}, "target": ticket, "reason": "done"})
    await world.until(lambda: ticket not in world.cell.view.tickets)
    status, _ = await tess.call("GET", f"{files}/{file['digest']}")
    assert status == 200
    assert (await tess.post(files, photo(b"too late")))[0] == 404
    assert (await tess.call("GET", f"{files}/{'0' * 64}"))[0] == 404


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<html><script>alert(1)</script></html>", "text/plain; charset=utf-8"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "text/plain; charset=utf-8"),
        (b"%PDF-1.7\nopenaction", "application/pdf"),
        (JPEG + b"<script>alert(1)</script>", "image/jpeg"),
    ],
)
async def test_no_browser_runs_what_somebody_attached(world: House, data: bytes, kind: str) -> None:
    """Mutants: the name decides the type; the console's own policy, under which scripts of this server run."""
    files = f"/v1/tickets/{ticket_of(world)}/files"
    assert (await world.operator.post(files, photo(data, "look.html")))[0] == 200
    headers = {"Authorization": f"Bearer {world.operator.token}"}
    async with world.session.get(f"{world.url}{files}/{sha256(data).hexdigest()}", headers=headers) as answer:
        assert await answer.read() == data
        assert answer.headers["Content-Type"] == kind
        assert answer.headers["Content-Disposition"] == 'attachment; filename="look.html"'
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"


async def test_only_who_works_there_attaches_and_reads(world: House) -> None:
    """Mutant: a technician of another site reads a photo by the ticket's id."""
    files = f"/v1/tickets/{ticket_of(world)}/files"
    assert (await world.operator.post(files, photo()))[0] == 200
    digest = sha256(JPEG).hexdigest()
    asked = {
        Grant("here", Role.technician, site="north"): 200,
        Grant("there", Role.technician, site="south"): 404,
        Grant("alice", Role.tenant, tenant="acme"): 403,
        Grant("vic", Role.viewer): 403,
    }
    for grant, status in asked.items():
        assert (await world.client(grant).call("GET", f"{files}/{digest}"))[0] == status, grant.name
    other = world.client(Grant("there", Role.technician, site="south"))
    assert (await other.post(files, photo(b"mine")))[0] in (403, 404)
    assert (await other.call("POST", "/v1/tickets/none/files", json=photo()))[0] in (403, 404, 409)
    assert len(world.cell.view.tickets[ticket_of(world)].files) == 1


async def test_files_of_a_ticket_are_few_and_of_known_kinds(world: House) -> None:
    files = f"/v1/tickets/{ticket_of(world)}/files"
    assert (await world.operator.post(files, photo(b"\x7fELF\x02")))[0] == 422
    for number in range(FILES_MOST):
        assert (await world.operator.post(files, photo(f"note {number}".encode())))[0] == 200
    status, body = await world.operator.post(files, photo(b"one more"))
    assert (status, "take fewer photos" in body["detail"]) == (409, True)


async def test_commands_attach_and_fetch(world: House, tmp_path: Path) -> None:
    ticket = ticket_of(world)
    (tmp_path / "psu.jpg").write_bytes(JPEG)
    await cli(world, "ticket", "attach", ticket, str(tmp_path / "psu.jpg"), "--reason", "as found")
    (file,) = world.cell.view.tickets[ticket].files
    assert file.name == "psu.jpg"
    to = tmp_path / "back.jpg"
    await cli(world, "ticket", "attached", ticket, file.digest, "--to", str(to))
    assert to.read_bytes() == JPEG
