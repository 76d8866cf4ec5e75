"""Types of the console's modules: an error is found, and what cannot be had is said."""

import os
from pathlib import Path

import pytest

from scripts import console_types
from scripts.console_types import SkippedError, compiler, main

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostler-tools"


def have() -> str:
    """The reason why the check cannot be made here, "" where it can."""
    try:
        console_types.node()
        compiler(CACHE)
    except SkippedError as why:
        return str(why)
    return ""


needs_typescript = pytest.mark.skipif(bool(have()), reason=have() or "-")


def modules(folder: Path, text: str) -> list[str]:
    """Arguments for a console of one module."""
    (folder / "page.js").write_text(text)
    return ["--console", str(folder), "--known", str(folder / "known")]


@needs_typescript
@pytest.mark.nightly("checks all types of the console again")
def test_a_wrong_type_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: without --strict the parameter of any type passes; without checkJs all of it does.

    What is known of the last time is told again: an error stays one until its file is mended.
    """
    good = "/** @param {number} one */\nexport const twice = (one) => one * 2;\ntwice(2);\n"
    assert main(modules(tmp_path, good)) == 0
    assert capsys.readouterr().out == "console types: 0 errors\n"
    wrong = modules(tmp_path, good.replace("twice(2)", "twice('2')"))
    assert [main(wrong) for _ in range(2)] == [1, 1]
    assert main(modules(tmp_path, "export const twice = (one) => one;\n")) == 1
    assert "page.js(1,23): error TS7006" in capsys.readouterr().out


def npm(folder: Path, script: str) -> str:
    """A PATH on which npm is this script, and nothing else is there but the shell's own."""
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)
    return f"{folder}:/bin"


@pytest.mark.parametrize(
    ("script", "said"),
    [("echo 'no such host' >&2; exit 1", "no such host"), ("exit 0", "cannot pack"), ("exec sleep 60", "within 0.2 s")],
)
def test_without_the_package_the_check_is_skipped_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    """Mutants: a machine whose npm reaches no registry cannot lint; an npm that hangs holds the check up."""
    monkeypatch.setenv("PATH", npm(tmp_path, script))
    monkeypatch.setattr(console_types, "FETCH_S", 0.2 if "sleep" in script else 60.0)
    with pytest.raises(SkippedError, match=said):
        compiler(tmp_path / "cache")


def test_a_machine_without_npm_or_node_skips_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main([]) == 0
    assert "skipped: no np" in capsys.readouterr().out.replace("skipped: no node", "skipped: no npm")


def test_other_bytes_than_the_pinned_ones_are_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: what npm gave is unpacked before it is looked at."""
    monkeypatch.setenv("PATH", npm(tmp_path, f"cd {tmp_path}/cache/tmp*/; echo evil > typescript-5.9.3.tgz"))
    with pytest.raises(ValueError, match="other bytes"):
        compiler(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
