"""The suite of active checks under planted faults: check x plant x verdict, as it came on this machine.

`python -m bench checks` runs every check with every fault planted, each in its child, on the CPU; with PyTorch where
`--python` names an interpreter that has it (Debian's, by default). Checks for GPUs alone run on a twin that plays one.
The second table is of others' tools (`tool:` of a site's check), each played by a program that lies. The last part
feeds seeded readings with 1 % noise to a node's own history.
"""

import os
import random
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from hostler_checks.catalogue import CHECKS, TRAIN_MODEL
from hostler_checks.device import TWIN
from hostler_checks.judging import CUSUM_LIMIT, MIN_HISTORY, cusum
from hostler_checks.plants import PERMISSION, PLANTS
from hostler_checks.reference import Golden, Reference, stack_key
from hostler_checks.runner import CheckRunner, Request
from tests.checks.lying_tools import LIES, TOOLS
from tests.checks.lying_tools import request as lying_request
from tests.checks.own_modules import PARAMS, SOUND
from tests.checks.suite_runs import PACKAGE, SMALL, quiet

DEBIAN = "/usr/bin/python3"
SECONDS, DEADLINE_S = 0.1, 20.0
SEEDS, RUNS, STEP_AT = 300, 180, 50
ROWS = {**CHECKS, TRAIN_MODEL.name: TRAIN_MODEL}
SHORT = {"passed": "·", "failed": "FAILED", "suspect": "SUSPECT", "inconclusive": "inconcl."}


def main() -> str:
    """Print the table and what a node's own history finds."""
    os.environ |= {PERMISSION: "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PACKAGE)}
    with tempfile.TemporaryDirectory() as folder:
        python = _with_torch(Path(folder))
        rows = [_row(name, Path(folder), python) for name in ROWS]
        lies = [[tool, *(_of_tool(tool, lie, Path(folder), python) for lie in LIES)] for tool in TOOLS]
    planted = ["none", *PLANTS]
    head = ["check", *planted]
    text = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    text += ["", "· is passed; a site sees `inconcl.` as inconclusive.", ""]
    head = ["tool", *LIES]
    text += ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *lies)]
    for step in (0.0, -0.02, -0.04):
        found, middle = _history(step)
        after = f", after {middle} runs in the middle" if middle is not None and step else ""
        text.append(f"own history, step {step:+.0%}: {found} of {SEEDS} nodes flagged in {RUNS} runs{after}")
    return "\n".join(text)


def _with_torch(folder: Path) -> str:
    """Debian's Python where it has PyTorch, with our one requirement that Debian has not; else this one."""
    if not Path(DEBIAN).exists() or subprocess.run([DEBIAN, "-c", "import torch"], check=False).returncode:
        return sys.executable
    (folder / "array_api_compat").symlink_to(Path(sysconfig.get_path("purelib")) / "array_api_compat")
    os.environ["PYTHONPATH"] = f"{PACKAGE}:{folder}"
    return DEBIAN


def _row(name: str, folder: Path, python: str) -> list[str]:
    reference = _golden(name, folder, python)
    return [name, *(_verdict(name, plant, folder, python, reference) for plant in ("", *PLANTS))]


def _golden(name: str, folder: Path, python: str) -> Reference:
    """The golden of a sound run, as three peers would have given it."""
    found = CheckRunner(python=python, watch=quiet).run([_request(name, "", folder)])[0]
    if not ROWS[name].golden or not found.digest:
        return Reference()
    return Reference({stack_key(name, found.version, found.stack): Golden(name, found.digest, 3, found.stack)})


def _verdict(name: str, plant: str, folder: Path, python: str, reference: Reference) -> str:
    found = CheckRunner(reference, python=python, watch=quiet).run([_request(name, plant, folder)])[0]
    print(f"{name:18}{plant or 'none':12}{found.verdict:14}{found.detail[:100]}", file=sys.stderr)
    return SHORT[found.verdict]


def _of_tool(tool: str, lie: str, folder: Path, python: str) -> str:
    """The verdict on a tool's output, "" where the tool says nothing of the kind."""
    asked = lying_request(tool, lie, folder)
    if asked is None:
        return ""
    found = CheckRunner(python=python, watch=quiet).run([asked])[0]
    print(f"{tool:18}{lie:12}{found.verdict:14}{found.detail[:100]}", file=sys.stderr)
    return SHORT[found.verdict]


def _request(name: str, plant: str, folder: Path) -> Request:
    spec = ROWS[name]
    part = TWIN if spec.gpu_only else "cpu"
    params = {**(spec.gpu if spec.gpu_only else spec.cpu), **SMALL.get(name, {})}
    if name == "nvme_fio":
        params["directory"] = str(folder)
    if spec is TRAIN_MODEL:
        (folder / "net.py").write_text(SOUND)
        params |= {**PARAMS, "model": f"{folder}/net.py:build"}
    deadline_s = 3.0 if plant == "hang" else DEADLINE_S
    return Request(type(spec)(**{**vars(spec), "deadline_s": deadline_s}), part, SECONDS, params, plant=plant)


def _history(step: float) -> tuple[int, int | None]:
    """How many of SEEDS nodes a step flags, and after how many runs in the middle."""
    after = []
    for seed in range(SEEDS):
        rng = random.Random(seed)
        values = [rng.gauss(1.0, 0.01) * (1.0 if run < STEP_AT else 1.0 + step) for run in range(RUNS)]
        counts = range(MIN_HISTORY + 1, RUNS + 1)
        first = next((n for n in counts if cusum(values[:n], higher=True) > CUSUM_LIMIT), None)
        if first is not None:
            after.append(first - STEP_AT)
    return len(after), sorted(after)[len(after) // 2] if after else None
