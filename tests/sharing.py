"""Deals test files out to processes that run beside each other, before anything is collected.

Each worker of xdist imports and collects every test, and sends each report on: here a process has its own files alone.
"""

import tomllib
from functools import cache
from pathlib import Path

MEASURED = Path(__file__).with_suffix(".toml")
"""Folder and name of a test file → CPU seconds of its tests, of those that take more than half a second."""
OTHERS_S = 0.1
"""Cost of any other file."""


def in_share(file: Path, folders: tuple[Path, ...], share: str) -> bool:
    """Whether a file below the run's folders is in the share ("1/2": the first of two); every file is in one."""
    number, _, shares = share.partition("/")
    if not 1 <= int(number) <= int(shares):
        raise ValueError(f"--share {share}: the first of two is 1/2")
    return dealt(folders, int(shares)).get(file, 1) == int(number)


@cache
def dealt(folders: tuple[Path, ...], shares: int) -> dict[Path, int]:
    """Each test file's share: the dearest first, to whom has the least. It is the same in every process."""
    costs = tomllib.loads(MEASURED.read_text("utf-8"))
    found_files = (file for folder in folders for file in folder.rglob("test_*.py"))
    files = {file: costs.get(f"{file.parent.name}/{file.name}", OTHERS_S) for file in found_files}
    loads, found = [0.0] * shares, {}
    for file in sorted(files, key=lambda file: (-files[file], file)):
        least = loads.index(min(loads))
        loads[least] += files[file]
        found[file] = least + 1
    return found
