"""Files that commands write of a journal are their owner's alone, whatever the umask is."""

import os
from pathlib import Path

import pytest

from hostler.journal import whole_files
from hostler.journal.opening import open_journal
from tests.cli_api import hostler


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_file_that_is_being_written_is_private_from_its_first_byte(tmp_path: Path, umask: int) -> None:
    """Also where a file of others lay in its place. Mutant: the mode is the umask's."""
    path = tmp_path / "out.part"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(umask)
    try:
        with whole_files.create(path) as out:
            assert path.stat().st_mode & 0o777 == 0o600
            out.write(b"new")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_an_export_of_a_journal_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    """Mutant: the command opens the file by itself."""
    open_journal(tmp_path / "first.db").close()
    before = os.umask(umask)
    try:
        assert hostler("journal", "export", str(tmp_path / "first.db"), str(tmp_path / "out.jsonl")) == 0
    finally:
        os.umask(before)
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
