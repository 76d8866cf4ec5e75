"""`hostler-check` as a stranger meets it: what it refuses and in which words, and the schema of its report."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hostler_checks.main import SCHEMA
from hostler_checks.plants import PERMISSION
from tests.checks.suite_runs import argv, env

PROFILE = """profile: burn_in
for: 1s
resume: true
stages:
  - {name: bits, share: 0.5, checks: [{check: gemm_abft, seconds: 0.2s, with: {n: 64}}]}
  - {name: links, checks: [{check: launch_latency, seconds: 0.2s}, {check: pcie_bandwidth, seconds: 0.1s}]}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(PROFILE)
    return path


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system without room."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("hardware: only root may mount a small file system to fill")
    (folder / "state").mkdir()
    (folder / "state/lock").write_text("0")  # its page is the one that is left
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            pass
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def said(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`hostler-check` with these words."""
    program = [sys.executable, "-m", "hostler_checks.main"]
    return subprocess.run([*program, *words], capture_output=True, text=True, check=False, env=env(**variables))


def report_of(folder: Path, *options: str, **variables: str) -> dict[str, Any]:
    done = subprocess.run(argv(folder, *options), capture_output=True, text=True, check=False, env=env(**variables))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def holds(report: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(report)


def test_the_schema_is_printed_and_is_one() -> None:
    schema = json.loads(said("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    result = schema["$defs"]["result"]
    for one in (schema, result, schema["properties"]["stages"]["items"]):
        assert set(one["required"]) == set(one["properties"]), "a field that is documented is there"


def test_reports_of_every_verdict_are_as_the_schema_says(small: Path, tmp_path: Path) -> None:
    """Passed, ended early, called off, refused. Mutant: a field more that no page tells of."""
    passed = report_of(tmp_path / "a", "--profile", str(small))
    failed = report_of(tmp_path / "b", "--profile", str(small), "--plant", "bit_flip", **{PERMISSION: "1"})
    broken = report_of(tmp_path / "c", "--profile", str(small), "--plant", "nan", **{PERMISSION: "1"})
    (tmp_path / "d").touch()
    refused = report_of(tmp_path / "d", "--profile", str(small))
    reports = (passed, failed, broken, refused)
    assert [one["verdict"] for one in reports] == ["passed", "failed", "inconclusive", "inconclusive"]
    for one in reports:
        holds(one)
    holds(json.loads((tmp_path / "a/burn_in.report.json").read_text()))
    with pytest.raises(jsonschema.ValidationError):
        holds({**passed, "more": 1})


def test_called_off_in_the_middle_it_says_so_in_a_report_of_the_same_kind(small: Path, tmp_path: Path) -> None:
    runner = subprocess.Popen(
        argv(tmp_path / "s", "--profile", str(small), "--for", "60s"), stdout=subprocess.PIPE, env=env()
    )
    progress = tmp_path / "s/progress.json"
    while not progress.exists() and runner.poll() is None:
        pass
    runner.send_signal(signal.SIGTERM)
    output, _ = runner.communicate()
    report = json.loads(output)
    holds(report)
    assert (runner.returncode, report["verdict"]) == (3, "inconclusive")
    assert report["detail"].startswith("called off during ")


def test_wrong_bits_convict_though_the_disk_is_full(small: Path, full_disk: Path) -> None:
    """Mutant: what could not be kept is inconclusive, whatever it was, and a bad node is never named."""
    report = report_of(full_disk / "state", "--profile", str(small), "--plant", "bit_flip", **{PERMISSION: "1"})
    assert (report["verdict"], report["detail"].startswith("gemm_abft on cpu: ")) == ("failed", True)
    assert any("could not be kept" in note and "No space left" in note for note in report["notes"]), report["notes"]
    holds(report)


def test_a_full_disk_passes_nobody(small: Path, full_disk: Path) -> None:
    report = report_of(full_disk / "state", "--profile", str(small))
    assert (report["verdict"], "No space left" in report["detail"]) == ("inconclusive", True)


@pytest.mark.parametrize("place", ["a file", "under a file"])
def test_a_state_that_cannot_be_kept_runs_nothing_and_says_what_to_do(small: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").touch()
    folder = tmp_path / "taken" if place == "a file" else tmp_path / "taken/below"
    words = ["run", "--state", str(folder), "--device", "cpu", "--profile", str(small)]
    done = said(*words)
    assert done.returncode == 3
    assert "nothing was run, as nothing can be kept in" in done.stdout
    assert "--state" in done.stdout


@pytest.mark.parametrize(
    ("words", "told_so"),
    [
        (("verify", "{wrong}"), "{wrong} is no report of hostler-check: "),
        (("verify", "{none}"), "{none}: No such file or directory"),
        (("learn", "{wrong}", "--out", "{none}"), "{wrong} is no report of hostler-check: "),
        (("blame", "{wrong}", "{wrong}", "--reference", "{wrong}"), "{wrong} is no reference of hostler-check: "),
        (("run", "--state", "{state}", "--reference", "{wrong}"), "{wrong} is no reference of hostler-check: "),
        (("run", "--state", "{state}", "--site", "{none}"), "--site {none}: no such folder"),
        (("run", "--state", "{state}", "--profile", "dusk"), "a profile is one of gate, idle, burn_in, suspect"),
        (("run", "--state", "{state}", "--wrong"), "unrecognized arguments: --wrong"),
        (("meet", "{none}"), "{none}: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said_with_its_name(tmp_path: Path, words: tuple[str, ...], told_so: str) -> None:
    """Exit 3, one line, and no error of a library. Mutants: an errno; a column of JSON without its file."""
    names = {"wrong": str(tmp_path / "wrong"), "none": str(tmp_path / "none"), "state": str(tmp_path / "s")}
    (tmp_path / "wrong").write_text("rubbish")
    done = said(*(word.format(**names) for word in words))
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, told_so.format(**names) in last) == (3, True), done.stderr
    assert "Errno" not in last
    assert not (tmp_path / "s").exists()


def test_a_library_that_is_missing_is_named_with_its_python(small: Path, tmp_path: Path) -> None:
    """As Debian's Python has PyTorch and no array-api-compat. Mutant: "it broke off: ModuleNotFoundError"."""
    (tmp_path / "sitecustomize.py").write_text('import sys\nsys.modules["array_api_compat"] = None\n')
    where = f"{tmp_path}:{env()['PYTHONPATH']}"
    report = report_of(tmp_path / "s", "--profile", str(small), PYTHONPATH=where)
    assert report["verdict"] == "inconclusive"
    assert f"array_api_compat is missing for {sys.executable}" in report["latest"][0]["detail"], report["latest"][0]


def test_who_reads_a_few_lines_is_told_of_no_error() -> None:
    """`hostler-check list | head -1`. Mutant: the broken pipe is an error."""
    listing = subprocess.Popen(
        [sys.executable, "-m", "hostler_checks.main", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env(PYTHONUNBUFFERED="1"),
    )
    assert listing.stdout is not None
    assert listing.stderr is not None
    listing.stdout.readline()
    listing.stdout.close()
    assert listing.stderr.read() == b""
    listing.wait()
    listing.stderr.close()


def test_the_help_of_run_tells_exit_codes_and_where_results_are() -> None:
    text = " ".join(said("run", "--help").stdout.split())
    assert "0 passed, 2 failed or suspect, 3 inconclusive" in text
    assert "PROFILE.report.json" in text
