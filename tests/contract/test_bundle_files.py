"""Bundles of evidence are kept until their time is over, and never fill the disk."""

import os
from pathlib import Path

import pytest

from hostler.journal import bundle_files
from hostler.journal.bundle_files import KEPT_S, BundleFiles
from hostler.journal.evidence_zip import zipped
from hostler.ports import JournalError

NOW_S = 2_000_000_000.0


def aged(folder: Path, digest: str, age_s: float) -> None:
    os.utime(folder / digest, (NOW_S - age_s, NOW_S - age_s))


def test_what_has_had_its_time_goes_with_the_next_that_comes(tmp_path: Path) -> None:
    """Mutant: a bundle of last year is kept for ever."""
    files = BundleFiles(tmp_path)
    old, young = files.put(b"old", NOW_S), files.put(b"young", NOW_S)
    aged(tmp_path, old, KEPT_S + 1)
    aged(tmp_path, young, KEPT_S - 1)
    fresh = files.put(b"fresh", NOW_S)
    assert [files.get(one) for one in (old, young, fresh)] == [None, b"young", b"fresh"]


def test_the_oldest_make_room_and_what_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: a full folder refuses every bundle; the newest goes in the place of the oldest."""
    monkeypatch.setattr(bundle_files, "MOST_BYTES", 10)
    files = BundleFiles(tmp_path)
    first, second = files.put(b"first", NOW_S), files.put(b"2nd", NOW_S)
    aged(tmp_path, first, 20)
    aged(tmp_path, second, 10)
    third = files.put(b"third", NOW_S)
    assert [files.get(one) for one in (first, second, third)] == [None, b"2nd", b"third"]
    with pytest.raises(JournalError, match="11 bytes, 10 at most"):
        files.put(b"eleven byte", NOW_S)
    assert files.get(third) == b"third"


def test_the_same_evidence_has_the_same_bytes_and_names_lead_nowhere(tmp_path: Path) -> None:
    """Mutants: a zip holds when it was made; a digest is taken for a path."""
    made = [zipped({"b.txt": "b", "a.bin": b"a"}, "2026-11-01", {"b.txt": "00"}) for _ in range(2)]
    assert made[0] == made[1]
    assert BundleFiles(tmp_path).get("../marks.db") is None
