"""Tells what runs beside our own code: its licences, its list as a CycloneDX document, and what is known against it.

`python scripts/supply_chain.py sbom FILE` writes the list, of a fresh environment made from the lock and of the modules
that the console carries. `audit` asks whether a locked version has a known vulnerability; where nobody answers that, it
says "skipped" and not "none". `licences` prints the table of docs/supply-chain.md.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.markers import Marker

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "requirements/runtime.txt"
VENDORED = ROOT / "src/hostler/server/console/vendor/VENDOR.md"
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]+))?", re.MULTILINE)
_VENDORED_ROW = re.compile(
    r"^\| \S+\.js \| (\S+) \| (\S+) \| \S+ \| (\S+) [^|]*\| ([0-9a-f]{64}|as above) \|", re.MULTILINE
)

CLASSIFIED = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: BSD License": "BSD",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
SPELT = {"MIT License": "MIT", "Apache 2.0": "Apache-2.0", "The MIT License (MIT)": "MIT", "BSD": "BSD"}
"""First lines of licences, of packages without an SPDX expression or a classifier."""


def pinned(lock: Path) -> dict[str, str]:
    """Name → version of what a lock installs on this machine."""
    found = _PINNED.findall(lock.read_text())
    return {name: version for name, version, marker in found if not marker or Marker(marker.strip()).evaluate()}


def licence_of(name: str) -> str:
    """The licence that an installed package declares, as an SPDX expression ("BSD" where it says no more).

    Raises LookupError where it declares none that is understood.
    """
    told = importlib.metadata.metadata(name)
    for expression in told.get_all("License-Expression") or ():
        return str(expression)
    line = "".join(told.get_all("License") or ()).strip().partition("\n")[0].strip()
    if line and (line in SPELT or " " not in line or " OR " in line):
        return SPELT.get(line, line)
    classes = sorted({CLASSIFIED[c] for c in told.get_all("Classifier") or () if c in CLASSIFIED})
    if not classes:
        raise LookupError(
            f"{name} declares no licence that is understood: {line!r}; look at it, and add its words here"
        )
    return " OR ".join(classes)


def licences() -> dict[str, str]:
    """Licence of each package of the runtime environment, and of each module that the console carries."""
    carried = {name: licence for name, _, licence, _ in _VENDORED_ROW.findall(VENDORED.read_text())}
    return {**{name: licence_of(name) for name in pinned(RUNTIME)}, **carried}


def rows(found: dict[str, str]) -> Iterator[str]:
    """Lines of the table: a licence, and who is under it."""
    yield "| licence | packages |"
    yield "|---|---|"
    for licence in sorted(set(found.values())):
        yield f"| {licence} | {', '.join(sorted(name for name in found if found[name] == licence))} |"


def sbom(python: str) -> dict[str, Any]:
    """The list of what is installed for `python`, and of what the console carries, as a CycloneDX document."""
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
    document = json.loads(_run(*tool, "--output-reproducible", "--no-validate", "--sv", "1.6", python))
    document["components"] += list(_carried())
    return dict(document)


def invalid(document: dict[str, Any]) -> str:
    """Tells what is wrong with a document by the schema of CycloneDX 1.6, "" where nothing is."""
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 - the other commands do without
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document))
    return str(wrong or "")


def sbom_of_lock() -> dict[str, Any]:
    """The list of a fresh environment, in which nothing is but what the lock says."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        _run(sys.executable, "-m", "venv", "--without-pip", folder)
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet"]
        _run(*pip, "install", "--no-deps", "--require-hashes", "-r", str(RUNTIME))
        return sbom(python)


def _carried() -> Iterator[dict[str, Any]]:
    """The modules of the console: once each, with the sum of the package that they were taken from."""
    for name, version, licence, sha256 in _VENDORED_ROW.findall(VENDORED.read_text()):
        if sha256 != "as above":
            yield {
                "type": "library",
                "bom-ref": f"{name}@{version}",
                "name": name,
                "version": version,
                "purl": f"pkg:npm/{name.replace('@', '%40')}@{version}",
                "licenses": [{"license": {"id": licence}}],
                "hashes": [{"alg": "SHA-256", "content": sha256}],
            }


def judged(report: dict[str, Any]) -> tuple[int, str]:
    """Exit status and sentence for what pip-audit reports: 1 where a vulnerability is known.

    A package that nobody could be asked about is neither sound nor vulnerable, and is counted apart.
    """
    all_of_them = report["dependencies"]
    asked = [one for one in all_of_them if "skip_reason" not in one]
    known = [f"{one['name']} {one['version']}: {v['id']}" for one in asked for v in one["vulns"]]
    told = f"{len(asked)} of {len(all_of_them)} locked packages could be asked about"
    if known:
        return 1, f"{told}; known vulnerabilities: {'; '.join(known)}"
    if not asked:
        return 0, f"skipped: {told}; the source of vulnerabilities does not answer here"
    return 0, f"{told}; none of those has a known vulnerability"


def audit() -> tuple[int, str]:
    """Tells what is known against the locked runtime environment."""
    tool = [sys.executable, "-m", "pip_audit", "--requirement", str(RUNTIME), "--require-hashes", "--disable-pip"]
    done = subprocess.run(
        [*tool, "--format", "json", "--progress-spinner", "off"], capture_output=True, text=True, check=False
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().rpartition("\n")[2]
        return 0, f"skipped: pip-audit could ask nobody ({last[:300]})"
    return judged(report)


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(words: list[str]) -> int:
    """Run one of the commands; the exit status."""
    match words:
        case ["sbom", file]:
            document = sbom_of_lock()
            if wrong := invalid(document):
                print(f"this is no valid CycloneDX 1.6, and was not written: {wrong}", file=sys.stderr)
                return 1
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
            print(f"{file}: {len(document['components'])} components, valid CycloneDX {document['specVersion']}")
            return 0
        case ["audit"]:
            status, told = audit()
            print(told)
            return status
        case ["licences"]:
            print("\n".join(rows(licences())))
            return 0
        case _:
            print("usage: supply_chain.py sbom FILE | audit | licences", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
