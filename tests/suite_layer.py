"""A second initial file system for a guest: the suite of active checks, and this site's burn-in of three minutes."""

import importlib.metadata
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = "/opt/hostler-checks/bin/short-burn-in"
PROFILE = """profile: burn_in
about: Three minutes on a machine without GPUs, whose CPU is emulated.
for: 3m
resume: true
stages:
  - name: first_look
    checks:
      - {check: gemm_abft, seconds: 2s, with: {n: 64}}
      - {check: host_memory, seconds: 2s, with: {mib: 16}}
  - name: bits
    share: 0.9
    checks:
      - {check: gemm_abft, seconds: 5s, with: {n: 96}}
      - {check: hbm_pattern, seconds: 5s, with: {mib: 16}}
"""
_START = """#!/usr/bin/python3
import sys
words = ["/opt/hostler-checks/burn_in.yaml" if word == "burn_in" else word for word in sys.argv[1:]]
from hostler_checks.main import main
main(words)
"""


def build_suite_layer(place: Path) -> Path:
    """The layer as a file that a kernel takes behind another; NumPy and PyYAML are the image's own."""
    with tempfile.TemporaryDirectory() as work:
        home = Path(work) / "opt/hostler-checks"
        (home / "bin").mkdir(parents=True)
        site = Path(work) / "usr/lib/python3/dist-packages"  # its children are started by the same interpreter
        shutil.copytree(ROOT / "packages/checks/hostler_checks", site / "hostler_checks")
        for file in importlib.metadata.files("array-api-compat") or ():
            if file.suffix == ".py":
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), site / file)
        (home / "burn_in.yaml").write_text(PROFILE)
        start = Path(work) / PROGRAM.lstrip("/")
        start.write_text(_START)
        start.chmod(0o755)
        packing = "find opt usr -print | cpio -o -H newc --quiet -R 0:0"
        with place.open("wb") as packed:
            subprocess.run(["sh", "-c", packing], cwd=work, stdout=packed, check=True)
    return place
