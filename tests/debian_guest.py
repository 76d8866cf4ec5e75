"""Debian with its own cloud-init as an image to boot: bootstrapped once into the user's cache, then kept there.

The recipe is this file: its digest, and the kernel's version, name the folder. The image is an initial file system, as
nodes are stateless. It takes minutes to bootstrap and a few GB of RAM to boot, so `make test-boot` runs what needs it.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.boot_guest import kernel_folder

PACKAGES = (
    "systemd-sysv,udev,kmod,cloud-init,iproute2,dbus,ca-certificates,openssl,tpm2-tools,python3-numpy,nvme-cli,chrony"
)
"""chrony: a node whose clock nobody sets is no spare (`host.clock_unsynchronised`)."""
UNPACKED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")
"""Left out of the image: it lies in the memory of the machine."""
SUITE = "bookworm"
NEEDED = ("mmdebstrap", "cpio", "zstd", "tar", "chroot")
MEMORY_MB = 3_000
ARGS = (
    "console=ttyS0 quiet no_timer_check rdinit=/sbin/init systemd.journald.forward_to_console=1 "
    "nvme_core.io_timeout=600 nvme_core.admin_timeout=600"
)
"""A drive that QEMU plays without KVM answers late where the machine is busy; a command that timed out is a fault."""


NETWORK = "[Match]\nType=ether\n[Network]\nDHCP=ipv4\n"
"""The interface that it booted from, before cloud-init has the node's own."""
MODULES = "virtio_pci\nvirtio_net\n"


def missing_for_debian() -> str:
    """Why Debian cannot be bootstrapped here, "" where it can."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} missing: run scripts/system-packages"
    return "" if os.geteuid() == 0 else "bootstrapping Debian needs root"


def build_debian(folder: Path) -> tuple[Path, Path]:
    """Kernel and initial file system, both in the folder; bootstrapped where the cache has none of this recipe."""
    kept = _kept()
    if not (kept / "initrd").exists():
        _bootstrap(kept)
    for name in ("vmlinuz", "initrd"):
        digest = hashlib.sha256((kept / name).read_bytes()).hexdigest()
        assert digest == (kept / f"{name}.sha256").read_text(), f"{kept / name} has changed; remove {kept}"
        os.link(kept / name, folder / name) if _same_device(kept, folder) else shutil.copyfile(
            kept / name, folder / name
        )
    return folder / "vmlinuz", folder / "initrd"


def _same_device(a: Path, b: Path) -> bool:
    return a.stat().st_dev == b.stat().st_dev


def _kernel() -> Path:
    found = kernel_folder()
    assert found is not None, "see boot_guest.missing()"
    return found


def _kept() -> Path:
    version = next((_kernel() / "lib/modules").iterdir()).name
    recipe = hashlib.sha256(Path(__file__).read_bytes() + version.encode()).hexdigest()[:16]
    return Path.home() / ".cache/hostler-debian-guest" / recipe


def _bootstrap(kept: Path) -> None:
    """Bootstrap beside the cache, and move it there whole."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as work:
        root, made = Path(work) / "root", Path(work) / "made"
        made.mkdir()
        _run("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root))
        version = next((_kernel() / "lib/modules").iterdir()).name
        shutil.copytree(_kernel() / "lib/modules" / version, root / "lib/modules" / version, symlinks=True)
        _run("chroot", str(root), "depmod", "-a", version)
        (root / "etc/modules-load.d/network.conf").write_text(MODULES)
        (root / "etc/systemd/network/boot.network").write_text(NETWORK)
        _run("chroot", str(root), "systemctl", "enable", "systemd-networkd")
        shutil.copyfile(next((_kernel() / "boot").glob("vmlinuz-*")), made / "vmlinuz")
        pruned = " -o ".join(f"-path ./{path}" for path in UNPACKED)
        packing = f"find . \\( {pruned} \\) -prune -o -print | cpio -o -H newc --quiet | zstd -q -3"
        with (made / "initrd").open("wb") as packed:
            subprocess.run(["sh", "-c", packing], cwd=root, stdout=packed, check=True)
        for name in ("vmlinuz", "initrd"):
            (made / f"{name}.sha256").write_text(hashlib.sha256((made / name).read_bytes()).hexdigest())
        made.rename(kept)


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv[0]}: {done.stderr[-1000:]}"
