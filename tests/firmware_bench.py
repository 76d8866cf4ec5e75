"""Drives and adapters of files under a root of their own, with programs for `nvme` and `flint` that may lie.

The programs answer in the words and exit codes of nvme-cli 2 and of mstflint 4; what a device is and how it lies stands
in a file that a test changes. A web server on loopback has the images.
"""

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hostler.core.state.model import Part

IMAGE = b"firmware of a drive" * 64
SHA = hashlib.sha256(IMAGE).hexdigest()
HEAD = rf"""#!{sys.executable} -IS
import json, pathlib, sys, time
folder = pathlib.Path(__file__).parent
with (folder / "said").open("a") as said:
    said.write(pathlib.Path(sys.argv[0]).name + " " + " ".join(sys.argv[1:]) + "\n")
"""
NVME = (
    HEAD
    + r"""
verb, device = sys.argv[1], sys.argv[2]
name = device.rsplit("/", 1)[1]
place = folder / (name + ".json")
drive = json.loads(place.read_text())
lie = drive["lie"]
def keep(**said):
    place.write_text(json.dumps(drive | said))
def number(version):
    return str(int.from_bytes(version.encode().ljust(8)[:8], "little")) + " (" + version + ")"
if lie == "mute":
    print("nothing that anybody could read")
elif verb == "id-ctrl":
    serial = "SOMEBODY-ELSE" if lie == "other" else drive["sn"]
    print(json.dumps({"vid": 5197, "sn": serial + "    ", "mn": drive["mn"] + "   ", "fr": drive["fr"] + "  ",
                      "oacs": drive["oacs"], "frmw": drive["frmw"]}))
elif verb == "fw-log":
    log = {"Active Firmware Slot (afi)": 1 + (32 if drive["waits"] else 0), "Firmware Rev Slot 1": number(drive["fr"])}
    if drive["waits"]:
        log["Firmware Rev Slot 2"] = number(drive["waits"])
    print(json.dumps({name: log}))
elif verb == "fw-download":
    if lie == "hangs":
        time.sleep(60)
    if lie == "half":
        keep(buffer="half")
        print("fw-download: error on offset 0x00020000/0x00100000", file=sys.stderr)
        print("NVMe status: Data Transfer Error: Transferring the data or metadata failed(0x4004)", file=sys.stderr)
        sys.exit(1)
    image = pathlib.Path(sys.argv[3].removeprefix("--fw=")).read_bytes()
    keep(buffer=image.decode())
    print("Firmware download success")
elif verb == "fw-commit":
    if lie == "killed":
        time.sleep(60)
    if lie == "refuses" or not drive["buffer"]:
        print("NVMe status: Invalid Firmware Image: The firmware image specified is invalid(0x4107)", file=sys.stderr)
        sys.exit(1)
    keep(waits="" if lie == "unchanged" else drive["new"], buffer="")
    if lie == "conventional":
        print("Success activating firmware action:1 slot:0, but firmware requires conventional reset")
        sys.exit(1)
    print("Success committing firmware action:1 slot:0")
else:
    sys.exit("ERROR: Invalid sub-command '" + verb + "'")
"""
)
FLINT = (
    HEAD
    + r"""
place = folder / (sys.argv[2] + ".json")
card = json.loads(place.read_text())
if sys.argv[-1] == "query":
    if card["lie"] == "mute":
        print("-E- Cannot open Device: " + sys.argv[2] + ". No such file or directory. MFE_CR_ERROR")
        sys.exit(1)
    print("Image type:            FS4")
    print("FW Version:            " + (card["waits"] or card["fr"]))
    if card["waits"]:
        print("FW Version(Running):   " + card["fr"])
    print("PSID:                  " + card["psid"])
elif card["lie"] == "psid":
    print("\n    Current FW version on flash:  " + card["fr"] + "\n    New FW version:               " + card["new"])
    flash = "The PSID on flash (" + card["psid"] + ")"
    print("\n-E- PSID mismatch. " + flash + " differs from the PSID in the given image (DEL1).")
    sys.exit(1)
elif card["lie"] == "pending":
    print("-E- Burning FS4 image failed: The firmware image was already updated on flash, pending reset.")
    sys.exit(1)
else:
    place.write_text(json.dumps(card | {"waits": card["new"]}))
    print("Burning FW image without signatures - OK")
    print("-I- To load new FW run mlxfwreset or reboot machine.")
"""
)


FWUPDMGR = (
    HEAD
    + r"""
place = folder / "retimer.json"
chip = json.loads(place.read_text())
if chip["lie"] == "old":
    print("Idle...\nNo JSON here")
elif sys.argv[1] == "get-devices":
    flags = ["internal", "registered"] + (["updatable"] if chip["lie"] != "fixed" else [])
    print(json.dumps({"Devices": [
        {"Name": "PCIe retimer", "DeviceId": "d1", "Guid": ["g-other", "g-retimer"], "Version": chip["fr"],
         "Flags": flags, "VendorId": chip["vendor"]},
        {"Name": "TPM", "DeviceId": "d2", "Guid": ["g-tpm"], "Version": "7.2", "Flags": ["internal"]}]}))
elif chip["lie"] == "nothing":
    print("No updates available")
    sys.exit(2)
elif chip["lie"] == "refuses":
    print("failed to install: signature did not validate", file=sys.stderr)
    sys.exit(1)
else:
    place.write_text(json.dumps(chip | {"waits": chip["new"]}))
    print("Successfully installed firmware")
"""
)


class FirmwareBench:
    """A machine of files. `said` are the commands that its programs were given, `parts` what its inventory shows."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin = folder / "root", folder / "bin"
        (self.root / "dev").mkdir(parents=True)
        (self.root / "proc").mkdir()
        self.bin.mkdir()
        for name, text in (("nvme", NVME), ("flint", FLINT), ("fwupdmgr", FWUPDMGR)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def drive(self, slot: str, serial: str, model: str = "KCD8", **said: Any) -> None:
        """An NVMe drive with one namespace that runs 1.0."""
        block = self.root / "sys/block" / slot
        (block / "device").mkdir(parents=True)
        (block / "device/serial").write_text(serial)
        (block / "device/model").write_text(f"{model}   \n")
        (block / "device/firmware_rev").write_text(str(said.get("fr", "1.0")))
        (block / "size").write_text("2048")
        self._keep(slot.rpartition("n")[0], {"sn": serial, "mn": model, "oacs": 0x17, "frmw": 0x16} | said)

    def card(self, slot: str, serial: str, address: str, layer: str = "Ethernet", **said: Any) -> None:
        """A ConnectX adapter that runs 1.0; `layer`: the link layer of its one port, "" for none that is told."""
        at, device = self.root / "sys/class/infiniband" / slot, self.root / "sys/bus/pci/devices" / address
        (at / "ports/1").mkdir(parents=True)
        device.mkdir(parents=True)
        (at / "device").symlink_to(device)
        if layer:
            (at / "ports/1/link_layer").write_text(layer)
        self._keep(address, {"sn": serial, "mn": "MCX7", "psid": "MT_838", "slot": slot} | said)

    def retimer(self, **said: Any) -> None:
        """A retimer that fwupd knows as d1, beside a TPM that is not updatable."""
        self._keep("retimer", {"vendor": "PCI:0x1000"} | said)

    def _keep(self, name: str, said: dict[str, Any]) -> None:
        body = {"fr": "1.0", "new": "2.0", "waits": "", "buffer": "", "lie": ""} | said
        (self.bin / f"{name}.json").write_text(json.dumps(body))

    def lies(self, name: str, lie: str, **said: Any) -> None:
        """Have the device (nvme0, or an adapter's address) lie from now on."""
        place = self.bin / f"{name}.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | said | {"lie": lie}))

    def reset(self) -> None:
        """Power off and on: what waits runs, what was only handed over is gone."""
        for place in self.bin.glob("*.json"):
            device = json.loads(place.read_text())
            runs = device["waits"] or device["fr"]
            place.write_text(json.dumps(device | {"fr": runs, "waits": "", "buffer": ""}))
            if (shown := self.root / f"sys/block/{place.stem}n1/device/firmware_rev").exists():
                shown.write_text(runs)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The inventory."""
        found = []
        for place in sorted(self.bin.glob("*[0-9]*.json")):
            said, name = json.loads(place.read_text()), place.name.removesuffix(".json")
            kind, slot = ("nic", said["slot"]) if "slot" in said else ("drive", f"{name}n1")
            found.append(Part(said["sn"], kind, said["mn"], slot, said["fr"]))
        return tuple(found)

    @property
    def said(self) -> list[str]:
        """The commands that change something."""
        place = self.bin / "said"
        lines = place.read_text().splitlines() if place.exists() else []
        changing = [
            line
            for line in lines
            if line.split()[1] in ("fw-download", "fw-commit", "install") or line.endswith(" burn")
        ]
        return [line.replace(str(self.root), "") for line in changing]


class ImageServer:
    """Web server of images: /good, /other, /gone, /moved, and /slow, which sends a byte and is silent."""

    def __init__(self) -> None:
        ended = self._ended = threading.Event()

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/moved":
                    self.send_response(302)
                    self.send_header("Location", "/good")
                    self.end_headers()
                    return
                self.send_response(404 if self.path == "/gone" else 200)
                self.send_header("Content-Length", str(len(IMAGE)))
                self.end_headers()
                if self.path == "/slow":
                    self.wfile.write(IMAGE[:1])
                    self.wfile.flush()
                    ended.wait(30)
                elif self.path == "/cut":
                    self.wfile.write(IMAGE[:100])
                else:
                    self.wfile.write(IMAGE if self.path == "/good" else IMAGE[::-1])

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """End the server and whoever waits for it."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
