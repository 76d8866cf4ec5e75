"""Photos and files by their digest: kept once, bounded, told by their bytes; what is damaged is not given out."""

import base64
import io
import json
from pathlib import Path

import pytest

from hostler.core.fabric.design_csv import render_csv
from hostler.core.intents import fabrics
from hostler.core.state.attached_files import FILE_BYTES_MOST
from hostler.journal import evidence_files
from hostler.journal.evidence_files import EvidenceFiles, media_type_of
from hostler.ports import JournalError
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house
from tests.fabrics import a_fabric

JPEG = b"\xff\xd8\xff\xe0" + b"photo" * 100
FILES = "/v1/fabrics/ib0/manual-test/files"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (JPEG, "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7\n", "application/pdf"),
        ("rail 3 was warm; 41 °C\n".encode(), "text/plain"),
        ("\ufeffmetric,value\r\n".encode(), "text/plain"),
        (b"", ""),
        (b"\x7fELF\x02", ""),
        (b"GIF89a\x01\x00", ""),
        (b"PK\x03\x04", ""),
        (b"rail \x1b[31m", ""),
        ("metric,value".encode("utf-16"), ""),
        (b"RIFF\x10\x00\x00\x00AVI ", ""),
    ],
)
def test_a_file_is_what_its_bytes_say(data: bytes, kind: str) -> None:
    assert media_type_of(data) == kind


def test_the_same_bytes_are_kept_once_and_a_full_or_damaged_store_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: a file that was cut off in writing is given out; a path of somebody's making is read."""
    store = EvidenceFiles(tmp_path / "evidence")
    digest = store.put(JPEG)
    assert store.put(JPEG) == digest
    assert [path.name for path in (tmp_path / "evidence").iterdir()] == [digest]
    assert (tmp_path / "evidence" / digest).stat().st_mode & 0o777 == 0o600
    assert store.get(digest) == JPEG
    assert (store.get("0" * 64), store.get("../tokens.db"), store.get("")) == (None, None, None)
    monkeypatch.setattr(evidence_files, "MOST_BYTES", len(JPEG) + 1)
    with pytest.raises(JournalError, match="at most"):
        store.put(b"another")
    (tmp_path / "evidence" / digest).write_bytes(JPEG[:-1])
    with pytest.raises(JournalError, match="is damaged"):
        store.get(digest)


async def scheduled(world: House) -> None:
    fabrics.prepared.cache_clear()
    await world.reads_all()
    body = {"fabric": {"name": "ib0", "design": render_csv(a_fabric(3).design)}, "reason": "the training network"}
    assert (await world.operator.post("/v1/fabrics", body))[0] == 200
    args = {"owner": "tess", "checklist": "one; two"}
    body = {"act": {"verb": "schedule-manual-test", **args}, "target": "ib0", "reason": "weekly"}
    assert (await world.operator.post("/v1/intents", body))[0] == 200


def photo(name: str = "leaf 1.jpg", data: bytes = JPEG) -> dict[str, str]:
    return {"name": name, "content": base64.b64encode(data).decode(), "reason": "test by hand"}


async def test_a_photo_is_kept_by_its_digest_and_read_back(tmp_path: Path) -> None:
    async with house(tmp_path) as world:
        await scheduled(world)
        tess = world.client(Grant("tess", Role.technician))
        tried = await tess.post(FILES, photo() | {"dry_run": True})
        assert tried[0] == 200
        assert not (tmp_path / "evidence").exists()
        assert (await tess.post(FILES, photo('../../"x\r\n.jpg')))[0] == 200
        assert (await tess.post(FILES, photo()))[0] == 200
        (file,) = (await tess.get("/v1/fabrics/ib0"))["manual_test"]["files"]
        assert (file["name"], file["media_type"], file["size"], file["person"]) == (
            "_..__x__.jpg",
            "image/jpeg",
            504,
            "tess",
        )
        headers = {"Authorization": f"Bearer {tess.token}"}
        async with world.session.get(f"{world.url}{FILES}/{file['digest']}", headers=headers) as answer:
            assert await answer.read() == JPEG
        for nobody in ("0" * 64, "x", "..%2F..%2Ftokens.sqlite"):
            assert (await tess.call("GET", f"{FILES}/{nobody}"))[0] == 404, nobody
        (tmp_path / "evidence" / file["digest"]).unlink()
        status, body = await tess.call("GET", f"{FILES}/{file['digest']}")
        assert (status, "are not here" in body["detail"]) == (404, True)


async def test_what_is_no_photo_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    async with house(tmp_path) as world:
        assert (await world.operator.post(FILES, photo()))[0] in (404, 409)
        await scheduled(world)
        for bad in (b"", b"<html>\x00", b"\x7fELF", JPEG + b"x" * FILE_BYTES_MOST):
            sent = io.BytesIO(json.dumps(photo(data=bad)).encode())
            kind = {"Content-Type": "application/json"}
            status, body = await world.operator.call("POST", FILES, data=sent, headers=kind)
            assert status in (413, 422), (bad[:9], body)
        assert (await world.operator.post(FILES, photo() | {"content": "%%"}))[0] in (400, 422)
        assert not (tmp_path / "evidence").exists()
        assert (await world.operator.get("/v1/fabrics/ib0"))["manual_test"]["files"] == []


async def test_results_of_a_whole_network_are_entered_and_a_bad_line_is_told(tmp_path: Path) -> None:
    """Mutant: results are an argument of at most 1,000 letters."""
    async with house(tmp_path) as world:
        await scheduled(world)
        path = "/v1/fabrics/ib0/manual-test"
        lines = "metric,value\n" + "".join(f"gpu-{n:04} to gpu-{n + 1:04},39{n % 10}\n" for n in range(1_000))
        status, body = await world.operator.post(path, {"results": lines + "gpu-1,fast\n", "reason": "week 47"})
        assert (status, [problem["line"] for problem in body["problems"]]) == (422, [1002])
        assert (await world.operator.post(path, {"results": lines, "reason": "week 47", "notes": "warm"}))[0] == 200
        (run,) = (await world.operator.get("/v1/fabrics/ib0"))["manual_test"]["runs"]
        assert (len(run["results"]), run["notes"]) == (1_000, "warm")
