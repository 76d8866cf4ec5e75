"""Makes the image of a boot medium out of boot loaders, with mtools and xorriso: an ISO that UEFI starts, and BIOS too.

UEFI starts EFI/BOOT/BOOT*.EFI of a FAT image that the ISO names (UEFI 2.10, 3.5 and 13.3.2.1; El Torito). iPXE of 2021
or newer then runs `autoexec.ipxe`, which is looked for at the root and, since 2024, beside the loader. A machine with
BIOS gets iPXE as a kernel of isolinux, and the script as its initial file system.
"""

import subprocess
import tempfile
from pathlib import Path

from msgspec import Struct

from hostler.core.boot.ipxe import ROOM_FOR_SCRIPT
from hostler.ports import RefusedError

EFI_NAMES = {"x86_64": "BOOTX64.EFI", "arm64": "BOOTAA64.EFI"}
"""Architecture → the file that UEFI starts from a removable medium."""
SCRIPT = "autoexec.ipxe"
TIMEOUT_S = 60.0
_ISOLINUX = (Path("/usr/lib/ISOLINUX/isolinux.bin"), Path("/usr/lib/syslinux/modules/bios/ldlinux.c32"))
_MENU = "DEFAULT hostler\nLABEL hostler\n  KERNEL ipxe.krn\n  INITRD autoexec.ipx\n"
_KIB_BESIDE = 96
"""Kibibytes of the FAT image beside the loader: its tables, folders and scripts."""


class MediumParts(Struct, frozen=True):
    """Files that a medium is made of: the EFI loader, its architecture, and iPXE as a kernel for BIOS, or None."""

    loader: Path
    arch: str = "x86_64"
    bios: Path | None = None


def looks_for_script(loader: Path) -> bool:
    """Whether this iPXE looks for a script where it was started from; one of before 2021 has no such name in it."""
    return SCRIPT.encode() in loader.read_bytes()


def make_medium(parts: MediumParts, out: Path) -> None:
    """Write the image. Raises RefusedError where a tool is missing or fails."""
    with tempfile.TemporaryDirectory(prefix="hostler-medium-") as folder:
        work, tree = Path(folder), Path(folder) / "tree"
        tree.mkdir()
        script = work / SCRIPT
        script.write_bytes(ROOM_FOR_SCRIPT)
        _fat(parts, script, tree / "efi.img")
        boots = ["-e", "efi.img", "-no-emul-boot"]
        if parts.bios is not None:
            boots = [*_bios(parts.bios, tree), "-eltorito-alt-boot", *boots]
        _run("xorriso", "-as", "mkisofs", "-quiet", "-V", "HOSTLER", "-o", str(out), *boots, str(tree))


def _fat(parts: MediumParts, script: Path, image: Path) -> None:
    kib = -(-parts.loader.stat().st_size // 1024) + _KIB_BESIDE
    image.touch()
    _run("mformat", "-i", str(image), "-C", "-T", str(kib * 2), "-h", "2", "-s", "32", "-v", "HOSTLER", "::")
    _run("mmd", "-i", str(image), "::/EFI", "::/EFI/BOOT")
    _run("mcopy", "-i", str(image), str(parts.loader), f"::/EFI/BOOT/{EFI_NAMES[parts.arch]}")
    for place in ("::/", "::/EFI/BOOT/"):
        _run("mcopy", "-i", str(image), str(script), place)


def _bios(ipxe: Path, tree: Path) -> list[str]:
    """The files of a boot by BIOS; the options that name them."""
    for file in _ISOLINUX:
        if not file.is_file():
            raise RefusedError(f"{file} is missing; add the packages isolinux and syslinux-common, or leave out --bios")
        (tree / file.name).write_bytes(file.read_bytes())
    (tree / "ipxe.krn").write_bytes(ipxe.read_bytes())
    (tree / "autoexec.ipx").write_bytes(ROOM_FOR_SCRIPT)
    (tree / "isolinux.cfg").write_text(_MENU)
    return ["-b", "isolinux.bin", "-c", "boot.cat", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table"]


def _run(program: str, *arguments: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - no shell: each word is one argument, files that the caller names
            [program, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise RefusedError(f"{program} is missing; add the packages mtools and xorriso") from None
    except subprocess.TimeoutExpired:
        raise RefusedError(f"{program} did not end within {TIMEOUT_S:.0f} s; run it again") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise RefusedError(f"{program} failed: {said}; correct what it names")
