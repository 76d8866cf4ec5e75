"""Instructions that one decision takes, counted by valgrind: the same on a busy machine as on a quiet one.

The count of a run with many posts less that of one with few, divided by the difference: what starting costs is in both.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from bench.figures import Figures
from bench.incidents import NOW, a_node, controller
from bench.posts import PER_POST, a_post
from hostler.controller.inputs import Observed
from hostler.core.state import events as e

FEW, MANY = 10, 60
SIZES = (200, 2_000)


def decide(nodes: int, posts: int) -> None:
    """Step a controller through so many posts of ten, one a step."""
    which = controller(nodes)
    for number in range(posts):
        batch = a_post(number, nodes)
        name = a_node(number).id
        seen = tuple(replace(one, node=name, boot_id=f"b{number}") for one in batch)
        ready = which.step([Observed(number + 1, name, seen)], NOW + timedelta(seconds=number))
        assert any(isinstance(record.event, e.ConditionRaised) for record in ready.batch.records)
        which.committed()


def counted(nodes: int, posts: int) -> int:
    """Instructions of a whole process that does this."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        code = f"from bench.instructions import decide; decide({nodes}, {posts})"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-c", code]
        fixed = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(tool, check=True, env=fixed, capture_output=True)
        found = re.search(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.MULTILINE)
        assert found is not None, "callgrind writes a summary"
        return int(found[1])


def main() -> Figures | None:
    """Millions of instructions a decided post."""
    figures = Figures("instructions")
    if shutil.which("valgrind") is None:
        figures.add("not counted: valgrind is not installed", 0, "")
        return figures
    for nodes in SIZES:
        each = (counted(nodes, MANY) - counted(nodes, FEW)) / (MANY - FEW)
        figures.add(f"{nodes:,} nodes: a post of {PER_POST} that raises a condition", each / 1e6, "M", "instructions")
    return figures


if __name__ == "__main__":
    print(main())
