"""Completion in real zsh and fish: commands, values, and names that the server knows."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli_api import FakeApi, page, serving

ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])|[\r\x08]")
TYPED_IN_ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell "PROMPT='> '; autoload -Uz compinit; $1; print READ''Y"
integer tries=0
until [[ $said == *READY* ]] || (( tries++ > 400 )); do
  zpty -r -t shell line && said+=$line
  sleep .05
done
zpty -w -n shell "$2"$'\t'
found=
for n in {1..400}; do
  zpty -r -t shell line && found+=$line
  [[ $found == *$~3* ]] && break
  sleep .05
done
print -r -- "$found"
zpty -d shell
"""
"""Types $2 and a tab into an interactive zsh in which $1 was done; waits for what matches $3, or 20 s."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, completion_script: Callable[[str], str]) -> Path:
    """A folder with the command and its completion scripts."""
    made = tmp_path_factory.mktemp("completion")
    shim = made / "hostler"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m hostler.cli.main "$@"\n')
    shim.chmod(0o755)
    for shell in ("zsh", "fish"):
        if shutil.which(shell):
            (made / f"_{shell}").write_text(completion_script(shell))
    (made / "autoloaded").mkdir()
    if (made / "_zsh").exists():
        shutil.copy(made / "_zsh", made / "autoloaded/_hostler")
    return made


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as fake:
        fake.says("GET /v1/nodes", page({"id": "gpu-1"}, {"id": "gpu-2"}, {"id": "x-gpu-3"}))
        yield fake


def environment(folder: Path, server: str) -> dict[str, str]:
    none, home = str(folder / "none"), str(folder / "home")
    path = f"{folder}:/usr/bin:/bin"
    return {"PATH": path, "HOSTLER_SERVER": server, "HOSTLER_CONFIG": none, "HOME": home, "TERM": "xterm"}


def in_fish(folder: Path, server: str, line: str) -> list[str]:
    if not (fish := shutil.which("fish")):
        pytest.skip("needs fish: apt-get install fish (scripts/system-packages)")
    ask = f"source {folder}/_fish; complete -C '{line}'"
    env = environment(folder, server)
    words = (fish, "--no-config", "-c", ask)
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=env, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return [told.split("\t")[0] for told in done.stdout.splitlines() if told]


def in_zsh(folder: Path, server: str, line: str, until: str, *, autoloaded: bool = False) -> str:
    if not (zsh := shutil.which("zsh")):
        pytest.skip("needs zsh: apt-get install zsh (scripts/system-packages)")
    begin = "compinit -u -D; . $PWD/_zsh"
    if autoloaded:
        begin = "fpath=($PWD/autoloaded $fpath); compinit -u -D"
    words = [zsh, "-f", "-c", TYPED_IN_ZSH, "zsh", begin.replace("$PWD", str(folder)), line, until]
    env = environment(folder, server)
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=env, timeout=90, errors="replace")
    return ESCAPES.sub("", done.stdout)


@pytest.mark.xdist_group("completion")
def test_fish_completes_commands_values_and_names(folder: Path, api: FakeApi) -> None:
    """Mutants: names are asked for at the noun; what begins otherwise is offered; an error lands on the prompt."""
    assert in_fish(folder, api.url, "hostler node des") == ["describe"]
    assert in_fish(folder, api.url, "hostler node list --output js") == ["json", "jsonl"]
    assert not api.asked
    assert in_fish(folder, api.url, "hostler node describe gpu") == ["gpu-1", "gpu-2"]
    assert in_fish(folder, "http://127.0.0.1:9", "hostler node describe gpu") == []


@pytest.mark.xdist_group("completion")
@pytest.mark.parametrize("autoloaded", [False, True])
def test_zsh_completes_commands_and_names(folder: Path, api: FakeApi, autoloaded: bool) -> None:
    """Mutants: the generated function is called by another name; a script in `fpath` completes nothing."""
    assert "describe" in in_zsh(folder, api.url, "hostler node desc", "*describe*", autoloaded=autoloaded)
    assert not api.asked
    told = in_zsh(folder, api.url, "hostler node describe gpu", "*gpu-2*", autoloaded=autoloaded)
    assert re.search(r"gpu-1\s+gpu-2", told)
    assert "x-gpu-3" not in told
