"""`hostler`, whose main thread computes for a while on SIGUSR1: its event loop stalls as under an attack, and lives on.

Other threads get the interpreter's lock in turns, as beside any slow piece of Python.
"""

import os
import signal
import time

from hostler.cli.main import main

STALL_S = float(os.environ.get("STALL_S", "10"))


def _stall(_signal: int, _frame: object) -> None:
    end = time.monotonic() + STALL_S
    while time.monotonic() < end:
        sum(range(1_000))


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _stall)
    main()
