"""The rules of the test run itself: no skip is hidden, and seeds are handed out."""

import pathlib
import re
import tomllib

import pytest

from tests.conftest import BUILD_S, ID_MOST_CHARS, pytest_xdist_make_scheduler
from tests.dealing import GroupsAndCases
from tests.sharing import MEASURED

TESTS = pathlib.Path(__file__).parents[1]
CONFTEST = TESTS / "conftest.py"

SKIPS_WITH = """
    import pytest

    def test_passes():
        pass

    def test_skips():
        pytest.skip({reason!r})
"""

HARDWARE = "hardware: no InfiniBand adapter in this machine"
PACKAGE = "no opensm: apt-get install opensm"


INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\naddopts = -p no:faker -p no:schemathesis\n"
"""Without plugins that make something before the first test: it counts in that test's time."""


@pytest.fixture(autouse=True)
def our_conftest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CONFTEST.parents[1]))  # it names a plugin beside itself
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makeini(INI)


@pytest.mark.parametrize(
    ("ci", "reason", "expected"),
    [
        ("true", PACKAGE, pytest.ExitCode.TESTS_FAILED),
        ("true", HARDWARE, pytest.ExitCode.OK),
        ("", PACKAGE, pytest.ExitCode.OK),
    ],
)
def test_in_ci_only_missing_hardware_excuses_a_skip(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    ci: str,
    reason: str,
    expected: pytest.ExitCode,
) -> None:
    """Mutant: `avoidable` returns an empty counter."""
    monkeypatch.setenv("CI", ci)
    pytester.makepyfile(SKIPS_WITH.format(reason=reason))

    result = pytester.runpytest_inprocess()

    assert result.ret == expected
    result.stdout.fnmatch_lines(["*skipped: 1*", f"*1 × {reason}", "*1 passed, 1 skipped*"])


def test_what_a_module_makes_once_is_made_by_one_worker(pytester: pytest.Pytester) -> None:
    """Mutants: each worker that gets a test of the module makes it anew; a group that a test names is not its own."""
    pytester.makepyfile(
        test_shared="""
        import pytest

        @pytest.fixture(scope="module")
        def made():
            return 1

        @pytest.fixture
        def through(made):
            return made

        def test_one(made): ...
        def test_other(through): ...
        def test_without(tmp_path): ...
        @pytest.mark.xdist_group("own")
        def test_named(made): ...
        """
    )

    items, _ = pytester.inline_genitems()

    groups = {item.name: [mark.args[0] for mark in item.iter_markers("xdist_group")] for item in items}
    shared = ["test_shared"]
    assert groups == {"test_one": shared, "test_other": shared, "test_without": [], "test_named": ["own"]}


def test_each_file_is_in_one_share_and_the_dear_ones_are_apart(pytester: pytest.Pytester) -> None:
    """Mutants: a file in no share is run by nobody; a file of another share is imported; the dear ones go together.

    Without xdist, and with a test that is in a group of it.
    """
    costs = tomllib.loads(MEASURED.read_text("utf-8"))
    dearest = sorted(costs, key=lambda name: -costs[name])[:2]
    shared = "import pytest\n@pytest.fixture(scope='module')\ndef made(): ...\ndef test_it(made): ..."
    names = {*dearest, "some/test_a.py", "some/test_b.py", "some/test_c.py"}
    for name in names:
        pytester.path.joinpath(name).parent.mkdir(exist_ok=True)
        pytester.path.joinpath(name).write_text(shared)

    ran = [
        pytester.runpytest_subprocess("-p", "no:xdist", "-vv", "--share", f"{number}/2").outlines for number in (1, 2)
    ]

    files = [{line.partition("::")[0] for line in lines if "PASSED" in line} for lines in ran]
    assert files[0] & files[1] == set()
    assert files[0] | files[1] == names
    assert all(len(found & set(dearest)) == 1 for found in files)


def test_a_file_with_a_cost_is_there() -> None:
    """Mutant: a file has another name now, and its cost is nobody's."""
    rooms = ("unit", "property", "transcripts")
    there = {f"{path.parent.name}/{path.name}" for room in rooms for path in TESTS.joinpath(room).rglob("test_*.py")}
    assert set(tomllib.loads(MEASURED.read_text("utf-8"))) <= there


def test_worker_processes_hide_no_skip_and_no_note(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: `skips` counts on the workers instead of the process that reports; only what failed may note something.

    One module skips a test, another cannot be imported, and a test that passes notes something.
    """
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(test_notes="def test_it(record_property): record_property('note', 'a file is out of date')")
    pytester.makepyfile(test_skips=SKIPS_WITH.format(reason=PACKAGE))
    pytester.makepyfile(test_imports="import pytest; pytest.importorskip('no_such_module')")

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "1")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*= notes =*", "a file is out of date"])
    result.stdout.fnmatch_lines(["*skipped: 2*", "*1 × *no_such_module*", f"*1 × {PACKAGE}"])


def test_a_long_text_among_parameters_makes_no_long_id(pytester: pytest.Pytester) -> None:
    """Mutant: a page of five megabytes is the name of its test, and goes with each report of it."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("page", ["9" * 5_000_000, "9" * 4_000_000, b"\\xff\\n" * 500, "short", 7, None])
        def test_it(page): ...
        """
    )

    items, _ = pytester.inline_genitems()

    names = [item.name for item in items]
    nines = "9" * ID_MOST_CHARS
    assert names[:2] == [f"test_it[{nines}...5000000]", f"test_it[{nines}...4000000]"]
    assert names[2].startswith(r"test_it[\xff\n\xff\n")
    assert names[2].endswith(r"\xff\n...1000]")
    assert names[3:] == ["test_it[short]", "test_it[7]", "test_it[None]"]


def test_cases_of_a_unit_test_and_groups_are_dealt_out_together(pytester: pytest.Pytester) -> None:
    """Mutants: each case is a unit of work of its own; the cases of a slow test stay with one worker, too."""
    config = pytester.parseconfig("--tx", "2*popen", "--dist", "loadgroup")
    dealt = pytest_xdist_make_scheduler(config, None)
    assert dealt is not None
    cases = [f"tests/{room}/test_it.py::test_it[{case}]" for room in ("unit", "simulation") for case in ("a", "b[1]")]
    grouped = [f"{case}@source" for case in cases]
    assert [dealt._split_scope(case) for case in cases] == [*["tests/unit/test_it.py::test_it"] * 2, *cases[2:]]  # noqa: SLF001 - xdist asks for it
    assert {dealt._split_scope(case) for case in grouped} == {"source"}  # noqa: SLF001
    assert pytest_xdist_make_scheduler(pytester.parseconfig("--tx", "2*popen"), None) is None


@pytest.mark.parametrize(
    ("begun", "pending"), [((True, True, True), 0), ((True, True, False), 2), ((True, False, False), 3)]
)
def test_what_a_worker_still_has_to_run_is_counted_from_its_last_unit(
    pytester: pytest.Pytester, begun: tuple[bool, ...], pending: int
) -> None:
    """Mutants: a unit that is half done ends the count; what is done counts."""
    dealt = GroupsAndCases(pytester.parseconfig("--tx", "2*popen"))
    first, second, third = begun
    given = {"a": {"a1": first}, "b": {"b1": first, "b2": second}, "c": {"c1": third, "c2": third}}
    assert dealt._pending_of(given) == pending  # noqa: SLF001


def test_a_run_without_tests_fails(pytester: pytest.Pytester) -> None:
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_test_that_takes_a_seed_runs_once_for_each(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_world(seed): assert seed in range(3)")

    result = pytester.runpytest_inprocess("--seeds", "3")

    result.assert_outcomes(passed=3)


def test_a_test_that_hangs_ends_and_those_after_it_run(
    pytester: pytest.Pytester, request: pytest.FixtureRequest
) -> None:
    """Mutant: no limit in pyproject.toml; one test that waits for what never comes holds up the run for ever."""
    limit = float(request.config.getini("timeout"))
    assert 0 < limit <= BUILD_S
    pytester.makeini(f"{INI}timeout = 1.0\ntimeout_method = signal")
    pytester.makepyfile(
        """
        import asyncio
        import threading

        import pytest

        def test_waits():
            threading.Event().wait()

        @pytest.fixture
        def never():
            threading.Event().wait()

        def test_waits_for_a_fixture(never):
            pass

        def test_awaits():
            asyncio.run(asyncio.Event().wait())

        @pytest.mark.xdist_group("kubernetes")
        def test_may_build_first(request):
            assert request.node.get_closest_marker("timeout").args[0] >= 2400
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*Timeout*1.0*"])


MARKED = """
    import pytest

    pytestmark = pytest.mark.nightly("it takes an hour")

    def test_long(): ...

    @pytest.mark.smoke
    def test_short(): ...
"""


@pytest.mark.parametrize(
    ("words", "passed"), [((), 1), (("--nightly",), 2), (("test_marked.py",), 2), (("test_marked.py::test_long",), 1)]
)
def test_the_gate_leaves_to_the_night_what_is_marked_for_it(
    pytester: pytest.Pytester, words: tuple[str, ...], passed: int
) -> None:
    """Mutants: a module's smoke test is left out with it; a file that somebody names is not run."""
    pytester.makepyfile(test_marked=MARKED)
    result = pytester.runpytest_inprocess(*words)
    result.assert_outcomes(passed=passed, deselected=int(words == ()))


def test_every_mark_of_the_night_says_why() -> None:
    """Mutant: a mark without its reason, which nobody can question later."""
    bare = [
        path.name
        for path in TESTS.rglob("test_*.py")
        if re.search(r"mark\.nightly(?!\(\")", path.read_text()) and path != pathlib.Path(__file__)
    ]
    assert bare == []
