"""Drives of files or loop devices under a root of their own, and a program in the place of `nvme` that may lie.

The program answers in nvme-cli's JSON and acts on the medium behind `/dev/NAME` of that root alone; what the drive is
and how it lies stands in a file that a test changes. `LIES`: nothing, or one of those that are named in `Lie`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from hostler.core.state.operations import DriveToErase, Sanitise
from tests import hdparm_twin

Lie = Literal["", "keeps", "keeps_some", "never_ends", "fails", "vanishes", "other", "mute", "refuses", "words_as_key"]
"""Says that it is erased and keeps all, or one block; its progress never ends; its log says failed; it is gone in the
midst; another serial answers; no answer; the command is refused; nvme-cli 2.5's odd key."""

_ACTS = ("sanitize", "format", "--yes-i-know-what-i-am-doing")
SIZE = 8 * 1024 * 1024
PROGRAM = (
    rf"#!{sys.executable} -IS"
    r"""
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
verb, device = sys.argv[1], sys.argv[2]
name = device.rsplit("/", 1)[1]
controller = name if name.count("n") == 1 else name.rpartition("n")[0]
place = folder / (controller + ".json")
drive = json.loads(place.read_text())
with (folder / "said").open("a") as said:
    said.write(" ".join(sys.argv[1:]) + "\n")
lie = drive["lie"]
WORDS = ["NVM Subsystem has never been sanitized.", "Most Recent Sanitize Command Completed Successfully.",
         "Sanitize in Progress.", "Most Recent Sanitize Command Failed."]
def medium():
    return os.open(drive["path"], os.O_RDWR)
def wipe():
    if lie == "keeps":
        return
    fd = medium()
    size = os.lseek(fd, 0, os.SEEK_END)
    kept = os.pread(fd, 4096, 0)
    for at in range(0, size, 1 << 20):
        os.pwrite(fd, bytes(min(1 << 20, size - at)), at)
    if lie == "keeps_some":
        os.pwrite(fd, kept, 0)
    os.fsync(fd)
    os.close(fd)
if lie == "mute":
    print("nothing that anybody could read")
elif verb == "id-ctrl":
    serial = "SOMEBODY-ELSE" if lie == "other" else drive["sn"]
    print(json.dumps({"vid": 5197, "sn": serial + "    ", "mn": drive["mn"] + "   ", "fr": "1.0", "oacs": drive["oacs"],
                      "fna": drive["fna"], "sanicap": drive["sanicap"]}))
elif lie == "refuses":
    print("NVMe status: Sanitize Failed: The most recent sanitize operation failed(0x1c)", file=sys.stderr)
    sys.exit(1)
elif verb == "sanitize":
    drive["status"], drive["polls"] = 2, 0
    place.write_text(json.dumps(drive))
    if lie != "fails":
        wipe()
    if lie == "vanishes":
        pathlib.Path(drive["dev"]).unlink()
elif verb == "sanitize-log":
    if drive["status"] == 2 and lie != "never_ends":
        drive["polls"] += 1
        if drive["polls"] > 1:
            drive["status"] = 3 if lie == "fails" else 1
        place.write_text(json.dumps(drive))
    status = drive["status"]
    key = WORDS[status] if lie == "words_as_key" else "status"
    sprog = 27525 if status == 2 else 65535
    print(json.dumps({controller: {"sprog": sprog, "sstat": {"global_erased": int(status == 1), "no_cmplted_passes": 0,
                      key: f"({status}) {WORDS[status]}"}, "cdw10_info": 2, "time_block_erase": 30}}))
elif verb == "format":
    wipe()
    print("Success formatting namespace:1")
else:
    sys.exit(f"no such verb: {verb}")
"""
)


class DriveBench:
    """Drives of a machine of files. `said` are the commands that the program was given."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self._loops: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        (root / "dev").mkdir(parents=True, exist_ok=True)
        (root / "proc").mkdir(exist_ok=True)
        (folder / "nvme").write_text(PROGRAM)
        (folder / "hdparm").write_text(hdparm_twin.PROGRAM)
        for name in ("nvme", "hdparm"):
            (folder / name).chmod(0o755)

    def nvme(self, name: str, serial: str, *, loop: bool = False, **said: Any) -> DriveToErase:
        """An NVMe drive with one namespace: block erase, unless `sanicap`, `oacs` or `fna` say otherwise."""
        device = self._plug(name, serial, loop=loop)
        facts = {"sn": serial, "mn": "TWIN", "oacs": 23, "fna": 4, "sanicap": 3, "lie": "", "status": 0, "polls": 0}
        body = facts | said | {"path": str(device.resolve()), "dev": str(device)}
        self._place(name).write_text(json.dumps(body))
        return DriveToErase(name, serial, "TWIN")

    def disk(self, name: str, serial: str, *, loop: bool = False) -> DriveToErase:
        """A drive that is no NVMe drive."""
        self._plug(name, serial, loop=loop)
        return DriveToErase(name, serial, "DISK")

    def ata(self, name: str, serial: str, *offers: str, **said: Any) -> DriveToErase:
        """A SATA drive that offers these commands of the SANITIZE feature set."""
        device = self._plug(name, serial, loop=False)
        state = {"sn": serial, "offers": offers, "state": 0, "polls": 0, "ended": False, "lie": "", "disabled": ()}
        body = state | {"enabled": False, "locked": False, "frozen": True} | said | {"path": str(device.resolve())}
        self._place(name).write_text(json.dumps(body))
        return DriveToErase(name, serial, "TWIN SSD 960GB")

    def _plug(self, name: str, serial: str, *, loop: bool) -> Path:
        image = self.folder / f"{name}.img"
        image.write_bytes(os.urandom(SIZE // 2) + bytes(SIZE // 2))
        block, device = self.root / f"sys/block/{name}", self.root / f"dev/{name}"
        (block / "device").mkdir(parents=True, exist_ok=True)
        (block / "device/serial").write_text(serial)
        (block / "size").write_text(str(SIZE // 512))
        device.unlink(missing_ok=True)
        device.symlink_to(self._loop(image) if loop else image)
        return device

    def _loop(self, image: Path) -> str:
        done = subprocess.run(("losetup", "-f", "--show", str(image)), check=True, capture_output=True, text=True)
        self._loops.append(done.stdout.strip())
        return self._loops[-1]

    def unplug(self, name: str) -> None:
        """Take the drive out."""
        for file in sorted((self.root / f"sys/block/{name}").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (self.root / f"sys/block/{name}").rmdir()
        (self.root / f"dev/{name}").unlink(missing_ok=True)

    def lies(self, name: str, lie: Lie, **said: Any) -> None:
        """Have the drive lie from now on."""
        self._place(name).write_text(json.dumps(json.loads(self._place(name).read_text()) | said | {"lie": lie}))

    def _place(self, name: str) -> Path:
        return self.folder / f"{name.rpartition('n')[0] if name.startswith('nvme') else name}.json"

    def holds_data(self, name: str) -> bool:
        """Whether anything but zeros is on the medium."""
        with (self.folder / f"{name}.img").open("rb") as file:
            return any(file.read())

    @property
    def said(self) -> list[str]:
        """The commands that asked for more than a word."""
        place = self.folder / "said"
        lines = place.read_text().splitlines() if place.exists() else []
        return [line.replace(f"{self.root}", "") for line in lines if line.split()[0] in _ACTS]

    def close(self) -> None:
        """Detach the loop devices that were made here."""
        for loop in self._loops:
            subprocess.run(("losetup", "-d", loop), check=False)


def order(*drives: DriveToErase, **said: Any) -> Sanitise:
    """An order for these drives."""
    return Sanitise(drives, **said)
