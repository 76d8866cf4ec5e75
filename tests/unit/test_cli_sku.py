"""`hostler sku`: a draft as a document with its notes, and differences in words, over a real socket."""

from collections.abc import Iterator

import pytest
import yaml

from hostler.cli.exit_codes import ExitCode
from tests.cli_api import FakeApi, hostler, page, serving

DRAFT = {
    "name": "h100",
    "sku": {"gpus": 8, "hardware": {"schema": 1, "pcie": {"gpu0": "x16 32 GT/s"}, "bios": {"Pin\x1b[31m": "No"}}},
    "notes": ["lldp: lldpctl is not installed (package lldpd)"],
}
ROW = {
    "aspect": "pcie",
    "verdict": "failed",
    "slot": "gpu0",
    "expected": "x16 32 GT/s",
    "found": "x8 32 GT/s by the agent",
    "advice": "seat the card",
}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as found:
        yield found


def test_a_draft_is_a_document_that_yaml_reads_with_its_notes_as_comments(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: the notes break the document; a control character reaches the terminal."""
    api.says("GET /v1/nodes/n1/sku-draft", DRAFT)
    assert hostler("sku", "from-node", "n1", "--server", api.url) == ExitCode.ok
    text = capsys.readouterr().out
    assert text.startswith("# lldp: lldpctl is not installed (package lldpd)\n")
    assert "\x1b" not in text
    assert yaml.safe_load(text)["skus"]["h100"]["hardware"]["pcie"] == {"gpu0": "x16 32 GT/s"}


def test_a_node_that_nobody_has_seen_is_refused_with_what_to_do(api: FakeApi) -> None:
    """Mutant: an empty SKU is written down."""
    api.says(
        "GET /v1/nodes/n1/sku-draft",
        {"error": "not_seen", "detail": "n1 has told no inventory", "instead": "start it"},
        409,
    )
    assert hostler("sku", "from-node", "n1", "--server", api.url) == ExitCode.refused


def test_differences_name_slot_expected_and_found(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: expected and found are exchanged."""
    api.says("GET /v1/nodes/n1/sku-differences", page(ROW))
    assert hostler("sku", "diff", "n1", "--server", api.url) == ExitCode.ok
    row = capsys.readouterr().out.splitlines()[1]
    assert row.index("x16 32 GT/s") < row.index("x8 32 GT/s by the agent")
