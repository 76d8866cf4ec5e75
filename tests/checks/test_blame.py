"""A mismatch of bits convicts by the report of a witness: the node only where the witness has the golden's bits."""

import dataclasses
import json
from pathlib import Path

import pytest

from hostler_checks import main, reference, state_dir
from hostler_checks.answers import CheckResult, Verdict, as_document
from hostler_checks.blame import Culprit, blame
from hostler_checks.reference import Golden, Reference, stack_key

pytestmark = pytest.mark.nightly("processes compute with tensors")

STACK = {"device": "h100", "driver": "550"}
GOLD, OWN, THIRD = "a" * 16, "b" * 16, "c" * 16
KNOWN = Reference({stack_key("gemm_golden", 1, STACK): Golden("gemm_golden", GOLD, 3, STACK)})


def a_result(digest: str, **fields: object) -> CheckResult:
    told = CheckResult("gemm_golden", Verdict.suspect, "", 1, "cuda:0", digest=digest, stack=STACK)
    return dataclasses.replace(told, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "culprit"), [(GOLD, Culprit.node), (OWN, Culprit.golden), (THIRD, Culprit.stack), ("", Culprit.unknown)]
)
def test_the_witness_decides(seen: str, culprit: Culprit) -> None:
    """Mutant: whoever differs from the golden is guilty."""
    (found,) = blame(("n1", [a_result(OWN)]), ("n2", [a_result(seen)]), KNOWN)
    assert (found.culprit, found.part) == (culprit, "cuda:0")


@pytest.mark.parametrize(
    "witness",
    [
        ("n1", [a_result(GOLD)]),
        ("n2", []),
        ("n2", [a_result(GOLD, stack={"device": "h100", "driver": "560"})]),
        ("n2", [a_result(GOLD, planted="bit_flip")]),
        ("n2", [a_result(GOLD), a_result(OWN, part="cuda:1")]),
    ],
    ids=["the node itself", "silent", "another driver", "planted", "of two minds"],
)
def test_who_is_no_witness_convicts_nobody(witness: tuple[str, list[CheckResult]]) -> None:
    (found,) = blame(("n1", [a_result(OWN)]), witness, KNOWN)
    assert found.culprit is Culprit.unknown


def test_who_agrees_or_has_no_golden_is_not_blamed() -> None:
    other = a_result(OWN, stack={"device": "a100"})
    assert blame(("n1", [a_result(GOLD), other, a_result("")]), ("n2", [a_result(THIRD)]), KNOWN) == ()


@pytest.mark.parametrize(("seen", "code", "words"), [(GOLD, 2, "node"), (OWN, 3, "golden"), (THIRD, 3, "stack")])
def test_reports_are_compared_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seen: str, code: int, words: str
) -> None:
    for node, digest in (("n1", OWN), ("n2", seen)):
        told = {"node": node, "profile": "gate", "verdict": "suspect", "latest": [as_document(a_result(digest))]}
        (tmp_path / f"{node}.json").write_text(json.dumps(state_dir.signed(told)))
    (tmp_path / "reference.json").write_bytes(reference.encoded(KNOWN))
    words_given = ["blame", *(str(tmp_path / f"{n}.json") for n in ("n1", "n2"))]
    with pytest.raises(SystemExit) as ended:
        main.main([*words_given, "--reference", str(tmp_path / "reference.json")])
    assert ended.value.code == code
    assert f"gemm_golden cuda:0: {words}" in capsys.readouterr().out


def test_a_report_that_was_changed_convicts_nobody(tmp_path: Path) -> None:
    told = state_dir.signed({"node": "n1", "latest": [as_document(a_result(OWN))]})
    (tmp_path / "n1.json").write_text(json.dumps({**told, "node": "n9"}))
    (tmp_path / "reference.json").write_bytes(reference.encoded(KNOWN))
    given = ["blame", *[str(tmp_path / "n1.json")] * 2, "--reference", str(tmp_path / "reference.json")]
    with pytest.raises(SystemExit) as ended:
        main.main(given)
    assert ended.value.code == main.CANNOT_SAY
