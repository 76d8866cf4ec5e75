"""The recipe of the idle slots' image and the configuration that names one: pinned, not root, and understood."""

import json
import re
from pathlib import Path

import pytest

from hostler.core.planning.idle_checks import PROFILE
from hostler.core.policy.documents import parse
from hostler_checks import VERSION
from hostler_checks.main import _parser
from tests.checks.suite_runs import PACKAGE

ROOT = PACKAGE.parents[1]
RECIPE = (PACKAGE / "Dockerfile").read_text()


def lines() -> list[str]:
    joined = re.sub(r"\\\n\s*", "", RECIPE)
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def of(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in lines() if line.startswith(f"{word} ")]


def test_nothing_is_fetched_without_a_hash() -> None:
    """The base has no default, so nobody builds on a tag by forgetting it; packages have hashes or are the tree's."""
    assert (of("FROM"), of("ARG")) == (["${BASE}"], ["BASE"])
    (run,) = of("RUN")
    for install in re.findall(r"pip install [^&]*", run):
        assert "--require-hashes" in install or "--no-index" in install
    assert not re.search(r"curl|wget|apt-get|git ", run)
    pins = (PACKAGE / "requirements.txt").read_text()
    named = re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE)
    assert set(named) == {"numpy", "array-api-compat", "pyyaml"}
    locked = (ROOT / "requirements/test.txt").read_text()
    assert all(pin in locked for pin in re.findall(r"^[a-z0-9-]+==\S+", pins, re.MULTILINE))


def test_the_container_is_not_root_and_starts_what_is_built() -> None:
    (user,) = of("USER")
    assert all(int(number) > 0 for number in user.split(":"))
    assert lines().index(f"USER {user}") > max(at for at, line in enumerate(lines()) if line.startswith("RUN"))
    assert f"hostler_checks-{VERSION}-py3-none-any.whl" in RECIPE


def test_its_command_with_the_jobs_argument_is_one_that_the_suite_takes() -> None:
    command, *words = json.loads(of("ENTRYPOINT")[0])
    given = _parser().parse_args([*words, "--profile", PROFILE])
    assert (command, given.profile, given.output) == ("hostler-check", "idle", "plugin")
    assert str(given.message) == "/dev/termination-log"


def test_the_example_of_slots_is_a_configuration() -> None:
    text = (ROOT / "deploy/kubernetes/idle-slots.yaml").read_text()
    policy = (ROOT / "src/hostler/core/policy/default_policy.yaml").read_text()
    fleet, _, slots = text.partition("policy:\n")
    stock = next(line for line in policy.splitlines(keepends=True) if line.startswith("  slots: "))
    read = parse({"policy.yaml": policy.replace(stock, slots), "fleet.yaml": fleet})
    assert read.pools["train"].modes["idle_check"] == "act"
    assert re.search(r"@sha256:[0-9a-f]{64}$", read.policy.slots.image)


@pytest.mark.parametrize("page", ["docs/checks.md"])
def test_the_page_of_checks_has_a_row_for_each(page: str) -> None:
    from hostler_checks.catalogue import CHECKS, TRAIN_MODEL  # noqa: PLC0415
    from hostler_checks.plants import PLANTS  # noqa: PLC0415

    text = (ROOT / page).read_text()
    table = text.partition("| check | none |")[2].partition("\n\n")[0]
    rows = {row.split("|")[1].strip(): row for row in table.splitlines()[2:]}
    assert rows.keys() == {*CHECKS, TRAIN_MODEL.name}
    assert all("FAILED" in row or "SUSPECT" in row for row in rows.values()), "what no plant makes fail does not ship"
    assert all(f" {plant} |" in table.splitlines()[0] for plant in PLANTS)
    assert Path(ROOT / "docs/adr/0061-a-check-is-a-child-and-a-verdict-names-its-basis.md").exists()
