"""Fake nvidia-smi and systemctl on the path, and a fake /proc: a machine with GPUs whose reset goes as a test says."""

import os
from pathlib import Path

PROGRAM = """#!/bin/sh
# Written for the shell: a reset asks some twenty times, and every Python that starts takes ten times as long.
state='{home}/state' name=${{0##*/}}
echo "$name $*" >> '{home}/asked'
for last; do :; done
knows() {{ while read -r one; do [ "$one" = "$2" ] && return 0; done < "$state/$1"; return 1; }}
read_fact() {{ fact=; read -r fact < "$state/$1"; }}
forget_active() {{
    left=
    while read -r one; do [ "$one" = "$1" ] || left="$left$one
"; done < "$state/active"
    printf %s "$left" > "$state/active"
}}
systemctl() {{
    case $1 in
    is-active) knows active "$last" || exit 3 ;;
    stop) forget_active "$last" ;;
    *)
        if knows broken "$last"; then echo "Job for $last failed." >&2; exit 1
        elif knows dies "$last"; then forget_active "$last"
        elif ! knows active "$last"; then echo "$last" >> "$state/active"
        fi ;;
    esac
}}
nvidia_smi() {{
    n=0
    case $1 in
    --query-gpu*)
        read_fact gpus
        while [ $n -lt "$fact" ]; do
            printf '%s, 00000000:%02X:00.0, GPU-uuid-%s\\n' $n $((27 + n)) $n
            n=$((n + 1))
        done ;;
    --query-compute-apps*)
        while read -r pid gpu; do echo "$pid, GPU-uuid-$gpu"; done < "$state/apps" ;;
    nvlink)
        if read -r one < "$state/resets"; then read_fact links_after; else read_fact links; fi
        echo "GPU $last: NVIDIA H100 80GB HBM3 (UUID: GPU-uuid-$last)"
        while [ $n -lt 18 ]; do
            if [ $n -lt "$fact" ]; then up='26.562 GB/s'; else up='<inactive>'; fi
            printf '\\t Link %s: %s\\n' $n "$up"
            n=$((n + 1))
        done ;;
    -q) read_fact fabric; printf '    Fabric\\n        State                             : %s\\n' "$fact" ;;
    --gpu-reset)
        read_fact hangs; [ "$fact" = False ] || exec sleep 60
        read_fact in_use
        if [ "$fact" = True ]; then
            echo "GPU 00000000:1B:00.0 is currently in use by one or more other processes"
            exit 255
        fi
        if [ $# -gt 1 ]; then echo "$last"; else echo all; fi >> "$state/resets" ;;
    esac
}}
if [ "$name" = systemctl ]; then systemctl "$@"; else nvidia_smi "$@"; fi
"""


class Machine:
    """Holds what the fakes know (`state/FACT`, a line for each item), what they were asked, and a root with /proc."""

    def __init__(self, home: Path, gpus: int = 8) -> None:
        self.home, self.root = home, home / "root"
        for name in ("nvidia-smi", "systemctl"):
            tool = home / "bin" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text(PROGRAM.format(home=home))
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
        """Sets facts of the machine from now on; a list has an item a line, whose own parts are apart by a space."""
        (self.home / "state").mkdir(exist_ok=True)
        for name, fact in facts.items():
            rows = fact if isinstance(fact, list) else [fact]
            lines = (" ".join(map(str, row)) if isinstance(row, list) else str(row) for row in rows)
            (self.home / "state" / name).write_text("".join(f"{line}\n" for line in lines))

    def knows(self, what: str) -> list[str]:
        return (self.home / "state" / what).read_text().splitlines()

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
