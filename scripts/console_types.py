"""Checks the console's modules by `tsc --checkJs --strict`. `make lint` fails where there is an error.

npm packs TypeScript once, from the registry that it is set to, into the cache of tools; the archive is checked by its
SHA-512 before anything of it is run. Where node, npm or the archive cannot be had the check is skipped, and says why.
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
from pathlib import Path

CONSOLE = Path(__file__).parents[1] / "src/hostler/server/console"
KNOWN = Path(__file__).parents[1] / "build/console.tsbuildinfo"
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


def errors(console: Path, cache: Path, known: Path) -> list[str]:
    """The compiler's findings in the console's modules; `known` keeps those of the last time. Raises SkippedError."""
    options = OPTIONS | {"incremental": True, "tsBuildInfoFile": str(known)}  # what has not changed is not read again
    config = {"compilerOptions": options, "include": [str(console / "*.js")]}
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


def main(arguments: list[str]) -> int:
    """The exit status."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--console", type=Path, default=CONSOLE)
    asked.add_argument("--known", type=Path, default=KNOWN, help="what the last run found, by file")
    given = asked.parse_args(arguments)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostler-tools"
    try:
        found = errors(given.console.resolve(), cache, given.known.resolve())
    except SkippedError as why:
        print(f"console types: skipped: {why}")
        return 0
    except ValueError as why:
        print(f"console types: {why}", file=sys.stderr)
        return 1
    print(*found, f"console types: {len(found)} errors", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
