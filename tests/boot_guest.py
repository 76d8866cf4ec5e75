"""Real boots without hardware: QEMU without KVM as the machine, iPXE as its boot loader, busybox as its image."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path

from tests.tied_processes import tied

QEMU = "qemu-system-x86_64"
NEEDED = ("busybox", "cpio", QEMU, "dpkg-deb", "apt-get")
ROM = Path("/usr/lib/ipxe/qemu/efi-virtio.rom")
"""iPXE for BIOS and UEFI in one; QEMU takes it by itself."""
OVMF = Path("/usr/share/ovmf/OVMF.fd")
OVMF_CODE, OVMF_VARS = Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
IPXE_EFI = Path("/usr/lib/ipxe/ipxe.efi")
"""The boot loader that UEFI fetches by HTTP."""
IPXE_KERNEL = Path("/usr/lib/ipxe/ipxe.lkrn")
"""The same as a kernel, for machines that boot by BIOS."""
BIOS, UEFI, UEFI_HTTP, MEDIUM, UEFI_MEDIUM = "bios", "uefi", "uefi-http", "medium", "uefi-medium"
"""Kinds of machine: iPXE in its adapter under BIOS or UEFI, UEFI that fetches a boot loader by HTTP itself, or BIOS or
UEFI that starts from a CD in a virtual drive, with no boot loader in its adapter."""
FROM_MEDIUM = (MEDIUM, UEFI_MEDIUM)
MEDIUM_TOOLS = ("xorriso", "mformat", "/usr/lib/ISOLINUX/isolinux.bin", "/usr/lib/syslinux/modules/bios/ldlinux.c32")
KERNEL = "linux-image-cloud-amd64"
MODULES = (
    "virtio/virtio_ring",
    "virtio/virtio",
    "virtio/virtio_pci_modern_dev",
    "virtio/virtio_pci_legacy_dev",
    "virtio/virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
)

INIT = r"""#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in $(cat /modules/order); do insmod /modules/$module.ko; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
for word in $(cat /proc/cmdline); do case $word in hostler.seed=*) seed=${word#hostler.seed=};; esac; done
echo "guest: seed $seed"
for name in meta-data vendor-data network-config user-data; do
  wget -q -O /$name "$seed$name" && echo "guest: got $name" || echo "guest: no $name"
done
wget -q -O /again "${seed}user-data" && echo "guest: REPLAYED" || echo "guest: replay refused"
home=$(sed -n 's/^ *url: *//p' /user-data)
grep -q join.json /user-data && echo "guest: has a token"
wget -q -O /dev/null --post-data "instance_id=guest" "$home" && echo "guest: home"
poweroff -f
"""


def missing() -> str:
    """Why no machine can boot here, "" where one can."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    absent += [str(path) for path in (ROM, OVMF, OVMF_CODE, IPXE_EFI) if not path.exists()]
    if absent:
        return f"{', '.join(absent)} missing: run scripts/system-packages"
    return "" if kernel_folder() is not None else f"{KERNEL} cannot be fetched with apt-get download"


def no_medium() -> str:
    """Why no boot medium can be made here, "" where one can."""
    absent = [
        name for name in (*MEDIUM_TOOLS, str(IPXE_KERNEL)) if shutil.which(name) is None and not Path(name).exists()
    ]
    return f"{', '.join(absent)} missing: run scripts/system-packages" if absent else missing()


def kernel_folder() -> Path | None:
    """The unpacked kernel package, fetched once for this user; None where it cannot be had."""
    kept = Path(tempfile.gettempdir()) / f"hostler-boot-kernel-{os.getuid()}"
    if not (kept / "boot").is_dir():
        with tempfile.TemporaryDirectory() as work:
            if not _fetch(Path(work)):
                return None
            unpacked = Path(work) / "unpacked"
            subprocess.run(["dpkg-deb", "-x", str(next(Path(work).glob("*.deb"))), str(unpacked)], check=True)
            if not kept.exists():
                shutil.copytree(unpacked, kept)
    return kept


LOCAL_DISK = "guest: this is the local disk"


def build_disk(path: Path, loader: Path | None) -> None:
    """A disk that says so on the console: of the boot loader for UEFI where one is given, else by its boot sector."""
    if loader is None:
        path.write_bytes(_boot_sector(f"{LOCAL_DISK}\r\n").ljust(1024 * 1024, b"\0"))
        return
    script = path.with_suffix(".ipxe")
    script.write_text(f"#!ipxe\necho {LOCAL_DISK}\npoweroff\n")
    path.write_bytes(b"\0" * 8 * 1024 * 1024)
    for words in (
        ("mformat", "-i", str(path), "-T", "16384", "-h", "16", "-s", "32", "::"),
        ("mmd", "-i", str(path), "::/EFI", "::/EFI/BOOT"),
        ("mcopy", "-i", str(path), str(loader), "::/EFI/BOOT/BOOTX64.EFI"),
        ("mcopy", "-i", str(path), str(script), "::/autoexec.ipxe"),
    ):
        subprocess.run(words, check=True, capture_output=True)


def _boot_sector(text: str) -> bytes:
    """512 bytes that a BIOS starts: they write the text to the first serial port, byte by byte, and halt."""
    code = bytes.fromhex("fa 31c0 8ed8 be1a7c baf803 ac 84c0 7403 ee ebf8 f4 ebfd".replace(" ", ""))
    assert len(code) <= 0x1A, "the text begins there"
    return (code.ljust(0x1A, b"\x90") + text.encode() + b"\0").ljust(510, b"\0") + b"\x55\xaa"


def _fetch(folder: Path) -> bool:
    """Download the newest cloud kernel's package. It is not installed: the machines that boot it are not this one."""
    listed = subprocess.run(["apt-cache", "depends", KERNEL], capture_output=True, text=True, check=False).stdout
    names = [line.partition("Depends:")[2].strip() for line in listed.splitlines() if "Depends: linux-image" in line]
    if not names:
        return False
    done = subprocess.run(["apt-get", "download", names[0]], cwd=folder, capture_output=True, check=False, timeout=120)
    return done.returncode == 0 and any(folder.glob("*.deb"))


def build_image(folder: Path) -> tuple[Path, Path]:
    """A kernel, and a file system that fetches its data, phones home and ends; both in the folder."""
    kernel = kernel_folder()
    assert kernel is not None, "see missing()"
    shutil.copyfile(next((kernel / "boot").glob("vmlinuz-*")), folder / "vmlinuz")
    with tempfile.TemporaryDirectory() as work:
        root = Path(work)
        for name in ("bin", "proc", "sys", "dev", "modules"):
            (root / name).mkdir()
        shutil.copyfile("/usr/bin/busybox", root / "bin/busybox")
        (root / "bin/busybox").chmod(0o755)
        (root / "bin/sh").symlink_to("busybox")
        (root / "init").write_text(INIT)
        (root / "init").chmod(0o755)
        order = [name for module in MODULES if (name := _copy_module(kernel, module, root / "modules"))]
        (root / "modules/order").write_text("\n".join(order))
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        packed = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=root, capture_output=True, check=True
        )
    (folder / "initrd").write_bytes(packed.stdout)
    return folder / "vmlinuz", folder / "initrd"


def _copy_module(kernel: Path, module: str, into: Path) -> str:
    name = module.rpartition("/")[2]
    found = next(kernel.rglob(f"{name}.ko"), None)
    if found is not None:
        shutil.copyfile(found, into / f"{name}.ko")
    return name if found is not None else ""


class Guest:
    """One machine: `power_on` starts it from this address, as its firmware would; its console is in `log`."""

    def __init__(self, mac: str, serial: str, log: Path, firmware: str = BIOS, memory_mb: int = 256) -> None:
        """`tpm` is the control socket of a TPM that swtpm plays, `drive` the file of an NVMe drive; None for none.

        `dhcp` is what the network's DHCP server names whatever the machine is started with, "" for nothing of its own;
        `disk` is the file of a disk that it may boot from, None for none.
        """
        self.mac = mac
        self.serial = serial
        self.log = log
        self.firmware = firmware
        self.memory_mb = memory_mb
        self.starts = 0
        self.tpm: Path | None = None
        self.drive: Path | None = None
        self.dhcp = ""
        self.disk: Path | None = None
        self.medium = log.with_suffix(".iso")
        self._process: Process | None = None

    async def power_on(self, address: str, dhcp: str = "") -> None:
        """Start the machine. `dhcp` is the file that the network's DHCP server names, the address itself for "".

        A machine with a virtual drive starts from the file `medium` in it, and has no boot loader of its own.
        """
        self.starts += 1
        rom = ",romfile=" if self.firmware in (UEFI_HTTP, *FROM_MEDIUM) else ""
        first = ",bootindex=1" if self.disk is not None else ""
        self._process = await asyncio.create_subprocess_exec(
            *tied(QEMU),
            *(
                "-accel",
                "tcg",
                "-m",
                str(self.memory_mb),
                "-display",
                "none",
                "-no-reboot",
                "-boot",
                "d" if self.firmware in FROM_MEDIUM else "n",
                "-monitor",
                "none",
            ),
            *("-serial", f"file:{self.log}"),
            *("-netdev", f"user,id=n0,bootfile={self.dhcp or dhcp or address}"),
            *("-device", f"virtio-net-pci,netdev=n0,mac={self.mac}{rom}{first}"),
            *("-smbios", f"type=1,serial={self.serial}"),
            *(("-cdrom", str(self.medium)) if self.firmware in FROM_MEDIUM else ()),
            *self._firmware(address),
            *self._tpm(),
            *self._nvme(),
            *self._disk(),
            stdout=DEVNULL,
            stderr=DEVNULL,
        )

    def _firmware(self, address: str) -> tuple[str, ...]:
        """The machine's firmware; native HTTP boot finds the boot entry that a BMC writes for HttpBootUri."""
        if self.firmware in (BIOS, MEDIUM):
            return ()
        pxe = (f"name=opt/org.tianocore/IPv{version}PXESupport,string=n" for version in (4, 6))
        no_pxe = tuple(word for one in pxe for word in ("-fw_cfg", one))
        if self.firmware in (UEFI, UEFI_MEDIUM):
            # Its own PXE waits long for answers that nobody gives, before it comes to the disk.
            return ("-bios", str(OVMF), *(no_pxe if self.disk is not None else ()))
        kept = self.log.with_suffix(".vars")
        tool = ("-m", "virt.firmware.vars", "-i", str(OVMF_VARS), "-o", str(kept), "--set-boot-uri", address)
        subprocess.run([sys.executable, *tool], check=True, capture_output=True)
        flash = f"if=pflash,format=raw,unit=0,readonly=on,file={OVMF_CODE}"
        variables = ("-drive", f"if=pflash,format=raw,unit=1,file={kept}")
        return ("-machine", "q35", "-drive", flash, *variables, *no_pxe)

    def _tpm(self) -> tuple[str, ...]:
        if self.tpm is None:
            return ()
        socket = ("-chardev", f"socket,id=tpm,path={self.tpm}")
        return (*socket, "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-tis,tpmdev=tpm0")

    def _disk(self) -> tuple[str, ...]:
        """A disk that the machine boots from where its network boot gives way."""
        if self.disk is None:
            return ()
        return ("-drive", f"file={self.disk},format=raw,if=none,id=h0", "-device", "ide-hd,drive=h0,bootindex=2")

    def _nvme(self) -> tuple[str, ...]:
        if self.drive is None:
            return ()
        disk = ("-drive", f"file={self.drive},if=none,id=d0,format=raw")
        return (*disk, "-device", f"nvme,drive=d0,serial=NV-{self.serial}")

    async def power_off(self) -> None:
        """End the machine."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def ended(self) -> None:
        """Wait until the machine has ended by itself."""
        assert self._process is not None
        await self._process.wait()

    async def says(self, text: str, within_s: float) -> None:
        """Wait until its console has shown this text."""
        try:
            async with asyncio.timeout(within_s):
                while text not in self.console():  # noqa: ASYNC110 - a console has no event
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise AssertionError(f"'{text}' is not shown:\n{self.console()[-3000:]}") from None

    def console(self) -> str:
        """Text that its console has shown."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""
