"""An iPXE that looks for its script on its medium and beside its address: of a later Debian, where this one's is older.

Debian 12's is of 2019. The package is fetched once for this user, from the archive that apt uses here, with package
lists of its own; nothing is installed.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.boot_guest import IPXE_EFI

LOOKS_FOR = b"autoexec.ipxe"
RELEASE = "trixie"
"""Debian 13; its iPXE is of 2025."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FETCH_S = 180.0
FORMAT = "$(ORIGIN) $(COMPONENT) $(REPO_URI)"


def newer_ipxe() -> Path | None:
    """The EFI binary for x86_64; None where this system's is older and no later one can be had."""
    if _looks(IPXE_EFI):
        return IPXE_EFI
    kept = Path(tempfile.gettempdir()) / f"hostler-newer-ipxe-{os.getuid()}.efi"
    if not _looks(kept):
        with tempfile.TemporaryDirectory() as work:
            found = _fetched(Path(work))
            if found is None:
                return None
            fresh = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(found, fresh)
            fresh.replace(kept)
    return kept


def _looks(loader: Path) -> bool:
    return loader.is_file() and LOOKS_FOR in loader.read_bytes()


def _fetched(work: Path) -> Path | None:
    archive = _archive()
    if not archive or not KEYRING.is_file():
        return None
    for name in ("lists/partial", "archives/partial"):
        (work / name).mkdir(parents=True)
    sources = work / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {archive} {RELEASE} main\n")
    own = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work,
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Languages": "none",
    }
    options = [word for name, value in own.items() for word in ("-o", f"{name}={value}")]
    for command in (("update",), ("download", f"ipxe/{RELEASE}")):
        done = _run("apt-get", "-q", *options, *command, cwd=work)
        if done is None:
            return None
    package = next(work.glob("ipxe_*.deb"), None)
    if package is None or _run("dpkg-deb", "-x", str(package), str(work / "unpacked"), cwd=work) is None:
        return None
    return next((one for one in work.glob("unpacked/usr/lib/ipxe/ipxe*.efi") if _is_ours(one)), None)


def _is_ours(loader: Path) -> bool:
    return loader.name in ("ipxe-amd64.efi", "ipxe.efi") and _looks(loader)


def _archive() -> str:
    """The address of Debian's archive, as apt has it here; "" where this is no Debian, or apt has no lists."""
    listed = _run("apt-get", "indextargets", "--format", FORMAT, "ShortDesc: Packages", cwd=Path("/"))
    lines = [line.split() for line in (listed or "").splitlines()]
    found = [line[2] for line in lines if len(line) == 3 and line[:2] == ["Debian", "main"]]
    return next((one for one in found if "security" not in one), "")


def _run(*argv: str, cwd: Path) -> str | None:
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
