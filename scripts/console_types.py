"""Checks the console's modules by `tsc --checkJs --strict`. `make lint` fails where a file has more errors than stand.

`python scripts/console_types.py` prints each file with errors beside what stands (`scripts/console_types.toml`); a file
that is not listed there has none. `--list FILE` prints the errors of one file, `--tighten` writes what was counted,
which only ever shrinks. npm packs TypeScript once, from the registry that it is set to, into the cache of tools; the
archive is checked by its SHA-512 before anything of it is run. Where node, npm or the archive cannot be had the check
is skipped, and says why.
"""

import argparse
import base64
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

CONSOLE = Path(__file__).parents[1] / "src/hostler/server/console"
STANDS = Path(__file__).with_suffix(".toml")
VERSION = "5.9.3"
INTEGRITY = "jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw=="
"""SHA-512 of the package's archive, in base64, as npm's own lock files write it."""
FETCH_S, CHECK_S = 120.0, 300.0
ERROR = re.compile(r"^(?P<file>[^(\s][^(]*)\(\d+,\d+\): error TS\d+: ")
OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "strict": True,
    "noEmit": True,
    "target": "es2023",
    "module": "esnext",
    "moduleResolution": "bundler",
    "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
    "types": [],
}


class SkippedError(Exception):
    """The check cannot be made on this machine; the text says what is missing."""


def node() -> str:
    """A node that runs TypeScript. Raises SkippedError."""
    if found := shutil.which("node"):
        return found
    playwright = importlib.util.find_spec("playwright")
    for folder in playwright.submodule_search_locations or () if playwright else ():
        if (bundled := Path(folder) / "driver/node").is_file():
            return str(bundled)
    raise SkippedError("no node: install nodejs, or Playwright, which brings one")


def compiler(cache: Path, integrity: str = INTEGRITY) -> Path:
    """The compiler's script, fetched where it is not in the cache yet. Raises SkippedError, and ValueError on bytes."""
    place = cache / f"typescript-{VERSION}"
    script = place / "package/lib/tsc.js"
    if script.is_file():
        return script
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as fresh:
        data = packed(Path(fresh))
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != integrity:
            raise ValueError(f"npm gave other bytes of TypeScript {VERSION} than the pinned ones: nothing is run")
        whole = Path(fresh, "whole")
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(whole, filter="data")
        if not place.exists():
            whole.rename(place)
    return script


def packed(folder: Path) -> bytes:
    """TypeScript's archive as npm packs it into the folder. Raises SkippedError."""
    npm = shutil.which("npm")
    if npm is None:
        raise SkippedError(f"no npm to fetch TypeScript {VERSION} with: install npm")
    argv = [npm, "pack", f"typescript@{VERSION}", "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SkippedError(f"npm has not packed TypeScript {VERSION} within {FETCH_S:g} s") from error
    archive = folder / f"typescript-{VERSION}.tgz"
    if done.returncode or not archive.is_file():
        raise SkippedError(f"npm cannot pack TypeScript {VERSION}: {done.stderr.strip()[-300:]}")
    return archive.read_bytes()


def errors(console: Path, cache: Path) -> list[str]:
    """The compiler's findings in the console's modules. Raises SkippedError."""
    config = {"compilerOptions": OPTIONS, "include": [str(console / "*.js")]}
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "tsconfig.json")
        project.write_text(json.dumps(config))
        argv = [node(), str(compiler(cache)), "-p", str(project), "--pretty", "false"]
        done = subprocess.run(argv, cwd=console, capture_output=True, text=True, timeout=CHECK_S, check=False)
    lines = done.stdout.splitlines()
    found = [line for line in lines if ERROR.match(line)]
    if done.returncode and not found:
        raise ValueError(f"tsc ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return found


def counted(found: list[str]) -> dict[str, int]:
    """Errors by file."""
    names = (match["file"].rpartition("/")[2] for line in found if (match := ERROR.match(line)))
    return dict(sorted(Counter(names).items()))


def grown(now: Mapping[str, int], stands: Mapping[str, int]) -> list[str]:
    """Files that have more errors than stand."""
    return [
        f"{name}: {count}, at most {stands.get(name, 0)}" for name, count in now.items() if count > stands.get(name, 0)
    ]


def main(arguments: list[str]) -> int:
    """The exit status."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--list", metavar="FILE", help="print the errors of this file")
    asked.add_argument("--tighten", action="store_true", help="write what was counted, where it is less")
    asked.add_argument("--console", type=Path, default=CONSOLE)
    asked.add_argument("--stands", type=Path, default=STANDS)
    given = asked.parse_args(arguments)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostler-tools"
    try:
        found = errors(given.console, cache)
    except SkippedError as why:
        print(f"console types: skipped: {why}")
        return 0
    except ValueError as why:
        print(f"console types: {why}", file=sys.stderr)
        return 1
    if given.list:
        print("\n".join(line for line in found if given.list in line.partition("(")[0]))
    now, stands = counted(found), tomllib.loads(given.stands.read_text())["errors"]
    more = grown(now, stands)
    if given.tighten and not more:
        lines = (f'"{name}" = {count}' for name, count in now.items())
        head = "# Errors of `tsc --checkJs --strict` by file; one that is not here has none. They only shrink.\n"
        given.stands.write_text(f"{head}[errors]\n" + "".join(f"{line}\n" for line in lines))
    print(f"console types: {sum(now.values())} errors in {len(now)} files, {sum(stands.values())} stand")
    if more:
        print(f"grown, see --list FILE: {'; '.join(more)}", file=sys.stderr)
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
