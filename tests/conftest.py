"""Sets up every test run: seeds for simulated worlds, Hypothesis's profile, and skips counted, not hidden.

A test that skips says what is missing and how to get it: `pytest.skip("no opensm: apt-get install opensm")`.
Where CI=true a skip fails the run, unless its reason starts with "hardware:", which says that no package can
bring what is missing.
"""

import os
from collections import Counter

import hypothesis
import pytest

pytest_plugins = ["tests.controlplane.plane", "tests.postgres", "tests.slurm"]

HARDWARE = "hardware:"
DEFAULT_SEEDS = 20

hypothesis.settings.register_profile("here", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        default=DEFAULT_SEEDS,
        metavar="N",
        help=f"run each test that takes a `seed` with the seeds 0 to N-1 (default {DEFAULT_SEEDS})",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    already_given = any("seed" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "seed" in metafunc.fixturenames and not already_given:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")), ids=lambda seed: f"seed={seed}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails a CI run, on the process that reports it, for skips that CI could have avoided."""
    if exitstatus == pytest.ExitCode.OK and avoidable(skips(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
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
