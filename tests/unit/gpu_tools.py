"""Fake nvidia-smi and systemctl on the path, and a fake /proc: a machine with GPUs whose reset goes as a test says."""

import json
import os
import sys
from pathlib import Path

PROGRAM = """#!{python} -SE
import json, os, sys, time
home = {home!r}
name, args = os.path.basename(sys.argv[0]), sys.argv[1:]
with open(home + "/state.json") as file:
    state = json.load(file)
with open(home + "/asked", "a") as log:
    log.write(" ".join([name, *args]) + "\\n")
def keep():
    with open(home + "/state.json", "w") as file:
        json.dump(state, file)
def systemctl():
    verb, unit = args[0], args[-1]
    if verb == "is-active":
        sys.exit(0 if unit in state["active"] else 3)
    if verb == "stop":
        state["active"].remove(unit)
    elif unit in state["broken"]:
        sys.exit("Job for " + unit + " failed.")
    elif unit in state["dies"]:
        state["active"] = [one for one in state["active"] if one != unit]
    elif unit not in state["active"]:
        state["active"].append(unit)
    keep()
def nvidia_smi():
    if args[0].startswith("--query-gpu"):
        for n in range(state["gpus"]):
            print(f"{{n}}, 00000000:{{0x1b + n:02X}}:00.0, GPU-uuid-{{n}}")
    elif args[0].startswith("--query-compute-apps"):
        for pid, gpu in state["apps"]:
            print(f"{{pid}}, GPU-uuid-{{gpu}}")
    elif args[0] == "nvlink":
        up = state["links_after"] if state["resets"] else state["links"]
        print(f"GPU {{args[-1]}}: NVIDIA H100 80GB HBM3 (UUID: GPU-uuid-{{args[-1]}})")
        for link in range(18):
            print(f"\\t Link {{link}}: " + ("26.562 GB/s" if link < up else "<inactive>"))
    elif args[0] == "-q":
        print("    Fabric\\n        State                             : " + state["fabric"])
    elif args[0] == "--gpu-reset":
        if state["hangs"]:
            time.sleep(60)
        if state["in_use"]:
            print("GPU 00000000:1B:00.0 is currently in use by one or more other processes")
            sys.exit(255)
        state["resets"].append(args[-1] if len(args) > 1 else "all")
        keep()
systemctl() if name == "systemctl" else nvidia_smi()
"""


class Machine:
    """Holds what the fakes know (`state.json`), what they were asked, and a root with /proc."""

    def __init__(self, home: Path, gpus: int = 8) -> None:
        self.home, self.root = home, home / "root"
        for name in ("nvidia-smi", "systemctl"):
            tool = home / "bin" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text(PROGRAM.format(python=sys.executable, home=str(home)))
            tool.chmod(0o755)
        (self.root / "proc").mkdir(parents=True)
        self.tell(
            gpus=gpus, active=[], broken=[], dies=[], apps=[], links=18, links_after=18, resets=[], hangs=False,
            in_use=False, fabric="Completed",
        )  # fmt: skip

    @property
    def path(self) -> str:
        return f"{self.home}/bin:{os.environ['PATH']}"

    def tell(self, **facts: object) -> None:
        file = self.home / "state.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(known | facts))

    def knows(self, what: str) -> object:
        return json.loads((self.home / "state.json").read_text())[what]

    def asked(self, name: str) -> list[str]:
        """The commands that were run, without those that only look."""
        lines = (self.home / "asked").read_text().splitlines() if (self.home / "asked").exists() else []
        words = (line for line in lines if line.startswith(name))
        return [w for w in words if "is-active" not in w and "query" not in w and "nvlink" not in w and " -q " not in w]

    def process(self, pid: int, comm: str, cgroup: str, *files: str) -> None:
        """A process with these files open."""
        home = self.root / "proc" / str(pid)
        (home / "fd").mkdir(parents=True)
        (home / "comm").write_text(comm + "\n")
        (home / "cgroup").write_text(f"0::{cgroup}\n")
        for number, file in enumerate(files):
            (home / "fd" / str(number)).symlink_to(file)

    def minor(self, gpu: int, minor: int) -> None:
        """The device file of a GPU has another number than nvidia-smi's index."""
        home = self.root / "proc/driver/nvidia/gpus" / f"0000:{0x1B + gpu:02x}:00.0"
        home.mkdir(parents=True)
        (home / "information").write_text(f"Model: \t NVIDIA H100\nDevice Minor: \t {minor}\n")
