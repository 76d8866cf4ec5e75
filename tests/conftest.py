"""Sets up every test run: seeds for simulated worlds, Hypothesis's profile, and skips counted, not hidden.

A test that skips says what is missing and how to get it: `pytest.skip("no opensm: apt-get install opensm")`.
Where CI=true a skip fails the run, unless its reason starts with "hardware:", which says that no package can
bring what is missing.
"""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from docstring_parser import attrdoc

from tests.drawing import NIGHTLY
from tests.sharing import in_share
from tests.simulation.fresh import first_of_fresh

if TYPE_CHECKING:
    from tests.dealing import GroupsAndCases

pytest_plugins = ["tests.completion_scripts", "tests.controlplane.plane", "tests.postgres", "tests.slurm"]

HARDWARE = "hardware:"
BUILDERS = "kubernetes"
"""The group (`xdist_group`) whose first test may build its programs from source."""
BUILD_S = 3_000
COLLECTED = (10_000, 10, 10)
"""Thresholds of the garbage collector: by Python's own (700, 10, 10) a tenth of the run's CPU is its passes."""
ID_MOST_CHARS = 60
"""Of a longer text among a test's parameters its id has the beginning alone."""
SMOKE = "smoke"
"""Mark of what the gate runs though its module is the nightly's."""
DEFAULT_SEEDS = 6
DEFAULT_FRESH = 0
"""Simulated worlds that nobody has run before: the gate draws none, so that what a change did is all that it judges;
`make soak` draws hundreds."""

PATIENT = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True)
"""A loaded machine draws slowly: that is no fault of a test."""
hypothesis.settings.register_profile("here", PATIENT, max_examples=25)
hypothesis.settings.register_profile("ci", PATIENT, max_examples=25, derandomize=True)
hypothesis.settings.register_profile("quick", PATIENT, max_examples=20)
hypothesis.settings.register_profile("nightly", PATIENT, max_examples=200)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        default=DEFAULT_SEEDS,
        metavar="N",
        help=f"run each test that takes a `seed` with the seeds 0 to N-1 (default {DEFAULT_SEEDS})",
    )
    parser.addoption(
        "--fresh",
        type=int,
        default=DEFAULT_FRESH,
        metavar="N",
        help=f"run the test that takes a `fresh_seed` with N seeds that nobody has run (default {DEFAULT_FRESH})",
    )
    parser.addoption(
        "--fresh-first", type=int, default=0, metavar="SEED", help="the first of the fresh seeds; 0 draws it (default)"
    )
    parser.addoption(
        "--nightly", action="store_true", help="run what is marked nightly too, and have Hypothesis draw more, anew"
    )
    parser.addoption(
        "--share", metavar="K/N", help="run only the test files of the K-th of N processes, which need no xdist"
    )
    parser.addoption(
        "--rewrite-transcripts", action="store_true", help="write tests/transcripts/*.txt anew; review the diff"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw the run's fresh seeds, once: workers are given what the process that started them has drawn."""
    config.addinivalue_line("markers", "xdist_group(name): one worker runs these tests, as xdist has it")
    config.addinivalue_line("markers", f"{NIGHTLY}(why): too long for the gate; runs with --nightly, or named by file")
    config.addinivalue_line("markers", f"{SMOKE}: of a module that is marked {NIGHTLY}, what the gate runs")
    if config.option.nightly:
        hypothesis.settings.load_profile(NIGHTLY)
    told = getattr(config, "workerinput", {}).get("fresh_first", 0)
    config.option.fresh_first = told or config.option.fresh_first or first_of_fresh()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out, before it is imported, a file of another process's share."""
    if config.option.share is None or not collection_path.is_file():
        return None
    folders = tuple(Path(config.invocation_params.dir, one) for one in config.args)
    return None if in_share(collection_path, folders, config.option.share) else True


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["fresh_first"] = node.config.option.fresh_first


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "GroupsAndCases | None":
    from tests.dealing import GroupsAndCases  # noqa: PLC0415 - a run without xdist does without

    return GroupsAndCases(config, log) if config.getoption("dist") == "loadgroup" else None


@contextmanager
def read_docstrings_once() -> Iterator[None]:
    """Help reads the source of a command's options from disk for each of its parameters; here, once."""
    read = attrdoc.AttributeDocstrings.get_attr_docs
    known = cache(lambda component: read(attrdoc.AttributeDocstrings(), component))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attrdoc.AttributeDocstrings, "get_attr_docs", lambda _self, component: known(component))
        yield


@pytest.fixture(scope="module")
def docstrings_read_once() -> Iterator[None]:
    """Docstrings of options are read once a module."""
    with read_docstrings_once():
        yield


def pytest_report_header(config: pytest.Config) -> str:
    first, count = config.option.fresh_first, config.option.fresh
    if not count:
        return "fresh worlds: none; --fresh N draws some"
    return f"fresh worlds: {count} from seed {first}; the same again: --fresh {count} --fresh-first {first}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    already_given = any("seed" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "seed" in metafunc.fixturenames and not already_given:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")), ids=lambda seed: f"seed={seed}")
    if "fresh_seed" in metafunc.fixturenames:
        first = metafunc.config.option.fresh_first
        seeds = range(first, first + metafunc.config.option.fresh)
        metafunc.parametrize("fresh_seed", seeds, ids=lambda seed: f"seed={seed}")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Cuts long texts short: ids are compared, kept, and sent between processes with every report."""
    if not isinstance(val, str | bytes) or len(val) <= ID_MOST_CHARS:
        return None
    text = val[:ID_MOST_CHARS].decode("latin-1") if isinstance(val, bytes) else val[:ID_MOST_CHARS]
    return f"{text.encode('unicode_escape').decode('ascii')}...{len(val)}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives whoever may have to build first the time for it; every other test has the limit of pyproject.toml.

    Tests that share what their module makes once stay together: each worker would make it anew. A test of fresh worlds
    is left out where none are drawn: without its parameter pytest would count it as skipped.
    """
    runs_nightly = config.option.nightly or all(Path(arg.partition("::")[0]).is_file() for arg in config.args)
    if left_out := [item for item in items if is_left_out(item, config.option.fresh, runs_nightly=runs_nightly)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item, config.option.fresh, runs_nightly=runs_nightly)]
    for item in items:
        if shares(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        group = item.get_closest_marker("xdist_group")
        if group is not None and group.args[0] == BUILDERS and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(BUILD_S))


def is_left_out(item: pytest.Item, fresh: int, *, runs_nightly: bool) -> bool:
    """Whether this run leaves the test out: it draws no fresh worlds, or the test is the nightly's."""
    if not fresh and "fresh_seed" in getattr(item, "fixturenames", ()):
        return True
    return not runs_nightly and item.get_closest_marker(NIGHTLY) is not None and item.get_closest_marker(SMOKE) is None


def shares(item: pytest.Item) -> bool:
    """Whether it takes a fixture that its own module makes once."""
    if not isinstance(item, pytest.Function):
        return False
    taken = item._fixtureinfo.name2fixturedefs.values()  # noqa: SLF001 - pytest tells nowhere else
    return any(one[-1].scope == "module" and one[-1].baseid.endswith(".py") for one in taken if one)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keeps what was imported out of the garbage collector's passes: it stays to the end, and passes are few."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTED)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails a CI run, on the process that reports it, for skips that CI could have avoided."""
    if exitstatus == pytest.ExitCode.OK and avoidable(skips(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if noted := notes(terminalreporter):
        terminalreporter.section("notes")
        for note in noted:
            terminalreporter.line(note)
    skipped = skips(config)
    if not skipped:
        return
    terminalreporter.section(f"skipped: {skipped.total()}")
    for reason, times in sorted(skipped.items()):
        terminalreporter.line(f"{times:>5} × {reason}")
    if failing := avoidable(skipped):
        terminalreporter.line(
            f"CI has every component that a package brings: {failing.total()} skipped without '{HARDWARE}'.",
            red=True,
        )


def notes(reporter: pytest.TerminalReporter) -> list[str]:
    """Returns the notes that passed tests recorded (`record_property("note", …)`), sorted."""
    told = (report.user_properties for report in reporter.stats.get("passed", []) if report.when == "call")
    return sorted(str(value) for properties in told for name, value in properties if name == "note")


def skips(config: pytest.Config) -> Counter[str]:
    """How often each reason to skip was given; empty on a worker process, which reports nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return Counter()
    return Counter(reason_of(report) for report in reporter.stats.get("skipped", []))


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def avoidable(skipped: Counter[str]) -> Counter[str]:
    """The skips that fail this run: none outside CI, and none that only special hardware would end."""
    if os.environ.get("CI") != "true":
        return Counter()
    return Counter({reason: times for reason, times in skipped.items() if not reason.startswith(HARDWARE)})
