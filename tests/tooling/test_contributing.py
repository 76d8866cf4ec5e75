"""CONTRIBUTING.md's recipes, carried out in a copy of the tree: each works as it stands, in three files at most."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
FILES_MOST = 3

ROW = """    ConditionKind(
        "storage.hot",
        Severity.warning,
        "age",
        "An NVMe drive says that it is too hot.",
        "Airflow in front of the drive's bay.",
        expires_s=DAY_S,
        seen=(LOGGED,),
    ),
"""
MESSAGE = """    MessageRow(
        "nvme_hot", "too hot", rf"{_NVME}controller is too hot", "an NVMe drive is hot", "warning", "storage.hot"
    ),
"""
RULE = '    storage.hot: {remedy: "", dooms: none, note: "the drive slows down by itself"}\n'

SPEC = '        CheckSpec("fans", 1, "fans that stand still", "fans:turning", "1 s", "none", host=True, exact=True),\n'
FANS = '''"""The fans of the host."""

import time

from hostler_checks.answers import Answer
from hostler_checks.work import Work


def turning(work: Work) -> Answer:
    """Look at the fans as long as there is time."""
    for _ in work.rounds():
        time.sleep(0.01)
    return work.answer("2 fans")
'''
IN_PROFILE = "      - {check: fans, seconds: 1s}\n"

REMEDY = """        Recipe(
            "cold_start", (*_EMPTIED, *_POWER_CYCLE, *_BACK), disruptive=True, rules=PlanRules(cures="power_on")
        ),
"""

WIRE = '''"""Reads answers of a rack's power strip."""


def is_on(answer: bytes) -> bool:
    """Whether the outlet is on. Raises ValueError for anything but its two words."""
    return {b"on": True, b"off": False}[answer.strip()] if answer.strip() in (b"on", b"off") else _refused(answer)


def _refused(answer: bytes) -> bool:
    raise ValueError(f"neither on nor off: {answer[:40]!r}")
'''
CLIENT = '''"""Takes the AC power off a machine at its rack's power strip."""

from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.outlets import wire
from hostler.ports import UnreachableError


class OutletDriver:
    """Performs `ac_cycle` in the place of BMCs that cannot."""

    def __init__(self, last: bytes = b"on") -> None:
        self.kinds = frozenset({"ac_cycle"})
        self._last = last

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Switch the outlets off and on."""
        return await self.observe(operation, node)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Look whether they are on. Raises UnreachableError for an answer that is none."""
        try:
            on = wire.is_on(self._last)
        except ValueError as error:
            raise UnreachableError(str(error)) from error
        return Outcome(operation.id, node.id, "done" if on else "not_done")

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing: a cycle lasts seconds."""
'''


@dataclass
class Tree:
    """A copy of the tree, and which of its files a recipe has touched."""

    root: Path
    touched: list[str] = field(default_factory=list)

    def write(self, path: str, text: str) -> None:
        """Make a file; its package too, whose empty `__init__.py` is no work."""
        file = self.root / path
        file.parent.mkdir(exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(text)
        self.touched.append(path)

    def insert(self, path: str, before: str, text: str) -> None:
        """Put text before the first line that begins with `before`."""
        file = self.root / path
        old = file.read_text()
        new = re.sub(rf"(?m)^(?={re.escape(before)})", lambda _: text, old, count=1)
        assert new != old, f"{path} has no line that begins with {before!r}"
        file.write_text(new)
        self.touched.append(path)

    def change(self, path: str, old: str, new: str) -> None:
        file = self.root / path
        assert file.read_text().count(old) == 1, f"{path} has {old!r} not once"
        file.write_text(file.read_text().replace(old, new))
        if path not in self.touched:
            self.touched.append(path)

    def run(self, *words: str, **environment: str) -> str:
        """Run Python on the copy, from the root of the real tree; what it printed."""
        paths = os.pathsep.join(str(p) for p in (self.root / "src", self.root / "packages/checks", ROOT))
        done = subprocess.run(
            (sys.executable, *words), cwd=ROOT, env={**os.environ, "PYTHONPATH": paths, **environment},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout


def condition(tree: Tree) -> None:
    tree.insert("src/hostler/core/tables/conditions/storage.py", "    ConditionKind(", ROW)
    tree.insert("src/hostler/core/policy/default_policy.yaml", "    storage.worn:", RULE)
    tree.insert("src/hostler/core/diagnose/families/storage.py", "    _turned(", MESSAGE)


def check(tree: Tree) -> None:
    tree.insert("packages/checks/hostler_checks/catalogue.py", "        CheckSpec(", SPEC)
    tree.write("packages/checks/hostler_checks/checks/fans.py", FANS)
    tree.insert("packages/checks/hostler_checks/profiles/suspect.yaml", "      - {check: thermal_soak", IN_PROFILE)


def remedy(tree: Tree) -> None:
    tree.insert("src/hostler/core/tables/recipes.py", '        Recipe("firmware_update"', REMEDY)
    tree.change(
        "src/hostler/core/state/configuration.py", '"power_cycle", "triage")', '"power_cycle", "cold_start", "triage")'
    )
    policy = "src/hostler/core/policy/default_policy.yaml"
    tree.insert(policy, "    triage: {attempts", "    cold_start: {attempts: 1, window_s: 604800}\n")
    tree.change(policy, "gpu.missing: {remedy: power_cycle,", "gpu.missing: {remedy: cold_start,")


def driver(tree: Tree) -> None:
    tree.write("src/hostler/drivers/outlets/wire.py", WIRE)
    tree.write("src/hostler/drivers/outlets/client.py", CLIENT)
    compose = "src/hostler/app/compose.py"
    tree.insert(compose, "from hostler.drivers.redfish.", "from hostler.drivers.outlets.client import OutletDriver\n")
    tree.change(compose, "resetter(kubernetes, gate), *booted)", "resetter(kubernetes, gate), OutletDriver(), *booted)")


STEPS: dict[str, Callable[[Tree], None]] = {
    "condition": condition, "check": check, "remedy": remedy, "driver": driver,
}  # fmt: skip


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tree]:
    """One copy in which all the recipes were carried out; each has its own list of files."""
    root = tmp_path_factory.mktemp("tree")
    for folder in ("src", "packages/checks"):
        copytree(ROOT / folder, root / folder, ignore=ignore_patterns("__pycache__", "*.egg-info"))
    trees = {name: Tree(root) for name in STEPS}
    for name, steps in STEPS.items():
        steps(trees[name])
    return trees


pytestmark = [pytest.mark.xdist_group("contributing"), pytest.mark.nightly("packages and sites are built")]  # one copy


@pytest.mark.parametrize("name", STEPS)
def test_a_recipe_names_the_files_that_it_touches_and_they_are_three_at_most(
    followed: dict[str, Tree], name: str
) -> None:
    """Mutant: a step that the page forgets, or one that nobody needs."""
    section = RECIPES.partition(f"## Add a {name}\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)
    touched = sorted(set(followed[name].touched))
    assert len(touched) <= FILES_MOST
    patterns = [re.compile(_pattern(one)) for one in told]
    assert len(patterns) == len(touched)
    assert [one for one in touched if not any(pattern.fullmatch(one) for pattern in patterns)] == []


def _pattern(told: str) -> str:
    """Makes a pattern of a table's first column: NAME is any name, and a folder any file in it."""
    return re.escape(told).replace("NAME", "[a-z_]+") + (r"[a-z_]+\.(py|yaml)" if told.endswith("/") else "")


CONDITION_SEEN = """
from hostler.core.diagnose.kernel_log import decode
from hostler.core.tables.conditions import CONDITIONS
(found,) = decode("nvme nvme0: controller is too hot")
print(found.condition, CONDITIONS[found.condition].severity.name)
"""


def test_a_condition_is_seen_listed_and_answered(followed: dict[str, Tree]) -> None:
    tree = followed["condition"]
    assert tree.run("-c", CONDITION_SEEN).split() == ["storage.hot", "warning"]
    tree.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_diagnose_tables.py")
    assert "`storage.hot`" in tree.run("-c", "from hostler.cli.reference import conditions; print(conditions.page())")


def test_a_check_is_run_and_listed(followed: dict[str, Tree], tmp_path: Path) -> None:
    tree = followed["check"]
    stage = "{name: host, share: 1, checks: [{check: fans, seconds: 1s}]}"
    (tmp_path / "own.yaml").write_text(f"profile: own\nabout: One check.\nfor: 1s\nstages:\n  - {stage}\n")
    given = ("run", "--profile", str(tmp_path / "own.yaml"), "--state", str(tmp_path / "s"), "--device", "cpu")
    report = json.loads(tree.run("-m", "hostler_checks.main", *given, "-o", "json"))
    assert [(one["check"], one["verdict"]) for one in report["latest"]] == [("fans", "passed")]
    assert "fans that stand still" in tree.run("-m", "hostler_checks.main", "list")
    assert "fans" in tree.run("-c", "from hostler_checks.profiles import load; print(load('suspect'))")


REMEDY_PLANNED = """
from importlib import resources
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.policy.documents import parse
from hostler.core.policy.remedy_escalation import need_of, rank
from hostler.core.tables.recipes import RECIPES
from msgspec.structs import replace
from tests.kit import NOW, a_node
from tests.unit.planning.values import a_condition, a_context
text = resources.files("hostler.core.policy").joinpath("default_policy.yaml").read_text("utf-8")
policy = parse({"default_policy.yaml": text}).policy
node = replace(a_node("a"), conditions=(a_condition("gpu.missing"),))
need = need_of(policy, node, NOW)
frame = Frame(need.act_class, need.causes, need.rule, "", need.remedy)
plan = freeze(a_context(node), node, RECIPES[need.remedy], frame)
print(need.remedy, rank("power_cycle") < rank(need.remedy) < rank("triage"), *(step.operation for step in plan.steps))
"""


def test_a_remedy_is_chosen_and_planned(followed: dict[str, Tree]) -> None:
    name, between, *steps = followed["remedy"].run("-c", REMEDY_PLANNED).split()
    assert (name, between) == ("cold_start", "True")
    assert steps[:2] == ["cordon", "drain"]
    assert steps[-2:] == ["run_checks", "uncordon"]


DRIVER_ASKED = """
import asyncio
from hostler.app import compose
from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import OperationDriver, UnreachableError
from hostler.runtime.performers import Wiring, performers
from tests.kit import a_node
from tests.unit.planning.values import an_operation
ours: OperationDriver = compose.OutletDriver()
redfish = RedfishDriver(None, None)
found = performers(Wiring((redfish,), (ours,)))
assert found["ac_cycle"] is ours and found["power_on"] is redfish
try:
    performers(Wiring((redfish, ours)))
    raise SystemExit("two drivers of one kind were taken")
except InvalidInputError:
    pass
print(asyncio.run(ours.perform(an_operation("ac_cycle"), a_node("a"))).result)
try:
    asyncio.run(compose.OutletDriver(b"{").perform(an_operation("ac_cycle"), a_node("a")))
except UnreachableError as error:
    print(error)
"""


def test_a_driver_performs_its_kind_and_breaks_no_contract(followed: dict[str, Tree]) -> None:
    tree = followed["driver"]
    assert tree.run("-c", DRIVER_ASKED).splitlines() == ["done", "neither on nor off: b'{'"]
    tree.run("-c", "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache', '--no-logo'])")
