"""`make up-kubernetes`: a real control plane on loopback, and `hostler up` with emulated machines as nodes of it."""

import signal
import subprocess
import sys
from pathlib import Path

from hostler.cli.output import say
from tests.controlplane.building import NoControlPlaneError
from tests.controlplane.plane import ControlPlane
from tests.tied_processes import tied

HOSTLER = str(Path(sys.executable).parent / "hostler")


def main(words: list[str]) -> int:
    """Run both until Ctrl-C or the end of one; nothing of either is left."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job would ignore the first
        signal.signal(number, signal.default_int_handler)
    say("Starting Kubernetes (the first time it is built, which takes some minutes) …")
    try:
        plane = ControlPlane()
    except NoControlPlaneError as missing:
        say(str(missing))
        return 1
    try:
        admin = str(plane.kubeconfig("admin"))
        say(f"export KUBECONFIG={admin}")
        with subprocess.Popen(tied(HOSTLER, "up", "--kubernetes", admin, *words, signal="TERM")) as up:
            try:
                return up.wait()
            except KeyboardInterrupt:
                up.terminate()
                return up.wait()
    finally:
        plane.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
