"""The driver of mutants: what it makes of a file, and that its verdicts are those of the tests."""

import shutil
from pathlib import Path

import pytest

from tests.mutation.kinds import Mutant, changed, mutants, planted
from tests.mutation.trees import Lists, Near, Planted, StaleError, demand_files, lists, planted_mutant
from tests.mutation.trying import Trouble, tried

pytestmark = pytest.mark.nightly("packages and sites are built")

ROOT = Path(__file__).parents[2]
FILE = "src/small/limits.py"
SOURCE = '''"""A small file."""

LIMIT = 3
"""A table, as far as tests go."""


def over(count: int, held: bool = False) -> bool:
    """Whether it is over the limit."""
    if held and count:
        return False
    return count > LIMIT


def spins(count: int) -> int:
    """Never run beyond the limit."""
    while count > LIMIT:
        count -= 1
    return count


def alone(count: int) -> int:
    """What no test runs."""
    return count + 1
'''
TESTS = """from small import limits
from small.limits import over


def test_over():
    assert over(4)
    assert not over(3)
    assert not over(4, held=True)
    assert over(4, held=False)


def test_spins():
    assert limits.spins(5) == 3
"""


def found(kind: str) -> list[tuple[str, str]]:
    return [(m.before, m.after) for m in mutants(FILE, SOURCE.encode()) if m.kind == kind]


def test_a_file_has_the_mutants_of_its_kinds() -> None:
    """Mutants: annotations and docstrings are changed too; an operand is never dropped."""
    assert sorted(found("comparison")) == sorted(
        [
            ("count > LIMIT", "(count >= LIMIT)"),
            ("count > LIMIT", "(count <= LIMIT)"),
        ]
        * 2
    )
    assert found("operand") == [("held and count", "count"), ("held and count", "held")]
    assert found("flag") == [("False", "True")] * 2
    assert found("statement") == [("count -= 1", "pass")]
    assert ("3", "4") in found("number")
    assert {m.hot for m in mutants(FILE, SOURCE.encode()) if m.line in (3, 7)} == {False}


def test_lines_keep_their_numbers_in_a_mutant() -> None:
    """Mutant: what is dropped takes its lines along, and every place after it is told wrongly."""
    source = b"def f(a, b):\n    if (\n        a\n        and b\n    ):\n        return 1\n    return 2\n"
    for mutant in mutants("f.py", source):
        assert changed(source, mutant).count(b"\n") == source.count(b"\n"), mutant
        compile(changed(source, mutant), "f.py", "exec")


@pytest.mark.parametrize(("before", "times"), [("count", "10 times"), ("count < LIMIT", "0 times")])
def test_planted_text_that_is_not_there_once_is_an_error_that_says_to_renew_it(before: str, times: str) -> None:
    """Mutant: the first of several places is taken, or the entry is passed over."""
    with pytest.raises(ValueError, match="renew it"):
        planted(FILE, SOURCE.encode(), before, "x")
    row = Planted("gone", "src/hostler/core/state/requalification.py", "no such text", "x", ())
    with pytest.raises(StaleError, match=r"planted\.toml: gone: its text occurs 0 times"):
        planted_mutant(row)


def test_the_lists_fit_the_tree() -> None:
    """Mutant: a file is moved or a line renewed, and its planted bugs are never planted again."""
    known = lists()
    assert known.planted
    assert known.near
    assert known.equivalent


def test_a_list_that_names_a_test_that_is_gone_is_an_error() -> None:
    """Mutant: the file is looked for, the test in it is not."""
    tests = ("tests/unit/test_requalification.py::test_gone",)
    row = Near("proof", ("src/hostler/core/state/requalification.py",), tests)
    with pytest.raises(StaleError, match="test_gone, which is not there"):
        demand_files(Lists((row,), (), ()))


def test_planted_text_that_makes_no_program_is_an_error() -> None:
    """Mutant: what does not compile counts as killed, though no test has looked at it."""
    with pytest.raises(ValueError, match="is no program"):
        planted(FILE, SOURCE.encode(), "held and count", "held and")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of one small file with its tests, and the driver."""
    (tmp_path / "src/small").mkdir(parents=True)
    (tmp_path / FILE).write_text(SOURCE)
    (tmp_path / "near").mkdir()
    (tmp_path / "near/test_limits.py").write_text(TESTS)
    shutil.copytree(ROOT / "tests/mutation", tmp_path / "tests/mutation")
    return tmp_path


def pick(before: str, after: str) -> Mutant:
    return planted(FILE, SOURCE.encode(), before, after)


def test_each_mutant_meets_the_tests_that_run_its_lines(tree: Path) -> None:
    """Mutants: names that were imported keep the sound function; a table is not loaded anew."""
    expected = {
        pick("return count > LIMIT", "return count >= LIMIT"): "killed",
        pick("held and count", "held"): "survived",
        pick("LIMIT = 3", "LIMIT = 4"): "killed",
        pick("held: bool = False", "held: bool = True"): "survived",
        pick("return count + 1", "return count - 1"): "unreached",
        pick("        count -= 1", "        raise SystemExit"): "killed",
    }
    said = {mutant: verdict.result for mutant, verdict in tried(tree, ("near/test_limits.py",), expected, sure=True)}
    assert said == {**expected, pick("held: bool = False", "held: bool = True"): "killed"}
    assert (tree / FILE).read_text() == SOURCE, "the copy is as it was"


def test_tests_that_fail_by_themselves_are_no_measure(tree: Path) -> None:
    """Mutant: every mutant counts as killed."""
    (tree / "near/test_limits.py").write_text(TESTS.replace("== 3", "== 4"))
    with pytest.raises(Trouble, match="near tests fail without a mutant"):
        list(tried(tree, ("near/test_limits.py",), [pick("LIMIT = 3", "LIMIT = 4")], sure=True))
